//! One record of the binlog, to bytes and back. Pure: no file is known here.
//!
//! A record is the length of a tube name, the name, the job's structure and the body with CR LF. If
//! the length is 0 the record is *short*: neither name nor body, a change of a job whose *full*
//! record came before. All integers are little-endian.
//!
//! | | version 7 | version 5 |
//! | --- | --- | --- |
//! | length of the name | 4 bytes | 8 bytes |
//! | structure | 80 bytes | 77 bytes |
//! | unit of times | nanoseconds, signed | microseconds, unsigned |
//!
//! The structure, of which offsets 12, 36 and, in version 7, 77 to 79 are padding:
//!
//! | offset | bytes | field |
//! | -----: | ----: | --- |
//! | 0 | 8 | id, never 0 |
//! | 8 | 4 | pri |
//! | 16 | 8 | delay |
//! | 24 | 8 | ttr |
//! | 32 | 4 | length of the body and its CR LF, signed |
//! | 40 | 8 | made at, since 1970 |
//! | 48 | 8 | state ends at, since 1970 |
//! | 56 | 4 | reserves |
//! | 60 | 4 | timeouts |
//! | 64 | 4 | releases |
//! | 68 | 4 | buries |
//! | 72 | 4 | kicks |
//! | 76 | 1 | state |
//!
//! There is no checksum. What a crash left half written within zeros is recognised as far as it can
//! be: where a field that cannot be 0 is, and nothing but zeros follows, the record is torn.
//!
//! The state is near the end and that of a deletion is 0, so half a change would be a deletion. Our
//! own short records have a mark in the padding at 12 and another at 79, and one that has lost the
//! second is torn. The original writes zeros there, or for a job that it has read from us what it
//! has read, so both or none.

use crate::base::ids::{JobId, Pri};
use crate::base::limits::{BODY_LEN_MAX_CEILING, TUBE_NAME_LEN_MAX};
use crate::base::name::TubeName;
use crate::engine::job::JobCounts;

/// Which of the known layouts a file has. Any change of the layout is a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Written by releases 1.4 of the original; read only.
    V5,
    /// Written by all releases since, and here.
    V7,
}

impl Version {
    /// The version that a file with this number in its header has.
    #[must_use]
    pub fn of(number: i32) -> Option<Version> {
        match number {
            5 => Some(Version::V5),
            7 => Some(Version::V7),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Version::V5 => 5,
            Version::V7 => 7,
        }
    }

    /// Bytes of the length of the name.
    fn name_len_bytes(self) -> usize {
        match self {
            Version::V5 => 8,
            Version::V7 => 4,
        }
    }

    /// Bytes of the job's structure.
    fn job_bytes(self) -> usize {
        match self {
            Version::V5 => 77,
            Version::V7 => 80,
        }
    }

    /// Length of a short record in bytes.
    #[must_use]
    pub fn short_len(self) -> usize {
        self.name_len_bytes() + self.job_bytes()
    }
}

/// A span of time in nanoseconds. Only damage makes it negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanNanos(pub i64);

/// A moment on the wall clock in nanoseconds since the beginning of 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallNanos(pub i64);

/// What a record says of where its job is. Numbers are those on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SavedState {
    /// It is gone.
    Deleted = 0,
    /// Whoever asks first gets it.
    Ready = 1,
    /// Somebody held it; at a start it is ready.
    Reserved = 2,
    /// Stays until it is kicked or deleted.
    Buried = 3,
    /// Becomes ready at its deadline.
    Delayed = 4,
}

impl SavedState {
    fn of(number: u8) -> Option<SavedState> {
        match number {
            0 => Some(SavedState::Deleted),
            1 => Some(SavedState::Ready),
            2 => Some(SavedState::Reserved),
            3 => Some(SavedState::Buried),
            4 => Some(SavedState::Delayed),
            _ => None,
        }
    }

    /// The word for it, the protocol's where it has one.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            SavedState::Deleted => "deleted",
            SavedState::Ready => "ready",
            SavedState::Reserved => "reserved",
            SavedState::Buried => "buried",
            SavedState::Delayed => "delayed",
        }
    }
}

/// A job as a record shows it, but for its tube and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobImage {
    /// Its id, not 0.
    pub id: JobId,
    /// Its priority.
    pub pri: Pri,
    /// The last delay it was given.
    pub delay: SpanNanos,
    /// How long it may be held.
    pub ttr: SpanNanos,
    /// Length of its body in bytes, **without** the CR LF that the number on disk includes. At
    /// most [`BODY_LEN_MAX_CEILING`].
    pub body_len: u32,
    /// When it was put.
    pub created_at: WallNanos,
    /// When its state ends by itself; without meaning, and often 0, in a state that does not.
    pub deadline_at: WallNanos,
    /// What has happened to it how often.
    pub counts: JobCounts,
    /// Where it is.
    pub state: SavedState,
}

/// What only full records have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// The job's tube.
    pub tube: TubeName<'a>,
    /// Its body without CR LF; `body_len` bytes.
    pub body: &'a [u8],
}

/// A record, borrowed from the bytes that it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The job as it is from here on.
    pub job: JobImage,
    /// Tube and body if the record is full, nothing if it is short.
    pub content: Option<Content<'a>>,
}

/// What stands at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A whole record of `len` bytes. The rest of the bytes has no part in this answer.
    Record {
        /// The record.
        record: Record<'a>,
        /// Its length in bytes; at least that of a short record.
        len: usize,
    },
    /// All bytes are zero, or there are none: the unused end of a file.
    Zeros,
    /// The bytes end, or turn into zeros for good, in the middle of a record.
    Torn,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The length of the name is negative or more than [`TUBE_NAME_LEN_MAX`].
    #[error("name length {found} is impossible")]
    NameLen {
        /// What is there, as a number with a sign.
        found: i64,
    },
    /// The name has bytes that no tube name has.
    #[error("tube name is invalid")]
    Name,
    /// The id is 0 where something else is not.
    #[error("id is 0")]
    Id,
    /// No body with CR LF can be so long.
    #[error("body size {found} is impossible")]
    BodySize {
        /// What is there.
        found: i32,
    },
    /// The state is none.
    #[error("state {found} is unknown")]
    State {
        /// What is there.
        found: u8,
    },
    /// A full record that says that its job is gone: nobody writes one.
    #[error("full record of a deleted job")]
    FullDeleted,
    /// No CR LF behind the body.
    #[error("body does not end in CR LF")]
    BodyEnd,
    /// A short record that begins as ours do and does not end so.
    #[error("end of a short record is missing")]
    ShortEnd,
    /// A record of zeros with something behind it.
    #[error("data behind zeros")]
    BehindZeros,
}

/// Bytes that are no record, nor the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct Damage {
    /// Offset of what is wrong from the start of the record, in bytes.
    pub at: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What stands at the beginning of `bytes`, which are a file's from the end of the record before to
/// its end.
///
/// Of a file that is read in pieces a caller may pass the beginning only: a whole record is final
/// then, any other answer can change when there are more bytes.
///
/// # Errors
/// [`Damage`]. The length of what is damaged is not known, so nothing behind it can be read.
pub fn decode(version: Version, bytes: &[u8]) -> Result<Decoded<'_>, Damage> {
    match measure(version, bytes) {
        Ok(layout) => Ok(Decoded::Record {
            record: layout.record(bytes),
            len: layout.len,
        }),
        Err(Stop::More { .. }) if first_data(bytes).is_none() => Ok(Decoded::Zeros),
        Err(Stop::More { .. }) => Ok(Decoded::Torn),
        Err(Stop::Zeros) => match first_data(bytes) {
            None => Ok(Decoded::Zeros),
            Some(at) => Err(Damage {
                at,
                fault: Fault::BehindZeros,
            }),
        },
        Err(Stop::Damaged(damage)) => match first_data(&bytes[damage.at..]) {
            None => Ok(Decoded::Torn),
            Some(_) => Err(damage),
        },
    }
}

/// Offset of the first byte that is not 0.
pub(super) fn first_data(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte != 0)
}

/// Appends `record` in the layout of [`Version::V7`].
///
/// # Panics
/// If a full record's body is not as long as its job says, or a record could not be read again:
/// id 0, a body above [`BODY_LEN_MAX_CEILING`], a full record of a deleted job.
pub fn encode(record: &Record<'_>, out: &mut Vec<u8>) {
    let job = &record.job;
    assert!(job.id != JobId(0), "id 0 is the mark of unused space");
    assert!(job.body_len <= BODY_LEN_MAX_CEILING, "body is too long");
    let (name, body) = match &record.content {
        Some(content) => (content.tube.as_bytes(), content.body),
        None => (&b""[..], &b""[..]),
    };
    out.extend_from_slice(&(name.len() as u32).to_le_bytes());
    out.extend_from_slice(name);
    let job_at = out.len();
    encode_job(job, out);
    if record.content.is_none() {
        out[job_at + MARK_AT..][..MARK.len()].copy_from_slice(&MARK);
        out[job_at + END_MARK_AT] = END_MARK;
    } else {
        assert!(
            job.state != SavedState::Deleted,
            "a deletion is a short record"
        );
        assert!(
            body.len() == job.body_len as usize,
            "body and its length differ"
        );
        out.extend_from_slice(body);
        out.extend_from_slice(CR_LF);
    }
}

fn encode_job(job: &JobImage, out: &mut Vec<u8>) {
    out.extend_from_slice(&job.id.0.to_le_bytes());
    out.extend_from_slice(&job.pri.0.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&job.delay.0.to_le_bytes());
    out.extend_from_slice(&job.ttr.0.to_le_bytes());
    out.extend_from_slice(&(job.body_len + CR_LF.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&job.created_at.0.to_le_bytes());
    out.extend_from_slice(&job.deadline_at.0.to_le_bytes());
    let counts = &job.counts;
    for count in [
        counts.reserves,
        counts.timeouts,
        counts.releases,
        counts.buries,
        counts.kicks,
    ] {
        out.extend_from_slice(&count.to_le_bytes());
    }
    out.push(job.state as u8);
    out.extend_from_slice(&[0; 3]);
}

/// Where the parts of a whole record are.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    job: JobImage,
    version: Version,
    name_len: usize,
    /// Length of the record in bytes.
    pub(super) len: usize,
}

impl Layout {
    /// The record in `bytes`, the same that were measured.
    pub(super) fn record(self, bytes: &[u8]) -> Record<'_> {
        let name_at = self.version.name_len_bytes();
        let name = &bytes[name_at..name_at + self.name_len];
        let body_at = name_at + self.name_len + self.version.job_bytes();
        let content = TubeName::parse(name).map(|tube| Content {
            tube,
            body: &bytes[body_at..body_at + self.job.body_len as usize],
        });
        Record {
            job: self.job,
            content,
        }
    }
}

/// Why there is no whole record at the beginning of some bytes.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    /// The bytes end before the record does, which has at least `len`.
    More {
        /// At most the length of the largest record.
        len: usize,
    },
    /// The record is zeros.
    Zeros,
    /// Something is wrong, or half written if everything from there on is 0.
    Damaged(Damage),
}

/// Measures the record at the beginning of `bytes` and looks at nothing behind it.
pub(super) fn measure(version: Version, bytes: &[u8]) -> Result<Layout, Stop> {
    let name_at = version.name_len_bytes();
    let name_len = match version {
        Version::V5 => u64_at(bytes, 0).map(u64::cast_signed),
        Version::V7 => u32_at(bytes, 0).map(|len| i64::from(len.cast_signed())),
    };
    let name_len = name_len.ok_or(Stop::More {
        len: version.short_len(),
    })?;
    let name_len = usize::try_from(name_len)
        .ok()
        .filter(|&len| len <= TUBE_NAME_LEN_MAX)
        .ok_or_else(|| damaged(0, Fault::NameLen { found: name_len }))?;
    let job_at = name_at + name_len;
    let head_len = job_at + version.job_bytes();
    let head = bytes.get(..head_len).ok_or(Stop::More { len: head_len })?;
    if first_data(head).is_none() {
        return Err(Stop::Zeros);
    }
    if name_len != 0 && TubeName::parse(&head[name_at..job_at]).is_none() {
        // What was not written of a name is zeros, like all behind it.
        let name = &head[name_at..job_at];
        let written = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        return Err(damaged(name_at + written, Fault::Name));
    }
    let job = decode_job(version, &head[job_at..], job_at)?;
    if name_len == 0 {
        if version == Version::V7 && is_half(&head[job_at..]) {
            return Err(damaged(job_at + END_MARK_AT, Fault::ShortEnd));
        }
        return Ok(Layout {
            job,
            version,
            name_len,
            len: head_len,
        });
    }
    if job.state == SavedState::Deleted {
        return Err(damaged(job_at + STATE_AT, Fault::FullDeleted));
    }
    let end_at = head_len + job.body_len as usize;
    let len = end_at + CR_LF.len();
    let end = bytes.get(end_at..len).ok_or(Stop::More { len })?;
    if end != CR_LF {
        let written = usize::from(end[0] == CR_LF[0]);
        return Err(damaged(end_at + written, Fault::BodyEnd));
    }
    Ok(Layout {
        job,
        version,
        name_len,
        len,
    })
}

/// The job in `bytes`, which are as many as the structure has and stand at `at` in the record.
fn decode_job(version: Version, bytes: &[u8], at: usize) -> Result<JobImage, Stop> {
    let int = |offset| u32_at(bytes, offset).unwrap_or(0);
    let long = |offset| u64_at(bytes, offset).unwrap_or(0);
    let time = |offset| match version {
        Version::V5 => nanos_of_micros(long(offset)),
        Version::V7 => long(offset).cast_signed(),
    };
    let id = long(0);
    if id == 0 {
        return Err(damaged(at, Fault::Id));
    }
    let body_size = int(BODY_SIZE_AT).cast_signed();
    let body_len = u32::try_from(body_size)
        .ok()
        .and_then(|size| size.checked_sub(CR_LF.len() as u32))
        .filter(|&len| len <= BODY_LEN_MAX_CEILING)
        .ok_or_else(|| damaged(at + BODY_SIZE_AT, Fault::BodySize { found: body_size }))?;
    let state = bytes.get(STATE_AT).copied().unwrap_or(u8::MAX);
    let state = SavedState::of(state)
        .ok_or_else(|| damaged(at + STATE_AT, Fault::State { found: state }))?;
    Ok(JobImage {
        id: JobId(id),
        pri: Pri(int(8)),
        delay: SpanNanos(time(16)),
        ttr: SpanNanos(time(24)),
        body_len,
        created_at: WallNanos(time(40)),
        deadline_at: WallNanos(time(48)),
        counts: JobCounts {
            reserves: int(56),
            timeouts: int(60),
            releases: int(64),
            buries: int(68),
            kicks: int(72),
        },
        state,
    })
}

/// Whether the structure of a short record has the first of our marks and not the second.
fn is_half(job: &[u8]) -> bool {
    job[MARK_AT..].starts_with(&MARK) && job[END_MARK_AT] == 0
}

fn damaged(at: usize, fault: Fault) -> Stop {
    Stop::Damaged(Damage { at, fault })
}

/// Stays at the largest number of nanoseconds, in the year 2262.
fn nanos_of_micros(micros: u64) -> i64 {
    i64::try_from(micros.saturating_mul(1000)).unwrap_or(i64::MAX)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let (number, _) = bytes.get(offset..)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*number))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let (number, _) = bytes.get(offset..)?.split_first_chunk()?;
    Some(u64::from_le_bytes(*number))
}

const CR_LF: &[u8] = b"\r\n";
const BODY_SIZE_AT: usize = 32;
const STATE_AT: usize = 76;

/// At the beginning and at the end of the structure in our short records, in version 7.
const MARK: [u8; 4] = *b"bsh1";
const MARK_AT: usize = 12;
const END_MARK: u8 = b'.';
const END_MARK_AT: usize = 79;

#[cfg(test)]
mod tests;
