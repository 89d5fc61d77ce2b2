//! Asks as frames. Fields stand in the order in which [`Op`] names them: an id is 8 bytes, a
//! priority, a count and a span of seconds 4, a name a byte with its length and its bytes, a flag
//! or a style 1. A put has its id (0 for none), its moment in 8 bytes, priority, delay and time to
//! run; its body is the frame's.

use crate::base::body::BodyCow;
use crate::base::ids::{Caller, JobId, Pri};
use crate::base::limits::TTR_SECS_MIN;
use crate::base::time::{Nanos, Secs};
use crate::engine::op::{Op, Put, Style};
use crate::wire::cursor::{Cursor, write_name, write_u32, write_u64};
use crate::wire::frame::{self, Head, Rest};
use crate::wire::header::Ends;
use crate::wire::kind::{Kind, OpKind};
use crate::wire::refusal::DecodeError;

/// What kind of frame carries `op`.
#[must_use]
pub fn kind_of(op: &Op<'_>) -> OpKind {
    match op {
        Op::Use { .. } => OpKind::Use,
        Op::Unuse => OpKind::Unuse,
        Op::Watch { .. } => OpKind::Watch,
        Op::Ignore { .. } => OpKind::Ignore,
        Op::Put(_) => OpKind::Put,
        Op::Reserve { .. } => OpKind::Reserve,
        Op::Accept { .. } => OpKind::Accept,
        Op::Decline { .. } => OpKind::Decline,
        Op::Cancel => OpKind::Cancel,
        Op::ReserveJob { .. } => OpKind::ReserveJob,
        Op::Delete { .. } => OpKind::Delete,
        Op::Release { .. } => OpKind::Release,
        Op::Bury { .. } => OpKind::Bury,
        Op::Touch { .. } => OpKind::Touch,
        Op::Kick { .. } => OpKind::Kick,
        Op::KickJob { .. } => OpKind::KickJob,
        Op::Peek { .. } => OpKind::Peek,
        Op::PeekReady => OpKind::PeekReady,
        Op::PeekDelayed => OpKind::PeekDelayed,
        Op::PeekBuried => OpKind::PeekBuried,
        Op::PauseTube { .. } => OpKind::PauseTube,
        Op::StatsJob { .. } => OpKind::StatsJob,
        Op::StatsTube { .. } => OpKind::StatsTube,
        Op::Stats => OpKind::Stats,
        Op::ListTubes => OpKind::ListTubes,
    }
}

/// The body that goes with `op`: whoever sends it in parts has to keep it.
#[must_use]
pub fn body_of<'a, 'b>(op: &'a Op<'b>) -> Option<&'a BodyCow<'b>> {
    if let Op::Put(put) = op {
        Some(&put.body)
    } else {
        None
    }
}

/// Appends `op`, asked by `from`, as a frame with up to `part_len_max` bytes of its body. What is
/// left of the body, if anything is.
pub fn write(
    out: &mut Vec<u8>,
    ends: Ends,
    from: Caller,
    op: &Op<'_>,
    part_len_max: usize,
) -> Option<Rest> {
    let head = Head::about(ends, Kind::Op(kind_of(op)), from);
    let write_meta = |out: &mut Vec<u8>| write_fields(out, op);
    let body = body_of(op).map_or(&[][..], |body| body);
    frame::write(out, head, write_meta, body, part_len_max)
}

fn write_fields(out: &mut Vec<u8>, op: &Op<'_>) {
    match *op {
        Op::Use { tube } | Op::Watch { tube } | Op::Ignore { tube } | Op::StatsTube { tube } => {
            write_name(out, tube);
        }
        Op::PauseTube { tube, pause } => {
            write_name(out, tube);
            write_u32(out, pause.0);
        }
        Op::Put(ref put) => write_put(out, put),
        Op::Reserve { style, wait } => {
            out.push(match style {
                Style::Take => 0,
                Style::Offer => 1,
            });
            out.push(u8::from(wait));
        }
        Op::Accept { id }
        | Op::Decline { id }
        | Op::ReserveJob { id }
        | Op::Delete { id }
        | Op::Touch { id }
        | Op::KickJob { id }
        | Op::Peek { id }
        | Op::StatsJob { id } => write_u64(out, id.0),
        Op::Release { id, pri, delay } => {
            write_u64(out, id.0);
            write_u32(out, pri.0);
            write_u32(out, delay.0);
        }
        Op::Bury { id, pri } => {
            write_u64(out, id.0);
            write_u32(out, pri.0);
        }
        Op::Kick { count } => write_u32(out, count),
        Op::Unuse
        | Op::Cancel
        | Op::PeekReady
        | Op::PeekDelayed
        | Op::PeekBuried
        | Op::Stats
        | Op::ListTubes => {}
    }
}

fn write_put(out: &mut Vec<u8>, put: &Put) {
    write_u64(out, put.id.map_or(0, |id| id.0));
    write_u64(out, put.created_at.0);
    write_u32(out, put.pri.0);
    write_u32(out, put.delay.0);
    write_u32(out, put.ttr.0);
}

/// The ask that a frame of this kind with this metadata and body is.
///
/// # Errors
/// [`DecodeError`] if it is none.
pub fn decode<'a>(
    kind: OpKind,
    meta: &'a [u8],
    body: Option<BodyCow<'a>>,
) -> Result<Op<'a>, DecodeError> {
    let mut fields = Cursor::new(meta);
    let from = &mut fields;
    let op = match kind {
        OpKind::Use => Op::Use { tube: from.name()? },
        OpKind::Unuse => Op::Unuse,
        OpKind::Watch => Op::Watch { tube: from.name()? },
        OpKind::Ignore => Op::Ignore { tube: from.name()? },
        OpKind::Put => Op::Put(read_put(from, body.ok_or(DecodeError::Short)?)?),
        OpKind::Reserve => Op::Reserve {
            style: read_style(from)?,
            wait: from.flag()?,
        },
        OpKind::Accept => Op::Accept { id: id(from)? },
        OpKind::Decline => Op::Decline { id: id(from)? },
        OpKind::Cancel => Op::Cancel,
        OpKind::ReserveJob => Op::ReserveJob { id: id(from)? },
        OpKind::Delete => Op::Delete { id: id(from)? },
        OpKind::Release => Op::Release {
            id: id(from)?,
            pri: Pri(from.u32()?),
            delay: Secs(from.u32()?),
        },
        OpKind::Bury => Op::Bury {
            id: id(from)?,
            pri: Pri(from.u32()?),
        },
        OpKind::Touch => Op::Touch { id: id(from)? },
        OpKind::Kick => Op::Kick { count: from.u32()? },
        OpKind::KickJob => Op::KickJob { id: id(from)? },
        OpKind::Peek => Op::Peek { id: id(from)? },
        OpKind::PeekReady => Op::PeekReady,
        OpKind::PeekDelayed => Op::PeekDelayed,
        OpKind::PeekBuried => Op::PeekBuried,
        OpKind::PauseTube => Op::PauseTube {
            tube: from.name()?,
            pause: Secs(from.u32()?),
        },
        OpKind::StatsJob => Op::StatsJob { id: id(from)? },
        OpKind::StatsTube => Op::StatsTube { tube: from.name()? },
        OpKind::Stats => Op::Stats,
        OpKind::ListTubes => Op::ListTubes,
    };
    fields.finish()?;
    Ok(op)
}

fn id(from: &mut Cursor<'_>) -> Result<JobId, DecodeError> {
    from.u64().map(JobId)
}

fn read_style(from: &mut Cursor<'_>) -> Result<Style, DecodeError> {
    match from.u8()? {
        0 => Ok(Style::Take),
        1 => Ok(Style::Offer),
        _ => Err(DecodeError::Value),
    }
}

fn read_put<'a>(from: &mut Cursor<'_>, body: BodyCow<'a>) -> Result<Put<'a>, DecodeError> {
    let id = from.u64()?;
    let put = Put {
        id: (id != 0).then_some(JobId(id)),
        created_at: Nanos(from.u64()?),
        pri: Pri(from.u32()?),
        delay: Secs(from.u32()?),
        ttr: Secs(from.u32()?),
        body,
    };
    if put.ttr.0 < TTR_SECS_MIN {
        return Err(DecodeError::Value);
    }
    Ok(put)
}
