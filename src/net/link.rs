//! A link: a Unix stream between two of our processes, cut into frames. It never waits, and knows
//! of a frame only how long it is, which a function of the caller's tells.
//!
//! A turn reads once (`Link::read`), takes the whole frames that are there
//! (`Incoming::next_frame`), appends what there is to say (`Outgoing`) and writes once
//! (`Link::flush`). Both directions have a limit, so that neither a slow peer nor a false one costs
//! memory: what comes is bounded here, and of what goes the link says that it is over its limit
//! (`Outgoing::is_over_limit`). Whoever owns it then gives it nothing more to do and does not read
//! it; nothing is ever thrown away.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use crate::base::limits::{
    FRAME_LEN_MAX, LINK_BACKLOG_BYTES_MAX, LINK_PIECES_MAX, LINK_READ_BYTES_MAX, LINK_READ_LEN_MAX,
};
use crate::net::stream::{ReadOutcome, Stream, WriteOutcome};
use crate::sys::poller::Interest;

mod incoming;
mod outgoing;

pub use incoming::{FrameError, Incoming};
pub use outgoing::Outgoing;

/// Why a link is lost.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It cannot be read any more; a reset by the peer is among it. All that came before can
    /// still be taken.
    #[error("cannot read from the link")]
    Read {
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be written any more. What the peer said before it went can still be read.
    #[error("cannot write to the link")]
    Write {
        /// What the system said.
        source: io::Error,
    },
}

/// How much a link may hold and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Longest frame in bytes that is taken.
    pub frame_len_max: usize,
    /// Bytes that are read in one turn.
    pub read_bytes_max: usize,
    /// Bytes on their way out above which the link is over its limit.
    pub backlog_bytes_max: usize,
}

impl Default for LinkLimits {
    fn default() -> LinkLimits {
        LinkLimits {
            frame_len_max: FRAME_LEN_MAX,
            read_bytes_max: LINK_READ_BYTES_MAX,
            backlog_bytes_max: LINK_BACKLOG_BYTES_MAX,
        }
    }
}

/// What reading a link came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRead {
    /// So many bytes, at least one. There may be more in the next turn.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// Nothing was read, because there is no room: frames have to be taken first.
    Full,
    /// The peer has ended its output. The last frames may have come with it, and [`Link::end`]
    /// tells how it was when they are taken.
    End,
}

/// How the peer's output has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// Between two frames.
    Whole,
    /// Within a frame, of which so many bytes have come.
    InFrame(usize),
}

/// See the module's description. Closed when dropped.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    incoming: Incoming,
    outgoing: Outgoing,
    read_bytes_max: usize,
    has_ended: bool,
}

impl Link {
    /// A link over one end of a connected Unix stream.
    #[must_use]
    pub fn new(stream: Stream, limits: LinkLimits) -> Link {
        Link {
            stream,
            incoming: Incoming::new(limits.frame_len_max, limits.read_bytes_max),
            outgoing: Outgoing::new(limits.backlog_bytes_max),
            read_bytes_max: limits.read_bytes_max,
            has_ended: false,
        }
    }

    /// Reads what there is, up to the limit of one turn.
    ///
    /// # Errors
    /// [`LinkError::Read`]. What was read before the error is kept.
    pub fn read(&mut self) -> Result<LinkRead, LinkError> {
        if self.has_ended {
            return Ok(LinkRead::End);
        }
        let limit = self.incoming.room().min(self.read_bytes_max);
        if limit == 0 {
            return Ok(LinkRead::Full);
        }
        let mut got = 0;
        while got < limit {
            let ask = LINK_READ_LEN_MAX.min(limit - got);
            let outcome = self.incoming.fill(&self.stream, ask);
            match outcome.map_err(|source| LinkError::Read { source })? {
                // A short read has emptied the socket, and what follows is reported again.
                ReadOutcome::Bytes(len) if len < ask => {
                    return Ok(LinkRead::Bytes(got + len));
                }
                ReadOutcome::Bytes(len) => got += len,
                ReadOutcome::WouldBlock => break,
                ReadOutcome::End => {
                    self.has_ended = true;
                    return Ok(LinkRead::End);
                }
            }
        }
        Ok(if got == 0 {
            LinkRead::Nothing
        } else {
            LinkRead::Bytes(got)
        })
    }

    /// Writes once of what is on its way out, as much as the socket takes.
    ///
    /// # Errors
    /// [`LinkError::Write`].
    pub fn flush(&mut self) -> Result<(), LinkError> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let mut pieces = [IoSlice::new(&[]); LINK_PIECES_MAX];
        let filled = self.outgoing.pieces(&mut pieces);
        let written = self.stream.write_vectored(&pieces[..filled]);
        match written.map_err(|source| LinkError::Write { source })? {
            WriteOutcome::Bytes(len) => self.outgoing.advance(len),
            WriteOutcome::WouldBlock => {}
        }
        Ok(())
    }

    /// What comes and what goes, side by side: a frame can be answered while it is looked at.
    pub fn halves(&mut self) -> (&mut Incoming, &mut Outgoing) {
        (&mut self.incoming, &mut self.outgoing)
    }

    /// What is on its way out.
    pub fn outgoing(&mut self) -> &mut Outgoing {
        &mut self.outgoing
    }

    /// How the peer's output has ended, if it has. To be asked when all whole frames are taken.
    #[must_use]
    pub fn end(&self) -> Option<LinkEnd> {
        self.has_ended.then(|| match self.incoming.len() {
            0 => LinkEnd::Whole,
            len => LinkEnd::InFrame(len),
        })
    }

    /// What to wait for: input if `is_read` and there is room for it, and room for output if there
    /// is something to write. A link whose peer has ended is to be forgotten when its last frames
    /// are taken: the poller may report a hangup without end.
    #[must_use]
    pub fn interest(&self, is_read: bool) -> Interest {
        Interest {
            readable: is_read && !self.has_ended && self.incoming.room() > 0,
            writable: !self.outgoing.is_empty(),
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests;
