//! The files of a binlog that is in use, as numbers: what each holds, and what is left in it.

use crate::base::ids::JobId;
use crate::wal::format::Format;

/// The highest number of a file. The original has an `int` for it; one is left for it to go on
/// with.
pub(super) const NUMBER_MAX: u64 = i32::MAX as u64 - 1;

/// One file. The last one is being written, the others are sealed.
pub(super) struct File<H> {
    /// The number in its name.
    pub(super) number: u64,
    /// Bytes that it takes: those set aside, or those that are left when it has been cut.
    pub(super) len: u64,
    /// Bytes that it has room for, header included. Records that came here in spite of it are
    /// beyond.
    pub(super) capacity: u64,
    /// Where the next record goes, or where the last one ends.
    pub(super) end: u64,
    /// Bytes of the full records here of jobs, and of pauses, that are there. When it is 0 nothing
    /// is needed.
    pub(super) live: u64,
    /// Jobs of these records, and of others that have died or moved since; in order.
    pub(super) jobs: Vec<JobId>,
    /// How many of them have been moved out.
    pub(super) moved: usize,
    /// Numbers of the pauses of these records, in the same sense.
    pub(super) pauses: Vec<u64>,
    /// Whether some of these have been moved out.
    pub(super) has_moved_pauses: bool,
    /// The position behind the last copy of a job that was moved out of here: it has to be synced
    /// before this file can go.
    pub(super) copies_end: Option<u64>,
    /// The position when it was the oldest and was first seen not to be needed.
    pub(super) emptied_at: Option<u64>,
    /// The highest id of which a record here tells.
    pub(super) highest: JobId,
    /// Whether it could be read to its end. If not, it is never removed.
    pub(super) is_whole: bool,
    /// Bytes of its header.
    head_len: u64,
    /// What is needed to write it. None when all is written, and synced as far as it has to be.
    pub(super) open: Option<Open<H>>,
}

/// A file that is written.
pub(super) struct Open<H> {
    pub(super) file: H,
    /// Records that are not written yet.
    pub(super) pending: Vec<u8>,
    /// Where they go.
    pub(super) written: u64,
    /// All that is written is synced, or will be by the sync that is under way.
    pub(super) is_synced: bool,
    /// It has copies of jobs that were moved, which are synced whatever the user wants.
    pub(super) has_copies: bool,
    /// What its records need of its header.
    pub(super) seed: u32,
    /// The position at which it was begun.
    pub(super) begun: u64,
}

impl<H> Open<H> {
    /// A file of which nothing is written but a header that is made.
    pub(super) fn new(file: H, head: Vec<u8>, seed: u32, begun: u64) -> Open<H> {
        Open {
            file,
            pending: head,
            written: 0,
            is_synced: false,
            has_copies: false,
            seed,
            begun,
        }
    }
}

impl<H> File<H> {
    /// A file of `len` bytes of which nothing is known, and that is not written.
    pub(super) fn sealed<F: Format>(number: u64, len: u64) -> File<H> {
        File {
            number,
            len,
            capacity: len,
            end: F::HEAD_LEN,
            live: 0,
            jobs: Vec::new(),
            moved: 0,
            pauses: Vec::new(),
            has_moved_pauses: false,
            copies_end: None,
            emptied_at: None,
            highest: JobId(0),
            is_whole: true,
            head_len: F::HEAD_LEN,
            open: None,
        }
    }

    /// A file that was made to be written.
    pub(super) fn current<F: Format>(number: u64, capacity: u64, open: Open<H>) -> File<H> {
        File {
            open: Some(open),
            ..File::sealed::<F>(number, capacity)
        }
    }

    /// Bytes that are left for records.
    pub(super) fn rest(&self) -> u64 {
        self.capacity.saturating_sub(self.end)
    }

    /// Bytes of records that nobody needs.
    pub(super) fn dead(&self) -> u64 {
        (self.end - self.head_len).saturating_sub(self.live)
    }

    /// Bytes of records.
    pub(super) fn used(&self) -> u64 {
        self.end - self.head_len
    }
}

/// Where a job's full record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Home {
    /// Number of the file.
    pub(super) number: u32,
    /// Bytes of the record; 0 if there is none.
    pub(super) len: u32,
}

/// Room for short records, in records: in a file of which `rest` bytes are left, and in `others`
/// that are empty and have `capacity` bytes each.
pub(super) fn units<F: Format>(rest: u64, others: u64, capacity: u64) -> u64 {
    rest / F::SHORT_LEN + others * ((capacity - F::HEAD_LEN) / F::SHORT_LEN)
}
