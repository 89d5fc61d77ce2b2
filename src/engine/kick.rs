//! kick and kick-job.

use crate::base::ids::JobId;
use crate::base::time::Nanos;
use crate::engine::event::Event;
use crate::engine::host::{Host, NoRoom};
use crate::engine::job::JobState;
use crate::engine::{By, Engine};

impl Engine {
    /// Kicks up to `count` jobs of the tube in use: buried ones, oldest burial first, and only if
    /// there is none, delayed ones, the next to be ready first.
    pub(super) fn kick(&mut self, now: Nanos, by: By, count: u32, host: &mut impl Host) {
        let mut kicked = 0;
        if let Some(tube) = self.clients[by.client].using {
            let buried = !self.tubes[tube].buried.is_empty();
            while kicked < count
                && let Some(job) = self.next_to_kick(tube, buried)
                && self.kick_one(now, job, host).is_ok()
            {
                kicked += 1;
            }
        }
        host.emit(by.from, Event::Kicked { count: kicked });
    }

    pub(super) fn kick_job(&mut self, now: Nanos, by: By, id: JobId, host: &mut impl Host) {
        let job = self
            .jobs
            .find(id)
            .filter(|&job| match self.jobs.state(job) {
                JobState::Buried | JobState::Delayed => true,
                JobState::Ready | JobState::Offered { .. } | JobState::Reserved { .. } => false,
            });
        let kicked = job.is_some_and(|job| self.kick_one(now, job, host).is_ok());
        host.emit(
            by.from,
            if kicked {
                Event::KickedJob
            } else {
                Event::NotFound
            },
        );
    }

    fn next_to_kick(&self, tube: u32, buried: bool) -> Option<u32> {
        let tube = &self.tubes[tube];
        if buried {
            tube.buried.front()
        } else {
            tube.delayed.first().map(|entry| entry.slot)
        }
    }

    fn kick_one(&mut self, now: Nanos, job: u32, host: &mut impl Host) -> Result<(), NoRoom> {
        host.reserve_update(self.jobs[job].id)?;

        // Nothing below can fail.
        self.jobs.more_mut(job).counts.kicks += 1;
        self.make_ready(job);
        self.append_update(job, host);
        self.serve(now, self.jobs[job].tube, host);
        Ok(())
    }
}
