//! Readiness: which of many descriptors can be read or written. The one wrapper of `polling`; it
//! lives here because registering a descriptor is unsafe there.
//!
//! Everything is watched level by level: what is ready and left alone is reported again by the
//! next wait. Urgent (out-of-band) data is not watched for on any system: a client's single byte
//! of it would be reported for ever.
//!
//! On Linux the wait goes to `polling`'s own epoll descriptor directly, which is one system call
//! instead of five, and so does adding to it, one instead of two. `polling`'s wait is the portable
//! path, and a test holds the two together.

use std::io;
use std::os::fd::BorrowedFd;

#[cfg(not(target_os = "linux"))]
use polling::{Event, PollMode};

#[cfg(target_os = "linux")]
mod epoll;

/// What to report about a descriptor. With neither, only what cannot be left out is reported: on
/// Linux the peer's disappearance and errors, elsewhere nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// There is input, the end of it, or an error to collect.
    pub readable: bool,
    /// There is room for output.
    pub writable: bool,
}

impl Interest {
    /// Neither input nor room for output.
    pub const NONE: Interest = Interest {
        readable: false,
        writable: false,
    };
    /// Input only.
    pub const READ: Interest = Interest {
        readable: true,
        writable: false,
    };
    /// Room for output only.
    pub const WRITE: Interest = Interest {
        readable: false,
        writable: true,
    };

    #[cfg(not(target_os = "linux"))]
    fn event(self, key: usize) -> Event {
        Event::new(key, self.readable, self.writable)
    }
}

/// What a wait found out about one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The key it was registered with.
    pub key: usize,
    /// A read will not wait; also set with `hangup`, because a read then gives the rest of the
    /// input, its end or the error.
    pub readable: bool,
    /// A write will not wait; also set with `hangup`, because a write then gives the error.
    pub writable: bool,
    /// The peer has gone altogether or the descriptor is in error: nothing can be written any
    /// more, but input that came before may still be there. It is reported whatever the interest
    /// and again by each wait, so the descriptor has to be read to its end and forgotten. A peer
    /// that has only ended its own output (half-close) is not meant: that is seen by reading.
    /// Linux only; elsewhere the same conditions show as `readable` and `writable`.
    pub hangup: bool,
}

/// A set of descriptors to wait for.
pub struct Poller {
    inner: polling::Poller,
    #[cfg(target_os = "linux")]
    epoll: epoll::Waiter,
    #[cfg(any(not(target_os = "linux"), test))]
    events: polling::Events,
}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// If the system refuses, usually for lack of descriptors.
    pub fn new() -> io::Result<Poller> {
        Ok(Poller {
            inner: polling::Poller::new()?,
            #[cfg(target_os = "linux")]
            epoll: epoll::Waiter::new(),
            #[cfg(any(not(target_os = "linux"), test))]
            events: polling::Events::new(),
        })
    }

    /// Adds `fd` to the set; waits report it as `key`, which need not be unique but must not be
    /// `usize::MAX`. [`Poller::forget`] it before it is closed.
    ///
    /// # Errors
    /// If `fd` is in the set already, cannot be waited for (a plain file), or the system is out of
    /// memory or past a limit. It is then not in the set.
    pub fn watch(&self, fd: BorrowedFd<'_>, key: usize, interest: Interest) -> io::Result<()> {
        // Urgent data comes with `polling`'s notion of readable on Linux and cannot be had without.
        #[cfg(target_os = "linux")]
        return epoll::add(&self.inner, fd, key, interest);
        // SAFETY: the kernel's set refers to the open file and not to memory of ours; it drops the
        // descriptor by itself when the file is closed, so that a caller who does not forget it
        // first gets wrong reports at worst.
        #[cfg(not(target_os = "linux"))]
        unsafe {
            self.inner
                .add_with_mode(&fd, interest.event(key), PollMode::Level)
        }
    }

    /// Replaces the key and the interest of `fd`.
    ///
    /// # Errors
    /// If `fd` is not in the set.
    pub fn change(&self, fd: BorrowedFd<'_>, key: usize, interest: Interest) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return epoll::change(&self.inner, fd, key, interest);
        #[cfg(not(target_os = "linux"))]
        self.inner
            .modify_with_mode(fd, interest.event(key), PollMode::Level)
    }

    /// Takes `fd` out of the set.
    ///
    /// # Errors
    /// If `fd` is not in the set.
    pub fn forget(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.inner.delete(fd)
    }

    /// As [`Poller::forget`], of a descriptor that is closed next and that nobody has a copy of. On
    /// Linux the close does it: one system call less of the eight that a client costs who connects,
    /// sends one command and closes.
    ///
    /// # Errors
    /// If `fd` is not in the set; not on Linux.
    pub fn forget_closing(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        if cfg!(target_os = "linux") {
            return Ok(());
        }
        self.forget(fd)
    }

    /// Waits until something is ready, but not longer than `timeout` nanoseconds (`None`: for
    /// ever; zero: not at all), and replaces the contents of `ready`.
    ///
    /// `ready` is empty after a timeout and may be after a signal. The wait never ends before its
    /// time without a reason: where the system's unit is coarser than a nanosecond the timeout is
    /// rounded up. One wait reports a limited number of descriptors, the others come first the
    /// next time; outside Linux a key may come twice, once for each direction.
    ///
    /// # Errors
    /// If the system cannot wait. There is nothing to be done about it but to stop.
    pub fn wait(&mut self, timeout: Option<u64>, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        #[cfg(target_os = "linux")]
        return self.epoll.wait(&self.inner, timeout, ready);
        #[cfg(not(target_os = "linux"))]
        self.wait_portably(timeout, ready)
    }

    #[cfg(any(not(target_os = "linux"), test))]
    fn wait_portably(&mut self, timeout: Option<u64>, ready: &mut Vec<Ready>) -> io::Result<()> {
        // The coarsest monotonic clock of the supported systems counts microseconds.
        let timeout = timeout.map(|nanos| std::time::Duration::from_micros(nanos.div_ceil(1_000)));
        self.events.clear();
        self.inner.wait(&mut self.events, timeout)?;
        ready.extend(self.events.iter().map(|event| Ready {
            key: event.key,
            readable: event.readable,
            writable: event.writable,
            hangup: event.is_interrupt() || event.is_err() == Some(true),
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
