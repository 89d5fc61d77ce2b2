//! The queue: tubes, jobs, who holds and who waits. A state machine without a clock, a socket or a
//! file: it is told what is asked and what time it is, and says the outcome to its host.
//!
//! The invariant everything rests on: between calls, no tube that is not paused has both a ready
//! job and a session that waits for it and may have it, which is any whose frontend is not held
//! back. So whatever happens makes at most one tube servable, and nobody ever has to look for it.

mod client;
pub mod event;
mod finish;
mod hold_back;
pub mod host;
mod index;
#[cfg(any(test, debug_assertions))]
mod invariants;
pub mod job;
mod jobs;
mod kick;
mod moves;
pub mod op;
mod pause;
mod peek;
mod put;
pub mod replay;
mod reserve;
pub mod stats;
#[cfg(test)]
mod tests;
mod tube;
mod watch;

use std::collections::BTreeSet;

use crate::base::hash::NameHasher;
use crate::base::ids::{Caller, JobId, Seq, SessionId};
use crate::base::name::TubeName;
use crate::base::queue::Queue;
use crate::base::time::Nanos;
use crate::engine::client::Clients;
use crate::engine::event::Event;
use crate::engine::host::Host;
use crate::engine::job::{DueKey, JobKey, JobState};
use crate::engine::jobs::Jobs;
use crate::engine::op::Op;
use crate::engine::stats::{JobGauges, JobStats, ShardStats, TubeStats};
use crate::engine::tube::{TUBE_OVERHEAD_BYTES, Tubes};

pub use crate::engine::tube::IdScheme;

/// See the module's description.
pub struct Engine {
    jobs: Jobs,
    tubes: Tubes,
    clients: Clients,
    /// Reserved jobs and those on offer, by when that ends.
    held: Queue<DueKey>,
    /// Frontends whose waiters are handed nothing: no more than there are frontends.
    held_back: BTreeSet<u16>,
    ids: IdScheme,
    /// Sequence of the next job.
    next_sequence: u64,
    draining: bool,
    gauges: JobGauges,
    job_timeouts: u64,
    total_jobs: u64,
    /// Sum of the lengths of all bodies.
    body_bytes: usize,
    /// Moment of the latest burial.
    last_burial: Nanos,
}

/// What an engine is made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How ids are made.
    pub ids: IdScheme,
    /// The key under which names are hashed: random in a server, fixed in tests.
    pub hasher: NameHasher,
    /// Whether the default tube, which always exists, is this shard's.
    pub has_default: bool,
}

/// The session is not attached: its ask was refused and has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAttached;

impl Engine {
    /// An engine without jobs.
    #[must_use]
    pub fn new(settings: Settings) -> Engine {
        let kept = settings.has_default.then_some(TubeName::DEFAULT);
        Engine {
            jobs: Jobs::new(settings.ids.sequence_at()),
            tubes: Tubes::new(settings.hasher, kept),
            clients: Clients::default(),
            held: Queue::default(),
            held_back: BTreeSet::new(),
            ids: settings.ids,
            next_sequence: 1,
            draining: false,
            gauges: JobGauges::default(),
            job_timeouts: 0,
            total_jobs: 0,
            body_bytes: 0,
            last_burial: Nanos(0),
        }
    }

    /// Does what the session asks. All events that follow from it, for this and for other
    /// sessions, are emitted before the call returns.
    ///
    /// # Errors
    /// [`NotAttached`] if the session is not: nothing has changed then.
    pub fn apply(
        &mut self,
        now: Nanos,
        from: Caller,
        op: Op<'_>,
        host: &mut impl Host,
    ) -> Result<(), NotAttached> {
        let client = self.clients.find(from.session).ok_or(NotAttached)?;
        let by = By { client, from };
        match op {
            Op::Use { tube } => self.use_tube(by, tube, host),
            Op::Unuse => self.unuse(client, host),
            Op::Watch { tube } => self.watch(by, tube, host),
            Op::Ignore { tube } => self.ignore(by, tube, host),
            Op::Put(put) => self.put(now, by, put, host),
            Op::Reserve { style, wait } => self.reserve(now, by, style, wait, host),
            Op::Accept { id } => self.accept(now, by, id, host),
            Op::Decline { id } => self.decline(now, by, id, host),
            Op::Cancel => self.cancel(by, host),
            Op::ReserveJob { id } => self.reserve_job(now, by, id, host),
            Op::Delete { id } => self.delete(by, id, host),
            Op::Release { id, pri, delay } => self.release(now, by, id, pri, delay, host),
            Op::Bury { id, pri } => self.bury(now, by, id, pri, host),
            Op::Touch { id } => self.touch(now, by, id, host),
            Op::Kick { count } => self.kick(now, by, count, host),
            Op::KickJob { id } => self.kick_job(now, by, id, host),
            Op::Peek { id } => self.peek(by, id, host),
            Op::PeekReady => self.peek_ready(by, host),
            Op::PeekDelayed => self.peek_delayed(by, host),
            Op::PeekBuried => self.peek_buried(by, host),
            Op::PauseTube { tube, pause } => self.pause_tube(now, by, tube, pause, host),
            Op::StatsJob { id } => self.stats_job(now, by, id, host),
            Op::StatsTube { tube } => self.stats_tube(now, by, tube, host),
            Op::Stats => host.emit(from, Event::ShardStats(self.stats(host))),
            Op::ListTubes => self.list_tubes(by, host),
        }
        Ok(())
    }

    /// Does what has fallen due by `now`: delayed jobs become ready, pauses end, reservations and
    /// offers run out. In this order, as in the original (3.8).
    pub fn tick(&mut self, now: Nanos, host: &mut impl Host) {
        while let Some((tube, due)) = self.tubes.next_due()
            && due <= now
        {
            let job = self.tubes[tube]
                .delayed
                .first()
                .expect("a due tube has a delayed job")
                .slot;
            self.make_ready(job);
            self.serve(now, tube, host);
        }
        while let Some((tube, end)) = self.tubes.next_pause_end()
            && end <= now
        {
            self.end_pause(tube, host);
            self.serve(now, tube, host);
        }
        while let Some(entry) = self.held.first()
            && entry.key.deadline <= now
        {
            self.expire(entry.slot, host);
            self.serve(now, self.jobs[entry.slot].tube, host);
        }
    }

    /// When [`Engine::tick`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let due = self.tubes.next_due().map(|(_, at)| at);
        let pause_end = self.tubes.next_pause_end().map(|(_, at)| at);
        let expiry = self.held.first().map(|entry| entry.key.deadline);
        [due, pause_end, expiry].into_iter().flatten().min()
    }

    /// Refuses new jobs from now on. There is no way back, as in the original (K21).
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Bytes that the jobs and tubes take, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.job_bytes() + self.tubes.len() * TUBE_OVERHEAD_BYTES
    }

    /// Bytes that the jobs take, about.
    #[must_use]
    pub fn job_bytes(&self) -> usize {
        self.jobs.bytes() + self.body_bytes
    }

    fn expire(&mut self, job: u32, host: &mut impl Host) {
        if let JobState::Reserved { by } = self.jobs.state(job) {
            let id = self.jobs[job].id;
            self.jobs.more_mut(job).counts.timeouts += 1;
            self.job_timeouts += 1;
            host.emit(self.clients[by].caller(Seq::NONE), Event::Expired { id });
        }
        self.make_ready(job);
    }

    fn stats_job(&self, now: Nanos, by: By, id: JobId, host: &mut impl Host) {
        let Some(slot) = self.jobs.find(id) else {
            return host.emit(by.from, Event::NotFound);
        };
        let tube = self.jobs[slot].tube;
        let record = self.jobs.record(slot);
        let left_secs = match record.state {
            JobState::Reserved { .. } | JobState::Delayed => record.deadline.secs_since(now),
            JobState::Ready | JobState::Offered { .. } | JobState::Buried => 0,
        };
        let stats = JobStats {
            id,
            tube: self.tubes[tube].name.as_name(),
            state: record.state,
            pri: record.pri,
            age_secs: now.secs_since(record.created_at),
            delay: record.delay,
            ttr: record.ttr,
            left_secs,
            segment: host.segment_of(id, JobKey(slot)),
            counts: record.counts,
        };
        host.emit(by.from, Event::JobStats(stats));
    }

    fn stats_tube(&self, now: Nanos, by: By, name: TubeName<'_>, host: &mut impl Host) {
        let Some(slot) = self.tubes.find(name) else {
            return host.emit(by.from, Event::NotFound);
        };
        let tube = &self.tubes[slot];
        let stats = TubeStats {
            name: tube.name.as_name(),
            jobs: tube.gauges,
            total_jobs: tube.total_jobs,
            using: tube.using.into(),
            watching: tube.watching.into(),
            waiting: tube.waiting(),
            deletes: tube.deletes,
            pauses: tube.pauses,
            pause: tube
                .pause
                .map_or_else(Default::default, |pause| pause.length),
            pause_left_secs: tube.pause.map_or(0, |pause| pause.until.secs_since(now)),
        };
        host.emit(by.from, Event::TubeStats(stats));
    }

    fn stats(&self, host: &impl Host) -> ShardStats {
        ShardStats {
            jobs: self.gauges,
            job_timeouts: self.job_timeouts,
            total_jobs: self.total_jobs,
            tubes: self.tubes.len() as u64,
            journal: host.stats(),
        }
    }

    fn list_tubes(&self, by: By, host: &mut impl Host) {
        for name in self.tubes.names() {
            host.emit(by.from, Event::Tube(name));
        }
        host.emit(by.from, Event::TubesEnd);
    }
}

impl Engine {
    /// Makes the session known; it uses and watches nothing yet. Does nothing if it is known.
    pub fn attach(&mut self, session: SessionId) {
        if self.clients.find(session).is_none() {
            self.clients.insert(session);
        }
    }

    /// Forgets the session: its wait ends, its jobs go back to where others can reserve them, and
    /// tubes that only it referred to vanish. Does nothing if the session is not known.
    pub fn detach(&mut self, now: Nanos, session: SessionId, host: &mut impl Host) {
        let Some(client) = self.clients.find(session) else {
            return;
        };
        self.end_wait(client);
        self.end_offer(now, client, host);
        while let Some(job) = self.clients[client].reserved.front() {
            self.make_ready(job);
            self.serve(now, self.jobs[job].tube, host);
        }
        self.unwatch_all(client, host);
        self.unuse(client, host);
        self.clients.remove(client);
    }
}

/// Who asks: the engine's client, and the session and ask to answer.
#[derive(Clone, Copy)]
struct By {
    client: u32,
    from: Caller,
}
