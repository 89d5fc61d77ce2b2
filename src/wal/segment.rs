//! One file of the binlog: its name, its header, and the records in it one after the other.
//!
//! A file is read through a window that holds one record at a time and some bytes ahead, so memory
//! depends on the largest record and not on the file; a record that claims to be large gets memory
//! only for the bytes that are there.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use crate::wal::record::{Damage, Fault, Record, Stop, Version, first_data, measure};

/// Length of a file's header: the version as a signed number.
pub const HEADER_LEN: usize = 4;

/// Bytes that are read at once, unless a record is longer.
const READ_LEN: usize = 256 * 1024;

/// What a name in a binlog directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// The file with this number.
    Segment(u64),
    /// A file that was made for later and is empty; of no use to another start.
    Ahead,
    /// A file that is damaged, and was not needed any more when it was put aside.
    PutAside,
    /// Begins as the name of a file of the binlog and does not end as one. The original takes some
    /// of these (`binlog.007`, `binlog.+3`) for numbers and then does not find the file.
    Odd,
    /// Something else.
    Other,
}

impl FileName {
    /// What `name` is. Numbers are plain decimal, without sign, blank or leading zeros.
    #[must_use]
    pub fn of(name: &OsStr) -> FileName {
        let name = name.as_bytes();
        let is_ahead = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let ahead = name.strip_prefix(AHEAD_PREFIX.as_bytes());
        if name == SPARE.as_bytes() || ahead.is_some_and(is_ahead) {
            return FileName::Ahead;
        }
        let Some(digits) = name.strip_prefix(PREFIX.as_bytes()) else {
            return FileName::Other;
        };
        let damaged = digits.strip_suffix(DAMAGED_SUFFIX.as_bytes());
        match (number(digits), damaged.and_then(number)) {
            (Some(number), _) => FileName::Segment(number),
            (None, Some(_)) => FileName::PutAside,
            (None, None) => FileName::Odd,
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_plain =
        digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || !digits.starts_with(b"0"));
    let digits = str::from_utf8(digits).ok().filter(|_| is_plain);
    digits.and_then(|digits| digits.parse().ok())
}

/// The name of the file with this number.
#[must_use]
pub fn file_name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// Why no record of a file can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// Nobody knows what follows.
    #[error("version {0} is unknown")]
    Unknown(i32),
    /// The file ends within the header, after so many bytes.
    #[error("file ends after {0} bytes, within its header")]
    Short(usize),
}

/// What a file has at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A record of `len` bytes.
    Record {
        /// Where it begins, in bytes from the start of the file.
        offset: u64,
        /// Its length in bytes.
        len: u64,
        /// The record.
        record: Record<'a>,
    },
    /// The end of what can be read.
    End {
        /// Where the last whole record ends, in bytes from the start of the file.
        offset: u64,
        /// How it ends.
        tail: Tail,
    },
}

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// With a whole record.
    Clean,
    /// With zeros, or with nothing else. Space that was never used.
    Zeros,
    /// In the middle of a record: it was being written.
    Torn,
    /// Not where reading does: at `at` bytes from the start of the file is something else than a
    /// record.
    Damaged {
        /// Where.
        at: u64,
        /// What is wrong.
        fault: Fault,
    },
}

/// A file that is read from its start to its end.
pub struct Segment<R> {
    source: R,
    version: Version,
    window: Vec<u8>,
    /// What of the window is behind us.
    start: usize,
    /// Where in the file the window goes on, after `start`.
    offset: u64,
    /// Whether the source has nothing more.
    is_read: bool,
    /// How the file ends, if it was made and never written to.
    blank: Option<Tail>,
}

impl<R: Read> Segment<R> {
    /// Reads the header of `source`, and is ready for records if it tells a known version. A file
    /// that is empty or nothing but zeros has none: the process that made it had not written to it.
    ///
    /// # Errors
    /// What reading reports. Interrupted and short reads are gone on with.
    pub fn open(mut source: R) -> io::Result<Result<Segment<R>, BadHeader>> {
        let mut header = Vec::new();
        source
            .by_ref()
            .take(HEADER_LEN as u64)
            .read_to_end(&mut header)?;
        let mut segment = Segment {
            source,
            version: Version::V7,
            window: Vec::new(),
            start: 0,
            offset: header.len() as u64,
            is_read: header.len() < HEADER_LEN,
            blank: None,
        };
        if first_data(&header).is_none() && segment.data_from(0)?.is_none() {
            let tail = if header.is_empty() {
                Tail::Clean
            } else {
                Tail::Zeros
            };
            segment.blank = Some(tail);
            return Ok(Ok(segment));
        }
        let Some((number, _)) = header.split_first_chunk() else {
            return Ok(Err(BadHeader::Short(header.len())));
        };
        let number = i32::from_le_bytes(*number);
        let Some(version) = Version::of(number) else {
            return Ok(Err(BadHeader::Unknown(number)));
        };
        segment.version = version;
        Ok(Ok(segment))
    }

    /// Whether the file was made and never written to: it has no header, and its version is the one
    /// that would have been written.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.blank.is_some()
    }

    /// The layout of its records.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The next record, or how the file ends. After an end there is nothing to ask for.
    ///
    /// # Errors
    /// What reading reports.
    pub fn read_next(&mut self) -> io::Result<Found<'_>> {
        if let Some(tail) = self.blank {
            let offset = self.offset;
            return Ok(Found::End { offset, tail });
        }
        let layout = loop {
            match measure(self.version, &self.window[self.start..]) {
                Ok(layout) => break layout,
                Err(Stop::More { len }) if !self.is_read => self.fill(len)?,
                Err(stop) => return self.end(stop),
            }
        };
        let (start, offset) = (self.start, self.offset);
        self.start += layout.len;
        self.offset += layout.len as u64;
        Ok(Found::Record {
            offset,
            len: layout.len as u64,
            record: layout.record(&self.window[start..]),
        })
    }

    /// Reads on until there are `len` bytes ahead or the source ends.
    fn fill(&mut self, len: usize) -> io::Result<()> {
        self.window.drain(..self.start);
        self.start = 0;
        let wanted = len.saturating_sub(self.window.len()).max(READ_LEN);
        let got = self
            .source
            .by_ref()
            .take(wanted as u64)
            .read_to_end(&mut self.window)?;
        self.is_read = got < wanted;
        Ok(())
    }

    /// How the file ends, of which no whole record is ahead.
    fn end(&mut self, stop: Stop) -> io::Result<Found<'static>> {
        let offset = self.offset;
        let ahead = &self.window[self.start..];
        let tail = match stop {
            Stop::More { .. } if ahead.is_empty() => Tail::Clean,
            Stop::More { .. } if first_data(ahead).is_none() => Tail::Zeros,
            Stop::More { .. } => Tail::Torn,
            Stop::Zeros => match self.data_from(0)? {
                None => Tail::Zeros,
                Some(at) => Tail::Damaged {
                    at,
                    fault: Fault::BehindZeros,
                },
            },
            Stop::Damaged(Damage { at, fault }) => match self.data_from(at)? {
                None => Tail::Torn,
                Some(_) => Tail::Damaged {
                    at: offset + at as u64,
                    fault,
                },
            },
        };
        Ok(Found::End { offset, tail })
    }

    /// Where in the file the first byte that is not 0 is, from `at` bytes ahead on. Uses up the
    /// window and the source.
    fn data_from(&mut self, at: usize) -> io::Result<Option<u64>> {
        self.window.drain(..self.start + at);
        self.start = 0;
        let mut offset = self.offset + at as u64;
        loop {
            if let Some(found) = first_data(&self.window) {
                return Ok(Some(offset + found as u64));
            }
            if self.is_read {
                return Ok(None);
            }
            offset += self.window.len() as u64;
            self.window.clear();
            self.fill(0)?;
        }
    }
}

const PREFIX: &str = "binlog.";

/// How the names of files begin that are made ahead.
pub(super) const AHEAD_PREFIX: &str = "ahead.";

/// The name of the one of them that is kept for when nothing else is left.
pub(super) const SPARE: &str = "spare";

/// What the name of a file that could not be read to its end gets when it is put aside.
pub(super) const DAMAGED_SUFFIX: &str = ".damaged";

#[cfg(test)]
mod tests;
