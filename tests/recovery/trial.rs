//! A start from a directory, work, an end, and the next start: the second finds what the first one
//! left.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use beanshard::base::body::Body;
use beanshard::base::hash::NameHasher;
use beanshard::base::ids::{Caller, JobId, Pri, Seq, SessionId, ShardId};
use beanshard::base::name::TubeName;
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::event::Event;
use beanshard::engine::host::{Journal, Outbox};
use beanshard::engine::job::{JobCounts, JobState};
use beanshard::engine::op::{Op, Put, Style};
use beanshard::engine::{Engine, IdScheme, Settings};
use beanshard::role::shard::Shard;
use beanshard::session::shards::Shards;
use beanshard::wal::error::WalError;
use beanshard::wal::journal::Wal;
use beanshard::wal::record::WallNanos;
use beanshard::wal::recover::Recovery;
use beanshard::wal::segment::FileName;
use beanshard::wal::shard_journal::ShardJournal;

use crate::memory::Memory;
use crate::script::{Script, Step, TUBES};

/// The names and contents of a directory.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A job as a restart shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) tube: Vec<u8>,
    pub(crate) state: &'static str,
    pub(crate) pri: Pri,
    pub(crate) delay: Secs,
    pub(crate) ttr: Secs,
    pub(crate) counts: JobCounts,
    pub(crate) body: Vec<u8>,
}

/// A job, and when it was made and its state ends.
type Found = (JobId, Shown, Nanos, Nanos);

/// Both clocks at a start.
#[derive(Clone, Copy)]
struct Start {
    now: Nanos,
    wall: i64,
}

const FIRST: Start = Start {
    now: Nanos(5_000_000_000_000),
    wall: 1_700_000_000_000_000_000,
};

/// The machine has been started anew meanwhile.
const REBOOTED: Start = Start {
    now: Nanos(20_000_000_000),
    wall: 1_700_000_100_000_000_000,
};

impl Start {
    /// What the wall clock shows at this later moment.
    fn wall(self, now: Nanos) -> WallNanos {
        WallNanos(self.wall + now.since(self.now).cast_signed())
    }
}

const SHARD: ShardId = ShardId(0);

/// Does all of it.
///
/// # Panics
/// If something is lost, or is not as it should be.
pub(crate) fn run(script: &Script) {
    let mut settled = Script {
        steps: Vec::new(),
        room: 1 << 30,
        ..script.clone()
    };
    let Ok(found) = look(&settled, &settled.files, FIRST, FIRST.now) else {
        // File numbers are used up.
        return;
    };
    let mut before = found.clone();
    for start in [FIRST, REBOOTED] {
        if let Ok(shifted) = look(&settled, &settled.files, start, start.now) {
            assert!(!script.has_order || ids(&shifted) == ids(&before));
            before = shifted;
        }
        let Some(after) = live(&settled, &before, start) else {
            return;
        };
        let mut then = look(&settled, &after, start, start.now).expect("it can be read again");
        if !script.has_order {
            before.sort_unstable_by_key(|(id, ..)| *id);
            then.sort_unstable_by_key(|(id, ..)| *id);
        }
        assert_eq!(before, then);
        settled.files = after;
    }
    if !script.steps.is_empty() || script.room != settled.room {
        live(script, &found, FIRST);
    }
}

fn ids(found: &[Found]) -> Vec<JobId> {
    found.iter().map(|(id, ..)| *id).collect()
}

/// What a start finds, in its order.
fn look(script: &Script, files: &Files, start: Start, now: Nanos) -> Result<Vec<Found>, WalError> {
    let memory = Memory::new(files, script.room);
    let wall = start.wall(now);
    let mut recovery = Recovery::read(memory, script.settings, now, wall, &mut |_| ())?;
    let mut found = Vec::new();
    while recovery.jobs_left() > 0 {
        recovery.restore_next(|one| {
            let job = one.job;
            let shown = Shown {
                tube: one.tube.as_bytes().to_vec(),
                state: word(job.state),
                pri: job.pri,
                delay: job.delay,
                ttr: job.ttr,
                counts: job.counts,
                body: one.body.to_vec(),
            };
            let deadline = match job.state {
                JobState::Delayed => job.deadline,
                _ => Nanos(0),
            };
            found.push((job.id, shown, job.created_at, deadline));
            None
        });
    }
    Ok(found)
}

fn word(state: JobState) -> &'static str {
    match state {
        JobState::Ready | JobState::Offered { .. } | JobState::Reserved { .. } => "ready",
        JobState::Delayed => "delayed",
        JobState::Buried => "buried",
    }
}

/// Starts, works and ends. Returns what is on the disk then, if the disk was up to it.
fn live(script: &Script, found: &[Found], start: Start) -> Option<Files> {
    let memory = Memory::new(&script.files, script.room);
    let wall = start.wall(start.now);
    let recovery = Recovery::read(memory, script.settings, start.now, wall, &mut |_| ());
    let recovery = recovery.expect("it could be read before");
    let highest = recovery.highest();
    let engine = Engine::new(Settings {
        ids: IdScheme::Plain,
        hasher: NameHasher::new([1, 2]),
        has_default: true,
    });
    let shard = match Shard::recover(engine, recovery) {
        Ok(shard) => shard,
        Err(error) => {
            let is_full = matches!(error, WalError::Use { step: "create", .. });
            assert!(is_full, "{error}");
            return None;
        }
    };
    let mut run = Run {
        shard,
        start,
        now: start.now,
        said: Said::default(),
        jobs: BTreeMap::new(),
        highest,
    };
    run.begin(found);
    for step in &script.steps {
        run.obey(*step);
    }
    run.end(script)
}

/// A shard at work, and of each job all that could be found of it if this was the end.
struct Run {
    shard: Shard<Wal<Memory>>,
    start: Start,
    now: Nanos,
    said: Said,
    jobs: BTreeMap<JobId, Vec<Shown>>,
    highest: JobId,
}

/// What the shard says about the last ask.
#[derive(Default)]
struct Said {
    shown: Option<Shown>,
    body: Option<Vec<u8>>,
    inserted: Option<JobId>,
    is_written: bool,
}

impl Outbox for Said {
    fn emit(&mut self, _: Caller, event: Event<'_>) {
        match event {
            Event::Inserted { id } => {
                self.inserted = Some(id);
                self.is_written = true;
            }
            Event::Released { .. }
            | Event::Buried { .. }
            | Event::Deleted { .. }
            | Event::Kicked { .. }
            | Event::KickedJob => self.is_written = true,
            Event::Found { body, .. } => self.body = Some(body.to_vec()),
            Event::JobStats(stats) => {
                self.shown = Some(Shown {
                    tube: stats.tube.as_bytes().to_vec(),
                    state: word(stats.state),
                    pri: stats.pri,
                    delay: stats.delay,
                    ttr: stats.ttr,
                    counts: stats.counts,
                    body: Vec::new(),
                });
            }
            _ => {}
        }
    }
}

impl Run {
    fn begin(&mut self, found: &[Found]) {
        self.shard.check_invariants();
        self.shard.attach(SHARD, session());
        for tube in TUBES {
            let tube = TubeName::parse(tube).expect("names are good");
            self.ask(Op::Watch { tube });
        }
        for (id, shown, ..) in found {
            assert_eq!(self.shown(*id).as_ref(), Some(shown), "{id:?}");
            self.jobs.insert(*id, vec![shown.clone()]);
            assert!(*id <= self.highest || *id >= JobId::UNCOUNTED, "{id:?}");
        }
    }

    fn ask(&mut self, op: Op<'_>) {
        let from = Caller {
            session: session(),
            seq: Seq(1),
        };
        self.said = Said::default();
        self.shard.begin_turn(self.now, self.start.wall(self.now));
        self.shard.submit(self.now, SHARD, from, op, &mut self.said);
    }

    /// The job as it would be after a restart.
    fn shown(&mut self, id: JobId) -> Option<Shown> {
        self.ask(Op::Peek { id });
        let body = self.said.body.take()?;
        self.ask(Op::StatsJob { id });
        let shown = self.said.shown.take()?;
        Some(Shown { body, ..shown })
    }

    fn nth(&self, nth: u8) -> JobId {
        let count = self.jobs.len().max(1);
        let id = self.jobs.keys().nth(usize::from(nth) % count);
        id.copied().unwrap_or(JobId(1))
    }

    fn put(&mut self, tube: u8, delay: u32, body_len: usize) {
        let tube = TUBES[usize::from(tube) % TUBES.len()];
        let tube = TubeName::parse(tube).expect("names are good");
        self.ask(Op::Use { tube });
        self.ask(Op::Put(Put {
            id: None,
            created_at: self.now,
            pri: Pri(body_len as u32),
            delay: Secs(delay),
            ttr: Secs(2),
            body: Body::from_vec(vec![b'x'; body_len]).into(),
        }));
        if let Some(id) = self.said.inserted {
            assert!(id > self.highest && id < JobId::UNCOUNTED);
            assert!(self.jobs.insert(id, Vec::new()).is_none(), "{id:?} twice");
            self.highest = id;
        }
    }

    fn obey(&mut self, step: Step) {
        let pri = Pri(7);
        match step {
            Step::Put { tube, body_len } => self.put(tube, 0, body_len),
            Step::PutDelayed { tube } => self.put(tube, 3, 1),
            Step::Reserve => self.ask(Op::Reserve {
                style: Style::Take,
                wait: false,
            }),
            Step::ReserveJob { nth } => self.ask(Op::ReserveJob { id: self.nth(nth) }),
            Step::Release { nth, is_delayed } => self.ask(Op::Release {
                id: self.nth(nth),
                pri,
                delay: Secs(u32::from(is_delayed)),
            }),
            Step::Bury { nth } => self.ask(Op::Bury {
                id: self.nth(nth),
                pri,
            }),
            Step::Delete { nth } => self.ask(Op::Delete { id: self.nth(nth) }),
            Step::KickJob { nth } => self.ask(Op::KickJob { id: self.nth(nth) }),
            Step::Kick { count } => self.ask(Op::Kick {
                count: count.into(),
            }),
            Step::Pass { secs } => {
                self.now = self.now.after(Secs(secs.into()));
                self.said = Said::default();
                self.shard.begin_turn(self.now, self.start.wall(self.now));
                self.shard.tick(self.now, &mut self.said);
            }
            Step::Flush => {
                self.said = Said::default();
                self.shard.flush();
                self.check_lens();
            }
        }
        self.shard.check_invariants();
        self.note();
    }

    /// The journal knows how large its directory is.
    fn check_lens(&self) {
        let journal = self.shard.journal();
        if journal.confirmed() < journal.position() {
            // Something has no room, or waits for a sync.
            return;
        }
        let files = journal.storage().files();
        let counted = files.iter().filter(|(name, _)| {
            let kind = FileName::of(OsStr::new(name));
            matches!(kind, FileName::Segment(_) | FileName::Ahead)
        });
        let len: u64 = counted.map(|(_, bytes)| bytes.len() as u64).sum();
        assert_eq!(journal.directory_len(), len);
    }

    /// Takes note of every job that is not as it was.
    fn note(&mut self) {
        let is_written = self.said.is_written;
        let ids: Vec<_> = self.jobs.keys().copied().collect();
        for id in ids {
            let shown = self.shown(id);
            let history = self.jobs.get_mut(&id).expect("it was listed");
            match shown {
                None => drop(self.jobs.remove(&id)),
                Some(shown) if history.last() != Some(&shown) => {
                    if is_written {
                        history.clear();
                    }
                    history.push(shown);
                }
                Some(_) => {}
            }
        }
    }

    fn end(mut self, script: &Script) -> Option<Files> {
        self.shard.flush();
        self.shard.close();
        if let Some(failure) = self.shard.take_failure() {
            assert!(matches!(failure, WalError::Numbers { .. }), "{failure}");
            return None;
        }
        let journal = self.shard.into_journal();
        if journal.confirmed() != journal.position() {
            assert!(script.room < 1 << 30, "there was room");
            return None;
        }
        let files = journal.into_storage().files();
        let found = match look(script, &files, self.start, self.now) {
            Err(WalError::Numbers { .. }) => return None,
            found => found.expect("a start after an end can read"),
        };
        let mut sorted = ids(&found);
        sorted.sort_unstable();
        assert_eq!(sorted, self.jobs.keys().copied().collect::<Vec<_>>());
        for (id, shown, ..) in &found {
            let history = &self.jobs[id];
            assert!(history.contains(shown), "{id:?} {shown:?} {history:?}");
        }
        Some(files)
    }
}

fn session() -> SessionId {
    SessionId::new(0, 1, 0)
}
