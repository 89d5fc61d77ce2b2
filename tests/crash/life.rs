//! One life of a shard: from a start to a crash or an orderly end, with random asks in between.
//! Whatever a crash could leave at any moment that is watched has to be what the book allows.

use std::rc::Rc;

use beanshard::base::body::Body;
use beanshard::base::hash::NameHasher;
use beanshard::base::ids::{Caller, JobId, Pri, Seq, SessionId, ShardId};
use beanshard::base::name::TubeName;
use beanshard::base::time::{NANOS_PER_SEC, Secs};
use beanshard::engine::host::Journal;
use beanshard::engine::op::{Op, Put, Style};
use beanshard::engine::{Engine, Settings};
use beanshard::role::shard::Shard;
use beanshard::session::shards::Shards;
use beanshard::wal::format::Format;
use beanshard::wal::journal::{self, Sync, Wal};
use beanshard::wal::record::WallNanos;
use beanshard::wal::recover::Recovery;
use beanshard::wal::shard_journal::ShardJournal;

use crate::book::{Book, Floor, Found, Pause, Place, Shown};
use crate::form::Form;
use crate::notes::{Note, Notes, Said};
use crate::plan::{Plan, What};
use crate::random::Random;
use crate::storage::{Crash, MemoryStorage, Picture, Watch};
use crate::time::Time;

/// Of different lengths, because a full record has its tube's name.
pub(crate) const TUBES: [&str; 4] = ["default", "b", "a-tube-with-quite-a-long-name", "stay"];

/// Turns after which a journal that nobody asks has to have settled.
const SETTLE_ROUNDS: u64 = 2000;

const SHARD: ShardId = ShardId(0);

/// See the module's description.
pub(crate) struct Life<F: Form> {
    pub(crate) shard: Shard<Wal<MemoryStorage, F>>,
    pub(crate) disk: MemoryStorage,
    pub(crate) book: Book,
    pub(crate) time: Time,
    plan: Plan,
    pub(crate) random: Random,
    seq: u64,
    serial: u64,
    pub(crate) sessions: Vec<SessionId>,
    /// Who holds what, and perhaps some that nobody does any more.
    held: Vec<(JobId, SessionId)>,
    /// How many cuts of power are tried on each picture.
    cuts: u64,
    /// Length of the longest record that was written.
    longest: usize,
    /// Jobs may be refused.
    pub(crate) is_full: bool,
    watch: Watch,
    /// Pictures that were checked and may be the end, if only one operation is watched. What comes
    /// after it does not count.
    ends: Vec<Picture>,
}

/// What is left of a life.
pub(crate) struct Legacy {
    pub(crate) disk: MemoryStorage,
    pub(crate) book: Book,
    pub(crate) time: Time,
    pauses: Vec<Pause>,
}

impl Legacy {
    pub(crate) fn nothing() -> Legacy {
        Legacy {
            disk: MemoryStorage::new(),
            book: Book::new(),
            time: Time::new(),
            pauses: Vec::new(),
        }
    }
}

/// What a start would find here.
pub(crate) fn find<F: Form>(
    disk: MemoryStorage,
    settings: journal::Settings,
    time: Time,
) -> Result<Found, String> {
    let (now, wall) = (time.now, time.wall);
    let read = Recovery::read_as(F::here(), disk, settings, now, wall, &mut |_| {});
    let recovery = read.map_err(|error| format!("cannot read: {error:?}"))?;
    Ok(look(recovery, time))
}

/// What was read at this moment.
pub(crate) fn look<F: Format>(mut recovery: Recovery<MemoryStorage, F>, time: Time) -> Found {
    let mut found = Found {
        jobs: Vec::new(),
        pauses: Vec::new(),
        highest: recovery.highest(),
    };
    while recovery.jobs_left() > 0 {
        recovery.restore_next(|one| {
            let job = one.job;
            let shown = Shown {
                tube: known(one.tube),
                body: one.body[..].into(),
                pri: job.pri,
                delay: job.delay,
                ttr: job.ttr,
                created_at: time.wall_of(job.created_at),
                counts: job.counts,
                place: Place::of(job.state, time.wall_of(job.deadline)),
            };
            found.jobs.push((job.id, shown));
            None
        });
    }
    while recovery.pauses_left() > 0 {
        recovery.restore_pause(|one| {
            let until = time.wall_of(one.until);
            found.pauses.push((known(one.tube), one.length, until));
            false
        });
    }
    found.show_pauses(time.wall);
    found
}

fn known(tube: TubeName<'_>) -> &'static str {
    let is_it = |name: &&str| name.as_bytes() == tube.as_bytes();
    TUBES.into_iter().find(is_it).expect("it is one of ours")
}

pub(crate) fn name(at: usize) -> TubeName<'static> {
    TubeName::parse(TUBES[at].as_bytes()).expect("it is a name")
}

impl<F: Form> Life<F> {
    /// Starts a shard on what is there.
    pub(crate) fn begin(
        from: Legacy,
        plan: Plan,
        watch: Watch,
        cuts: u64,
        seed: u64,
    ) -> Result<Life<F>, String> {
        let Legacy {
            disk,
            mut book,
            time,
            pauses,
        } = from;
        book.is_strict = F::IS_ORDERED;
        book.keeps_ids = F::IS_ORDERED || plan.settings.sync != Sync::Never;
        let read = Recovery::read_as(
            F::here(),
            disk.clone(),
            plan.settings,
            time.now,
            time.wall,
            &mut |_| {},
        );
        disk.watch(watch);
        let engine = Engine::new(Settings {
            ids: F::IDS,
            hasher: NameHasher::new([1, 2]),
            has_default: true,
        });
        let shard = read
            .and_then(|recovery| Shard::recover(engine, recovery))
            .map_err(|error| format!("cannot start: {error:?}{}", disk.describe()))?;
        let mut life = Life {
            shard,
            disk,
            book,
            time,
            plan,
            random: Random::new(seed),
            seq: 0,
            serial: 0,
            sessions: Vec::new(),
            held: Vec::new(),
            cuts,
            longest: 0,
            is_full: false,
            watch,
            ends: Vec::new(),
        };
        life.shard.attach(SHARD, onlooker());
        life.resume_pauses(&pauses)?;
        life.check_pictures()?;
        life.look_at_all()?;
        (0..3).for_each(|_| life.enter());
        Ok(life)
    }

    /// Takes random steps, until the end has come.
    pub(crate) fn live(&mut self, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            if self.is_over() {
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Ends in a crash: at one of the pictures, or if there is none, now.
    pub(crate) fn crash(mut self, crash: Crash) -> Result<Legacy, String> {
        let picture = match self.ends.len() {
            0 => self.disk.picture(),
            len => self.ends.swap_remove(self.random.index(len)),
        };
        let seed = self.random.next();
        let left = picture.after(crash, seed);
        let found = self.found(&picture, crash, seed)?;
        let floor = self.floor(crash);
        self.book.check(&found, floor, self.position())?;
        self.end(left, &found, crash != Crash::Killed)
    }

    /// Ends in good order.
    pub(crate) fn close(mut self) -> Result<Legacy, String> {
        self.disk.watch(Watch::Off);
        self.shard.close();
        self.no_failure()?;
        let is_safe = self.plan.settings.sync != Sync::Never;
        let crash = if is_safe {
            Crash::AllLost
        } else {
            Crash::Killed
        };
        let picture = self.disk.picture();
        let found = self.found(&picture, crash, 0)?;
        self.book.check(&found, Floor::All, self.position())?;
        if self.disk.len_of(|name| !name.starts_with("binlog.")) > 0 {
            return Err("empty files are left".to_owned());
        }
        self.end(picture.after(crash, 0), &found, is_safe)
    }

    fn end(mut self, disk: MemoryStorage, found: &Found, is_kept: bool) -> Result<Legacy, String> {
        self.book.settle(found, is_kept);
        self.time.pass(self.random.below(2 * NANOS_PER_SEC));
        if is_kept {
            self.time.restart(&mut self.random);
        }
        Ok(Legacy {
            disk,
            book: self.book,
            time: self.time,
            pauses: found.pauses.clone(),
        })
    }

    /// How things are, for a person.
    pub(crate) fn describe(&self) -> String {
        let journal = self.shard.journal();
        let (len, live) = (journal.directory_len(), journal.live_len());
        let jobs = self.book.live().count();
        let (settings, files) = (self.plan.settings, self.disk.describe());
        format!("{jobs} jobs, {live} bytes of {len}, {settings:?}:{files}")
    }

    pub(crate) fn position(&self) -> u64 {
        self.shard.journal().position().0
    }

    fn floor(&self, crash: Crash) -> Floor {
        match (crash, self.plan.settings.sync) {
            (Crash::Killed, _) => Floor::Written,
            (_, Sync::Always) => Floor::Told,
            (_, Sync::Every(_) | Sync::Never) => Floor::Kept,
        }
    }

    fn found(&self, picture: &Picture, crash: Crash, seed: u64) -> Result<Found, String> {
        find::<F>(picture.after(crash, seed), self.plan.settings, self.time)
    }

    /// Whatever a crash could leave at the moments of the pictures. Answers have not left since.
    fn check_pictures(&mut self) -> Result<(), String> {
        let pictures = self.disk.take_pictures();
        for picture in &pictures {
            self.check_picture(picture, Crash::Killed, 0)?;
            if self.cuts > 0 {
                self.check_picture(picture, Crash::AllLost, 0)?;
            }
            for seed in 0..self.cuts {
                self.check_picture(picture, Crash::SomeLost, seed)?;
            }
        }
        if self.watch != Watch::All {
            self.ends.extend(pictures);
        }
        Ok(())
    }

    fn check_picture(&self, picture: &Picture, crash: Crash, seed: u64) -> Result<(), String> {
        let found = self.found(picture, crash, seed);
        let floor = self.floor(crash);
        let checked = found.and_then(|found| self.book.check(&found, floor, self.position()));
        checked.map_err(|fault| {
            let operation = picture.operation;
            let (before, after) = (picture.after(Crash::Killed, 0), picture.after(crash, seed));
            let (before, after) = (before.describe(), after.describe());
            let settings = self.plan.settings;
            let when = format!("{crash:?} with {seed} after operation {operation}, {settings:?}");
            format!("{when}: {fault}\n{before}\n{after}")
        })
    }

    pub(crate) fn no_failure(&mut self) -> Result<(), String> {
        match self.shard.take_failure() {
            Some(failure) => Err(format!("failed: {failure:?}")),
            None => Ok(()),
        }
    }
}

/// Steps.
impl<F: Form> Life<F> {
    fn step(&mut self) -> Result<(), String> {
        if F::IS_ORDERED && self.random.percent(5) {
            self.pause()?;
        }
        let what = self.plan.what(&mut self.random);
        self.take(what)?;
        if self.random.percent(self.plan.flush_chance) && !self.is_over() {
            self.flush()?;
        }
        if self.random.percent(self.plan.sync_chance) && !self.is_over() {
            self.end_sync()?;
        }
        if self.random.percent(10) && !self.is_over() {
            let found = self.found(&self.disk.picture(), Crash::AllLost, 0)?;
            self.book
                .check(&found, self.floor(Crash::AllLost), self.position())?;
            self.book.keep(&found);
        }
        Ok(())
    }

    fn take(&mut self, what: What) -> Result<(), String> {
        let said = self.do_what(what)?;
        if said == Said::OutOfMemory && !self.is_full {
            return Err("there is room and it was refused".to_owned());
        }
        Ok(())
    }

    fn do_what(&mut self, what: What) -> Result<Said, String> {
        let session = self.random.pick(&self.sessions);
        let pri = Pri(self.random.below(3) as u32);
        let delay = Secs(self.random.pick(&[0, 0, 1, 3]));
        let count = self.random.pick(&[1, 2, 10]);
        let held = match self.held.len() {
            0 => None,
            len => Some(self.held[self.random.index(len)]),
        };
        let id = self.some_job();
        let is_crowded = self.book.live().count() >= self.plan.jobs_max;
        match (what, held) {
            (What::Put, _) if !is_crowded => self.put(session, pri, delay),
            (What::Put | What::Delete, Some((id, holder))) => self.ask(holder, Op::Delete { id }),
            (What::Put | What::Delete, _) => self.ask(session, Op::Delete { id }),
            (What::Reserve, _) => self.ask(session, RESERVE),
            (What::ReserveJob, _) => self.ask(session, Op::ReserveJob { id }),
            (What::Release, Some((id, by))) => self.ask(by, Op::Release { id, pri, delay }),
            (What::Bury, Some((id, by))) => self.ask(by, Op::Bury { id, pri }),
            (What::Touch, Some((id, by))) => self.ask(by, Op::Touch { id }),
            (What::Release | What::Bury | What::Touch, None) => self.ask(session, RESERVE),
            (What::Kick, _) => self.ask(session, Op::Kick { count }),
            (What::KickJob, _) => self.ask(session, Op::KickJob { id }),
            (What::Peek, _) => self.ask(session, Op::Peek { id }),
            (What::Leave, _) => self.leave(session).map(|()| Said::Other),
            (What::Pass, _) => {
                let nanos = self.random.below(3 * NANOS_PER_SEC);
                self.pass(nanos).map(|()| Said::Other)
            }
        }
    }

    /// A job that is there, or the next one.
    fn some_job(&mut self) -> JobId {
        let is_ours = |shown: &Shown| Some(&shown.tube) != TUBES.last();
        let live = self.book.live().filter(|(_, shown)| is_ours(shown));
        let ids: Vec<JobId> = live.map(|(id, _)| id).collect();
        match ids.len() {
            0 => JobId(self.book.told_id.0 + 1),
            len => ids[self.random.index(len)],
        }
    }

    fn put(&mut self, session: SessionId, pri: Pri, delay: Secs) -> Result<Said, String> {
        let len = self.plan.body_len(&mut self.random) as usize;
        let tube = self.random.index(TUBES.len() - 1);
        self.raw(session, Op::Use { tube: name(tube) });
        self.put_here(session, pri, delay, len)
    }

    /// Puts into the tube that the session uses.
    fn put_here(
        &mut self,
        session: SessionId,
        pri: Pri,
        delay: Secs,
        len: usize,
    ) -> Result<Said, String> {
        let bytes = [b'a' + (self.seq % 26) as u8].repeat(len);
        self.longest = self.longest.max(F::full_len(name(2), len) as usize);
        let put = Put {
            id: None,
            created_at: self.time.now,
            pri,
            delay,
            ttr: Secs(1 + self.random.below(4) as u32),
            body: Body::from_vec(bytes).into(),
        };
        self.ask(session, Op::Put(put))
    }

    /// Puts a job of this length that is ready.
    pub(crate) fn put_len(&mut self, len: usize) -> Result<Said, String> {
        let session = self.sessions[0];
        self.put_here(session, Pri(5), Secs(0), len)
    }

    /// Puts jobs that no step touches.
    pub(crate) fn put_to_stay(&mut self, count: u64, len: usize) -> Result<(), String> {
        let tube = name(TUBES.len() - 1);
        for _ in 0..count {
            let session = self.sessions[0];
            self.raw(session, Op::Use { tube });
            self.put_here(session, Pri(0), Secs(0), len)?;
        }
        Ok(())
    }

    /// Asks as the first session does.
    pub(crate) fn ask_first(&mut self, op: Op<'_>) -> Result<Said, String> {
        self.ask(self.sessions[0], op)
    }

    /// Lets the journal do what it wants to until it wants no more.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        for _ in 0..SETTLE_ROUNDS {
            let before = (self.disk.operations(), self.position());
            self.shard.begin_turn(self.time.now, self.time.wall);
            self.flush()?;
            self.end_sync()?;
            let moment = self.shard.journal().moment();
            match moment {
                Some(at) if at > self.time.now => self.pass(at.0 - self.time.now.0)?,
                Some(_) => {}
                None if before == (self.disk.operations(), self.position()) => return Ok(()),
                None => {}
            }
        }
        Err(format!("does not settle: {}", self.describe()))
    }

    /// Whether the directory is as large as it may be at most. The journal has to be settled.
    pub(crate) fn check_bound(&self) -> Result<(), String> {
        let journal = self.shard.journal();
        let (len, live) = (journal.directory_len(), journal.live_len());
        let file_len = self.plan.settings.file_len.max(self.longest as u64);
        if len > 3 * live + 2 * file_len {
            return Err(format!("{len} is too large: {}", self.describe()));
        }
        Ok(())
    }

    fn enter(&mut self) {
        self.serial += 1;
        let session = SessionId::new(0, self.serial, 1 + self.serial as u32 % 8);
        self.shard.attach(SHARD, session);
        for at in 0..TUBES.len() - 1 {
            self.raw(session, Op::Use { tube: name(at) });
            self.raw(session, Op::Watch { tube: name(at) });
        }
        self.sessions.push(session);
    }

    fn leave(&mut self, session: SessionId) -> Result<(), String> {
        let before = self.position();
        let mut notes = Notes::default();
        self.shard.detach(self.time.now, SHARD, session, &mut notes);
        self.sessions.retain(|&other| other != session);
        self.held.retain(|&(_, holder)| holder != session);
        self.enter();
        self.on_done(before, &notes, None)
    }

    pub(crate) fn pass(&mut self, nanos: u64) -> Result<(), String> {
        self.time.pass(nanos);
        self.shard.begin_turn(self.time.now, self.time.wall);
        let before = self.position();
        let mut notes = Notes::default();
        self.shard.tick(self.time.now, &mut notes);
        self.book.end_pauses(self.time.wall);
        self.on_done(before, &notes, None)
    }

    /// Ends the turn: what is confirmed now is told.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        let confirmed = self.shard.flush();
        if std::env::var_os("CRASH_TELL").is_some() {
            let files = self.disk.describe();
            eprintln!("flush: {confirmed:?} of {}{files}", self.position());
        }
        self.no_failure()?;
        self.check_pictures()?;
        if self.is_over() {
            return Ok(());
        }
        self.book.confirm(confirmed.0);
        // What was put aside is nobody's.
        let len = self.disk.len_of(|name| !name.ends_with(".damaged"));
        let counted = self.shard.journal().directory_len();
        if len != counted {
            return Err(format!("{len} bytes are there and {counted} are counted"));
        }
        self.shard.check_invariants();
        Ok(())
    }

    pub(crate) fn end_sync(&mut self) -> Result<(), String> {
        self.disk.end_sync();
        self.check_pictures()
    }

    pub(crate) fn raw(&mut self, session: SessionId, op: Op<'_>) -> Vec<Note> {
        self.seq += 1;
        let from = Caller {
            session,
            seq: Seq(self.seq),
        };
        let mut notes = Notes::default();
        if std::env::var_os("CRASH_TELL").is_some() && session != onlooker() {
            eprintln!("{op:?}");
        }
        self.shard
            .submit(self.time.now, SHARD, from, op, &mut notes);
        notes.0
    }

    pub(crate) fn ask(&mut self, session: SessionId, op: Op<'_>) -> Result<Said, String> {
        let before = self.position();
        let body: Option<Rc<[u8]>> = match &op {
            Op::Put(put) => Some(put.body[..].into()),
            _ => None,
        };
        let notes = Notes(self.raw(session, op));
        self.on_done(before, &notes, body)?;
        let answer = notes.0.iter().find(|note| note.to == session);
        Ok(answer.map_or(Said::Other, |note| note.said))
    }

    /// Brings the book up to date after anything that may have changed jobs.
    pub(crate) fn on_done(
        &mut self,
        before: u64,
        notes: &Notes,
        body: Option<Rc<[u8]>>,
    ) -> Result<(), String> {
        let after = self.position();
        let mut ids: Vec<JobId> = self.book.live().map(|(id, _)| id).collect();
        let put = notes.0.iter().find_map(|note| match note.said {
            Said::Inserted(id) => Some(id),
            _ => None,
        });
        if let Some(id) = put {
            if id <= self.book.told_id {
                return Err(format!("{id:?} is given again"));
            }
            ids.push(id);
        }
        let mut changed = Vec::new();
        for id in ids {
            let shown = self.look_at(id, body.as_ref().filter(|_| put == Some(id)));
            if shown.as_ref() != self.book.get(id) {
                changed.push(id);
                self.book.note(id, shown, before, after);
            }
        }
        for note in &notes.0 {
            self.on_note(note, &changed, put)?;
        }
        self.check_pictures()
    }

    fn on_note(
        &mut self,
        note: &Note,
        changed: &[JobId],
        put: Option<JobId>,
    ) -> Result<(), String> {
        match note.said {
            Said::Inserted(_) | Said::Done => {
                for &id in changed {
                    self.book.answer(note.ticket, id, false, put == Some(id));
                    self.held.retain(|&(held, _)| held != id);
                }
            }
            Said::Reserved(id) => {
                self.book.answer(note.ticket, id, true, false);
                self.held.push((id, note.to));
            }
            Said::Found(id) => self.book.answer(note.ticket, id, true, false),
            Said::Expired(id) => self.held.retain(|&(held, _)| held != id),
            Said::OutOfMemory if !changed.is_empty() => {
                return Err("refused, and something has changed".to_owned());
            }
            Said::OutOfMemory | Said::Pause(_) | Said::Stats(..) | Said::Other => {}
        }
        Ok(())
    }

    /// The job as the shard shows it. Bodies are told only when they are put.
    fn look_at(&mut self, id: JobId, body: Option<&Rc<[u8]>>) -> Option<Shown> {
        let notes = self.raw(onlooker(), Op::StatsJob { id });
        let known = self.book.get(id);
        let (now, time) = (self.time.now, self.time);
        notes.into_iter().find_map(|note| match note.said {
            Said::Stats(stats, tube) => Some(Shown {
                tube,
                body: body.cloned().unwrap_or_else(|| {
                    known.map_or_else(|| [].into(), |known| Rc::clone(&known.body))
                }),
                pri: stats.pri,
                delay: stats.delay,
                ttr: stats.ttr,
                created_at: known.map_or(time.wall, |known| known.created_at),
                counts: stats.counts,
                place: match known {
                    Some(known) if known.counts == stats.counts && is_delayed(known) => {
                        Place::of(stats.state, until(known))
                    }
                    _ => Place::of(stats.state, time.wall_of(now.after(stats.delay))),
                },
            }),
            _ => None,
        })
    }

    /// After a start the shard shows what was found.
    fn look_at_all(&mut self) -> Result<(), String> {
        let live: Vec<(JobId, Shown)> = self
            .book
            .live()
            .map(|(id, shown)| (id, shown.clone()))
            .collect();
        for (id, expected) in live {
            let shown = self.look_at(id, None);
            if shown.as_ref() != Some(&expected) {
                return Err(format!("{id:?}: found {expected:?}, shown {shown:?}"));
            }
            let notes = self.raw(onlooker(), Op::Peek { id });
            if notes.iter().all(|note| note.body != expected.body) {
                return Err(format!("{id:?} has another body"));
            }
        }
        self.shard.check_invariants();
        Ok(())
    }
}

/// Asks that only look come from here.
pub(crate) fn onlooker() -> SessionId {
    SessionId::new(0, 0, 0)
}

fn is_delayed(shown: &Shown) -> bool {
    matches!(shown.place, Place::Delayed(_))
}

fn until(shown: &Shown) -> WallNanos {
    match shown.place {
        Place::Delayed(until) => until,
        Place::Ready | Place::Buried => WallNanos(0),
    }
}

/// The best job there is, without waiting.
pub(crate) const RESERVE: Op<'static> = Op::Reserve {
    style: Style::Take,
    wait: false,
};
