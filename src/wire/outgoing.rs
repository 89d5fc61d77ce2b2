//! What is to go over a link and is not bytes yet: the rests of large bodies, and what the same
//! sessions have said since. Sessions take turns, a part each; within a session the order stays.

use std::collections::VecDeque;

use crate::base::body::Body;
use crate::wire::frame::Rest;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Outgoing {
    unfinished: VecDeque<Unfinished>,
}

/// A session in the middle of a body.
#[derive(Debug)]
struct Unfinished {
    session: u64,
    rest: Rest,
    body: Body,
    /// What comes after.
    held: VecDeque<Held>,
}

/// A frame as bytes, and what it leaves of its body.
#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
    rest: Option<(Rest, Body)>,
}

impl Outgoing {
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
        body: Option<&Body>,
        write: impl FnOnce(&mut Vec<u8>) -> Option<Rest>,
    ) {
        let keep = |rest: Option<Rest>| rest.zip(body.cloned());
        let mut others = self.unfinished.iter_mut();
        if let Some(unfinished) = others.find(|one| one.session == session) {
            let mut bytes = Vec::new();
            let rest = keep(write(&mut bytes));
            unfinished.held.push_back(Held { bytes, rest });
        } else if let Some((rest, body)) = keep(write(out)) {
            self.unfinished.push_back(Unfinished {
                session,
                rest,
                body,
                held: VecDeque::new(),
            });
        }
    }

    /// Appends the next part, of up to `part_len_max` bytes, of the session whose turn it is, and
    /// after its last what has waited for it. Whether there is more.
    pub fn turn(&mut self, out: &mut Vec<u8>, part_len_max: usize) -> bool {
        if let Some(one) = self.unfinished.pop_front() {
            let left = one.write(out, part_len_max);
            self.unfinished.extend(left);
        }
        !self.is_empty()
    }

    /// Drops what is left to say to a session that has been detached, which nobody waits for. What
    /// a frontend has to ask is never dropped: a client that puts and goes has put.
    pub fn forget(&mut self, session: u64) {
        self.unfinished.retain(|one| one.session != session);
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
        } = self;
        let mut left = rest
            .write(out, &body, part_len_max)
            .map(|rest| (rest, body));
        while left.is_none()
            && let Some(next) = held.pop_front()
        {
            out.extend_from_slice(&next.bytes);
            left = next.rest;
        }
        left.map(|(rest, body)| Unfinished {
            session,
            rest,
            body,
            held,
        })
    }
}
