//! Handing descriptors from one process to another, over a Unix socket and together with bytes.
//!
//! A stream has no borders, and descriptors do not make any. What holds is that they arrive in the
//! order in which they were sent, and none later than the first byte of what it was sent with. So
//! the bytes have to say how many descriptors belong to them, and who receives keeps the
//! descriptors in a queue until the bytes that ask for them are whole.
//!
//! The calls are made by hand, because the control data decides who owns a descriptor: whatever
//! the kernel has installed has an owner here before anything is judged, so that an error closes
//! it instead of leaving it open for ever.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::base::limits::PASSED_FDS_MAX;

/// Room for control data in words: its header and the descriptors. There is some to spare, which
/// lets one message too many be seen as such; more than that the kernel itself cuts off.
const CONTROL_WORDS: usize = 8 + PASSED_FDS_MAX * size_of::<RawFd>() / size_of::<u64>();

const _: () = assert!(
    {
        // SAFETY: a calculation that reads no memory.
        let space = unsafe { libc::CMSG_SPACE((PASSED_FDS_MAX * size_of::<RawFd>()) as _) };
        space as usize <= CONTROL_WORDS * size_of::<u64>()
    },
    "the largest message has room"
);

/// A peer that has gone is an error of the call and must not raise SIGPIPE. On macOS the socket
/// carries that as an option, set when it was made.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: libc::c_int = libc::MSG_NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: libc::c_int = 0;

/// What comes is closed on exec from its first moment on, where the system can do that.
#[cfg(not(target_vendor = "apple"))]
const RECEIVE_FLAGS: libc::c_int = libc::MSG_CMSG_CLOEXEC;
#[cfg(target_vendor = "apple")]
const RECEIVE_FLAGS: libc::c_int = 0;

/// Why descriptors could not be handed over. No descriptor is left open by any of them.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// More than fit one message. Nothing was sent.
    #[error("cannot hand over {count} descriptors at once, {PASSED_FDS_MAX} at most")]
    TooMany {
        /// How many there were.
        count: usize,
    },
    /// Descriptors were lost on their way: the peer sent more than fit one message, or this
    /// process may not open as many. What came of them is closed, and the bytes are gone.
    #[error("descriptors were lost on their way, {count} came")]
    Truncated {
        /// How many came, and are closed.
        count: usize,
    },
    /// The system refused to send.
    #[error("cannot send descriptors")]
    Send {
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to receive.
    #[error("cannot receive descriptors")]
    Receive {
        /// What the system said.
        source: io::Error,
    },
}

/// Sends `bytes`, of which there has to be at least one, and with them `fds`, of which there may
/// be none. The caller's descriptors stay open. Returns how many bytes were taken, or nothing if
/// the socket is full. If any byte is taken, all the descriptors are: the rest of the bytes has to
/// be sent without.
///
/// # Errors
/// [`PassError::TooMany`] or [`PassError::Send`]. An interrupted call is made again.
pub fn send_with_fds(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<Option<usize>, PassError> {
    debug_assert!(!bytes.is_empty(), "descriptors travel with a byte");
    if fds.len() > PASSED_FDS_MAX {
        return Err(PassError::TooMany { count: fds.len() });
    }
    let mut control = [0; CONTROL_WORDS];
    let mut piece = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut header = message(&mut piece, &mut control);
    if fds.is_empty() {
        header.msg_control = ptr::null_mut();
        header.msg_controllen = 0;
    } else {
        write_rights(&mut header, fds);
    }
    // SAFETY: all that the header points to outlives the call, and none of it is written to.
    let sent =
        repeat(|| unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, SEND_FLAGS) });
    sent.map_err(|source| PassError::Send { source })
}

/// Appends to `into` what one call of at most `limit` bytes brings, and to `fds` the descriptors
/// that came with it, which are closed on exec. Returns how many bytes those are, zero at the end
/// of input, or nothing if there is none now. Bytes that were sent with different descriptors may
/// come together, see above.
///
/// # Errors
/// [`PassError::Truncated`] or [`PassError::Receive`]; `into` and `fds` are as they were. An
/// interrupted call is made again.
pub fn receive_with_fds(
    socket: BorrowedFd<'_>,
    into: &mut Vec<u8>,
    limit: usize,
    fds: &mut Vec<OwnedFd>,
) -> Result<Option<usize>, PassError> {
    debug_assert!(limit > 0, "a read of nothing looks like the end");
    into.reserve(limit);
    let spare = into.spare_capacity_mut();
    let mut piece = libc::iovec {
        iov_base: spare.as_mut_ptr().cast(),
        iov_len: limit.min(spare.len()),
    };
    let mut control = [0; CONTROL_WORDS];
    let mut header = message(&mut piece, &mut control);
    let raw = socket.as_raw_fd();
    // SAFETY: the header points to memory that outlives the call and may be written: the unused
    // part of `into`, and `control`.
    let got = repeat(|| unsafe { libc::recvmsg(raw, &raw mut header, RECEIVE_FLAGS) });
    let Some(got) = got.map_err(|source| PassError::Receive { source })? else {
        return Ok(None);
    };
    let came = take_rights(&header);
    if header.msg_flags & libc::MSG_CTRUNC != 0 || came.len() > PASSED_FDS_MAX {
        return Err(PassError::Truncated { count: came.len() });
    }
    #[cfg(target_vendor = "apple")]
    for fd in &came {
        use std::os::fd::AsFd;
        super::set_close_on_exec(fd.as_fd(), true)
            .map_err(|source| PassError::Receive { source })?;
    }
    let len = into.len() + got;
    // SAFETY: the kernel has just written the `got` bytes behind the old length, which lie within
    // the capacity.
    unsafe { into.set_len(len) };
    fds.extend(came);
    Ok(Some(got))
}

/// A header of one piece of bytes and all of `control`.
fn message(piece: &mut libc::iovec, control: &mut [u64; CONTROL_WORDS]) -> libc::msghdr {
    // SAFETY: integers and pointers, for which zero is a value. It is not written as a literal
    // because some systems have padding with a name.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = piece;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(control) as _;
    header
}

/// Fills the control data of `header`, which has room, with `fds`, and says how long it is.
fn write_rights(header: &mut libc::msghdr, fds: &[BorrowedFd<'_>]) {
    let len = size_of_val(fds);
    // SAFETY: the control data has room for a header and `len` bytes, as was checked when its
    // size was chosen and their number was limited, and a borrowed descriptor is its number. The
    // first header lies at the start of the room, which is aligned for it; its data need not be.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(len as _) as _;
        let first = libc::CMSG_FIRSTHDR(header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(len as _) as _;
        ptr::copy_nonoverlapping(fds.as_ptr().cast::<u8>(), libc::CMSG_DATA(first), len);
    }
}

/// Takes ownership of every descriptor in the control data of `header`, just received.
#[allow(
    clippy::unnecessary_cast,
    reason = "the type of the length differs between systems"
)]
fn take_rights(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut came = Vec::new();
    // SAFETY: the kernel has filled the control data, and the macros stay within the length that
    // it has set. Each descriptor named there was installed for us by this call alone, so nobody
    // else owns it. A message that is cut off has the length of what is there.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while let Some(cmsg) = next.as_ref() {
            if cmsg.cmsg_level == libc::SOL_SOCKET && cmsg.cmsg_type == libc::SCM_RIGHTS {
                let len = (cmsg.cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(cmsg).cast::<RawFd>();
                for index in 0..len / size_of::<RawFd>() {
                    came.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            next = libc::CMSG_NXTHDR(header, cmsg);
        }
    }
    came
}

/// Makes a call until it is not interrupted; nothing if it would have to wait.
fn repeat(mut call: impl FnMut() -> isize) -> io::Result<Option<usize>> {
    loop {
        if let Ok(count) = usize::try_from(call()) {
            return Ok(Some(count));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => return Ok(None),
            _ => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        (near, far)
    }

    /// Sends one end each of `count` pairs, more than allowed if need be, and returns the others.
    fn send(socket: &UnixStream, bytes: &[u8], count: usize) -> Vec<UnixStream> {
        let (kept, sent): (Vec<_>, Vec<_>) = (0..count).map(|_| pair()).unzip();
        let borrowed: Vec<_> = sent.iter().map(AsFd::as_fd).collect();
        let taken = send_with_fds(socket.as_fd(), bytes, &borrowed).unwrap();
        assert_eq!(taken, Some(bytes.len()));
        kept
    }

    /// Whether the other end of `stream` is closed everywhere.
    fn is_alone(mut stream: &UnixStream) -> bool {
        matches!(stream.read(&mut [0]), Ok(0))
    }

    #[test]
    fn descriptors_come_in_order_with_their_bytes_and_close_on_exec() {
        let (near, far) = pair();
        let kept = send(&near, b"links", PASSED_FDS_MAX);
        let (mut bytes, mut fds) = (b"> ".to_vec(), Vec::new());
        let got = receive_with_fds(far.as_fd(), &mut bytes, 64, &mut fds).unwrap();
        assert_eq!((got, bytes.as_slice()), (Some(5), &b"> links"[..]));
        assert_eq!(fds.len(), PASSED_FDS_MAX);
        for (index, (mut kept, fd)) in kept.iter().zip(fds).enumerate() {
            let flags = FdFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFD).unwrap());
            assert!(flags.contains(FdFlag::FD_CLOEXEC));
            kept.write_all(&[index as u8]).unwrap();
            let mut one = [0];
            File::from(fd).read_exact(&mut one).unwrap();
            assert_eq!(usize::from(one[0]), index);
            assert!(is_alone(kept));
        }
    }

    #[test]
    fn descriptors_do_not_come_later_than_the_bytes_they_were_sent_with() {
        let (near, far) = pair();
        assert_eq!(send_with_fds(near.as_fd(), b"ab", &[]).unwrap(), Some(2));
        let _kept = (send(&near, b"cd", 1), send(&near, b"ef", 2));
        let (mut bytes, mut fds) = (Vec::new(), Vec::new());
        while bytes.len() < 6 {
            let before = bytes.len();
            let got = receive_with_fds(far.as_fd(), &mut bytes, 1, &mut fds).unwrap();
            assert_eq!(got, Some(1));
            let expected = [0, 0, 1, 1, 3, 3][before];
            assert!(fds.len() >= expected, "at byte {before}");
        }
        assert_eq!((bytes.as_slice(), fds.len()), (&b"abcdef"[..], 3));
    }

    #[test]
    fn a_full_socket_no_input_and_the_end_are_told_apart() {
        let (near, far) = pair();
        let (mut bytes, mut fds) = (Vec::new(), Vec::new());
        let got = receive_with_fds(far.as_fd(), &mut bytes, 8, &mut fds).unwrap();
        assert_eq!(got, None);
        let block = [0; 65_536];
        while send_with_fds(near.as_fd(), &block, &[far.as_fd()])
            .unwrap()
            .is_some()
        {}
        drop(near);
        let mut last = None;
        while last != Some(0) {
            bytes.clear();
            last = receive_with_fds(far.as_fd(), &mut bytes, 65_536, &mut fds).unwrap();
        }
        assert!(!fds.is_empty());
        let error = send_with_fds(far.as_fd(), b"x", &[]).unwrap_err();
        assert!(matches!(error, PassError::Send { .. }), "{error:?}");
    }

    #[test]
    fn too_many_are_refused_before_anything_is_sent() {
        let (near, far) = pair();
        let many = vec![near.as_fd(); PASSED_FDS_MAX + 1];
        let error = send_with_fds(near.as_fd(), b"x", &many).unwrap_err();
        assert!(matches!(error, PassError::TooMany { count } if count == PASSED_FDS_MAX + 1));
        let got = receive_with_fds(far.as_fd(), &mut Vec::new(), 8, &mut Vec::new()).unwrap();
        assert_eq!(got, None);
    }

    /// What a peer that keeps no limits could send. A little over the limit all of it arrives; far
    /// over it the kernel cuts it off and has opened the first of them.
    #[test]
    fn too_many_that_come_are_closed() {
        for count in [PASSED_FDS_MAX + 1, PASSED_FDS_MAX + 2, 150] {
            let (near, far) = pair();
            let (kept, sent): (Vec<_>, Vec<_>) = (0..count).map(|_| pair()).unzip();
            send_beyond_the_limit(&near, &sent);
            drop(sent);
            let (mut bytes, mut fds) = (Vec::new(), Vec::new());
            let error = receive_with_fds(far.as_fd(), &mut bytes, 8, &mut fds).unwrap_err();
            assert!(matches!(error, PassError::Truncated { .. }), "{error:?}");
            assert!(bytes.is_empty() && fds.is_empty());
            assert!(kept.iter().all(is_alone), "one of {count} is open");
        }
    }

    fn send_beyond_the_limit(socket: &UnixStream, fds: &[UnixStream]) {
        let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [nix::sys::socket::ControlMessage::ScmRights(&raw)];
        let bytes = [io::IoSlice::new(b"x")];
        let flags = nix::sys::socket::MsgFlags::empty();
        nix::sys::socket::sendmsg::<()>(socket.as_raw_fd(), &bytes, &rights, flags, None).unwrap();
    }
}
