//! The numbers that a shard tells, as fields in the order in which their structs name them: counts
//! in 8 bytes, those of a single job's life, priorities and spans of seconds in 4.

use crate::base::ids::{JobId, Pri};
use crate::base::time::Secs;
use crate::engine::stats::{
    JobCounts, JobGauges, JobState, JobStats, JournalStats, ShardStats, TubeStats,
};
use crate::wire::cursor::{Cursor, write_name, write_u32, write_u64};
use crate::wire::refusal::DecodeError;

type Read<T> = Result<T, DecodeError>;

/// Appends a shard's numbers.
pub fn write_shard(out: &mut Vec<u8>, shard: &ShardStats) {
    write_gauges(out, &shard.jobs);
    for number in [
        shard.job_timeouts,
        shard.total_jobs,
        shard.tubes,
        shard.journal.oldest_index,
        shard.journal.current_index,
        shard.journal.records_migrated,
        shard.journal.records_written,
    ] {
        write_u64(out, number);
    }
}

/// Reads a shard's numbers.
///
/// # Errors
/// [`DecodeError`] if they are not there.
pub fn read_shard(from: &mut Cursor<'_>) -> Read<ShardStats> {
    Ok(ShardStats {
        jobs: read_gauges(from)?,
        job_timeouts: from.u64()?,
        total_jobs: from.u64()?,
        tubes: from.u64()?,
        journal: JournalStats {
            oldest_index: from.u64()?,
            current_index: from.u64()?,
            records_migrated: from.u64()?,
            records_written: from.u64()?,
        },
    })
}

/// Appends a tube's numbers after its name.
pub(super) fn write_tube(out: &mut Vec<u8>, tube: &TubeStats<'_>) {
    write_name(out, tube.name);
    write_gauges(out, &tube.jobs);
    for number in [
        tube.total_jobs,
        tube.using,
        tube.watching,
        tube.waiting,
        tube.deletes,
        tube.pauses,
    ] {
        write_u64(out, number);
    }
    write_u32(out, tube.pause.0);
    write_u64(out, tube.pause_left_secs);
}

pub(super) fn read_tube<'a>(from: &mut Cursor<'a>) -> Read<TubeStats<'a>> {
    Ok(TubeStats {
        name: from.name()?,
        jobs: read_gauges(from)?,
        total_jobs: from.u64()?,
        using: from.u64()?,
        watching: from.u64()?,
        waiting: from.u64()?,
        deletes: from.u64()?,
        pauses: from.u64()?,
        pause: Secs(from.u32()?),
        pause_left_secs: from.u64()?,
    })
}

/// Appends all about a job.
pub(super) fn write_job(out: &mut Vec<u8>, job: &JobStats<'_>) {
    write_u64(out, job.id.0);
    write_name(out, job.tube);
    write_state(out, job.state);
    write_u32(out, job.pri.0);
    write_u64(out, job.age_secs);
    write_u32(out, job.delay.0);
    write_u32(out, job.ttr.0);
    write_u64(out, job.left_secs);
    write_u64(out, job.segment);
    let counts = &job.counts;
    for number in [
        counts.reserves,
        counts.timeouts,
        counts.releases,
        counts.buries,
        counts.kicks,
    ] {
        write_u32(out, number);
    }
}

pub(super) fn read_job<'a>(from: &mut Cursor<'a>) -> Read<JobStats<'a>> {
    Ok(JobStats {
        id: JobId(from.u64()?),
        tube: from.name()?,
        state: read_state(from)?,
        pri: Pri(from.u32()?),
        age_secs: from.u64()?,
        delay: Secs(from.u32()?),
        ttr: Secs(from.u32()?),
        left_secs: from.u64()?,
        segment: from.u64()?,
        counts: JobCounts {
            reserves: from.u32()?,
            timeouts: from.u32()?,
            releases: from.u32()?,
            buries: from.u32()?,
            kicks: from.u32()?,
        },
    })
}

fn write_gauges(out: &mut Vec<u8>, jobs: &JobGauges) {
    for number in [
        jobs.urgent,
        jobs.ready,
        jobs.reserved,
        jobs.delayed,
        jobs.buried,
    ] {
        write_u64(out, number);
    }
}

fn read_gauges(from: &mut Cursor<'_>) -> Read<JobGauges> {
    Ok(JobGauges {
        urgent: from.u64()?,
        ready: from.u64()?,
        reserved: from.u64()?,
        delayed: from.u64()?,
        buried: from.u64()?,
    })
}

/// A state is a byte and, for the two that have one, the slot of a client in 4.
fn write_state(out: &mut Vec<u8>, state: JobState) {
    match state {
        JobState::Ready => out.push(0),
        JobState::Offered { to } => {
            out.push(1);
            write_u32(out, to);
        }
        JobState::Reserved { by } => {
            out.push(2);
            write_u32(out, by);
        }
        JobState::Delayed => out.push(3),
        JobState::Buried => out.push(4),
    }
}

fn read_state(from: &mut Cursor<'_>) -> Read<JobState> {
    match from.u8()? {
        0 => Ok(JobState::Ready),
        1 => Ok(JobState::Offered { to: from.u32()? }),
        2 => Ok(JobState::Reserved { by: from.u32()? }),
        3 => Ok(JobState::Delayed),
        4 => Ok(JobState::Buried),
        _ => Err(DecodeError::Value),
    }
}
