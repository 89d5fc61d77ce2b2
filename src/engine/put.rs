//! put.

use crate::base::ids::{JobId, SessionId};
use crate::base::time::Nanos;
use crate::engine::event::Event;
use crate::engine::host::{Host, Record};
use crate::engine::job::{JobCounts, JobKey, JobRecord, JobState};
use crate::engine::op::Put;
use crate::engine::{By, Engine};

impl Engine {
    /// Takes the next id, for a job that the session has begun to send. An id that is taken is
    /// never given to another job, also if no job comes of it (K5). None if the session uses no
    /// tube of this shard, or there is no id left.
    pub fn take_id(&mut self, session: SessionId) -> Option<JobId> {
        let client = self.clients.find(session)?;
        let tube = self.clients[client].using?;
        Some(self.next_id(tube))
    }

    pub(super) fn put(&mut self, now: Nanos, by: By, put: Put<'_>, host: &mut impl Host) {
        let Some(tube) = self.clients[by.client].using else {
            debug_assert!(false, "a session puts where it uses a tube");
            return host.emit(by.from, Event::NotFound);
        };
        if self.draining {
            return host.emit(by.from, Event::Draining);
        }
        if host
            .reserve_put(self.tubes[tube].name.as_name(), &put.body)
            .is_err()
        {
            return host.emit(by.from, Event::OutOfMemory);
        }

        // Nothing below can fail.
        let id = put.id.unwrap_or_else(|| self.next_id(tube));
        let state = if put.delay.0 == 0 {
            JobState::Ready
        } else {
            JobState::Delayed
        };
        self.body_bytes += put.body.len();
        let record = JobRecord {
            id,
            pri: put.pri,
            delay: put.delay,
            ttr: put.ttr,
            created_at: put.created_at,
            deadline: now.after(put.delay),
            counts: JobCounts::default(),
            state,
        };
        let job = self.jobs.insert(&record, tube, &put.body);
        self.enter(job, state, record.deadline);
        self.total_jobs += 1;
        let home = &mut self.tubes[tube];
        home.job_count += 1;
        home.total_jobs += 1;
        host.append(Record::Put {
            key: JobKey(job),
            job: &record,
            tube: self.tubes[tube].name.as_name(),
            body: &put.body,
        });
        host.emit(by.from, Event::Inserted { id });
        self.serve(now, tube, host);
    }

    fn next_id(&mut self, tube: u32) -> JobId {
        let id = self.ids.id(self.next_sequence, self.tubes[tube].slot);
        self.next_sequence += 1;
        id
    }
}
