//! Directories with jobs in them, made by journals, and what a start would find in a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use beanshard::base::body::Body;
use beanshard::base::ids::{JobId, Pri, ShardId};
use beanshard::base::name::TubeName;
use beanshard::base::slot::Slot;
use beanshard::base::time::{NANOS_PER_SEC, Nanos, Secs};
use beanshard::data;
use beanshard::engine::IdScheme;
use beanshard::engine::host::{Journal, Record};
use beanshard::engine::job::{JobCounts, JobKey, JobRecord, JobState};
use beanshard::session::shards::ShardMap;
use beanshard::wal::disk::Disk;
use beanshard::wal::format::Format;
use beanshard::wal::journal::{Settings, Sync, Wal};
use beanshard::wal::record::WallNanos;
use beanshard::wal::recover::Recovery;
use beanshard::wal::shard_journal::ShardJournal;
use beanshard::wal::topology::{DataDir, Kind, Layout, Topology, look};
use beanshard::wal::v7::V7;
use beanshard::wal::v8::V8;

use crate::random::Random;

/// What the wall clock shows in these tests: a moment so late that no delay of theirs ends.
pub(crate) const WALL: WallNanos = WallNanos(4_000_000_000 * NANOS_PER_SEC as i64);

/// The same by the engine's clock.
pub(crate) const NOW: Nanos = Nanos(WALL.0 as u64);

/// Short files, so that there are several.
pub(crate) const FILE_LEN: u64 = 3000;

const TUBES: [&str; 9] = [
    "default", "a", "email", "x_y", "t1", "t2", "t3", "mail.out", "A+b/c",
];

pub(crate) fn settings() -> data::Settings {
    data::Settings {
        file_len: FILE_LEN,
        owners: 2,
        skip_damage: false,
        wall: WALL,
    }
}

pub(crate) fn topology(owners: u16) -> Topology {
    Topology {
        owners,
        fingerprint: ShardMap::new(owners.into()).fingerprint(),
    }
}

fn found<F: Format>(format: F, dir: &Path) -> Recovery<Disk, F> {
    let disk = Disk::lock(dir).expect("nobody uses it");
    let settings = Settings {
        file_len: FILE_LEN,
        sync: Sync::Always,
    };
    let read = Recovery::read_as(format, disk, settings, NOW, WALL, &mut |_| {});
    read.unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
}

fn v8(layout: &Layout, index: u16) -> V8 {
    V8 {
        fingerprint: layout.topology.fingerprint,
        owner: ShardId(index as u8),
        skip_damage: false,
    }
}

/// A job of some kind.
fn any_job(random: &mut Random, id: JobId, nth: u64) -> JobRecord {
    let mut count = || random.below(5) as u32;
    let counts = JobCounts {
        reserves: count(),
        timeouts: count(),
        releases: count(),
        buries: count(),
        kicks: count(),
    };
    let second = |random: &mut Random| Secs(1 + random.below(u64::from(u32::MAX)) as u32);
    let mut job = JobRecord {
        id,
        pri: Pri(random.below(5) as u32),
        delay: second(random),
        ttr: second(random),
        // Of the order in which jobs were put clocks may tell something else than ids.
        created_at: Nanos(NOW.0 - random.below(50) * NANOS_PER_SEC),
        deadline: Nanos(0),
        counts,
        state: JobState::Ready,
    };
    change(random, &mut job, nth);
    job
}

/// Brings a job into some state; `nth` grows.
fn change(random: &mut Random, job: &mut JobRecord, nth: u64) {
    (job.state, job.deadline) = match random.below(3) {
        0 => (JobState::Ready, Nanos(0)),
        1 => (
            JobState::Delayed,
            NOW.after(Secs(1000 + random.below(1000) as u32)),
        ),
        _ => (JobState::Buried, Nanos((1 << 62) + nth * 1000)),
    };
}

/// Some jobs in a journal, of which some are changed and some are gone.
fn fill<F: Format>(
    random: &mut Random,
    wal: &mut Wal<Disk, F>,
    jobs: u64,
    mut id_of: impl FnMut(u64, TubeName<'_>) -> JobId,
    is_here: impl Fn(TubeName<'_>) -> bool,
) {
    for nth in 1..=jobs {
        let tube = TubeName::parse(random.pick(&TUBES).as_bytes()).expect("a name");
        if !is_here(tube) {
            continue;
        }
        let len = random.index(300);
        let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        let body = Body::copy_of(&bytes);
        let mut job = any_job(random, id_of(nth, tube), 2 * nth);
        let key = JobKey(nth as u32);
        wal.reserve_put(tube, &body).expect("there is room");
        wal.append(Record::Put {
            key,
            job: &job,
            tube,
            body: &body,
        });
        let body_len = len as u32;
        if random.percent(40) {
            change(random, &mut job, 2 * nth + 1);
            job.counts.kicks += 1;
            wal.reserve_update(job.id).expect("there is room");
            wal.append(Record::Update {
                job: &job,
                body_len,
            });
        }
        if nth % 10 == 0 {
            wal.settle();
        }
        if random.percent(20) {
            wal.append(Record::Delete {
                key,
                job: &job,
                body_len,
            });
        }
    }
}

/// A binlog of the legacy mode.
pub(crate) fn make_legacy(dir: &Path, seed: u64, jobs: u64) {
    let random = &mut Random::new(seed);
    let mut wal = found(V7, dir).finish().expect("a file can be made");
    fill(random, &mut wal, jobs, |nth, _| JobId(3 * nth), |_| true);
    wal.close();
}

/// A data directory, with tubes that are paused and others whose pauses are over.
pub(crate) fn make_sharded(dir: &Path, seed: u64, owners: u16, jobs: u64) {
    let random = &mut Random::new(seed);
    let data = DataDir::open(dir, topology(owners)).expect("it can be made");
    let Kind::Sharded(layout) = *data.kind() else {
        panic!("{:?}", data.kind());
    };
    let map = ShardMap::new(owners.into());
    for index in 0..owners {
        let is_here = |tube: TubeName<'_>| map.of_tube(tube) == ShardId(index as u8);
        let recovery = found(v8(&layout, index), &data.owner(index));
        let mut wal = recovery.finish().expect("a file can be made");
        let id_of = |nth, tube: TubeName<'_>| IdScheme::Slotted.id(nth, Slot::of(tube));
        fill(random, &mut wal, jobs, id_of, is_here);
        for (nth, name) in TUBES.iter().enumerate() {
            let tube = TubeName::parse(name.as_bytes()).expect("a name");
            if nth % 2 == 0 && is_here(tube) {
                let is_over = nth % 4 == 0;
                let until = Nanos(if is_over { NOW.0 - 1 } else { NOW.0 + 77 });
                wal.reserve_pause(tube).expect("there is room");
                wal.append(Record::Pause {
                    tube,
                    length: Secs(nth as u32 + 1),
                    until,
                });
            }
        }
        wal.close();
    }
}

/// A job, as a start finds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) id: u64,
    pub(crate) created_at: u64,
    pub(crate) tube: String,
    pub(crate) body: Vec<u8>,
    pub(crate) pri: u32,
    pub(crate) state: &'static str,
    /// The rest.
    pub(crate) text: String,
}

/// All that a start finds.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The buried ones of a tube in their order, behind the others.
    pub(crate) jobs: Vec<Seen>,
    /// Pauses that run.
    pub(crate) pauses: BTreeMap<String, (u32, u64)>,
    /// Of each owner, the highest id that was given.
    pub(crate) highest: Vec<u64>,
}

impl State {
    fn take<F: Format>(&mut self, mut found: Recovery<Disk, F>) {
        self.highest.push(found.highest().0);
        let name = |tube: TubeName<'_>| String::from_utf8_lossy(tube.as_bytes()).into_owned();
        while found.jobs_left() > 0 {
            found.restore_next(|one| {
                let job = one.job;
                let (state, deadline) = match job.state {
                    JobState::Delayed => ("delayed", job.deadline.0),
                    JobState::Buried => ("buried", 0),
                    _ => ("ready", 0),
                };
                let text = format!("{:?} {:?} {:?} {deadline}", job.delay, job.ttr, job.counts);
                self.jobs.push(Seen {
                    id: job.id.0,
                    created_at: job.created_at.0,
                    tube: name(one.tube),
                    body: one.body.to_vec(),
                    pri: job.pri.0,
                    state,
                    text,
                });
                None
            });
        }
        while found.pauses_left() > 0 {
            found.restore_pause(|one| {
                if one.until > NOW {
                    let pause = (one.length.0, one.until.0);
                    self.pauses.insert(name(one.tube), pause);
                }
                true
            });
        }
    }

    /// Of a binlog of the legacy mode.
    pub(crate) fn of_legacy(dir: &Path) -> State {
        let mut state = State::default();
        state.take(found(V7, dir));
        state
    }

    /// Of a data directory.
    pub(crate) fn of_sharded(dir: &Path) -> State {
        let mut state = State::default();
        let data = DataDir::lock(dir).expect("nobody uses it");
        let Kind::Sharded(layout) = *data.kind() else {
            panic!("{:?}", data.kind());
        };
        let map = ShardMap::new(layout.topology.owners.into());
        for index in 0..layout.topology.owners {
            let before = state.jobs.len();
            state.take(found(v8(&layout, index), &data.owner(index)));
            for job in &state.jobs[before..] {
                let tube = TubeName::parse(job.tube.as_bytes()).expect("a name");
                assert_eq!(map.of_tube(tube), ShardId(index as u8), "{job:?}");
                assert_eq!(map.of_job(JobId(job.id)), ShardId(index as u8), "{job:?}");
            }
        }
        state
    }

    /// The jobs in the order of their ids.
    pub(crate) fn by_id(&self) -> Vec<Seen> {
        let mut jobs = self.jobs.clone();
        jobs.sort_by_key(|job| job.id);
        jobs
    }

    /// The jobs in the order in which they were put.
    pub(crate) fn by_birth(&self) -> Vec<Seen> {
        let mut jobs = self.jobs.clone();
        jobs.sort_by_key(|job| (job.created_at, job.id));
        jobs
    }

    /// The bodies of the buried jobs of each tube in their order.
    pub(crate) fn buried(&self) -> BTreeMap<&str, Vec<&[u8]>> {
        let mut buried: BTreeMap<&str, Vec<&[u8]>> = BTreeMap::new();
        for job in self.jobs.iter().filter(|job| job.state == "buried") {
            buried.entry(&job.tube).or_default().push(&job.body);
        }
        buried
    }

    pub(crate) fn count(&self, state: &str) -> u64 {
        self.jobs.iter().filter(|job| job.state == state).count() as u64
    }
}

/// The jobs with other ids: 1, 2, 3, ... as they stand.
pub(crate) fn numbered(jobs: Vec<Seen>) -> Vec<Seen> {
    let number = |(nth, job)| Seen {
        id: nth as u64 + 1,
        ..job
    };
    jobs.into_iter().enumerate().map(number).collect()
}

/// What is in a directory: names and bytes of all files but locks.
pub(crate) fn bytes_in(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        let name = path
            .file_name()
            .expect("it has a name")
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            let inside = bytes_in(&path).into_iter();
            all.extend(inside.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else if name != "lock" {
            all.insert(name, fs::read(&path).expect("it can be read"));
        }
    }
    all
}

pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        let to = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            fs::create_dir(&to).expect("it can be made");
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("it can be copied");
        }
    }
}

/// How many owners a data directory is for.
pub(crate) fn owners_of(dir: &Path) -> Option<u16> {
    match look(dir).expect("it can be looked at") {
        Kind::Sharded(layout) => Some(layout.topology.owners),
        Kind::New => None,
        Kind::Legacy(file) => panic!("{file}"),
    }
}
