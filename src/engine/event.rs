//! What a shard says to a session: answers to its asks, and announcements.

use crate::base::body::BodyCow;
use crate::base::ids::{JobId, Pri};
use crate::base::name::TubeName;
use crate::base::time::Nanos;
use crate::engine::stats::{JobStats, ShardStats, TubeStats};

/// An answer or an announcement. Borrows from the shard: what is to outlive the call is copied, or
/// in the case of a body shared, by the one that is told.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The tube is in use.
    Using,
    /// The tube is watched.
    Watching,
    /// The tube is not watched.
    Ignored,
    /// The job is in the queue and in the journal.
    Inserted {
        /// Its id.
        id: JobId,
    },
    /// The job was refused: the server takes no new ones.
    Draining,
    /// Nothing was changed: the journal has no room.
    OutOfMemory,
    /// The session holds the job now.
    Reserved {
        /// Its id.
        id: JobId,
        /// When the session stops holding it unless it says more.
        deadline: Nanos,
        /// What it carries.
        body: BodyCow<'a>,
    },
    /// No watched tube has a job to give. A session that asked to wait waits.
    NoJob,
    /// The job is held for the session until it accepts, declines, or takes too long.
    Offered {
        /// Its id.
        id: JobId,
        /// Its priority, to compare offers by.
        pri: Pri,
        /// When it was put, to compare offers of equal priority by.
        created_at: Nanos,
    },
    /// The offer that was accepted has ended.
    Gone,
    /// The session does not wait any more.
    Cancelled,
    /// Announcement: the session's time with this job is over.
    Expired {
        /// The job that it no longer holds.
        id: JobId,
    },
    /// The job is gone; nobody holds it.
    Deleted {
        /// The job.
        id: JobId,
    },
    /// The session no longer holds the job.
    Released {
        /// The job.
        id: JobId,
    },
    /// The session no longer holds the job.
    Buried {
        /// The job.
        id: JobId,
    },
    /// The session holds the job for longer.
    Touched {
        /// The job.
        id: JobId,
        /// When the session stops holding it unless it says more.
        deadline: Nanos,
    },
    /// Jobs were made ready.
    Kicked {
        /// How many.
        count: u32,
    },
    /// The job was made ready.
    KickedJob,
    /// The job that was looked for.
    Found {
        /// Its id.
        id: JobId,
        /// What it carries.
        body: BodyCow<'a>,
    },
    /// There is no such job or tube, or it is not the session's to touch.
    NotFound,
    /// The tube gives no jobs for a while.
    Paused,
    /// All about a job.
    JobStats(JobStats<'a>),
    /// All about a tube.
    TubeStats(TubeStats<'a>),
    /// This shard's share of the server's numbers.
    ShardStats(ShardStats),
    /// One of the shard's tubes; more follow.
    Tube(TubeName<'a>),
    /// All tubes have been named.
    TubesEnd,
}

impl Event<'_> {
    /// Whether it is no answer to an ask.
    #[must_use]
    pub fn is_announcement(&self) -> bool {
        matches!(self, Event::Expired { .. })
    }
}
