//! One record of version 8, to bytes and back. Pure: no file is known here.
//!
//! Each record begins with
//!
//! | offset | bytes | field |
//! | -----: | ----: | --- |
//! | 0 | 4 | length of the record |
//! | 4 | 4 | CRC-32C, see below |
//! | 8 | 4 | place of the file up to which it had been synced, see below |
//! | 12 | 1 | kind |
//!
//! The checksum goes on from the header's: with the record's offset in the file, as 8 bytes, with
//! the record's bytes 0 to 3, and with those from 8 on. The record goes on as its kind says.
//!
//! A job that is there, or is as this says from now on (1), and a change of it (2), which has
//! neither name nor body:
//!
//! | offset | bytes | field |
//! | -----: | ----: | --- |
//! | 13 | 1 | state: 1 ready, 2 reserved, 3 buried, 4 delayed |
//! | 14 | 2 | length of the tube's name, 0 in a change |
//! | 16 | 8 | id |
//! | 24 | 4 | pri |
//! | 28 | 4 | delay, seconds |
//! | 32 | 4 | ttr, seconds |
//! | 36 | 8 | made at, nanoseconds since 1970, signed |
//! | 44 | 8 | state ends at, in the same way; 0 of a ready job |
//! | 52 | 4 | reserves |
//! | 56 | 4 | timeouts |
//! | 60 | 4 | releases |
//! | 64 | 4 | buries |
//! | 68 | 4 | kicks |
//! | 72 | | name, then body, to the end of the record |
//!
//! A buried job has the moment of its burial, by the engine's clock, where others have the end of
//! their state.
//!
//! The end of a job (3), the highest id that was given (4), and the end of a pause (6):
//!
//! | offset | bytes | field |
//! | -----: | ----: | --- |
//! | 13 | 3 | zero |
//! | 16 | 8 | the id, or the number of the pause |
//!
//! A pause (5):
//!
//! | offset | bytes | field |
//! | -----: | ----: | --- |
//! | 13 | 1 | zero |
//! | 14 | 2 | length of the tube's name |
//! | 16 | 8 | number of the pause |
//! | 24 | 4 | length of the pause, seconds |
//! | 28 | 8 | ends at, nanoseconds since 1970, signed |
//! | 36 | | name, to the end of the record |
//!
//! The place up to which a file had been synced is 0 if not even the files before it were, else
//! those were and this one was up to there. It tells what was lost later from what was never kept.

use crate::base::ids::{JobId, Pri};
use crate::base::limits::{BODY_LEN_MAX_CEILING, TTR_SECS_MIN, TUBE_NAME_LEN_MAX};
use crate::base::name::TubeName;
use crate::base::slot::{SLOT_BITS, Slot};
use crate::base::time::{NANOS_PER_SEC, Secs};
use crate::engine::job::JobCounts;
use crate::wal::format::{Entry, PauseImage, Spot};
use crate::wal::record::{JobImage, SavedState, SpanNanos, WallNanos};
use crate::wal::v8::{u32_at, u64_at};

/// Bytes of a job's record without name and body.
pub const JOB_LEN: usize = 72;

/// Bytes of a pause's record without the name.
pub const PAUSE_LEN: usize = 36;

/// Bytes of the other records.
pub const NUMBER_LEN: usize = 24;

/// Bytes of the longest record.
pub const RECORD_LEN_MAX: usize = JOB_LEN + TUBE_NAME_LEN_MAX + BODY_LEN_MAX_CEILING as usize;

/// Bytes that have to be there before anything can be said.
const START_LEN: usize = 13;

const SUM_AT: usize = 4;
const SYNCED_AT: usize = 8;
const KIND_AT: usize = 12;

/// What a record is. Numbers are for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Full = 1,
    Change = 2,
    End = 3,
    Mark = 4,
    Pause = 5,
    Resume = 6,
}

impl Kind {
    fn of(number: u8) -> Option<Kind> {
        match number {
            1 => Some(Kind::Full),
            2 => Some(Kind::Change),
            3 => Some(Kind::End),
            4 => Some(Kind::Mark),
            5 => Some(Kind::Pause),
            6 => Some(Kind::Resume),
            _ => None,
        }
    }

    /// The least and the greatest length of such a record, in bytes.
    fn lens(self) -> (usize, usize) {
        match self {
            Kind::Full => (JOB_LEN + 1, RECORD_LEN_MAX),
            Kind::Change => (JOB_LEN, JOB_LEN),
            Kind::End | Kind::Mark | Kind::Resume => (NUMBER_LEN, NUMBER_LEN),
            Kind::Pause => (PAUSE_LEN + 1, PAUSE_LEN + TUBE_NAME_LEN_MAX),
        }
    }
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There are none, and others behind.
    #[error("data behind zeros")]
    BehindZeros,
    /// No record has such a kind.
    #[error("kind {found} is unknown")]
    Kind {
        /// What is there.
        found: u8,
    },
    /// No record of its kind is so long.
    #[error("length {found} is impossible")]
    Len {
        /// What is there.
        found: u32,
    },
    /// The bytes end within the record.
    #[error("record of {len} bytes is cut off")]
    CutOff {
        /// Its length.
        len: usize,
    },
    /// The bytes have changed.
    #[error("checksum is wrong")]
    Checksum,
    /// Nobody writes this, though the checksum fits.
    #[error("field at {at} of the record is impossible")]
    Field {
        /// Offset of the field, in bytes from the start of the record.
        at: usize,
    },
}

/// Why there is no whole record at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The bytes end before the record does, which has at least `len`.
    More {
        /// At most [`RECORD_LEN_MAX`].
        len: usize,
    },
    /// The record would have no bytes, so there should be zeros only.
    Zeros,
    /// Something is wrong.
    Fault(Fault),
}

/// A whole record in which everything can be.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    what: What,
    /// Its length in bytes.
    pub len: usize,
    /// The place up to which its file had been synced.
    pub synced: u64,
}

/// What it says, but for what stands in its bytes as it is.
#[derive(Clone, Copy, Debug)]
enum What {
    Full { job: JobImage, name_len: usize },
    Pause { pause: PauseImage },
    Other(Entry<'static>),
}

impl Checked {
    /// What the record says, which begins `bytes`: the same that were checked.
    #[must_use]
    pub fn entry(self, bytes: &[u8]) -> Entry<'_> {
        let name = |from, to| TubeName::parse(&bytes[from..to]).expect("it was checked");
        match self.what {
            What::Full { job, name_len } => Entry::Full {
                job,
                tube: name(JOB_LEN, JOB_LEN + name_len),
                body: &bytes[JOB_LEN + name_len..self.len],
            },
            What::Pause { pause } => Entry::Pause {
                tube: name(PAUSE_LEN, self.len),
                pause,
            },
            What::Other(entry) => entry,
        }
    }
}

/// Measures the record at the beginning of `bytes`. Nothing is believed of it yet but that a record
/// of its kind can be so long.
///
/// # Errors
/// [`Stop`].
pub fn measure(bytes: &[u8]) -> Result<usize, Stop> {
    if bytes.len() < START_LEN {
        return Err(Stop::More { len: START_LEN });
    }
    let claimed = u32_at(bytes, 0);
    if claimed == 0 {
        return Err(Stop::Zeros);
    }
    let found = bytes[KIND_AT];
    let kind = Kind::of(found).ok_or(Stop::Fault(Fault::Kind { found }))?;
    let (least, most) = kind.lens();
    let len = claimed as usize;
    if len < least || len > most {
        return Err(Stop::Fault(Fault::Len { found: claimed }));
    }
    if bytes.len() < len {
        return Err(Stop::More { len });
    }
    Ok(len)
}

/// Whether the checksum of these bytes, a whole record at `offset` of a file with this seed, fits.
#[must_use]
pub fn is_whole(seed: u32, offset: u64, record: &[u8]) -> bool {
    sum_of(seed, offset, record) == u32_at(record, SUM_AT)
}

fn sum_of(seed: u32, offset: u64, record: &[u8]) -> u32 {
    let sum = crc32c::crc32c_append(seed, &offset.to_le_bytes());
    let sum = crc32c::crc32c_append(sum, &record[..SUM_AT]);
    crc32c::crc32c_append(sum, &record[SYNCED_AT..])
}

/// The place up to which the file had been synced, as the record claims.
#[must_use]
pub fn synced_of(record: &[u8]) -> u64 {
    u32_at(record, SYNCED_AT).into()
}

/// Checks the record at the beginning of `bytes`, which stands at `offset` of a file with this
/// seed.
///
/// # Errors
/// [`Stop`].
pub fn check(seed: u32, offset: u64, bytes: &[u8]) -> Result<Checked, Stop> {
    let len = measure(bytes)?;
    let record = &bytes[..len];
    if !is_whole(seed, offset, record) {
        return Err(Stop::Fault(Fault::Checksum));
    }
    let synced = synced_of(record);
    if synced > offset {
        return Err(field(SYNCED_AT));
    }
    let number = || decode_number(record);
    let what = match Kind::of(record[KIND_AT]) {
        Some(Kind::Full) => decode_full(record)?,
        Some(Kind::Change) => What::Other(Entry::Change {
            job: decode_change(record)?,
        }),
        Some(Kind::End) => What::Other(Entry::End {
            job: ended(JobId(number()?)),
        }),
        Some(Kind::Mark) => What::Other(Entry::Mark {
            highest: JobId(number()?),
        }),
        Some(Kind::Pause) => decode_pause(record)?,
        Some(Kind::Resume) => What::Other(Entry::Resume { number: number()? }),
        None => return Err(field(KIND_AT)),
    };
    Ok(Checked { what, len, synced })
}

fn field(at: usize) -> Stop {
    Stop::Fault(Fault::Field { at })
}

/// Where the id stands, or the number of a pause.
const ID_AT: usize = 16;
const NAME_LEN_AT: usize = 14;

/// An id of a job that can be, or a number.
fn decode_number(record: &[u8]) -> Result<u64, Stop> {
    if record[START_LEN..ID_AT] != [0; 3] {
        return Err(field(START_LEN));
    }
    decode_id(record)
}

fn decode_id(record: &[u8]) -> Result<u64, Stop> {
    let id = u64_at(record, ID_AT);
    if id == 0 || id >= JobId::UNCOUNTED.0 {
        return Err(field(ID_AT));
    }
    Ok(id)
}

/// The tube's name at `at`, and what is behind it.
fn decode_name(record: &[u8], at: usize) -> Result<(TubeName<'_>, &[u8]), Stop> {
    let len = u16::from_le_bytes([record[NAME_LEN_AT], record[NAME_LEN_AT + 1]]);
    let split = record[at..].split_at_checked(len.into());
    let (name, rest) = split.ok_or(field(NAME_LEN_AT))?;
    let name = TubeName::parse(name).ok_or(field(at))?;
    Ok((name, rest))
}

fn decode_full(record: &[u8]) -> Result<What, Stop> {
    let (tube, body) = decode_name(record, JOB_LEN)?;
    let body_len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    if body_len > BODY_LEN_MAX_CEILING {
        return Err(field(0));
    }
    let job = decode_job(record, body_len)?;
    if job.id.0 & ((1 << SLOT_BITS) - 1) != u64::from(Slot::of(tube).0) {
        return Err(field(ID_AT));
    }
    let name_len = tube.as_bytes().len();
    Ok(What::Full { job, name_len })
}

fn decode_change(record: &[u8]) -> Result<JobImage, Stop> {
    if record[NAME_LEN_AT..ID_AT] != [0; 2] {
        return Err(field(NAME_LEN_AT));
    }
    decode_job(record, 0)
}

fn decode_job(record: &[u8], body_len: u32) -> Result<JobImage, Stop> {
    let state = match record[START_LEN] {
        1 => SavedState::Ready,
        2 => SavedState::Reserved,
        3 => SavedState::Buried,
        4 => SavedState::Delayed,
        _ => return Err(field(START_LEN)),
    };
    let ttr = u32_at(record, 32);
    if ttr < TTR_SECS_MIN {
        return Err(field(32));
    }
    Ok(JobImage {
        id: JobId(decode_id(record)?),
        pri: Pri(u32_at(record, 24)),
        delay: span(u32_at(record, 28)),
        ttr: span(ttr),
        body_len,
        created_at: WallNanos(u64_at(record, 36).cast_signed()),
        deadline_at: WallNanos(u64_at(record, 44).cast_signed()),
        counts: JobCounts {
            reserves: u32_at(record, 52),
            timeouts: u32_at(record, 56),
            releases: u32_at(record, 60),
            buries: u32_at(record, 64),
            kicks: u32_at(record, 68),
        },
        state,
    })
}

fn decode_pause(record: &[u8]) -> Result<What, Stop> {
    let (_, rest) = decode_name(record, PAUSE_LEN)?;
    if !rest.is_empty() {
        return Err(field(NAME_LEN_AT));
    }
    if record[START_LEN] != 0 {
        return Err(field(START_LEN));
    }
    let length = Secs(u32_at(record, 24));
    if length.0 == 0 {
        return Err(field(24));
    }
    let pause = PauseImage {
        number: decode_id(record)?,
        length,
        until: WallNanos(u64_at(record, 28).cast_signed()),
    };
    Ok(What::Pause { pause })
}

/// All that is told of a job that is gone.
pub(super) fn ended(id: JobId) -> JobImage {
    JobImage {
        id,
        pri: Pri(0),
        delay: SpanNanos(0),
        ttr: SpanNanos(0),
        body_len: 0,
        created_at: WallNanos(0),
        deadline_at: WallNanos(0),
        counts: JobCounts::default(),
        state: SavedState::Deleted,
    }
}

fn span(secs: u32) -> SpanNanos {
    SpanNanos(i64::from(secs) * NANOS_PER_SEC.cast_signed())
}

fn secs(span: SpanNanos) -> u32 {
    let nanos = u64::try_from(span.0).unwrap_or(0);
    u32::try_from(nanos.div_ceil(NANOS_PER_SEC)).unwrap_or(u32::MAX)
}

/// Appends a record that stands at this spot.
///
/// # Panics
/// If it could not be read again: a record longer than [`RECORD_LEN_MAX`], a deleted job in another
/// record than that of its end.
pub fn encode(spot: Spot, entry: &Entry<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; KIND_AT]);
    match entry {
        Entry::Full { job, tube, body } => {
            encode_job(Kind::Full, job, tube.as_bytes().len(), out);
            out.extend_from_slice(tube.as_bytes());
            out.extend_from_slice(body);
        }
        Entry::Change { job } => encode_job(Kind::Change, job, 0, out),
        Entry::End { job } => encode_number(Kind::End, job.id.0, out),
        Entry::Mark { highest } => encode_number(Kind::Mark, highest.0, out),
        Entry::Pause { tube, pause } => encode_pause(*tube, pause, out),
        Entry::Resume { number } => encode_number(Kind::Resume, *number, out),
    }
    let record = &mut out[start..];
    assert!(record.len() <= RECORD_LEN_MAX, "record is too long");
    let len = record.len() as u32;
    // A file may be longer than this can say; then it says less than it could.
    let synced = u32::try_from(spot.synced).unwrap_or(u32::MAX);
    record[..SUM_AT].copy_from_slice(&len.to_le_bytes());
    record[SYNCED_AT..KIND_AT].copy_from_slice(&synced.to_le_bytes());
    seal(spot.seed, spot.offset, record);
}

/// Gives a whole record the checksum that fits.
pub fn seal(seed: u32, offset: u64, record: &mut [u8]) {
    let sum = sum_of(seed, offset, record);
    record[SUM_AT..SYNCED_AT].copy_from_slice(&sum.to_le_bytes());
}

fn encode_job(kind: Kind, job: &JobImage, name_len: usize, out: &mut Vec<u8>) {
    assert!(
        job.state != SavedState::Deleted,
        "the end of a job has a record of its own"
    );
    out.push(kind as u8);
    out.push(job.state as u8);
    out.extend_from_slice(&(name_len as u16).to_le_bytes());
    out.extend_from_slice(&job.id.0.to_le_bytes());
    out.extend_from_slice(&job.pri.0.to_le_bytes());
    out.extend_from_slice(&secs(job.delay).to_le_bytes());
    out.extend_from_slice(&secs(job.ttr).to_le_bytes());
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
}

fn encode_number(kind: Kind, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind as u8, 0, 0, 0]);
    out.extend_from_slice(&number.to_le_bytes());
}

fn encode_pause(tube: TubeName<'_>, pause: &PauseImage, out: &mut Vec<u8>) {
    let name = tube.as_bytes();
    out.extend_from_slice(&[Kind::Pause as u8, 0]);
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(&pause.number.to_le_bytes());
    out.extend_from_slice(&pause.length.0.to_le_bytes());
    out.extend_from_slice(&pause.until.0.to_le_bytes());
    out.extend_from_slice(name);
}
