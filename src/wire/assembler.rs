//! Puts together what arrives over a link in several frames: of each session at most one body at a
//! time, of all of them no more than a budget.
//!
//! Only frames of sessions that the receiver knows come here. When a client of a frontend goes,
//! [`Assembler::forget`] drops what had come for it, and the frontend drops the parts that follow
//! before they come here. An owner forgets nothing: the detach of a session comes after the last
//! part of what it asked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::base::body::Body;
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
    /// The body, if the kind has one.
    pub body: Option<Body>,
}

/// See the module's description.
#[derive(Debug)]
pub struct Assembler {
    partial: BTreeMap<u64, Partial>,
    /// Bytes that the bodies under way may come to take.
    held: u64,
    budget: u64,
}

/// A body of which something is missing.
#[derive(Debug)]
struct Partial {
    kind: Kind,
    request: Seq,
    meta: Vec<u8>,
    body: Vec<u8>,
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
        }
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
            body: header.kind.has_body().then(|| Body::copy_of(frame.part)),
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
            body: Vec::new(),
            missing: header.body_len,
            cost,
        };
        partial.add(frame.part);
        self.partial.insert(header.session, partial);
        Ok(())
    }

    fn go_on(&mut self, header: &Header, part: &[u8]) -> Result<Option<Message<'static>>, Refusal> {
        let partial = self.partial.get_mut(&header.session);
        let Some(partial) = partial.filter(|partial| partial.is_continued_by(header)) else {
            return Err(Refusal::Order);
        };
        partial.add(part);
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
                body: Some(Body::from_vec(whole.body)),
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

    /// Of the body no more is allocated than about twice what has come, and never more than is to
    /// come.
    fn add(&mut self, part: &[u8]) {
        if self.body.capacity() - self.body.len() < part.len() {
            let more = self.body.len().max(part.len());
            self.body.reserve_exact(more.min(self.missing as usize));
        }
        self.body.extend_from_slice(part);
        self.missing -= part.len() as u32;
    }
}
