//! A start: reads a directory, finds the jobs that are there, cuts what was torn off, and makes the
//! file that is written next.
//!
//! As far as the records go this reads as the original does, with the exceptions that are needed to
//! lose nothing: the older copy of a job stands when the newer one is torn, bodies of every length
//! are taken, and a file that cannot be read to its end is never removed.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::io;

use rustc_hash::FxHashMap;

use crate::base::body::Body;
use crate::base::ids::JobId;
use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::slab::Slab;
use crate::base::time::Nanos;
use crate::engine::job::{JobKey, JobRecord, JobState};
use crate::wal::convert::{burial_at, burial_of, highest_of};
use crate::wal::error::WalError;
use crate::wal::files::{File, HEAD_LEN, NUMBER_MAX, SHORT_LEN};
use crate::wal::journal::{LOG, Settings, Wal};
use crate::wal::record::{Content, JobImage, Record, SavedState, WallNanos};
use crate::wal::segment::{FileName, Found, Segment, Tail, file_name};
use crate::wal::shard_journal::ShardJournal;
use crate::wal::storage::{Storage, is_full};

/// A journal that has been read and is not yet in use, and the jobs that it tells of.
pub struct Recovery<S: Storage> {
    wal: Wal<S>,
    found: Slab<FoundJob>,
    tubes: Tubes,
    /// Slots in `found`, in the order in which the jobs are to be restored.
    order: VecDeque<u32>,
    /// The number of the file that is written next, if no file is left.
    next_file: u64,
}

/// How far a start has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records that were read.
    pub records: u64,
    /// Bytes of these records.
    pub bytes: u64,
    /// Bytes of all files.
    pub all_bytes: u64,
}

/// A job that the directory tells of.
pub struct RecoveredJob<'a> {
    /// What is kept of it, nobody holding it.
    pub job: JobRecord,
    /// Its tube.
    pub tube: TubeName<'a>,
    /// What it carries.
    pub body: Body,
}

struct FoundJob {
    image: JobImage,
    /// Number in [`Tubes`].
    tube: u32,
    body: Body,
    /// Index of the file with the full record, and the bytes of that.
    home: usize,
    len: u64,
    /// When it was buried, or a moment that stands for that; 0 if it is not.
    burial: Nanos,
}

/// Names of tubes, each once.
#[derive(Default)]
struct Tubes {
    names: Vec<TubeNameBuf>,
    numbers: HashMap<TubeNameBuf, u32>,
}

impl Tubes {
    /// The number of the tube with this name. Jobs of one tube often stand together.
    fn number(&mut self, name: TubeName<'_>, likely: u32) -> u32 {
        let is_it = |one: &TubeNameBuf| one.as_name() == name;
        if self.names.get(likely as usize).is_some_and(is_it) {
            return likely;
        }
        let name = TubeNameBuf::from(name);
        let next = self.names.len() as u32;
        let names = &mut self.names;
        *self.numbers.entry(name.clone()).or_insert_with(|| {
            names.push(name);
            next
        })
    }
}

/// The state of the reading.
struct Reader {
    found: Slab<FoundJob>,
    by_id: FxHashMap<JobId, u32>,
    tubes: Tubes,
    progress: Progress,
    highest: JobId,
    latest_burial: Nanos,
    latest_tube: u32,
}

/// Where a record is.
#[derive(Clone, Copy)]
struct Place {
    /// Index of the file.
    at: usize,
    /// Number of the file.
    number: u64,
    /// Bytes from its start.
    offset: u64,
}

/// Records between two reports of progress.
const REPORT_RECORDS: u64 = 4096;

impl<S: Storage> Recovery<S> {
    /// Reads all files in `storage`, at this moment of both clocks. `report` is told from time to
    /// time how far it is.
    ///
    /// # Errors
    /// [`WalError::Use`] if a file cannot be read; [`WalError::Numbers`]. What is wrong inside of
    /// files is logged with its place.
    pub fn read(
        storage: S,
        settings: Settings,
        now: Nanos,
        wall: WallNanos,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Recovery<S>, WalError> {
        let mut wal = Wal::new(storage, settings, now, wall);
        let numbers = wal.look()?;
        let next_file = numbers.last().map_or(1, |highest| highest + 1);
        let mut reader = Reader {
            found: Slab::default(),
            by_id: FxHashMap::default(),
            tubes: Tubes::default(),
            progress: Progress::default(),
            highest: JobId(0),
            latest_burial: Nanos(0),
            latest_tube: 0,
        };
        for number in numbers {
            wal.read_file(number, &mut reader, report)?;
            wal.keep_file(number)?;
        }
        wal.drop_unused()?;
        wal.keep(Vec::new(), true, "the directory")?;
        report(reader.progress);
        wal.highest = reader.highest;
        let order = reader.order();
        Ok(Recovery {
            wal,
            found: reader.found,
            tubes: reader.tubes,
            order,
            next_file,
        })
    }

    /// The highest id that was ever given, as far as is known; 0 for none.
    #[must_use]
    pub fn highest(&self) -> JobId {
        self.wal.highest
    }

    /// How many jobs are left to be restored.
    #[must_use]
    pub fn jobs_left(&self) -> usize {
        self.order.len()
    }

    /// Takes the next job: those that are not buried by their ids, then the buried ones in the
    /// order of their burial. `restore` brings it to the engine, and says the key that it has
    /// there.
    pub fn restore_next(&mut self, restore: impl FnOnce(RecoveredJob<'_>) -> Option<JobKey>) {
        let Some(slot) = self.order.pop_front() else {
            return;
        };
        let found = self.found.remove(slot);
        let mut job = self.wal.clocks.job(&found.image);
        if job.state == JobState::Buried {
            job.deadline = found.burial;
        }
        let (id, home, len) = (job.id, found.home, found.len);
        let tube = self.tubes.names[found.tube as usize].as_name();
        let body = found.body;
        let key = restore(RecoveredJob { job, tube, body });
        if let Some(key) = key {
            self.wal.settle_in(key, id, home, len);
        }
    }

    /// The journal, with a new file to be written and with room for the end of every job.
    ///
    /// # Errors
    /// [`WalError::Use`] if no file can be made.
    pub fn finish(mut self) -> Result<Wal<S>, WalError> {
        // On a full disk it is what old files can be cleaned with, so it comes first.
        let _ = self.wal.make_spare();
        // Without a gap, of which the original would complain.
        let last = self.wal.files.back();
        let number = last.map_or(self.next_file, |file| file.number + 1);
        self.wal.start_file(number)?;
        self.wal.stock_up();
        // Files that are not needed are gone before anybody asks.
        self.wal.settle();
        match self.wal.take_failure() {
            Some(error) => Err(error),
            None => Ok(self.wal),
        }
    }
}

impl Reader {
    fn take(&mut self, place: Place, len: u64, record: &Record<'_>) {
        self.progress.records += 1;
        self.progress.bytes += len;
        self.highest = self.highest.max(highest_of(&record.job));
        match (&record.content, record.job.state) {
            (Some(content), _) => self.take_full(place, len, &record.job, content),
            (None, SavedState::Deleted) => {
                if let Some(slot) = self.by_id.remove(&record.job.id) {
                    self.found.remove(slot);
                }
            }
            (None, _) => self.take_change(place, &record.job),
        }
    }

    fn take_full(&mut self, place: Place, len: u64, image: &JobImage, content: &Content<'_>) {
        if self.is_torn_copy(image, content) {
            // The body is the same as ever, and the file that has it whole is still needed.
            return self.take_change(place, image);
        }
        let tube = self.tubes.number(content.tube, self.latest_tube);
        self.latest_tube = tube;
        let known = self.by_id.get(&image.id).copied();
        let before = known.map(|slot| self.found.remove(slot));
        let burial = self.burial(place, image, before.map(|job| (job.image, job.burial)));
        let slot = self.found.insert(FoundJob {
            image: *image,
            tube,
            body: Body::copy_of(content.body),
            home: place.at,
            len,
            burial,
        });
        self.by_id.insert(image.id, slot);
    }

    /// Whether the job is known and its body was not written so far: a copy that was not synced may
    /// have any parts of it, and zeros for the others.
    fn is_torn_copy(&self, image: &JobImage, content: &Content<'_>) -> bool {
        let Some(&slot) = self.by_id.get(&image.id) else {
            return false;
        };
        let (known, new) = (&self.found[slot].body[..], content.body);
        let parts_differ = |(known, new): (&u8, &u8)| known != new && *new != 0;
        let is_torn =
            known.len() == new.len() && known != new && !known.iter().zip(new).any(parts_differ);
        if is_torn {
            log::warn!(target: LOG, "a copy is torn, an older one is kept job={}", image.id.0);
        }
        is_torn
    }

    /// One of a job whose full record is not there any more is of no interest.
    fn take_change(&mut self, place: Place, image: &JobImage) {
        let Some(&slot) = self.by_id.get(&image.id) else {
            return;
        };
        let before = (self.found[slot].image, self.found[slot].burial);
        let burial = self.burial(place, image, Some(before));
        let job = &mut self.found[slot];
        job.image = JobImage {
            body_len: job.image.body_len,
            ..*image
        };
        job.burial = burial;
    }

    fn burial(
        &mut self,
        place: Place,
        image: &JobImage,
        before: Option<(JobImage, Nanos)>,
    ) -> Nanos {
        if image.state != SavedState::Buried {
            return Nanos(0);
        }
        // A copy of the job as it was is no burial, though the original may have counted one at a
        // start. It changes the deadline when a job is reserved, as it has to be to be buried.
        if let Some((older, burial)) = before
            && older.state == SavedState::Buried
            && older.deadline_at == image.deadline_at
        {
            return burial;
        }
        let burial = burial_of(image)
            .unwrap_or_else(|| burial_at(place.number, place.offset, self.latest_burial));
        self.latest_burial = self.latest_burial.max(burial);
        burial
    }

    /// The jobs are looked at once and in the order in which they lie in memory, which is mostly
    /// that of their ids: to sort is then little more than to see that.
    fn order(&self) -> VecDeque<u32> {
        let (mut others, mut buried) = (Vec::new(), Vec::new());
        for (slot, job) in self.found.iter() {
            match job.image.state {
                SavedState::Buried => buried.push((job.burial, job.image.id, slot)),
                SavedState::Ready
                | SavedState::Reserved
                | SavedState::Delayed
                | SavedState::Deleted => others.push((job.image.id, slot)),
            }
        }
        others.sort_unstable();
        buried.sort_unstable();
        let others = others.into_iter().map(|(_, slot)| slot);
        others
            .chain(buried.into_iter().map(|(.., slot)| slot))
            .collect()
    }
}

impl<S: Storage> Wal<S> {
    /// The numbers of the files that are there, lowest first. What a crash has left of files that
    /// were made ahead is removed.
    fn look(&mut self) -> Result<Vec<u64>, WalError> {
        let names = self.storage.names().map_err(|source| WalError::Use {
            step: "list",
            name: "the directory".to_owned(),
            source,
        })?;
        let mut numbers = Vec::new();
        for name in names {
            match FileName::of(&name) {
                FileName::Segment(number) => numbers.push(number),
                FileName::Ahead => self.remove(&name)?,
                FileName::PutAside => {
                    let name = name.display();
                    log::warn!(target: LOG, "put aside as damaged, not read file={name}");
                }
                FileName::Odd => {
                    let name = name.display();
                    log::warn!(target: LOG, "not a file of the binlog, not read file={name}");
                }
                FileName::Other => {}
            }
        }
        numbers.sort_unstable();
        let highest = numbers.last().copied().unwrap_or(0);
        if highest >= NUMBER_MAX {
            return Err(WalError::Numbers { highest });
        }
        Ok(numbers)
    }

    fn remove(&mut self, name: &OsStr) -> Result<(), WalError> {
        let name = name.display().to_string();
        let removed = self.storage.remove(&name);
        removed.map_err(|source| used("remove", name, source))
    }

    /// Reads one file to its end, or as far as it can be.
    fn read_file(
        &mut self,
        number: u64,
        reader: &mut Reader,
        report: &mut dyn FnMut(Progress),
    ) -> Result<(), WalError> {
        let name = file_name(number);
        let failed = |step| {
            let name = name.clone();
            move |source| used(step, name, source)
        };
        let (source, len) = self.storage.read(&name).map_err(failed("open"))?;
        reader.progress.all_bytes += len;
        let mut file = File::sealed(number, len);
        let at = self.files.len();
        let before = reader.highest;
        reader.highest = JobId(0);
        match Segment::open(source).map_err(failed("read"))? {
            Err(header) => {
                log::error!(target: LOG, "{name}: damaged at 0: {header}; nothing of it is read");
                file.is_whole = false;
            }
            Ok(mut segment) => loop {
                match segment.read_next().map_err(failed("read"))? {
                    Found::Record {
                        offset,
                        len,
                        record,
                    } => {
                        let place = Place { at, number, offset };
                        reader.take(place, len, &record);
                        if reader.progress.records.is_multiple_of(REPORT_RECORDS) {
                            report(reader.progress);
                        }
                    }
                    Found::End { offset, tail } => {
                        file.end = offset.max(HEAD_LEN);
                        self.end_file(&mut file, tail)?;
                        break;
                    }
                }
            },
        }
        file.highest = reader.highest;
        reader.highest = reader.highest.max(before);
        self.len += file.len;
        self.used += file.used();
        self.files.push_back(file);
        Ok(())
    }

    /// Removes the files at the end that have no record: each start makes one, and nothing may ever
    /// come into it. One before others stays, because the original would complain of its number.
    fn drop_unused(&mut self) -> Result<(), WalError> {
        while let Some(last) = self.files.back()
            && last.is_whole
            && last.used() == 0
        {
            let name = file_name(last.number);
            self.len -= last.len;
            self.files.pop_back();
            let removed = self.storage.remove(&name);
            removed.map_err(|source| used("remove", name, source))?;
        }
        Ok(())
    }

    /// Syncs a file that was read. The process that wrote it may have been killed before it could,
    /// and from now on sessions are told what is in it, and older files are given up for it.
    fn keep_file(&mut self, number: u64) -> Result<(), WalError> {
        let name = file_name(number);
        match self.storage.open(&name) {
            Ok(file) => self.keep(vec![file], false, &name),
            Err(source) => Err(used("open", name, source)),
        }
    }

    fn keep(&mut self, files: Vec<S::File>, names: bool, what: &str) -> Result<(), WalError> {
        self.storage.start_sync(files, names);
        let synced = self.storage.wait_sync();
        synced.map_err(|source| used("sync", what.to_owned(), source))
    }

    /// Deals with what is behind the last record of a file.
    fn end_file(&mut self, file: &mut File<S::File>, tail: Tail) -> Result<(), WalError> {
        let name = file_name(file.number);
        let rest = file.len.saturating_sub(file.end);
        match tail {
            Tail::Clean => return Ok(()),
            Tail::Zeros => log::debug!(target: LOG, "{name}: unused space is cut off bytes={rest}"),
            Tail::Torn => {
                let at = file.end;
                log::warn!(target: LOG, "{name}: torn record at {at} is cut off bytes={rest}");
            }
            Tail::Damaged { at, fault } => {
                file.is_whole = false;
                let from = file.end;
                log::error!(
                    target: LOG,
                    "{name}: damaged at {at}: {fault}; the {rest} bytes from {from} on are not read"
                );
                return Ok(());
            }
        }
        let opened = self.storage.open(&name);
        let cut = opened.and_then(|opened| self.storage.cut(&opened, file.end));
        cut.map_err(|source| used("cut", name, source))?;
        file.len = file.end;
        file.capacity = file.end;
        Ok(())
    }

    /// Makes the file that is written next. On a full disk, what nobody needs has to make room;
    /// then a shorter file has to do, as long as it has room for the end of every job; then the
    /// spare has to go.
    fn start_file(&mut self, number: u64) -> Result<(), WalError> {
        let name = file_name(number);
        let least = HEAD_LEN + SHORT_LEN * self.jobs.max(1);
        let mut capacity = self.capacity();
        loop {
            match self.storage.create(&name, capacity) {
                Ok(file) => {
                    self.add_current(File::new(number, capacity, file));
                    return Ok(());
                }
                Err(source) => {
                    let is_dead = |file: &File<_>| file.live == 0 && file.is_whole;
                    if self.files.front().is_some_and(is_dead) && !self.is_last_to_tell_highest() {
                        self.remove_dead()?;
                    } else if is_full(&source) && capacity > least {
                        capacity = (capacity / 2).max(least);
                    } else if self.has_spare {
                        self.drop_empty_files();
                        capacity = self.capacity();
                    } else {
                        return Err(used("create", name, source));
                    }
                }
            }
        }
    }

    fn remove_dead(&mut self) -> Result<(), WalError> {
        let Some(oldest) = self.files.pop_front() else {
            return Ok(());
        };
        self.len -= oldest.len;
        self.used -= oldest.used();
        let name = file_name(oldest.number);
        let removed = self.storage.remove(&name);
        removed.map_err(|source| used("remove", name, source))
    }
}

fn used(step: &'static str, name: String, source: io::Error) -> WalError {
    WalError::Use { step, name, source }
}
