//! What a shard and its binlog live through in the tests, whatever the format.

use std::io::ErrorKind;

use beanshard::wal::journal::Sync;

use crate::each_seed;
use crate::full;
use crate::life::{Form, Legacy, Life};
use crate::plan::{Plan, draw_sync};
use crate::random::Random;
use crate::storage::{Crash, Faults, Watch};

/// How a life ends.
fn draw_crash(random: &mut Random) -> Crash {
    random.pick(&[
        Crash::Killed,
        Crash::AllLost,
        Crash::SomeLost,
        Crash::SomeLost,
    ])
}

pub(crate) fn short_lives<F: Form>(test: &str, cases: u64) {
    each_seed(test, cases, |seed| {
        let mut random = Random::new(seed);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let mut legacy = Legacy::nothing();
        for _ in 0..3 {
            let seed = random.next();
            let mut life = Life::<F>::begin(legacy, plan.clone(), Watch::All, 2, seed)?;
            life.live(40)?;
            legacy = life.crash(draw_crash(&mut random))?;
        }
        Ok(())
    });
}

pub(crate) fn long_lives<F: Form>(test: &str, cases: u64) {
    each_seed(test, cases, |seed| {
        let mut random = Random::new(!seed);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let mut legacy = Legacy::nothing();
        for _ in 0..5 {
            let at = legacy.disk.operations() + random.below(500);
            let seed = random.next();
            let mut life = Life::<F>::begin(legacy, plan.clone(), Watch::At(at), 2, seed)?;
            life.live(400)?;
            legacy = match random.below(4) {
                0 if !life.is_over() => life.close()?,
                _ => life.crash(draw_crash(&mut random))?,
            };
        }
        Ok(())
    });
}

/// The directory is as large as three times what is needed and two files at most.
pub(crate) fn small_directory<F: Form>(test: &str, cases: u64) {
    each_seed(test, cases, |seed| {
        let mut random = Random::new(seed ^ 0xb0);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let mut legacy = Legacy::nothing();
        for _ in 0..2 {
            let seed = random.next();
            let mut life = Life::<F>::begin(legacy, plan.clone(), Watch::Off, 0, seed)?;
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

pub(crate) fn full_disk<F: Form>(test: &str, cases: u64) {
    each_seed(test, cases, |seed| {
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
            let mut life = Life::<F>::begin(legacy, plan.clone(), Watch::At(at), 1, seed)?;
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

pub(crate) fn no_writes<F: Form>(test: &str, cases: u64) {
    each_seed(test, cases, |seed| {
        let mut random = Random::new(seed ^ 0xa0);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let seed = random.next();
        let mut life = Life::<F>::begin(Legacy::nothing(), plan.clone(), Watch::All, 1, seed)?;
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

pub(crate) fn failed_disk<F: Form>(test: &str, cases: u64) {
    each_seed(test, cases, |seed| {
        let mut random = Random::new(seed ^ 0xe0);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let seed = random.next();
        let mut life = Life::<F>::begin(Legacy::nothing(), plan.clone(), Watch::All, 1, seed)?;
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
