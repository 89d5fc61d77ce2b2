//! Replies on their way out: text, with large bodies shared from the store in between. Sans I/O:
//! the network asks for slices and says how much of them it could send.

use std::collections::VecDeque;

use crate::base::body::{Body, BodyCow};
use crate::base::ids::JobId;
use crate::base::limits::BODY_COPY_LEN_MAX;
use crate::engine::host::Ticket;
use crate::proto::line::{self, CRLF};
use crate::proto::reply;

/// What a session has been answered and not sent yet.
#[derive(Default)]
pub struct Replies {
    /// All text, and the bodies that are copied.
    text: Vec<u8>,
    /// Bytes of `text` that are sent.
    sent: usize,
    /// Shared bodies, in order. Only there when there has been one.
    shared: VecDeque<Shared>,
    /// Bytes of the first shared body that are sent.
    shared_sent: usize,
    /// Bytes of all of `shared`.
    shared_len: usize,
    /// What has to be confirmed before any of it is sent.
    held_until: Ticket,
}

/// A body that stands in the stream behind the first `at` bytes of the text.
struct Shared {
    at: usize,
    body: Body,
}

impl Replies {
    /// Bytes that are not sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len() - self.sent + self.shared_len - self.shared_sent
    }

    /// Whether everything is sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What has to be confirmed before any of it is sent.
    #[must_use]
    pub fn held_until(&self) -> Ticket {
        self.held_until
    }

    /// Keeps all of it, what was there before too, until `ticket` is confirmed.
    pub fn hold_until(&mut self, ticket: Ticket) {
        self.held_until = self.held_until.max(ticket);
    }

    /// Appends a reply that needs no number.
    pub fn line(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
    }

    /// Where a reply of any other form is appended.
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Bytes of text since all was last sent: where the next reply begins.
    #[must_use]
    pub(crate) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// The line that begins behind the first `start` bytes of the text, if there is one.
    #[must_use]
    pub(crate) fn first_line_from(&self, start: usize) -> Option<&[u8]> {
        let text = &self.text[start..];
        line::find_end(text).map(|end| &text[..end])
    }

    /// Appends `RESERVED` with the job.
    pub fn reserved(&mut self, id: JobId, body: &BodyCow<'_>) {
        reply::write_reserved(&mut self.text, id, body.len());
        self.body(body);
    }

    /// Appends `FOUND` with the job.
    pub fn found(&mut self, id: JobId, body: &BodyCow<'_>) {
        reply::write_found(&mut self.text, id, body.len());
        self.body(body);
    }

    /// Fills `slices` with what is to be sent next, as much as fits; returns how many are filled.
    pub fn slices<'a>(&'a self, slices: &mut [&'a [u8]]) -> usize {
        let mut filled = 0;
        let mut add = |bytes: &'a [u8]| {
            if !bytes.is_empty() && filled < slices.len() {
                slices[filled] = bytes;
                filled += 1;
            }
        };
        let mut from = self.sent;
        let mut skip = self.shared_sent;
        for shared in &self.shared {
            add(&self.text[from..shared.at]);
            add(&shared.body[skip..]);
            (from, skip) = (shared.at, 0);
        }
        add(&self.text[from..]);
        filled
    }

    /// Takes note that `count` more bytes of what [`Replies::slices`] told are sent. A body is
    /// given up as soon as its last byte is.
    pub fn advance(&mut self, mut count: usize) {
        while let Some(shared) = self.shared.front() {
            let before = shared.at - self.sent;
            let body_left = shared.body.len() - self.shared_sent;
            if count < before + body_left {
                let of_text = count.min(before);
                self.sent += of_text;
                self.shared_sent += count - of_text;
                return;
            }
            count -= before + body_left;
            self.sent = shared.at;
            self.shared_len -= shared.body.len();
            self.shared_sent = 0;
            self.shared.pop_front();
        }
        self.sent += count;
        debug_assert!(
            self.sent <= self.text.len(),
            "no more is sent than there was"
        );
        if self.sent == self.text.len() {
            self.text.clear();
            self.sent = 0;
        }
    }

    /// Gives up memory beyond `len` bytes of text, so that what is kept for the next session is
    /// bounded. Everything must have been sent.
    pub(crate) fn shrink(&mut self, len: usize) {
        debug_assert!(self.is_empty(), "what is on its way stays");
        self.text.shrink_to(len);
        self.shared.shrink_to(0);
    }

    fn body(&mut self, body: &BodyCow<'_>) {
        if body.len() <= BODY_COPY_LEN_MAX {
            self.text.extend_from_slice(body);
        } else {
            self.shared_len += body.len();
            self.shared.push_back(Shared {
                at: self.text.len(),
                body: body.to_body(),
            });
        }
        self.text.extend_from_slice(CRLF);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_config;

    fn unsent(replies: &Replies) -> Vec<u8> {
        let mut slices = [&[][..]; 64];
        let filled = replies.slices(&mut slices);
        slices[..filled].concat()
    }

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn what_goes_out_is_what_was_answered(
            lens in prop::collection::vec(prop_oneof![0..9usize, 2040..2060usize], 0..12),
            steps in prop::collection::vec(0..3000usize, 0..40),
        ) {
            let mut replies = Replies::default();
            let mut expected = Vec::new();
            for (len, id) in lens.into_iter().zip(1..) {
                let body = Body::copy_of(&vec![b'a' + id as u8; len]);
                replies.found(JobId(id), &body.clone().into());
                expected.extend_from_slice(format!("FOUND {id} {len}\r\n").as_bytes());
                expected.extend_from_slice(&body);
                expected.extend_from_slice(b"\r\n");
            }
            for step in steps {
                prop_assert_eq!(replies.len(), expected.len());
                prop_assert_eq!(&unsent(&replies), &expected);
                let step = step.min(expected.len());
                replies.advance(step);
                expected.drain(..step);
            }
            replies.advance(expected.len());
            prop_assert!(replies.is_empty());
        }
    }

    // R3.8
    #[test]
    fn a_large_body_is_shared_until_it_is_sent() {
        let mut replies = Replies::default();
        let body = Body::copy_of(&[7; BODY_COPY_LEN_MAX + 1]);
        replies.found(JobId(1), &body.clone().into());
        assert_eq!(body.holders(), 2);
        replies.advance(replies.len() - 2);
        assert_eq!(body.holders(), 1);
        replies.advance(2);
        assert!(replies.is_empty());
    }

    #[test]
    fn a_small_body_is_copied() {
        let mut replies = Replies::default();
        let body = Body::copy_of(&[7; BODY_COPY_LEN_MAX]);
        replies.found(JobId(1), &body.clone().into());
        assert_eq!(body.holders(), 1);
    }
}
