//! What a case does: steps of clients, in words that both servers are sent alike. A plan names no
//! job that a client holds by its number, because that is known only when the case runs.

/// Clients of a case.
pub(crate) const CLIENTS: usize = 4;

/// A line that stands behind some bodies that are longer than announced.
pub(crate) const LINE_BEHIND_BODY: &[u8] = b"delete 1\r\n";

/// One case.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The servers' limit for bodies (`-z`); their default if none.
    pub(crate) body_len_max: Option<u32>,
    /// What is done, in order.
    pub(crate) steps: Vec<Step>,
}

/// Something that one client does, or all wait for.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A client sends these in one write.
    Send { client: usize, units: Vec<Unit> },
    /// A client closes its connection, perhaps in the middle of a put.
    Close { client: usize, tail: Vec<u8> },
    /// A client ends its sending side, perhaps in the middle of a put, and reads to the end.
    HalfClose { client: usize, tail: Vec<u8> },
    /// Everybody waits until what is due within a second has happened.
    Wait,
}

/// What is sent for one reply, or for two.
#[derive(Clone, Debug)]
pub(crate) enum Unit {
    /// A line, without its CR LF.
    Line(Vec<u8>),
    /// A line about a job that the client holds: the words around the id, and which of its jobs.
    Held {
        verb: &'static str,
        which: usize,
        rest: String,
    },
    /// A put line and the bytes that follow its CR LF, with the number of their replies.
    Put {
        line: Vec<u8>,
        rest: Vec<u8>,
        replies: usize,
    },
}

/// A unit as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// The line, without its CR LF.
    pub(crate) line: Vec<u8>,
    /// What follows its CR LF.
    pub(crate) rest: Vec<u8>,
    /// Replies that are owed for it, unless it ends the connection.
    pub(crate) replies: usize,
}

impl Chunk {
    /// The body with the two bytes that end it, and the line behind that, if there is one that
    /// names a job.
    pub(crate) fn line_behind_body(&self) -> Option<(&[u8], &[u8])> {
        let line = self.rest.len().checked_sub(LINE_BEHIND_BODY.len())?;
        self.rest
            .ends_with(LINE_BEHIND_BODY)
            .then(|| self.rest.split_at(line))
            .filter(|_| self.replies == 2)
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [&self.line[..], b"\r\n", &self.rest].concat()
    }
}

impl Unit {
    /// The unit as a client sends it that holds the jobs `held`.
    pub(crate) fn chunk(&self, held: &[u64]) -> Chunk {
        let line_alone = |line: Vec<u8>| Chunk {
            line,
            rest: Vec::new(),
            replies: 1,
        };
        match self {
            Unit::Line(line) => line_alone(line.clone()),
            Unit::Held { verb, which, rest } => {
                let id = match held.len() {
                    0 => *which as u64 + 1,
                    len => held[len - 1 - which % len],
                };
                line_alone(format!("{verb} {id}{rest}").into_bytes())
            }
            Unit::Put {
                line,
                rest,
                replies,
            } => Chunk {
                line: line.clone(),
                rest: rest.clone(),
                replies: *replies,
            },
        }
    }
}
