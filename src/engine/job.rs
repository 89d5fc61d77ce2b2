//! A job as others see it: the record that a journal keeps of it, and what it is ordered by.

use crate::base::ids::{JobId, Pri};
use crate::base::time::{Nanos, Secs};

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Whoever asks first gets it.
    Ready,
    /// Held for a session that compares offers; to everybody else a ready job that is out of
    /// reach.
    Offered {
        /// Slot of the engine's client that it is held for.
        to: u32,
    },
    /// A session holds it until its deadline.
    Reserved {
        /// Slot of the engine's client that holds it.
        by: u32,
    },
    /// Becomes ready at its deadline.
    Delayed,
    /// Stays until it is kicked or deleted.
    Buried,
}

/// What has happened to a job how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// It was reserved.
    pub reserves: u32,
    /// A reservation ran out.
    pub timeouts: u32,
    /// It was released.
    pub releases: u32,
    /// It was buried.
    pub buries: u32,
    /// It was kicked.
    pub kicks: u32,
}

/// The part of a job that outlives the process, with its body and the name of its tube.
#[derive(Clone, Copy, Debug)]
pub struct JobRecord {
    /// Its id.
    pub id: JobId,
    /// Its priority.
    pub pri: Pri,
    /// The last delay it was given; kept when it has lost its meaning.
    pub delay: Secs,
    /// How long a session may hold it.
    pub ttr: Secs,
    /// When it was put.
    pub created_at: Nanos,
    /// When its state ends by itself. Of a buried job, the moment of its burial, by which it stands
    /// among the others; no two of a shard have the same. Meaningless of a ready job.
    pub deadline: Nanos,
    /// What has happened to it how often.
    pub counts: JobCounts,
    /// Where it is in its life.
    pub state: JobState,
}

/// A small number that a job has as long as it is in the engine. Then another may get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey(pub u32);

/// What ready jobs are ordered by: priority, then id. Twelve bytes, so that an entry of the heap
/// of ready jobs fits sixteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyKey {
    pri: u32,
    id_high: u32,
    id_low: u32,
}

impl ReadyKey {
    /// Where a job with this priority and this id stands.
    #[must_use]
    pub fn new(pri: Pri, id: JobId) -> ReadyKey {
        ReadyKey {
            pri: pri.0,
            id_high: (id.0 >> 32) as u32,
            id_low: id.0 as u32,
        }
    }
}

/// What jobs whose state ends by itself are ordered by: deadline, then id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DueKey {
    pub(super) deadline: Nanos,
    id: JobId,
}

impl DueKey {
    pub(super) fn new(deadline: Nanos, id: JobId) -> DueKey {
        DueKey { deadline, id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgent_before_old_before_young() {
        let key = |pri, id| ReadyKey::new(Pri(pri), JobId(id));
        assert!(key(1, u64::MAX) < key(2, 1));
        assert!(key(1, 0xffff_ffff) < key(1, 0x1_0000_0000));
        assert!(key(u32::MAX, 1) < key(u32::MAX, 2));
    }
}
