//! A client for tests that cannot be said as transcripts: asks and takes the answer, and ends the
//! test when none comes in time.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::fixture::Server;
use crate::transcript::client::{Client, Fill};

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// A connection of which every failure is the test's.
pub(crate) struct Peer {
    client: Client,
}

impl Peer {
    /// Connects to `server`.
    pub(crate) fn of(server: &Server) -> Peer {
        let client = Client::connect(server.endpoint());
        Peer {
            client: client.expect("the server takes connections"),
        }
    }

    /// Sends `bytes` as they are.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = self.client.write_all(bytes.as_ref());
        sent.expect("the server takes bytes");
    }

    /// Sends `bytes`, and says whether the connection has taken them.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.client.write_all(bytes.as_ref()).is_ok()
    }

    /// Takes a line, without its CR LF. None if the connection is closed.
    pub(crate) fn try_line(&mut self) -> Option<String> {
        let line = self.client.line(end()).ok().flatten()?;
        Some(String::from_utf8(line).expect("lines are ASCII"))
    }

    /// Sends a line and takes the line that answers it.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n"));
        self.line()
    }

    /// Puts a ready job of ordinary priority and takes the answer.
    pub(crate) fn put(&mut self, body: &[u8]) -> String {
        self.send(put(body));
        self.line()
    }

    /// Takes a line, without its CR LF.
    pub(crate) fn line(&mut self) -> String {
        let line = self.client.line(end()).expect("the connection stands");
        let line = line.unwrap_or_else(|| panic!("no line, but {:?}", self.client.input()));
        String::from_utf8(line).expect("lines are ASCII")
    }

    /// Whether a line comes within `limit`; it is then taken.
    pub(crate) fn has_line(&mut self, limit: Duration) -> bool {
        let line = self.client.line(Instant::now() + limit);
        line.is_ok_and(|line| line.is_some())
    }

    /// Takes a line, without its CR LF, if one comes within `limit`.
    pub(crate) fn line_within(&mut self, limit: Duration) -> Option<String> {
        let line = self.client.line(Instant::now() + limit);
        let line = line.expect("the connection stands")?;
        Some(String::from_utf8(line).expect("lines are ASCII"))
    }

    /// Takes `len` bytes and the CR LF behind them.
    pub(crate) fn body(&mut self, len: usize) -> Vec<u8> {
        let taken = self.client.take(len + 2, end());
        let mut body = taken.expect("the connection stands").expect("a body comes");
        assert!(body.ends_with(b"\r\n"));
        body.truncate(len);
        body
    }

    /// The value of a row of `stats`.
    pub(crate) fn stat(&mut self, key: &str) -> String {
        self.row("stats", key)
    }

    /// The value of a row of the data that answers `line`.
    pub(crate) fn row(&mut self, line: &str, key: &str) -> String {
        let answer = self.ask(line);
        let len = answer.strip_prefix("OK ").map(str::parse);
        let Some(Ok(len)) = len else {
            panic!("{line}: {answer}");
        };
        let data = String::from_utf8(self.body(len)).expect("statistics are ASCII");
        let start = format!("{key}: ");
        let value = data.lines().find_map(|row| row.strip_prefix(&start));
        value.map_or_else(|| panic!("no {key} in {data}"), str::to_owned)
    }

    /// Whether the server closes the connection and sends nothing before.
    pub(crate) fn is_closed(&mut self) -> bool {
        let filled = self.client.fill(end()).expect("an end is no error");
        filled == Fill::Eof && self.client.input().is_empty()
    }

    /// Ends the sending side.
    pub(crate) fn half_close(&self) {
        self.client.half_close().expect("the connection stands");
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        let set = self.client.reset_on_close();
        set.expect("a socket has this option");
    }
}

/// The bytes that put a ready job with this body.
pub(crate) fn put(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("put 0 0 60 {}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn end() -> Instant {
    Instant::now() + ANSWER_LIMIT
}
