//! What each job has been through, as clients could see it, and so what a start after a crash may
//! bring back of it: a state that is not older than the last one that somebody was told of.

use std::collections::BTreeMap;
use std::rc::Rc;

use beanshard::base::ids::{JobId, Pri};
use beanshard::base::time::Secs;
use beanshard::engine::job::JobCounts;
use beanshard::engine::stats::JobState;
use beanshard::wal::record::WallNanos;

use crate::life::TUBES;

/// A job as it is after a start. Those that somebody held are ready then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) tube: &'static str,
    pub(crate) body: Rc<[u8]>,
    pub(crate) pri: Pri,
    pub(crate) delay: Secs,
    pub(crate) ttr: Secs,
    pub(crate) created_at: WallNanos,
    pub(crate) counts: JobCounts,
    pub(crate) place: Place,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Ready,
    /// Until then.
    Delayed(WallNanos),
    Buried,
}

impl Place {
    pub(crate) fn of(state: JobState, deadline: WallNanos) -> Place {
        match state {
            JobState::Ready | JobState::Offered { .. } | JobState::Reserved { .. } => Place::Ready,
            JobState::Delayed => Place::Delayed(deadline),
            JobState::Buried => Place::Buried,
        }
    }
}

/// What a start has found.
#[derive(Debug)]
pub(crate) struct Found {
    /// In the order in which the engine gets them; then those pauses that are not over.
    pub(crate) jobs: Vec<(JobId, Shown)>,
    pub(crate) pauses: Vec<Pause>,
    pub(crate) highest: JobId,
}

/// A tube's pause: how long it is and when it ends.
pub(crate) type Pause = (&'static str, Secs, WallNanos);

/// The book takes a pause for a job, with an id that no job has.
pub(crate) fn pause_id(tube: &str) -> JobId {
    let at = TUBES.iter().position(|name| *name == tube);
    JobId(JobId::UNCOUNTED.0 + at.expect("it is one of ours") as u64)
}

/// A pause, taken for a job.
pub(crate) fn shown_pause(tube: &'static str, length: Secs, until: WallNanos) -> Shown {
    Shown {
        tube,
        body: Rc::default(),
        pri: Pri(0),
        delay: length,
        ttr: Secs(0),
        created_at: until,
        counts: JobCounts::default(),
        place: Place::Ready,
    }
}

impl Found {
    /// Takes the pauses for jobs, at this moment.
    pub(crate) fn show_pauses(&mut self, now: WallNanos) {
        for &(tube, length, until) in &self.pauses {
            if now < until {
                let shown = shown_pause(tube, length, until);
                self.jobs.push((pause_id(tube), shown));
            }
        }
    }
}

/// Everything that has happened.
pub(crate) struct Book {
    jobs: BTreeMap<JobId, Job>,
    /// What was asked and may be answered when the journal has confirmed so much.
    answers: Vec<Answer>,
    /// Highest ids: one that somebody was told of, and one that a cut of power leaves.
    pub(crate) told_id: JobId,
    pub(crate) kept_id: JobId,
    /// Whether a cut of power leaves ids.
    pub(crate) keeps_ids: bool,
    /// Whether what is there after any crash is what was written up to some moment, and bodies are
    /// as they were put.
    pub(crate) is_strict: bool,
    burials: u64,
}

/// One job's past. The first entry is that it was not there.
struct Job {
    entries: Vec<Entry>,
    /// Index of the entry that is the least that has to survive: when the process is killed, and
    /// when the power is cut.
    told: usize,
    kept: usize,
}

struct Entry {
    /// None if it was not there.
    shown: Option<Shown>,
    /// Whether the journal was told at once. Otherwise it is told if the job is written anew.
    is_written: bool,
    /// Positions in the journal: it may be there if what is before `from` is, and it is if what is
    /// before `until` is.
    from: u64,
    until: u64,
    /// Which burial it was, of all.
    burial: u64,
}

const NOTHING: Entry = Entry {
    shown: None,
    is_written: false,
    from: 0,
    until: 0,
    burial: 0,
};

struct Answer {
    ticket: u64,
    id: JobId,
    entry: usize,
    is_put: bool,
}

/// What has to survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// All that was written: some moment after the last that somebody was told of.
    Written,
    /// Of each job by itself, what somebody was told of.
    Told,
    /// Of each job by itself, what would have survived a cut of power earlier.
    Kept,
    /// All that was written.
    All,
}

impl Job {
    fn new() -> Job {
        Job {
            entries: vec![NOTHING],
            told: 0,
            kept: 0,
        }
    }

    /// The job has holes in its body from now on.
    fn on_holes(&mut self, shown: Option<&Shown>) -> usize {
        let like = self.with_holes(0, shown).expect("it was checked");
        self.entries.push(Entry {
            shown: shown.cloned(),
            is_written: true,
            burial: self.entries[like].burial,
            ..NOTHING
        });
        self.entries.len() - 1
    }

    fn last(&self) -> &Entry {
        self.entries.last().expect("there is a first entry")
    }

    /// The entries that have `shown`, from this one on.
    fn matching(&self, from: usize, shown: Option<&Shown>) -> impl Iterator<Item = usize> {
        let entries = self.entries.iter().enumerate().skip(from);
        let same = entries.filter(move |(_, entry)| entry.shown.as_ref() == shown);
        same.map(|(index, _)| index)
    }

    /// The entry that it would be, but that parts of the body are zeros. Records have no checksum,
    /// so that can come of a put that nobody was told of; of no other.
    fn with_holes(&self, from: usize, shown: Option<&Shown>) -> Option<usize> {
        let shown = shown?;
        let is_hole = |(found, put): (&u8, &u8)| found == put || *found == 0;
        let mut entries = self.entries.iter().skip(from);
        let at = entries.position(|entry| {
            entry.shown.as_ref().is_some_and(|put| {
                let body = Rc::clone(&put.body);
                let is_same =
                    shown.body.len() == body.len() && shown.body.iter().zip(&*body).all(is_hole);
                is_same
                    && *put
                        == Shown {
                            body,
                            ..shown.clone()
                        }
            })
        });
        at.map(|at| from + at)
    }

    /// Whether the entry may be what a journal tells that ends at `position`.
    fn allows(&self, index: usize, position: u64) -> bool {
        let mut later = self.entries[index + 1..].iter();
        self.entries[index].from <= position
            && !later.any(|entry| entry.is_written && entry.until <= position)
    }

    fn floor(&self, floor: Floor) -> usize {
        match floor {
            Floor::Written | Floor::Told => self.told,
            Floor::Kept => self.kept,
            Floor::All => {
                let is_written = |entry: &Entry| entry.is_written;
                self.entries.iter().rposition(is_written).unwrap_or(0)
            }
        }
    }
}

impl Book {
    pub(crate) fn new() -> Book {
        Book {
            jobs: BTreeMap::new(),
            answers: Vec::new(),
            told_id: JobId(0),
            kept_id: JobId(0),
            keeps_ids: true,
            is_strict: false,
            burials: 0,
        }
    }

    /// Jobs that are there.
    pub(crate) fn live(&self) -> impl Iterator<Item = (JobId, &Shown)> {
        let jobs = self.jobs.range(..JobId::UNCOUNTED);
        jobs.filter_map(|(&id, job)| Some((id, job.last().shown.as_ref()?)))
    }

    pub(crate) fn get(&self, id: JobId) -> Option<&Shown> {
        self.jobs.get(&id)?.last().shown.as_ref()
    }

    /// The job is like this now. Between these positions the journal has been told, if they differ.
    pub(crate) fn note(&mut self, id: JobId, shown: Option<Shown>, before: u64, after: u64) {
        let job = self.jobs.entry(id).or_insert_with(Job::new);
        if job.last().shown == shown {
            return;
        }
        self.burials += 1;
        job.entries.push(Entry {
            shown,
            is_written: after > before,
            from: before + 1,
            until: after,
            burial: self.burials,
        });
    }

    /// The same of a pause, which is answered.
    pub(crate) fn note_pause(
        &mut self,
        id: JobId,
        shown: Option<Shown>,
        before: u64,
        after: u64,
        ticket: u64,
    ) {
        self.note(id, shown, before, after);
        if after > before {
            self.answer(ticket, id, false, false);
        }
    }

    /// Pauses that are over by now are seen by no start, whichever of them it finds.
    pub(crate) fn end_pauses(&mut self, now: WallNanos) {
        let pauses = self.jobs.range_mut(JobId::UNCOUNTED..);
        for entry in pauses.flat_map(|(_, job)| &mut job.entries) {
            entry.shown.take_if(|shown| shown.created_at <= now);
        }
    }

    /// A start has found this pause, and it runs or does not.
    pub(crate) fn begin_pause(&mut self, id: JobId, shown: Option<Shown>, runs: bool) {
        let mut job = Job::new();
        if shown.is_some() {
            job.entries[0].shown = shown;
            if !runs {
                job.entries.push(NOTHING);
            }
        }
        self.jobs.insert(id, job);
    }

    /// When the journal has confirmed the ticket, somebody is told that the job is as it is now, or
    /// if `is_sight` only that there is one.
    pub(crate) fn answer(&mut self, ticket: u64, id: JobId, is_sight: bool, is_put: bool) {
        let job = &self.jobs[&id];
        let entry = if is_sight {
            let there = |entry: &Entry| entry.shown.is_some();
            job.entries.iter().position(there).unwrap_or(0)
        } else {
            job.entries.len() - 1
        };
        self.answers.push(Answer {
            ticket,
            id,
            entry,
            is_put,
        });
    }

    /// The journal has confirmed so much, and answers leave.
    pub(crate) fn confirm(&mut self, position: u64) {
        let leaves = |answer: &mut Answer| answer.ticket <= position;
        for answer in self.answers.extract_if(.., leaves) {
            let job = self.jobs.get_mut(&answer.id).expect("it is known");
            job.told = job.told.max(answer.entry);
            if answer.is_put {
                self.told_id = self.told_id.max(answer.id);
            }
        }
    }

    /// Whether some answers wait.
    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Whether a start may find this.
    pub(crate) fn check(&self, found: &Found, floor: Floor, end: u64) -> Result<(), String> {
        let by_id: BTreeMap<JobId, &Shown> =
            found.jobs.iter().map(|(id, shown)| (*id, shown)).collect();
        if by_id.len() != found.jobs.len() {
            return Err("a job was found twice".to_owned());
        }
        if let Some(id) = by_id.keys().find(|id| !self.jobs.contains_key(id)) {
            return Err(format!("{id:?} was found and never existed"));
        }
        let least_id = match floor {
            Floor::Kept if !self.keeps_ids => JobId(0),
            Floor::Kept => self.kept_id,
            Floor::Written | Floor::Told | Floor::All => self.told_id,
        };
        if found.highest < least_id {
            return Err(format!("{least_id:?} is forgotten: {:?}", found.highest));
        }
        for (id, job) in &self.jobs {
            let shown = by_id.get(id).copied();
            let floor_at = job.floor(floor);
            let is_there = job.entries[floor_at].shown.is_some();
            let is_allowed = job.matching(floor_at, shown).next().is_some();
            let may_have_holes = !self.is_strict && !is_there;
            let has_holes = || job.with_holes(floor_at, shown).is_some();
            if !(is_allowed || may_have_holes && has_holes()) {
                return Err(self.fault(*id, shown, floor));
            }
        }
        self.check_burials(found)?;
        match floor {
            Floor::Written => self.check_moment(&by_id, floor, end),
            Floor::Told | Floor::Kept | Floor::All if self.is_strict => {
                self.check_moment(&by_id, floor, end)
            }
            Floor::Told | Floor::Kept | Floor::All => Ok(()),
        }
    }

    /// Whether each of these jobs was once like this. Of pauses only the last life is known.
    pub(crate) fn check_each(&self, found: &Found) -> Result<(), String> {
        let jobs = found.jobs.iter().filter(|(id, _)| *id < JobId::UNCOUNTED);
        for (id, shown) in jobs {
            let job = self.jobs.get(id);
            if job.is_none_or(|job| job.matching(0, Some(shown)).next().is_none()) {
                return Err(format!("{id:?} was never {}", brief(Some(shown))));
            }
        }
        Ok(())
    }

    fn fault(&self, id: JobId, shown: Option<&Shown>, floor: Floor) -> String {
        use std::fmt::Write;
        let job = &self.jobs[&id];
        let mut text = format!("{id:?} may not be {}:", brief(shown));
        for (index, entry) in job.entries.iter().enumerate() {
            let least = if index == job.floor(floor) { "=>" } else { "" };
            let (from, until) = (entry.from, entry.until);
            let shown = brief(entry.shown.as_ref());
            let how = if entry.is_written {
                "written"
            } else {
                "unsaid"
            };
            let _ = write!(text, "\n  {least:2} {from}..{until} {how} {shown}");
        }
        text
    }

    /// Those that are buried come in the order of their burial.
    fn check_burials(&self, found: &Found) -> Result<(), String> {
        let mut last = (0, JobId(0));
        for (id, shown) in &found.jobs {
            if shown.place != Place::Buried {
                continue;
            }
            let job = &self.jobs[id];
            let exact = job.matching(0, Some(shown)).last();
            let index = exact.or_else(|| job.with_holes(0, Some(shown)));
            let burial = index.map_or(0, |index| job.entries[index].burial);
            if burial <= last.0 {
                return Err(format!("{id:?} was buried before {:?}", last.1));
            }
            last = (burial, *id);
        }
        Ok(())
    }

    /// There is one moment at which all jobs were like this.
    fn check_moment(
        &self,
        found: &BTreeMap<JobId, &Shown>,
        floor: Floor,
        end: u64,
    ) -> Result<(), String> {
        let entries = || self.jobs.values().flat_map(|job| &job.entries);
        let least = self
            .jobs
            .values()
            .map(|job| &job.entries[..=job.floor(floor)]);
        let least = least.flatten().filter(|entry| entry.is_written);
        let least = least.map(|entry| entry.until).max().unwrap_or(0);
        let mut moments: Vec<u64> = entries().map(|entry| entry.from).collect();
        moments.extend(entries().map(|entry| entry.until));
        moments.push(end);
        moments.retain(|moment| (least..=end).contains(moment));
        moments.sort_unstable();
        moments.dedup();
        let mut fault = String::new();
        for &moment in moments.iter().rev() {
            let odd = self.jobs.iter().find(|(id, job)| {
                let shown = found.get(id).copied();
                let mut entries = job.matching(job.floor(floor), shown);
                !entries.any(|index| job.allows(index, moment))
            });
            let Some((&id, _)) = odd else {
                return Ok(());
            };
            let shown = found.get(&id).copied();
            fault = self.fault(id, shown, floor);
        }
        Err(format!("no moment was like this; at the first, {fault}"))
    }

    /// A cut of power now would leave this, so it must leave no less later.
    pub(crate) fn keep(&mut self, found: &Found) {
        self.kept_id = self.kept_id.max(found.highest);
        for (id, shown) in &found.jobs {
            let job = self.jobs.get_mut(id).expect("what is found was checked");
            // A pause may be there again as it was before.
            let kept = job.matching(job.kept, Some(shown)).next();
            job.kept = kept.unwrap_or(job.kept);
        }
    }

    /// This is what a start has found, and all that there is: it can be seen from now on. After a
    /// cut of power it is on the disk.
    pub(crate) fn settle(&mut self, found: &Found, is_kept: bool) {
        self.answers.clear();
        let by_id: BTreeMap<JobId, &Shown> =
            found.jobs.iter().map(|(id, shown)| (*id, shown)).collect();
        for (id, job) in &mut self.jobs {
            let shown = by_id.get(id).copied();
            let last = match job.matching(0, shown).last() {
                Some(last) => last,
                None => job.on_holes(shown),
            };
            job.entries.truncate(last + 1);
            job.told = last;
            if is_kept {
                job.kept = last;
            }
            job.kept = job.kept.min(last);
            for entry in &mut job.entries {
                (entry.from, entry.until) = (0, 0);
            }
        }
        self.told_id = found.highest;
        if is_kept {
            self.kept_id = found.highest;
        }
    }
}

fn brief(shown: Option<&Shown>) -> String {
    let Some(job) = shown else {
        return "absent".to_owned();
    };
    let Shown { tube, body, .. } = job;
    let (pri, delay, ttr) = (job.pri.0, job.delay.0, job.ttr.0);
    let place = format!("{:?} pri {pri} delay {delay} ttr {ttr}", job.place);
    let (len, counts) = (body.len(), job.counts);
    let made = job.created_at.0;
    format!("in {tube}, {place}, {len} bytes, made {made}, {counts:?}")
}
