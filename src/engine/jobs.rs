//! All jobs of a shard, packed: what memory costs is a backlog of jobs that were put and wait, and
//! of those only what such a job has is kept in its slot. All the rest, which it gets once it is
//! delayed, reserved or buried, is in a second slot from then on.

use crate::base::bodies::{Bodies, Kept};
use crate::base::body::BodyCow;
use crate::base::ids::{JobId, Pri};
use crate::base::list::{Linked, Links};
use crate::base::slab::{Slab, slot_bytes};
use crate::base::time::{Nanos, Secs};
use crate::engine::index::IdIndex;
use crate::engine::job::{JobCounts, JobRecord, JobState};

/// What every job has.
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) created_at: Nanos,
    pub(super) pri: Pri,
    pub(super) ttr: Secs,
    /// Slot of its tube.
    pub(super) tube: u32,
    /// Where it stands in the queue or heap of its state: ready or delayed jobs of the tube, or
    /// everything that ends by itself. Meaningless when buried.
    pub(super) position: u32,
    body: Kept,
    /// Its slot of [`Jobs::more`]. A job without is ready and has always been.
    more: Option<u32>,
}

/// What a job has that has been something else than ready: of [`JobRecord`], and the links.
#[derive(Clone, Copy)]
pub(super) struct More {
    pub(super) deadline: Nanos,
    pub(super) delay: Secs,
    pub(super) counts: JobCounts,
    pub(super) state: JobState,
    /// Its neighbours: among the buried jobs of its tube, or among those that its holder holds.
    links: Links,
}

/// Bytes that lead to a job: its entries in the queue of its state, 16, and in the index, 6 to 11,
/// and what pages and chunks take besides.
const ENTRIES_BYTES: usize = 32;

const _: () = assert!(
    slot_bytes::<Job>() <= 48 && slot_bytes::<More>() <= 48,
    "a slot is three quarters of a cache line, and whether it is free is said within"
);

/// See the module's description.
pub(super) struct Jobs {
    slots: Slab<Job>,
    more: Slab<More>,
    bodies: Bodies,
    /// The way from an id to its slot.
    index: IdIndex,
}

impl Jobs {
    /// No jobs. Of their ids, the number in the sequence will begin at this bit.
    pub(super) fn new(sequence_at: u32) -> Jobs {
        Jobs {
            slots: Slab::default(),
            more: Slab::default(),
            bodies: Bodies::default(),
            index: IdIndex::new(sequence_at),
        }
    }

    /// Bytes that the jobs take besides their bodies, about.
    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * (slot_bytes::<Job>() + ENTRIES_BYTES)
            + self.more.len() * slot_bytes::<More>()
    }

    pub(super) fn find(&self, id: JobId) -> Option<u32> {
        self.index.find(id, |slot| self.slots[slot].id)
    }

    /// Adds a job that is in no queue yet.
    pub(super) fn insert(&mut self, record: &JobRecord, tube: u32, body: &BodyCow<'_>) -> u32 {
        let more = More::of(record).map(|more| self.more.insert(more));
        let slot = self.slots.insert(Job {
            id: record.id,
            created_at: record.created_at,
            pri: record.pri,
            ttr: record.ttr,
            tube,
            position: 0,
            body: self.bodies.insert(body),
            more,
        });
        let slots = &self.slots;
        self.index.insert(slot, |slot| slots[slot].id);
        slot
    }

    /// Takes out a job that is in no queue any more. Returns its tube and the length of its body.
    pub(super) fn remove(&mut self, slot: u32) -> (u32, usize) {
        let job = self.slots.remove(slot);
        let slots = &self.slots;
        self.index.remove(job.id, slot, |slot| slots[slot].id);
        if let Some(more) = job.more {
            self.more.remove(more);
        }
        self.bodies.remove(job.body);
        (job.tube, job.body.len())
    }

    /// What a journal keeps of the job.
    pub(super) fn record(&self, slot: u32) -> JobRecord {
        let job = &self.slots[slot];
        let more = match job.more {
            Some(more) => self.more[more],
            None => More::unused(job.created_at),
        };
        JobRecord {
            id: job.id,
            pri: job.pri,
            delay: more.delay,
            ttr: job.ttr,
            created_at: job.created_at,
            deadline: more.deadline,
            counts: more.counts,
            state: more.state,
        }
    }

    pub(super) fn body(&self, slot: u32) -> BodyCow<'_> {
        self.bodies.get(self.slots[slot].body)
    }

    /// Length of its body in bytes. No body is longer than the protocol can say.
    pub(super) fn body_len(&self, slot: u32) -> u32 {
        u32::try_from(self.slots[slot].body.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn state(&self, slot: u32) -> JobState {
        match self.slots[slot].more {
            Some(more) => self.more[more].state,
            None => JobState::Ready,
        }
    }

    /// Its state, and when that ends or, of a buried job, began.
    pub(super) fn state_and_deadline(&self, slot: u32) -> (JobState, Nanos) {
        let job = &self.slots[slot];
        match job.more {
            Some(more) => (self.more[more].state, self.more[more].deadline),
            None => (JobState::Ready, job.created_at),
        }
    }

    /// Takes note that the job is in another state, and of the moment that belongs to it. A ready
    /// job has none and keeps the last.
    pub(super) fn set_state(&mut self, slot: u32, state: JobState, deadline: Nanos) {
        if state != JobState::Ready {
            let more = self.more_mut(slot);
            (more.state, more.deadline) = (state, deadline);
        } else if let Some(more) = self.slots[slot].more {
            self.more[more].state = state;
        }
    }

    /// What a job has that has not always been ready, to be changed. From now on this is one.
    pub(super) fn more_mut(&mut self, slot: u32) -> &mut More {
        let job = &mut self.slots[slot];
        let unused = || self.more.insert(More::unused(job.created_at));
        let more = *job.more.get_or_insert_with(unused);
        &mut self.more[more]
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Job)> {
        self.slots.iter()
    }

    /// Takes note of where a queue has put a job.
    pub(super) fn place(&mut self, slot: u32, position: u32) {
        self.slots[slot].position = position;
    }
}

impl More {
    /// What a job has that was put without delay at this moment.
    fn unused(created_at: Nanos) -> More {
        More {
            deadline: created_at,
            delay: Secs(0),
            counts: JobCounts::default(),
            state: JobState::Ready,
            links: Links::NONE,
        }
    }

    /// What has to be kept of the job, if it is not the same as of any that is put and waits.
    fn of(record: &JobRecord) -> Option<More> {
        let is_unused = record.state == JobState::Ready
            && record.delay == Secs(0)
            && record.counts == JobCounts::default();
        (!is_unused).then_some(More {
            deadline: record.deadline,
            delay: record.delay,
            counts: record.counts,
            state: record.state,
            links: Links::NONE,
        })
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
        self.slots[slot]
            .more
            .map_or(Links::NONE, |more| self.more[more].links)
    }

    fn set_links(&mut self, slot: u32, links: Links) {
        self.more_mut(slot).links = links;
    }
}
