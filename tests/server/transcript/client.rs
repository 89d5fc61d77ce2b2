//! One client of a transcript: a blocking socket whose every wait has an end.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::fixture::Endpoint;

/// A connection and what has come over it and has not been looked at.
pub(crate) struct Client {
    socket: Socket,
    input: Vec<u8>,
}

/// What a wait for bytes has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// More bytes.
    Data,
    /// Nothing in the time given.
    Nothing,
    /// The server has closed the connection.
    Eof,
}

impl Client {
    /// Connects.
    pub(crate) fn connect(endpoint: &Endpoint) -> io::Result<Client> {
        let socket = endpoint.connect()?;
        socket.set_write_timeout(Some(SEND_LIMIT))?;
        Ok(Client {
            socket,
            input: Vec::new(),
        })
    }

    /// Ends the sending side.
    pub(crate) fn half_close(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }

    /// Makes the coming close a reset.
    pub(crate) fn reset_on_close(&self) -> io::Result<()> {
        self.socket.set_linger(Some(Duration::ZERO))
    }

    /// Bytes that have come and were not taken.
    pub(crate) fn input(&self) -> &[u8] {
        &self.input
    }

    /// Takes one line off the input, without its CR LF; `None` when it does not come in time.
    pub(crate) fn line(&mut self, end: Instant) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            let found = self.input[searched..]
                .windows(2)
                .position(|pair| pair == b"\r\n");
            if let Some(at) = found {
                let mut line: Vec<u8> = self.input.drain(..searched + at + 2).collect();
                line.truncate(searched + at);
                return Ok(Some(line));
            }
            searched = self.input.len().saturating_sub(1);
            if self.fill(end)? != Fill::Data {
                return Ok(None);
            }
        }
    }

    /// Takes `len` bytes off the input; `None` when they do not come in time.
    pub(crate) fn take(&mut self, len: usize, end: Instant) -> io::Result<Option<Vec<u8>>> {
        while self.input.len() < len {
            if self.fill(end)? != Fill::Data {
                return Ok(None);
            }
        }
        Ok(Some(self.input.drain(..len).collect()))
    }

    /// Waits for more input until `end`; looks once even if that is past.
    pub(crate) fn fill(&mut self, end: Instant) -> io::Result<Fill> {
        let left = end
            .saturating_duration_since(Instant::now())
            .max(SHORTEST_WAIT);
        self.socket.set_read_timeout(Some(left))?;
        let mut chunk = [0; 64 * 1024];
        match self.socket.read(&mut chunk) {
            Ok(0) => Ok(Fill::Eof),
            Ok(len) => {
                self.input.extend_from_slice(&chunk[..len]);
                Ok(Fill::Data)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(Fill::Nothing),
                io::ErrorKind::Interrupted => self.fill(end),
                io::ErrorKind::ConnectionReset => Ok(Fill::Eof),
                _ => Err(error),
            },
        }
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

const SEND_LIMIT: Duration = Duration::from_secs(20);
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
