//! delete, release, bury, touch: what a session does with a job that it holds.

use crate::base::ids::{JobId, Pri};
use crate::base::time::{Nanos, Secs};
use crate::engine::event::Event;
use crate::engine::host::{Host, Record};
use crate::engine::job::{JobKey, JobState};
use crate::engine::{By, Engine};

impl Engine {
    /// Anybody may delete a job that nobody holds (C4.3).
    pub(super) fn delete(&mut self, by: By, id: JobId, host: &mut impl Host) {
        let job = self
            .jobs
            .find(id)
            .filter(|&job| match self.jobs.state(job) {
                JobState::Reserved { by: holder } => holder == by.client,
                JobState::Ready
                | JobState::Offered { .. }
                | JobState::Delayed
                | JobState::Buried => true,
            });
        let Some(job) = job else {
            return host.emit(by.from, Event::NotFound);
        };
        let tube = self.jobs[job].tube;
        self.tubes[tube].deletes += 1;
        host.append(Record::Delete {
            key: JobKey(job),
            job: &self.jobs.record(job),
            body_len: self.jobs.body_len(job),
        });
        self.remove(job, host);
        host.emit(by.from, Event::Deleted { id });
    }

    pub(super) fn release(
        &mut self,
        now: Nanos,
        by: By,
        id: JobId,
        pri: Pri,
        delay: Secs,
        host: &mut impl Host,
    ) {
        let Some(job) = self.held_by(by, id) else {
            return host.emit(by.from, Event::NotFound);
        };
        if host.reserve_update(id).is_err() {
            return host.emit(by.from, Event::OutOfMemory);
        }

        // Nothing below can fail.
        self.set_pri(job, pri);
        let more = self.jobs.more_mut(job);
        more.delay = delay;
        more.counts.releases += 1;
        if delay.0 == 0 {
            self.make_ready(job);
        } else {
            self.make_delayed(job, now.after(delay));
        }
        self.append_update(job, host);
        host.emit(by.from, Event::Released { id });
        self.serve(now, self.jobs[job].tube, host);
    }

    pub(super) fn bury(&mut self, now: Nanos, by: By, id: JobId, pri: Pri, host: &mut impl Host) {
        let Some(job) = self.held_by(by, id) else {
            return host.emit(by.from, Event::NotFound);
        };
        if host.reserve_update(id).is_err() {
            return host.emit(by.from, Event::OutOfMemory);
        }

        // Nothing below can fail.
        self.set_pri(job, pri);
        self.jobs.more_mut(job).counts.buries += 1;
        self.make_buried(job, now);
        self.append_update(job, host);
        host.emit(by.from, Event::Buried { id });
    }

    pub(super) fn touch(&mut self, now: Nanos, by: By, id: JobId, host: &mut impl Host) {
        let Some(job) = self.held_by(by, id) else {
            return host.emit(by.from, Event::NotFound);
        };
        let deadline = now.after(self.jobs[job].ttr);
        self.set_deadline(job, deadline);
        host.emit(by.from, Event::Touched { id, deadline });
    }

    /// Tells the journal of a job that has changed.
    pub(super) fn append_update(&self, job: u32, host: &mut impl Host) {
        host.append(Record::Update {
            job: &self.jobs.record(job),
            body_len: self.jobs.body_len(job),
        });
    }

    fn held_by(&self, by: By, id: JobId) -> Option<u32> {
        let held = JobState::Reserved { by: by.client };
        self.jobs
            .find(id)
            .filter(|&job| self.jobs.state(job) == held)
    }
}
