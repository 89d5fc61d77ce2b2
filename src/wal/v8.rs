//! Version 8, the format of an owner's binlog. All integers are little-endian.
//!
//! A file begins with a header:
//!
//! | offset | bytes | field |
//! | -----: | ----: | --- |
//! | 0 | 8 | `beanlog` and a line feed |
//! | 8 | 4 | version, 8 |
//! | 12 | 4 | index of the owner |
//! | 16 | 8 | fingerprint of the topology |
//! | 24 | 8 | number of the file |
//! | 32 | 8 | highest id given before |
//! | 40 | 8 | when it was begun, nanoseconds since 1970, signed |
//! | 48 | 8 | where the records of the file before end; 0 if there was none |
//! | 56 | 1 | 1 if all files before were synced, else 0 |
//! | 57 | 2 | zero |
//! | 59 | 4 | CRC-32C of the bytes before |
//! | 63 | 1 | line feed |
//!
//! The last byte is not zero, so that a header that was half written is told from a damaged one.
//!
//! Records follow one another without a gap, and behind the last one are zeros or nothing. Their
//! layout is in [`record`]. The checksum of a record covers that of its file's header and its own
//! offset too, so that a record is only believed where it was written: neither an old block of
//! another file nor a body that looks like a record is taken for one.
//!
//! # What a record may be about
//!
//! Only the oldest file ever goes, when each job with a full record in it is gone or has a newer
//! full record in a later file. So what is left may have changes and ends of jobs without a full
//! record before them: those of jobs whose first full record was in a file that is gone. The header
//! of the oldest file tells the highest id that had been given by then. A change or end of a job
//! with a higher id must have a full record before it in the files that are left; if it has none,
//! something is missing. A full record of a job that is there is a copy, and has the same tube and
//! body. The end of a pause may stand without the pause for the same reason.

pub(super) mod check;
pub(super) mod dump;
pub mod record;
mod segment;

use std::fs::File;
use std::io::{self, Read};

use crate::base::ids::{Fingerprint, JobId, ShardId};
use crate::base::name::TubeName;
use crate::base::time::Nanos;
use crate::wal::convert::signed;
use crate::wal::directory::Directory;
use crate::wal::dump::Ending;
use crate::wal::error::WalError;
use crate::wal::format::{Bad, BadHead, Entries, Entry, Format, Head, Next, Rest, Spot};
use crate::wal::record::{JobImage, SavedState, WallNanos, first_data};
pub use crate::wal::v8::segment::Segment;

/// The version's number.
pub const VERSION: u32 = 8;

/// Bytes of a file's header.
pub const HEAD_LEN: usize = 64;

const MAGIC: [u8; 8] = *b"beanlog\n";
const SUM_AT: usize = 59;
const END: u8 = b'\n';
const END_AT: usize = HEAD_LEN - 1;

/// Whether a directory has files of this version.
///
/// # Errors
/// [`WalError::Read`].
pub(super) fn is_ours(directory: &Directory) -> Result<bool, WalError> {
    for &number in &directory.numbers {
        let Some(file) = directory.open(number)? else {
            continue;
        };
        let mut bytes = Vec::new();
        let read = file.take(MAGIC.len() as u64).read_to_end(&mut bytes);
        read.map_err(|source| directory.failed("read", number, source))?;
        if bytes == MAGIC {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file that begins with this number, where others have their version, is of this one.
pub(super) fn begins_as_ours(number: i32) -> bool {
    MAGIC.starts_with(&number.to_le_bytes())
}

/// Opens a file of a directory; nothing if it is gone by now.
fn open_file(
    directory: &Directory,
    number: u64,
) -> Result<Option<Result<Segment<File>, BadHead>>, WalError> {
    let Some(file) = directory.open(number)? else {
        return Ok(None);
    };
    let opened = Segment::open(file).map_err(|source| directory.failed("read", number, source))?;
    Ok(Some(opened))
}

/// Whether something in these files says that all before them was synced.
fn is_told_of_sync(directory: &Directory, numbers: &[u64]) -> Result<bool, WalError> {
    for &number in numbers {
        let failed = |source| directory.failed("read", number, source);
        let mut segment = match open_file(directory, number)? {
            None | Some(Err(BadHead::Torn(_))) => continue,
            Some(Err(BadHead::Damaged(_) | BadHead::Foreign(_))) => return Ok(true),
            Some(Ok(segment)) => segment,
        };
        while let Next::Entry { .. } = segment.next_entry().map_err(failed)? {}
        let is_told = segment.head().is_some_and(|head| head.is_synced);
        if is_told || segment.synced_to().map_err(failed)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How a file ends, in words. `later` are the files behind it.
fn ending(
    directory: &Directory,
    number: u64,
    later: &[u64],
    segment: &mut Segment<File>,
    end: u64,
    rest: Rest,
) -> Result<Ending, WalError> {
    let bad = match rest {
        Rest::Nothing => return Ok(Ending::Clean),
        Rest::Zeros => return Ok(Ending::Zeros),
        Rest::Torn => return Ok(Ending::Torn),
        Rest::Bad(bad) => bad,
    };
    let synced = segment.synced_to();
    let synced = synced.map_err(|source| directory.failed("read", number, source))?;
    if synced > end || is_told_of_sync(directory, later)? {
        return Ok(bad_ending(bad));
    }
    Ok(Ending::Torn)
}

fn bad_ending(bad: Bad) -> Ending {
    Ending::Damaged {
        at: bad.at,
        fault: bad.fault,
    }
}

/// What a file is that has no header. `later` are the files behind it.
fn head_ending(directory: &Directory, later: &[u64], bad: BadHead) -> Result<Ending, WalError> {
    Ok(match bad {
        BadHead::Torn(_) if !is_told_of_sync(directory, later)? => Ending::Torn,
        BadHead::Torn(bad) | BadHead::Damaged(bad) => bad_ending(bad),
        BadHead::Foreign(fault) => Ending::Damaged { at: 0, fault },
    })
}

/// Whose binlog it is, and how strictly it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V8 {
    /// Of the topology that the owner belongs to.
    pub fingerprint: Fingerprint,
    /// The owner.
    pub owner: ShardId,
    /// A start goes on in spite of damage. Jobs may be missing then, or be there again.
    pub skip_damage: bool,
}

impl Format for V8 {
    const HEAD_LEN: u64 = HEAD_LEN as u64;
    const SHORT_LEN: u64 = record::JOB_LEN as u64;
    const IS_ORDERED: bool = true;

    type File<R: Read> = Segment<R>;

    fn open<R: Read>(&self, number: u64, source: R) -> io::Result<Result<Segment<R>, BadHead>> {
        let opened = Segment::open(source)?;
        Ok(opened.and_then(|segment| match segment.owner() {
            None => Ok(segment),
            Some(found) => self.check(number, &found).map(|()| segment),
        }))
    }

    fn skips_damage(&self) -> bool {
        self.skip_damage
    }

    fn full_len(tube: TubeName<'_>, body_len: usize) -> u64 {
        (record::JOB_LEN + tube.as_bytes().len() + body_len) as u64
    }

    fn pause_len(tube: TubeName<'_>) -> Option<u64> {
        Some((record::PAUSE_LEN + tube.as_bytes().len()) as u64)
    }

    fn write_head(&self, head: &Head, out: &mut Vec<u8>) -> u32 {
        let owner = Owned {
            fingerprint: self.fingerprint,
            owner: u32::from(self.owner.0),
            head: *head,
        };
        owner.encode(out)
    }

    fn write(&self, spot: Spot, entry: &Entry<'_>, out: &mut Vec<u8>) {
        record::encode(spot, entry, out);
    }

    fn highest_of(entry: &Entry<'_>) -> JobId {
        match entry {
            Entry::Full { job, .. } | Entry::Change { job } | Entry::End { job } => job.id,
            Entry::Mark { highest } => *highest,
            Entry::Pause { .. } | Entry::Resume { .. } => JobId(0),
        }
    }

    fn burial_mark(moment: Nanos) -> WallNanos {
        WallNanos(signed(moment.0))
    }

    fn burial_of(job: &JobImage) -> Option<Nanos> {
        let moment = u64::try_from(job.deadline_at.0).unwrap_or(0);
        (job.state == SavedState::Buried).then_some(Nanos(moment))
    }

    fn burial_at(_: u64, _: u64, latest: Nanos) -> Nanos {
        latest
    }
}

impl V8 {
    /// Whether a file belongs here.
    fn check(&self, number: u64, found: &Owned) -> Result<(), BadHead> {
        let foreign = |text| Err(BadHead::Foreign(text));
        if found.fingerprint != self.fingerprint {
            let (found, ours) = (found.fingerprint.0, self.fingerprint.0);
            return foreign(format!(
                "topology {found:016x} was found, {ours:016x} was expected"
            ));
        }
        if found.owner != u32::from(self.owner.0) {
            let (found, ours) = (found.owner, self.owner.0);
            return foreign(format!("owner {found} was found, {ours} was expected"));
        }
        if found.head.number != number {
            let found = found.head.number;
            return foreign(format!(
                "file number {found} was found, {number} was expected"
            ));
        }
        Ok(())
    }
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Of the topology.
    pub fingerprint: Fingerprint,
    /// Index of the owner.
    pub owner: u32,
    /// The rest.
    pub head: Head,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadFault {
    /// They end before they should: the rest was not written.
    #[error("header was being written")]
    Torn,
    /// They do not begin as one.
    #[error("there is no header of a binlog")]
    Magic,
    /// The file is of another version.
    #[error("version {found} was found, {VERSION} was expected")]
    Version {
        /// Which.
        found: u32,
    },
    /// The bytes have changed.
    #[error("checksum of the header is wrong")]
    Checksum,
    /// Nobody writes this.
    #[error("field at {at} of the header is impossible")]
    Field {
        /// Offset of the field, in bytes.
        at: usize,
    },
}

impl Owned {
    /// Appends the header; returns its checksum, which seeds those of the records.
    pub fn encode(&self, out: &mut Vec<u8>) -> u32 {
        let at = out.len();
        let head = &self.head;
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.owner.to_le_bytes());
        out.extend_from_slice(&self.fingerprint.0.to_le_bytes());
        out.extend_from_slice(&head.number.to_le_bytes());
        out.extend_from_slice(&head.highest.0.to_le_bytes());
        out.extend_from_slice(&head.begun_at.0.to_le_bytes());
        out.extend_from_slice(&head.before_end.to_le_bytes());
        out.extend_from_slice(&[u8::from(head.is_synced), 0, 0]);
        let sum = crc32c::crc32c(&out[at..]);
        out.extend_from_slice(&sum.to_le_bytes());
        out.push(END);
        sum
    }

    /// Reads a header, and its checksum.
    ///
    /// # Errors
    /// [`HeadFault`].
    pub fn decode(bytes: &[u8; HEAD_LEN]) -> Result<(Owned, u32), HeadFault> {
        let sum = u32_at(bytes, SUM_AT);
        let is_whole = crc32c::crc32c(&bytes[..SUM_AT]) == sum;
        let begun = bytes.iter().position(|&byte| byte == 0).unwrap_or(HEAD_LEN);
        if begun < MAGIC.len() && first_data(&bytes[begun..]).is_none() {
            let is_ours = bytes[..begun] == MAGIC[..begun];
            return Err(if is_ours {
                HeadFault::Torn
            } else {
                HeadFault::Magic
            });
        }
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(HeadFault::Magic);
        }
        let version = u32_at(bytes, 8);
        let is_torn = bytes[END_AT] == 0;
        if version != VERSION && !(version == 0 && is_torn) {
            // Another version may have its checksum elsewhere, but one byte that has changed since
            // is no other version.
            let mut ours = *bytes;
            ours[8..12].copy_from_slice(&VERSION.to_le_bytes());
            let is_changed = crc32c::crc32c(&ours[..SUM_AT]) == sum;
            return Err(if is_changed {
                HeadFault::Checksum
            } else {
                HeadFault::Version { found: version }
            });
        }
        if is_torn {
            return Err(HeadFault::Torn);
        }
        if !is_whole {
            return Err(HeadFault::Checksum);
        }
        if bytes[56] > 1 || bytes[57..SUM_AT] != [0; 2] {
            return Err(HeadFault::Field { at: 56 });
        }
        if bytes[END_AT] != END {
            return Err(HeadFault::Field { at: END_AT });
        }
        let owned = Owned {
            fingerprint: Fingerprint(u64_at(bytes, 16)),
            owner: u32_at(bytes, 12),
            head: Head {
                number: u64_at(bytes, 24),
                highest: JobId(u64_at(bytes, 32)),
                begun_at: WallNanos(u64_at(bytes, 40).cast_signed()),
                before_end: u64_at(bytes, 48),
                is_synced: bytes[56] == 1,
            },
        };
        if owned.head.highest >= JobId::UNCOUNTED {
            return Err(HeadFault::Field { at: 32 });
        }
        Ok((owned, sum))
    }
}

/// The number at this offset; 0 if the bytes end before.
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let number = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    u32::from_le_bytes(number.copied().unwrap_or_default())
}

/// The number at this offset; 0 if the bytes end before.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let number = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    u64::from_le_bytes(number.copied().unwrap_or_default())
}

#[cfg(test)]
mod tests;
