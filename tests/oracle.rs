//! Plays random cases against our server and the C server side by side: no client may be able to
//! tell them apart. A case that shows a difference is cut down and printed as a transcript.
//!
//! The sharded mode takes part, with one frontend. Its ids are others, which are mapped; rows of
//! its own behind the original's in `stats` are left out; and with several owners the order of
//! tubes in lists is not compared. What is sent behind a `put` in the same write names no job that
//! is not known yet. With several frontends nobody could tell when nothing more is going to happen.
//!
//! Environment:
//! - `BEANSHARD_ORACLE`: path of the C server (else `beanstalkd` is looked for in `PATH`);
//! - `TRANSCRIPT_SERVER`: command line, split at blanks, to test in place of ours;
//! - `ORACLE_CASES`: how many cases without waits to play; one with waits goes with every hundred.

#[path = "oracle/answer.rs"]
mod answer;
#[path = "oracle/comparable.rs"]
mod comparable;
#[path = "oracle/duel.rs"]
mod duel;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[path = "oracle/grammar.rs"]
mod grammar;
#[path = "oracle/ids.rs"]
mod ids;
#[path = "oracle/plan.rs"]
mod plan;
#[path = "oracle/record.rs"]
mod record;
#[path = "oracle/side.rs"]
mod side;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/transcript/mod.rs"]
mod transcript;

use std::env;
use std::iter;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{FileFailurePersistence, TestCaseError, TestError, TestRunner};

use answer::Alike;
use duel::{Servers, Verdict};
use plan::Plan;

/// Cases without waits in a normal run.
const CASES: u32 = 250;
/// Threads that play cases with waits, each its share.
const TIMED_THREADS: u32 = 8;
/// Of a hundred cases more than this may not be too slow to be compared.
const TOO_SLOW_PERCENT_MAX: u32 = 20;

/// The two servers, if the C server is there.
fn servers() -> Option<Servers> {
    let oracle = env::var("BEANSHARD_ORACLE").unwrap_or_else(|_| "beanstalkd".into());
    if Command::new(&oracle).arg("-v").output().is_err() {
        eprintln!(
            "no beanstalkd in PATH or BEANSHARD_ORACLE: nothing is compared with the C server"
        );
        return None;
    }
    let ours = env::var("TRANSCRIPT_SERVER")
        .map(|words| words.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_else(|_| ours("--legacy"));
    Some(Servers {
        ours,
        theirs: vec![oracle],
        alike: Alike::All,
    })
}

/// The two servers, ours with so many owners, if the C server is there.
fn sharded_servers(owners: u16) -> Option<Servers> {
    let alike = if owners == 1 {
        Alike::AllButIds
    } else {
        Alike::AllButIdsAndOrder
    };
    Some(Servers {
        ours: ours(&format!("--sharded --frontends 1 --owners {owners}")),
        alike,
        ..servers()?
    })
}

fn ours(words: &str) -> Vec<String> {
    let program = iter::once(env!("CARGO_BIN_EXE_beanshard"));
    program.chain(words.split(' ')).map(str::to_owned).collect()
}

fn cases() -> u32 {
    let asked = env::var("ORACLE_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

/// Servers of several processes take longer to start.
fn sharded_cases() -> u32 {
    (cases() / 3).max(1)
}

/// Plays `cases` plans of `strategy`. The error is the report of the smallest that differs.
fn play(
    servers: &Servers,
    cases: u32,
    strategy: impl Strategy<Value = Plan>,
) -> Result<(), String> {
    let config = ProptestConfig {
        cases,
        max_shrink_time: SHRINK_MS_MAX,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        source_file: Some(file!()),
        ..ProptestConfig::default()
    };
    let too_slow = AtomicU32::new(0);
    let outcome = TestRunner::new(config).run(&strategy, |plan| {
        let verdict = duel::run(servers, &plan).map_err(|error| {
            TestCaseError::fail(format!("a server cannot be talked to: {error}"))
        })?;
        match verdict {
            Verdict::Alike(_) => Ok(()),
            Verdict::Different(report) => Err(TestCaseError::fail(report)),
            Verdict::TooSlow => {
                too_slow.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(report, _)) => return Err(report.to_string()),
        Err(TestError::Abort(reason)) => return Err(reason.to_string()),
    }
    let too_slow = too_slow.load(Ordering::Relaxed);
    if too_slow * 100 > cases * TOO_SLOW_PERCENT_MAX {
        return Err(format!(
            "{too_slow} of {cases} cases were too slow to be compared"
        ));
    }
    Ok(())
}

const SHRINK_MS_MAX: u32 = 120_000;

#[test]
fn no_client_can_tell_the_servers_apart() {
    let Some(servers) = servers() else { return };
    if let Err(report) = play(&servers, cases(), grammar::plan()) {
        panic!("{report}");
    }
}

#[test]
fn nor_can_it_by_waiting() {
    let Some(servers) = servers() else { return };
    play_timed(&servers);
}

// A4.7
#[test]
fn nor_can_it_where_the_queue_is_another_process() {
    let Some(servers) = sharded_servers(1) else {
        return;
    };
    if let Err(report) = play(&servers, sharded_cases(), grammar::plan()) {
        panic!("{report}");
    }
}

// A4.7
#[test]
fn nor_can_it_where_the_queue_is_several_processes() {
    let Some(servers) = sharded_servers(3) else {
        return;
    };
    if let Err(report) = play(&servers, sharded_cases(), grammar::plan()) {
        panic!("{report}");
    }
}

// A4.5
#[test]
fn nor_can_it_by_waiting_for_several_processes() {
    let Some(servers) = sharded_servers(3) else {
        return;
    };
    play_timed(&servers);
}

/// Plays cases with waits.
fn play_timed(servers: &Servers) {
    let cases = (cases() / 100 / TIMED_THREADS).max(1);
    let reports: Vec<String> = thread::scope(|scope| {
        let players: Vec<_> = (0..TIMED_THREADS)
            .map(|_| scope.spawn(|| play(servers, cases, grammar::timed_plan())))
            .collect();
        players
            .into_iter()
            .filter_map(|player| player.join().expect("does not panic").err())
            .collect()
    });
    if let Some(report) = reports.first() {
        panic!("{report}");
    }
}

#[test]
fn what_is_printed_can_be_played() {
    let Some(servers) = servers() else { return };
    let target = transcript::Target {
        words: servers.ours.clone(),
        is_1_12: false,
    };
    let mut runner = TestRunner::deterministic();
    for _ in 0..5 {
        let plan = grammar::plan()
            .new_tree(&mut runner)
            .expect("a plan can be made up")
            .current();
        let verdict = duel::run(&servers, &plan).expect("servers can be talked to");
        let Verdict::Alike(record) = verdict else {
            panic!("{verdict:?}");
        };
        let text = record.text();
        transcript::parse("printed", &text, transcript::Ids::Exact)
            .and_then(|script| transcript::play(&script, &target))
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
