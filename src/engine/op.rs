//! What can be asked of a shard. Together with [`Event`](crate::engine::event::Event) this is the
//! only vocabulary between the clients half and the queue half: one process passes it by
//! reference, several encode it, and no command is written twice.

use crate::base::body::BodyCow;
use crate::base::ids::{JobId, Pri, ShardSet};
use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};

/// An ask. Each is answered by the events named beside it, of which one is the last.
#[derive(Clone, Debug)]
pub enum Op<'a> {
    /// The session puts into this tube from now on: `Using`.
    Use {
        /// Made if it does not exist.
        tube: TubeName<'a>,
    },
    /// The session uses a tube of another shard now. Not answered.
    Unuse,
    /// Adds a tube to those that the session reserves from: `Watching`.
    Watch {
        /// Made if it does not exist.
        tube: TubeName<'a>,
    },
    /// Takes a tube off those that the session reserves from: `Ignored`.
    Ignore {
        /// Need not exist.
        tube: TubeName<'a>,
    },
    /// A new job for the tube in use: `Inserted`, `Draining` or `OutOfMemory`.
    Put(Put<'a>),
    /// The most urgent ready job of the watched tubes: `Reserved` or `Offered`, or `NoJob`, after
    /// which a session that waits is answered later.
    Reserve {
        /// Whether the job is handed over or only offered.
        style: Style,
        /// Whether to wait for a job when none is ready.
        wait: bool,
    },
    /// Takes the job that was offered: `Reserved` or `Gone`.
    Accept {
        /// The job of the offer.
        id: JobId,
    },
    /// Gives back the job that was offered. Not answered.
    Decline {
        /// The job of the offer.
        id: JobId,
    },
    /// Ends the session's wait that began with this ask, if it still waits: `Cancelled`. A job that
    /// was handed over or offered before is not touched.
    Cancel,
    /// This job, whatever its tube: `Reserved` or `NotFound`.
    ReserveJob {
        /// The job.
        id: JobId,
    },
    /// `Deleted` or `NotFound`.
    Delete {
        /// The job.
        id: JobId,
    },
    /// `Released`, `NotFound` or `OutOfMemory`.
    Release {
        /// The job, which the session must hold.
        id: JobId,
        /// Its new priority.
        pri: Pri,
        /// How long it stays out of reach.
        delay: Secs,
    },
    /// `Buried`, `NotFound` or `OutOfMemory`.
    Bury {
        /// The job, which the session must hold.
        id: JobId,
        /// Its new priority.
        pri: Pri,
    },
    /// Starts the job's time to run anew: `Touched` or `NotFound`.
    Touch {
        /// The job, which the session must hold.
        id: JobId,
    },
    /// Makes jobs of the tube in use ready, buried ones or else delayed ones: `Kicked`.
    Kick {
        /// How many at most.
        count: u32,
    },
    /// `KickedJob` or `NotFound`.
    KickJob {
        /// The job, which must be buried or delayed.
        id: JobId,
    },
    /// `Found` or `NotFound`.
    Peek {
        /// The job, in whatever state.
        id: JobId,
    },
    /// The next ready job of the tube in use: `Found` or `NotFound`.
    PeekReady,
    /// The delayed job of the tube in use that is ready first: `Found` or `NotFound`.
    PeekDelayed,
    /// The job of the tube in use that was buried first: `Found` or `NotFound`.
    PeekBuried,
    /// Keeps the tube's jobs from being reserved for a while: `Paused` or `NotFound`.
    PauseTube {
        /// The tube.
        tube: TubeName<'a>,
        /// For how long; 0 ends a pause.
        pause: Secs,
    },
    /// `JobStats` or `NotFound`.
    StatsJob {
        /// The job.
        id: JobId,
    },
    /// `TubeStats` or `NotFound`.
    StatsTube {
        /// The tube.
        tube: TubeName<'a>,
    },
    /// `ShardStats`.
    Stats,
    /// A `Tube` for each tube of the shard, then `TubesEnd`.
    ListTubes,
}

/// A job as it comes from a client.
#[derive(Clone, Debug)]
pub struct Put<'a> {
    /// The id that was taken for it when its command line came, if one was.
    pub id: Option<JobId>,
    /// When its command line came: its age counts from here.
    pub created_at: Nanos,
    /// Its priority.
    pub pri: Pri,
    /// How long it stays out of reach, counted from now.
    pub delay: Secs,
    /// How long a session may hold it. At least 1 s.
    pub ttr: Secs,
    /// What it carries.
    pub body: BodyCow<'a>,
}

/// How a reserve gets its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The job is handed over at once. For a session whose watched tubes are all at this shard.
    Take,
    /// The job is held for the session until it accepts or declines, so that it can compare the
    /// offers of several shards.
    Offer,
}

impl Style {
    /// How the shards that have watched tubes are asked for a job.
    #[must_use]
    pub fn for_shards(shards: ShardSet) -> Style {
        if shards.sole().is_some() {
            Style::Take
        } else {
            Style::Offer
        }
    }
}
