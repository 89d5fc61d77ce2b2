//! The reserves of a session that are not answered: the one that is in turn, and what was obeyed
//! behind it.

use std::collections::VecDeque;

use crate::base::ids::{Seq, ShardSet};
use crate::base::limits::SPARE_RESERVES_MAX;
use crate::base::time::{Nanos, Secs};
use crate::proto::command::Kind;
use crate::session::reserve::{Outcome, Reserving};
use crate::session::{Desk, Session};

/// See the module's description.
#[derive(Debug)]
pub(super) struct Reserves {
    /// The one that is in turn.
    pub(super) reserving: Reserving,
    /// How long the client wants to wait, if not as long as it takes.
    pub(super) timeout: Option<Secs>,
    /// When its turn came; None as long as what was asked before it may not be answered.
    pub(super) begun: Option<Nanos>,
    /// Whether the client counts among those that wait.
    pub(super) is_counted: bool,
    ahead: VecDeque<Ahead>,
}

/// A command that was obeyed behind a reserve that is not answered. It counts when that is, because
/// until then nothing may come of it.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    kind: Kind,
    /// What is known of it if it is a reserve.
    reserve: Option<Asked>,
}

/// A reserve that was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) seq: Seq,
    /// How long the client wants to wait, if not as long as it takes.
    pub(super) timeout: Option<Secs>,
    /// How it is answered if there is no job, unless the session waits then.
    pub(super) otherwise: Option<Outcome>,
}

/// Commands for which the memory is kept that a session with many behind a reserve has left.
const KEPT_CAPACITY: usize = 8;

impl Reserves {
    fn new(asked: Asked, targets: ShardSet, begun: Option<Nanos>, ahead: VecDeque<Ahead>) -> Self {
        Reserves {
            reserving: Reserving::start(asked.seq, targets, asked.otherwise),
            timeout: asked.timeout,
            begun,
            is_counted: false,
            ahead,
        }
    }
}

impl Session {
    /// Counts the command, now or when the reserve is answered that it is behind.
    pub(super) fn count(&mut self, kind: Kind, desk: &mut Desk) {
        match &mut self.reserves {
            Some(reserves) => {
                let reserve = None;
                reserves.ahead.push_back(Ahead { kind, reserve });
            }
            None => desk.counts.command(kind),
        }
    }

    /// Takes note of a reserve, which has just been counted: it is in turn, or comes behind those
    /// that are not answered. `begun` is when its turn came, if that is known.
    pub(super) fn note_reserve(&mut self, asked: Asked, begun: Option<Nanos>, desk: &mut Desk) {
        let targets = self.watched_at;
        if let Some(reserves) = &mut self.reserves {
            if let Some(last) = reserves.ahead.back_mut() {
                last.reserve = Some(asked);
            }
            return;
        }
        self.become_worker(desk);
        self.reserves = Some(match desk.spare_reserves.pop() {
            Some(mut spare) => {
                let ahead = std::mem::take(&mut spare.ahead);
                *spare = Reserves::new(asked, targets, begun, ahead);
                spare
            }
            None => Box::new(Reserves::new(asked, targets, begun, VecDeque::new())),
        });
    }

    /// The reserve that was in turn is answered: counts what was obeyed behind it, up to the next
    /// one, which is in turn.
    pub(super) fn pass_reserve(&mut self, desk: &mut Desk) {
        let Some(mut reserves) = self.reserves.take() else {
            return;
        };
        desk.counts.waiting -= u64::from(reserves.is_counted);
        while let Some(Ahead { kind, reserve }) = reserves.ahead.pop_front() {
            desk.counts.command(kind);
            if kind == Kind::Put {
                self.become_producer(desk);
            }
            if let Some(asked) = reserve {
                self.become_worker(desk);
                let ahead = std::mem::take(&mut reserves.ahead);
                *reserves = Reserves::new(asked, self.watched_at, None, ahead);
                self.reserves = Some(reserves);
                return;
            }
        }
        if desk.spare_reserves.len() < SPARE_RESERVES_MAX {
            reserves.ahead.shrink_to(KEPT_CAPACITY);
            desk.spare_reserves.push(reserves);
        }
    }
}
