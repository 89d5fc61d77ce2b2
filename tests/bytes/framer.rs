//! Tells how many replies a stream of bytes is owed, from the protocol's description alone and by
//! the simplest means: whole lines and bodies are gathered before anything is decided.

/// Where in the protocol a client is.
pub(crate) struct Framer {
    body_len_max: u32,
    state: State,
    /// Bytes of the line that has begun, if the state is [`State::Line`].
    line: Vec<u8>,
    /// Replies owed so far.
    pub(crate) replies: usize,
    /// The connection is to be closed, and nothing is obeyed any more.
    pub(crate) is_closed: bool,
}

enum State {
    Line,
    /// In bytes of a known number, a reply at their end or not.
    Skip {
        left: u64,
        replies: usize,
    },
    /// Where a CR LF may come that belongs to an empty body. `cr`: its CR has.
    Crlf {
        cr: bool,
    },
}

impl Framer {
    /// The start of a connection.
    pub(crate) fn new(body_len_max: u32) -> Framer {
        Framer {
            body_len_max,
            state: State::Line,
            line: Vec::new(),
            replies: 0,
            is_closed: false,
        }
    }

    /// Goes over `bytes`.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(&byte) = bytes.first()
            && !self.is_closed
        {
            match self.state {
                State::Skip { left, replies } => {
                    let len = left.min(bytes.len() as u64);
                    bytes = &bytes[len as usize..];
                    self.skip(left - len, replies);
                    continue;
                }
                State::Crlf { cr: false } if byte == b'\r' => self.state = State::Crlf { cr: true },
                State::Crlf { cr: true } if byte == b'\n' => self.state = State::Line,
                State::Crlf { cr } => {
                    self.state = State::Line;
                    if cr {
                        self.line.push(b'\r');
                    }
                    continue;
                }
                State::Line => {
                    self.line.push(byte);
                    if self.line.ends_with(b"\r\n") {
                        let mut line = std::mem::take(&mut self.line);
                        line.truncate(line.len() - 2);
                        self.take_line(&line);
                    }
                }
            }
            bytes = &bytes[1..];
        }
    }

    /// Some bytes that bring the connection nearer to where a command begins; none if it is there.
    /// `usize` of them, all alike, or these.
    pub(crate) fn missing(&self) -> Missing {
        match self.state {
            State::Skip { left, .. } => Missing::Body(left),
            State::Crlf { cr: false } => Missing::Bytes(b"\r\n"),
            State::Crlf { cr: true } => Missing::Bytes(b"\n"),
            State::Line if self.line.is_empty() => Missing::Nothing,
            State::Line => Missing::Bytes(b" ?\r\n"),
        }
    }

    fn skip(&mut self, left: u64, replies: usize) {
        self.state = State::Skip { left, replies };
        if left == 0 {
            self.replies += replies;
            self.state = State::Line;
        }
    }

    fn take_line(&mut self, line: &[u8]) {
        let is_long = line.len() > 222;
        let is_quit = line.starts_with(b"quit") && !line.contains(&0);
        if is_http(line) || (is_quit && !is_long) {
            self.is_closed = true;
        } else if let Some(arguments) = line.strip_prefix(b"put ") {
            if is_long {
                self.refuse(fourth_word_of_long_line(line));
            } else {
                self.take_put(arguments);
            }
        } else {
            self.replies += 1;
        }
    }

    fn take_put(&mut self, arguments: &[u8]) {
        let numbers = (!arguments.contains(&0))
            .then(|| four_numbers(arguments))
            .flatten();
        match numbers {
            Some((size, _)) if size > self.body_len_max => self.skip(u64::from(size) + 2, 1),
            Some((size, [])) => self.skip(u64::from(size) + 2, 1),
            Some((size, [b' ', ..])) => self.refuse(Some(size)),
            Some((_, [..])) => self.refuse(None),
            None => self.refuse(fourth_word(arguments)),
        }
    }

    /// The put is answered at once. Its body goes where its size is known.
    fn refuse(&mut self, size: Option<u32>) {
        self.replies += 1;
        match size {
            Some(0) => self.state = State::Crlf { cr: false },
            Some(size) => self.skip(u64::from(size) + 2, 0),
            None => {}
        }
    }
}

/// See [`Framer::missing`].
pub(crate) enum Missing {
    Nothing,
    Bytes(&'static [u8]),
    Body(u64),
}

/// The last of four numbers and what stands behind it.
fn four_numbers(arguments: &[u8]) -> Option<(u32, &[u8])> {
    let (mut size, mut rest) = (0, arguments);
    for _ in 0..4 {
        let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
        let digits = rest[spaces..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let end = spaces + digits.count();
        size = number(&rest[spaces..end])?;
        rest = &rest[end..];
    }
    Some((size, rest))
}

fn fourth_word(arguments: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(arguments).ok();
    // Other bytes do not matter as long as the fourth word is a number.
    let lossy = String::from_utf8_lossy(arguments);
    let words = text.unwrap_or(&lossy).split(' ');
    let word = words.filter(|word| !word.is_empty()).nth(3)?;
    number(word.as_bytes())
}

/// Of a line that is too long only the first 224 bytes are looked at, and the last word of these
/// may go on.
fn fourth_word_of_long_line(line: &[u8]) -> Option<u32> {
    let beginning = &line[4..line.len().min(224)];
    let end = beginning.iter().rposition(|&byte| byte == b' ')?;
    fourth_word(&beginning[..end])
}

fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn is_http(line: &[u8]) -> bool {
    let methods = "GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH PRI";
    let first = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    let is_request = methods
        .split(' ')
        .any(|method| first == method.as_bytes() && line.len() > first.len());
    is_request || line.len() >= 5 && line[..5].eq_ignore_ascii_case(b"host:")
}
