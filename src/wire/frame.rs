//! Frames: cutting them out of what has arrived, and writing them. A body that does not fit one
//! frame is written part by part, each when there is room for it, so that no more of it is copied
//! than is about to be sent and other sessions have their turn in between.

use crate::base::ids::{Caller, Seq};
use crate::base::limits::{BODY_PART_LEN_MAX, HEADER_LEN};
use crate::wire::header::{Ends, Expected, Header};
use crate::wire::kind::Kind;
use crate::wire::refusal::Refusal;

/// A frame that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What it says of itself.
    pub header: Header,
    /// Its metadata.
    pub meta: &'a [u8],
    /// The part of a body that is in it.
    pub part: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The header of the frame that `bytes` begin with. None until all of it is there.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    #[inline]
    pub fn head(bytes: &[u8], expected: &Expected) -> Result<Option<Header>, Refusal> {
        match bytes.first_chunk() {
            Some(head) => Header::decode(head, expected).map(Some),
            None => Ok(None),
        }
    }

    /// The frame that `bytes` begin with, whose header was read already. None if not all of it is
    /// there.
    #[inline]
    #[must_use]
    pub fn of(header: Header, bytes: &'a [u8]) -> Option<Frame<'a>> {
        let rest = bytes.get(HEADER_LEN..)?;
        let (meta, rest) = rest.split_at_checked(usize::from(header.meta_len))?;
        let part = rest.get(..header.part_len as usize)?;
        Some(Frame { header, meta, part })
    }

    /// Takes a frame off the front of `bytes`. None, and nothing is taken, until all of it is
    /// there: at most [`FRAME_LEN_MAX`](crate::base::limits::FRAME_LEN_MAX) bytes.
    ///
    /// # Errors
    /// Whatever is wrong with its header, as soon as that is there. Where the next frame begins is
    /// not known then.
    pub fn cut(bytes: &mut &'a [u8], expected: &Expected) -> Result<Option<Frame<'a>>, Refusal> {
        let Some(header) = Frame::head(bytes, expected)? else {
            return Ok(None);
        };
        let frame = Frame::of(header, bytes);
        if frame.is_some() {
            *bytes = &bytes[header.frame_len()..];
        }
        Ok(frame)
    }
}

/// What a frame to be written is, besides its metadata and body.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Between which processes.
    pub ends: Ends,
    /// What it is.
    pub kind: Kind,
    /// Number of the session that it is about.
    pub session: u64,
    /// The request that it is or answers.
    pub request: Seq,
}

impl Head {
    /// Of a frame about a request of `caller`.
    #[must_use]
    pub fn about(ends: Ends, kind: Kind, caller: Caller) -> Head {
        Head {
            ends,
            kind,
            session: caller.session.number,
            request: caller.seq,
        }
    }

    /// Of a frame that is about no session.
    #[must_use]
    pub fn apart(ends: Ends, kind: Kind) -> Head {
        Head {
            ends,
            kind,
            session: 0,
            request: Seq::NONE,
        }
    }
}

/// The rest of a body whose beginning is written. Whoever has it also keeps the body, and lets no
/// other frame of the session go before it is written.
#[derive(Debug)]
#[must_use = "a body that is not written to its end cannot be understood"]
pub struct Rest {
    /// Of the next frame, but for the length of its part.
    header: Header,
}

impl Rest {
    /// Bytes that are still to be written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.header.body_len as usize
    }

    /// Whether nothing is still to be written. It never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a frame with up to `part_len_max` more bytes of `body`. What is left after it, if
    /// anything is.
    ///
    /// # Panics
    /// If `body` is shorter than what is still to be written of it.
    pub fn write(self, out: &mut Vec<u8>, body: &[u8], part_len_max: usize) -> Option<Rest> {
        let part = &body[body.len() - self.len()..];
        write_parted(out, self.header, |_| {}, part, part_len_max)
    }
}

/// Appends a frame with metadata, which `write_meta` appends, and up to `part_len_max` bytes of
/// `body`. What is left of the body, if anything is.
///
/// # Panics
/// If there is more metadata or more body than a frame can speak of: what this program has to say
/// is shorter.
pub fn write(
    out: &mut Vec<u8>,
    head: Head,
    write_meta: impl FnOnce(&mut Vec<u8>),
    body: &[u8],
    part_len_max: usize,
) -> Option<Rest> {
    let header = Header {
        ends: head.ends,
        kind: head.kind,
        continues: false,
        meta_len: 0,
        session: head.session,
        request: head.request,
        body_len: u32::try_from(body.len()).expect("the protocol can say how long a body is"),
        part_len: 0,
    };
    write_parted(out, header, write_meta, body, part_len_max)
}

/// Appends a frame without a body.
pub fn write_bare(out: &mut Vec<u8>, head: Head, write_meta: impl FnOnce(&mut Vec<u8>)) {
    let rest = write(out, head, write_meta, &[], BODY_PART_LEN_MAX);
    debug_assert!(rest.is_none(), "nothing is left of no body");
}

fn write_parted(
    out: &mut Vec<u8>,
    mut header: Header,
    write_meta: impl FnOnce(&mut Vec<u8>),
    body: &[u8],
    part_len_max: usize,
) -> Option<Rest> {
    let part_len_max = part_len_max.clamp(1, BODY_PART_LEN_MAX);
    let part = &body[..body.len().min(part_len_max)];
    let start = out.len();
    out.resize(start + HEADER_LEN, 0);
    write_meta(out);
    let meta_len = out.len() - start - HEADER_LEN;
    out.extend_from_slice(part);
    header.meta_len = u16::try_from(meta_len).expect("metadata is short");
    header.part_len = part.len() as u32;
    let head = out[start..].first_chunk_mut::<HEADER_LEN>();
    header.encode_to(head.expect("room was made"));

    let left = header.body_len - header.part_len;
    (left > 0).then_some(Rest {
        header: Header {
            continues: true,
            body_len: left,
            ..header
        },
    })
}
