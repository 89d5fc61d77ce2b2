//! Takes connections in, and leaves the listener alone for a while when something has run out.

use std::os::fd::AsFd;

use crate::base::limits::{ACCEPT_BATCH_MAX, ACCEPT_PAUSE_MS};
use crate::base::time::Nanos;
use crate::net::listener::{AcceptError, Listener};
use crate::net::stream::Stream;
use crate::sys::poller::{Interest, Poller};

/// See the module's description.
pub(super) struct Acceptor {
    listener: Listener,
    /// What the poller calls the listener.
    key: usize,
    /// Until when the listener is left alone.
    paused_until: Option<Nanos>,
    /// Accepting has failed, and connections have been waiting ever since.
    is_starved: bool,
}

const PAUSE_NANOS: u64 = ACCEPT_PAUSE_MS * 1_000_000;

/// The target of this module's log lines.
const LOG: &str = "acceptor";

impl Acceptor {
    /// Takes connections from `listener`, which the poller watches for reading as `key`.
    pub(super) fn new(listener: Listener, key: usize) -> Acceptor {
        Acceptor {
            listener,
            key,
            paused_until: None,
            is_starved: false,
        }
    }

    /// Takes in the connections that wait, up to a batch of them.
    pub(super) fn accept(&mut self, now: Nanos, poller: &Poller, mut open: impl FnMut(Stream)) {
        for _ in 0..ACCEPT_BATCH_MAX {
            match self.listener.accept() {
                Ok(Some(stream)) => open(stream),
                Ok(None) => {
                    self.is_starved = false;
                    return;
                }
                Err(AcceptError::Lost { source }) => {
                    log::debug!(target: LOG, "connection lost in the queue error={source}");
                }
                Err(error @ (AcceptError::Exhausted { .. } | AcceptError::Broken { .. })) => {
                    return self.pause(now, &error, poller);
                }
            }
        }
    }

    /// Goes on when a pause is over, or when closed connections have left something to go on with.
    pub(super) fn resume(&mut self, now: Nanos, has_closed: bool, poller: &Poller) {
        if let Some(until) = self.paused_until
            && (until <= now || has_closed)
        {
            self.watch(Interest::READ, poller);
            self.paused_until = None;
        }
    }

    /// When a pause ends, if there is one.
    pub(super) fn moment(&self) -> Option<Nanos> {
        self.paused_until
    }

    /// What is missing now is still missing in the next turn, and asking again at once would keep
    /// the processor busy (Q13). Said once, until no connection waits any more.
    fn pause(&mut self, now: Nanos, error: &AcceptError, poller: &Poller) {
        if !self.is_starved {
            log::warn!(target: LOG, "new connections have to wait error={error}");
        }
        self.is_starved = true;
        self.watch(Interest::NONE, poller);
        self.paused_until = Some(Nanos(now.0 + PAUSE_NANOS));
    }

    fn watch(&self, interest: Interest, poller: &Poller) {
        if let Err(error) = poller.change(self.listener.as_fd(), self.key, interest) {
            log::error!(target: LOG, "cannot watch listening socket error={error}");
        }
    }
}
