//! Puts together what arrives over a link in several frames: of each session at most one body at a
//! time, of all of them no more than a budget.
//!
//! Only frames of sessions that the receiver knows come here. When a client of a frontend goes,
//! [`Assembler::forget`] drops what had come for it, and the frontend drops the parts that follow
//! before they come here. An owner forgets nothing: the detach of a session comes after the last
//! part of what it asked.
//!
//! A body for which there is no memory is no reason to give up the link: what comes of it is
//! thrown away, and its message comes without it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::base::body::{Body, BodyCow};
use crate::base::ids::Seq;
use crate::base::limits::ASSEMBLY_OVERHEAD_BYTES;
use crate::wire::frame::Frame;
use crate::wire::header::Header;
use crate::wire::kind::Kind;
use crate::wire::refusal::Refusal;

/// All that was sent as one: a frame, or several of them.
#[derive(Debug)]
pub struct Message<'a> {
    /// What it is.
    pub kind: Kind,
    /// Number of the session that it is about.
    pub session: u64,
    /// The request that it is or answers.
    pub request: Seq,
    /// Its metadata.
    pub meta: Cow<'a, [u8]>,
    /// The body, if the kind has one. None although it has one if there was no memory to put it
    /// together: whoever takes the message looks for that before it is decoded, which would refuse
    /// it as too short. Its sender has done nothing wrong.
    pub body: Option<BodyCow<'a>>,
}

impl Message<'_> {
    /// The message with memory of its own, for when it is kept.
    #[must_use]
    pub fn into_owned(self) -> Message<'static> {
        Message {
            kind: self.kind,
            session: self.session,
            request: self.request,
            meta: Cow::Owned(self.meta.into_owned()),
            body: self.body.map(|body| body.into_body().into()),
        }
    }
}

/// See the module's description.
#[derive(Debug)]
pub struct Assembler {
    partial: BTreeMap<u64, Partial>,
    /// Bytes that the bodies under way may come to take.
    held: u64,
    budget: u64,
    memory: usize,
}

/// A body of which something is missing.
#[derive(Debug)]
struct Partial {
    kind: Kind,
    request: Seq,
    meta: Vec<u8>,
    /// What has come of it. None once there was no memory for that.
    body: Option<Vec<u8>>,
    /// Bytes that have not come.
    missing: u32,
    /// What it takes of the budget.
    cost: u64,
}

impl Assembler {
    /// One that lets `budget` bytes of bodies be under way at once.
    #[must_use]
    pub fn new(budget: u64) -> Assembler {
        Assembler {
            partial: BTreeMap::new(),
            held: 0,
            budget,
            memory: usize::MAX,
        }
    }

    /// From now on there is no memory for a body that takes more than `memory` bytes, as if the
    /// system refused it. For tests of what happens then.
    pub fn limit_memory(&mut self, memory: usize) {
        self.memory = memory;
    }

    /// Bytes that the bodies under way may come to take.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Takes a frame, and gives what is complete with it.
    ///
    /// # Errors
    /// [`Refusal::Order`] if the frame is not the one that the session's body goes on with, or
    /// [`Refusal::Budget`]. Nothing has changed then.
    pub fn take<'a>(&mut self, frame: Frame<'a>) -> Result<Option<Message<'a>>, Refusal> {
        let header = frame.header;
        if header.continues {
            return self.go_on(&header, frame.part);
        }
        if self.partial.contains_key(&header.session) {
            return Err(Refusal::Order);
        }
        if header.part_len < header.body_len {
            self.start(frame)?;
            return Ok(None);
        }
        Ok(Some(Message {
            kind: header.kind,
            session: header.session,
            request: header.request,
            meta: Cow::Borrowed(frame.meta),
            body: header
                .kind
                .has_body()
                .then_some(BodyCow::Borrowed(frame.part)),
        }))
    }

    /// Drops what has come of a body for this session, which is gone. It may be forgotten before.
    pub fn forget(&mut self, session: u64) {
        if let Some(partial) = self.partial.remove(&session) {
            self.held -= partial.cost;
        }
    }

    fn start(&mut self, frame: Frame<'_>) -> Result<(), Refusal> {
        let header = frame.header;
        let cost =
            ASSEMBLY_OVERHEAD_BYTES + u64::from(header.meta_len) + u64::from(header.body_len);
        if cost > self.budget - self.held {
            return Err(Refusal::Budget);
        }
        self.held += cost;
        let mut partial = Partial {
            kind: header.kind,
            request: header.request,
            meta: frame.meta.to_vec(),
            body: Some(Vec::new()),
            missing: header.body_len,
            cost,
        };
        partial.add(frame.part, self.memory);
        self.partial.insert(header.session, partial);
        Ok(())
    }

    fn go_on(&mut self, header: &Header, part: &[u8]) -> Result<Option<Message<'static>>, Refusal> {
        let partial = self.partial.get_mut(&header.session);
        let Some(partial) = partial.filter(|partial| partial.is_continued_by(header)) else {
            return Err(Refusal::Order);
        };
        partial.add(part, self.memory);
        if partial.missing > 0 {
            return Ok(None);
        }
        let whole = self.partial.remove(&header.session);
        Ok(whole.map(|whole| {
            self.held -= whole.cost;
            Message {
                kind: whole.kind,
                session: header.session,
                request: whole.request,
                meta: Cow::Owned(whole.meta),
                body: whole.body.map(|body| Body::from_vec(body).into()),
            }
        }))
    }
}

impl Partial {
    fn is_continued_by(&self, header: &Header) -> bool {
        self.kind == header.kind
            && self.request == header.request
            && self.missing == header.body_len
    }

    /// Adds a part, unless there is no memory: then all of the body is given up, and what comes of
    /// it later is thrown away.
    fn add(&mut self, part: &[u8], memory: usize) {
        let missing = self.missing as usize;
        self.body = self
            .body
            .take()
            .and_then(|body| extended(body, part, missing, memory));
        self.missing -= part.len() as u32;
    }
}

/// `body` and `part`, if there is memory for both. No more is allocated than about twice what has
/// come, and never more than is to come, of which `missing` bytes are missing.
fn extended(mut body: Vec<u8>, part: &[u8], missing: usize, memory: usize) -> Option<Vec<u8>> {
    if body.capacity() - body.len() < part.len() {
        let more = body.len().max(part.len()).min(missing);
        if body.len() + more > memory {
            return None;
        }
        body.try_reserve_exact(more).ok()?;
    }
    body.extend_from_slice(part);
    Some(body)
}

#[cfg(test)]
mod tests;
