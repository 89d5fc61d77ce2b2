//! The account of a whole binlog: which jobs are alive and how, and what each file holds.
//!
//! The rules are those by which a server would come back from the directory, with one difference:
//! the original forgets a job whose newer copy is damaged or torn, and here the older copy stands.

use std::collections::BTreeMap;
use std::io::{self, Read};

use smallvec::{SmallVec, smallvec};

use crate::base::ids::JobId;
use crate::base::name::TubeNameBuf;
use crate::wal::directory::Directory;
use crate::wal::error::WalError;
use crate::wal::record::{Content, JobImage, Record, SavedState, Version};
use crate::wal::segment::{BadHeader, Found, HEADER_LEN, Segment, Tail};
use crate::wal::v7::{highest_of, is_id_mark};

/// What a directory holds.
#[derive(Debug)]
pub struct Account {
    /// Its files, in order.
    pub files: Vec<FileAccount>,
    /// The jobs that are there after the last record.
    pub jobs: BTreeMap<JobId, LiveJob>,
    /// Jobs that came and went within what was read.
    pub deleted: u64,
    /// The highest id of which a record tells that it was given; 0 for none.
    pub highest: JobId,
}

/// A job that is there.
#[derive(Debug)]
pub struct LiveJob {
    /// Its tube.
    pub tube: TubeNameBuf,
    /// How the latest record shows it. A reserved job will come back ready.
    pub job: JobImage,
    /// Index, in [`Account::files`], of the file with its latest full record.
    pub file: usize,
    /// Where that record begins, in bytes from the start of the file.
    pub offset: u64,
    /// Bytes of its records from that one on, by file.
    uses: SmallVec<[Use; 1]>,
}

#[derive(Clone, Copy, Debug)]
struct Use {
    file: usize,
    bytes: u64,
}

/// What a file holds.
#[derive(Debug)]
pub struct FileAccount {
    /// The number in its name.
    pub number: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The layout of its records, or why they cannot be read.
    pub version: Result<Version, BadHeader>,
    /// Whether it was made and never written to.
    pub is_blank: bool,
    /// How many records of which kind it has.
    pub records: RecordCounts,
    /// Bytes of whole records.
    pub record_bytes: u64,
    /// Those of them that belong to jobs that are there; the others are dead.
    pub live_bytes: u64,
    /// How it ends; [`Tail::Clean`] if its records cannot be read.
    pub tail: Tail,
    /// What whole records say that cannot be true, with the place of each.
    pub contradictions: Vec<Contradiction>,
}

/// How many records of which kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Full records.
    pub full: u64,
    /// Short records that are not deletions.
    pub changes: u64,
    /// Deletions.
    pub deletions: u64,
    /// Short records that only say how far ids have been given.
    pub marks: u64,
    /// Changes and deletions of jobs without a full record before: that was in a file that
    /// has been removed since, with the job.
    pub orphans: u64,
}

/// A whole record that does not fit those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Where the record begins, in bytes from the start of the file.
    pub offset: u64,
    /// The job.
    pub id: JobId,
    /// What does not fit.
    pub kind: ContradictionKind,
}

/// What does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContradictionKind {
    /// A job's body has another length than it had.
    #[error("body of {now} bytes had {before} before")]
    BodyLen {
        /// Length in the record before.
        before: u32,
        /// Length in this one.
        now: u32,
    },
    /// A job is in another tube than it was.
    #[error("job has changed its tube")]
    Tube,
}

impl Account {
    /// Reads all files of `directory`, lowest number first. One that has gone in the meantime is
    /// left out.
    ///
    /// # Errors
    /// [`WalError::Read`]. What is wrong inside of files is in the account.
    pub fn read(directory: &Directory) -> Result<Account, WalError> {
        let mut account = Account {
            files: Vec::new(),
            jobs: BTreeMap::new(),
            deleted: 0,
            highest: JobId(0),
        };
        for &number in &directory.numbers {
            let Some(file) = directory.open(number)? else {
                continue;
            };
            let failed = |source| directory.failed("read", number, source);
            let len = file.metadata().map_err(failed)?.len();
            let segment = Segment::open(file).map_err(failed)?;
            let version = segment.as_ref().map(Segment::version).map_err(|bad| *bad);
            let mut file = FileAccount::new(number, len, version);
            file.is_blank = segment.as_ref().is_ok_and(Segment::is_blank);
            account.files.push(file);
            let Ok(mut segment) = segment else { continue };
            account.read_records(&mut segment).map_err(failed)?;
        }
        account.check_invariants();
        Ok(account)
    }

    fn read_records<R: Read>(&mut self, segment: &mut Segment<R>) -> io::Result<()> {
        loop {
            match segment.read_next()? {
                Found::Record {
                    offset,
                    len,
                    record,
                } => self.enter(offset, len, &record),
                Found::End { tail, .. } => {
                    self.file().tail = tail;
                    return Ok(());
                }
            }
        }
    }

    /// The file that is being read.
    fn file(&mut self) -> &mut FileAccount {
        self.files.last_mut().expect("a file is being read")
    }

    fn enter(&mut self, offset: u64, len: u64, record: &Record<'_>) {
        self.file().record_bytes += len;
        self.highest = self.highest.max(highest_of(&record.job));
        match (&record.content, record.job.state) {
            (Some(content), _) => self.enter_full(offset, len, &record.job, content),
            (None, _) if is_id_mark(&record.job) => self.file().records.marks += 1,
            (None, SavedState::Deleted) => self.enter_deletion(record.job.id),
            (None, _) => self.enter_change(offset, len, &record.job),
        }
    }

    /// The job is as this record says, whatever was before: it is the newer one, and whole.
    fn enter_full(&mut self, offset: u64, len: u64, job: &JobImage, content: &Content<'_>) {
        self.file().records.full += 1;
        if let Some(older) = self.jobs.remove(&job.id) {
            self.expect_body_len(offset, job, older.job.body_len);
            if older.tube.as_name() != content.tube {
                self.contradict(offset, job.id, ContradictionKind::Tube);
            }
            self.forget(&older);
        }
        let file = self.files.len() - 1;
        self.file().live_bytes += len;
        let live = LiveJob {
            tube: content.tube.into(),
            job: *job,
            file,
            offset,
            uses: smallvec![Use { file, bytes: len }],
        };
        self.jobs.insert(job.id, live);
    }

    fn enter_change(&mut self, offset: u64, len: u64, job: &JobImage) {
        let at = self.files.len() - 1;
        self.file().records.changes += 1;
        let Some(live) = self.jobs.get_mut(&job.id) else {
            self.file().records.orphans += 1;
            return;
        };
        let body_len = live.job.body_len;
        live.job = JobImage { body_len, ..*job };
        match live.uses.last_mut() {
            Some(last) if last.file == at => last.bytes += len,
            _ => live.uses.push(Use {
                file: at,
                bytes: len,
            }),
        }
        self.file().live_bytes += len;
        self.expect_body_len(offset, job, body_len);
    }

    fn enter_deletion(&mut self, id: JobId) {
        self.file().records.deletions += 1;
        match self.jobs.remove(&id) {
            Some(live) => {
                self.forget(&live);
                self.deleted += 1;
            }
            None => self.file().records.orphans += 1,
        }
    }

    /// The records of this job are dead.
    fn forget(&mut self, job: &LiveJob) {
        for used in &job.uses {
            self.files[used.file].live_bytes -= used.bytes;
        }
    }

    fn expect_body_len(&mut self, offset: u64, job: &JobImage, before: u32) {
        let now = job.body_len;
        if now != before {
            let kind = ContradictionKind::BodyLen { before, now };
            self.contradict(offset, job.id, kind);
        }
    }

    fn contradict(&mut self, offset: u64, id: JobId, kind: ContradictionKind) {
        self.file()
            .contradictions
            .push(Contradiction { offset, id, kind });
    }

    /// How many jobs are recorded in `state`.
    #[must_use]
    pub fn jobs_in(&self, state: SavedState) -> usize {
        let states = self.jobs.values().map(|live| live.job.state);
        states.filter(|one| *one == state).count()
    }

    /// Whether nothing is damaged. Torn ends and unused space are no damage.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.files.iter().all(FileAccount::is_sound)
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            let used: u64 = self.jobs.values().map(LiveJob::used_bytes).sum();
            let live: u64 = self.files.iter().map(|file| file.live_bytes).sum();
            assert_eq!(used, live, "what jobs use is what lives in files");
            for file in &self.files {
                assert!(file.live_bytes <= file.record_bytes);
            }
        }
    }
}

impl LiveJob {
    /// Bytes of its latest full record and of the short ones behind it.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.uses.iter().map(|used| used.bytes).sum()
    }
}

impl FileAccount {
    fn new(number: u64, len: u64, version: Result<Version, BadHeader>) -> FileAccount {
        FileAccount {
            number,
            len,
            version,
            is_blank: false,
            records: RecordCounts::default(),
            record_bytes: 0,
            live_bytes: 0,
            tail: Tail::Clean,
            contradictions: Vec::new(),
        }
    }

    /// Bytes of whole records that no job needs.
    #[must_use]
    pub fn dead_bytes(&self) -> u64 {
        self.record_bytes - self.live_bytes
    }

    /// Bytes behind the last whole record, or behind where the header should be. The file may have
    /// grown since its length was taken.
    #[must_use]
    pub fn rest_bytes(&self) -> u64 {
        let header = if self.is_blank { 0 } else { HEADER_LEN as u64 };
        self.len
            .saturating_sub(header)
            .saturating_sub(self.record_bytes)
    }

    /// Bytes that were set aside for it and not used.
    #[must_use]
    pub fn unused_bytes(&self) -> u64 {
        match self.tail {
            Tail::Zeros => self.rest_bytes(),
            Tail::Clean | Tail::Torn | Tail::Damaged { .. } => 0,
        }
    }

    /// Whether nothing in it is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ends_well = match self.tail {
            Tail::Clean | Tail::Zeros | Tail::Torn => self.version.is_ok(),
            Tail::Damaged { .. } => false,
        };
        ends_well && self.contradictions.is_empty()
    }
}

#[cfg(test)]
mod tests;
