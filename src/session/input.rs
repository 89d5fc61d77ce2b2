//! Cuts what a client sends into lines, bodies and bytes to throw away. Bytes are handed in as they
//! come; what cannot be cut off yet stays with the caller and is handed in again in front of what
//! comes next, so that an idle client costs no memory here and a line is never copied.
//!
//! Which of the three comes next is the session's to say after each line. A body that is too large
//! to be left with the caller is collected here, in memory that grows with what has arrived and
//! not with what was announced.

use std::collections::TryReserveError;
use std::mem;

use crate::base::body::{Body, BodyCow};
use crate::base::limits::{
    BODY_GATHER_LEN_MAX, BODY_LEN_MAX_CEILING, BODY_RESERVE_LEN_MAX, LINE_LEN_MAX,
};
use crate::proto::command::announced_len;
use crate::proto::http::is_http;
use crate::proto::line::{CRLF, find_end};

/// Most bytes that [`Input::next`] leaves with the caller when it needs more.
pub const LEFTOVER_LEN_MAX: usize = BODY_GATHER_LEN_MAX + CRLF.len();

const _: () = assert!(LEFTOVER_LEN_MAX >= LINE_LEN_MAX, "a line may be left over");

/// Where in the protocol a client is, see the module's description.
#[derive(Debug, Default)]
pub struct Input {
    state: State,
}

/// What was cut off the input.
#[derive(Debug)]
pub enum Item<'a> {
    /// A line without its CR LF, of at most [`LINE_LEN_MAX`] bytes with it.
    Line(&'a [u8]),
    /// A longer line. It has been thrown away up to its CR LF.
    LineTooLong {
        /// Whether it began as a web client's lines do.
        http: bool,
        /// Of a `put` the length of the body that it announces, where that could be read.
        body_len: Option<u32>,
    },
    /// The body that was expected, without its CR LF.
    Body(BodyCow<'a>),
    /// As many bytes as were expected, but the last two were not CR LF. They have been thrown away.
    BodyUnterminated,
    /// What was to be thrown away has been.
    Skipped(Skip),
}

/// Why bytes are thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A body above the limit. The answer is due when it is gone.
    TooBig,
    /// There was no memory for a body. The answer is due when it is gone.
    OutOfMemory,
    /// A body whose put has been answered already.
    Answered,
}

#[derive(Debug, Default)]
enum State {
    /// Between commands.
    #[default]
    Line,
    /// In a line that is too long. `after_cr`: the byte thrown away last was a CR.
    LineTooLong {
        http: bool,
        body_len: Option<u32>,
        after_cr: bool,
    },
    /// In a body that is left with the caller until it is complete.
    Gathering { whole_len: usize },
    /// In a body that is collected here.
    Collecting(Collected),
    /// In bytes that are thrown away.
    Skipping { left: u64, why: Skip },
    /// Where the CR LF of an empty body is thrown away, if it comes.
    SkippingCrlf,
}

/// What a step makes of the bytes: an item, after which a line comes, or where it has to wait.
enum Step<'a> {
    Done(Item<'a>),
    Wait(State),
}

impl Input {
    /// Takes one item off the front of `bytes`; none if that needs more of them.
    ///
    /// What is then left in `bytes`, at most [`LEFTOVER_LEN_MAX`] of them, must be handed in again
    /// in front of what comes next. An item that is complete without any further byte comes even
    /// when `bytes` is empty.
    #[inline]
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Item<'a>> {
        // What comes most is not put into the memory that all items take: to write it there in
        // small pieces and read it in large ones at once costs more than to find the line.
        if self.is_idle()
            && let Some(line) = whole_line(bytes)
        {
            return Some(Item::Line(line));
        }
        self.advance(bytes)
    }

    fn advance<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Item<'a>> {
        let step = match mem::take(&mut self.state) {
            State::Line => line(bytes),
            State::LineTooLong {
                http,
                body_len,
                after_cr,
            } => line_too_long(http, body_len, after_cr, bytes),
            State::Gathering { whole_len } => gather(whole_len, bytes),
            State::Collecting(body) => collect(body, bytes),
            State::Skipping { left, why } => skip(left, why, bytes),
            State::SkippingCrlf => skip_crlf(bytes),
        };
        match step {
            Step::Done(item) => Some(item),
            Step::Wait(state) => {
                self.state = state;
                None
            }
        }
    }

    /// The next `len` bytes are a body, and two more must be CR LF. Ends in [`Item::Body`],
    /// [`Item::BodyUnterminated`] or [`Skip::OutOfMemory`], each after exactly `len + 2` bytes.
    ///
    /// `len` is within [`BODY_LEN_MAX_CEILING`]: what is above is to be skipped. Only between
    /// commands.
    pub fn expect_body(&mut self, len: u32) {
        debug_assert!(self.is_idle(), "a body follows a line");
        debug_assert!(len <= BODY_LEN_MAX_CEILING, "the limit has been applied");
        let len = len as usize;
        let whole_len = len + CRLF.len();
        self.state = if len <= BODY_GATHER_LEN_MAX {
            State::Gathering { whole_len }
        } else {
            State::Collecting(Collected {
                bytes: Vec::new(),
                whole_len,
            })
        };
    }

    /// Throws the next `len` bytes away. Ends in [`Item::Skipped`], which comes at once if `len` is
    /// 0. Only between commands.
    pub fn skip(&mut self, len: u64, why: Skip) {
        debug_assert!(self.is_idle(), "what is skipped follows a line");
        self.state = State::Skipping { left: len, why };
    }

    /// Throws away the body of a put that has been refused, and answered, by its line. Ends in
    /// [`Skip::Answered`]. Only between commands.
    ///
    /// Some clients send no body with a put that they know to be malformed, and nobody can tell
    /// what they send next from a body; but no command begins with CR LF, so that at least an
    /// empty body is thrown away only if it is there.
    pub fn skip_refused_body(&mut self, len: u32) {
        if len == 0 {
            self.state = State::SkippingCrlf;
        } else {
            self.skip(u64::from(len) + CRLF.len() as u64, Skip::Answered);
        }
    }

    /// While a large body is being read: the vector that its bytes may be appended to, and how many
    /// of them at most now, which is never 0 and never more than there is room for. None otherwise.
    ///
    /// After appending, [`Input::next`] is due, with or without further bytes. Bytes left over from
    /// it have to be handed in before this is called, since they come first.
    pub fn direct(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        if let State::Collecting(body) = &mut self.state
            && body.make_room(body.left().min(DIRECT_LEN_MIN)).is_err()
        {
            self.state = body.abandoned();
        }
        match &mut self.state {
            State::Collecting(body) if body.left() > 0 => {
                let room = body.bytes.capacity() - body.bytes.len();
                let wanted = body.left().min(room);
                Some((&mut body.bytes, wanted))
            }
            State::Collecting(_)
            | State::Line
            | State::LineTooLong { .. }
            | State::Gathering { .. }
            | State::Skipping { .. }
            | State::SkippingCrlf => None,
        }
    }

    /// Whether the client is between commands, as far as the bytes handed in go.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Line)
    }
}

/// Least room in bytes for reading straight into a body, so that its growth costs few reads.
const DIRECT_LEN_MIN: usize = BODY_GATHER_LEN_MAX;

/// A body of which `bytes` have arrived, out of `whole_len` with the CR LF.
#[derive(Debug)]
struct Collected {
    bytes: Vec<u8>,
    whole_len: usize,
}

impl Collected {
    fn left(&self) -> usize {
        self.whole_len - self.bytes.len()
    }

    /// Makes room for `more` bytes. The announced size is allocated at once if it is moderate, else
    /// only once half of it is needed, and in both cases exactly.
    fn make_room(&mut self, more: usize) -> Result<(), TryReserveError> {
        let needed = self.bytes.len() + more;
        if needed <= self.bytes.capacity() {
            return Ok(());
        }
        let capacity = self.whole_len.min(BODY_RESERVE_LEN_MAX.max(2 * needed));
        self.bytes.try_reserve_exact(capacity - self.bytes.len())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), TryReserveError> {
        self.make_room(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The state after memory for the body could not be had: what is still to come is skipped.
    fn abandoned(&self) -> State {
        State::Skipping {
            left: self.left() as u64,
            why: Skip::OutOfMemory,
        }
    }

    fn finish(mut self) -> Item<'static> {
        if !self.bytes.ends_with(CRLF) {
            return Item::BodyUnterminated;
        }
        self.bytes.truncate(self.bytes.len() - CRLF.len());
        Item::Body(Body::from_vec(self.bytes).into())
    }
}

/// Takes a line off the front, if one has come to its end.
fn whole_line<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let window = &bytes[..bytes.len().min(LINE_LEN_MAX)];
    let end = find_end(window)?;
    let line = &bytes[..end];
    *bytes = &bytes[end + CRLF.len()..];
    Some(line)
}

/// What there is of a line that has not come to its end.
fn line<'a>(bytes: &mut &'a [u8]) -> Step<'a> {
    if bytes.len() < LINE_LEN_MAX {
        return Step::Wait(State::Line);
    }
    let beginning = &bytes[..LINE_LEN_MAX];
    line_too_long(is_http(bytes), announced_len(beginning), false, bytes)
}

fn line_too_long<'a>(
    http: bool,
    body_len: Option<u32>,
    after_cr: bool,
    bytes: &mut &'a [u8],
) -> Step<'a> {
    let end = if after_cr && bytes.first() == Some(&b'\n') {
        Some(1)
    } else {
        find_end(bytes).map(|end| end + CRLF.len())
    };
    if let Some(end) = end {
        *bytes = &bytes[end..];
        return Step::Done(Item::LineTooLong { http, body_len });
    }
    let after_cr = bytes.last().map_or(after_cr, |&last| last == b'\r');
    *bytes = &[];
    Step::Wait(State::LineTooLong {
        http,
        body_len,
        after_cr,
    })
}

fn gather<'a>(whole_len: usize, bytes: &mut &'a [u8]) -> Step<'a> {
    let Some(whole) = bytes.split_off(..whole_len) else {
        return Step::Wait(State::Gathering { whole_len });
    };
    Step::Done(match whole.strip_suffix(CRLF) {
        Some(body) => Item::Body(BodyCow::Borrowed(body)),
        None => Item::BodyUnterminated,
    })
}

fn collect<'a>(mut body: Collected, bytes: &mut &'a [u8]) -> Step<'a> {
    assert!(
        body.bytes.len() <= body.whole_len,
        "no more is read into a body than it wants"
    );
    let (arrived, rest) = bytes.split_at(bytes.len().min(body.left()));
    if body.append(arrived).is_err() {
        return skip(body.left() as u64, Skip::OutOfMemory, bytes);
    }

    *bytes = rest;
    if body.left() > 0 {
        return Step::Wait(State::Collecting(body));
    }
    Step::Done(body.finish())
}

fn skip_crlf<'a>(bytes: &mut &'a [u8]) -> Step<'a> {
    if bytes.len() < CRLF.len() && CRLF.starts_with(bytes) {
        return Step::Wait(State::SkippingCrlf);
    }
    *bytes = bytes.strip_prefix(CRLF).unwrap_or(bytes);
    Step::Done(Item::Skipped(Skip::Answered))
}

fn skip<'a>(left: u64, why: Skip, bytes: &mut &'a [u8]) -> Step<'a> {
    let len = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *bytes = &bytes[len..];
    match left - len as u64 {
        0 => Step::Done(Item::Skipped(why)),
        left => Step::Wait(State::Skipping { left, why }),
    }
}

const _: () = assert!(size_of::<Input>() <= 40, "every session has one");

#[cfg(test)]
mod tests;
