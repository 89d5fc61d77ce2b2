//! What a binlog is made of, whatever its bytes look like. Files, room, compaction, syncs and
//! starts are the same for every format; a format says how long things are, writes them, and reads
//! them.

use std::io::{self, Read};

use crate::base::ids::JobId;
use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::wal::record::{JobImage, WallNanos};

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A job with all that it has: it is new, or is written anew as it is.
    Full {
        /// The job.
        job: JobImage,
        /// Its tube.
        tube: TubeName<'a>,
        /// Its body; `body_len` bytes.
        body: &'a [u8],
    },
    /// A job is as this says from here on. Where a format does not tell `body_len` it is 0.
    Change {
        /// The job.
        job: JobImage,
    },
    /// A job is gone. A format may tell no more of it than its id.
    End {
        /// The job, in the state [`Deleted`](crate::wal::record::SavedState::Deleted).
        job: JobImage,
    },
    /// Ids up to this one have been given.
    Mark {
        /// The highest of them.
        highest: JobId,
    },
    /// A tube is paused. Replaces another pause of it.
    Pause {
        /// The tube.
        tube: TubeName<'a>,
        /// The pause.
        pause: PauseImage,
    },
    /// The pause with this number is over before its time.
    Resume {
        /// The number.
        number: u64,
    },
}

/// A pause as a record shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseImage {
    /// What tells it from others that may run.
    pub number: u64,
    /// How long it was to be.
    pub length: Secs,
    /// When it ends.
    pub until: WallNanos,
}

/// What stands at some place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A record.
    Entry {
        /// Where it begins, in bytes from the start of the file.
        offset: u64,
        /// Its length in bytes.
        len: u64,
        /// The record.
        entry: Entry<'a>,
    },
    /// The end of what can be read.
    End {
        /// Where the last whole record ends, in bytes from the start of the file.
        offset: u64,
        /// What is there.
        rest: Rest,
    },
}

/// What is behind the last whole record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing.
    Nothing,
    /// Zeros: space that was never used.
    Zeros,
    /// A record that was being written, and zeros.
    Torn,
    /// Something that is no record and no zeros.
    Bad(Bad),
}

/// Bytes that are not what should be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Where, in bytes from the start of the file.
    pub at: u64,
    /// What is wrong with them, in words.
    pub fault: String,
}

/// Why no record of a file can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadHead {
    /// It was being written, and nothing behind it was.
    Torn(Bad),
    /// It is damaged.
    Damaged(Bad),
    /// It is whole, and belongs to something else: what was found, and what was expected.
    Foreign(String),
}

/// What the header of a file says, in formats that have more in it than a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The file's own number.
    pub number: u64,
    /// Ids up to this one had been given when it was begun.
    pub highest: JobId,
    /// When it was begun.
    pub begun_at: WallNanos,
    /// Where the records of the file before it end, in bytes from its start; 0 if there was none.
    pub before_end: u64,
    /// Whether all files before it were synced when it was begun.
    pub is_synced: bool,
}

/// The records of a file, one after the other.
pub trait Entries {
    /// The next record, or how the file ends. After an end there is nothing to ask for.
    ///
    /// # Errors
    /// What reading reports. Interrupted and short reads are gone on with.
    fn next_entry(&mut self) -> io::Result<Next<'_>>;

    /// What the header says. None if there is none because nothing was ever written, or if the
    /// format has nothing to say there.
    fn head(&self) -> Option<Head>;

    /// The farthest place of this file of which something in it says that it was synced, in bytes
    /// from its start: 0 if nothing says that even the files before it were. After the end of what
    /// can be read, what is behind it and can be recognised is heard too.
    ///
    /// # Errors
    /// What reading reports.
    fn synced_to(&mut self) -> io::Result<u64>;
}

/// Where a record goes.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// What the header of the file has given: [`Format::write_head`].
    pub seed: u32,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// The place of the file up to which it is known to be synced, in bytes from its start; 0 if
    /// not even the files before it are.
    pub synced: u64,
}

/// How a binlog's bytes look.
pub trait Format: Copy {
    /// Bytes of a file's header.
    const HEAD_LEN: u64;

    /// Bytes of the longest record about a job or a pause that is there.
    const SHORT_LEN: u64;

    /// Whether files and records can be relied on to be there in the order in which they were
    /// written, up to a place behind which nothing is. Then files are synced in that order whatever
    /// the user wants, headers count as something that was written, and a start trusts nothing
    /// behind the first gap.
    const IS_ORDERED: bool;

    /// A file that is read.
    type File<R: Read>: Entries;

    /// Begins to read the file with this number.
    ///
    /// # Errors
    /// What reading reports.
    fn open<R: Read>(&self, number: u64, source: R) -> io::Result<Result<Self::File<R>, BadHead>>;

    /// Whether a start goes on in spite of damage that would end it.
    fn skips_damage(&self) -> bool;

    /// Bytes of a full record.
    fn full_len(tube: TubeName<'_>, body_len: usize) -> u64;

    /// Bytes of the record of a tube's pause; None if the format does not keep pauses.
    fn pause_len(tube: TubeName<'_>) -> Option<u64>;

    /// Appends a file's header. Returns what its records need of it.
    fn write_head(&self, head: &Head, out: &mut Vec<u8>) -> u32;

    /// Appends a record.
    fn write(&self, spot: Spot, entry: &Entry<'_>, out: &mut Vec<u8>);

    /// The highest id that has been given, as far as this record tells; 0 if it does not.
    fn highest_of(entry: &Entry<'_>) -> JobId;

    /// What stands in the deadline of a job that was buried at this moment of the engine's clock,
    /// which is its place among the buried ones.
    fn burial_mark(moment: Nanos) -> WallNanos;

    /// The moment in the deadline of a buried job, if there is one.
    fn burial_of(job: &JobImage) -> Option<Nanos>;

    /// Stands for the moment of a burial that a record does not tell: later than those before it in
    /// the directory, the latest of which was `latest`.
    fn burial_at(file: u64, offset: u64, latest: Nanos) -> Nanos;
}
