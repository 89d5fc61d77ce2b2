//! What each ask that changes nothing shows of the plainest queue. Everything is counted anew.

use beanshard::base::ids::JobId;
use beanshard::base::name::TubeName;
use beanshard::base::time::Secs;
use beanshard::engine::event::Event;
use beanshard::engine::host::Journal;
use beanshard::engine::job::JobKey;
use beanshard::engine::stats::{JobGauges, JobStats, ShardStats, TubeStats};

use super::{Asked, Job, Naive, Session, State};

/// What is shown.
impl Naive {
    pub(super) fn show(&self, asked: &mut Asked<'_>, job: Option<usize>) {
        match job.map(|job| &self.jobs[job]) {
            Some(Job { id, body, .. }) => asked.say(Event::Found {
                id: *id,
                body: body.clone().into(),
            }),
            None => asked.say(Event::NotFound),
        }
    }

    pub(super) fn stats_job(&self, asked: &mut Asked<'_>, id: JobId) {
        let Some(job) = self.find(id).map(|job| &self.jobs[job]) else {
            return asked.say(Event::NotFound);
        };
        let left_secs = match job.state {
            State::Reserved(_) | State::Delayed => job.deadline.0 - asked.now.0,
            State::Ready | State::Offered(..) | State::Buried => 0,
        };
        asked.say(Event::JobStats(JobStats {
            id,
            tube: job.tube.as_name(),
            state: job.record().state,
            pri: job.pri,
            age_secs: (asked.now.0 - job.created_at.0) / 1_000_000_000,
            delay: job.delay,
            ttr: job.ttr,
            left_secs: left_secs / 1_000_000_000,
            segment: asked.scribe.segment_of(id, JobKey(0)),
            counts: job.counts,
        }));
    }

    pub(super) fn stats_tube(&self, asked: &mut Asked<'_>, name: TubeName<'_>) {
        let Some(tube) = self.tubes.iter().find(|tube| tube.name.as_name() == name) else {
            return asked.say(Event::NotFound);
        };
        let using = |session: &&Session| session.using.as_ref() == Some(&tube.name);
        let watching = |session: &&Session| session.watches.contains(&tube.name);
        let waiting = |session: &&Session| watching(session) && session.wait.is_some();
        let (length, end) = tube.pause.unwrap_or((Secs(0), asked.now));
        asked.say(Event::TubeStats(TubeStats {
            name,
            jobs: self.gauges(|job| job.tube == tube.name),
            total_jobs: tube.total_jobs,
            using: self.sessions.iter().filter(using).count() as u64,
            watching: self.sessions.iter().filter(watching).count() as u64,
            waiting: self.sessions.iter().filter(waiting).count() as u64,
            deletes: tube.deletes,
            pauses: tube.pauses,
            pause: length,
            pause_left_secs: (end.0 - asked.now.0) / 1_000_000_000,
        }));
    }

    pub(super) fn stats(&self, asked: &mut Asked<'_>) {
        asked.say(Event::ShardStats(ShardStats {
            jobs: self.gauges(|_| true),
            job_timeouts: self.timeouts,
            total_jobs: self.total_jobs,
            tubes: self.tubes.len() as u64,
            journal: asked.scribe.stats(),
        }));
    }

    pub(super) fn list_tubes(&self, asked: &mut Asked<'_>) {
        for tube in &self.tubes {
            asked.say(Event::Tube(tube.name.as_name()));
        }
        asked.say(Event::TubesEnd);
    }

    fn gauges(&self, fits: impl Fn(&Job) -> bool) -> JobGauges {
        let count = |is_it: &dyn Fn(&Job) -> bool| {
            self.jobs
                .iter()
                .filter(|job| fits(job) && is_it(job))
                .count() as u64
        };
        let is_ready = |job: &Job| matches!(job.state, State::Ready | State::Offered(..));
        JobGauges {
            urgent: count(&|job| is_ready(job) && job.pri.0 < 1024),
            ready: count(&is_ready),
            reserved: count(&|job| matches!(job.state, State::Reserved(_))),
            delayed: count(&|job| job.state == State::Delayed),
            buried: count(&|job| job.state == State::Buried),
        }
    }
}
