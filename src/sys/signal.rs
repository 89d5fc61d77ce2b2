//! Signals as something to read: a handler writes into a socket pair, whose other end is watched
//! like every other descriptor. No thread is involved, and a signal's work is done in the loop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// The signals that every process listens for.
const HEARD: &[Signal] = &[Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1];

/// The signals that a process with children listens for.
const HEARD_WITH_CHILDREN: &[Signal] = &[
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGUSR1,
    Signal::SIGCHLD,
];

/// Why signals cannot be listened for.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    /// The socket pair could not be made.
    #[error("cannot make the channel for signals")]
    Channel {
        /// What the system said.
        source: io::Error,
    },
    /// A handler could not be installed.
    #[error("cannot install a signal handler")]
    Install {
        /// What the system said.
        source: io::Error,
    },
    /// The signals could not be unblocked.
    #[error("cannot unblock signals")]
    Unblock {
        /// What the system said.
        source: io::Error,
    },
}

/// The signals that came since they were last asked for. Several of one kind count once, as they
/// do in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet {
    /// SIGTERM: end.
    pub term: bool,
    /// SIGINT: end, from a terminal.
    pub int: bool,
    /// SIGUSR1: drain mode.
    pub usr1: bool,
    /// SIGCHLD: a child has ended, or was stopped or continued.
    pub chld: bool,
}

impl SignalSet {
    /// Whether none came.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == SignalSet::default()
    }
}

/// Listens for SIGTERM, SIGINT and SIGUSR1, and for SIGCHLD if asked to, as long as it lives.
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

impl Signals {
    /// Installs the handlers, then lets the signals through, because the mask of the program
    /// that started this one may have survived. From here on none of them ends the process.
    /// Ignores SIGPIPE for good: a write to a client that has gone is an error and no reason to
    /// die.
    ///
    /// # Errors
    /// If the system refuses a step. Handlers installed so far are taken back.
    pub fn new() -> Result<Signals, SignalError> {
        Signals::hear(HEARD)
    }

    /// As [`Signals::new`], and hears of children too. A handler is also what makes ended children
    /// wait to be asked for, if the program that started this one has SIGCHLD ignored.
    ///
    /// # Errors
    /// As [`Signals::new`].
    pub fn with_children() -> Result<Signals, SignalError> {
        Signals::hear(HEARD_WITH_CHILDREN)
    }

    fn hear(signals: &[Signal]) -> Result<Signals, SignalError> {
        let (read, write) = UnixStream::pair().map_err(|source| SignalError::Channel { source })?;
        let numbers = signals.iter().map(|&signal| signal as i32);
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, numbers)
            .map_err(|source| SignalError::Install { source })?;
        ignore_broken_pipes()?;
        let heard: SigSet = signals.iter().copied().collect();
        heard
            .thread_unblock()
            .map_err(|errno| SignalError::Unblock {
                source: errno.into(),
            })?;
        Ok(Signals { delivery })
    }

    /// What came since the last call. Never waits; empties the descriptor.
    pub fn drain(&mut self) -> SignalSet {
        let mut set = SignalSet::default();
        for number in self.delivery.pending() {
            match number {
                libc::SIGTERM => set.term = true,
                libc::SIGINT => set.int = true,
                libc::SIGUSR1 => set.usr1 = true,
                libc::SIGCHLD => set.chld = true,
                other => debug_assert!(false, "signal {other} was not asked for"),
            }
        }
        set
    }
}

/// Readable when [`Signals::drain`] has something to say.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }
}

/// For a process whose supervisor hears of signals and tells it what to do: ignores those that
/// [`Signals::new`] listens for, which a terminal sends to all, and SIGPIPE.
///
/// # Errors
/// [`SignalError::Install`].
pub fn ignore_in_child() -> Result<(), SignalError> {
    HEARD.iter().try_for_each(|&heard| ignore(heard))?;
    ignore_broken_pipes()
}

fn ignore_broken_pipes() -> Result<(), SignalError> {
    ignore(Signal::SIGPIPE)
}

fn ignore(ignored: Signal) -> Result<(), SignalError> {
    // SAFETY: ignoring a signal installs no code that could run at a bad moment.
    unsafe { signal(ignored, SigHandler::SigIgn) }.map_err(|errno| SignalError::Install {
        source: errno.into(),
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::raise;

    use super::*;
    use crate::sys::poller::{Interest, Poller};

    /// One test, because signals belong to the process and tests share it.
    #[test]
    fn signals_are_read_and_survive_a_mask() {
        let blocked: SigSet = HEARD.iter().copied().collect();
        blocked.thread_block().unwrap();
        let mut signals = Signals::new().unwrap();
        assert!(signals.drain().is_empty());
        let mut poller = Poller::new().unwrap();
        let mut ready = Vec::new();
        poller.watch(signals.as_fd(), 1, Interest::READ).unwrap();

        raise(Signal::SIGUSR1).unwrap();
        raise(Signal::SIGUSR1).unwrap();
        poller.wait(Some(10_000_000_000), &mut ready).unwrap();
        assert!(ready[0].readable);
        let drained = SignalSet {
            usr1: true,
            ..SignalSet::default()
        };
        assert_eq!(signals.drain(), drained);
        poller.wait(Some(0), &mut ready).unwrap();
        assert!(ready.is_empty());

        raise(Signal::SIGTERM).unwrap();
        raise(Signal::SIGINT).unwrap();
        raise(Signal::SIGPIPE).unwrap();
        let ended = SignalSet {
            term: true,
            int: true,
            ..SignalSet::default()
        };
        assert_eq!(signals.drain(), ended);
    }

    #[test]
    fn children_are_heard_of_by_who_asks() {
        let mut signals = Signals::with_children().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.watch(signals.as_fd(), 1, Interest::READ).unwrap();
        raise(Signal::SIGCHLD).unwrap();
        let mut ready = Vec::new();
        poller.wait(Some(10_000_000_000), &mut ready).unwrap();
        assert!(ready[0].readable);
        assert!(signals.drain().chld);
    }
}
