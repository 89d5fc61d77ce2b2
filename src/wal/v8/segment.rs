//! A file of version 8 that is read, through a window that holds one record at a time and some
//! bytes ahead. A record that claims to be large gets memory only for the bytes that are there.

use std::io::{self, Read};

use crate::wal::format::{Bad, BadHead, Entries, Head, Next, Rest};
use crate::wal::record::first_data;
use crate::wal::v8::record::{Fault, Stop, check, is_whole, measure, synced_of};
use crate::wal::v8::{HEAD_LEN, HeadFault, Owned, SUM_AT, u32_at};

/// Bytes that are read at once, unless a record is longer.
const READ_LEN: usize = 256 * 1024;

/// How many times as many bytes as there are may be looked at to find whole records behind damage.
/// Only somebody who writes what looks like records into bodies makes it so many.
const SEARCH_FACTOR: u64 = 16;

/// See the module's description.
pub struct Segment<R> {
    source: R,
    /// None if nothing was ever written.
    owner: Option<Owned>,
    seed: u32,
    /// The record ahead, and more.
    window: Vec<u8>,
    /// Where in the window it begins, and where in the file.
    start: usize,
    offset: u64,
    /// All of the source is in the window.
    is_read: bool,
    /// The farthest place that a record has claimed to be synced.
    synced: u64,
}

impl<R: Read> Segment<R> {
    /// Reads the header of `source`, whosever it is. A file that is empty or nothing but zeros has
    /// none.
    ///
    /// # Errors
    /// What reading reports. Interrupted and short reads are gone on with.
    pub fn open(source: R) -> io::Result<Result<Segment<R>, BadHead>> {
        let mut segment = Segment {
            source,
            owner: None,
            seed: 0,
            window: Vec::new(),
            start: 0,
            offset: 0,
            is_read: false,
            synced: 0,
        };
        segment.fill(HEAD_LEN)?;
        let mut head = [0; HEAD_LEN];
        let len = segment.window.len().min(HEAD_LEN);
        head[..len].copy_from_slice(&segment.window[..len]);
        if first_data(&head).is_none() {
            return segment.without_head();
        }
        if let [found @ (5 | 7), 0, 0, 0, ..] = head {
            let found = found.into();
            return Ok(Err(BadHead::Foreign(
                HeadFault::Version { found }.to_string(),
            )));
        }
        Ok(match Owned::decode(&head) {
            Ok((owner, seed)) => {
                segment.owner = Some(owner);
                segment.seed = seed;
                segment.start = HEAD_LEN;
                segment.offset = HEAD_LEN as u64;
                Ok(segment)
            }
            Err(HeadFault::Torn) => return segment.with_torn_head(),
            Err(fault) => Err(bad_head(fault)),
        })
    }

    /// What a file is whose header was not written to its end, or has lost its last bytes: records
    /// that are there all the same tell that it once was whole.
    fn with_torn_head(mut self) -> io::Result<Result<Segment<R>, BadHead>> {
        self.read_rest()?;
        self.seed = u32_at(&self.window, SUM_AT);
        let fault = match self.search() {
            0 => HeadFault::Torn,
            _ => HeadFault::Checksum,
        };
        Ok(Err(bad_head(fault)))
    }

    /// What a file is that begins with zeros.
    fn without_head(mut self) -> io::Result<Result<Segment<R>, BadHead>> {
        if self.data_from(0)?.is_some() {
            // The first block was not written, and others were.
            return Ok(Err(bad_head(HeadFault::Torn)));
        }
        self.window.clear();
        Ok(Ok(self))
    }

    /// Whose file it is; None if nothing was ever written to it.
    #[must_use]
    pub fn owner(&self) -> Option<Owned> {
        self.owner
    }

    /// Reads on until there are `len` bytes ahead or the source ends.
    fn fill(&mut self, len: usize) -> io::Result<()> {
        self.window.drain(..self.start);
        self.start = 0;
        let wanted = len.saturating_sub(self.window.len()).max(READ_LEN);
        let source = self.source.by_ref().take(wanted as u64);
        let got = { source }.read_to_end(&mut self.window)?;
        self.is_read = got < wanted;
        Ok(())
    }

    /// How the file ends, of which no whole record is ahead.
    fn end(&mut self, stop: Stop) -> io::Result<Next<'static>> {
        let offset = self.offset;
        let is_empty = self.window.len() == self.start;
        let rest = match stop {
            Stop::More { .. } if is_empty => Rest::Nothing,
            Stop::Zeros | Stop::More { .. } if self.data_from(0)?.is_none() => Rest::Zeros,
            Stop::Zeros => bad(offset, Fault::BehindZeros),
            Stop::More { len } => bad(offset, Fault::CutOff { len }),
            Stop::Fault(fault) => bad(offset, fault),
        };
        Ok(Next::End { offset, rest })
    }

    /// Where in the file the first byte that is not 0 is, from `at` bytes ahead on. Reads all that
    /// is left and keeps it.
    fn data_from(&mut self, at: usize) -> io::Result<Option<u64>> {
        self.read_rest()?;
        let ahead = &self.window[self.start..];
        let found = ahead.get(at..).and_then(first_data);
        Ok(found.map(|found| self.offset + (at + found) as u64))
    }

    fn read_rest(&mut self) -> io::Result<()> {
        if !self.is_read {
            self.window.drain(..self.start);
            self.start = 0;
            self.source.read_to_end(&mut self.window)?;
            self.is_read = true;
        }
        Ok(())
    }

    /// The farthest place that a whole record ahead claims to be synced, wherever it begins.
    fn search(&self) -> u64 {
        let ahead = &self.window[self.start..];
        let mut left = SEARCH_FACTOR * ahead.len() as u64;
        let mut synced = 0;
        for at in 1..ahead.len() {
            let (bytes, offset) = (&ahead[at..], self.offset + at as u64);
            let Ok(len) = measure(bytes) else { continue };
            let record = &bytes[..len];
            let claim = synced_of(record);
            if claim <= synced || claim > offset {
                continue;
            }
            let Some(less) = left.checked_sub(len as u64) else {
                // Nobody knows, so it is not to be given up.
                return u64::MAX;
            };
            left = less;
            if is_whole(self.seed, offset, record) {
                synced = claim;
            }
        }
        synced
    }
}

fn bad_head(fault: HeadFault) -> BadHead {
    let text = fault.to_string();
    let bad = Bad { at: 0, fault: text };
    match fault {
        HeadFault::Version { .. } => BadHead::Foreign(bad.fault),
        HeadFault::Torn => BadHead::Torn(bad),
        HeadFault::Magic | HeadFault::Checksum | HeadFault::Field { .. } => BadHead::Damaged(bad),
    }
}

fn bad(at: u64, fault: Fault) -> Rest {
    Rest::Bad(Bad {
        at,
        fault: fault.to_string(),
    })
}

impl<R: Read> Entries for Segment<R> {
    fn next_entry(&mut self) -> io::Result<Next<'_>> {
        if self.owner.is_none() {
            return Ok(Next::End {
                offset: 0,
                rest: Rest::Zeros,
            });
        }
        let checked = loop {
            match check(self.seed, self.offset, &self.window[self.start..]) {
                Ok(checked) => break checked,
                Err(Stop::More { len }) if !self.is_read => self.fill(len)?,
                Err(stop) => return self.end(stop),
            }
        };
        let (start, offset) = (self.start, self.offset);
        self.start += checked.len;
        self.offset += checked.len as u64;
        self.synced = self.synced.max(checked.synced);
        Ok(Next::Entry {
            offset,
            len: checked.len as u64,
            entry: checked.entry(&self.window[start..]),
        })
    }

    fn head(&self) -> Option<Head> {
        self.owner.map(|owner| owner.head)
    }

    fn synced_to(&mut self) -> io::Result<u64> {
        self.read_rest()?;
        Ok(self.synced.max(self.search()))
    }
}
