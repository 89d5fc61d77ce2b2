//! What an owner's binlog was told, and how much of it had to be there when answers left. So it is
//! known what a start may find after any crash: all that was told up to some moment, and nothing
//! else. That moment is not before the last of which somebody heard, as far as the disk had
//! promised to keep it.

use std::collections::{BTreeMap, BTreeSet};

use beanshard::base::body::Body;
use beanshard::base::ids::{JobId, Pri, Seq};
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::event::Event;
use beanshard::engine::host::Record;
use beanshard::engine::job::{JobCounts, JobRecord, JobState};
use beanshard::engine::stats::JobStats;
use beanshard::wire::kind::EventKind;

use crate::names::text_of;
use crate::truth::Who;

/// See the module's description.
#[derive(Default)]
pub(crate) struct Ledger {
    /// What there was at the last start. It is on the disk.
    base: State,
    /// What has happened since, and what there is.
    history: Vec<Change>,
    latest: State,
    /// When it is, where in the history it begins what is being done, and what was said about that.
    now: Nanos,
    start: usize,
    said: Vec<(Who, Seq, EventKind, Said)>,
    /// How much of the history has to be there before each answer may be known to anybody.
    owed: BTreeMap<(Who, Seq, EventKind), (usize, Said)>,
    /// The same of all answers that have left.
    floor: usize,
    /// Jobs that somebody knows of, and that somebody knows to be gone.
    pub(crate) told: BTreeSet<JobId>,
    pub(crate) told_gone: BTreeSet<JobId>,
    /// What has left may be lost all the same: the power was cut, and nobody had asked for syncs.
    pub(crate) is_forgiven: bool,
}

type State = BTreeMap<Key, Entry>;

/// One thing that the binlog was told.
struct Change {
    key: Key,
    /// None if it is gone.
    entry: Option<Entry>,
    /// No answer waits for it: a copy, or something that needs no record.
    is_unasked: bool,
}

/// What a binlog keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Job(JobId),
    Pause(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) shown: Shown,
    /// Of a buried job, its place among the others.
    burial: Nanos,
}

/// As much as a start finds again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Job {
        tube: &'static str,
        pri: Pri,
        delay: Secs,
        ttr: Secs,
        created_at: Nanos,
        counts: JobCounts,
        place: Place,
    },
    Pause {
        length: Secs,
        until: Nanos,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Ready,
    Delayed(Nanos),
    Buried,
}

/// What somebody is told.
#[derive(Clone, Copy, Debug)]
enum Said {
    Inserted(JobId),
    Changed(JobId),
    Deleted(JobId),
    Kicked(u32),
    KickedJob,
    Paused,
    /// There is the job.
    Seen(JobId),
}

/// What a start finds.
pub(crate) struct Found {
    /// With the buried ones in their order.
    pub(crate) jobs: Vec<(JobId, Shown)>,
    pub(crate) bodies: Vec<(JobId, Body)>,
    pub(crate) pauses: Vec<(&'static str, Shown)>,
    /// The highest id that was ever given.
    pub(crate) highest: JobId,
    pub(crate) now: Nanos,
    /// Whether the default tube is always there.
    pub(crate) has_default: bool,
}

impl Shown {
    pub(crate) fn job(job: &JobRecord, tube: &'static str) -> Shown {
        Shown::Job {
            tube,
            pri: job.pri,
            delay: job.delay,
            ttr: job.ttr,
            created_at: job.created_at,
            counts: job.counts,
            place: match job.state {
                JobState::Ready | JobState::Offered { .. } | JobState::Reserved { .. } => {
                    Place::Ready
                }
                JobState::Delayed => Place::Delayed(job.deadline),
                JobState::Buried => Place::Buried,
            },
        }
    }

    /// Whether a job that was written down like this is shown by its shard like that. It may have
    /// been handed to somebody since.
    pub(crate) fn agrees(&self, stats: &JobStats<'static>) -> bool {
        let Shown::Job {
            tube,
            pri,
            delay,
            ttr,
            counts,
            ..
        } = *self
        else {
            return false;
        };
        let reserves = stats.counts.reserves;
        let was_handed_over = reserves == counts.reserves || reserves == counts.reserves + 1;
        let counts = JobCounts { reserves, ..counts };
        was_handed_over
            && (tube, pri, delay, ttr, counts)
                == (
                    text_of(stats.tube),
                    stats.pri,
                    stats.delay,
                    stats.ttr,
                    stats.counts,
                )
    }
}

impl Found {
    pub(crate) fn has(&self, id: JobId) -> bool {
        self.jobs.iter().any(|(job, _)| *job == id)
    }

    fn state(&self) -> State {
        let jobs = self.jobs.iter().enumerate();
        let jobs = jobs.map(|(nth, &(id, shown))| {
            let burial = Nanos(nth as u64);
            (Key::Job(id), Entry { shown, burial })
        });
        let pauses = self.pauses.iter().map(|&(tube, shown)| {
            let burial = Nanos(0);
            (Key::Pause(tube), Entry { shown, burial })
        });
        jobs.chain(pauses.filter(|(key, entry)| self.counts(*key, entry)))
            .collect()
    }

    /// Whether the start has to do with it: a pause that is over is none, and neither is one of a
    /// tube that is not there.
    fn counts(&self, key: Key, entry: &Entry) -> bool {
        match (key, entry.shown) {
            (Key::Pause(paused), Shown::Pause { until, .. }) => {
                let mut tubes = self.jobs.iter().filter_map(|(_, shown)| match shown {
                    Shown::Job { tube, .. } => Some(*tube),
                    Shown::Pause { .. } => None,
                });
                let is_default = self.has_default && paused == "default";
                until > self.now && (is_default || tubes.any(|tube| tube == paused))
            }
            _ => true,
        }
    }
}

/// While the owner runs.
impl Ledger {
    /// The binlog is told this.
    pub(crate) fn enter(&mut self, record: &Record<'_>) {
        match *record {
            Record::Put { job, tube, .. } => self.enter_job(job, text_of(tube)),
            Record::Update { job, .. } => {
                let known = self.latest.get(&Key::Job(job.id));
                let Some(Shown::Job { tube, .. }) = known.map(|entry| entry.shown) else {
                    panic!("{:?} changes and was never put", job.id);
                };
                self.enter_job(job, tube);
            }
            Record::Delete { job, .. } => self.change(Key::Job(job.id), None),
            Record::Pause {
                tube,
                length,
                until,
            } => {
                let shown = Shown::Pause { length, until };
                let burial = Nanos(0);
                let entry = Some(Entry { shown, burial });
                self.change(Key::Pause(text_of(tube)), entry);
            }
            Record::Resume { tube } => self.enter_resume(text_of(tube)),
        }
    }

    /// Of a pause that is over by itself nothing has to be written.
    fn enter_resume(&mut self, tube: &'static str) {
        let key = Key::Pause(tube);
        let known = self.latest.get(&key).map(|entry| entry.shown);
        self.change(key, None);
        if let (Some(Shown::Pause { until, .. }), Some(change)) = (known, self.history.last_mut()) {
            change.is_unasked = until <= self.now;
        }
    }

    /// The binlog writes a job anew, as it is.
    pub(crate) fn copy(&mut self, record: &Record<'_>) {
        let Record::Put { job, tube, .. } = *record else {
            return;
        };
        let key = Key::Job(job.id);
        let known = *self.latest.get(&key).expect("what is copied is there");
        let shown = Shown::job(job, text_of(tube));
        self.change(key, Some(Entry { shown, ..known }));
        if let Some(change) = self.history.last_mut() {
            change.is_unasked = true;
        }
    }

    fn enter_job(&mut self, job: &JobRecord, tube: &'static str) {
        let (shown, burial) = (Shown::job(job, tube), job.deadline);
        self.change(Key::Job(job.id), Some(Entry { shown, burial }));
    }

    fn change(&mut self, key: Key, entry: Option<Entry>) {
        let is_unasked = false;
        let change = Change {
            key,
            entry,
            is_unasked,
        };
        change.apply(&mut self.latest);
        self.history.push(change);
    }

    /// Something is about to be done.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.now = now;
        self.start = self.history.len();
        self.said.clear();
    }

    /// This is said meanwhile.
    pub(crate) fn note(&mut self, who: Who, seq: Seq, event: &Event<'_>) {
        let said = match *event {
            Event::Inserted { id } => Said::Inserted(id),
            Event::Released { id } | Event::Buried { id } => Said::Changed(id),
            Event::Deleted { id } => Said::Deleted(id),
            Event::Kicked { count } => Said::Kicked(count),
            Event::KickedJob => Said::KickedJob,
            Event::Paused => Said::Paused,
            Event::Reserved { id, .. } | Event::Found { id, .. } => Said::Seen(id),
            _ => return,
        };
        self.said.push((who, seq, kind_of(event), said));
    }

    /// It is done. Whatever was answered must have been written down, and the answer counts only
    /// with that. `pause` is the length of the pause that was asked for.
    pub(crate) fn end(&mut self, pause: Option<Secs>) {
        for (who, seq, kind, said) in std::mem::take(&mut self.said) {
            let needed = self.needed(said, pause);
            self.owed.insert((who, seq, kind), (needed, said));
        }
    }

    fn needed(&self, said: Said, pause: Option<Secs>) -> usize {
        let done = || {
            let done = self.history.iter().enumerate().skip(self.start);
            done.filter(|(_, change)| !change.is_unasked)
        };
        let last = |is_it: &dyn Fn(&Key, bool) -> bool| {
            let told = done().filter(|(_, change)| is_it(&change.key, change.entry.is_some()));
            told.last().map(|(at, _)| at + 1)
        };
        let is_job = |key: &Key| matches!(key, Key::Job(_));
        let needed = match said {
            Said::Inserted(id) | Said::Changed(id) => {
                last(&|key, is_there| *key == Key::Job(id) && is_there)
            }
            Said::Deleted(id) => last(&|key, is_there| *key == Key::Job(id) && !is_there),
            Said::KickedJob => last(&|key, is_there| is_job(key) && is_there),
            Said::Kicked(count) => {
                let kicked = done().filter(|(_, change)| is_job(&change.key)).count();
                assert_eq!(kicked, count as usize, "each kick is written down");
                Some(last(&|key, _| is_job(key)).unwrap_or(0))
            }
            Said::Paused if pause == Some(Secs(0)) => {
                Some(last(&|key, _| !is_job(key)).unwrap_or(0))
            }
            Said::Paused => last(&|key, is_there| !is_job(key) && is_there),
            Said::Seen(id) => {
                let mut history = self.history.iter();
                let put = history.position(|change| change.key == Key::Job(id));
                let is_old = self.base.contains_key(&Key::Job(id));
                Some(put.filter(|_| !is_old).map_or(0, |at| at + 1))
            }
        };
        needed.unwrap_or_else(|| panic!("{said:?} is not written down"))
    }

    /// What jobs were written down as in what was just done.
    pub(crate) fn done(&self) -> BTreeMap<JobId, Shown> {
        let done = self.history[self.start..].iter();
        let jobs = done.filter_map(|change| match (change.key, change.entry) {
            (Key::Job(id), Some(entry)) => Some((id, entry.shown)),
            _ => None,
        });
        jobs.collect()
    }

    /// An answer has left the owner.
    pub(crate) fn leave(&mut self, who: Who, seq: Seq, kind: EventKind) {
        let Some((needed, said)) = self.owed.remove(&(who, seq, kind)) else {
            return;
        };
        self.floor = self.floor.max(needed);
        match said {
            Said::Inserted(id) | Said::Seen(id) => {
                self.told.insert(id);
            }
            Said::Deleted(id) => {
                self.told_gone.insert(id);
            }
            Said::Changed(_) | Said::Kicked(_) | Said::KickedJob | Said::Paused => {}
        }
    }
}

/// After a crash.
impl Ledger {
    /// Whether a start may find this.
    ///
    /// # Panics
    /// If it may not.
    pub(crate) fn check(&self, found: &Found) {
        let least = if self.is_forgiven { 0 } else { self.floor };
        let seen = found.state();
        assert_eq!(
            seen.len(),
            found.jobs.len()
                + seen
                    .keys()
                    .filter(|key| matches!(key, Key::Pause(_)))
                    .count(),
            "a job was found twice"
        );
        let state = self.moment_of(found, &seen, least);
        let mut last = Nanos(0);
        for &(id, shown) in &found.jobs {
            let Shown::Job {
                place: Place::Buried,
                ..
            } = shown
            else {
                continue;
            };
            let burial = state[&Key::Job(id)].burial;
            assert!(burial >= last, "{id:?} was buried before another");
            last = burial;
        }
    }

    /// A start has found this, and begins with it.
    pub(crate) fn begin_anew(&mut self, found: &Found) {
        if self.is_forgiven {
            self.told.retain(|&id| found.has(id));
            // Ids that nobody knows of may be given again.
            let is_gone = |id| id <= found.highest && !found.has(id);
            self.told_gone.retain(|&id| is_gone(id));
        }
        self.base = found.state();
        self.latest = self.base.clone();
        self.history.clear();
        self.owed.clear();
        self.begin(found.now);
        self.floor = 0;
        self.is_forgiven = false;
    }

    /// The state at a moment, not before `least` of the history, at which all was as it was found.
    fn moment_of(&self, found: &Found, seen: &State, least: usize) -> State {
        let is_odd = |state: &State, key: Key| {
            let there = state.get(&key).filter(|entry| found.counts(key, entry));
            there.map(|entry| entry.shown) != seen.get(&key).map(|entry| entry.shown)
        };
        let mut state = self.base.clone();
        for change in &self.history[..least] {
            change.apply(&mut state);
        }
        let keys = state.keys().chain(seen.keys());
        let mut odd: BTreeSet<Key> = keys.copied().filter(|key| is_odd(&state, *key)).collect();
        let told = odd.iter().map(|key| (*key, state.get(key).copied()));
        let told: Vec<_> = told.collect();
        let mut later = self.history[least..].iter();
        while !odd.is_empty() {
            let Some(change) = later.next() else {
                let seen: Vec<_> = told.iter().map(|(key, _)| seen.get(key)).collect();
                let len = self.history.len();
                panic!(
                    "no moment from {least} to {len} was as a start has found it; \
                     at the first {told:?}, found {seen:?}"
                );
            };
            change.apply(&mut state);
            if is_odd(&state, change.key) {
                odd.insert(change.key);
            } else {
                odd.remove(&change.key);
            }
        }
        state
    }
}

impl Change {
    fn apply(&self, state: &mut State) {
        match self.entry {
            Some(entry) => {
                state.insert(self.key, entry);
            }
            None => {
                state.remove(&self.key);
            }
        }
    }
}

fn kind_of(event: &Event<'_>) -> EventKind {
    match event {
        Event::Inserted { .. } => EventKind::Inserted,
        Event::Released { .. } => EventKind::Released,
        Event::Buried { .. } => EventKind::Buried,
        Event::Deleted { .. } => EventKind::Deleted,
        Event::Kicked { .. } => EventKind::Kicked,
        Event::KickedJob => EventKind::KickedJob,
        Event::Paused => EventKind::Paused,
        Event::Found { .. } => EventKind::Found,
        _ => EventKind::Reserved,
    }
}
