//! A connected socket that never waits, TCP or Unix. What a read or a write came to is told apart
//! from what is an error, so that a full socket or the end of input needs no second look.

use std::io::{self, IoSlice, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use socket2::{Domain, Socket, Type};

use crate::net::address::Address;
use crate::sys::fd;

/// Most pieces that the supported systems take in one gathered write.
const IO_SLICES_MAX: usize = 1024;

/// A client that has gone is an error of the write and must not raise SIGPIPE. On macOS the socket
/// carries that as an option, set when it was made.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: libc::c_int = libc::MSG_NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: libc::c_int = 0;

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing now.
    WouldBlock,
    /// The peer has ended its output: nothing any more.
    End,
}

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// So many bytes were taken, maybe not all.
    Bytes(usize),
    /// The socket is full.
    WouldBlock,
}

/// See the module's description. Closed when dropped.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
}

impl Stream {
    /// Wraps a connected socket, which has to be non-blocking.
    #[must_use]
    pub fn new(socket: Socket) -> Stream {
        Stream { socket }
    }

    /// Two Unix streams that are connected to each other, both closed on exec. They have no name,
    /// so nobody else can connect to them.
    ///
    /// # Errors
    /// If the system refuses, usually for lack of descriptors.
    pub fn pair() -> io::Result<(Stream, Stream)> {
        let (near, far) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
        Ok((
            Stream::try_from(OwnedFd::from(near))?,
            Stream::try_from(OwnedFd::from(far))?,
        ))
    }

    /// Reads once into `buf`, which must not be empty.
    ///
    /// # Errors
    /// What the system reports about the connection, such as a reset by the peer; there is no more
    /// input then. An interrupted read is tried again.
    pub fn read(&self, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        debug_assert!(!buf.is_empty(), "a read into nothing looks like the end");
        loop {
            match read_outcome((&self.socket).read(buf)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Appends to `into` what one read of at most `limit` bytes brings; `limit` is not zero. Room
    /// is made where there is none.
    ///
    /// # Errors
    /// As [`Stream::read`].
    pub fn read_append(&self, into: &mut Vec<u8>, limit: usize) -> io::Result<ReadOutcome> {
        debug_assert!(limit > 0, "a read of nothing looks like the end");
        read_outcome(fd::read_append(self.socket.as_fd(), into, limit))
    }

    /// Writes as much of `pieces`, one after the other, as the socket takes at once. Of more than
    /// 1024 pieces only the first 1024 are tried.
    ///
    /// # Errors
    /// What the system reports about the connection; nothing can be written any more. An
    /// interrupted write is tried again, and SIGPIPE is not raised.
    pub fn write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<WriteOutcome> {
        let pieces = &pieces[..pieces.len().min(IO_SLICES_MAX)];
        loop {
            let sent = match pieces {
                // The common case, and the cheaper call.
                [piece] => self.socket.send_with_flags(piece, SEND_FLAGS),
                _ => self.socket.send_vectored_with_flags(pieces, SEND_FLAGS),
            };
            match sent {
                Ok(len) => return Ok(WriteOutcome::Bytes(len)),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return Ok(WriteOutcome::WouldBlock),
                    _ => return Err(error),
                },
            }
        }
    }

    /// Where the peer is, for logs. Asks the system each time.
    #[must_use]
    pub fn peer(&self) -> Address {
        self.socket
            .peer_addr()
            .map_or(Address::Unknown, |address| Address::from(&address))
    }
}

/// Takes over a connected socket that somebody else has made, and makes it non-blocking.
impl TryFrom<OwnedFd> for Stream {
    type Error = io::Error;

    fn try_from(descriptor: OwnedFd) -> io::Result<Stream> {
        fd::set_nonblocking(descriptor.as_fd())?;
        Ok(Stream::new(Socket::from(descriptor)))
    }
}

/// To hand it to another process.
impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> OwnedFd {
        stream.socket.into()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn read_outcome(read: io::Result<usize>) -> io::Result<ReadOutcome> {
    match read {
        Ok(0) => Ok(ReadOutcome::End),
        Ok(len) => Ok(ReadOutcome::Bytes(len)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(ReadOutcome::WouldBlock),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    use super::*;

    fn pair() -> (UnixStream, Stream) {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        (near, Stream::new(Socket::from(OwnedFd::from(far))))
    }

    #[test]
    fn bytes_nothing_and_the_end_are_told_apart() {
        let (mut near, far) = pair();
        let mut buf = [0; 8];
        assert_eq!(far.read(&mut buf).unwrap(), ReadOutcome::WouldBlock);
        near.write_all(b"abc").unwrap();
        assert_eq!(far.read(&mut buf).unwrap(), ReadOutcome::Bytes(3));
        assert_eq!(&buf[..3], b"abc");
        near.write_all(b"def").unwrap();
        drop(near);
        let mut more = Vec::new();
        assert_eq!(
            far.read_append(&mut more, 2).unwrap(),
            ReadOutcome::Bytes(2)
        );
        assert_eq!(
            far.read_append(&mut more, 2).unwrap(),
            ReadOutcome::Bytes(1)
        );
        assert_eq!(far.read_append(&mut more, 2).unwrap(), ReadOutcome::End);
        assert_eq!(far.read(&mut buf).unwrap(), ReadOutcome::End);
        assert_eq!(more, b"def");
    }

    #[test]
    fn pieces_arrive_in_order() {
        let (mut near, far) = pair();
        let none: [IoSlice<'_>; 0] = [];
        assert_eq!(far.write_vectored(&none).unwrap(), WriteOutcome::Bytes(0));
        let one = [IoSlice::new(b"RESERVED")];
        assert_eq!(far.write_vectored(&one).unwrap(), WriteOutcome::Bytes(8));
        let two = [IoSlice::new(b" 1"), IoSlice::new(b" 0\r\n")];
        assert_eq!(far.write_vectored(&two).unwrap(), WriteOutcome::Bytes(6));
        drop(far);
        let mut got = String::new();
        near.read_to_string(&mut got).unwrap();
        assert_eq!(got, "RESERVED 1 0\r\n");
    }

    #[test]
    fn more_pieces_than_the_system_takes_are_written_in_part() {
        let (_near, far) = pair();
        let pieces = vec![IoSlice::new(b"x"); IO_SLICES_MAX + 1];
        assert_eq!(
            far.write_vectored(&pieces).unwrap(),
            WriteOutcome::Bytes(IO_SLICES_MAX)
        );
    }

    #[test]
    fn a_full_socket_would_block_and_a_lost_peer_is_an_error() {
        let (near, far) = pair();
        let block = [0; 65_536];
        let piece = [IoSlice::new(&block)];
        while far.write_vectored(&piece).unwrap() != WriteOutcome::WouldBlock {}
        drop(near);
        let error = far.write_vectored(&piece).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_pair_never_waits_and_is_closed_on_exec() {
        let (near, far) = Stream::pair().unwrap();
        for end in [&near, &far] {
            assert_eq!(end.read(&mut [0]).unwrap(), ReadOutcome::WouldBlock);
            let flags = fcntl(end.as_fd(), FcntlArg::F_GETFD).unwrap();
            assert!(FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));
        }
        let far = Stream::try_from(OwnedFd::from(far)).unwrap();
        far.write_vectored(&[IoSlice::new(b"x")]).unwrap();
        assert_eq!(near.read(&mut [0]).unwrap(), ReadOutcome::Bytes(1));
    }

    #[test]
    fn a_peer_without_a_name_is_just_unix() {
        let (_near, far) = pair();
        assert_eq!(far.peer().to_string(), "unix");
    }
}
