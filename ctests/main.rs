//! Runs the tests in C, each in a process, a group of processes and a folder of its own: this
//! program is started again and told by a variable which one to run. The last line of the output
//! is `N passed, N failed`. With `--bench` it runs the benchmarks and nothing else.
//!
//! Environment:
//! - `CTESTS_MODE=sharded`: the servers run as several processes;
//! - `CTESTS_SERVER`: the program that serves, in place of the one that was built.

#[path = "../tests/server/calm.rs"]
mod calm;
mod process;

use std::env;
use std::ffi::c_int;
use std::process::{ExitCode, exit};
use std::time::Duration;

// The library is what the tests call, and only C says so.
use beanshard as _;
use libtest_mimic::{Arguments, Trial};

use process::{Outcome, Run, run};

/// Tests at once. Nearly all of their time is waiting.
const THREADS: usize = 8;
/// Longest time of a test. The longest ones move a gigabyte.
const TEST_LIMIT: Duration = Duration::from_secs(120);
/// Longest time of one run of a benchmark.
const BENCH_LIMIT: Duration = Duration::from_secs(300);
/// A benchmark has run long enough.
const BENCH_NANOS: u64 = 1_000_000_000;
/// Most rounds of a benchmark, however short they are: some keep what they make, and the time of
/// that may not count.
const ROUNDS_MAX: u64 = 5_000_000;

/// Names what the process is to run.
const NAME_VARIABLE: &str = "CTESTS_NAME";
/// Says which mode servers run in.
const MODE_VARIABLE: &str = "CTESTS_MODE";
/// How often, if it is a benchmark.
const ROUNDS_VARIABLE: &str = "CTESTS_ROUNDS";

type Test = unsafe extern "C" fn();
type Bench = unsafe extern "C" fn(c_int);

#[link(name = "beanshard_ctests", kind = "static")]
unsafe extern "C" {
    fn ct_run_test(test: Test);
    fn ct_run_bench(bench: Bench, n: c_int);
}

// TESTS and BENCHES: the name and the function of each.
include!(concat!(env!("OUT_DIR"), "/ctests.rs"));

fn main() -> ExitCode {
    if let Ok(name) = env::var(NAME_VARIABLE) {
        run_one(&name);
    }
    let mut arguments = Arguments::from_args();
    if arguments.bench && !arguments.list {
        return bench_all(&arguments);
    }
    arguments.test_threads = arguments.test_threads.or(Some(THREADS));
    let is_sharded = env::var(MODE_VARIABLE).is_ok_and(|mode| mode == "sharded");
    let trials = TESTS.iter().map(|(name, _)| {
        let play = || calm::in_calm(|| test(name)).map_err(Into::into);
        Trial::test(*name, play).with_ignored_flag(is_sharded && is_for_legacy(name))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if !arguments.list {
        println!(
            "{} passed, {} failed",
            conclusion.num_passed, conclusion.num_failed
        );
    }
    conclusion.exit_code()
}

/// Tests that are not for the sharded mode: where the files of a binlog are, how long their records
/// are, and what the files of old versions are worth is another matter there, and the tubes of each
/// owner stand together in `list-tubes`.
const FOR_LEGACY: [&str; 5] = [
    "binlog_empty_exit",
    "binlog_size_limit",
    "binlog_disk_full_delete",
    "binlog_v5",
    "list_tube",
];

fn is_for_legacy(name: &str) -> bool {
    FOR_LEGACY.contains(&name.rsplit("::").next().unwrap_or(name))
}

/// What the process is there for that was started for one test, or one run of a benchmark.
fn run_one(name: &str) -> ! {
    process::forget_handlers();
    let rounds = env::var(ROUNDS_VARIABLE)
        .ok()
        .and_then(|rounds| rounds.parse().ok());
    match rounds {
        None => {
            let (_, test) = TESTS
                .iter()
                .find(|(known, _)| *known == name)
                .expect("it was listed");
            // SAFETY: it is a test, and nothing has been done in this process before.
            unsafe { ct_run_test(*test) };
        }
        Some(rounds) => {
            let (_, bench) = BENCHES
                .iter()
                .find(|(known, _)| *known == name)
                .expect("it was listed");
            // SAFETY: it is a benchmark, and nothing has been done in this process before.
            unsafe { ct_run_bench(*bench, rounds) };
        }
    }
    // By the way that C leaves: a server of the test is stopped on it.
    exit(0);
}

fn test(name: &str) -> Result<(), String> {
    let ended = run(&Run {
        variables: &[(NAME_VARIABLE, name)],
        limit: TEST_LIMIT,
        server: env!("CARGO_BIN_EXE_beanshard"),
        preload: concat!(env!("OUT_DIR"), "/preload.so"),
    })
    .map_err(|error| format!("cannot be run: {error}"))?;
    match ended.outcome {
        Outcome::Passed => Ok(()),
        Outcome::Failed => Err(format!("failed\n{}", ended.output)),
        Outcome::Error(what) => Err(format!("error: {what}\n{}", ended.output)),
    }
}

/// Runs the benchmarks that were asked for, one after another.
fn bench_all(arguments: &Arguments) -> ExitCode {
    let mut failed = 0;
    let is_wanted = |name: &str| {
        let filter = arguments.filter.as_deref().unwrap_or("");
        let is_found = if arguments.exact {
            name == filter
        } else {
            name.contains(filter)
        };
        is_found && !arguments.skip.iter().any(|skip| name.contains(skip))
    };
    for (name, _) in BENCHES.iter().filter(|(name, _)| is_wanted(name)) {
        match bench(name) {
            Ok(figures) => println!("{name:<40} {figures}"),
            Err(error) => {
                failed += 1;
                println!("{name:<40} {error}");
            }
        }
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The figures of the first run that is long enough.
fn bench(name: &str) -> Result<String, String> {
    let mut rounds = 1;
    loop {
        let Report { nanos, bytes } = bench_once(name, rounds)?;
        if nanos >= BENCH_NANOS || rounds >= ROUNDS_MAX {
            let each = nanos / rounds;
            let mut figures = format!("{rounds:>10} {each:>12} ns/op");
            if bytes > 0 {
                let rate = bytes as f64 * rounds as f64 * 1e3 / nanos.max(1) as f64;
                figures.push_str(&format!(" {rate:>10.2} MB/s"));
            }
            return Ok(figures);
        }
        rounds = more_rounds(rounds, nanos);
    }
}

/// So many that a run should be long enough, but not more than a hundred times as many: a first
/// run says little. Rounded up to 1, 2, 3 or 5 times a power of ten.
fn more_rounds(rounds: u64, nanos: u64) -> u64 {
    let each = (nanos / rounds).max(1);
    // A fifth more, so that the next run is the last.
    let wanted = (BENCH_NANOS + BENCH_NANOS / 5) / each;
    let wanted = wanted.clamp(rounds + 1, 100 * rounds).min(ROUNDS_MAX);
    let power = 10_u64.pow(wanted.ilog10());
    [1, 2, 3, 5, 10]
        .map(|digit| digit * power)
        .into_iter()
        .find(|n| *n >= wanted)
        .unwrap_or(wanted)
}

/// What a run of a benchmark has measured.
struct Report {
    nanos: u64,
    bytes: u64,
}

fn bench_once(name: &str, rounds: u64) -> Result<Report, String> {
    let ended = run(&Run {
        variables: &[
            (NAME_VARIABLE, name),
            (ROUNDS_VARIABLE, &rounds.to_string()),
        ],
        limit: BENCH_LIMIT,
        server: env!("CARGO_BIN_EXE_beanshard"),
        preload: concat!(env!("OUT_DIR"), "/preload.so"),
    })
    .map_err(|error| format!("cannot be run: {error}"))?;
    let said = |what: &str| format!("{what}\n{}", ended.output);
    match &ended.outcome {
        Outcome::Passed => {}
        Outcome::Failed => return Err(said("failed")),
        Outcome::Error(what) => return Err(said(what)),
    }
    let numbers: Option<Vec<u64>> = ended
        .report
        .split_whitespace()
        .map(|number| number.parse().ok())
        .collect();
    match numbers.as_deref() {
        Some(&[_, nanos, bytes]) => Ok(Report { nanos, bytes }),
        _ => Err(said("no report")),
    }
}
