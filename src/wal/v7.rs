//! Version 7, the original's format, as the journal writes it and a start reads it. The bytes
//! themselves are in [`record`] and [`segment`](crate::wal::segment); here is
//! what the format has no field for and how it is kept all the same.
//!
//! The moment of a burial stands in the deadline of a buried job, with a remainder that the
//! original's clock never produces. The highest id that was given is the deletion of a job that
//! never was. Pauses are not kept.

use std::io::{self, Read};

use crate::base::ids::{JobId, Pri};
use crate::base::name::TubeName;
use crate::base::time::Nanos;
use crate::wal::convert::signed;
use crate::wal::files::NUMBER_MAX;
use crate::wal::format::{Bad, BadHead, Entries, Entry, Format, Head, Next, Rest, Spot};
use crate::wal::record::{self, Content, JobImage, SavedState, SpanNanos, Version, WallNanos};
use crate::wal::segment::{BadHeader, Found, HEADER_LEN, Segment, Tail};
use crate::wal::v8::{VERSION, begins_as_ours};

/// See the module's description.
#[derive(Clone, Copy, Debug, Default)]
pub struct V7;

/// Bytes of a short record.
const SHORT_LEN: u64 = 84;

/// Bytes of CR LF behind a body.
const CR_LF_LEN: usize = 2;

impl Format for V7 {
    const HEAD_LEN: u64 = HEADER_LEN as u64;
    const SHORT_LEN: u64 = SHORT_LEN;
    const IS_ORDERED: bool = false;

    type File<R: Read> = Segment<R>;

    fn open<R: Read>(&self, _: u64, source: R) -> io::Result<Result<Segment<R>, BadHead>> {
        let opened = Segment::open(source)?;
        Ok(opened.map_err(|header| match header {
            BadHeader::Unknown(number) if begins_as_ours(number) => {
                BadHead::Foreign(format!("version {VERSION} was found, 7 was expected"))
            }
            BadHeader::Unknown(_) | BadHeader::Short(_) => BadHead::Damaged(Bad {
                at: 0,
                fault: header.to_string(),
            }),
        }))
    }

    fn skips_damage(&self) -> bool {
        true
    }

    fn full_len(tube: TubeName<'_>, body_len: usize) -> u64 {
        SHORT_LEN + (tube.as_bytes().len() + body_len + CR_LF_LEN) as u64
    }

    fn pause_len(_: TubeName<'_>) -> Option<u64> {
        None
    }

    fn write_head(&self, _: &Head, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&Version::V7.number().to_le_bytes());
        0
    }

    fn write(&self, _: Spot, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let (job, content) = match *entry {
            Entry::Full { job, tube, body } => (job, Some(Content { tube, body })),
            Entry::Change { job } | Entry::End { job } => (job, None),
            Entry::Mark { highest } => (id_mark(JobId(highest.0 + 1)), None),
            Entry::Pause { .. } | Entry::Resume { .. } => {
                debug_assert!(false, "the journal has been told that pauses are not kept");
                return;
            }
        };
        record::encode(&record::Record { job, content }, out);
    }

    fn highest_of(entry: &Entry<'_>) -> JobId {
        match entry {
            Entry::Full { job, .. } | Entry::Change { job } | Entry::End { job } => highest_of(job),
            Entry::Mark { highest } => *highest,
            Entry::Pause { .. } | Entry::Resume { .. } => JobId(0),
        }
    }

    fn burial_mark(moment: Nanos) -> WallNanos {
        burial_mark(moment)
    }

    fn burial_of(job: &JobImage) -> Option<Nanos> {
        burial_of(job)
    }

    fn burial_at(file: u64, offset: u64, latest: Nanos) -> Nanos {
        burial_at(file, offset, latest)
    }
}

impl<R: Read> Entries for Segment<R> {
    fn next_entry(&mut self) -> io::Result<Next<'_>> {
        Ok(match Segment::read_next(self)? {
            Found::Record {
                offset,
                len,
                record,
            } => Next::Entry {
                offset,
                len,
                entry: entry_of(record),
            },
            Found::End { offset, tail } => Next::End {
                offset,
                rest: rest_of(tail),
            },
        })
    }

    fn head(&self) -> Option<Head> {
        None
    }

    fn synced_to(&mut self) -> io::Result<u64> {
        Ok(0)
    }
}

fn entry_of(record: record::Record<'_>) -> Entry<'_> {
    let job = record.job;
    match (record.content, job.state) {
        (Some(Content { tube, body }), _) => Entry::Full { job, tube, body },
        (None, SavedState::Deleted) => Entry::End { job },
        (
            None,
            SavedState::Ready | SavedState::Reserved | SavedState::Buried | SavedState::Delayed,
        ) => Entry::Change { job },
    }
}

fn rest_of(tail: Tail) -> Rest {
    match tail {
        Tail::Clean => Rest::Nothing,
        Tail::Zeros => Rest::Zeros,
        Tail::Torn => Rest::Torn,
        Tail::Damaged { at, fault } => Rest::Bad(Bad {
            at,
            fault: fault.to_string(),
        }),
    }
}

/// What the moment of a burial leaves when divided by [`BURIAL_UNIT`]. The original ignores a
/// buried job's deadline and never writes one of this form: its clock has microseconds. So it tells
/// our own records, in which the field keeps the job's place among those buried. That is the moment
/// by the engine's clock as it is, because the wall clock may be set back; a later run of the
/// machine, in which the engine's clock begins anew, goes on behind the latest burial it finds.
const BURIAL_MARK: i64 = 1;

/// Nanoseconds in a microsecond.
const BURIAL_UNIT: i64 = 1000;

/// The field that keeps the moment of a burial.
pub(super) fn burial_mark(moment: Nanos) -> WallNanos {
    let unit = signed(moment.0) / BURIAL_UNIT;
    WallNanos(unit * BURIAL_UNIT + BURIAL_MARK)
}

/// When the job was buried, if the record tells.
pub(super) fn burial_of(image: &JobImage) -> Option<Nanos> {
    let told = image.deadline_at.0;
    let is_told = image.state == SavedState::Buried && told.rem_euclid(BURIAL_UNIT) == BURIAL_MARK;
    is_told.then(|| Nanos(u64::try_from(told - BURIAL_MARK).unwrap_or(0)))
}

/// Stands for the moment of a burial that a record does not tell: later than those before it in the
/// directory, the latest of which was `latest`. It is made of the place of the record, so that it
/// is the same at every start as long as the record is there, whichever others have gone.
pub(super) fn burial_at(file: u64, offset: u64, latest: Nanos) -> Nanos {
    let nth = (offset / SHORT_LEN).min((1 << NTH_BITS) - 1);
    let unit = (file << NTH_BITS | nth) * BURIAL_UNIT.unsigned_abs();
    let next = Nanos(latest.0.saturating_add(BURIAL_UNIT.unsigned_abs()));
    next.max(Nanos(unit))
}

/// Bits for the place of a record in its file. What is left is enough for every number of a file.
const NTH_BITS: u32 = 22;

const _: () = assert!(
    NUMBER_MAX < (i64::MAX / BURIAL_UNIT) as u64 >> NTH_BITS,
    "every place is a moment"
);

/// The record that says that no id below `next` may be given again, and nothing else: the end of a
/// job that never was. The original ignores it. No job's own end looks like it, because no job has
/// a time to run of 0.
pub(super) fn id_mark(next: JobId) -> JobImage {
    JobImage {
        id: next,
        pri: Pri(0),
        delay: SpanNanos(0),
        ttr: SpanNanos(0),
        body_len: 0,
        created_at: WallNanos(0),
        deadline_at: WallNanos(0),
        counts: Default::default(),
        state: SavedState::Deleted,
    }
}

/// Whether it is that record.
pub(super) fn is_id_mark(image: &JobImage) -> bool {
    *image == id_mark(image.id)
}

/// The highest id that has been given, as far as this record tells; 0 if it does not.
pub(super) fn highest_of(image: &JobImage) -> JobId {
    if image.id >= JobId::UNCOUNTED {
        JobId(0)
    } else if is_id_mark(image) {
        JobId(image.id.0 - 1)
    } else {
        image.id
    }
}
