//! A disk without room, and one that fails. What has no room is refused before anything changes;
//! what was promised when a job was put, its end, and what moves it about, go on.

use beanshard::base::ids::{JobId, Pri};
use beanshard::base::time::{NANOS_PER_SEC, Secs};
use beanshard::engine::op::Op;
use beanshard::session::shards::Shards;
use beanshard::wal::shard_journal::ShardJournal;

use crate::form::Form;
use crate::life::{Life, RESERVE};
use crate::notes::Said;
use crate::random::Random;

/// Rounds in which jobs are moved about while nothing can be put.
const ROUNDS: u64 = 300;

/// More than what a journal waits before it tries again.
const RETRY_NANOS: u64 = NANOS_PER_SEC / 2;

/// The end of a turn, and of a sync now and then.
fn end_turn<F: Form>(life: &mut Life<F>, random: &mut Random) -> Result<(), String> {
    life.flush()?;
    if random.percent(50) {
        life.end_sync()?;
    }
    if random.percent(30) {
        life.pass(random.below(RETRY_NANOS))?;
    }
    Ok(())
}

/// Puts until nothing more is taken. Returns how many were.
pub(crate) fn fill<F: Form>(
    life: &mut Life<F>,
    len: u64,
    random: &mut Random,
) -> Result<u64, String> {
    for count in 0..10_000 {
        match life.put_len(random.below(2 * len) as usize)? {
            Said::Inserted(_) => {}
            Said::OutOfMemory => return Ok(count),
            said => return Err(format!("put: {said:?}")),
        }
        if random.percent(30) {
            end_turn(life, random)?;
        }
    }
    Err("the disk does not become full".to_owned())
}

/// Asks what has to be done.
fn must<F: Form>(life: &mut Life<F>, op: Op<'_>) -> Result<(), String> {
    let text = format!("{op:?}");
    match life.ask_first(op)? {
        Said::Done => Ok(()),
        said => Err(format!("{text}: {said:?} {}", life.describe())),
    }
}

/// Everything but puts goes on, for as long as one likes.
pub(crate) fn move_about<F: Form>(life: &mut Life<F>, random: &mut Random) -> Result<(), String> {
    for round in 0..ROUNDS {
        let Said::Reserved(id) = life.ask_first(RESERVE)? else {
            life.ask_first(Op::Kick { count: 10 })?;
            life.pass(NANOS_PER_SEC)?;
            continue;
        };
        let pri = Pri(random.below(9) as u32);
        match random.below(10) {
            0..=4 => {
                let delay = Secs(random.pick(&[0, 0, 1]));
                must(life, Op::Release { id, pri, delay })?;
            }
            5..=8 => {
                must(life, Op::Bury { id, pri })?;
                if random.percent(60) {
                    must(life, Op::KickJob { id })?;
                }
            }
            _ if round % 4 == 0 => must(life, Op::Delete { id })?,
            _ => must(
                life,
                Op::Release {
                    id,
                    pri,
                    delay: Secs(0),
                },
            )?,
        }
        if random.percent(60) {
            end_turn(life, random)?;
        }
    }
    Ok(())
}

/// Deletes jobs until `left` are there.
pub(crate) fn delete_most<F: Form>(
    life: &mut Life<F>,
    left: usize,
    random: &mut Random,
) -> Result<(), String> {
    // What the first session holds is its to delete too.
    let ids: Vec<JobId> = life.book.live().map(|(id, _)| id).collect();
    let count = ids.len().saturating_sub(left);
    for &id in &ids[..count] {
        must(life, Op::Delete { id })?;
        if random.percent(20) {
            end_turn(life, random)?;
        }
    }
    Ok(())
}

/// Puts are taken again, and there is a spare.
pub(crate) fn check_recovered<F: Form>(life: &mut Life<F>, len: u64) -> Result<(), String> {
    life.pass(RETRY_NANOS)?;
    life.settle()?;
    if !life.disk.has("spare") {
        return Err(format!("there is no spare: {}", life.describe()));
    }
    match life.put_len(len as usize)? {
        Said::Inserted(_) => Ok(()),
        said => Err(format!("put with room: {said:?} {}", life.describe())),
    }
}

/// Some of everything, so that there is something to lose. No answer is expected.
pub(crate) fn ask_some<F: Form>(life: &mut Life<F>, random: &mut Random) -> Result<(), String> {
    for _ in 0..10 {
        life.put_len(random.below(300) as usize)?;
        if let Said::Reserved(id) = life.ask_first(RESERVE)? {
            let pri = Pri(1);
            match random.below(3) {
                0 => life.ask_first(Op::Delete { id })?,
                1 => life.ask_first(Op::Bury { id, pri })?,
                _ => life.ask_first(Op::Release {
                    id,
                    pri,
                    delay: Secs(0),
                })?,
            };
        }
    }
    Ok(())
}

/// Turns go by, and nothing more is confirmed.
pub(crate) fn check_held<F: Form>(life: &mut Life<F>, random: &mut Random) -> Result<(), String> {
    let confirmed = life.shard.journal().confirmed();
    for _ in 0..5 {
        ask_some(life, random)?;
        life.pass(RETRY_NANOS)?;
        if life.shard.flush() > confirmed {
            return Err("confirmed, and it could not be written".to_owned());
        }
        life.end_sync()?;
    }
    Ok(())
}
