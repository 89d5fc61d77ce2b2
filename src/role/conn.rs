//! A conn: a client's socket, what it has sent that could not be obeyed yet, and what is asked of
//! the poller about it.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use crate::base::ids::SessionId;
use crate::base::limits::{READ_AHEAD_BYTES_MAX, WRITE_PIECES_MAX};
use crate::base::time::Nanos;
use crate::net::stream::{Stream, WriteOutcome};
use crate::session::reply::Replies;
use crate::session::table::Fed;
use crate::sys::poller::{Interest, Poller};

/// See the module's description.
pub(super) struct Conn {
    pub(super) stream: Stream,
    pub(super) session: SessionId,
    /// Input that has not been obeyed. No memory while there is none.
    pub(super) unread: Vec<u8>,
    pub(super) interest: Interest,
    /// Replies could not be sent: the socket was full.
    pub(super) is_full: bool,
    /// The client sends nothing more.
    pub(super) has_ended: bool,
    /// Nobody is there any more to whom something could be sent. The poller would report that for
    /// ever, so it watches the conn only while there is something to be read.
    pub(super) is_gone: bool,
    /// Why the session has stopped obeying, the last time it was given something.
    pub(super) fed: Fed,
    /// It is in the list of those to be written to at the end of the turn.
    pub(super) is_dirty: bool,
    /// It is in the list of those whose replies wait to be confirmed.
    pub(super) is_held: bool,
    /// Until when its replies are kept for more to come, if they are.
    pub(super) kept_until: Option<Nanos>,
}

impl Conn {
    pub(super) fn new(stream: Stream, session: SessionId) -> Conn {
        Conn {
            stream,
            session,
            unread: Vec::new(),
            interest: Interest::READ,
            is_full: false,
            has_ended: false,
            is_gone: false,
            fed: Fed::WantsMore,
            is_dirty: false,
            is_held: false,
            kept_until: None,
        }
    }

    /// Sends as much of the replies as the socket takes. If nobody is there they are thrown away.
    pub(super) fn send(&mut self, replies: &mut Replies) -> io::Result<()> {
        if self.is_gone {
            self.throw_away(replies);
        }
        while !self.is_full && !replies.is_empty() {
            let mut pieces = [&[][..]; WRITE_PIECES_MAX];
            let filled = replies.slices(&mut pieces);
            let len: usize = pieces[..filled].iter().map(|piece| piece.len()).sum();
            match self
                .stream
                .write_vectored(&pieces.map(IoSlice::new)[..filled])?
            {
                WriteOutcome::Bytes(sent) => {
                    replies.advance(sent);
                    self.is_full = sent < len;
                }
                WriteOutcome::WouldBlock => self.is_full = true,
            }
        }
        Ok(())
    }

    /// Takes note that the replies are sent, though they are not.
    pub(super) fn throw_away(&self, replies: &mut Replies) {
        debug_assert!(self.is_gone, "there is nobody who would read them");
        replies.advance(replies.len());
    }

    /// Takes note that nobody is there any more, and has the poller forget it. What has been read
    /// is still obeyed.
    pub(super) fn lose_peer(&mut self, poller: &Poller) -> io::Result<()> {
        if self.is_watched() {
            poller.forget(self.stream.as_fd())?;
        }
        self.is_gone = true;
        self.is_full = false;
        self.interest = Interest::NONE;
        Ok(())
    }

    /// Asks the poller for what is wanted of it.
    pub(super) fn update_interest(&mut self, key: usize, poller: &Poller) -> io::Result<()> {
        let (wanted, fd) = (self.wanted_interest(), self.stream.as_fd());
        if wanted == self.interest {
            return Ok(());
        }
        if !self.is_gone {
            poller.change(fd, key, wanted)?;
        } else if wanted == Interest::NONE {
            poller.forget(fd)?;
        } else {
            poller.watch(fd, key, wanted)?;
        }
        self.interest = wanted;
        Ok(())
    }

    /// Whether the poller knows it.
    pub(super) fn is_watched(&self) -> bool {
        !self.is_gone || self.interest != Interest::NONE
    }

    /// Whether the conn is to be closed when everything is answered and sent: the client has quit,
    /// or sends nothing more and has nothing left that could be obeyed.
    pub(super) fn is_over(&self) -> bool {
        match self.fed {
            Fed::Closing => true,
            Fed::WantsMore => self.has_ended,
            Fed::Waits => self.has_ended && self.unread.is_empty(),
        }
    }

    /// What the poller should be asked. While replies cannot be sent nothing is read, so that a
    /// client that does not read its replies cannot make more of them. A client that waits in a
    /// reserve is read all the same, up to a limit, because its end is only seen by reading.
    fn wanted_interest(&self) -> Interest {
        if self.is_full {
            Interest::WRITE
        } else if self.has_ended
            || self.fed == Fed::Closing
            || self.unread.len() >= READ_AHEAD_BYTES_MAX
        {
            Interest::NONE
        } else {
            Interest::READ
        }
    }
}
