//! What has come over a link and is not taken yet.

use std::io;

use crate::base::limits::LINK_KEEP_BYTES_MAX;
use crate::net::stream::{ReadOutcome, Stream};

/// Why what comes cannot be cut into frames. The link is lost: nobody knows where the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError<E: std::error::Error + 'static> {
    /// The frame at the start is none.
    #[error("what the peer sends is no frame")]
    Unreadable {
        /// What is wrong with it.
        source: E,
    },
    /// The frame at the start claims a length that no frame has.
    #[error("the peer sends a frame of {len} bytes, 1 to {max} are possible")]
    Length {
        /// What it claims; what has come of it, if it does not tell a length by then.
        len: usize,
        /// Longest frame in bytes.
        max: usize,
    },
}

/// See the module's description. Holds no more bytes than the longest frame and what one turn
/// reads, whatever the peer sends or claims.
#[derive(Debug)]
pub struct Incoming {
    buffer: Vec<u8>,
    /// Bytes at the start of `buffer` that are taken.
    taken: usize,
    frame_len_max: usize,
    len_max: usize,
}

impl Incoming {
    pub(super) fn new(frame_len_max: usize, read_bytes_max: usize) -> Incoming {
        Incoming {
            buffer: Vec::new(),
            taken: 0,
            frame_len_max,
            len_max: frame_len_max + read_bytes_max,
        }
    }

    /// Bytes that are not taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len() - self.taken
    }

    /// Whether everything is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next frame, if it is there as a whole. `len_of` says how long the frame is that
    /// its argument begins with, or nothing if it takes more bytes to know; it is not asked about
    /// nothing.
    ///
    /// # Errors
    /// [`FrameError`]. The same again if it is called again.
    pub fn next_frame<E: std::error::Error + 'static>(
        &mut self,
        len_of: impl FnOnce(&[u8]) -> Result<Option<usize>, E>,
    ) -> Result<Option<&[u8]>, FrameError<E>> {
        let there = &self.buffer[self.taken..];
        if there.is_empty() {
            return Ok(None);
        }
        let max = self.frame_len_max;
        let len = match len_of(there).map_err(|source| FrameError::Unreadable { source })? {
            Some(len) if len == 0 || len > max => return Err(FrameError::Length { len, max }),
            Some(len) => len,
            None if there.len() > max => {
                let len = there.len();
                return Err(FrameError::Length { len, max });
            }
            None => return Ok(None),
        };
        if there.len() < len {
            return Ok(None);
        }
        let start = self.taken;
        self.taken += len;
        Ok(Some(&self.buffer[start..self.taken]))
    }

    /// Bytes that may still come before some are taken.
    pub(super) fn room(&self) -> usize {
        self.len_max - self.len()
    }

    /// Appends what one read of at most `limit` bytes brings, which are not more than there is
    /// room for.
    pub(super) fn fill(&mut self, stream: &Stream, limit: usize) -> io::Result<ReadOutcome> {
        debug_assert!(limit <= self.room(), "what comes has room");
        self.settle();
        stream.read_append(&mut self.buffer, limit)
    }

    /// Moves what is left, mostly part of a frame, to the start, and gives memory back that only a
    /// burst has needed.
    fn settle(&mut self) {
        if self.taken == 0 {
            return;
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        if self.buffer.is_empty() {
            self.buffer.shrink_to(LINK_KEEP_BYTES_MAX);
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}
