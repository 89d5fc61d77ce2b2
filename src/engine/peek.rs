//! peek and its three kin: they show a job and change nothing.

use crate::base::ids::JobId;
use crate::engine::event::Event;
use crate::engine::host::Host;
use crate::engine::tube::Tube;
use crate::engine::{By, Engine};

impl Engine {
    pub(super) fn peek(&self, by: By, id: JobId, host: &mut impl Host) {
        self.show(by, self.jobs.find(id), host);
    }

    pub(super) fn peek_ready(&self, by: By, host: &mut impl Host) {
        let first = self.used(by).and_then(|tube| tube.ready.first());
        self.show(by, first.map(|entry| entry.slot), host);
    }

    pub(super) fn peek_delayed(&self, by: By, host: &mut impl Host) {
        let first = self.used(by).and_then(|tube| tube.delayed.first());
        self.show(by, first.map(|entry| entry.slot), host);
    }

    pub(super) fn peek_buried(&self, by: By, host: &mut impl Host) {
        self.show(by, self.used(by).and_then(|tube| tube.buried.front()), host);
    }

    fn used(&self, by: By) -> Option<&Tube> {
        self.clients[by.client].using.map(|tube| &self.tubes[tube])
    }

    fn show(&self, by: By, job: Option<u32>, host: &mut impl Host) {
        match job {
            Some(job) => {
                host.emit(
                    by.from,
                    Event::Found {
                        id: self.jobs[job].id,
                        body: self.jobs.body(job),
                    },
                );
            }
            None => host.emit(by.from, Event::NotFound),
        }
    }
}
