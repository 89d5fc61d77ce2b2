//! What an owner has said and may not send yet: what it says of has to be in the binlog first. What
//! was said in one turn leaves together; a later turn does not keep an earlier one waiting.

use std::collections::VecDeque;

use crate::base::body::{Body, BodyCow};
use crate::channel::speaker::Speaker;
use crate::engine::host::Ticket;
use crate::wire::frame::Rest;
use crate::wire::header::Ends;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Turns, oldest first. Only the last may be added to, and only while it is open.
    turns: VecDeque<Turn>,
    is_open: bool,
    /// Bytes of all of them.
    len: usize,
}

/// What was said in one turn.
#[derive(Debug, Default)]
struct Turn {
    /// What has to be confirmed before any of it leaves.
    ticket: Ticket,
    bytes: Vec<u8>,
    frames: Vec<Frame>,
}

/// One frame of a turn.
#[derive(Debug)]
struct Frame {
    session: u64,
    /// Where it ends in the bytes of its turn.
    end: usize,
    /// What is left of its body.
    rest: Option<(Rest, Body)>,
}

impl Held {
    /// Whether nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Bytes that are held, but for those of bodies that follow in later frames.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Has `write` append a frame of the session, which leaves when `ticket` is confirmed.
    pub(super) fn push(
        &mut self,
        ticket: Ticket,
        session: u64,
        body: Option<&BodyCow<'_>>,
        ends: Ends,
        write: impl FnOnce(&mut Vec<u8>, Ends) -> Option<Rest>,
    ) {
        if !self.is_open {
            self.turns.push_back(Turn::default());
            self.is_open = true;
        }
        let Some(turn) = self.turns.back_mut() else {
            return;
        };
        let start = turn.bytes.len();
        let rest = write(&mut turn.bytes, ends).and_then(|rest| Some((rest, body?.to_body())));
        turn.ticket = turn.ticket.max(ticket);
        let end = turn.bytes.len();
        self.len += end - start;
        turn.frames.push(Frame { session, end, rest });
    }

    /// Drops what the session was to be told.
    pub(super) fn forget(&mut self, session: u64) {
        for turn in &mut self.turns {
            for frame in &mut turn.frames {
                if frame.session == session {
                    // Its frontend throws the beginning away; there is to be no rest of it.
                    frame.rest = None;
                }
            }
        }
    }

    /// The turn is over: what is confirmed by now is said.
    pub(super) fn release(&mut self, confirmed: Ticket, speaker: &mut Speaker) {
        self.is_open = false;
        while self
            .turns
            .front()
            .is_some_and(|turn| turn.ticket <= confirmed)
            && let Some(turn) = self.turns.pop_front()
        {
            self.len -= turn.bytes.len();
            let mut start = 0;
            for Frame { session, end, rest } in turn.frames {
                let bytes = &turn.bytes[start..end];
                let (rest, body) = rest.unzip();
                let body = body.map(BodyCow::Shared);
                speaker.push(session, body.as_ref(), |out| {
                    out.extend_from_slice(bytes);
                    rest
                });
                start = end;
            }
        }
    }
}
