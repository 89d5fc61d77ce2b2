//! A start: reads a directory, finds the jobs that are there, cuts what was torn off, and makes the
//! file that is written next.
//!
//! As far as the records go this reads as the original does, with the exceptions that are needed to
//! lose nothing: the older copy of a job stands when the newer one is torn, bodies of every length
//! are taken, and a file that cannot be read to its end is never removed.

mod files;
pub(super) mod found;

use std::collections::VecDeque;

use crate::base::body::Body;
use crate::base::ids::JobId;
use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::slab::Slab;
use crate::base::time::{Nanos, Secs};
use crate::engine::host::{Journal, Record};
use crate::engine::job::{JobKey, JobRecord, JobState};
use crate::wal::error::WalError;
use crate::wal::files::Home;
use crate::wal::format::Format;
use crate::wal::journal::{Settings, Wal};
use crate::wal::pauses::Pause;
use crate::wal::record::WallNanos;
use crate::wal::recover::found::{FoundJob, FoundPause, Reader, Tubes};
use crate::wal::shard_journal::ShardJournal;
use crate::wal::storage::Storage;
use crate::wal::v7::V7;

/// A journal that has been read and is not yet in use, and the jobs that it tells of.
pub struct Recovery<S: Storage, F: Format = V7> {
    wal: Wal<S, F>,
    found: Slab<FoundJob>,
    tubes: Tubes,
    /// Slots in `found`, in the order in which the jobs are to be restored.
    order: VecDeque<u32>,
    /// With the numbers of their tubes.
    pauses: VecDeque<(u32, FoundPause)>,
    /// Tubes whose pauses nobody wanted.
    refused: Vec<TubeNameBuf>,
    torn: Option<Torn>,
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

/// Where a log was found to end in the middle of something, and was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub name: String,
    /// Where, in bytes from its start.
    pub at: u64,
}

/// A pause that the directory tells of.
pub struct RecoveredPause<'a> {
    /// The tube.
    pub tube: TubeName<'a>,
    /// How long it was to be.
    pub length: Secs,
    /// When it ends. May be past.
    pub until: Nanos,
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

impl<S: Storage> Recovery<S> {
    /// Reads a directory of version 7, see [`Recovery::read_as`].
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
        Recovery::read_as(V7, storage, settings, now, wall, report)
    }
}

impl<S: Storage, F: Format> Recovery<S, F> {
    /// Reads all files in `storage`, at this moment of both clocks. `report` is told from time to
    /// time how far it is.
    ///
    /// # Errors
    /// [`WalError::Use`] if a file cannot be read; [`WalError::Numbers`]; of a format that can be
    /// relied on, [`WalError::Damaged`] and [`WalError::Foreign`]. Other things that are wrong
    /// inside of files are logged with their places.
    pub fn read_as(
        format: F,
        storage: S,
        settings: Settings,
        now: Nanos,
        wall: WallNanos,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Recovery<S, F>, WalError> {
        let mut wal = Wal::new(format, storage, settings, now, wall);
        let numbers = wal.look()?;
        let next_file = numbers.last().map_or(1, |highest| highest + 1);
        let mut reader = Reader::new();
        let torn = wal.read_files(&numbers, &mut reader, report)?;
        wal.drop_unused()?;
        wal.keep(Vec::new(), true, "the directory")?;
        report(reader.progress);
        wal.highest = reader.highest;
        wal.pauses.skip(reader.last_pause);
        let order = reader.order();
        Ok(Recovery {
            wal,
            found: reader.found,
            tubes: reader.tubes,
            order,
            pauses: reader.pauses.into_iter().collect(),
            refused: Vec::new(),
            torn,
            next_file,
        })
    }

    /// Where the log was cut because what was behind had never been synced, if it was.
    #[must_use]
    pub fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// The highest id that was ever given, as far as is known; 0 for none.
    #[must_use]
    pub fn highest(&self) -> JobId {
        self.wal.highest
    }

    /// The moment at which it was read, by the engine's clock.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.wal.now
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

    /// How many pauses are left to be restored.
    #[must_use]
    pub fn pauses_left(&self) -> usize {
        self.pauses.len()
    }

    /// Takes the next pause. `restore` brings it to the engine, which has got the jobs before, and
    /// says whether it runs there.
    pub fn restore_pause(&mut self, restore: impl FnOnce(RecoveredPause<'_>) -> bool) {
        let Some((tube, found)) = self.pauses.pop_front() else {
            return;
        };
        let name = &self.tubes.names[tube as usize];
        let (length, until) = (
            found.image.length,
            self.wal.clocks.moment(found.image.until),
        );
        let runs = restore(RecoveredPause {
            tube: name.as_name(),
            length,
            until,
        });
        let pause = Pause {
            tube: name.clone(),
            length,
            until,
            home: Home {
                number: self.wal.files[found.home].number as u32,
                len: found.len as u32,
            },
        };
        self.wal.settle_pause(found.image.number, pause, found.home);
        if !runs {
            self.refused.push(name.clone());
        }
    }

    /// How many files could not be read to their end.
    #[must_use]
    pub fn damaged_files(&self) -> usize {
        let files = self.wal.files.iter();
        files.filter(|file| !file.is_whole).count()
    }

    /// When each job that is left to be restored was put, by the engine's clock, and its id.
    pub fn births(&self) -> impl Iterator<Item = (Nanos, JobId)> {
        self.order.iter().map(|&slot| {
            let image = &self.found[slot].image;
            (self.wal.clocks.moment(image.created_at), image.id)
        })
    }

    /// How many tubes have jobs that are left to be restored.
    #[must_use]
    pub fn tube_count(&self) -> usize {
        let mut has_jobs = vec![false; self.tubes.names.len()];
        for &slot in &self.order {
            has_jobs[self.found[slot].tube as usize] = true;
        }
        has_jobs.into_iter().filter(|&has_jobs| has_jobs).count()
    }

    /// From now on jobs come group after group. `group` says which that of a tube is; within a
    /// group their order is as before.
    pub fn group_by<K: Ord + Copy>(&mut self, group: impl Fn(TubeName<'_>) -> K) {
        let names = self.tubes.names.iter();
        let groups: Vec<K> = names.map(|name| group(name.as_name())).collect();
        let of = |slot: &u32| groups[self.found[*slot].tube as usize];
        self.order.make_contiguous().sort_by_key(of);
    }

    /// The tube of the next job.
    #[must_use]
    pub fn next_tube(&self) -> Option<TubeName<'_>> {
        let slot = *self.order.front()?;
        Some(self.tubes.names[self.found[slot].tube as usize].as_name())
    }

    /// The journal, with a new file to be written and with room for the end of every job.
    ///
    /// # Errors
    /// [`WalError::Use`] if no file can be made.
    pub fn finish(mut self) -> Result<Wal<S, F>, WalError> {
        // On a full disk it is what old files can be cleaned with, so it comes first.
        let _ = self.wal.make_spare();
        // Without a gap, of which the original would complain.
        let last = self.wal.files.back();
        let number = last.map_or(self.next_file, |file| file.number + 1);
        self.wal.start_file(number)?;
        self.wal.stock_up();
        for tube in &self.refused {
            let tube = tube.as_name();
            self.wal.append(Record::Resume { tube });
        }
        // Files that are not needed are gone before anybody asks.
        self.wal.settle();
        match self.wal.take_failure() {
            Some(error) => Err(error),
            None => Ok(self.wal),
        }
    }
}
