//! The jobs that a session holds and when it stops holding them: a copy of what the shards know,
//! kept to know when the session has to be warned. A copy whose deadline has passed counts for
//! nothing, also before its shard has announced the end (R3.12).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::base::hash::id_hash;
use crate::base::ids::JobId;
use crate::base::ordset::OrdSet;
use crate::base::time::Nanos;

/// See the module's description.
#[derive(Default)]
pub(super) struct Reservations {
    held: OrdSet<Held>,
    /// When reservations end, the soonest first, with some that are over or end at another time by
    /// now. These are only looked for where they are in the way: most jobs are deleted long before
    /// their deadline, and to keep this exact cost a tenth of all that a command does.
    ends: BinaryHeap<Reverse<(Nanos, JobId)>>,
}

struct Held {
    id: JobId,
    deadline: Nanos,
}

/// Ends that are kept for nothing, beyond as many as jobs are held.
const STALE_ENDS_MAX: usize = 16;

fn held_hash(held: &Held) -> u64 {
    id_hash(held.id)
}

impl Reservations {
    /// The job is held until `deadline`, whether it was held before or not.
    pub(super) fn hold(&mut self, id: JobId, deadline: Nanos) {
        match self.index(id) {
            Some(index) => self.held.as_mut_slice()[index].deadline = deadline,
            None => self.held.push(Held { id, deadline }, held_hash),
        }
        self.ends.push(Reverse((deadline, id)));
        self.drop_stale_ends();
    }

    /// The job is not held any more, if it was.
    pub(super) fn forget(&mut self, id: JobId) {
        if let Some(index) = self.index(id) {
            self.held.swap_remove(index, held_hash);
            self.drop_stale_ends();
        }
    }

    /// Sees to it that no more is kept for nothing than for the jobs that are held, about.
    fn drop_stale_ends(&mut self) {
        if self.ends.len() > 2 * self.held.len() + STALE_ENDS_MAX {
            let held = self.held.as_slice().iter();
            let ends = held.map(|held| Reverse((held.deadline, held.id)));
            self.ends = ends.collect();
        }
    }

    /// Forgets the jobs whose deadline has come by `now`.
    pub(super) fn forget_ended(&mut self, now: Nanos) {
        while let Some(&Reverse(end)) = self.ends.peek()
            && end.0 <= now
        {
            self.ends.pop();
            if is_live(&self.held, end) {
                self.forget(end.1);
            }
        }
    }

    /// The jobs that are held, in no order.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.held.as_slice().iter().map(|held| held.id)
    }

    /// Whether no job is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The deadline that comes first.
    pub(super) fn nearest(&mut self) -> Option<Nanos> {
        while let Some(&Reverse(end)) = self.ends.peek() {
            if is_live(&self.held, end) {
                return Some(end.0);
            }
            self.ends.pop();
        }
        None
    }

    /// Whether a deadline comes by `moment`: quick to say as long as none is near.
    pub(super) fn ends_by(&mut self, moment: Nanos) -> bool {
        let may_end = self
            .ends
            .peek()
            .is_some_and(|&Reverse((end, _))| end <= moment);
        may_end && self.nearest().is_some_and(|nearest| nearest <= moment)
    }

    /// Gives up the memory of a session that held much, before another gets this. Nothing is held.
    pub(super) fn clear(&mut self) {
        debug_assert!(self.is_empty(), "what is held is not forgotten");
        self.ends.clear();
        self.ends.shrink_to(STALE_ENDS_MAX);
    }

    fn index(&self, id: JobId) -> Option<usize> {
        self.held.position(id_hash(id), |held| held.id == id)
    }
}

/// Whether the job is held, and until then.
fn is_live(held: &OrdSet<Held>, (deadline, id): (Nanos, JobId)) -> bool {
    held.position(id_hash(id), |held| held.id == id)
        .is_some_and(|index| held.as_slice()[index].deadline == deadline)
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
            steps in prop::collection::vec(
                (0..30u64, prop::option::of(0..100u64), any::<bool>()),
                0..300,
            ),
        ) {
            let mut reservations = Reservations::default();
            let mut model = BTreeMap::new();
            for (id, deadline, looks) in steps {
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
                prop_assert!(
                    reservations.ends.len() <= 2 * reservations.held.len() + STALE_ENDS_MAX
                );
                let least = model.values().min().copied();
                prop_assert_eq!(reservations.ends_by(Nanos(50)), least.is_some_and(|d| d <= 50));
                if looks {
                    prop_assert_eq!(reservations.nearest().map(|nearest| nearest.0), least);
                }
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
