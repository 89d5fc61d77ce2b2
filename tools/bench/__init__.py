"""The table of benchmarks, see docs/benchmarks.md: `python3 -m tools.bench --help`, or `make bench`."""
