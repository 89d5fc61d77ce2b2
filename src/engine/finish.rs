//! delete, release, bury, touch: what a session does with a job that it holds.

use crate::base::ids::{JobId, Pri};
use crate::base::time::{Nanos, Secs};
use crate::engine::event::Event;
use crate::engine::host::{Host, Record};
use crate::engine::job::JobState;
use crate::engine::{By, Engine};

impl Engine {
    /// Anybody may delete a job that nobody holds (C4.3).
    pub(super) fn delete(&mut self, by: By, id: JobId, host: &mut impl Host) {
        let job = self
            .jobs
            .find(id)
            .filter(|&job| match self.jobs[job].record.state {
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
        self.remove(job);
        host.append(Record::Delete { id });
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
        self.jobs[job].record.delay = delay;
        self.jobs[job].record.counts.releases += 1;
        if delay.0 == 0 {
            self.make_ready(job);
        } else {
            self.make_delayed(job, now.after(delay));
        }
        host.append(Record::Update {
            job: &self.jobs[job].record,
        });
        host.emit(by.from, Event::Released { id });
        self.serve(now, self.jobs[job].tube, host);
    }

    pub(super) fn bury(&mut self, by: By, id: JobId, pri: Pri, host: &mut impl Host) {
        let Some(job) = self.held_by(by, id) else {
            return host.emit(by.from, Event::NotFound);
        };
        if host.reserve_update(id).is_err() {
            return host.emit(by.from, Event::OutOfMemory);
        }

        // Nothing below can fail.
        self.set_pri(job, pri);
        self.jobs[job].record.counts.buries += 1;
        self.make_buried(job);
        host.append(Record::Update {
            job: &self.jobs[job].record,
        });
        host.emit(by.from, Event::Buried { id });
    }

    pub(super) fn touch(&mut self, now: Nanos, by: By, id: JobId, host: &mut impl Host) {
        let Some(job) = self.held_by(by, id) else {
            return host.emit(by.from, Event::NotFound);
        };
        let deadline = now.after(self.jobs[job].record.ttr);
        self.set_deadline(job, deadline);
        host.emit(by.from, Event::Touched { id, deadline });
    }

    fn held_by(&self, by: By, id: JobId) -> Option<u32> {
        let held = JobState::Reserved { by: by.client };
        self.jobs
            .find(id)
            .filter(|&job| self.jobs[job].record.state == held)
    }
}
