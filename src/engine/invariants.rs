//! Every relation between the engine's tables, checked in tests and in debug builds on demand.

use crate::engine::Engine;
use crate::engine::job::{DueKey, JobState, ReadyKey};
use crate::engine::stats::JobGauges;

impl Engine {
    /// Recounts everything.
    ///
    /// # Panics
    /// If something is not as it must be.
    pub fn check_invariants(&self) {
        self.check_jobs();
        self.check_tubes();
        self.check_clients();
    }

    fn check_jobs(&self) {
        let mut gauges = JobGauges::default();
        let (mut held, mut body_bytes) = (0, 0);
        for (slot, job) in self.jobs.iter() {
            let record = &self.jobs.record(slot);
            assert_eq!(
                self.jobs.find(record.id),
                Some(slot),
                "{:?} is found by id",
                record.id
            );
            gauges.enter(record.state, record.pri);
            body_bytes += self.jobs.body(slot).len();
            let (ready_key, due_key) = (
                ReadyKey::new(record.pri, record.id),
                DueKey::new(record.deadline, record.id),
            );
            let tube = &self.tubes[job.tube];
            match record.state {
                JobState::Ready => {
                    let entry = tube.ready.at(job.position, ready_key);
                    assert_eq!(entry.map(|entry| entry.slot), Some(slot));
                }
                JobState::Delayed => {
                    let entry = tube.delayed.at(job.position, due_key);
                    assert_eq!(entry.map(|entry| entry.slot), Some(slot));
                }
                JobState::Buried => {
                    assert!(tube.buried.iter(&self.jobs).any(|buried| buried == slot));
                }
                JobState::Reserved { by } => {
                    held += 1;
                    let mut reserved = self.clients[by].reserved.iter(&self.jobs);
                    assert!(reserved.any(|reserved| reserved == slot));
                    let entry = self.held.at(job.position, due_key);
                    assert_eq!(entry.map(|entry| entry.slot), Some(slot));
                }
                JobState::Offered { to } => {
                    held += 1;
                    assert_eq!(self.clients[to].offer(), Some(slot));
                }
            }
        }
        assert_eq!(self.gauges, gauges, "gauges equal a recount");
        assert_eq!(
            self.held.iter().count(),
            held,
            "what ends by itself is what is held"
        );
        assert_eq!(self.body_bytes, body_bytes, "bytes equal a recount");
    }

    fn check_tubes(&self) {
        for (slot, tube) in self.tubes.iter() {
            let jobs = || self.jobs.iter().filter(|(_, job)| job.tube == slot);
            let mut gauges = JobGauges::default();
            jobs().for_each(|(job, one)| gauges.enter(self.jobs.state(job), one.pri));
            assert_eq!(
                tube.gauges, gauges,
                "gauges of {:?} equal a recount",
                tube.name
            );
            assert_eq!(tube.job_count, jobs().count());
            assert_eq!(tube.buried.len() as u64, gauges.buried);
            assert_eq!(tube.delayed.iter().count() as u64, gauges.delayed);
            assert!(
                !tube.can_serve(),
                "{:?} has a ready job and a waiter that may have it",
                tube.name
            );
            let parked = self
                .clients
                .iter()
                .filter(|&(client, _)| self.is_held_back(client))
                .filter(|(_, c)| c.wait().is_some() && c.watch_index(slot).is_some());
            assert_eq!(tube.parked as usize, parked.count(), "parked ones, counted");
            let using = self
                .clients
                .iter()
                .filter(|(_, client)| client.using == Some(slot));
            assert_eq!(tube.using as usize, using.count());
            let watching = self
                .clients
                .iter()
                .filter(|(_, c)| c.watch_index(slot).is_some());
            assert_eq!(tube.watching as usize, watching.count());
            let referred_to = tube.using > 0 || tube.watching > 0 || tube.job_count > 0;
            assert!(referred_to || tube.name.as_name() == crate::base::name::TubeName::DEFAULT);
            for (waiter, index) in tube.waiters().iter().zip(0u32..) {
                let client = &self.clients[waiter.client];
                let watch = client.watches.as_slice()[waiter.watch as usize];
                assert!(client.wait().is_some() && watch.tube == slot && watch.waiter == index);
            }
            assert_eq!(self.tubes.find(tube.name.as_name()), Some(slot));
        }
        let earliest = self
            .tubes
            .iter()
            .filter_map(|(_, tube)| tube.delayed.first());
        assert_eq!(
            self.tubes.next_due().map(|(_, at)| at),
            earliest.map(|entry| entry.key.deadline).min()
        );
        let pauses = self.tubes.iter().filter_map(|(_, tube)| tube.pause);
        assert_eq!(
            self.tubes.next_pause_end().map(|(_, at)| at),
            pauses.map(|pause| pause.until).min()
        );
        assert_eq!(self.tubes.names().count(), self.tubes.len());
    }

    fn check_clients(&self) {
        for (slot, client) in self.clients.iter() {
            assert_eq!(self.clients.find(client.session), Some(slot));
            let waits = client.watches.as_slice().iter().filter(|watch| {
                let waiters = self.tubes[watch.tube].waiters();
                waiters.iter().any(|waiter| waiter.client == slot)
            });
            let is_among_waiters = client.wait().is_some() && !self.is_held_back(slot);
            let expected = if is_among_waiters {
                client.watches.len()
            } else {
                0
            };
            assert_eq!(
                waits.count(),
                expected,
                "a client waits at all its tubes, or at none if it is parked"
            );
            for job in client.reserved.iter(&self.jobs) {
                assert_eq!(self.jobs.state(job), JobState::Reserved { by: slot });
            }
        }
    }
}
