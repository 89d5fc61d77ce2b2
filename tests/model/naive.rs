//! The plainest queue that does what the original does: vectors in the order in which a client
//! would see them, searched from one end to the other, and no number kept that can be counted.
//! Written from the description of the original, not from the engine; L and Q are its rules.
//!
//! Where it has the engine's way and not the original's: in one tick reservations end by (deadline,
//! id) and not session by session, delays that end at one moment by id also across tubes, and a
//! pause ends in the tick alone, after the delays. A session that goes drops its tubes first to
//! last, where the original takes the first and then the last ones, last to first. Offers are ours:
//! a ready job out of everybody's reach, given back before what its session holds. Ours, too, is
//! that the waiters of a frontend can be held back: they are taken from among the waiters, and come
//! back as if they asked again, first session first.

mod asks;
mod shown;

use beanshard::base::body::Body;
use beanshard::base::ids::{Caller, JobId, Pri, Seq, SessionId};
use beanshard::base::name::{TubeName, TubeNameBuf};
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::NotAttached;
use beanshard::engine::event::Event;
use beanshard::engine::host::{Journal, Outbox, Record};
use beanshard::engine::job::{JobCounts, JobRecord, JobState};
use beanshard::engine::op::{Op, Style};

use crate::run::Queue;
use crate::scribe::{Kept, Scribe};
use crate::steps::{Among, Kind};

/// See the module's description.
pub(crate) struct Naive {
    kind: Kind,
    /// In the order of `list-tubes`.
    tubes: Vec<Tube>,
    /// In the order of their puts.
    jobs: Vec<Job>,
    sessions: Vec<Session>,
    /// Frontends whose sessions wait without standing among the waiters.
    held_back: Vec<u16>,
    sequence: u64,
    draining: bool,
    timeouts: u64,
    total_jobs: u64,
    /// Changes of state so far, to number them.
    changes: u64,
}

struct Tube {
    name: TubeNameBuf,
    waiters: Vec<SessionId>,
    cursor: usize,
    /// Length and end.
    pause: Option<(Secs, Nanos)>,
    total_jobs: u64,
    deletes: u64,
    pauses: u64,
}

struct Job {
    id: JobId,
    tube: TubeNameBuf,
    pri: Pri,
    delay: Secs,
    ttr: Secs,
    created_at: Nanos,
    deadline: Nanos,
    counts: JobCounts,
    state: State,
    /// Number of the change that brought it into its state.
    since: u64,
    /// Whether it was reserved while delayed or buried and nothing was written about it since: a
    /// restart does not know of that (L3.3), so it finds the job where it was.
    is_astray: bool,
    body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// To the session, in answer to this ask.
    Offered(SessionId, Seq),
    Reserved(SessionId),
    Delayed,
    Buried,
}

struct Session {
    id: SessionId,
    using: Option<TubeNameBuf>,
    watches: Vec<TubeNameBuf>,
    wait: Option<(Seq, Style)>,
}

/// What a session may do next, as its other half would let it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Absent,
    Free,
    Waiting,
    Offered,
}

/// An ask that is being answered.
struct Asked<'s> {
    now: Nanos,
    from: Caller,
    scribe: &'s mut Scribe,
}

impl Asked<'_> {
    /// The state of a job that is on offer to this very ask.
    fn offer(&self) -> State {
        State::Offered(self.from.session, self.from.seq)
    }

    fn say(&mut self, event: Event<'_>) {
        self.scribe.emit(self.from, event);
    }
}

impl Queue for Naive {
    fn attach(&mut self, session: SessionId) {
        if self.mood(session) == Mood::Absent {
            self.sessions.push(Session {
                id: session,
                using: None,
                watches: Vec::new(),
                wait: None,
            });
        }
    }

    /// L1.21.
    fn detach(&mut self, now: Nanos, id: SessionId, scribe: &mut Scribe) {
        if self.mood(id) == Mood::Absent {
            return;
        }
        self.end_wait(id);
        self.end_offer(now, id, scribe);
        while let Some(job) = self.first(|job| job.state == State::Reserved(id), |job| job.since) {
            self.change(job, State::Ready);
            self.serve(now, scribe);
        }
        // The first watched tube goes, the last one takes its place, and so on (L3.23).
        while !self.session(id).watches.is_empty() {
            self.session(id).watches.swap_remove(0);
            self.sweep();
        }
        self.session(id).using = None;
        self.sweep();
        self.sessions.retain(|session| session.id != id);
    }

    fn take_id(&mut self, session: SessionId) -> Option<JobId> {
        let tube = self.using(session)?;
        Some(self.next_id(&tube))
    }

    fn apply(
        &mut self,
        now: Nanos,
        from: Caller,
        op: Op<'_>,
        scribe: &mut Scribe,
    ) -> Result<(), NotAttached> {
        if self.mood(from.session) == Mood::Absent {
            return Err(NotAttached);
        }
        let asked = &mut Asked { now, from, scribe };
        match op {
            Op::Use { tube } => self.use_tube(asked, tube),
            Op::Unuse => self.unuse(from.session),
            Op::Watch { tube } => self.watch(asked, tube),
            Op::Ignore { tube } => self.ignore(asked, tube),
            Op::Put(put) => self.put(asked, put),
            Op::Reserve { style, wait } => self.reserve(asked, style, wait),
            Op::Accept { id } => self.accept(asked, id),
            Op::Decline { id } => self.decline(asked, id),
            Op::Cancel => self.cancel(asked),
            Op::ReserveJob { id } => self.reserve_job(asked, id),
            Op::Delete { id } => self.delete(asked, id),
            Op::Release { id, pri, delay } => self.release(asked, id, pri, delay),
            Op::Bury { id, pri } => self.bury(asked, id, pri),
            Op::Touch { id } => self.touch(asked, id),
            Op::Kick { count } => self.kick(asked, count),
            Op::KickJob { id } => self.kick_job(asked, id),
            Op::Peek { id } => self.show(asked, self.find(id)),
            Op::PeekReady => self.show(asked, self.first_ready(from.session)),
            Op::PeekDelayed => self.show(asked, self.first_delayed(from.session)),
            Op::PeekBuried => self.show(asked, self.first_buried(from.session)),
            Op::PauseTube { tube, pause } => self.pause_tube(asked, tube, pause),
            Op::StatsJob { id } => self.stats_job(asked, id),
            Op::StatsTube { tube } => self.stats_tube(asked, tube),
            Op::Stats => self.stats(asked),
            Op::ListTubes => self.list_tubes(asked),
        }
        Ok(())
    }

    /// In the order of section 3.8.
    fn tick(&mut self, now: Nanos, scribe: &mut Scribe) {
        let is_due = |job: &Job| job.state == State::Delayed && job.deadline <= now;
        while let Some(job) = self.first(is_due, |job| (job.deadline, job.id)) {
            self.change(job, State::Ready);
            self.serve(now, scribe);
        }
        while let Some(tube) = self
            .tubes
            .iter_mut()
            .filter(|tube| tube.pause.is_some_and(|(_, end)| end <= now))
            .min_by_key(|tube| tube.pause.map(|(_, end)| end))
        {
            tube.pause = None;
            self.serve(now, scribe);
        }
        let is_over = |job: &Job| job.is_held() && job.deadline <= now;
        while let Some(at) = self.first(is_over, |job| (job.deadline, job.id)) {
            let job = &mut self.jobs[at];
            if let State::Reserved(session) = job.state {
                job.counts.timeouts += 1;
                self.timeouts += 1;
                let seq = Seq(0);
                scribe.emit(Caller { session, seq }, Event::Expired { id: job.id });
            }
            self.change(at, State::Ready);
            self.serve(now, scribe);
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        let ends_by_itself = |job: &&Job| job.is_held() || job.state == State::Delayed;
        let jobs = self.jobs.iter().filter(ends_by_itself);
        let pauses = self.tubes.iter().filter_map(|tube| tube.pause);
        jobs.map(|job| job.deadline)
            .chain(pauses.map(|(_, end)| end))
            .min()
    }

    fn drain(&mut self) {
        self.draining = true;
    }

    fn hold_back(&mut self, frontend: u16) {
        if !self.is_held_back(frontend) {
            self.held_back.push(frontend);
            for id in self.waiting_of(frontend) {
                self.leave_waiters(id);
            }
        }
    }

    /// One after the other, as if they asked now.
    fn let_go(&mut self, now: Nanos, frontend: u16, scribe: &mut Scribe) {
        if self.is_held_back(frontend) {
            self.held_back.retain(|&held| held != frontend);
            for id in self.waiting_of(frontend) {
                self.join_waiters(id);
                self.serve(now, scribe);
            }
        }
    }
}

/// What the run asks of the model, to know what there is and what can be done.
impl Naive {
    pub(crate) fn new(kind: Kind) -> Naive {
        let mut naive = Naive {
            kind,
            tubes: Vec::new(),
            jobs: Vec::new(),
            sessions: Vec::new(),
            held_back: Vec::new(),
            sequence: 0,
            draining: false,
            timeouts: 0,
            total_jobs: 0,
            changes: 0,
        };
        if kind.has_default {
            naive.make(TubeName::DEFAULT);
        }
        naive
    }

    /// Takes back what is offered to the session, if something is.
    pub(super) fn end_offer(&mut self, now: Nanos, id: SessionId, scribe: &mut Scribe) {
        if let Some(job) = self.jobs.iter().position(|job| job.is_offered_to(id)) {
            self.change(job, State::Ready);
            self.serve(now, scribe);
        }
    }

    /// The ask that something is on offer to.
    pub(crate) fn offered_ask(&self, id: SessionId) -> Option<Seq> {
        self.jobs.iter().find_map(|job| match job.state {
            State::Offered(to, seq) if to == id => Some(seq),
            _ => None,
        })
    }

    /// The ask with which the session waits.
    pub(crate) fn waiting_ask(&self, id: SessionId) -> Option<Seq> {
        let session = self.sessions.iter().find(|session| session.id == id)?;
        session.wait.map(|(seq, _)| seq)
    }

    pub(crate) fn mood(&self, id: SessionId) -> Mood {
        let Some(session) = self.sessions.iter().find(|session| session.id == id) else {
            return Mood::Absent;
        };
        let has_offer = self.jobs.iter().any(|job| job.is_offered_to(id));
        match session.wait {
            Some(_) => Mood::Waiting,
            None if has_offer => Mood::Offered,
            None => Mood::Free,
        }
    }

    pub(crate) fn using(&self, id: SessionId) -> Option<TubeNameBuf> {
        let session = self.sessions.iter().find(|session| session.id == id)?;
        session.using.clone()
    }

    /// Whether the tube in use has a job that could be kicked.
    pub(crate) fn has_parked(&self, id: SessionId) -> bool {
        self.first_delayed(id).or(self.first_buried(id)).is_some()
    }

    /// The jobs that `among` means for the session, as they came.
    pub(crate) fn ids(&self, among: Among, session: SessionId) -> Vec<JobId> {
        let jobs = self.jobs.iter().filter(|job| match among {
            Among::Held => job.state == State::Reserved(session),
            Among::OnOffer => job.is_offered_to(session),
            Among::OnAnyOffer => matches!(job.state, State::Offered(..)),
            Among::Parked => job.is_parked(),
            Among::All => true,
            Among::Nowhere => false,
        });
        jobs.map(|job| job.id).collect()
    }

    /// Whether a pause of another tube than this one ends at that moment.
    pub(crate) fn another_pause_ends(&self, at: Nanos, tube: TubeName<'_>) -> bool {
        self.tubes.iter().any(|other| {
            other.name.as_name() != tube && other.pause.is_some_and(|(_, end)| end == at)
        })
    }

    /// Whether a restart does not find the job where it is (L3.3).
    pub(crate) fn is_astray(&self, id: JobId) -> bool {
        self.find(id).is_some_and(|job| self.jobs[job].is_astray)
    }

    /// The jobs that a restart finds where they are, or ready if they are reserved: buried ones
    /// last, in the order of burial.
    pub(crate) fn kept(&self) -> Vec<Kept> {
        let (mut buried, mut others): (Vec<&Job>, Vec<&Job>) = self
            .jobs
            .iter()
            .filter(|job| !job.is_astray)
            .partition(|job| job.state == State::Buried);
        others.sort_by_key(|job| job.id);
        buried.sort_by_key(|job| job.since);
        let jobs = others.into_iter().chain(buried);
        jobs.map(|job| Kept {
            id: job.id,
            tube: job.tube.clone(),
            pri: job.pri,
            delay: job.delay,
            state: match job.state {
                State::Ready | State::Offered(..) | State::Reserved(_) => JobState::Ready,
                State::Delayed => JobState::Delayed,
                State::Buried => JobState::Buried,
            },
            body: job.body.to_vec(),
        })
        .collect()
    }
}

/// Jobs, and how they meet those who wait for them.
impl Naive {
    fn find(&self, id: JobId) -> Option<usize> {
        self.jobs.iter().position(|job| job.id == id)
    }

    /// The job with the least `key` among those that `fits`.
    fn first<K: Ord>(&self, fits: impl Fn(&Job) -> bool, key: impl Fn(&Job) -> K) -> Option<usize> {
        let fitting = (0..self.jobs.len()).filter(|&at| fits(&self.jobs[at]));
        fitting.min_by_key(|&at| key(&self.jobs[at]))
    }

    fn change(&mut self, job: usize, state: State) {
        self.changes += 1;
        self.jobs[job].state = state;
        self.jobs[job].since = self.changes;
    }

    /// L3.10: over all tubes, until nothing fits.
    fn serve(&mut self, now: Nanos, scribe: &mut Scribe) {
        while let Some((job, tube)) = self.next_meeting() {
            let tube = &mut self.tubes[tube];
            // L3.11.
            tube.cursor %= tube.waiters.len();
            let session = tube.waiters.swap_remove(tube.cursor);
            tube.cursor += 1;
            let (seq, style) = self.end_wait(session).expect("a waiter waits");
            self.give(now, job, Caller { session, seq }, style, scribe);
        }
    }

    /// The most urgent job of all that somebody waits for, with its tube.
    fn next_meeting(&self) -> Option<(usize, usize)> {
        let mut meetings = Vec::new();
        for (at, tube) in self.tubes.iter().enumerate() {
            if tube.pause.is_some() || tube.waiters.is_empty() {
                continue;
            }
            let is_ready = |job: &Job| job.tube == tube.name && job.state == State::Ready;
            if let Some(job) = self.first(is_ready, |job| (job.pri, job.id)) {
                meetings.push((self.jobs[job].pri, self.jobs[job].id, job, at));
            }
        }
        meetings.sort();
        meetings.first().map(|&(_, _, job, tube)| (job, tube))
    }

    fn give(&mut self, now: Nanos, at: usize, to: Caller, style: Style, scribe: &mut Scribe) {
        match style {
            Style::Take => {
                self.change(at, State::Reserved(to.session));
                let job = &mut self.jobs[at];
                job.counts.reserves += 1;
                job.deadline = now.after(job.ttr);
                let (id, deadline, body) = (job.id, job.deadline, job.body.clone().into());
                scribe.emit(to, Event::Reserved { id, deadline, body });
            }
            Style::Offer => {
                self.change(at, State::Offered(to.session, to.seq));
                let job = &mut self.jobs[at];
                job.deadline = now.after(Secs(1));
                let (id, pri, created_at) = (job.id, job.pri, job.created_at);
                scribe.emit(
                    to,
                    Event::Offered {
                        id,
                        pri,
                        created_at,
                    },
                );
            }
        }
    }

    fn write(&mut self, job: usize, scribe: &mut Scribe) {
        self.jobs[job].is_astray = false;
        scribe.append(Record::Update {
            job: &self.jobs[job].record(),
            body_len: self.jobs[job].body.len() as u32,
        });
    }
}

/// Tubes, and what refers to them.
impl Naive {
    fn session(&mut self, id: SessionId) -> &mut Session {
        let session = self.sessions.iter_mut().find(|session| session.id == id);
        session.expect("it is attached")
    }

    fn tube(&mut self, name: TubeName<'_>) -> Option<&mut Tube> {
        self.tubes
            .iter_mut()
            .find(|tube| tube.name.as_name() == name)
    }

    fn make(&mut self, name: TubeName<'_>) {
        if self.tube(name).is_none() {
            self.tubes.push(Tube {
                name: name.into(),
                waiters: Vec::new(),
                cursor: 0,
                pause: None,
                total_jobs: 0,
                deletes: 0,
                pauses: 0,
            });
        }
    }

    /// Lets the tube vanish that nothing refers to any more (L3.21 to L3.23). To be called
    /// whenever a reference has gone, so there is one at most.
    fn sweep(&mut self) {
        let is_referred_to = |tube: &Tube| {
            self.jobs.iter().any(|job| job.tube == tube.name)
                || self.sessions.iter().any(|session| {
                    session.using.as_ref() == Some(&tube.name)
                        || session.watches.contains(&tube.name)
                })
                || (self.kind.has_default && tube.name == TubeNameBuf::DEFAULT)
        };
        if let Some(at) = self.tubes.iter().position(|tube| !is_referred_to(tube)) {
            self.tubes.swap_remove(at);
        }
    }
}

impl Job {
    fn is_offered_to(&self, session: SessionId) -> bool {
        matches!(self.state, State::Offered(to, _) if to == session)
    }

    /// Whether somebody has it or is about to.
    fn is_held(&self) -> bool {
        matches!(self.state, State::Reserved(_) | State::Offered(..))
    }

    fn is_parked(&self) -> bool {
        matches!(self.state, State::Delayed | State::Buried)
    }

    fn record(&self) -> JobRecord {
        JobRecord {
            id: self.id,
            pri: self.pri,
            delay: self.delay,
            ttr: self.ttr,
            created_at: self.created_at,
            deadline: self.deadline,
            counts: self.counts,
            state: match self.state {
                State::Ready => JobState::Ready,
                State::Offered(..) => JobState::Offered { to: 0 },
                State::Reserved(_) => JobState::Reserved { by: 0 },
                State::Delayed => JobState::Delayed,
                State::Buried => JobState::Buried,
            },
        }
    }
}
