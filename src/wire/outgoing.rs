//! What is to go over a link and is not bytes yet: the rests of large bodies, and what the same
//! sessions have said since. Sessions take turns, a part each; within a session the order stays.

use std::collections::{BTreeMap, VecDeque};

use crate::base::body::{Body, BodyCow};
use crate::wire::frame::Rest;

/// See the module's description. Nothing costs more than the logarithm of the number of sessions
/// in the middle of a body, besides the bytes that are written.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Sessions in the middle of a body, by the number of their turn: the least is next.
    unfinished: BTreeMap<u64, Unfinished>,
    /// The number of each session's turn.
    turns: BTreeMap<u64, u64>,
    /// Number of the last turn that was given.
    last_turn: u64,
    /// See [`Outgoing::len`].
    len: usize,
}

/// A session in the middle of a body.
#[derive(Debug)]
struct Unfinished {
    session: u64,
    rest: Rest,
    body: Body,
    /// What comes after.
    held: VecDeque<Held>,
    /// Bytes of bodies that are still to be written, those of `held` included.
    len: usize,
}

/// A frame as bytes, and what it leaves of its body.
#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
    /// How many of `bytes` are of the body.
    part_len: usize,
    rest: Option<(Rest, Body)>,
}

impl Outgoing {
    /// Bytes of bodies that are still to be written: those of the bodies that have been begun, and
    /// of those that wait behind them. Not what the frames say besides.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all that was pushed is bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// Has `write` append a frame of the session to `out`, or to what waits for the session's body
    /// to be written. Of what it leaves of `body` the rest comes in later turns; the body is shared
    /// until then.
    pub fn push(
        &mut self,
        out: &mut Vec<u8>,
        session: u64,
        body: Option<&BodyCow<'_>>,
        write: impl FnOnce(&mut Vec<u8>) -> Option<Rest>,
    ) {
        let keep = |rest: Option<Rest>| Some((rest?, body?.to_body()));
        if let Some(unfinished) = self.find(session) {
            let mut bytes = Vec::new();
            let rest = keep(write(&mut bytes));
            let body_len = body.map_or(0, |body| body.len());
            let rest_len = rest.as_ref().map_or(0, |(rest, _)| rest.len());
            let part_len = body_len - rest_len;
            let held = Held {
                bytes,
                part_len,
                rest,
            };
            unfinished.held.push_back(held);
            unfinished.len += body_len;
            self.len += body_len;
        } else if let Some((rest, body)) = keep(write(out)) {
            let len = rest.len();
            self.len += len;
            self.take_place(Unfinished {
                session,
                len,
                rest,
                body,
                held: VecDeque::new(),
            });
        }
    }

    /// Appends the next part, of up to `part_len_max` bytes, of the session whose turn it is, and
    /// after its last what has waited for it. Whether there is more.
    pub fn turn(&mut self, out: &mut Vec<u8>, part_len_max: usize) -> bool {
        if let Some((_, one)) = self.unfinished.pop_first() {
            self.turns.remove(&one.session);
            self.len -= one.len;
            if let Some(left) = one.write(out, part_len_max) {
                self.len += left.len;
                self.take_place(left);
            }
        }
        !self.is_empty()
    }

    /// Drops what is left to say to a session that has been detached, which nobody waits for. What
    /// a frontend has to ask is never dropped: a client that puts and goes has put.
    pub fn forget(&mut self, session: u64) {
        let turn = self.turns.remove(&session);
        if let Some(one) = turn.and_then(|turn| self.unfinished.remove(&turn)) {
            self.len -= one.len;
        }
    }

    fn find(&mut self, session: u64) -> Option<&mut Unfinished> {
        let turn = self.turns.get(&session)?;
        self.unfinished.get_mut(turn)
    }

    /// Gives it the turn after all others.
    fn take_place(&mut self, one: Unfinished) {
        self.last_turn += 1;
        self.turns.insert(one.session, self.last_turn);
        self.unfinished.insert(self.last_turn, one);
    }
}

impl Unfinished {
    /// Itself, unless all is written.
    fn write(self, out: &mut Vec<u8>, part_len_max: usize) -> Option<Unfinished> {
        let Unfinished {
            session,
            rest,
            body,
            mut held,
            len,
        } = self;
        let rest_len = rest.len();
        let mut left = rest
            .write(out, &body, part_len_max)
            .map(|rest| (rest, body));
        let mut written = rest_len - left.as_ref().map_or(0, |(rest, _)| rest.len());
        while left.is_none()
            && let Some(next) = held.pop_front()
        {
            out.extend_from_slice(&next.bytes);
            written += next.part_len;
            left = next.rest;
        }
        left.map(|(rest, body)| Unfinished {
            session,
            rest,
            body,
            held,
            len: len - written,
        })
    }
}

#[cfg(test)]
mod tests;
