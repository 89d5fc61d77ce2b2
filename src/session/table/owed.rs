//! What all sessions together are owed, kept exact by whoever writes replies and whoever sends
//! them, and what is told to an operator who wants to hear everything.

use std::ops::{Deref, DerefMut};

use crate::base::ids::SessionId;
use crate::base::limits::REPLIES_BYTES_MAX;
use crate::session::reply::Replies;
use crate::session::table::{Trace, Traced};

/// See the module's description.
pub(super) struct Ledger {
    /// Bytes of replies of all sessions that are not sent.
    pub(super) owed: usize,
    /// Above which commands that are answered with a job wait.
    pub(super) owed_max: usize,
    pub(super) traces: Option<Vec<Trace>>,
}

/// How much a session was owed before something was written.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    text_len: usize,
    len: usize,
}

impl Ledger {
    pub(super) fn new(traced: bool) -> Ledger {
        Ledger {
            owed: 0,
            owed_max: REPLIES_BYTES_MAX,
            traces: traced.then(Vec::new),
        }
    }

    /// Whether commands that are answered with a job have to wait.
    pub(super) fn is_full(&self) -> bool {
        self.owed > self.owed_max
    }

    /// Something may be written from here on.
    pub(super) fn begin(replies: &Replies) -> Mark {
        Mark {
            text_len: replies.text_len(),
            len: replies.len(),
        }
    }

    /// Takes note of what was written since.
    pub(super) fn end(&mut self, id: SessionId, mark: Mark, replies: &Replies) {
        self.owed += replies.len() - mark.len;
        if let Some(traces) = &mut self.traces
            && let Some(line) = replies.first_line_from(mark.text_len)
        {
            traces.push(Trace {
                session: id,
                what: Traced::Reply(line.to_vec()),
            });
        }
    }

    pub(super) fn trace(&mut self, session: SessionId, what: impl FnOnce() -> Traced) {
        if let Some(traces) = &mut self.traces {
            traces.push(Trace {
                session,
                what: what(),
            });
        }
    }
}

/// What a session is owed, on loan to whoever sends it.
pub struct Owed<'a> {
    replies: &'a mut Replies,
    owed: &'a mut usize,
    before: usize,
}

impl<'a> Owed<'a> {
    pub(super) fn new(replies: &'a mut Replies, ledger: &'a mut Ledger) -> Owed<'a> {
        Owed {
            before: replies.len(),
            replies,
            owed: &mut ledger.owed,
        }
    }
}

impl Deref for Owed<'_> {
    type Target = Replies;

    fn deref(&self) -> &Replies {
        self.replies
    }
}

impl DerefMut for Owed<'_> {
    fn deref_mut(&mut self) -> &mut Replies {
        self.replies
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        *self.owed = *self.owed + self.replies.len() - self.before;
    }
}
