//! Identities as types of their own, so that a job id cannot be passed where a session is meant.

use std::fmt;

/// A job's id, unique for the life of a server's data and never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

impl JobId {
    /// Where ids begin that no server reaches by counting. One that a binlog tells of is damage, or
    /// somebody's own work; who counts on from it soon has no ids left.
    pub const UNCOUNTED: JobId = JobId(1 << 63);
}

/// A job's priority: the smaller the more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pri(pub u32);

impl Pri {
    /// Whether jobs of this priority count as `current-jobs-urgent`.
    #[must_use]
    pub fn is_urgent(self) -> bool {
        self < URGENT_BELOW
    }
}

/// Priorities below this one are urgent (the original's threshold).
const URGENT_BELOW: Pri = Pri(1024);

/// One client's conversation, known by this id to every process that takes part in it.
///
/// Ids are never used twice within the life of the frontend that makes them: the serial in the
/// upper 40 bits only grows, the slot in the lower 24 says where the frontend keeps the session.
/// `frontend` tells the sessions of several frontends apart; in one process it is always 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// Index of the frontend that owns the connection.
    pub frontend: u16,
    /// Serial and slot, see [`SessionId::new`].
    pub number: u64,
}

/// Bits of [`SessionId::number`] that hold the slot: 16.7 million connections at once.
const SLOT_BITS: u32 = 24;

impl SessionId {
    /// The session in `slot` that is the `serial`-th of its frontend.
    ///
    /// # Panics
    /// If `slot` needs more than 24 bits or `serial` more than 40: descriptors run out long before
    /// the one, and a million connections a second take twelve days to reach the other.
    #[must_use]
    pub fn new(frontend: u16, serial: u64, slot: u32) -> SessionId {
        assert!(
            slot < 1 << SLOT_BITS,
            "more sessions at once than a session id can tell apart"
        );
        assert!(
            serial < 1 << (u64::BITS - SLOT_BITS),
            "session serials are used up"
        );
        SessionId {
            frontend,
            number: serial << SLOT_BITS | u64::from(slot),
        }
    }

    /// Where the frontend keeps this session.
    #[must_use]
    pub fn slot(self) -> u32 {
        (self.number & ((1 << SLOT_BITS) - 1)) as u32
    }
}

/// Number of an ask within its session; only grows. An event repeats the number of the ask that it
/// answers, so that an answer to something given up is told from the answer that is awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Number of what is no answer to an ask that anybody waits for: announcements, and the
    /// answers to what a session is opened with.
    pub const NONE: Seq = Seq(0);
}

/// Who asks, and which of their asks it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The session that asks.
    pub session: SessionId,
    /// Which of its asks this is.
    pub seq: Seq,
}

/// Which start of which process this is: every child that a supervisor starts gets the next number,
/// so it only grows and none is given twice in one run. What was sent to or by the process that had
/// a place before is told by it from what is meant for, or comes from, the one that is there now.
/// Numbers and descriptors of processes tell nothing of the kind, because the system uses them
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u32);

impl Generation {
    /// Before the first start: no process has it.
    pub const NONE: Generation = Generation(0);

    /// The one for the next start.
    ///
    /// # Panics
    /// When the numbers are used up: after a start a second for 136 years.
    #[must_use]
    pub fn next(self) -> Generation {
        Generation(self.0.checked_add(1).expect("generations are not used up"))
    }
}

/// Which run of the supervisor this is: a random number, drawn at its start and known to all its
/// children. Generations of different runs have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(pub u64);

/// 16 hexadecimal digits, as `stats` shows an id.
impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What stands for a topology: processes with different ones would send jobs to different shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u64);

/// Index of a shard: one engine with its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u8);

/// A set of shards. At most [`ShardSet::SHARDS_MAX`] shards exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardSet(u64);

impl ShardSet {
    /// How many shards a set can tell apart.
    pub const SHARDS_MAX: usize = 64;

    /// The set without any shard.
    pub const EMPTY: ShardSet = ShardSet(0);

    /// The set of just `shard`.
    #[must_use]
    pub fn of(shard: ShardId) -> ShardSet {
        ShardSet(1 << shard.0)
    }

    /// The set of the first `count` shards.
    #[must_use]
    pub fn first(count: usize) -> ShardSet {
        assert!(
            count <= ShardSet::SHARDS_MAX,
            "more shards than a set can hold"
        );
        if count == ShardSet::SHARDS_MAX {
            ShardSet(u64::MAX)
        } else {
            ShardSet((1 << count) - 1)
        }
    }

    /// Adds `shard`.
    pub fn insert(&mut self, shard: ShardId) {
        self.0 |= 1 << shard.0;
    }

    /// Takes `shard` out; says whether it was in.
    pub fn remove(&mut self, shard: ShardId) -> bool {
        let was = self.contains(shard);
        self.0 &= !(1 << shard.0);
        was
    }

    /// The shards of either set.
    #[must_use]
    pub fn with(self, other: ShardSet) -> ShardSet {
        ShardSet(self.0 | other.0)
    }

    /// The shards of this set that are not in `other`.
    #[must_use]
    pub fn without(self, other: ShardSet) -> ShardSet {
        ShardSet(self.0 & !other.0)
    }

    /// The shards of this set that are in `other` too.
    #[must_use]
    pub fn common(self, other: ShardSet) -> ShardSet {
        ShardSet(self.0 & other.0)
    }

    /// Whether `shard` is in the set.
    #[must_use]
    pub fn contains(self, shard: ShardId) -> bool {
        self.0 & (1 << shard.0) != 0
    }

    /// Whether no shard is in the set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of shards in the set.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The shard, if the set is of just one.
    #[must_use]
    pub fn sole(self) -> Option<ShardId> {
        self.0
            .is_power_of_two()
            .then(|| ShardId(self.0.trailing_zeros() as u8))
    }

    /// The highest shard in the set, and the others. None if there is no shard.
    #[must_use]
    pub fn split_last(self) -> Option<(ShardId, ShardSet)> {
        let highest = self.0.checked_ilog2()?;
        Some((ShardId(highest as u8), ShardSet(self.0 & !(1 << highest))))
    }

    /// The shards in the set, lowest first.
    pub fn iter(self) -> impl Iterator<Item = ShardId> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let lowest = left.trailing_zeros() as u8;
            left &= left - 1;
            Some(ShardId(lowest))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_grow_with_the_serial_whatever_the_slot() {
        let older = SessionId::new(0, 7, (1 << 24) - 1);
        let newer = SessionId::new(0, 8, 0);
        assert!(older < newer);
        assert_eq!(older.slot(), (1 << 24) - 1);
        assert_eq!(newer.slot(), 0);
    }

    // R3.3
    #[test]
    fn generations_only_grow() {
        let first = Generation::NONE.next();
        assert!(Generation::NONE < first && first < first.next());
        assert_eq!(Generation(u32::MAX - 1).next(), Generation(u32::MAX));
        assert!(std::panic::catch_unwind(|| Generation(u32::MAX).next()).is_err());
    }

    #[test]
    fn a_run_is_shown_with_all_its_digits() {
        assert_eq!(RunId(0xab).to_string(), "00000000000000ab");
    }

    #[test]
    fn shard_sets_hold_what_was_put_in() {
        let mut set = ShardSet::EMPTY;
        set.insert(ShardId(63));
        set.insert(ShardId(0));
        assert_eq!(set.iter().collect::<Vec<_>>(), [ShardId(0), ShardId(63)]);
        assert!(set.remove(ShardId(0)));
        assert!(!set.remove(ShardId(0)));
        assert_eq!(set.len(), 1);
        assert_eq!(ShardSet::first(64).len(), 64);
        assert_eq!(ShardSet::first(3).len(), 3);
        assert_eq!(ShardSet::first(3).common(set), ShardSet::EMPTY);
        assert_eq!(ShardSet::first(64).common(set), set);
        assert_eq!(ShardSet::EMPTY.split_last(), None);
        assert_eq!(ShardSet::of(ShardId(63)).sole(), Some(ShardId(63)));
        assert!(
            [ShardSet::EMPTY, set.with(ShardSet::first(2))]
                .iter()
                .all(|s| s.sole().is_none())
        );
        let (last, others) = ShardSet::first(64).split_last().unwrap();
        assert_eq!((last, others), (ShardId(63), ShardSet::first(63)));
    }
}
