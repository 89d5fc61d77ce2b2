//! What is on its way out over a link: bytes, with parts of shared bodies in between that are not
//! copied.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

use crate::base::body::Body;
use crate::base::limits::{BODY_COPY_LEN_MAX, LINK_KEEP_BYTES_MAX};

/// See the module's description.
///
/// A large body does not belong here as a whole: whoever sends one appends a fragment whenever
/// there is [`Outgoing::room`], in turn with others, so that no frame waits behind all of a body.
#[derive(Debug)]
pub struct Outgoing {
    /// Bytes that are copied; the first of them is the `base`-th that there ever was.
    bytes: Vec<u8>,
    base: u64,
    /// Bytes of `bytes` that are sent.
    sent: usize,
    /// Shared parts, in order.
    shared: VecDeque<Shared>,
    /// Bytes of all of `shared`, less what is sent.
    shared_len: usize,
    backlog_bytes_max: usize,
}

/// A part of a body that stands in the stream before the `at`-th of the copied bytes.
#[derive(Debug)]
struct Shared {
    at: u64,
    body: Body,
    /// What is not sent of it.
    range: Range<usize>,
}

impl Outgoing {
    pub(super) fn new(backlog_bytes_max: usize) -> Outgoing {
        Outgoing {
            bytes: Vec::new(),
            base: 0,
            sent: 0,
            shared: VecDeque::new(),
            shared_len: 0,
            backlog_bytes_max,
        }
    }

    /// Where bytes are appended. Nothing that stands there may be changed.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends a part of a body. A small one is copied, a larger one is shared until it is sent.
    ///
    /// # Panics
    /// If the body has no such part.
    pub fn share(&mut self, body: &Body, range: Range<usize>) {
        let part = &body[range.clone()];
        if part.len() <= BODY_COPY_LEN_MAX {
            self.bytes.extend_from_slice(part);
            return;
        }
        self.shared_len += part.len();
        self.shared.push_back(Shared {
            at: self.base + self.bytes.len() as u64,
            body: body.clone(),
            range,
        });
    }

    /// Bytes that are not sent, the shared ones too.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.shared_len
    }

    /// Whether everything is sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the peer is too slow for what it is sent. It is to be given no more work, and not
    /// to be read, until this has ended; what must be said nevertheless can be.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.len() > self.backlog_bytes_max
    }

    /// Bytes that can be appended before the link is over its limit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.backlog_bytes_max.saturating_sub(self.len())
    }

    /// Fills `pieces` with what is to be sent next, as much as fits; returns how many are filled.
    pub(super) fn pieces<'a>(&'a self, pieces: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut add = |bytes: &'a [u8]| {
            if !bytes.is_empty() && filled < pieces.len() {
                pieces[filled] = IoSlice::new(bytes);
                filled += 1;
            }
            filled < pieces.len()
        };
        let mut from = self.sent;
        for shared in &self.shared {
            let until = self.index(shared.at);
            if !(add(&self.bytes[from..until]) && add(&shared.body[shared.range.clone()])) {
                return pieces.len();
            }
            from = until;
        }
        add(&self.bytes[from..]);
        filled
    }

    /// Takes note that `count` more bytes of what [`Outgoing::pieces`] told are sent. A body is
    /// given up as soon as the last byte of its part is.
    pub(super) fn advance(&mut self, mut count: usize) {
        debug_assert!(count <= self.len(), "no more is sent than there was");
        while count > 0 {
            let until = self.shared.front().map(|shared| self.index(shared.at));
            let copied = count.min(until.unwrap_or(self.bytes.len()) - self.sent);
            self.sent += copied;
            count -= copied;
            let Some(shared) = self.shared.front_mut().filter(|_| count > 0) else {
                break;
            };
            let of_body = count.min(shared.range.len());
            shared.range.start += of_body;
            self.shared_len -= of_body;
            count -= of_body;
            if shared.range.is_empty() {
                self.shared.pop_front();
            }
        }
        self.settle();
    }

    /// Where the `at`-th copied byte stands.
    fn index(&self, at: u64) -> usize {
        usize::try_from(at - self.base).expect("what is not sent is in memory")
    }

    /// Lets go of sent bytes once they are at least half of all, so that a link that is never
    /// empty does not grow, and no byte is moved more than once on average. Memory that only a
    /// burst has needed goes back.
    fn settle(&mut self) {
        if self.sent < self.bytes.len() - self.sent {
            return;
        }
        self.base += self.sent as u64;
        self.bytes.drain(..self.sent);
        self.sent = 0;
        if self.bytes.len() <= LINK_KEEP_BYTES_MAX {
            self.bytes.shrink_to(LINK_KEEP_BYTES_MAX);
        }
        if self.shared.is_empty() {
            self.shared.shrink_to(0);
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
