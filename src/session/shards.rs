//! The way from a session to the shards: which shard has what, and how to ask it.

use xxhash_rust::xxh3::xxh3_64;

use crate::base::ids::{Caller, Fingerprint, JobId, SessionId, ShardId, ShardSet};
use crate::base::name::TubeName;
use crate::base::slot::{SLOTS, Slot};
use crate::base::time::Nanos;
use crate::engine::host::{Outbox, Ticket};
use crate::engine::op::Op;

/// Whether shards can be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nothing is in the way.
    Now,
    /// This one cannot take more at the moment. It will say when it can.
    Full(ShardId),
    /// There is no way to this one.
    Down(ShardId),
}

/// Asks shards. A shard in the same process answers into the outbox before the call returns; one
/// in another answers later, through whoever reads its link.
pub trait Shards {
    /// Makes the session known to the shard. Comes before the session's first ask there.
    fn attach(&mut self, shard: ShardId, session: SessionId);

    /// Whether all of `shards` can be asked now. A shard of the same process always can.
    fn reach(&self, shards: ShardSet) -> Reach {
        let _ = shards;
        Reach::Now
    }

    /// Asks the shard.
    fn submit(
        &mut self,
        now: Nanos,
        shard: ShardId,
        from: Caller,
        op: Op<'_>,
        outbox: &mut impl Outbox,
    );

    /// Has the shard forget the session. What becomes of its jobs may concern other sessions.
    fn detach(&mut self, now: Nanos, shard: ShardId, session: SessionId, outbox: &mut impl Outbox);

    /// Sees to it that what was asked takes its way, and tells how much of what was said counts by
    /// now: a session is sent what it is owed when all of it does.
    fn flush(&mut self) -> Ticket;

    /// Takes the id of a job that the session has begun to send, from the shard of the tube that
    /// it uses. None where the shard is elsewhere and gives the id when the job arrives.
    fn take_id(&mut self, shard: ShardId, session: SessionId) -> Option<JobId>;
}

/// Which shard has which tube and which job. Slots are spread over the shards in ranges.
#[derive(Clone, Copy, Debug)]
pub struct ShardMap {
    count: u64,
}

impl ShardMap {
    /// The map of `count` shards.
    ///
    /// # Panics
    /// If `count` is 0 or more than [`ShardSet::SHARDS_MAX`].
    #[must_use]
    pub fn new(count: usize) -> ShardMap {
        assert!(
            (1..=ShardSet::SHARDS_MAX).contains(&count),
            "{count} shards"
        );
        ShardMap {
            count: count as u64,
        }
    }

    /// All shards.
    #[must_use]
    pub fn all(self) -> ShardSet {
        ShardSet::first(self.count as usize)
    }

    /// The shard that has the tube, or would have it.
    #[must_use]
    pub fn of_tube(self, tube: TubeName<'_>) -> ShardId {
        if self.count == 1 {
            ShardId(0)
        } else {
            self.of_slot(Slot::of(tube))
        }
    }

    /// The shard that has the job, if there is such a job. A lone shard has all jobs, and its ids
    /// carry no slot.
    #[must_use]
    pub fn of_job(self, id: JobId) -> ShardId {
        if self.count == 1 {
            ShardId(0)
        } else {
            self.of_slot(Slot((id.0 % SLOTS) as u16))
        }
    }

    /// What stands for this map: the number of slots, that of shards, and which shard has each
    /// slot.
    #[must_use]
    pub fn fingerprint(self) -> Fingerprint {
        let mut bytes = [SLOTS, self.count].map(u64::to_le_bytes).concat();
        bytes.extend((0..SLOTS as u16).map(|slot| self.of_slot(Slot(slot)).0));
        Fingerprint(xxh3_64(&bytes))
    }

    /// The shard that has the slot.
    #[must_use]
    pub fn of_slot(self, slot: Slot) -> ShardId {
        ShardId((u64::from(slot.0) * self.count / SLOTS) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_at_the_shard_of_its_tube() {
        for count in [1, 2, 3, 64] {
            let map = ShardMap::new(count);
            for name in ["default", "a", "b", "x_y"] {
                let tube = TubeName::parse(name.as_bytes()).unwrap();
                let id = JobId(99 << 10 | u64::from(Slot::of(tube).0));
                assert_eq!(map.of_tube(tube), map.of_job(id));
                assert!(map.all().contains(map.of_tube(tube)));
            }
        }
    }

    // Data on disk will depend on it.
    #[test]
    fn fingerprints_are_pinned() {
        let of = |count| ShardMap::new(count).fingerprint().0;
        let pinned = [
            5_888_502_506_616_533_518,
            16_173_903_276_206_107_558,
            5_922_999_607_273_040_228,
        ];
        assert_eq!([of(1), of(2), of(64)], pinned);
    }

    #[test]
    fn every_shard_has_slots() {
        let map = ShardMap::new(3);
        let counts = [0, 1, 2].map(|shard| {
            (0..SLOTS as u16)
                .filter(|&slot| map.of_slot(Slot(slot)) == ShardId(shard))
                .count()
        });
        assert_eq!(counts, [342, 341, 341]);
    }
}
