//! What the records of a binlog come to: the jobs and pauses that are there after the last one.

use std::collections::{BTreeMap, HashMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::base::body::Body;
use crate::base::ids::JobId;
use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::slab::Slab;
use crate::base::time::Nanos;
use crate::wal::format::{Entry, Format, PauseImage};
use crate::wal::journal::LOG;
use crate::wal::record::{JobImage, SavedState};
use crate::wal::recover::Progress;

/// A job that the directory tells of.
pub(in crate::wal) struct FoundJob {
    pub(in crate::wal) image: JobImage,
    /// Number in [`Tubes`].
    pub(in crate::wal) tube: u32,
    pub(in crate::wal) body: Body,
    /// Index of the file with the full record, and the bytes of that.
    pub(in crate::wal) home: usize,
    pub(in crate::wal) len: u64,
    /// When it was buried, or a moment that stands for that; 0 if it is not.
    pub(in crate::wal) burial: Nanos,
}

/// A pause that the directory tells of.
pub(in crate::wal) struct FoundPause {
    pub(in crate::wal) image: PauseImage,
    /// Index of the file with the record, and the bytes of that.
    pub(in crate::wal) home: usize,
    pub(in crate::wal) len: u64,
}

/// Names of tubes, each once.
#[derive(Default)]
pub(in crate::wal) struct Tubes {
    pub(in crate::wal) names: Vec<TubeNameBuf>,
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
pub(in crate::wal) struct Reader {
    pub(in crate::wal) found: Slab<FoundJob>,
    pub(in crate::wal) by_id: FxHashMap<JobId, u32>,
    pub(in crate::wal) tubes: Tubes,
    pub(in crate::wal) progress: Progress,
    /// By the number of the tube.
    pub(in crate::wal) pauses: BTreeMap<u32, FoundPause>,
    /// Tubes by the numbers of their pauses.
    paused: BTreeMap<u64, u32>,
    /// The highest number of a pause.
    pub(in crate::wal) last_pause: u64,
    pub(in crate::wal) highest: JobId,
    /// Ids up to this one had been given when the oldest file was begun. What came of a job with a
    /// higher one is in these files from the beginning on.
    pub(in crate::wal) known_from: JobId,
    latest_burial: Nanos,
    latest_tube: u32,
}

/// Where a record is.
#[derive(Clone, Copy)]
pub(in crate::wal) struct Place {
    /// Index of the file.
    pub(in crate::wal) at: usize,
    /// Number of the file.
    pub(in crate::wal) number: u64,
    /// Bytes from its start.
    pub(in crate::wal) offset: u64,
}

/// What cannot be true of a record after those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::wal) enum Odd {
    /// It is about a job that never was.
    #[error("job is not there")]
    Unknown,
    /// A job is in another tube than it was.
    #[error("job has changed its tube")]
    Tube,
    /// A job has another body than it had.
    #[error("job has changed its body")]
    Body,
}

impl Reader {
    pub(in crate::wal) fn new() -> Reader {
        Reader {
            found: Slab::default(),
            by_id: FxHashMap::default(),
            tubes: Tubes::default(),
            progress: Progress::default(),
            pauses: BTreeMap::new(),
            paused: BTreeMap::new(),
            last_pause: 0,
            highest: JobId(0),
            known_from: JobId(u64::MAX),
            latest_burial: Nanos(0),
            latest_tube: 0,
        }
    }

    /// Takes in the next record.
    ///
    /// # Errors
    /// What cannot be true of it after those before it. It has been passed over then. Only formats
    /// whose records can be relied on have such.
    pub(in crate::wal) fn take<F: Format>(
        &mut self,
        place: Place,
        len: u64,
        entry: &Entry<'_>,
    ) -> Result<(), Odd> {
        self.progress.records += 1;
        self.progress.bytes += len;
        self.highest = self.highest.max(F::highest_of(entry));
        match *entry {
            Entry::Full { job, tube, body } => self.take_full::<F>(place, len, &job, tube, body),
            Entry::Change { job } => self.take_change::<F>(place, &job),
            Entry::End { job } => self.take_end(job.id),
            Entry::Mark { .. } => Ok(()),
            Entry::Pause { tube, pause } => {
                self.take_pause(place, len, tube, pause);
                Ok(())
            }
            Entry::Resume { number } => {
                if let Some(tube) = self.paused.remove(&number) {
                    self.pauses.remove(&tube);
                }
                Ok(())
            }
        }
    }

    fn take_full<F: Format>(
        &mut self,
        place: Place,
        len: u64,
        image: &JobImage,
        tube: TubeName<'_>,
        body: &[u8],
    ) -> Result<(), Odd> {
        let known = self.by_id.get(&image.id).copied();
        if let Some(slot) = known {
            if F::IS_ORDERED {
                self.check_copy(slot, tube, body)?;
            } else if self.is_torn_copy(slot, image.id, body) {
                // The body is the same as ever, and the file that has it whole is still needed.
                return self.take_change::<F>(place, image);
            }
        }
        let tube = self.tubes.number(tube, self.latest_tube);
        self.latest_tube = tube;
        let before = known.map(|slot| self.found.remove(slot));
        let burial = self.burial::<F>(place, image, before.map(|job| (job.image, job.burial)));
        let slot = self.found.insert(FoundJob {
            image: *image,
            tube,
            body: Body::copy_of(body),
            home: place.at,
            len,
            burial,
        });
        self.by_id.insert(image.id, slot);
        Ok(())
    }

    /// A job that is written anew has what it had.
    fn check_copy(&self, slot: u32, tube: TubeName<'_>, body: &[u8]) -> Result<(), Odd> {
        let known = &self.found[slot];
        if self.tubes.names[known.tube as usize].as_name() != tube {
            return Err(Odd::Tube);
        }
        if known.body[..] != *body {
            return Err(Odd::Body);
        }
        Ok(())
    }

    fn take_end(&mut self, id: JobId) -> Result<(), Odd> {
        match self.by_id.remove(&id) {
            Some(slot) => {
                self.found.remove(slot);
                Ok(())
            }
            None => self.check_missing(id),
        }
    }

    /// The full record of this job is not there: it has to have been in a file that was older than
    /// all that are left.
    fn check_missing(&self, id: JobId) -> Result<(), Odd> {
        if id > self.known_from {
            return Err(Odd::Unknown);
        }
        Ok(())
    }

    fn take_pause(&mut self, place: Place, len: u64, tube: TubeName<'_>, image: PauseImage) {
        self.last_pause = self.last_pause.max(image.number);
        let tube = self.tubes.number(tube, self.latest_tube);
        let pause = FoundPause {
            image,
            home: place.at,
            len,
        };
        if let Some(before) = self.pauses.insert(tube, pause) {
            self.paused.remove(&before.image.number);
        }
        self.paused.insert(image.number, tube);
    }

    /// Whether the body of a known job was not written so far: a copy that was not synced may
    /// have any parts of it, and zeros for the others.
    fn is_torn_copy(&self, slot: u32, id: JobId, new: &[u8]) -> bool {
        let known = &self.found[slot].body[..];
        let parts_differ = |(known, new): (&u8, &u8)| known != new && *new != 0;
        let is_torn =
            known.len() == new.len() && known != new && !known.iter().zip(new).any(parts_differ);
        if is_torn {
            log::warn!(target: LOG, "a copy is torn, an older one is kept job={}", id.0);
        }
        is_torn
    }

    /// One of a job whose full record is not there any more is of no interest.
    fn take_change<F: Format>(&mut self, place: Place, image: &JobImage) -> Result<(), Odd> {
        let Some(&slot) = self.by_id.get(&image.id) else {
            return self.check_missing(image.id);
        };
        let before = (self.found[slot].image, self.found[slot].burial);
        let burial = self.burial::<F>(place, image, Some(before));
        let job = &mut self.found[slot];
        job.image = JobImage {
            body_len: job.image.body_len,
            ..*image
        };
        job.burial = burial;
        Ok(())
    }

    fn burial<F: Format>(
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
        let burial = F::burial_of(image)
            .unwrap_or_else(|| F::burial_at(place.number, place.offset, self.latest_burial));
        self.latest_burial = self.latest_burial.max(burial);
        burial
    }

    /// The jobs are looked at once and in the order in which they lie in memory, which is mostly
    /// that of their ids: to sort is then little more than to see that.
    pub(in crate::wal) fn order(&self) -> VecDeque<u32> {
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
