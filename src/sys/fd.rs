//! Descriptors: reading straight into the unused part of a buffer, flags, descriptors that another
//! program left open for us, and (in `pass`) those that go from one process to another.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};

pub mod pass;

/// The first descriptor that a service manager hands over.
pub const LISTEN_FD: RawFd = 3;

/// Whether [`take_listen_fd`] was called.
static LISTEN_FD_TAKEN: AtomicBool = AtomicBool::new(false);

/// Appends to `into` what one `read` of at most `limit` bytes brings, and returns how much that
/// was; zero is the end of input. Room for `limit` bytes is made first, so a buffer that has it
/// already is not moved, and no byte of it is cleared.
///
/// # Errors
/// What `read` reports; a non-blocking descriptor without input gives
/// [`io::ErrorKind::WouldBlock`]. An interrupted read is tried again.
pub fn read_append(fd: BorrowedFd<'_>, into: &mut Vec<u8>, limit: usize) -> io::Result<usize> {
    into.reserve(limit);
    let spare = into.spare_capacity_mut();
    let room = limit.min(spare.len());
    loop {
        // SAFETY: the first `room` bytes of `spare` are owned by `into` and may be written.
        let got = unsafe { libc::read(fd.as_raw_fd(), spare.as_mut_ptr().cast(), room) };
        if let Ok(got) = usize::try_from(got) {
            let len = into.len() + got;
            // SAFETY: the kernel has just written the `got` bytes behind the old length, and
            // `got <= room` lies within the capacity.
            unsafe { into.set_len(len) };
            return Ok(got);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Makes reads and writes on `fd` return instead of waiting. Everyone who shares the open file
/// sees the change.
///
/// # Errors
/// What `fcntl` reports.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    if !flags.contains(OFlag::O_NONBLOCK) {
        fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    }
    Ok(())
}

/// Keeps `fd` from programs that this one executes (`true`) or hands it to them (`false`).
///
/// # Errors
/// What `fcntl` reports.
pub fn set_close_on_exec(fd: BorrowedFd<'_>, close: bool) -> io::Result<()> {
    let mut flags = FdFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFD)?);
    flags.set(FdFlag::FD_CLOEXEC, close);
    fcntl(fd, FcntlArg::F_SETFD(flags))?;
    Ok(())
}

/// Takes over descriptor [`LISTEN_FD`], which a service manager has left open, and keeps it and
/// the `count - 1` that follow it from programs that this one executes.
///
/// # Errors
/// If one of them is not open, or this has been called before: a descriptor has one owner.
pub fn take_listen_fd(count: RawFd) -> io::Result<OwnedFd> {
    for raw in LISTEN_FD..LISTEN_FD.saturating_add(count) {
        // SAFETY: the borrow ends with the call, and if nothing is open there, the call says so.
        set_close_on_exec(unsafe { BorrowedFd::borrow_raw(raw) }, true)?;
    }
    if LISTEN_FD_TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // SAFETY: the descriptor is open, was open before this program made any of its own, and the
    // flag makes sure that nobody else has been given it here.
    Ok(unsafe { OwnedFd::from_raw_fd(LISTEN_FD) })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_read_lands_behind_what_the_buffer_holds() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"put 0 0").unwrap();
        let mut buffer = b"> ".to_vec();
        assert_eq!(read_append(far.as_fd(), &mut buffer, 3).unwrap(), 3);
        assert_eq!(read_append(far.as_fd(), &mut buffer, 64).unwrap(), 4);
        assert_eq!(buffer, b"> put 0 0");
    }

    #[test]
    fn a_buffer_with_room_is_not_moved() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"x").unwrap();
        let mut buffer = Vec::with_capacity(16);
        let before = buffer.as_ptr();
        read_append(far.as_fd(), &mut buffer, 16).unwrap();
        assert_eq!((buffer.as_ptr(), buffer.capacity()), (before, 16));
    }

    #[test]
    fn the_end_of_input_is_zero_and_no_input_is_would_block() {
        let (near, far) = UnixStream::pair().unwrap();
        set_nonblocking(far.as_fd()).unwrap();
        let mut buffer = Vec::new();
        let error = read_append(far.as_fd(), &mut buffer, 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(near);
        assert_eq!(read_append(far.as_fd(), &mut buffer, 8).unwrap(), 0);
        assert!(buffer.is_empty());
    }

    #[test]
    fn close_on_exec_goes_both_ways() {
        let (near, _far) = UnixStream::pair().unwrap();
        for close in [false, true] {
            set_close_on_exec(near.as_fd(), close).unwrap();
            let flags = FdFlag::from_bits_retain(fcntl(&near, FcntlArg::F_GETFD).unwrap());
            assert_eq!(flags.contains(FdFlag::FD_CLOEXEC), close);
        }
    }
}
