//! What a journal and its engine have to do with each other outside of commands: a start brings the
//! jobs back, and later the journal asks for jobs that it wants to write anew.

use crate::base::body::Body;
use crate::base::ids::JobId;
use crate::base::name::TubeName;
use crate::base::slot::SLOT_BITS;
use crate::base::time::{Nanos, Secs};
use crate::engine::host::Record;
use crate::engine::job::{JobKey, JobRecord, JobState};
use crate::engine::tube::Pause;
use crate::engine::{Engine, IdScheme};

/// There is a job with this id already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate;

impl Engine {
    /// Brings back a job, before the first session is attached. Nothing is appended to the journal
    /// and nothing counted but what is there now; the caller brings the buried ones in the order of
    /// their burial. A job that was reserved comes back ready.
    ///
    /// # Errors
    /// [`Duplicate`]. Nothing has changed then.
    pub fn restore(
        &mut self,
        mut job: JobRecord,
        tube: TubeName<'_>,
        body: Body,
    ) -> Result<JobKey, Duplicate> {
        if self.jobs.find(job.id).is_some() {
            return Err(Duplicate);
        }
        let tube = self.tubes.find_or_make(tube);
        let state = match job.state {
            JobState::Delayed | JobState::Buried => job.state,
            JobState::Ready | JobState::Offered { .. } | JobState::Reserved { .. } => {
                JobState::Ready
            }
        };
        if state == JobState::Buried {
            job.deadline = self.burial_moment(job.deadline);
        }
        self.body_bytes += body.len();
        job.state = state;
        let slot = self.jobs.insert(&job, tube, &body.into());
        self.tubes[tube].job_count += 1;
        self.enter(slot, state, job.deadline);
        self.skip_ids(job.id);
        Ok(JobKey(slot))
    }

    /// Brings back a pause, after the jobs and before the first session is attached; nothing is
    /// counted. A tube is there at a start because it has jobs or always is: one that was there for
    /// sessions alone has vanished with them, and its pause too. Says whether the pause runs now.
    pub fn restore_pause(
        &mut self,
        now: Nanos,
        tube: TubeName<'_>,
        length: Secs,
        until: Nanos,
    ) -> bool {
        let tube = self.tubes.find(tube).filter(|_| now < until);
        if let Some(tube) = tube {
            self.tubes.start_pause(tube, Pause { length, until });
        }
        tube.is_some()
    }

    /// Makes sure that no new job gets an id up to this one, unless it is from
    /// [`JobId::UNCOUNTED`] on.
    pub fn skip_ids(&mut self, highest: JobId) {
        if highest >= JobId::UNCOUNTED {
            return;
        }
        let sequence = match self.ids {
            IdScheme::Plain => highest.0,
            IdScheme::Slotted => highest.0 >> SLOT_BITS,
        };
        self.next_sequence = self.next_sequence.max(sequence.saturating_add(1));
    }

    /// Gives `write` the job as a journal would write it anew; None if there is none.
    pub fn write_anew<R>(&self, id: JobId, write: impl FnOnce(Record<'_>) -> R) -> Option<R> {
        let slot = self.jobs.find(id)?;
        Some(write(Record::Put {
            key: JobKey(slot),
            job: &self.jobs.record(slot),
            tube: self.tubes[self.jobs[slot].tube].name.as_name(),
            body: &self.jobs.body(slot),
        }))
    }
}
