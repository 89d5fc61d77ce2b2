//! The moves that every command is made of: a job leaves the place of its state and enters that of
//! another. Here and nowhere else are heaps, lists and gauges kept in step with the state.

use crate::base::ids::{Pri, Seq};
use crate::base::time::Nanos;
use crate::engine::Engine;
use crate::engine::client::Reserve;
use crate::engine::host::Host;
use crate::engine::job::{DueKey, JobState, ReadyKey};
use crate::engine::jobs::Job;

/// Nanoseconds between two burials at least. A journal keeps their order by their moments, and
/// keeps these in microseconds.
const BURIAL_STEP_NANOS: u64 = 1000;

impl Engine {
    /// The job can be reserved by whoever asks. The caller serves the tube next.
    pub(super) fn make_ready(&mut self, job: u32) {
        self.leave(job);
        self.enter(job, JobState::Ready, Nanos::MAX);
    }

    /// The job becomes ready at `deadline`.
    pub(super) fn make_delayed(&mut self, job: u32, deadline: Nanos) {
        self.leave(job);
        self.enter(job, JobState::Delayed, deadline);
    }

    /// The job is the last of those buried.
    pub(super) fn make_buried(&mut self, job: u32, now: Nanos) {
        self.leave(job);
        let moment = self.burial_moment(now);
        self.enter(job, JobState::Buried, moment);
    }

    /// The moment of a burial: this one, or as soon as may be after the latest.
    pub(super) fn burial_moment(&mut self, moment: Nanos) -> Nanos {
        let next = Nanos(self.last_burial.0.saturating_add(BURIAL_STEP_NANOS));
        self.last_burial = moment.max(next);
        self.last_burial
    }

    /// The client holds the job until `deadline`.
    pub(super) fn make_reserved(&mut self, job: u32, by: u32, deadline: Nanos) {
        self.leave(job);
        self.enter(job, JobState::Reserved { by }, deadline);
    }

    /// The job is kept for the client, which has asked under `seq`, until `deadline`.
    pub(super) fn make_offered(&mut self, job: u32, to: u32, seq: Seq, deadline: Nanos) {
        self.leave(job);
        self.clients[to].reserve = Reserve::Offered { seq, job };
        self.enter(job, JobState::Offered { to }, deadline);
    }

    /// Gives a job another priority. Only for jobs in a state that is not ordered by it.
    pub(super) fn set_pri(&mut self, job: u32, pri: Pri) {
        debug_assert!(!matches!(
            self.jobs.state(job),
            JobState::Ready | JobState::Offered { .. }
        ));
        self.jobs[job].pri = pri;
    }

    /// Moves the end of a reservation.
    pub(super) fn set_deadline(&mut self, job: u32, deadline: Nanos) {
        let jobs = &mut self.jobs;
        debug_assert!(matches!(jobs.state(job), JobState::Reserved { .. }));
        let (id, position) = (jobs[job].id, jobs[job].position);
        let more = jobs.more_mut(job);
        let before = DueKey::new(more.deadline, id);
        let after = DueKey::new(deadline, id);
        more.deadline = deadline;
        self.held
            .change(position, before, after, |slot, at| jobs.place(slot, at));
    }

    /// Takes the job out of the queue for good; its tube may vanish with it.
    pub(super) fn remove(&mut self, job: u32, host: &mut impl Host) {
        self.leave(job);
        let (tube, body_len) = self.jobs.remove(job);
        self.body_bytes -= body_len;
        self.tubes[tube].job_count -= 1;
        self.drop_if_unreferred(tube, host);
    }

    /// Brings a job that is in no place yet to that of its state, which ends at `deadline` or, of a
    /// buried one, began then.
    pub(super) fn enter(&mut self, job: u32, state: JobState, deadline: Nanos) {
        let jobs = &mut self.jobs;
        jobs.set_state(job, state, deadline);
        let Job { id, pri, tube, .. } = jobs[job];
        self.gauges.enter(state, pri);
        let home = &mut self.tubes[tube];
        home.gauges.enter(state, pri);
        let due_key = DueKey::new(deadline, id);
        match state {
            JobState::Ready => {
                let key = ReadyKey::new(pri, id);
                home.ready.push(key, job, |slot, at| jobs.place(slot, at));
            }
            JobState::Delayed => {
                let had = !home.delayed.is_empty();
                home.delayed
                    .push(due_key, job, |slot, at| jobs.place(slot, at));
                self.tubes.delayed_changed(tube, had);
            }
            JobState::Buried => home.buried.push_back(job, jobs),
            JobState::Reserved { by } => {
                self.clients[by].reserved.push_back(job, jobs);
                self.held
                    .push(due_key, job, |slot, at| jobs.place(slot, at));
            }
            JobState::Offered { .. } => {
                self.held
                    .push(due_key, job, |slot, at| jobs.place(slot, at));
            }
        }
    }

    fn leave(&mut self, job: u32) {
        let jobs = &mut self.jobs;
        let (state, deadline) = jobs.state_and_deadline(job);
        let Job {
            id,
            pri,
            tube,
            position,
            ..
        } = jobs[job];
        self.gauges.leave(state, pri);
        let home = &mut self.tubes[tube];
        home.gauges.leave(state, pri);
        let due_key = DueKey::new(deadline, id);
        match state {
            JobState::Ready => {
                let key = ReadyKey::new(pri, id);
                home.ready
                    .remove(position, key, |slot, at| jobs.place(slot, at));
            }
            JobState::Delayed => {
                home.delayed
                    .remove(position, due_key, |slot, at| jobs.place(slot, at));
                self.tubes.delayed_changed(tube, true);
            }
            JobState::Buried => home.buried.remove(job, jobs),
            JobState::Reserved { by } => {
                self.clients[by].reserved.remove(job, jobs);
                self.held
                    .remove(position, due_key, |slot, at| jobs.place(slot, at));
            }
            JobState::Offered { to } => {
                self.clients[to].reserve = Reserve::None;
                self.held
                    .remove(position, due_key, |slot, at| jobs.place(slot, at));
            }
        }
    }
}
