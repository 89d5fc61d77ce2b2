//! A shard and its binlog on a disk that forgets: random histories, a crash after any operation of
//! the disk, and a start on what is left. A start must bring back what somebody was told of, and
//! nothing that could not be.
//!
//! `CRASH_SEED` runs one seed, `CRASH_CASES` says how many are run. `CRASH_TELL` set, what is asked
//! and what is on the disk after each turn is told.

#[path = "crash/book.rs"]
mod book;
#[path = "crash/full.rs"]
mod full;
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

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use beanshard::wal::journal::Sync;

use crate::life::{Legacy, Life};
use crate::plan::{Plan, draw_sync};
use crate::random::Random;
use crate::storage::{Crash, Faults, Watch};

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
    random.pick(&[
        Crash::Killed,
        Crash::AllLost,
        Crash::SomeLost,
        Crash::SomeLost,
    ])
}

// R4.5
#[test]
fn a_crash_after_any_operation_of_short_lives_loses_nothing() {
    each_seed(
        "a_crash_after_any_operation_of_short_lives_loses_nothing",
        40,
        |seed| {
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
        },
    );
}

// R4.5
#[test]
fn a_crash_somewhere_in_long_lives_loses_nothing() {
    each_seed(
        "a_crash_somewhere_in_long_lives_loses_nothing",
        100,
        |seed| {
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
        },
    );
}

// The directory is as large as three times what is needed and two files at most.
#[test]
fn the_directory_stays_small_whatever_happens() {
    each_seed("the_directory_stays_small_whatever_happens", 100, |seed| {
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

#[test]
fn a_full_disk_refuses_puts_and_nothing_else() {
    each_seed("a_full_disk_refuses_puts_and_nothing_else", 20, |seed| {
        let mut random = Random::new(seed ^ 0xf0);
        let plan = Plan::draw_usual(draw_sync(&mut random), &mut random);
        let len = plan.body_len;
        let capacity = plan.settings.file_len * (3 + random.below(4));
        let mut legacy = Legacy::nothing();
        for number in 0..2 {
            let capacity = capacity.max(legacy.disk.len_of(|_| true));
            legacy.disk.set_capacity(Some(capacity));
            let at = legacy.disk.operations() + random.below(2000);
            let seed = random.next();
            let mut life = Life::begin(legacy, plan.clone(), Watch::At(at), 1, seed)?;
            life.is_full = true;
            full::fill(&mut life, len, &mut random)?;
            if number == 0 {
                full::move_about(&mut life, &mut random)?;
                full::fill(&mut life, len, &mut random)?;
                full::move_about(&mut life, &mut random)?;
            }
            if random.percent(50) {
                life.disk.set_capacity(None);
            } else {
                full::delete_most(&mut life, 3, &mut random)?;
            }
            full::check_recovered(&mut life, len)?;
            // Another crash can leave damage, and such a file is put aside and takes room for ever.
            legacy = life.crash(random.pick(&[Crash::Killed, Crash::AllLost]))?;
        }
        Ok(())
    });
}

#[test]
fn answers_wait_while_the_disk_takes_no_writes() {
    each_seed("answers_wait_while_the_disk_takes_no_writes", 30, |seed| {
        let mut random = Random::new(seed ^ 0xa0);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let seed = random.next();
        let mut life = Life::begin(Legacy::nothing(), plan.clone(), Watch::All, 1, seed)?;
        for _ in 0..3 {
            life.live(30)?;
            life.settle()?;
            life.is_full = true;
            life.disk.set_faults(Faults {
                write: Some(ErrorKind::StorageFull),
                ..Faults::default()
            });
            full::check_held(&mut life, &mut random)?;
            life.no_failure()?;
            life.disk.set_faults(Faults::default());
            full::check_recovered(&mut life, 10)?;
            life.settle()?;
            life.is_full = false;
            if life.book.has_answers() {
                return Err("an answer waits for ever".to_owned());
            }
        }
        life.close().map(|_| ())
    });
}

#[test]
fn after_a_disk_has_failed_nothing_is_confirmed() {
    each_seed("after_a_disk_has_failed_nothing_is_confirmed", 60, |seed| {
        let mut random = Random::new(seed ^ 0xe0);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let seed = random.next();
        let mut life = Life::begin(Legacy::nothing(), plan.clone(), Watch::All, 1, seed)?;
        life.live(60)?;
        life.settle()?;
        let is_sync = random.percent(50) && plan.settings.sync == Sync::Always;
        life.disk.set_faults(Faults {
            write: (!is_sync).then_some(ErrorKind::Other),
            sync: is_sync,
            ..Faults::default()
        });
        full::check_held(&mut life, &mut random)?;
        // It may work again, but nobody knows what is there.
        life.disk.set_faults(Faults::default());
        full::check_held(&mut life, &mut random)?;
        if life.shard.take_failure().is_none() {
            return Err("no failure is told".to_owned());
        }
        life.crash(draw_crash(&mut random)).map(|_| ())
    });
}
