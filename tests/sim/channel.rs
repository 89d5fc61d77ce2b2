//! A link as the kernel has it: two directions of bytes, which go through in pieces, and the ends
//! of both, which each process sees for itself.

use beanshard::base::ids::{Caller, Seq, SessionId};
use beanshard::channel::Terms;
use beanshard::engine::event::Event;
use beanshard::wire::assembler::Assembler;
use beanshard::wire::event;
use beanshard::wire::frame::Frame;
use beanshard::wire::header::Expected;
use beanshard::wire::kind::{ControlKind, EventKind, Kind, OpKind};

use crate::truth::Who;

/// See the module's description.
pub(crate) struct Channel {
    pub(crate) frontend: usize,
    pub(crate) owner: usize,
    /// What the frontend, and the owner, is told of it.
    pub(crate) near: Terms,
    pub(crate) far: Terms,
    /// From the frontend to the owner.
    pub(crate) up: Pipe,
    /// From the owner to the frontend.
    pub(crate) down: Pipe,
    /// Frames that have gone up and that can be said again to no purpose.
    pub(crate) kept: Vec<Kept>,
    /// What the frontend makes of the bodies that come down.
    mirror: Assembler,
    /// How often a frame came down in the middle of another session's body.
    pub(crate) interleaved: u64,
}

/// A frame as it was said.
pub(crate) struct Kept {
    pub(crate) session: u64,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

/// One direction.
#[derive(Default)]
pub(crate) struct Pipe {
    /// What is under way.
    pub(crate) bytes: Vec<u8>,
    /// What is there and has not been taken: less than a frame, unless it waits to be.
    pub(crate) arrived: Vec<u8>,
    /// Nobody writes any more: what is under way is all that comes.
    pub(crate) is_closed: bool,
    /// Nobody reads any more: what is written is lost.
    pub(crate) is_dead: bool,
}

/// Bytes under way at which a writer waits.
const PIPE_LEN: usize = 4_000;

/// Frames that are kept to be said again.
const KEPT: usize = 40;

impl Channel {
    pub(crate) fn new(frontend: usize, owner: usize, near: Terms, far: Terms) -> Channel {
        Channel {
            frontend,
            owner,
            near,
            far,
            up: Pipe::default(),
            down: Pipe::default(),
            kept: Vec::new(),
            mirror: Assembler::new(u64::MAX),
            interleaved: 0,
        }
    }

    /// The frontend has gone, or given it up.
    pub(crate) fn leave_near(&mut self) {
        self.up.is_closed = true;
        self.down.die();
    }

    /// The owner has gone, or given it up.
    pub(crate) fn leave_far(&mut self) {
        self.down.is_closed = true;
        self.up.die();
    }

    /// Keeps what was written from byte `start` on, as far as it may be said again: nothing that is
    /// part of a body, that introduces a session, or that goes on with something.
    pub(crate) fn keep(&mut self, start: usize) {
        let expected = Expected {
            ends: self.near.own.ends,
            from: self.near.own.role,
            body_len_max: u32::MAX,
        };
        let mut rest = &self.up.bytes[start..];
        loop {
            let before = rest;
            let Ok(Some(frame)) = Frame::cut(&mut rest, &expected) else {
                return;
            };
            let header = frame.header;
            let may = match header.kind {
                Kind::Control(kind) => matches!(kind, ControlKind::Attach | ControlKind::Detach),
                Kind::Op(kind) => {
                    let is_fresh = !kind.refers_back() && header.request != Seq::NONE;
                    is_fresh && kind != OpKind::Put
                }
                Kind::Event(_) => false,
            };
            if may {
                if self.kept.len() == KEPT {
                    self.kept.remove(0);
                }
                self.kept.push(Kept {
                    session: header.session,
                    kind: header.kind,
                    bytes: before[..before.len() - rest.len()].to_vec(),
                });
            }
        }
    }

    /// Has `note` see each answer that has left from byte `start` on: for whom and about which ask
    /// it is, and of what kind.
    pub(crate) fn tell_left(&self, start: usize, mut note: impl FnMut(Who, Seq, EventKind)) {
        let expected = Expected {
            ends: self.far.own.ends,
            from: self.far.own.role,
            body_len_max: u32::MAX,
        };
        let mut rest = &self.down.bytes[start..];
        while let Ok(Some(frame)) = Frame::cut(&mut rest, &expected) {
            let header = frame.header;
            if let (Kind::Event(kind), false) = (header.kind, header.continues) {
                let caller = header.caller(self.frontend as u16);
                let who = Who {
                    generation: self.near.own.ends.sender,
                    session: caller.session,
                };
                note(who, caller.seq, kind);
            }
        }
    }

    /// Has `note` see the event that is complete with this frame, if one is.
    pub(crate) fn overhear(&mut self, frame: Frame<'_>, note: impl FnOnce(Caller, &Event<'_>)) {
        let Kind::Event(kind) = frame.header.kind else {
            return;
        };
        let to = Caller {
            session: SessionId {
                frontend: self.frontend as u16,
                number: frame.header.session,
            },
            seq: frame.header.request,
        };
        let before = self.mirror.held();
        if let Ok(Some(message)) = self.mirror.take(frame) {
            self.interleaved += u64::from(before > 0 && before == self.mirror.held());
            let event = event::decode(kind, &message.meta, message.body);
            note(to, &event.expect("owners say what can be understood"));
        }
    }
}

impl Pipe {
    /// Whether no more can be written now.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= PIPE_LEN
    }

    /// Lets up to `most` bytes arrive. Whether any have.
    pub(crate) fn carry(&mut self, most: usize) -> bool {
        let count = self.bytes.len().min(most);
        self.arrived.extend(self.bytes.drain(..count));
        count > 0
    }

    /// Whether all has arrived that ever will.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_closed && self.bytes.is_empty()
    }

    /// All that is under way is lost from byte `at` on, and nothing comes after it.
    pub(crate) fn cut(&mut self, at: usize) {
        self.bytes.truncate(at);
        self.is_closed = true;
    }

    fn die(&mut self) {
        self.bytes.clear();
        self.is_dead = true;
    }
}
