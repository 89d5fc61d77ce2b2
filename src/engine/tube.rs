//! A tube: its jobs by state, those who wait for one, its pause, its numbers; and the table of all
//! tubes with the heaps that say which tube is due next, so that nothing ever looks at every tube.

use crate::base::hash::NameHasher;
use crate::base::heap::Heap;
use crate::base::ids::JobId;
use crate::base::list::List;
use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::ordset::OrdSet;
use crate::base::queue::Queue;
use crate::base::slab::Slab;
use crate::base::slot::Slot;
use crate::base::time::{Nanos, Secs};
use crate::base::turns::Cursor;
use crate::engine::job::{DueKey, ReadyKey};
use crate::engine::stats::JobGauges;

/// See the module's description.
pub(super) struct Tube {
    pub(super) name: TubeNameBuf,
    name_hash: u64,
    pub(super) slot: Slot,
    pub(super) ready: Queue<ReadyKey>,
    pub(super) delayed: Queue<DueKey>,
    pub(super) buried: List,
    /// Jobs by state, those on offer among the ready ones.
    pub(super) gauges: JobGauges,
    /// Sessions that wait and may be handed a job, in the order that [`Tube::take_waiter`] needs.
    waiters: Vec<Waiter>,
    /// Sessions that wait and are not among `waiters`, because their frontends are held back.
    pub(super) parked: u32,
    /// Where the next waiter is taken.
    cursor: Cursor,
    pub(super) pause: Option<Pause>,
    /// Jobs of any state.
    pub(super) job_count: usize,
    pub(super) using: u32,
    pub(super) watching: u32,
    pub(super) total_jobs: u64,
    pub(super) deletes: u64,
    pub(super) pauses: u64,
    /// Position in [`Tubes::due`], if there is a delayed job.
    due_position: u32,
    /// Position in [`Tubes::paused`], if there is a pause.
    paused_position: u32,
}

/// What a tube costs besides its jobs, in bytes: the slot, the name and the entries that lead to
/// it.
pub(super) const TUBE_OVERHEAD_BYTES: usize = size_of::<Tube>() + 80;

/// A session that waits for a job of a tube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    /// Slot of the engine's client.
    pub(super) client: u32,
    /// Which entry of the client's watch list is this tube.
    pub(super) watch: u32,
}

/// Waiters for whom a tube keeps memory when they are gone: workers that wait, are served and wait
/// again are what a tube is for.
const WAITERS_CAPACITY_KEPT: usize = 8;

/// While it runs, the tube's jobs are not reserved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub(super) length: Secs,
    pub(super) until: Nanos,
}

impl Tube {
    fn new(name: TubeName<'_>, name_hash: u64) -> Tube {
        Tube {
            name: name.into(),
            name_hash,
            slot: Slot::of(name),
            ready: Queue::default(),
            delayed: Queue::default(),
            buried: List::default(),
            gauges: JobGauges::default(),
            waiters: Vec::new(),
            parked: 0,
            cursor: Cursor::default(),
            pause: None,
            job_count: 0,
            using: 0,
            watching: 0,
            total_jobs: 0,
            deletes: 0,
            pauses: 0,
            due_position: 0,
            paused_position: 0,
        }
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn waiters(&self) -> &[Waiter] {
        &self.waiters
    }

    /// Sessions that wait, those included that are handed nothing now.
    pub(super) fn waiting(&self) -> u64 {
        self.waiters.len() as u64 + u64::from(self.parked)
    }

    /// Whether a ready job and a session that waits for it could meet.
    pub(super) fn can_serve(&self) -> bool {
        self.pause.is_none() && !self.waiters.is_empty() && !self.ready.is_empty()
    }

    /// Adds a waiter; returns its index.
    pub(super) fn add_waiter(&mut self, waiter: Waiter) -> u32 {
        self.waiters.push(waiter);
        self.waiters.len() as u32 - 1
    }

    /// Removes the waiter at `index`; returns the one that was moved there, if any.
    pub(super) fn remove_waiter(&mut self, index: u32) -> Option<Waiter> {
        self.waiters.swap_remove(index as usize);
        let kept = WAITERS_CAPACITY_KEPT.max(2 * self.waiters.len());
        if self.waiters.capacity() > 2 * kept {
            self.waiters.shrink_to(kept);
        }
        self.waiters.get(index as usize).copied()
    }

    /// The waiter whose turn it is.
    pub(super) fn take_waiter(&mut self) -> Option<Waiter> {
        let index = self.cursor.take(self.waiters.len())?;
        Some(self.waiters[index])
    }

    /// What the cursor does when a session that has just asked is served at once: it was the only
    /// waiter for the blink of an eye.
    pub(super) fn pass_cursor(&mut self) {
        self.cursor.pass();
    }

    fn is_referred_to(&self) -> bool {
        self.using > 0 || self.watching > 0 || self.job_count > 0
    }
}

/// All tubes of a shard.
pub(super) struct Tubes {
    slots: Slab<Tube>,
    /// Slots in the order of `list-tubes`, and the way from a name to its slot.
    order: OrdSet<u32>,
    hasher: NameHasher,
    /// Tubes with delayed jobs, by the one that is ready first.
    due: Heap<DueKey>,
    /// Paused tubes, by the end of the pause.
    paused: Heap<(Nanos, u32)>,
    /// The tube that is there even if nothing refers to it.
    kept: Option<u32>,
}

impl Tubes {
    /// No tubes, or just `kept`, which then never vanishes.
    pub(super) fn new(hasher: NameHasher, kept: Option<TubeName<'_>>) -> Tubes {
        let mut tubes = Tubes {
            slots: Slab::default(),
            order: OrdSet::default(),
            hasher,
            due: Heap::default(),
            paused: Heap::default(),
            kept: None,
        };
        tubes.kept = kept.map(|name| tubes.find_or_make(name));
        tubes
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn find(&self, name: TubeName<'_>) -> Option<u32> {
        self.find_hashed(name, self.hasher.hash(name))
    }

    pub(super) fn find_or_make(&mut self, name: TubeName<'_>) -> u32 {
        let hash = self.hasher.hash(name);
        if let Some(tube) = self.find_hashed(name, hash) {
            return tube;
        }
        let tube = self.slots.insert(Tube::new(name, hash));
        let slots = &self.slots;
        self.order.push(tube, |&tube| slots[tube].name_hash);
        tube
    }

    /// Lets the tube vanish if nothing refers to it any more. Returns its name if a pause of it
    /// has ended by that.
    pub(super) fn drop_if_unreferred(&mut self, tube: u32) -> Option<TubeNameBuf> {
        if self.slots[tube].is_referred_to() || self.kept == Some(tube) {
            return None;
        }
        let was_paused = self.end_pause(tube);
        let slots = &self.slots;
        let hash = slots[tube].name_hash;
        let at = self
            .order
            .position(hash, |&other| other == tube)
            .expect("every tube is listed");
        self.order.swap_remove(at, |&tube| slots[tube].name_hash);
        let gone = self.slots.remove(tube);
        was_paused.then_some(gone.name)
    }

    /// The names of all tubes: in the order of their making, but a tube that vanished was replaced
    /// by the last one (L3.23).
    pub(super) fn names(&self) -> impl Iterator<Item = TubeName<'_>> {
        self.order
            .as_slice()
            .iter()
            .map(|&tube| self.slots[tube].name.as_name())
    }

    /// Puts the tube where it belongs among those with delayed jobs, after that may have changed.
    /// `had` is whether it stood there before.
    pub(super) fn delayed_changed(&mut self, tube: u32, had: bool) {
        let slots = &mut self.slots;
        let position = slots[tube].due_position;
        let first = slots[tube].delayed.first().map(|entry| entry.key);
        let placed = |slot, at| slots[slot].due_position = at;
        match (had, first) {
            (false, Some(key)) => self.due.push(key, tube, placed),
            (true, Some(key)) => self.due.change(position, key, placed),
            (true, None) => drop(self.due.remove(position, placed)),
            (false, None) => {}
        }
    }

    /// The tube and the moment of the delayed job that is ready first.
    pub(super) fn next_due(&self) -> Option<(u32, Nanos)> {
        self.due
            .first()
            .map(|entry| (entry.slot, entry.key.deadline))
    }

    pub(super) fn start_pause(&mut self, tube: u32, pause: Pause) {
        self.end_pause(tube);
        let slots = &mut self.slots;
        slots[tube].pause = Some(pause);
        self.paused.push((pause.until, tube), tube, |slot, at| {
            slots[slot].paused_position = at
        });
    }

    /// Says whether there was a pause.
    pub(super) fn end_pause(&mut self, tube: u32) -> bool {
        let slots = &mut self.slots;
        let was_paused = slots[tube].pause.take().is_some();
        if was_paused {
            let position = slots[tube].paused_position;
            self.paused
                .remove(position, |slot, at| slots[slot].paused_position = at);
        }
        was_paused
    }

    /// The tube and the moment of the pause that ends first.
    pub(super) fn next_pause_end(&self) -> Option<(u32, Nanos)> {
        self.paused.first().map(|entry| (entry.slot, entry.key.0))
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Tube)> {
        self.slots.iter()
    }

    fn find_hashed(&self, name: TubeName<'_>, hash: u64) -> Option<u32> {
        let is_it = |&tube: &u32| self.slots[tube].name.as_name() == name;
        self.order
            .position(hash, is_it)
            .map(|at| self.order.as_slice()[at])
    }
}

impl std::ops::Index<u32> for Tubes {
    type Output = Tube;

    fn index(&self, slot: u32) -> &Tube {
        &self.slots[slot]
    }
}

impl std::ops::IndexMut<u32> for Tubes {
    fn index_mut(&mut self, slot: u32) -> &mut Tube {
        &mut self.slots[slot]
    }
}

/// How a shard makes job ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdScheme {
    /// 1, 2, 3, ... as the original does. For a shard that is alone.
    Plain,
    /// The sequence above, the slot of the job's tube in the lowest bits, so that the shard of any
    /// job is known from its id. Ids of one tube still grow with every put.
    Slotted,
}

impl IdScheme {
    /// The bit of an id at which the number in the sequence begins.
    #[must_use]
    pub fn sequence_at(self) -> u32 {
        match self {
            IdScheme::Plain => 0,
            IdScheme::Slotted => crate::base::slot::SLOT_BITS,
        }
    }

    /// The id of the job with this number in the sequence, in a tube of `slot`.
    #[must_use]
    pub fn id(self, sequence: u64, slot: Slot) -> JobId {
        match self {
            IdScheme::Plain => JobId(sequence),
            IdScheme::Slotted => {
                JobId(sequence << crate::base::slot::SLOT_BITS | u64::from(slot.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of the waiters in the order in which they are taken, each of which comes back at once
    /// if `looping`.
    fn order(waiters: u32, takes: usize, looping: bool) -> Vec<u32> {
        let mut tube = Tube::new(TubeName::DEFAULT, 0);
        for client in 1..=waiters {
            tube.add_waiter(Waiter { client, watch: 0 });
        }
        let mut taken = Vec::new();
        for _ in 0..takes {
            let waiter = tube.take_waiter().unwrap();
            let index = tube.waiters.iter().position(|&w| w == waiter).unwrap();
            tube.remove_waiter(index as u32);
            taken.push(waiter.client);
            if looping {
                tube.add_waiter(waiter);
            }
        }
        taken
    }

    // L3.11, K8
    #[test]
    fn waiters_are_taken_in_the_originals_order() {
        assert_eq!(order(3, 3, false), [1, 2, 3]);
        assert_eq!(order(6, 6, false), [1, 2, 3, 6, 5, 4]);
        assert_eq!(order(7, 7, false), [1, 2, 3, 4, 6, 7, 5]);
        assert_eq!(order(3, 12, true), [1, 2, 2, 3, 1, 1, 2, 3, 3, 1, 2, 2]);
    }

    #[test]
    fn ids_carry_the_slot_or_nothing() {
        assert_eq!(IdScheme::Plain.id(7, Slot(5)), JobId(7));
        assert_eq!(IdScheme::Slotted.id(7, Slot(5)), JobId(7 << 10 | 5));
    }
}
