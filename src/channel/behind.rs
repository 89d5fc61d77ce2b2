//! What a session has asked behind a reserve with which it waits: kept, in order, until the wait is
//! over. Its frontend has sent it before it knew that the session would wait, and sends nothing
//! more when it knows, so that this is little ([`AHEAD_ASKS_MAX`]).

use std::collections::VecDeque;

use crate::base::ids::{Caller, Seq};
use crate::base::limits::AHEAD_ASKS_MAX;
use crate::wire::assembler::Message;
use crate::wire::kind::OpKind;
use crate::wire::refusal::Refusal;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Behind {
    /// The ask with which the session waits; [`Seq::NONE`] if it does not. Every reserve comes by
    /// here, and most find a job at once: nothing is allocated for it.
    wait: Seq,
    /// Only there if something is kept.
    #[expect(clippy::box_collection, reason = "every session has one of these")]
    asks: Option<Box<VecDeque<Kept>>>,
}

/// An ask that is kept.
#[derive(Debug)]
pub struct Kept {
    /// Who asks, and under which number.
    pub from: Caller,
    /// What.
    pub kind: OpKind,
    /// Its fields and body.
    pub message: Message<'static>,
}

impl Behind {
    /// Whether what comes is to be kept.
    pub(super) fn is_in_the_way(&self) -> bool {
        self.wait != Seq::NONE || self.asks.is_some()
    }

    /// The session may wait with this ask.
    pub(super) fn begin_wait(&mut self, seq: Seq) {
        self.wait = seq;
    }

    /// The ask has been answered. Whether something that is kept can be done now.
    pub(super) fn end_wait(&mut self, seq: Seq) -> bool {
        if self.wait == seq {
            self.wait = Seq::NONE;
            return self.asks.is_some();
        }
        false
    }

    /// Keeps an ask.
    ///
    /// # Errors
    /// [`Refusal::Credit`] if the frontend sends more than it may.
    pub(super) fn keep(
        &mut self,
        from: Caller,
        kind: OpKind,
        message: Message<'_>,
    ) -> Result<(), Refusal> {
        let asks = self.asks.get_or_insert_default();
        if asks.len() >= AHEAD_ASKS_MAX as usize {
            return Err(Refusal::Credit);
        }
        asks.push_back(Kept {
            from,
            kind,
            message: message.into_owned(),
        });
        Ok(())
    }

    /// Takes the ask that is to be done next, if one can be done.
    pub(super) fn next(&mut self) -> Option<Kept> {
        if self.wait != Seq::NONE {
            return None;
        }
        let asks = self.asks.as_mut()?;
        let next = asks.pop_front();
        if asks.is_empty() {
            self.asks = None;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::base::ids::SessionId;
    use crate::wire::kind::Kind;

    fn keep(behind: &mut Behind, number: u64) -> Result<(), Refusal> {
        let session = SessionId::new(0, 1, 0);
        let from = Caller {
            session,
            seq: Seq(number),
        };
        let message = Message {
            kind: Kind::Op(OpKind::Kick),
            session: session.number,
            request: from.seq,
            meta: Cow::Borrowed(&[]),
            body: None,
        };
        behind.keep(from, OpKind::Kick, message)
    }

    #[test]
    fn what_is_kept_comes_in_order_when_the_wait_is_over() {
        let mut behind = Behind::default();
        assert!(!behind.is_in_the_way());
        behind.begin_wait(Seq(5));
        assert!(behind.is_in_the_way());
        keep(&mut behind, 6).unwrap();
        keep(&mut behind, 7).unwrap();
        assert!(!behind.end_wait(Seq(4)), "that is another's end");
        assert!(behind.next().is_none());
        assert!(behind.end_wait(Seq(5)));
        assert_eq!(behind.next().map(|kept| kept.from.seq), Some(Seq(6)));
        behind.begin_wait(Seq(6));
        assert!(behind.next().is_none(), "the next may wait itself");
        assert!(behind.end_wait(Seq(6)));
        assert!(behind.is_in_the_way(), "what comes now comes behind");
        assert_eq!(behind.next().map(|kept| kept.from.seq), Some(Seq(7)));
        assert!(!behind.is_in_the_way());
    }

    #[test]
    fn no_more_is_kept_than_may_be_asked() {
        let mut behind = Behind::default();
        behind.begin_wait(Seq(1));
        let kept = (2..).take_while(|&number| keep(&mut behind, number).is_ok());
        assert_eq!(kept.count(), AHEAD_ASKS_MAX as usize);
        assert_eq!(keep(&mut behind, 1_000), Err(Refusal::Credit));
    }
}
