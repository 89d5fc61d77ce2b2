//! reserve and reserve-job, offers and their end, waiting, and handing a job over.

use crate::base::ids::JobId;
use crate::base::limits::OFFER_SECS_MAX;
use crate::base::time::{Nanos, Secs};
use crate::engine::client::{Reserve, Wait};
use crate::engine::event::Event;
use crate::engine::host::Host;
use crate::engine::job::JobState;
use crate::engine::jobs::Job;
use crate::engine::op::Style;
use crate::engine::tube::Waiter;
use crate::engine::{By, Engine};

impl Engine {
    pub(super) fn reserve(
        &mut self,
        now: Nanos,
        by: By,
        style: Style,
        wait: bool,
        host: &mut impl Host,
    ) {
        // What the session has not answered yet, or its answer is still under way.
        self.end_wait(by.client);
        self.end_offer(now, by.client, host);
        if self.reserve_at_once(now, by, style, host) {
            return;
        }
        if wait {
            let seq = by.from.seq;
            self.start_wait(by.client, Wait { seq, style });
        }
        host.emit(by.from, Event::NoJob);
    }

    /// Gives the client, which does not wait, the most urgent ready job that it watches. Whether
    /// there is one.
    pub(super) fn reserve_at_once(
        &mut self,
        now: Nanos,
        by: By,
        style: Style,
        host: &mut impl Host,
    ) -> bool {
        let Some(job) = self.best_watched(by.client) else {
            return false;
        };
        let tube = self.jobs[job].tube;
        self.tubes[tube].pass_cursor();
        self.give(now, job, by, style, host);
        true
    }

    pub(super) fn accept(&mut self, now: Nanos, by: By, id: JobId, host: &mut impl Host) {
        match self.offered(by, id) {
            Some(job) => self.give(now, job, by, Style::Take, host),
            None => host.emit(by.from, Event::Gone),
        }
    }

    pub(super) fn decline(&mut self, now: Nanos, by: By, id: JobId, host: &mut impl Host) {
        if let Some(job) = self.offered(by, id) {
            self.make_ready(job);
            self.serve(now, self.jobs[job].tube, host);
        }
    }

    pub(super) fn cancel(&mut self, by: By, host: &mut impl Host) {
        // By now the session may wait with a later ask, which this is not about.
        let wait = self.clients[by.client].wait();
        if wait.is_some_and(|wait| wait.seq == by.from.seq) {
            self.end_wait(by.client);
        }
        host.emit(by.from, Event::Cancelled);
    }

    pub(super) fn reserve_job(&mut self, now: Nanos, by: By, id: JobId, host: &mut impl Host) {
        let job = self
            .jobs
            .find(id)
            .filter(|&job| self.can_reserve_by_id(job));
        match job {
            Some(job) => self.give(now, job, by, Style::Take, host),
            None => host.emit(by.from, Event::NotFound),
        }
    }

    /// Lets ready jobs of the tube and sessions that wait for them meet, until one side runs out.
    /// To be called whenever a job of the tube has become ready or its pause has ended.
    pub(super) fn serve(&mut self, now: Nanos, tube: u32, host: &mut impl Host) {
        while self.tubes[tube].can_serve() {
            let job = self.tubes[tube]
                .ready
                .first()
                .expect("the tube can serve")
                .slot;
            let waiter = self.tubes[tube].take_waiter().expect("the tube can serve");
            let wait = self.clients[waiter.client].wait().expect("a waiter waits");
            self.leave_waiters(waiter.client);
            let by = By {
                client: waiter.client,
                from: self.clients[waiter.client].caller(wait.seq),
            };
            self.give(now, job, by, wait.style, host);
        }
    }

    /// Has the client, which does not wait, wait at all its tubes; parked if its frontend is held
    /// back.
    pub(super) fn start_wait(&mut self, client: u32, wait: Wait) {
        let is_parked = self.is_held_back(client);
        let watches = self.clients[client].watches.as_mut_slice();
        for (watch, index) in watches.iter_mut().zip(0..) {
            let tube = &mut self.tubes[watch.tube];
            if is_parked {
                tube.parked += 1;
            } else {
                let waiter = Waiter {
                    client,
                    watch: index,
                };
                watch.waiter = tube.add_waiter(waiter);
            }
        }
        self.clients[client].reserve = Reserve::Waiting(wait);
    }

    /// Ends the client's wait at all its tubes, if it waits.
    pub(super) fn end_wait(&mut self, client: u32) -> Option<Wait> {
        let wait = self.clients[client].wait()?;
        if self.is_held_back(client) {
            self.clients[client].reserve = Reserve::None;
            for watch in self.clients[client].watches.as_slice() {
                self.tubes[watch.tube].parked -= 1;
            }
        } else {
            self.leave_waiters(client);
        }
        Some(wait)
    }

    /// Takes a client that waits, and is not parked, off the waiters of all its tubes.
    fn leave_waiters(&mut self, client: u32) {
        self.clients[client].reserve = Reserve::None;
        for index in 0..self.clients[client].watches.len() {
            let watch = self.clients[client].watches.as_slice()[index];
            if let Some(moved) = self.tubes[watch.tube].remove_waiter(watch.waiter) {
                let watches = &mut self.clients[moved.client].watches;
                watches.as_mut_slice()[moved.watch as usize].waiter = watch.waiter;
            }
        }
    }

    /// Gives the job that is kept for the client back, if one is.
    pub(super) fn end_offer(&mut self, now: Nanos, client: u32, host: &mut impl Host) {
        if let Some(job) = self.clients[client].offer() {
            self.make_ready(job);
            self.serve(now, self.jobs[job].tube, host);
        }
    }

    /// The most urgent ready job of the tubes that the client watches and that are not paused.
    fn best_watched(&self, client: u32) -> Option<u32> {
        let watches = self.clients[client].watches.as_slice().iter();
        watches
            .map(|watch| &self.tubes[watch.tube])
            .filter(|tube| tube.pause.is_none())
            .filter_map(|tube| tube.ready.first())
            .min_by_key(|entry| entry.key)
            .map(|entry| entry.slot)
    }

    /// Hands the job over to the session, or offers it.
    fn give(&mut self, now: Nanos, job: u32, by: By, style: Style, host: &mut impl Host) {
        match style {
            Style::Take => {
                let deadline = now.after(self.jobs[job].ttr);
                self.make_reserved(job, by.client, deadline);
                self.jobs.more_mut(job).counts.reserves += 1;
                let event = Event::Reserved {
                    id: self.jobs[job].id,
                    deadline,
                    body: self.jobs.body(job),
                };
                host.emit(by.from, event);
            }
            Style::Offer => {
                let deadline = now.after(Secs(OFFER_SECS_MAX));
                self.make_offered(job, by.client, by.from.seq, deadline);
                let Job {
                    id,
                    pri,
                    created_at,
                    ..
                } = self.jobs[job];
                host.emit(
                    by.from,
                    Event::Offered {
                        id,
                        pri,
                        created_at,
                    },
                );
            }
        }
    }

    /// The job, if it is the one that is kept for this very ask.
    fn offered(&self, by: By, id: JobId) -> Option<u32> {
        match self.clients[by.client].reserve {
            Reserve::Offered { seq, job } if seq == by.from.seq => {
                (self.jobs[job].id == id).then_some(job)
            }
            Reserve::Offered { .. } | Reserve::Waiting(_) | Reserve::None => None,
        }
    }

    /// Anything but a job that somebody has or is about to have.
    fn can_reserve_by_id(&self, job: u32) -> bool {
        match self.jobs.state(job) {
            JobState::Ready | JobState::Delayed | JobState::Buried => true,
            JobState::Reserved { .. } | JobState::Offered { .. } => false,
        }
    }
}
