//! How far a journal has come: what was appended, what is written, what is synced, and what of it
//! counts. Positions are bytes that were ever appended.

use crate::base::ids::JobId;
use crate::base::time::Nanos;
use crate::wal::journal::Sync;

/// See the module's description.
pub(super) struct Positions {
    policy: Sync,
    /// What is written is synced in order, sooner or later, whatever the policy.
    is_ordered: bool,
    /// Bytes that were ever appended.
    pub(super) appended: u64,
    /// The position up to which all is written.
    pub(super) written: u64,
    /// The position up to which all is synced.
    pub(super) synced: u64,
    /// The position up to which the sync goes that is under way.
    syncing: Option<u64>,
    /// Names in the directory have changed since the last sync began.
    pub(super) is_names_dirty: bool,
    /// Something waits for a sync that is not the user's wish.
    pub(super) wants_sync: bool,
    last_sync: Nanos,
    /// Bytes that the latest sync was for.
    last_batch: u64,
    /// When the oldest record was appended that no sync covers.
    unsynced_since: Nanos,
    /// The position at which the turn began.
    turn_start: u64,
    /// Bytes of jobs that were moved since.
    pub(super) moved_in_turn: u64,
    /// Lowest id of the jobs that were put and do not count: since the last sync began, and those
    /// of that sync.
    unconfirmed: [u64; 2],
}

/// Nanoseconds for which a sync that answers wait for is put off while every turn brings more
/// records that can share it.
const GATHER_NANOS: u64 = 300_000;

impl Positions {
    pub(super) fn new(policy: Sync, is_ordered: bool, now: Nanos) -> Positions {
        Positions {
            policy,
            is_ordered,
            appended: 0,
            written: 0,
            synced: 0,
            syncing: None,
            is_names_dirty: false,
            wants_sync: false,
            last_sync: now,
            last_batch: 0,
            unsynced_since: now,
            turn_start: 0,
            moved_in_turn: 0,
            unconfirmed: [u64::MAX; 2],
        }
    }

    /// A turn begins.
    pub(super) fn begin_turn(&mut self, now: Nanos) {
        self.turn_start = self.appended;
        self.moved_in_turn = 0;
        if self.appended == self.synced {
            self.unsynced_since = now;
        }
    }

    /// Bytes that were appended in this turn, but for jobs that were moved.
    pub(super) fn appended_in_turn(&self) -> u64 {
        self.appended - self.turn_start - self.moved_in_turn
    }

    /// A job was put; its record is about to be appended.
    pub(super) fn on_put(&mut self, id: JobId) {
        self.unconfirmed[0] = self.unconfirmed[0].min(id.0);
    }

    /// All that was appended is written.
    pub(super) fn on_written(&mut self) {
        self.written = self.appended;
        if self.policy != Sync::Always {
            self.unconfirmed[0] = u64::MAX;
        }
    }

    /// A sync begins, of all that is written and, if so returned, of the names in the directory.
    pub(super) fn begin_sync(&mut self, now: Nanos) -> bool {
        self.syncing = Some(self.written);
        self.last_sync = now;
        self.unsynced_since = now;
        self.wants_sync = false;
        let since = std::mem::replace(&mut self.unconfirmed[0], u64::MAX);
        self.unconfirmed[1] = since.min(self.unconfirmed[1]);
        std::mem::take(&mut self.is_names_dirty)
    }

    /// The sync that was under way has ended well.
    pub(super) fn end_sync(&mut self) {
        let synced = self.syncing.take().unwrap_or(self.synced);
        self.last_batch = synced - self.synced;
        self.synced = synced;
        self.unconfirmed[1] = u64::MAX;
    }

    /// The sync that was under way has failed: what it was about will never count.
    pub(super) fn abandon_sync(&mut self) {
        self.syncing = None;
    }

    pub(super) fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// Whether something was appended that is not synced.
    pub(super) fn has_more(&self) -> bool {
        self.synced < self.appended
    }

    /// The position up to which all counts, in the sense that the user has chosen.
    pub(super) fn confirmed(&self) -> u64 {
        match self.policy {
            Sync::Always => self.synced,
            Sync::Every(_) | Sync::Never => self.written,
        }
    }

    /// The position up to which all is as safe as it will ever be without copies.
    pub(super) fn safe(&self) -> u64 {
        match self.policy {
            Sync::Always | Sync::Every(_) => self.synced,
            Sync::Never if self.is_ordered => self.synced,
            Sync::Never => self.written,
        }
    }

    /// The position that has to count before anybody is told of this job.
    pub(super) fn needed_for(&self, id: JobId) -> u64 {
        let is_confirmed = self.unconfirmed.iter().all(|&lowest| id.0 < lowest);
        if is_confirmed { 0 } else { self.appended }
    }

    /// Whether a sync has to begin at this moment. None must be under way.
    pub(super) fn is_sync_due(&self, now: Nanos) -> bool {
        let has_more = self.has_unsynced();
        let is_due = match self.policy {
            Sync::Always => {
                let is_gathering = self.appended > self.turn_start
                    && now.since(self.unsynced_since) < GATHER_NANOS
                    && self.appended - self.synced < self.last_batch / 2;
                has_more && !is_gathering
            }
            Sync::Every(nanos) => has_more && self.last_sync.0.saturating_add(nanos) <= now.0,
            Sync::Never => false,
        };
        self.wants_sync || is_due
    }

    /// When [`Positions::is_sync_due`] is to be asked again.
    pub(super) fn sync_moment(&self, now: Nanos) -> Option<Nanos> {
        match self.policy {
            _ if self.is_syncing() || !self.has_unsynced() => None,
            Sync::Always => Some(now),
            Sync::Every(nanos) => Some(Nanos(self.last_sync.0.saturating_add(nanos))),
            Sync::Never => None,
        }
    }

    fn has_unsynced(&self) -> bool {
        self.has_more() || self.is_names_dirty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn at `now` that appends `len` bytes and writes them.
    fn turn(positions: &mut Positions, now: u64, len: u64) -> bool {
        positions.begin_turn(Nanos(now));
        positions.appended += len;
        positions.on_written();
        !positions.is_syncing() && positions.is_sync_due(Nanos(now))
    }

    #[test]
    fn a_sync_that_answers_wait_for_gathers_while_every_turn_brings_more() {
        let mut positions = Positions::new(Sync::Always, false, Nanos(0));
        assert!(turn(&mut positions, 0, 10 * 84), "nothing is known yet");
        assert!(!positions.begin_sync(Nanos(0)));
        positions.end_sync();
        assert_eq!(positions.confirmed(), 10 * 84);

        assert!(!turn(&mut positions, 1_000, 84), "more may come");
        assert_eq!(positions.sync_moment(Nanos(1_000)), Some(Nanos(1_000)));
        assert!(turn(&mut positions, 2_000, 0), "no more has come");
        assert!(!turn(&mut positions, 200_000, 84));
        assert!(
            turn(&mut positions, 1_000 + GATHER_NANOS, 84),
            "long enough"
        );
        assert!(turn(&mut positions, 2_000, 2 * 84), "half of the last");

        positions.begin_sync(Nanos(400_000));
        assert!(!turn(&mut positions, 500_000, 84), "one is under way");
        assert_eq!(positions.confirmed(), 10 * 84);
        positions.end_sync();
        assert_eq!(positions.confirmed(), 15 * 84);
        assert!(turn(&mut positions, 600_000, 0), "the last one is left");
    }

    #[test]
    fn the_last_writes_are_synced_by_the_time_alone() {
        let mut positions = Positions::new(Sync::Every(50), false, Nanos(0));
        assert!(turn(&mut positions, 60, 84));
        positions.begin_sync(Nanos(60));
        positions.end_sync();
        assert!(!turn(&mut positions, 70, 84));
        assert_eq!(positions.confirmed(), 2 * 84);
        assert_eq!(positions.sync_moment(Nanos(70)), Some(Nanos(110)));
        assert!(turn(&mut positions, 110, 0));
    }

    #[test]
    fn nobody_is_told_of_a_job_that_does_not_count() {
        let mut positions = Positions::new(Sync::Always, false, Nanos(0));
        positions.on_put(JobId(7));
        turn(&mut positions, 0, 84);
        assert_eq!(positions.needed_for(JobId(6)), 0);
        assert_eq!(positions.needed_for(JobId(7)), 84);
        positions.begin_sync(Nanos(1));
        assert_eq!(positions.needed_for(JobId(7)), 84);
        positions.end_sync();
        assert_eq!(positions.needed_for(JobId(7)), 0);
    }
}
