//! The jobs that a session holds and when it stops holding them: a copy of what the shards know,
//! kept to know when the session has to be warned. A copy whose deadline has passed counts for
//! nothing, also before its shard has announced the end (R3.12).

use crate::base::hash::id_hash;
use crate::base::heap::Heap;
use crate::base::ids::JobId;
use crate::base::ordset::OrdSet;
use crate::base::time::Nanos;

/// See the module's description.
#[derive(Default)]
pub(super) struct Reservations {
    held: OrdSet<Held>,
    /// Indices of `held`, by deadline.
    deadlines: Heap<Nanos>,
}

struct Held {
    id: JobId,
    /// Where the job stands in `deadlines`.
    position: u32,
}

fn held_hash(held: &Held) -> u64 {
    id_hash(held.id)
}

impl Reservations {
    /// The job is held until `deadline`, whether it was held before or not.
    pub(super) fn hold(&mut self, id: JobId, deadline: Nanos) {
        match self.index(id) {
            Some(index) => {
                let held = self.held.as_mut_slice();
                let position = held[index].position;
                self.deadlines.change(position, deadline, place(held));
            }
            None => {
                let index = self.held.len() as u32;
                self.held.push(Held { id, position: 0 }, held_hash);
                self.deadlines
                    .push(deadline, index, place(self.held.as_mut_slice()));
            }
        }
    }

    /// The job is not held any more, if it was.
    pub(super) fn forget(&mut self, id: JobId) {
        if let Some(index) = self.index(id) {
            self.remove(index);
        }
    }

    /// Forgets the jobs whose deadline has come by `now`.
    pub(super) fn forget_ended(&mut self, now: Nanos) {
        while let Some(first) = self.deadlines.first()
            && first.key <= now
        {
            self.remove(first.slot as usize);
        }
    }

    fn remove(&mut self, index: usize) {
        let held = self.held.as_mut_slice();
        let position = held[index].position;
        self.deadlines.remove(position, place(held));
        self.held.swap_remove(index, held_hash);
        if let Some(moved) = self.held.as_slice().get(index) {
            self.deadlines.rename(moved.position, index as u32);
        }
    }

    /// The jobs that are held, in no order.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.held.as_slice().iter().map(|held| held.id)
    }

    /// The deadline that comes first.
    pub(super) fn nearest(&self) -> Option<Nanos> {
        self.deadlines.first().map(|entry| entry.key)
    }

    fn index(&self, id: JobId) -> Option<usize> {
        self.held.position(id_hash(id), |held| held.id == id)
    }
}

fn place(held: &mut [Held]) -> impl FnMut(u32, u32) {
    |index, position| held[index as usize].position = position
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::property_config;

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn the_nearest_deadline_is_the_least(
            steps in prop::collection::vec((0..30u64, prop::option::of(0..100u64)), 0..300),
        ) {
            let mut reservations = Reservations::default();
            let mut model = BTreeMap::new();
            for (id, deadline) in steps {
                match deadline {
                    Some(deadline) => {
                        reservations.hold(JobId(id), Nanos(deadline));
                        model.insert(id, deadline);
                    }
                    None => {
                        reservations.forget(JobId(id));
                        model.remove(&id);
                    }
                }
                let nearest = reservations.nearest().map(|nearest| nearest.0);
                prop_assert_eq!(nearest, model.values().min().copied());
            }
            for now in [20, 50] {
                reservations.forget_ended(Nanos(now));
                model.retain(|_, deadline| *deadline > now);
                let nearest = reservations.nearest().map(|nearest| nearest.0);
                prop_assert_eq!(nearest, model.values().min().copied());
                prop_assert_eq!(reservations.held.len(), model.len());
            }
        }
    }
}
