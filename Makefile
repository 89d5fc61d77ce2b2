# Targets for people; `make` lists them. What a target needs beside cargo is named with it.

CARGO ?= cargo
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=
BINDIR = $(DESTDIR)$(PREFIX)/bin
DOCDIR = $(DESTDIR)$(PREFIX)/share/doc/beanshard
UNITDIR = $(DESTDIR)$(PREFIX)/lib/systemd/system

TARGET = $(or $(CARGO_TARGET_DIR),target)
BIN = $(TARGET)/release/beanshard
LAYOUT = $(TARGET)/debug/ctests-layout
# The command that cases and interop start. It may be another server: SERVER=beanstalkd
SERVER ?= $(LEGACY)
LEGACY = $(abspath $(BIN)) --legacy
# Cases and interop are run with this as well, unless another server is asked for.
SHARDED = $(abspath $(BIN)) --sharded --owners 2 --frontends 2
is_ours = $(filter $(LEGACY),$(SERVER))
ROUNDS ?= 3
SECONDS ?= 1
ROWS ?=
PLACE ?= together
SEEDS ?= 20000
STEPS ?= 4000
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= binlog command recovery session wal8 wire

.PHONY: help build run check test sim mutants legacy-test ctests ctests-layout cases interop bench fuzz install clean

help:
	@echo 'make build        the release binary, $(BIN)'
	@echo 'make run          build it and start it on 127.0.0.1:11300'
	@echo 'make check        format, lints, documentation, all tests'
	@echo 'make test         all tests'
	@echo 'make sim          the simulation from many seeds  (SEEDS=$(SEEDS) STEPS=$(STEPS))'
	@echo 'make mutants      whether the simulation sees faults that are made on purpose'
	@echo 'make legacy-test  the transcripts of the protocol in --legacy'
	@echo 'make ctests       the tests in C  (CTESTS_DIR= a folder with more of them)'
	@echo 'make cases        scripts of public bug reports against a live server, in both modes'
	@echo 'make interop      greenstalk (Python) and jackd (Node) against a live server, in both modes'
	@echo 'make bench        the table of docs/benchmarks.md, in under ten minutes  (ROWS=4,5,21 for some rows;'
	@echo '                  ROUNDS=$(ROUNDS) SECONDS=$(SECONDS), more of both is steadier), then the benchmarks in C'
	@echo 'make fuzz         the fuzz targets, each for a while  (FUZZ_SECONDS=$(FUZZ_SECONDS))'
	@echo 'make install      binary, licence, README, systemd units  (PREFIX=$(PREFIX) DESTDIR=)'
	@echo 'make clean        remove what was built'
	@echo
	@echo 'cases and interop take SERVER=COMMAND to try another server.'

build:
	$(CARGO) build --release --locked

run: build
	$(BIN) -l 127.0.0.1 -p 11300

check:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --all-targets --features ctests -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps
	@command -v beanstalkd >/dev/null || \
	    echo 'beanstalkd is not installed: the comparisons with it are skipped'
	$(CARGO) test --locked
	@$(MAKE) --no-print-directory mutants
	@CTESTS_MODE=sharded $(MAKE) --no-print-directory ctests
	@$(MAKE) --no-print-directory ctests-layout ctests

test:
	$(CARGO) test --locked

# One that fails is told as a command that runs it again, with all that happens.
sim:
	SEEDS=$(SEEDS) STEPS=$(STEPS) $(CARGO) test --locked --test sim -- --nocapture

mutants:
	$(CARGO) test --locked --test mutants -- --ignored --nocapture

legacy-test:
	$(CARGO) test --locked --test legacy

# Needs a C compiler. The last line is `N passed, N failed`.
ctests:
	@$(CARGO) test --locked --features ctests --test ctests

# The library as a C program links it, and whether it and the header mean the same structures.
ctests-layout:
	$(CARGO) rustc --locked --lib --features ctests --crate-type staticlib
	$(CC) -Wall -Wextra -Werror -I ctests/include -o '$(LAYOUT)' ctests/layout.c ctests/varargs.c \
	    '$(TARGET)/debug/libbeanshard.a' -lpthread -ldl -lm
	'$(LAYOUT)'

cases: build
	BEANSTALKD_BIN='$(SERVER)' $(PYTHON) tests/cases/run.py
	@$(if $(is_ours),BEANSTALKD_BIN='$(SHARDED)' $(PYTHON) tests/cases/run.py)

# Needs python3-venv, node and npm, and the network the first time.
interop: build
	BEANSTALKD_BIN='$(SERVER)' $(PYTHON) tests/interop/run.py
	@$(if $(is_ours),BEANSTALKD_BIN='$(SHARDED)' $(PYTHON) tests/interop/run.py)

bench: build
	cd tools/bsload && CARGO_TARGET_DIR='$(CURDIR)/target/bsload' $(CARGO) build --release --locked
	$(PYTHON) -m tools.bench --rounds $(ROUNDS) --seconds $(SECONDS) --rows '$(ROWS)' --place $(PLACE) '$(abspath $(BIN))'
	$(if $(ROWS),,$(CARGO) test --release --locked --features ctests --test ctests -- --bench)

# RUSTC_BOOTSTRAP lets a stable compiler take the flags of the fuzzer; a nightly one needs no leave.
# No input asks for so much memory at once but by a number that should not have been believed.
fuzz:
	@command -v cargo-fuzz >/dev/null && command -v c++ >/dev/null || { \
	    echo 'make fuzz needs cargo-fuzz (cargo install --locked cargo-fuzz) and a C++ compiler'; exit 1; }
	@for target in $(FUZZ_TARGETS); do \
	    mkdir -p fuzz/corpus/$$target; \
	    RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	        -dict=fuzz/protocol.dict -max_len=4096 -timeout=20 -malloc_limit_mb=64 \
	        -max_total_time=$(FUZZ_SECONDS) \
	        || exit 1; \
	done

install: build
	install -D -m 755 $(BIN) $(BINDIR)/beanshard
	install -D -m 644 LICENSE $(DOCDIR)/LICENSE
	install -D -m 644 README.md $(DOCDIR)/README.md
	@for unit in packaging/systemd/beanshard.*; do test -f "$$unit" || continue; \
	    echo "install $$unit -> $(UNITDIR)"; mkdir -p '$(UNITDIR)'; \
	    sed 's|@PREFIX@|$(PREFIX)|' "$$unit" >'$(UNITDIR)'/"$${unit##*/}"; \
	    chmod 644 '$(UNITDIR)'/"$${unit##*/}"; done

clean:
	$(CARGO) clean
