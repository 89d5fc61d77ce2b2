//! The socket between the supervisor and one child: what both have to say, in frames of the wire,
//! and with some of it a descriptor. It never waits.
//!
//! A turn reads once ([`ControlSocket::read`]), takes what is there as a whole
//! ([`ControlSocket::next_message`]), says what there is to say ([`ControlSocket::push`]) and
//! writes ([`ControlSocket::flush`]). Both directions have a limit.
//!
//! A stream does not say where in it a descriptor belongs, only that none comes later than the
//! first byte that it was sent with. So what arrives is matched in order: a message that brings a
//! descriptor takes the next one. It is sent with the first byte of its message, and a message
//! that brings none is never sent together with it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::base::ids::Seq;
use crate::base::limits::{
    CONTROL_BACKLOG_BYTES_MAX, CONTROL_BACKLOG_FDS_MAX, CONTROL_KEEP_BYTES_MAX,
    CONTROL_READ_BYTES_MAX, HEADER_LEN, META_LEN_MAX,
};
use crate::net::stream::Stream;
use crate::sys::fd::pass::{PassError, receive_with_fds, send_with_fds};
use crate::sys::poller::Interest;
use crate::wire::control::{Control, decode};
use crate::wire::frame::{Frame, Head, write_bare};
use crate::wire::header::Expected;
use crate::wire::kind::{ControlKind, Kind, Sender};
use crate::wire::refusal::{DecodeError, Refusal};
use crate::wire::setup::NO_ENDS;

/// Why a control socket is lost.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// It cannot be read any more.
    #[error("cannot read from the control socket")]
    Read {
        /// What went wrong.
        source: PassError,
    },
    /// It cannot be written any more. What the peer said before it went can still be read.
    #[error("cannot write to the control socket")]
    Write {
        /// What went wrong.
        source: PassError,
    },
    /// What comes is no frame that may come here.
    #[error("what comes over the control socket has no place there")]
    Refused {
        /// What is wrong with it.
        source: Refusal,
    },
    /// What comes is a frame that says nothing.
    #[error("what comes over the control socket says nothing")]
    Unreadable {
        /// What is wrong with it.
        source: DecodeError,
    },
    /// A message has come without its descriptor.
    #[error("a message of kind {kind:?} came without its descriptor")]
    NoDescriptor {
        /// What the message is.
        kind: ControlKind,
    },
    /// Descriptors have come without a message.
    #[error("{count} descriptors came without a message")]
    SpareDescriptors {
        /// How many.
        count: usize,
    },
    /// The peer has gone in the middle of a message.
    #[error("the control socket ends within a message, of which {len} bytes came")]
    Cut {
        /// How many bytes of it have come.
        len: usize,
    },
    /// The peer reads nothing, so it cannot be told any more.
    #[error("{len} bytes for the control socket wait already, {CONTROL_BACKLOG_BYTES_MAX} at most")]
    Backlog {
        /// Bytes that wait.
        len: usize,
    },
}

impl ControlError {
    /// Whether all that is wrong is that the peer has closed its end. Reading tells what it said
    /// before, and then the end.
    #[must_use]
    pub fn is_peer_gone(&self) -> bool {
        match self {
            ControlError::Write {
                source: PassError::Send { source },
            } => matches!(
                source.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            ),
            _ => false,
        }
    }
}

/// What reading came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRead {
    /// Some bytes. There may be more in the next turn.
    Bytes,
    /// Nothing now, or nothing until messages are taken.
    Nothing,
    /// The peer has closed its end. Its last messages may have come before.
    End,
}

/// See the module's description. Closed when dropped, with all descriptors that are under way.
#[derive(Debug)]
pub struct ControlSocket {
    stream: Stream,
    /// What the process at the other end is.
    peer: Sender,
    incoming: Vec<u8>,
    /// Bytes at the start of `incoming` that are taken.
    taken: usize,
    /// Descriptors that have come and are not taken.
    came: VecDeque<OwnedFd>,
    has_ended: bool,
    outgoing: Vec<u8>,
    /// Bytes at the start of `outgoing` that are sent.
    sent: usize,
    /// Descriptors on their way out, each with the number of bytes of `outgoing` before its
    /// message.
    going: VecDeque<(usize, OwnedFd)>,
}

impl ControlSocket {
    /// The socket to a `peer`: in a child to [`Sender::Supervisor`], in the supervisor to a
    /// child's role.
    #[must_use]
    pub fn new(stream: Stream, peer: Sender) -> ControlSocket {
        ControlSocket {
            stream,
            peer,
            incoming: Vec::new(),
            taken: 0,
            came: VecDeque::new(),
            has_ended: false,
            outgoing: Vec::new(),
            sent: 0,
            going: VecDeque::new(),
        }
    }

    /// Reads what there is, up to the limit of one turn. A peer that has gone is an end, not an
    /// error, whether or not it had read everything.
    ///
    /// # Errors
    /// [`ControlError::Read`].
    pub fn read(&mut self) -> Result<ControlRead, ControlError> {
        self.incoming.drain(..self.taken);
        self.taken = 0;
        if self.incoming.is_empty() {
            self.incoming.shrink_to(CONTROL_KEEP_BYTES_MAX);
        }
        // What is not taken is part of a message, unless the caller has left some.
        let limit = CONTROL_READ_BYTES_MAX.saturating_sub(self.incoming.len());
        if self.has_ended {
            return Ok(ControlRead::End);
        }
        if limit == 0 {
            return Ok(ControlRead::Nothing);
        }
        let mut came = Vec::new();
        let got = receive_with_fds(self.stream.as_fd(), &mut self.incoming, limit, &mut came);
        self.came.extend(came);
        match got {
            Ok(Some(0)) => self.has_ended = true,
            Ok(Some(_)) => return Ok(ControlRead::Bytes),
            Ok(None) => return Ok(ControlRead::Nothing),
            Err(PassError::Receive { source })
                if source.kind() == io::ErrorKind::ConnectionReset =>
            {
                self.has_ended = true;
            }
            Err(source) => return Err(ControlError::Read { source }),
        }
        Ok(ControlRead::End)
    }

    /// The next message, with its descriptor if it is one of those that bring one: the [`Setup`]
    /// of a frontend, and each [`Control::Link`]. Nothing if it is not there as a whole.
    ///
    /// [`Setup`]: Control::Setup
    ///
    /// # Errors
    /// Whatever is wrong with what has come; the socket is of no use then.
    pub fn next_message(&mut self) -> Result<Option<(Control<'_>, Option<OwnedFd>)>, ControlError> {
        let before = &self.incoming[self.taken..];
        let mut rest = before;
        let expected = Expected {
            ends: NO_ENDS,
            from: self.peer,
            body_len_max: 0,
        };
        let refused = |source| ControlError::Refused { source };
        let Some(frame) = Frame::cut(&mut rest, &expected).map_err(refused)? else {
            return self.at_the_end_of_input();
        };
        self.taken += before.len() - rest.len();
        let kind = check_head(&frame).map_err(refused)?;
        let control =
            decode(kind, frame.meta).map_err(|source| ControlError::Unreadable { source })?;
        let descriptor = if brings_descriptor(&control) {
            let came = self.came.pop_front();
            Some(came.ok_or(ControlError::NoDescriptor { kind })?)
        } else {
            None
        };
        Ok(Some((control, descriptor)))
    }

    /// Judges what is left when there is no whole message.
    fn at_the_end_of_input(
        &self,
    ) -> Result<Option<(Control<'static>, Option<OwnedFd>)>, ControlError> {
        let len = self.incoming.len() - self.taken;
        if self.has_ended && len > 0 {
            return Err(ControlError::Cut { len });
        }
        // A descriptor comes with a byte of its message, of which one at most is unfinished.
        let count = self.came.len();
        if count > usize::from(len > 0) {
            return Err(ControlError::SpareDescriptors { count });
        }
        Ok(None)
    }

    /// Whether the peer has closed its end.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Appends a message to what is on its way out. `descriptor` goes along, and is closed here
    /// when it is sent.
    ///
    /// # Errors
    /// [`ControlError::Backlog`]; nothing is appended, and the descriptor is closed.
    ///
    /// # Panics
    /// If there is a descriptor with a message that brings none, or none with one that does.
    pub fn push(
        &mut self,
        control: &Control<'_>,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), ControlError> {
        assert_eq!(
            descriptor.is_some(),
            brings_descriptor(control),
            "a message has the descriptors that it speaks of"
        );
        let len = self.outgoing.len() - self.sent;
        if len > CONTROL_BACKLOG_BYTES_MAX || self.going.len() >= CONTROL_BACKLOG_FDS_MAX {
            return Err(ControlError::Backlog { len });
        }
        if let Some(descriptor) = descriptor {
            self.going.push_back((self.outgoing.len(), descriptor));
        }
        let head = Head::apart(NO_ENDS, Kind::Control(control.kind()));
        write_bare(&mut self.outgoing, head, |out| control.write_fields(out));
        Ok(())
    }

    /// Writes what is on its way out, as much as the socket takes.
    ///
    /// # Errors
    /// [`ControlError::Write`].
    pub fn flush(&mut self) -> Result<(), ControlError> {
        while self.sent < self.outgoing.len() {
            let mut until = self.outgoing.len();
            let mut with = None;
            for (at, descriptor) in self.going.iter().take(2) {
                if *at == self.sent {
                    with = Some(descriptor.as_fd());
                } else {
                    until = *at;
                    break;
                }
            }
            let bytes = &self.outgoing[self.sent..until];
            let sent = send_with_fds(self.stream.as_fd(), bytes, with.as_slice());
            match sent.map_err(|source| ControlError::Write { source })? {
                None => return Ok(()),
                Some(len) => {
                    if with.is_some() {
                        self.going.pop_front();
                    }
                    self.sent += len;
                }
            }
            self.settle();
        }
        Ok(())
    }

    /// Lets go of sent bytes once they are at least half of all.
    fn settle(&mut self) {
        if self.sent < self.outgoing.len() - self.sent {
            return;
        }
        self.outgoing.drain(..self.sent);
        for (at, _) in &mut self.going {
            *at -= self.sent;
        }
        self.sent = 0;
        if self.outgoing.is_empty() {
            self.outgoing.shrink_to(CONTROL_KEEP_BYTES_MAX);
        }
    }

    /// What to wait for: input until the end of it, and room for output if there is something to
    /// write.
    #[must_use]
    pub fn interest(&self) -> Interest {
        Interest {
            readable: !self.has_ended,
            writable: self.sent < self.outgoing.len(),
        }
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

const _: () = assert!(
    CONTROL_READ_BYTES_MAX >= HEADER_LEN + META_LEN_MAX,
    "a whole message, which has no body, can be there"
);

/// What the frame says, if it is about no session and of a kind that has a place here.
fn check_head(frame: &Frame<'_>) -> Result<ControlKind, Refusal> {
    let Kind::Control(kind) = frame.header.kind else {
        return Err(Refusal::Kind);
    };
    if frame.header.session != 0 {
        return Err(Refusal::Session);
    }
    if frame.header.request != Seq::NONE {
        return Err(Refusal::Request);
    }
    match kind {
        ControlKind::Hello
        | ControlKind::Credit
        | ControlKind::Refused
        | ControlKind::Attach
        | ControlKind::Detach => Err(Refusal::Kind),
        ControlKind::Goodbye
        | ControlKind::Ping
        | ControlKind::Pong
        | ControlKind::Drain
        | ControlKind::AskCounts
        | ControlKind::Counts
        | ControlKind::Setup
        | ControlKind::Ready
        | ControlKind::Link
        | ControlKind::LinkLost => Ok(kind),
    }
}

/// Whether a descriptor belongs to the message.
fn brings_descriptor(control: &Control<'_>) -> bool {
    match control {
        Control::Setup(setup) => setup.role == Sender::Frontend,
        Control::Link(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
