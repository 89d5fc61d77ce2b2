//! A run: each step is taken by the engine and by the model, and after each both must have said and
//! written the same and wait for the same moment. Steps that a session half would not take, such as
//! an ask by a session that waits, go to another session or are passed over.

use std::panic::{AssertUnwindSafe, catch_unwind};

use beanshard::base::body::Body;
use beanshard::base::hash::NameHasher;
use beanshard::base::ids::{Caller, JobId, Pri, Seq, SessionId};
use beanshard::base::name::TubeName;
use beanshard::base::time::{NANOS_PER_SEC, Nanos, Secs};
use beanshard::engine::op::{Op, Put, Style};
use beanshard::engine::{Engine, IdScheme, NotAttached, Settings};

use crate::naive::{Mood, Naive};
use crate::scribe::{Kept, Scribe, name_of, session_name};
use crate::steps::{Among, Ask, FRONTENDS, Kind, Pass, SEATS, Step, TUBES, Which};

/// What the engine and its model have in common.
pub(crate) trait Queue {
    fn attach(&mut self, session: SessionId);
    fn detach(&mut self, now: Nanos, session: SessionId, scribe: &mut Scribe);
    fn take_id(&mut self, session: SessionId) -> Option<JobId>;
    fn apply(
        &mut self,
        now: Nanos,
        from: Caller,
        op: Op<'_>,
        scribe: &mut Scribe,
    ) -> Result<(), NotAttached>;
    fn tick(&mut self, now: Nanos, scribe: &mut Scribe);
    fn next_deadline(&self) -> Option<Nanos>;
    fn drain(&mut self);
    fn hold_back(&mut self, frontend: u16);
    fn let_go(&mut self, now: Nanos, frontend: u16, scribe: &mut Scribe);
}

impl Queue for Engine {
    fn attach(&mut self, session: SessionId) {
        Engine::attach(self, session);
    }

    fn detach(&mut self, now: Nanos, session: SessionId, scribe: &mut Scribe) {
        Engine::detach(self, now, session, scribe);
    }

    fn take_id(&mut self, session: SessionId) -> Option<JobId> {
        Engine::take_id(self, session)
    }

    fn apply(
        &mut self,
        now: Nanos,
        from: Caller,
        op: Op<'_>,
        scribe: &mut Scribe,
    ) -> Result<(), NotAttached> {
        Engine::apply(self, now, from, op, scribe)
    }

    fn tick(&mut self, now: Nanos, scribe: &mut Scribe) {
        Engine::tick(self, now, scribe);
    }

    fn next_deadline(&self) -> Option<Nanos> {
        Engine::next_deadline(self)
    }

    fn drain(&mut self) {
        Engine::drain(self);
    }

    fn hold_back(&mut self, frontend: u16) {
        Engine::hold_back(self, frontend);
    }

    fn let_go(&mut self, now: Nanos, frontend: u16, scribe: &mut Scribe) {
        Engine::let_go(self, now, frontend, scribe);
    }
}

/// Takes the steps. The error is the transcript up to the step that went wrong.
pub(crate) fn play(kind: Kind, steps: &[Step]) -> Result<(), String> {
    let mut world = World::new(kind);
    for (index, step) in steps.iter().enumerate() {
        let taken = catch_unwind(AssertUnwindSafe(|| world.take(step)));
        let verdict = taken.unwrap_or_else(|panic| Err(panic_text(&*panic)));
        let looked = verdict.and_then(|()| {
            if index % LOOK_EVERY == 0 || index + 1 == steps.len() {
                world.look()
            } else {
                Ok(())
            }
        });
        looked.map_err(|fault| world.report(&fault))?;
    }
    world.restart().map_err(|fault| world.report(&fault))
}

/// Steps from one look at everything to the next. A difference that nobody has asked about shows
/// then; a look costs as much as several steps.
const LOOK_EVERY: usize = 4;

/// When runs begin. Far from 0, so that nothing is hidden by times that stop there.
const START: Nanos = Nanos(1000 * NANOS_PER_SEC);

struct World {
    engine: Engine,
    naive: Naive,
    engine_scribe: Scribe,
    naive_scribe: Scribe,
    now: Nanos,
    /// Number of the last ask.
    seq: u64,
    /// Sessions that have come so far.
    serial: u64,
    seats: [Seat; SEATS],
    transcript: Vec<String>,
}

/// Where one session after the other sits.
#[derive(Clone, Copy, Default)]
struct Seat {
    session: Option<SessionId>,
    /// Id and moment of the put that the session has begun.
    begun: Option<(JobId, Nanos)>,
}

impl World {
    fn new(kind: Kind) -> World {
        let ids = if kind.slotted {
            IdScheme::Slotted
        } else {
            IdScheme::Plain
        };
        let mut world = World {
            engine: Engine::new(Settings {
                ids,
                hasher: NameHasher::new([1, 2]),
                has_default: kind.has_default,
            }),
            naive: Naive::new(kind),
            engine_scribe: Scribe::default(),
            naive_scribe: Scribe::default(),
            now: START,
            seq: 0,
            serial: 0,
            seats: [Seat::default(); SEATS],
            transcript: vec![format!("{kind:?}")],
        };
        world.engine.attach(onlooker());
        world.naive.attach(onlooker());
        for seat in 0..SEATS / 2 {
            world.attach(seat, false).expect("nothing is wrong yet");
        }
        world
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Attach { seat, bare } => self.attach(*seat, *bare),
            Step::Detach { seat, laden } => self.detach(*seat, *laden),
            Step::Stranger { seat } => self.stranger(*seat),
            Step::TakeId { seat } => self.take_id(*seat),
            Step::WatchMany { seat, first, count } => self.watch_many(*seat, *first, *count),
            Step::Drain => {
                self.engine.drain();
                self.naive.drain();
                self.compare("drain".into())
            }
            Step::HoldBack { frontend } => {
                self.engine.hold_back(*frontend);
                self.naive.hold_back(*frontend);
                self.compare(format!("hold back {frontend}"))
            }
            Step::LetGo { frontend } => self.let_go(*frontend),
            Step::Pass(pass) => self.pass(*pass),
            Step::Ask { seat, ask, room } => self.ask(*seat, ask, *room),
        }
    }

    fn attach(&mut self, seat: usize, bare: bool) -> Result<(), String> {
        let is_new = self.seats[seat].session.is_none();
        if is_new {
            self.serial += 1;
        }
        let fresh = SessionId::new(seat as u16 % FRONTENDS, self.serial, seat as u32);
        let session = *self.seats[seat].session.get_or_insert(fresh);
        self.engine.attach(session);
        self.naive.attach(session);
        self.compare(format!("attach {}", session_name(session)))?;
        if is_new && !bare {
            let tube = TubeName::DEFAULT;
            self.apply(session, Op::Use { tube }, None)?;
            self.apply(session, Op::Watch { tube }, None)?;
        }
        Ok(())
    }

    fn detach(&mut self, seat: usize, laden: bool) -> Result<(), String> {
        let holds = |session| !self.naive.ids(Among::Held, session).is_empty();
        let laden_seat = self
            .seat(seat, |mood, session| {
                mood == Mood::Offered && holds(session)
            })
            .or_else(|| self.seat(seat, |_, session| holds(session)))
            .filter(|_| laden);
        let seat = laden_seat.unwrap_or(seat);
        let Some(session) = std::mem::take(&mut self.seats[seat]).session else {
            return Ok(());
        };
        self.engine
            .detach(self.now, session, &mut self.engine_scribe);
        self.naive.detach(self.now, session, &mut self.naive_scribe);
        self.compare(format!("detach {}", session_name(session)))
    }

    fn stranger(&mut self, seat: usize) -> Result<(), String> {
        let session = SessionId::new(0, self.serial + 1, seat as u32);
        let from = self.next_caller(session);
        let op = Op::Watch { tube: tube(1) };
        let answer = self
            .engine
            .apply(self.now, from, op, &mut self.engine_scribe);
        if answer != Err(NotAttached) {
            return Err("an ask of a session that is not attached was not refused".into());
        }
        self.engine
            .detach(self.now, session, &mut self.engine_scribe);
        self.compare(format!("{} Watch, unattached", name_of(from)))
    }

    fn take_id(&mut self, seat: usize) -> Result<(), String> {
        let Some(seat) = self.seat(seat, |mood, _| mood == Mood::Free) else {
            return Ok(());
        };
        let session = self.seats[seat]
            .session
            .expect("it was chosen for its mood");
        let id = self.engine.take_id(session);
        let expected = self.naive.take_id(session);
        if id != expected {
            return Err(format!(
                "an id was taken: expected {expected:?}, got {id:?}"
            ));
        }
        self.seats[seat].begun = id.map(|id| (id, self.now));
        self.compare(format!("take_id for {}: {id:?}", session_name(session)))
    }

    fn watch_many(&mut self, seat: usize, first: usize, count: usize) -> Result<(), String> {
        let Some(seat) = self.seat(seat, |mood, _| mood == Mood::Free) else {
            return Ok(());
        };
        // A stride that meets every tube before it meets one again.
        let tubes = (0..count).map(|nth| (first + 5 * nth) % TUBES.len());
        for tube in tubes {
            self.ask(seat, &Ask::Watch(tube), None)?;
        }
        Ok(())
    }

    fn let_go(&mut self, frontend: u16) -> Result<(), String> {
        self.engine
            .let_go(self.now, frontend, &mut self.engine_scribe);
        self.naive
            .let_go(self.now, frontend, &mut self.naive_scribe);
        self.compare(format!("let go {frontend}"))
    }

    fn pass(&mut self, pass: Pass) -> Result<(), String> {
        let deadline = self.naive.next_deadline().unwrap_or(self.now);
        self.now = match pass {
            Pass::Halves(halves) => Nanos(self.now.0 + halves * NANOS_PER_SEC / 2),
            Pass::ToDeadline => deadline,
            Pass::AlmostToDeadline => Nanos(deadline.0 - 1).max(self.now),
        };
        self.engine.tick(self.now, &mut self.engine_scribe);
        self.naive.tick(self.now, &mut self.naive_scribe);
        self.compare("tick".into())
    }

    fn ask(&mut self, seat: usize, ask: &Ask, room: Option<u32>) -> Result<(), String> {
        let Some(seat) = self.seat_for(seat, ask) else {
            return Ok(());
        };
        let session = self.seats[seat]
            .session
            .expect("it was chosen for its mood");
        // An ask other than put means that nothing has come of the put.
        let begun = self.seats[seat].begun.take();
        let op = self.op(session, ask, begun);
        let before = room.map(|_| self.seen_in_engine());
        self.apply(session, op, room)?;
        // With room for some, a kick that stops has kicked some.
        let is_refused = std::mem::take(&mut self.engine_scribe.refused) && room == Some(0);
        let Some(before) = before.filter(|_| is_refused) else {
            return Ok(());
        };
        let after = self.seen_in_engine();
        if before != after {
            return Err(differences("seen after a refusal", &before, &after));
        }
        Ok(())
    }

    fn apply(&mut self, session: SessionId, op: Op<'_>, room: Option<u32>) -> Result<(), String> {
        let from = self.caller_of(session, &op);
        for scribe in [&mut self.engine_scribe, &mut self.naive_scribe] {
            scribe.room = room.unwrap_or(u32::MAX);
        }
        let heading = match room {
            Some(room) => format!("{} {op:?}, room for {room}", name_of(from)),
            None => format!("{} {op:?}", name_of(from)),
        };
        let engine = self
            .engine
            .apply(self.now, from, op.clone(), &mut self.engine_scribe);
        let naive = self.naive.apply(self.now, from, op, &mut self.naive_scribe);
        let said = self.compare(heading);
        if engine != naive {
            return Err(format!("expected {naive:?}, got {engine:?}"));
        }
        said
    }

    /// What is said to an offer, and the end of a wait, is said under the number of the ask that it
    /// is about, but now and then under another, as if it had been overtaken.
    fn caller_of(&mut self, session: SessionId, op: &Op<'_>) -> Caller {
        let fresh = self.next_caller(session);
        let about = match op {
            Op::Accept { .. } | Op::Decline { .. } => self.naive.offered_ask(session),
            Op::Cancel => self.naive.waiting_ask(session),
            _ => None,
        };
        match about {
            Some(seq) if !fresh.seq.0.is_multiple_of(5) => Caller { session, seq },
            _ => fresh,
        }
    }

    fn next_caller(&mut self, session: SessionId) -> Caller {
        self.seq += 1;
        let seq = Seq(self.seq);
        Caller { session, seq }
    }

    /// The first seat from `seat` on, round and round, whose session fits.
    fn seat(&self, seat: usize, fits: impl Fn(Mood, SessionId) -> bool) -> Option<usize> {
        let mut seats = (seat..seat + SEATS).map(|seat| seat % SEATS);
        seats.find(|&seat| {
            let session = self.seats[seat].session;
            session.is_some_and(|session| fits(self.naive.mood(session), session))
        })
    }

    /// Who may ask that: first of all those for whom it has a point.
    fn seat_for(&self, seat: usize, ask: &Ask) -> Option<usize> {
        let free = || self.seat(seat, |mood, _| mood == Mood::Free);
        let offered = || self.seat(seat, |mood, _| mood == Mood::Offered);
        match ask {
            Ask::Cancel => self
                .seat(seat, |mood, _| mood == Mood::Waiting)
                .or_else(offered)
                .or_else(free),
            Ask::Accept(_) | Ask::Decline(_) => offered().or_else(free),
            Ask::Put { .. } => self.seat(seat, |mood, session| {
                mood == Mood::Free && self.naive.using(session).is_some()
            }),
            Ask::Kick(_) | Ask::PeekDelayed | Ask::PeekBuried => self
                .seat(seat, |mood, session| {
                    mood == Mood::Free && self.naive.has_parked(session)
                })
                .or_else(free),
            Ask::Release { job, .. } | Ask::Bury { job, .. } if job.among == Among::Held => self
                .seat(seat, |mood, session| {
                    mood == Mood::Free && !self.naive.ids(Among::Held, session).is_empty()
                })
                .or_else(free),
            Ask::Reserve { .. } if self.seq.is_multiple_of(4) => offered().or_else(free),
            Ask::Use(_)
            | Ask::Unuse
            | Ask::Watch(_)
            | Ask::Ignore(_)
            | Ask::Reserve { .. }
            | Ask::ReserveJob(_)
            | Ask::Delete(_)
            | Ask::Release { .. }
            | Ask::Bury { .. }
            | Ask::Touch(_)
            | Ask::KickJob(_)
            | Ask::Peek(_)
            | Ask::PeekReady
            | Ask::PauseTube { .. }
            | Ask::StatsJob(_)
            | Ask::StatsTube(_)
            | Ask::Stats
            | Ask::ListTubes => free(),
        }
    }

    fn op(&self, by: SessionId, ask: &Ask, begun: Option<(JobId, Nanos)>) -> Op<'static> {
        let id = |which: &Which| self.id(by, *which);
        match *ask {
            Ask::Use(at) => Op::Use { tube: tube(at) },
            Ask::Unuse => Op::Unuse,
            Ask::Watch(at) => Op::Watch { tube: tube(at) },
            Ask::Ignore(at) => Op::Ignore { tube: tube(at) },
            Ask::Put {
                pri,
                delay,
                ttr,
                len,
            } => Op::Put(Put {
                id: begun.map(|(id, _)| id),
                created_at: begun.map_or(self.now, |(_, at)| at),
                pri: Pri(pri),
                delay: Secs(delay),
                ttr: Secs(ttr),
                body: self.body(len).into(),
            }),
            Ask::Reserve { offer, wait } => Op::Reserve {
                style: if offer { Style::Offer } else { Style::Take },
                wait: wait && self.others_are_free(),
            },
            Ask::Accept(ref job) => Op::Accept { id: id(job) },
            Ask::Decline(ref job) => Op::Decline { id: id(job) },
            Ask::Cancel => Op::Cancel,
            Ask::ReserveJob(ref job) => Op::ReserveJob { id: id(job) },
            Ask::Delete(ref job) => Op::Delete { id: id(job) },
            Ask::Release {
                ref job,
                pri,
                delay,
            } => Op::Release {
                id: id(job),
                pri: Pri(pri),
                delay: Secs(delay),
            },
            Ask::Bury { ref job, pri } => Op::Bury {
                id: id(job),
                pri: Pri(pri),
            },
            Ask::Touch(ref job) => Op::Touch { id: id(job) },
            Ask::Kick(count) => Op::Kick { count },
            Ask::KickJob(ref job) => Op::KickJob { id: id(job) },
            Ask::Peek(ref job) => Op::Peek { id: id(job) },
            Ask::PeekReady => Op::PeekReady,
            Ask::PeekDelayed => Op::PeekDelayed,
            Ask::PeekBuried => Op::PeekBuried,
            Ask::PauseTube { tube: at, secs } => Op::PauseTube {
                tube: tube(at),
                pause: self.pause(tube(at), secs),
            },
            Ask::StatsJob(ref job) => Op::StatsJob { id: id(job) },
            Ask::StatsTube(at) => Op::StatsTube { tube: tube(at) },
            Ask::Stats => Op::Stats,
            Ask::ListTubes => Op::ListTubes,
        }
    }

    /// Whether a session can wait and leave one behind that may bring it a job.
    fn others_are_free(&self) -> bool {
        let sessions = self.seats.iter().filter_map(|seat| seat.session);
        let free = sessions.filter(|&session| self.naive.mood(session) == Mood::Free);
        free.count() > 1
    }

    fn id(&self, by: SessionId, which: Which) -> JobId {
        let mut ids = self.naive.ids(which.among, by);
        if ids.is_empty() && which.among != Among::Nowhere {
            ids = self.naive.ids(Among::All, by);
        }
        if ids.is_empty() {
            return JobId(which.nth as u64);
        }
        ids[which.nth % ids.len()]
    }

    /// Different bodies, of either make.
    fn body(&self, len: usize) -> Body {
        let bytes = [b'0' + (self.seq % 10) as u8].repeat(len);
        if self.seq.is_multiple_of(2) {
            Body::copy_of(&bytes)
        } else {
            Body::from_vec(bytes)
        }
    }

    /// `secs`, or as much more as it takes for no other pause to end at the same moment: which tube
    /// then comes first is no client's business.
    fn pause(&self, tube: TubeName<'_>, secs: u32) -> Secs {
        let mut pause = Secs(secs);
        while self.naive.another_pause_ends(self.now.after(pause), tube) {
            pause.0 += 1;
        }
        pause
    }

    /// Whether both have said and written the same since the last time, under this heading.
    fn compare(&mut self, heading: String) -> Result<(), String> {
        let got = self.engine_scribe.take_lines();
        let expected = self.naive_scribe.take_lines();
        let (secs, nanos) = (self.now.0 / NANOS_PER_SEC, self.now.0 % NANOS_PER_SEC);
        self.transcript
            .push(format!("{secs}.{nanos:09}  {heading}"));
        if got != expected {
            return Err(differences("said and written", &expected, &got));
        }
        let lines = got.iter().map(|line| format!("                {line}"));
        self.transcript.extend(lines);
        let (got, expected) = (self.engine.next_deadline(), self.naive.next_deadline());
        if got != expected {
            return Err(format!("next deadline: expected {expected:?}, got {got:?}"));
        }
        #[cfg(debug_assertions)]
        self.engine.check_invariants();
        Ok(())
    }

    /// Whether both show the same, whoever looks at whatever.
    fn look(&mut self) -> Result<(), String> {
        let got = self.seen_in_engine();
        let ids = self.naive.ids(Among::All, onlooker());
        let expected = survey(&mut self.naive, self.now, &ids, &mut self.naive_scribe);
        if got == expected {
            return Ok(());
        }
        Err(differences("seen by an onlooker", &expected, &got))
    }

    fn seen_in_engine(&mut self) -> Vec<String> {
        let ids = self.naive.ids(Among::All, onlooker());
        survey(&mut self.engine, self.now, &ids, &mut self.engine_scribe)
    }

    /// Whether a restart would find all jobs, as far as they were written down.
    fn restart(&self) -> Result<(), String> {
        let (astray, found): (Vec<Kept>, Vec<Kept>) = self
            .engine_scribe
            .replay(self.now)
            .into_iter()
            .partition(|kept| self.naive.is_astray(kept.id));
        let expected = self.naive.kept();
        let all = self.naive.ids(Among::All, onlooker()).len();
        if found == expected && astray.len() + found.len() == all {
            return Ok(());
        }
        let lines =
            |jobs: &[Kept]| -> Vec<String> { jobs.iter().map(|job| format!("{job:?}")).collect() };
        let what = format!("found by a restart, besides {} jobs astray", astray.len());
        Err(differences(&what, &lines(&expected), &lines(&found)))
    }

    fn report(&self, fault: &str) -> String {
        format!("\n{}\n{fault}\n", self.transcript.join("\n"))
    }
}

/// A session that uses and watches nothing and so disturbs nobody.
fn onlooker() -> SessionId {
    SessionId::new(0, 0, SEATS as u32)
}

fn tube(at: usize) -> TubeName<'static> {
    TubeName::parse(TUBES[at].0.as_bytes()).expect("it is a name")
}

/// All that can be asked without changing anything: about everything, every tube, and these jobs.
fn survey(queue: &mut impl Queue, now: Nanos, ids: &[JobId], scribe: &mut Scribe) -> Vec<String> {
    let mut ops = vec![Op::Stats, Op::ListTubes];
    ops.extend((0..TUBES.len()).map(|at| Op::StatsTube { tube: tube(at) }));
    for &id in ids {
        ops.extend([Op::StatsJob { id }, Op::Peek { id }]);
    }
    let from = Caller {
        session: onlooker(),
        seq: Seq(0),
    };
    for op in ops {
        queue
            .apply(now, from, op, scribe)
            .expect("the onlooker is attached");
    }
    scribe.take_lines()
}

/// The lines that are not the same, and those around which they stand.
fn differences(what: &str, expected: &[String], got: &[String]) -> String {
    let same = expected
        .iter()
        .zip(got)
        .take_while(|(expected, got)| expected == got)
        .count();
    let rest = |lines: &[String]| lines[same..].join("\n    ");
    format!(
        "{what}, after {same} lines that are right:\n  expected\n    {}\n  got\n    {}",
        rest(expected),
        rest(got)
    )
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a word"))
}
