//! What a shard needs of its journal besides what the engine does: when answers may leave, and what
//! is to be done between commands.

use std::os::fd::BorrowedFd;

use crate::base::ids::JobId;
use crate::base::time::Nanos;
use crate::engine::host::{Journal, NoJournal, Record, Ticket};
use crate::wal::error::WalError;
use crate::wal::record::WallNanos;

/// A journal with a host around it that gives it time.
///
/// The host calls [`ShardJournal::begin_turn`] before the engine works, and
/// [`ShardJournal::flush`] before answers leave. What is said must wait for its ticket.
pub trait ShardJournal: Journal {
    /// It is `now`, and the wall clock shows `wall`.
    fn begin_turn(&mut self, now: Nanos, wall: WallNanos);

    /// How much of it can be relied on, in the sense that its user has chosen: is written, or is
    /// synced.
    fn confirmed(&self) -> Ticket;

    /// Writes what was appended, and does what is to be done in the background. What fails is told
    /// by [`ShardJournal::take_failure`].
    fn flush(&mut self);

    /// Why the journal cannot go on, if it cannot. The process has to stop: what is on the disk is
    /// unknown.
    fn take_failure(&mut self) -> Option<WalError>;

    /// Bytes of the latest full records of all jobs that are there.
    fn live_len(&self) -> u64;

    /// Whether `count` more updates of jobs have room only after [`ShardJournal::next_move`] has
    /// been obeyed. The disk is full then.
    fn is_tight(&mut self, count: u64) -> bool;

    /// A job to be written anew, if it is still there: give its record to
    /// [`ShardJournal::move_job`], and ask again. None if it is not worth it, or no way now. What
    /// is urgent is worth more.
    fn next_move(&mut self, urgent: bool) -> Option<JobId>;

    /// Whether some jobs of a file were moved and others of it were not.
    fn is_moving(&self) -> bool;

    /// Writes a job anew. Returns the bytes that it took.
    fn move_job(&mut self, record: Record<'_>) -> u64;

    /// Waits for the disk until all that was appended is synced, and gives back what that frees.
    /// Only for when nothing else helps.
    fn settle(&mut self);

    /// Becomes readable when [`ShardJournal::flush`] has something to do, if there is such a thing.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When [`ShardJournal::flush`] has something to do next.
    fn moment(&self) -> Option<Nanos>;

    /// Brings all to the disk that is there, and leaves the directory as small as it can be. The
    /// end.
    fn close(&mut self);
}

/// Nothing is written, so everything is confirmed.
impl ShardJournal for NoJournal {
    fn begin_turn(&mut self, _: Nanos, _: WallNanos) {}

    fn confirmed(&self) -> Ticket {
        Ticket(0)
    }

    fn flush(&mut self) {}

    fn take_failure(&mut self) -> Option<WalError> {
        None
    }

    fn live_len(&self) -> u64 {
        0
    }

    fn is_tight(&mut self, _: u64) -> bool {
        false
    }

    fn next_move(&mut self, _: bool) -> Option<JobId> {
        None
    }

    fn is_moving(&self) -> bool {
        false
    }

    fn move_job(&mut self, _: Record<'_>) -> u64 {
        0
    }

    fn settle(&mut self) {}

    fn moment(&self) -> Option<Nanos> {
        None
    }

    fn close(&mut self) {}
}
