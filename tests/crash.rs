//! A shard and its binlog on a disk that forgets: random histories, a crash after any operation of
//! the disk, and a start on what is left. A start must bring back what somebody was told of, and
//! nothing that could not be.
//!
//! `CRASH_SEED` runs one seed, `CRASH_CASES` says how many are run.

#[path = "crash/book.rs"]
mod book;
#[path = "crash/life.rs"]
mod life;
#[path = "crash/notes.rs"]
mod notes;
#[path = "crash/plan.rs"]
mod plan;
#[path = "sim/random.rs"]
mod random;
#[path = "crash/storage.rs"]
mod storage;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::life::{Legacy, Life};
use crate::plan::{Plan, draw_sync};
use crate::random::Random;
use crate::storage::{Crash, Watch};

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

/// How a life ends.
fn draw_crash(random: &mut Random) -> Crash {
    random.pick(&[Crash::Killed, Crash::AllLost, Crash::SomeLost, Crash::SomeLost])
}

// R4.5
#[test]
fn a_crash_after_any_operation_of_short_lives_loses_nothing() {
    each_seed("a_crash_after_any_operation_of_short_lives_loses_nothing", 40, |seed| {
        let mut random = Random::new(seed);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let mut legacy = Legacy::nothing();
        for _ in 0..3 {
            let seed = random.next();
            let mut life = Life::begin(legacy, plan.clone(), Watch::All, 2, seed)?;
            life.live(40)?;
            legacy = life.crash(draw_crash(&mut random))?;
        }
        Ok(())
    });
}

// R4.5
#[test]
fn a_crash_somewhere_in_long_lives_loses_nothing() {
    each_seed("a_crash_somewhere_in_long_lives_loses_nothing", 100, |seed| {
        let mut random = Random::new(!seed);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let mut legacy = Legacy::nothing();
        for _ in 0..5 {
            let at = legacy.disk.operations() + random.below(500);
            let seed = random.next();
            let mut life = Life::begin(legacy, plan.clone(), Watch::At(at), 2, seed)?;
            life.live(400)?;
            legacy = match random.below(4) {
                0 if !life.is_over() => life.close()?,
                _ => life.crash(draw_crash(&mut random))?,
            };
        }
        Ok(())
    });
}

// The directory is as large as three times what is needed and two files at most.
#[test]
fn the_directory_stays_small_whatever_happens() {
    each_seed("the_directory_stays_small_whatever_happens", 60, |seed| {
        let mut random = Random::new(seed ^ 0xb0);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let mut legacy = Legacy::nothing();
        for _ in 0..2 {
            let seed = random.next();
            let mut life = Life::begin(legacy, plan.clone(), Watch::Off, 0, seed)?;
            life.settle()?;
            life.check_bound()?;
            let len = random.below(2 * plan.settings.file_len / 3) as usize;
            life.put_to_stay(random.below(8), len)?;
            for _ in 0..3 {
                life.live(random.below(300))?;
                life.settle()?;
                life.check_bound()?;
            }
            // Another crash can leave damage, and such a file is not cut.
            legacy = life.crash(random.pick(&[Crash::Killed, Crash::AllLost]))?;
        }
        Ok(())
    });
}
