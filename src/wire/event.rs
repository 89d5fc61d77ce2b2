//! Events as frames. Fields stand in the order in which [`Event`] names them: an id and a moment
//! are 8 bytes, a priority and a count 4, a name a byte with its length and its bytes. Statistics
//! are those of [`crate::wire::stats`]; a body is the frame's.

use crate::base::body::BodyCow;
use crate::base::ids::{Caller, JobId, Pri};
use crate::base::time::Nanos;
use crate::engine::event::Event;
use crate::wire::cursor::{Cursor, write_name, write_u32, write_u64};
use crate::wire::frame::{self, Head, Rest};
use crate::wire::header::Ends;
use crate::wire::kind::{EventKind, Kind};
use crate::wire::refusal::DecodeError;
use crate::wire::stats;

/// What kind of frame carries `event`.
#[must_use]
pub fn kind_of(event: &Event<'_>) -> EventKind {
    match event {
        Event::Using => EventKind::Using,
        Event::Watching => EventKind::Watching,
        Event::Ignored => EventKind::Ignored,
        Event::Inserted { .. } => EventKind::Inserted,
        Event::Draining => EventKind::Draining,
        Event::OutOfMemory => EventKind::OutOfMemory,
        Event::Reserved { .. } => EventKind::Reserved,
        Event::NoJob => EventKind::NoJob,
        Event::Offered { .. } => EventKind::Offered,
        Event::Gone => EventKind::Gone,
        Event::Cancelled => EventKind::Cancelled,
        Event::Expired { .. } => EventKind::Expired,
        Event::Deleted { .. } => EventKind::Deleted,
        Event::Released { .. } => EventKind::Released,
        Event::Buried { .. } => EventKind::Buried,
        Event::Touched { .. } => EventKind::Touched,
        Event::Kicked { .. } => EventKind::Kicked,
        Event::KickedJob => EventKind::KickedJob,
        Event::Found { .. } => EventKind::Found,
        Event::NotFound => EventKind::NotFound,
        Event::Paused => EventKind::Paused,
        Event::JobStats(_) => EventKind::JobStats,
        Event::TubeStats(_) => EventKind::TubeStats,
        Event::ShardStats(_) => EventKind::ShardStats,
        Event::Tube(_) => EventKind::Tube,
        Event::TubesEnd => EventKind::TubesEnd,
    }
}

/// The body that goes with `event`: whoever sends it in parts has to keep it.
#[must_use]
pub fn body_of<'a, 'b>(event: &'a Event<'b>) -> Option<&'a BodyCow<'b>> {
    if let Event::Reserved { body, .. } | Event::Found { body, .. } = event {
        Some(body)
    } else {
        None
    }
}

/// Appends `event`, for `to`, as a frame with up to `part_len_max` bytes of its body. What is left
/// of the body, if anything is.
pub fn write(
    out: &mut Vec<u8>,
    ends: Ends,
    to: Caller,
    event: &Event<'_>,
    part_len_max: usize,
) -> Option<Rest> {
    let head = Head::about(ends, Kind::Event(kind_of(event)), to);
    let write_meta = |out: &mut Vec<u8>| write_fields(out, event);
    let body = body_of(event).map_or(&[][..], |body| body);
    frame::write(out, head, write_meta, body, part_len_max)
}

fn write_fields(out: &mut Vec<u8>, event: &Event<'_>) {
    match *event {
        Event::Inserted { id }
        | Event::Expired { id }
        | Event::Deleted { id }
        | Event::Released { id }
        | Event::Buried { id }
        | Event::Found { id, body: _ } => write_u64(out, id.0),
        Event::Reserved {
            id,
            deadline,
            body: _,
        }
        | Event::Touched { id, deadline } => {
            write_u64(out, id.0);
            write_u64(out, deadline.0);
        }
        Event::Offered {
            id,
            pri,
            created_at,
        } => {
            write_u64(out, id.0);
            write_u32(out, pri.0);
            write_u64(out, created_at.0);
        }
        Event::Kicked { count } => write_u32(out, count),
        Event::JobStats(ref job) => stats::write_job(out, job),
        Event::TubeStats(ref tube) => stats::write_tube(out, tube),
        Event::ShardStats(ref shard) => stats::write_shard(out, shard),
        Event::Tube(name) => write_name(out, name),
        Event::Using
        | Event::Watching
        | Event::Ignored
        | Event::Draining
        | Event::OutOfMemory
        | Event::NoJob
        | Event::Gone
        | Event::Cancelled
        | Event::KickedJob
        | Event::NotFound
        | Event::Paused
        | Event::TubesEnd => {}
    }
}

/// The event that a frame of this kind with this metadata and body is.
///
/// # Errors
/// [`DecodeError`] if it is none.
pub fn decode<'a>(
    kind: EventKind,
    meta: &'a [u8],
    body: Option<BodyCow<'a>>,
) -> Result<Event<'a>, DecodeError> {
    let mut fields = Cursor::new(meta);
    let from = &mut fields;
    let event = match kind {
        EventKind::Using => Event::Using,
        EventKind::Watching => Event::Watching,
        EventKind::Ignored => Event::Ignored,
        EventKind::Inserted => Event::Inserted { id: id(from)? },
        EventKind::Draining => Event::Draining,
        EventKind::OutOfMemory => Event::OutOfMemory,
        EventKind::Reserved => Event::Reserved {
            id: id(from)?,
            deadline: Nanos(from.u64()?),
            body: body.ok_or(DecodeError::Short)?,
        },
        EventKind::NoJob => Event::NoJob,
        EventKind::Offered => Event::Offered {
            id: id(from)?,
            pri: Pri(from.u32()?),
            created_at: Nanos(from.u64()?),
        },
        EventKind::Gone => Event::Gone,
        EventKind::Cancelled => Event::Cancelled,
        EventKind::Expired => Event::Expired { id: id(from)? },
        EventKind::Deleted => Event::Deleted { id: id(from)? },
        EventKind::Released => Event::Released { id: id(from)? },
        EventKind::Buried => Event::Buried { id: id(from)? },
        EventKind::Touched => Event::Touched {
            id: id(from)?,
            deadline: Nanos(from.u64()?),
        },
        EventKind::Kicked => Event::Kicked { count: from.u32()? },
        EventKind::KickedJob => Event::KickedJob,
        EventKind::Found => Event::Found {
            id: id(from)?,
            body: body.ok_or(DecodeError::Short)?,
        },
        EventKind::NotFound => Event::NotFound,
        EventKind::Paused => Event::Paused,
        EventKind::JobStats => Event::JobStats(stats::read_job(from)?),
        EventKind::TubeStats => Event::TubeStats(stats::read_tube(from)?),
        EventKind::ShardStats => Event::ShardStats(stats::read_shard(from)?),
        EventKind::Tube => Event::Tube(from.name()?),
        EventKind::TubesEnd => Event::TubesEnd,
    };
    fields.finish()?;
    Ok(event)
}

fn id(from: &mut Cursor<'_>) -> Result<JobId, DecodeError> {
    from.u64().map(JobId)
}
