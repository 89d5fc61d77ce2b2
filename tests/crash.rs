//! A shard and its binlog on a disk that forgets: random histories, a crash after any operation of
//! the disk, and a start on what is left. A start must bring back what somebody was told of, and
//! nothing that could not be.
//!
//! `CRASH_SEED` runs one seed, `CRASH_CASES` says how many are run. `CRASH_TELL` set, what is asked
//! and what is on the disk after each turn is told.

#[path = "crash/book.rs"]
mod book;
#[path = "crash/form.rs"]
mod form;
#[path = "crash/full.rs"]
mod full;
#[path = "crash/life.rs"]
mod life;
#[path = "crash/notes.rs"]
mod notes;
#[path = "crash/pauses.rs"]
mod pauses;
#[path = "crash/plan.rs"]
mod plan;
#[path = "sim/random.rs"]
mod random;
#[path = "crash/scenes.rs"]
mod scenes;
#[allow(dead_code, reason = "the simulation of whole servers uses the rest")]
#[path = "crash/storage.rs"]
mod storage;
#[path = "crash/time.rs"]
mod time;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use beanshard::wal::v7::V7;
use beanshard::wal::v8::V8;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("seeds and cases are numbers"))
}

/// Runs all seeds, or the one that is asked for. `cases` is for a normal run, out of which the
/// environment makes a longer one.
fn each_seed(test: &str, cases: u64, run: impl Fn(u64) -> Result<(), String>) {
    let seeds = match number("CRASH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CRASH_CASES").unwrap_or(cases),
    };
    for seed in seeds {
        let ran = catch_unwind(AssertUnwindSafe(|| run(seed)));
        if !matches!(ran, Ok(Ok(()))) {
            eprintln!("replay: CRASH_SEED={seed} cargo test --test crash {test}");
        }
        match ran {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => panic!("{fault}"),
            Err(panic) => resume_unwind(panic),
        }
    }
}

// R4.5
#[test]
fn a_crash_after_any_operation_of_short_lives_loses_nothing() {
    scenes::short_lives::<V7>(
        "a_crash_after_any_operation_of_short_lives_loses_nothing",
        40,
    );
}

// R4.5
#[test]
fn a_crash_somewhere_in_long_lives_loses_nothing() {
    scenes::long_lives::<V7>("a_crash_somewhere_in_long_lives_loses_nothing", 100);
}

#[test]
fn the_directory_stays_small_whatever_happens() {
    scenes::small_directory::<V7>("the_directory_stays_small_whatever_happens", 100);
}

#[test]
fn a_full_disk_refuses_puts_and_nothing_else() {
    scenes::full_disk::<V7>("a_full_disk_refuses_puts_and_nothing_else", 20);
}

#[test]
fn answers_wait_while_the_disk_takes_no_writes() {
    scenes::no_writes::<V7>("answers_wait_while_the_disk_takes_no_writes", 30);
}

#[test]
fn after_a_disk_has_failed_nothing_is_confirmed() {
    scenes::failed_disk::<V7>("after_a_disk_has_failed_nothing_is_confirmed", 60);
}

/// The same of an owner's binlog, of which more is promised: after any crash there is what was
/// written up to some moment, and every body is as it was put.
mod of_an_owner {
    use super::*;

    // R4.5
    #[test]
    fn a_crash_after_any_operation_of_short_lives_loses_nothing() {
        scenes::short_lives::<V8>(
            "of_an_owner::a_crash_after_any_operation_of_short_lives_loses_nothing",
            40,
        );
    }

    // R4.5
    #[test]
    fn a_crash_somewhere_in_long_lives_loses_nothing() {
        scenes::long_lives::<V8>(
            "of_an_owner::a_crash_somewhere_in_long_lives_loses_nothing",
            100,
        );
    }

    #[test]
    fn the_directory_stays_small_whatever_happens() {
        scenes::small_directory::<V8>(
            "of_an_owner::the_directory_stays_small_whatever_happens",
            100,
        );
    }

    #[test]
    fn a_full_disk_refuses_puts_and_nothing_else() {
        scenes::full_disk::<V8>("of_an_owner::a_full_disk_refuses_puts_and_nothing_else", 20);
    }

    #[test]
    fn answers_wait_while_the_disk_takes_no_writes() {
        scenes::no_writes::<V8>(
            "of_an_owner::answers_wait_while_the_disk_takes_no_writes",
            30,
        );
    }

    #[test]
    fn after_a_disk_has_failed_nothing_is_confirmed() {
        scenes::failed_disk::<V8>(
            "of_an_owner::after_a_disk_has_failed_nothing_is_confirmed",
            60,
        );
    }

    #[test]
    fn a_changed_byte_is_told_and_never_taken_for_something_else() {
        scenes::changed_byte(
            "of_an_owner::a_changed_byte_is_told_and_never_taken_for_something_else",
            100,
        );
    }
}
