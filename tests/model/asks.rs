//! What each ask that changes something does in the plainest queue, step by step as the description
//! of the original has it (2.4).

use beanshard::base::ids::{JobId, Pri, Seq, SessionId};
use beanshard::base::name::{TubeName, TubeNameBuf};
use beanshard::base::time::Secs;
use beanshard::engine::event::Event;
use beanshard::engine::host::{Journal, Record};
use beanshard::engine::job::JobCounts;
use beanshard::engine::job::JobKey;
use beanshard::engine::op::{Put, Style};

use super::{Asked, Job, Mood, Naive, State};
use crate::steps::TUBES;

/// put, and what tells where it puts to and reserve where it takes from.
impl Naive {
    pub(super) fn put(&mut self, asked: &mut Asked<'_>, put: Put) {
        let tube = self
            .using(asked.from.session)
            .expect("a session puts where it uses a tube");
        if self.draining {
            return asked.say(Event::Draining);
        }
        if asked.scribe.reserve_put(tube.as_name(), &put.body).is_err() {
            return asked.say(Event::OutOfMemory);
        }
        let id = put.id.unwrap_or_else(|| self.next_id(&tube));
        let state = if put.delay.0 == 0 {
            State::Ready
        } else {
            State::Delayed
        };
        self.jobs.push(Job {
            id,
            tube: tube.clone(),
            pri: put.pri,
            delay: put.delay,
            ttr: put.ttr,
            created_at: put.created_at,
            deadline: asked.now.after(put.delay),
            counts: JobCounts::default(),
            state,
            since: 0,
            is_astray: false,
            body: put.body.into_body(),
        });
        let job = &self.jobs[self.jobs.len() - 1];
        asked.scribe.append(Record::Put {
            key: JobKey(0),
            job: &job.record(),
            tube: tube.as_name(),
            body: &job.body,
        });
        self.total_jobs += 1;
        self.tube(tube.as_name()).expect("it is in use").total_jobs += 1;
        asked.say(Event::Inserted { id });
        self.serve(asked.now, asked.scribe);
    }

    pub(super) fn next_id(&mut self, tube: &TubeNameBuf) -> JobId {
        self.sequence += 1;
        let is_it = |(name, _): &&(&str, u64)| name.as_bytes() == tube.as_name().as_bytes();
        let (_, slot) = TUBES.iter().find(is_it).expect("all tubes are from there");
        JobId(if self.kind.slotted {
            self.sequence * 1024 + slot
        } else {
            self.sequence
        })
    }

    pub(super) fn use_tube(&mut self, asked: &mut Asked<'_>, tube: TubeName<'_>) {
        self.make(tube);
        self.session(asked.from.session).using = Some(tube.into());
        self.sweep();
        asked.say(Event::Using);
    }

    pub(super) fn unuse(&mut self, id: SessionId) {
        self.session(id).using = None;
        self.sweep();
    }

    pub(super) fn watch(&mut self, asked: &mut Asked<'_>, tube: TubeName<'_>) {
        self.make(tube);
        let watches = &mut self.session(asked.from.session).watches;
        if !watches.contains(&tube.into()) {
            watches.push(tube.into());
        }
        asked.say(Event::Watching);
    }

    pub(super) fn ignore(&mut self, asked: &mut Asked<'_>, tube: TubeName<'_>) {
        let watches = &mut self.session(asked.from.session).watches;
        if let Some(at) = watches.iter().position(|watched| watched.as_name() == tube) {
            watches.swap_remove(at);
            self.sweep();
        }
        asked.say(Event::Ignored);
    }

    pub(super) fn pause_tube(&mut self, asked: &mut Asked<'_>, name: TubeName<'_>, length: Secs) {
        let Some(tube) = self.tube(name) else {
            return asked.say(Event::NotFound);
        };
        tube.pauses += 1;
        tube.pause = (length.0 > 0).then(|| (length, asked.now.after(length)));
        asked.say(Event::Paused);
        self.serve(asked.now, asked.scribe);
    }
}

/// Reserving.
impl Naive {
    /// As 2.4 has it: first the session waits, then all who wait are served, and then it is seen
    /// whether it still waits.
    pub(super) fn reserve(&mut self, asked: &mut Asked<'_>, style: Style, wait: bool) {
        let id = asked.from.session;
        self.end_offer(asked.now, id, asked.scribe);
        self.join_waiters(id);
        self.session(id).wait = Some((asked.from.seq, style));
        self.serve(asked.now, asked.scribe);
        if self.mood(id) != Mood::Waiting {
            return;
        }
        if !wait {
            self.end_wait(id);
        } else if self.is_held_back(id.frontend) {
            self.leave_waiters(id);
        }
        asked.say(Event::NoJob);
    }

    pub(super) fn end_wait(&mut self, id: SessionId) -> Option<(Seq, Style)> {
        self.leave_waiters(id);
        self.session(id).wait.take()
    }

    pub(super) fn is_held_back(&self, frontend: u16) -> bool {
        self.held_back.contains(&frontend)
    }

    /// The sessions of the frontend that wait, in the order in which they came.
    pub(super) fn waiting_of(&self, frontend: u16) -> Vec<SessionId> {
        let sessions = self.sessions.iter();
        let waiting = sessions.filter(|one| one.id.frontend == frontend && one.wait.is_some());
        let mut ids: Vec<SessionId> = waiting.map(|one| one.id).collect();
        ids.sort();
        ids
    }

    pub(super) fn join_waiters(&mut self, id: SessionId) {
        for tube in self.session(id).watches.clone() {
            let tube = self.tube(tube.as_name()).expect("it is watched");
            tube.waiters.push(id);
        }
    }

    pub(super) fn leave_waiters(&mut self, id: SessionId) {
        for tube in &mut self.tubes {
            if let Some(at) = tube.waiters.iter().position(|&waiter| waiter == id) {
                tube.waiters.swap_remove(at);
            }
        }
    }

    pub(super) fn accept(&mut self, asked: &mut Asked<'_>, id: JobId) {
        match self.find(id) {
            Some(job) if self.jobs[job].state == asked.offer() => {
                self.give(asked.now, job, asked.from, Style::Take, asked.scribe);
            }
            Some(_) | None => asked.say(Event::Gone),
        }
    }

    pub(super) fn decline(&mut self, asked: &mut Asked<'_>, id: JobId) {
        let offer = asked.offer();
        if let Some(job) = self.find(id).filter(|&job| self.jobs[job].state == offer) {
            self.change(job, State::Ready);
            self.serve(asked.now, asked.scribe);
        }
    }

    pub(super) fn cancel(&mut self, asked: &mut Asked<'_>) {
        let (session, seq) = (asked.from.session, asked.from.seq);
        let wait = self.session(session).wait;
        if wait.is_some_and(|(begun, _)| begun == seq) {
            self.end_wait(session);
        }
        asked.say(Event::Cancelled);
    }

    pub(super) fn reserve_job(&mut self, asked: &mut Asked<'_>, id: JobId) {
        match self.find(id) {
            Some(job) if !self.jobs[job].is_held() => {
                self.jobs[job].is_astray |= self.jobs[job].is_parked();
                self.give(asked.now, job, asked.from, Style::Take, asked.scribe);
            }
            Some(_) | None => asked.say(Event::NotFound),
        }
    }
}

/// What is done with a job by its id, and kick.
impl Naive {
    fn held(&self, asked: &Asked<'_>, id: JobId) -> Option<usize> {
        let held = State::Reserved(asked.from.session);
        self.find(id).filter(|&job| self.jobs[job].state == held)
    }

    pub(super) fn delete(&mut self, asked: &mut Asked<'_>, id: JobId) {
        let is_anothers = |job: &Job| match job.state {
            State::Reserved(by) => by != asked.from.session,
            State::Ready | State::Offered(..) | State::Delayed | State::Buried => false,
        };
        match self.find(id) {
            Some(at) if !is_anothers(&self.jobs[at]) => {
                let job = self.jobs.remove(at);
                self.tube(job.tube.as_name()).expect("it has a job").deletes += 1;
                self.sweep();
                asked.scribe.append(Record::Delete {
                    key: JobKey(0),
                    job: &job.record(),
                    body_len: job.body.len() as u32,
                });
                asked.say(Event::Deleted { id });
            }
            Some(_) | None => asked.say(Event::NotFound),
        }
    }

    pub(super) fn release(&mut self, asked: &mut Asked<'_>, id: JobId, pri: Pri, delay: Secs) {
        let Some(at) = self.held(asked, id) else {
            return asked.say(Event::NotFound);
        };
        if asked.scribe.reserve_update(id).is_err() {
            return asked.say(Event::OutOfMemory);
        }
        let job = &mut self.jobs[at];
        job.pri = pri;
        job.delay = delay;
        job.deadline = asked.now.after(delay);
        job.counts.releases += 1;
        self.change(
            at,
            if delay.0 == 0 {
                State::Ready
            } else {
                State::Delayed
            },
        );
        self.write(at, asked.scribe);
        asked.say(Event::Released { id });
        self.serve(asked.now, asked.scribe);
    }

    pub(super) fn bury(&mut self, asked: &mut Asked<'_>, id: JobId, pri: Pri) {
        let Some(job) = self.held(asked, id) else {
            return asked.say(Event::NotFound);
        };
        if asked.scribe.reserve_update(id).is_err() {
            return asked.say(Event::OutOfMemory);
        }
        self.jobs[job].pri = pri;
        self.jobs[job].counts.buries += 1;
        self.change(job, State::Buried);
        self.write(job, asked.scribe);
        asked.say(Event::Buried { id });
    }

    pub(super) fn touch(&mut self, asked: &mut Asked<'_>, id: JobId) {
        let Some(at) = self.held(asked, id) else {
            return asked.say(Event::NotFound);
        };
        let job = &mut self.jobs[at];
        job.deadline = asked.now.after(job.ttr);
        asked.say(Event::Touched {
            id,
            deadline: self.jobs[at].deadline,
        });
    }

    /// As 2.4 has it, but for Q7: the first job that cannot be kicked ends it.
    pub(super) fn kick(&mut self, asked: &mut Asked<'_>, count: u32) {
        let id = asked.from.session;
        let has_buried = self.first_buried(id).is_some();
        let mut kicked = 0;
        while kicked < count {
            let next = if has_buried {
                self.first_buried(id)
            } else {
                self.first_delayed(id)
            };
            let Some(job) = next else {
                break;
            };
            if !self.kick_one(asked, job) {
                break;
            }
            kicked += 1;
        }
        asked.say(Event::Kicked { count: kicked });
    }

    pub(super) fn kick_job(&mut self, asked: &mut Asked<'_>, id: JobId) {
        let job = self.find(id).filter(|&job| self.jobs[job].is_parked());
        if job.is_some_and(|job| self.kick_one(asked, job)) {
            asked.say(Event::KickedJob);
        } else {
            asked.say(Event::NotFound);
        }
    }

    fn kick_one(&mut self, asked: &mut Asked<'_>, job: usize) -> bool {
        if asked.scribe.reserve_update(self.jobs[job].id).is_err() {
            return false;
        }
        self.jobs[job].counts.kicks += 1;
        self.change(job, State::Ready);
        self.write(job, asked.scribe);
        self.serve(asked.now, asked.scribe);
        true
    }

    pub(super) fn first_ready(&self, id: SessionId) -> Option<usize> {
        self.first_used(id, State::Ready, |job| (job.pri, job.id))
    }

    pub(super) fn first_delayed(&self, id: SessionId) -> Option<usize> {
        self.first_used(id, State::Delayed, |job| (job.deadline, job.id))
    }

    pub(super) fn first_buried(&self, id: SessionId) -> Option<usize> {
        self.first_used(id, State::Buried, |job| job.since)
    }

    /// The first job in this state of the tube in use.
    fn first_used<K: Ord>(
        &self,
        id: SessionId,
        state: State,
        key: impl Fn(&Job) -> K,
    ) -> Option<usize> {
        let tube = self.using(id)?;
        self.first(|job| job.tube == tube && job.state == state, key)
    }
}
