//! The numbers a shard can tell, as plain structs. Those of several shards are merged by addition.

use crate::base::ids::{JobId, Pri};
use crate::base::name::TubeName;
use crate::base::time::Secs;

pub use crate::engine::job::{JobCounts, JobState};

/// How many jobs are in which state, now. A job on offer counts as ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobGauges {
    /// Ready jobs whose priority is urgent.
    pub urgent: u64,
    /// Ready jobs, those of paused tubes included.
    pub ready: u64,
    /// Jobs that a session holds.
    pub reserved: u64,
    /// Jobs that become ready later.
    pub delayed: u64,
    /// Jobs that stay where they are until kicked or deleted.
    pub buried: u64,
}

impl JobGauges {
    /// Counts a job of this priority that enters `state`.
    pub(super) fn enter(&mut self, state: JobState, pri: Pri) {
        match state {
            JobState::Ready | JobState::Offered { .. } => {
                self.ready += 1;
                self.urgent += u64::from(pri.is_urgent());
            }
            JobState::Reserved { .. } => self.reserved += 1,
            JobState::Delayed => self.delayed += 1,
            JobState::Buried => self.buried += 1,
        }
    }

    /// Counts a job of this priority that leaves `state`.
    pub(super) fn leave(&mut self, state: JobState, pri: Pri) {
        match state {
            JobState::Ready | JobState::Offered { .. } => {
                self.ready -= 1;
                self.urgent -= u64::from(pri.is_urgent());
            }
            JobState::Reserved { .. } => self.reserved -= 1,
            JobState::Delayed => self.delayed -= 1,
            JobState::Buried => self.buried -= 1,
        }
    }

    fn merge(&mut self, other: &JobGauges) {
        self.urgent += other.urgent;
        self.ready += other.ready;
        self.reserved += other.reserved;
        self.delayed += other.delayed;
        self.buried += other.buried;
    }
}

/// A journal's own numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStats {
    /// Number of the oldest file, 0 without a journal.
    pub oldest_index: u64,
    /// Number of the file being written, 0 without a journal.
    pub current_index: u64,
    /// Records rewritten to free an old file.
    pub records_migrated: u64,
    /// Records written, migrated ones included.
    pub records_written: u64,
}

/// A shard's share of `stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    /// Jobs by state.
    pub jobs: JobGauges,
    /// Reservations that ran out.
    pub job_timeouts: u64,
    /// Jobs that were put.
    pub total_jobs: u64,
    /// Tubes that exist.
    pub tubes: u64,
    /// The journal's share.
    pub journal: JournalStats,
}

impl ShardStats {
    /// Adds another shard's numbers. File numbers of different journals have no sum: they become
    /// 0 (S4.5).
    pub fn merge(&mut self, other: &ShardStats) {
        self.jobs.merge(&other.jobs);
        self.job_timeouts += other.job_timeouts;
        self.total_jobs += other.total_jobs;
        self.tubes += other.tubes;
        self.journal.oldest_index = 0;
        self.journal.current_index = 0;
        self.journal.records_migrated += other.journal.records_migrated;
        self.journal.records_written += other.journal.records_written;
    }
}

/// What `stats-tube` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TubeStats<'a> {
    /// The tube.
    pub name: TubeName<'a>,
    /// Its jobs by state.
    pub jobs: JobGauges,
    /// Jobs that were put into it since it was made.
    pub total_jobs: u64,
    /// Sessions that use it.
    pub using: u64,
    /// Sessions that watch it.
    pub watching: u64,
    /// Sessions that wait for a job of it.
    pub waiting: u64,
    /// Its jobs that were deleted.
    pub deletes: u64,
    /// How often it was paused.
    pub pauses: u64,
    /// Length of the pause that runs, else 0.
    pub pause: Secs,
    /// What is left of it, in whole seconds, cut toward 0.
    pub pause_left_secs: u64,
}

/// What `stats-job` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobStats<'a> {
    /// The job.
    pub id: JobId,
    /// Where it is.
    pub tube: TubeName<'a>,
    /// Its state.
    pub state: JobState,
    /// Its priority.
    pub pri: Pri,
    /// Whole seconds since it was put.
    pub age_secs: u64,
    /// The last delay it was given.
    pub delay: Secs,
    /// How long a session may hold it.
    pub ttr: Secs,
    /// Whole seconds until it becomes ready by itself, 0 if it does not.
    pub left_secs: u64,
    /// Number of the journal's file that holds it, 0 without a journal.
    pub segment: u64,
    /// What has happened to it how often.
    pub counts: JobCounts,
}
