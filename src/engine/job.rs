//! A job: the record that a journal keeps of it, and what the engine needs to find it again.

use crate::base::body::Body;
use crate::base::ids::{JobId, Pri};
use crate::base::list::{Linked, Links};
use crate::base::slab::Slab;
use crate::base::time::{Nanos, Secs};
use crate::engine::index::IdIndex;

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

/// A job in the engine.
pub(super) struct Job {
    pub(super) record: JobRecord,
    pub(super) body: Body,
    /// Slot of its tube.
    pub(super) tube: u32,
    /// Where it stands in the heap of its state: ready or delayed jobs of the tube, or everything
    /// that ends by itself. Meaningless when buried.
    pub(super) position: u32,
    /// Its neighbours: among the buried jobs of its tube, or among those that its holder holds.
    pub(super) links: Links,
}

/// What a job costs besides its body, in bytes: the slot and the entries that lead to it.
pub(super) const JOB_OVERHEAD_BYTES: usize = size_of::<Job>() + 48;

const _: () = assert!(
    size_of::<Job>() <= 96,
    "a job fits a line and a half of the cache"
);

/// All jobs of a shard: slots, and the way from an id to its slot.
#[derive(Default)]
pub(super) struct Jobs {
    slots: Slab<Job>,
    index: IdIndex,
}

impl Jobs {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn find(&self, id: JobId) -> Option<u32> {
        self.index.find(id, |slot| self.slots[slot].record.id)
    }

    pub(super) fn insert(&mut self, job: Job) -> u32 {
        let slot = self.slots.insert(job);
        let slots = &self.slots;
        self.index.insert(slot, |slot| slots[slot].record.id);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) -> Job {
        let job = self.slots.remove(slot);
        let slots = &self.slots;
        self.index
            .remove(job.record.id, slot, |slot| slots[slot].record.id);
        job
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Job)> {
        self.slots.iter()
    }

    /// Takes note of where a heap has put a job.
    pub(super) fn place(&mut self, slot: u32, position: u32) {
        self.slots[slot].position = position;
    }
}

impl Job {
    /// Length of its body in bytes. No body is longer than the protocol can say.
    pub(super) fn body_len(&self) -> u32 {
        u32::try_from(self.body.len()).unwrap_or(u32::MAX)
    }
}

impl std::ops::Index<u32> for Jobs {
    type Output = Job;

    fn index(&self, slot: u32) -> &Job {
        &self.slots[slot]
    }
}

impl std::ops::IndexMut<u32> for Jobs {
    fn index_mut(&mut self, slot: u32) -> &mut Job {
        &mut self.slots[slot]
    }
}

impl Linked for Jobs {
    fn links(&self, slot: u32) -> Links {
        self.slots[slot].links
    }

    fn set_links(&mut self, slot: u32, links: Links) {
        self.slots[slot].links = links;
    }
}

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

    pub(super) fn of(job: &JobRecord) -> ReadyKey {
        ReadyKey::new(job.pri, job.id)
    }
}

/// What jobs whose state ends by itself are ordered by: deadline, then id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DueKey {
    pub(super) deadline: Nanos,
    id: JobId,
}

impl DueKey {
    pub(super) fn of(job: &JobRecord) -> DueKey {
        DueKey {
            deadline: job.deadline,
            id: job.id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgent_before_old_before_young() {
        let key = |pri, id| {
            ReadyKey::of(&JobRecord {
                id: JobId(id),
                pri: Pri(pri),
                delay: Secs(0),
                ttr: Secs(1),
                created_at: Nanos(0),
                deadline: Nanos(0),
                counts: JobCounts::default(),
                state: JobState::Ready,
            })
        };
        assert!(key(1, u64::MAX) < key(2, 1));
        assert!(key(1, 0xffff_ffff) < key(1, 0x1_0000_0000));
        assert!(key(u32::MAX, 1) < key(u32::MAX, 2));
    }
}
