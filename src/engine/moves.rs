//! The moves that every command is made of: a job leaves the place of its state and enters that of
//! another. Here and nowhere else are heaps, lists and gauges kept in step with the state.

use crate::base::ids::{Pri, Seq};
use crate::base::time::Nanos;
use crate::engine::Engine;
use crate::engine::client::Reserve;
use crate::engine::host::Host;
use crate::engine::job::{DueKey, JobState, ReadyKey};

/// Nanoseconds between two burials at least. A journal keeps their order by their moments, and
/// keeps these in microseconds.
const BURIAL_STEP_NANOS: u64 = 1000;

impl Engine {
    /// The job can be reserved by whoever asks. The caller serves the tube next.
    pub(super) fn make_ready(&mut self, job: u32) {
        self.leave(job);
        self.enter(job, JobState::Ready);
    }

    /// The job becomes ready at `deadline`.
    pub(super) fn make_delayed(&mut self, job: u32, deadline: Nanos) {
        self.leave(job);
        self.jobs[job].record.deadline = deadline;
        self.enter(job, JobState::Delayed);
    }

    /// The job is the last of those buried.
    pub(super) fn make_buried(&mut self, job: u32, now: Nanos) {
        self.leave(job);
        self.jobs[job].record.deadline = self.burial_moment(now);
        self.enter(job, JobState::Buried);
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
        self.jobs[job].record.deadline = deadline;
        self.enter(job, JobState::Reserved { by });
    }

    /// The job is kept for the client, which has asked under `seq`, until `deadline`.
    pub(super) fn make_offered(&mut self, job: u32, to: u32, seq: Seq, deadline: Nanos) {
        self.leave(job);
        self.jobs[job].record.deadline = deadline;
        self.clients[to].reserve = Reserve::Offered { seq, job };
        self.enter(job, JobState::Offered { to });
    }

    /// Gives a job another priority. Only for jobs in a state that is not ordered by it.
    pub(super) fn set_pri(&mut self, job: u32, pri: Pri) {
        let record = &mut self.jobs[job].record;
        debug_assert!(!matches!(
            record.state,
            JobState::Ready | JobState::Offered { .. }
        ));
        record.pri = pri;
    }

    /// Moves the end of a reservation.
    pub(super) fn set_deadline(&mut self, job: u32, deadline: Nanos) {
        let jobs = &mut self.jobs;
        debug_assert!(matches!(jobs[job].record.state, JobState::Reserved { .. }));
        jobs[job].record.deadline = deadline;
        let (position, key) = (jobs[job].position, DueKey::of(&jobs[job].record));
        self.held
            .change(position, key, |slot, at| jobs.place(slot, at));
    }

    /// Takes the job out of the queue for good; its tube may vanish with it.
    pub(super) fn remove(&mut self, job: u32, host: &mut impl Host) {
        self.leave(job);
        let job = self.jobs.remove(job);
        self.body_bytes -= job.body.len();
        self.tubes[job.tube].job_count -= 1;
        self.drop_if_unreferred(job.tube, host);
    }

    /// Brings a job that is in no place yet to that of its state.
    pub(super) fn enter(&mut self, job: u32, state: JobState) {
        let jobs = &mut self.jobs;
        jobs[job].record.state = state;
        let record = jobs[job].record;
        let tube = jobs[job].tube;
        self.gauges.enter(state, record.pri);
        self.tubes[tube].gauges.enter(state, record.pri);
        match state {
            JobState::Ready => {
                let key = ReadyKey::of(&record);
                self.tubes[tube]
                    .ready
                    .push(key, job, |slot, at| jobs.place(slot, at));
            }
            JobState::Delayed => {
                let delayed = &mut self.tubes[tube].delayed;
                let had = !delayed.is_empty();
                delayed.push(DueKey::of(&record), job, |slot, at| jobs.place(slot, at));
                self.tubes.delayed_changed(tube, had);
            }
            JobState::Buried => self.tubes[tube].buried.push_back(job, jobs),
            JobState::Reserved { by } => {
                self.clients[by].reserved.push_back(job, jobs);
                self.held
                    .push(DueKey::of(&record), job, |slot, at| jobs.place(slot, at));
            }
            JobState::Offered { .. } => {
                self.held
                    .push(DueKey::of(&record), job, |slot, at| jobs.place(slot, at));
            }
        }
    }

    fn leave(&mut self, job: u32) {
        let jobs = &mut self.jobs;
        let record = jobs[job].record;
        let (tube, position) = (jobs[job].tube, jobs[job].position);
        self.gauges.leave(record.state, record.pri);
        self.tubes[tube].gauges.leave(record.state, record.pri);
        match record.state {
            JobState::Ready => {
                self.tubes[tube]
                    .ready
                    .remove(position, |slot, at| jobs.place(slot, at));
            }
            JobState::Delayed => {
                self.tubes[tube]
                    .delayed
                    .remove(position, |slot, at| jobs.place(slot, at));
                self.tubes.delayed_changed(tube, true);
            }
            JobState::Buried => self.tubes[tube].buried.remove(job, jobs),
            JobState::Reserved { by } => {
                self.clients[by].reserved.remove(job, jobs);
                self.held.remove(position, |slot, at| jobs.place(slot, at));
            }
            JobState::Offered { to } => {
                self.clients[to].reserve = Reserve::None;
                self.held.remove(position, |slot, at| jobs.place(slot, at));
            }
        }
    }
}
