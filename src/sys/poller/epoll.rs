//! Adding to the epoll descriptor that `polling` made, and waiting on it, without `polling`.
//!
//! This rests on how `polling` 3 uses it: the key is the event's data, and the descriptors it adds
//! for itself (a timer and a wake-up, both silent as long as its own wait and `notify` are not
//! called) have the key `usize::MAX`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use polling::Poller;

use super::{Interest, Ready};
use crate::base::time::NANOS_PER_SEC;

/// Descriptors that one wait can report.
const EVENTS_MAX: usize = 1024;
/// `polling`'s key for its own descriptors.
const OWN_KEY: u64 = usize::MAX as u64;
const NANOS_PER_MILLI: u64 = 1_000_000;

const GONE: u32 = (libc::EPOLLHUP | libc::EPOLLERR) as u32;
const INPUT: u32 = libc::EPOLLIN as u32;
const OUTPUT: u32 = libc::EPOLLOUT as u32;

/// The kernel's time for `epoll_pwait2`: 64 bits a field on every architecture.
#[repr(C)]
struct Timespec {
    secs: i64,
    nanos: i64,
}

/// Room for what a wait reports, and which call this kernel has.
pub(super) struct Waiter {
    events: Vec<libc::epoll_event>,
    has_pwait2: bool,
}

impl Waiter {
    pub(super) fn new() -> Waiter {
        Waiter {
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX],
            has_pwait2: true,
        }
    }

    /// As if the kernel were older than `epoll_pwait2`.
    #[cfg(test)]
    pub(super) fn without_pwait2() -> Waiter {
        Waiter {
            has_pwait2: false,
            ..Waiter::new()
        }
    }

    /// Appends to `ready` what `poller` reports within `timeout` nanoseconds.
    pub(super) fn wait(
        &mut self,
        poller: &Poller,
        timeout: Option<u64>,
        ready: &mut Vec<Ready>,
    ) -> io::Result<()> {
        let count = match self.wait_once(poller, timeout) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        for event in self.events.iter().take(count) {
            // Copied out, because the structure is packed on some architectures.
            let (flags, key) = (event.events, event.u64);
            if key != OWN_KEY {
                let hangup = flags & GONE != 0;
                ready.push(Ready {
                    key: key as usize,
                    readable: hangup || flags & INPUT != 0,
                    writable: hangup || flags & OUTPUT != 0,
                    hangup,
                });
            }
        }
        Ok(())
    }

    fn wait_once(&mut self, poller: &Poller, timeout: Option<u64>) -> io::Result<usize> {
        if self.has_pwait2 {
            match self.pwait2(poller, timeout) {
                // EPERM is the answer of sandboxes to calls that they do not know.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.has_pwait2 = false;
                }
                result => return result,
            }
        }
        self.wait_millis(poller, timeout)
    }

    /// Linux 5.11 and later. By number, because the C libraries have it only lately or not at all.
    fn pwait2(&mut self, poller: &Poller, timeout: Option<u64>) -> io::Result<usize> {
        let timeout = timeout.map(|nanos| Timespec {
            secs: (nanos / NANOS_PER_SEC).cast_signed(),
            nanos: (nanos % NANOS_PER_SEC).cast_signed(),
        });
        let timeout: *const Timespec = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the kernel writes at most `EVENTS_MAX` events, for which there is room, reads
        // the timeout, which outlives the call, and no signal mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                poller.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as libc::c_int,
                timeout,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    fn wait_millis(&mut self, poller: &Poller, timeout: Option<u64>) -> io::Result<usize> {
        let millis = timeout.map_or(-1, |nanos| {
            i32::try_from(nanos.div_ceil(NANOS_PER_MILLI)).unwrap_or(i32::MAX)
        });
        // SAFETY: the kernel writes at most `EVENTS_MAX` events, for which there is room.
        let count = unsafe {
            libc::epoll_wait(
                poller.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as libc::c_int,
                millis,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}

/// Adds `fd` to what `poller` knows, with `interest` and nothing of urgent data.
pub(super) fn add(
    poller: &Poller,
    fd: BorrowedFd<'_>,
    key: usize,
    interest: Interest,
) -> io::Result<()> {
    control(poller, libc::EPOLL_CTL_ADD, fd, key, interest)
}

/// Sets what `poller` reports about `fd`, which it knows: `interest`, and nothing of urgent data.
pub(super) fn change(
    poller: &Poller,
    fd: BorrowedFd<'_>,
    key: usize,
    interest: Interest,
) -> io::Result<()> {
    control(poller, libc::EPOLL_CTL_MOD, fd, key, interest)
}

fn control(
    poller: &Poller,
    operation: libc::c_int,
    fd: BorrowedFd<'_>,
    key: usize,
    interest: Interest,
) -> io::Result<()> {
    let mut flags = 0;
    if interest.readable {
        flags |= INPUT;
    }
    if interest.writable {
        flags |= OUTPUT;
    }
    if key as u64 == OWN_KEY {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut event = libc::epoll_event {
        events: flags,
        u64: key as u64,
    };
    // SAFETY: both descriptors are open, and the kernel reads `event` during the call only. Its set
    // refers to the open file and not to memory of ours, and drops it when the file is closed.
    let rc = unsafe {
        libc::epoll_ctl(
            poller.as_raw_fd(),
            operation,
            fd.as_raw_fd(),
            &raw mut event,
        )
    };
    if rc == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
