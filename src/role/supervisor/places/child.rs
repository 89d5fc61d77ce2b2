//! What is known of one place, and of one pair of them.

use super::Ended;
use crate::base::ids::Generation;
use crate::base::limits::STOP_LIMIT_SECS;
use crate::base::time::{Nanos, Secs};
use crate::role::backoff::Backoff;

/// Whether there is a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is none, and is not to be before this moment.
    Away { until: Nanos },
    /// It does not serve yet.
    Starting { generation: Generation },
    /// It serves.
    Ready { generation: Generation },
}

/// A place.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) state: State,
    pub(super) backoff: Backoff,
    /// How often in a row it has ended without having served.
    pub(super) failed_starts: u32,
    /// The question that it has not answered.
    pub(super) ping: Option<Ping>,
    /// Whether it is said to be slow.
    pub(super) is_slow: bool,
    /// Whether it knows that it is to take no new jobs.
    pub(super) is_draining: bool,
    /// Whether it was told to end.
    pub(super) is_leaving: bool,
    /// Whether it was killed.
    pub(super) is_killed: bool,
    /// Since when its socket is closed.
    pub(super) closed: Option<Nanos>,
}

/// A question after health.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ping {
    pub(super) number: u64,
    pub(super) sent: Nanos,
}

/// A frontend and an owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    /// Whether those who are there now have one.
    pub(super) is_made: bool,
    pub(super) backoff: Backoff,
    /// When it may be made again.
    pub(super) not_before: Nanos,
}

impl Default for Child {
    fn default() -> Child {
        Child {
            state: State::Away { until: Nanos(0) },
            backoff: Backoff::default(),
            failed_starts: 0,
            ping: None,
            is_slow: false,
            is_draining: false,
            is_leaving: false,
            is_killed: false,
            closed: None,
        }
    }
}

impl Child {
    /// Which start it is, if it serves.
    pub(super) fn ready(&self) -> Option<Generation> {
        match self.state {
            State::Ready { generation } => Some(generation),
            State::Away { .. } | State::Starting { .. } => None,
        }
    }

    /// Whether there is a process.
    pub(super) fn is_there(&self) -> bool {
        match self.state {
            State::Away { .. } => false,
            State::Starting { .. } | State::Ready { .. } => true,
        }
    }

    pub(super) fn start(&mut self, generation: Generation, is_draining: bool) {
        self.state = State::Starting { generation };
        self.is_draining = is_draining;
    }

    /// Its place is free again.
    pub(super) fn end(&mut self, now: Nanos, is_expected: bool) -> Option<Ended> {
        let (generation, has_served) = match self.state {
            State::Away { .. } => return None,
            State::Starting { generation } => (generation, false),
            State::Ready { generation } => (generation, true),
        };
        if !has_served {
            self.failed_starts = self.failed_starts.saturating_add(1);
        }
        let until = self.backoff.on_end(now);
        *self = Child {
            state: State::Away { until },
            backoff: std::mem::take(&mut self.backoff),
            failed_starts: self.failed_starts,
            ..Child::default()
        };
        Some(Ended {
            generation,
            has_served,
            is_expected,
        })
    }

    pub(super) fn ask(&mut self, now: Nanos, number: u64) {
        self.ping = Some(Ping { number, sent: now });
    }

    /// Until when it may live though its socket is closed.
    pub(super) fn closed_until(&self) -> Option<Nanos> {
        let closed = self.closed.filter(|_| !self.is_killed)?;
        Some(closed.after(Secs(STOP_LIMIT_SECS)))
    }
}
