//! What a shard and its binlog live through in the tests, whatever the format.

use std::io::ErrorKind;

use beanshard::wal::error::WalError;
use beanshard::wal::journal::Sync;
use beanshard::wal::recover::Recovery;
use beanshard::wal::v8::V8;

use crate::each_seed;
use crate::form::Form;
use crate::full;
use crate::life::{Legacy, Life, find, look};
use crate::plan::{Plan, draw_sync};
use crate::random::Random;
use crate::storage::{Crash, Faults, Watch};
use crate::time::Time;

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

/// One byte of an owner's directory changes while no server runs. A start says in which file that
/// was, and where at the latest. It goes no further, unless nothing was lost, or after a crash what
/// was lost may never have been synced. It never takes anything for something else, even if it
/// is told to pass over damage.
pub(crate) fn changed_byte(test: &str, cases: u64) {
    each_seed(test, cases, |seed| {
        let mut random = Random::new(seed ^ 0xd0);
        let plan = Plan::draw(draw_sync(&mut random), &mut random);
        let mut legacy = Legacy::nothing();
        for _ in 0..2 {
            let seed = random.next();
            let mut life = Life::<V8>::begin(legacy, plan.clone(), Watch::Off, 0, seed)?;
            life.live(random.below(200))?;
            let time = life.time;
            let is_closed = random.percent(50);
            legacy = if is_closed {
                life.close()?
            } else {
                life.crash(random.pick(&[Crash::Killed, Crash::AllLost]))?
            };
            for _ in 0..40 {
                check_changed(&legacy, time, &plan, is_closed, &mut random)?;
            }
        }
        Ok(())
    });
}

fn check_changed(
    legacy: &Legacy,
    time: Time,
    plan: &Plan,
    is_closed: bool,
    random: &mut Random,
) -> Result<(), String> {
    let fresh = || legacy.disk.picture().after(Crash::Killed, 0);
    let files = legacy
        .disk
        .files(|name| name.starts_with("binlog.") && !name.ends_with(".damaged"));
    let files: Vec<_> = files.into_iter().filter(|(_, len)| *len > 0).collect();
    if files.is_empty() {
        return Ok(());
    }
    let (name, len) = &files[random.index(files.len())];
    let (at, bits) = (random.below(*len), 1 + random.below(255) as u8);
    let read = |format| {
        let disk = fresh();
        disk.damage(name, at, bits);
        let (now, wall) = (time.now, time.wall);
        Recovery::read_as(format, disk, plan.settings, now, wall, &mut |_| {})
    };
    let place = format!("{name} at {at}");
    let (told, told_at) = match read(V8::here()) {
        Err(WalError::Damaged { name, at, .. }) => (name, at),
        Err(error) => return Err(format!("{place}: {error:?}")),
        Ok(recovery) => {
            let torn = recovery.torn().cloned();
            let torn = torn.ok_or_else(|| format!("{place}: nothing was said"))?;
            let found = look(recovery, time);
            legacy.book.check_each(&found)?;
            let whole = find::<V8>(fresh(), plan.settings, time)?;
            if found.jobs == whole.jobs {
                // It was where nothing is, or what says that all else is there.
                return Ok(());
            }
            if is_closed {
                return Err(format!("{place}: it goes on"));
            }
            (torn.name, torn.at)
        }
    };
    if told != *name || told_at > at {
        return Err(format!("{place}: it is said to be in {told} at {told_at}"));
    }
    let lenient = V8 {
        skip_damage: true,
        ..V8::here()
    };
    let recovery = read(lenient).map_err(|error| format!("{place}: {error:?}"))?;
    legacy.book.check_each(&look(recovery, time))
}
