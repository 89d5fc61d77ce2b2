//! What one end of a link has to say, as bytes: frames in the order in which they were said, but
//! for large bodies, whose parts take turns.

use crate::base::body::BodyCow;
use crate::base::ids::Caller;
use crate::base::limits::BODY_PART_LEN_MAX;
use crate::engine::event::Event;
use crate::wire::control::Control;
use crate::wire::event;
use crate::wire::frame::{Head, Rest, write_bare};
use crate::wire::header::Ends;
use crate::wire::kind::Kind;
use crate::wire::outgoing::Outgoing;

/// See the module's description.
#[derive(Debug)]
pub(super) struct Speaker {
    ends: Ends,
    /// Whole frames that nothing holds up.
    bytes: Vec<u8>,
    /// Bodies that are written in part, and what waits for them.
    outgoing: Outgoing,
}

impl Speaker {
    pub(super) fn new(ends: Ends) -> Speaker {
        Speaker {
            ends,
            bytes: Vec::new(),
            outgoing: Outgoing::default(),
        }
    }

    pub(super) fn ends(&self) -> Ends {
        self.ends
    }

    /// Bytes of whole frames that are to go out next.
    pub(super) fn whole_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of bodies that go out in later frames.
    pub(super) fn parts_len(&self) -> usize {
        self.outgoing.len()
    }

    /// Whether there is nothing to say.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.outgoing.is_empty()
    }

    /// Says something about the link itself, ahead of all that waits for the rest of a body.
    pub(super) fn say(&mut self, control: &Control<'_>) {
        let head = Head::apart(self.ends, Kind::Control(control.kind()));
        write_bare(&mut self.bytes, head, |out| control.write_fields(out));
    }

    /// Says something about a session's request, ahead of what waits for the rest of a body.
    pub(super) fn say_about(&mut self, caller: Caller, control: &Control<'_>) {
        let head = Head::about(self.ends, Kind::Control(control.kind()), caller);
        write_bare(&mut self.bytes, head, |out| control.write_fields(out));
    }

    /// Says what a session is told, after what it was told before.
    pub(super) fn event(&mut self, to: Caller, event: &Event<'_>) {
        let (ends, body) = (self.ends, event::body_of(event));
        self.push(to.session.number, body, |out| {
            event::write(out, ends, to, event, BODY_PART_LEN_MAX)
        });
    }

    /// Has `write` append a frame of the session, after those that it has said before.
    pub(super) fn push(
        &mut self,
        session: u64,
        body: Option<&BodyCow<'_>>,
        write: impl FnOnce(&mut Vec<u8>) -> Option<Rest>,
    ) {
        self.outgoing.push(&mut self.bytes, session, body, write);
    }

    /// Drops what is left to say to a session that nobody listens to any more.
    pub(super) fn forget(&mut self, session: u64) {
        self.outgoing.forget(session);
    }

    /// Appends what is to be said to `out`: all that is whole, then parts of bodies as long as
    /// `room` bytes are not filled. Whether there is more.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, room: usize) -> bool {
        let full_at = out.len().saturating_add(room);
        if out.is_empty() {
            std::mem::swap(out, &mut self.bytes);
        } else {
            out.append(&mut self.bytes);
        }
        while !self.outgoing.is_empty() && out.len() < full_at {
            let part_len_max = BODY_PART_LEN_MAX.min(full_at - out.len());
            self.outgoing.turn(out, part_len_max);
        }
        !self.outgoing.is_empty()
    }
}
