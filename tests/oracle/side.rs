//! One of the two servers with the clients of a case, and an observer that tells when nothing more
//! is going to happen.
//!
//! Which connections are going to be answered is not known beforehand, and no time is long enough
//! to be sure that a silent one will stay silent. The observer asks the server instead: once as
//! many connections wait in a reserve as are owed something, twice in a row and with nothing come
//! in between, nobody else can be answered before somebody sends something or time passes.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use socket2::Socket;

use crate::answer::{Answer, take_answer};
use crate::fixture::{Endpoint, Listen, Server};
use crate::plan::CLIENTS;

/// A server and its clients.
pub(crate) struct Side {
    server: Server,
    observer: Line,
    clients: [Option<Client>; CLIENTS],
    /// A connection has been opened or closed that the server may not have noticed yet.
    is_unnoticed: bool,
}

/// A client of one server.
struct Client {
    line: Line,
    /// Replies that have yet to come.
    owed: usize,
    /// Replies that have come since they were last taken.
    answers: Vec<Answer>,
}

/// A connection.
struct Line {
    socket: Socket,
    input: Vec<u8>,
    has_ended: bool,
}

/// What a client has been told since it was last asked for.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The replies.
    pub(crate) answers: Vec<Answer>,
    /// The server has closed the connection.
    pub(crate) has_ended: bool,
    /// Replies that have yet to come.
    pub(crate) owed: usize,
    /// Bytes behind the replies that are none.
    pub(crate) rest: Vec<u8>,
}

impl Side {
    /// Starts a server, on a Unix socket: there what one has sent is where the other can read it.
    pub(crate) fn start(words: &[String]) -> io::Result<Side> {
        let server = Server::start(words, Listen::Unix)?;
        let observer = Line::connect(server.endpoint())?;
        let mut side = Side {
            server,
            observer,
            clients: Default::default(),
            is_unnoticed: false,
        };
        // All processes of a server have a part in the answer.
        side.ask(b"stats\r\n")?;
        Ok(side)
    }

    /// Sends `bytes`, for which `replies` are owed, after connecting if need be.
    pub(crate) fn send(&mut self, client: usize, bytes: &[u8], replies: usize) -> io::Result<()> {
        self.connect(client)?;
        let client = self.client(client);
        client.owed += replies;
        match client.line.socket.write_all(bytes) {
            // Part of the bytes stands behind a `quit`.
            Err(error) if is_gone(&error) => Ok(()),
            sent => sent,
        }
    }

    /// Connects the client if it is not.
    pub(crate) fn connect(&mut self, client: usize) -> io::Result<()> {
        if self.clients[client].is_none() {
            self.clients[client] = Some(Client {
                line: Line::connect(self.server.endpoint())?,
                owed: 0,
                answers: Vec::new(),
            });
            self.is_unnoticed = true;
        }
        Ok(())
    }

    /// Closes the client's connection.
    pub(crate) fn close(&mut self, client: usize) {
        self.clients[client] = None;
        self.is_unnoticed = true;
    }

    /// Ends the client's sending side. The server has to answer everything and close.
    pub(crate) fn half_close(&mut self, client: usize) -> io::Result<()> {
        self.is_unnoticed = true;
        let client = self.client(client);
        client.line.socket.shutdown(std::net::Shutdown::Write)?;
        let end = Instant::now() + SETTLE_LIMIT;
        while !client.line.has_ended && Instant::now() < end {
            client.line.wait(SHORT)?;
            client.pump()?;
        }
        Ok(())
    }

    /// Has the client, which is owed nothing, be heard of. What it is told is not counted anywhere.
    pub(crate) fn ping(&mut self, client: usize) -> io::Result<()> {
        self.send(client, b"kick-job 0\r\n", 1)?;
        let client = self.client(client);
        let end = Instant::now() + SETTLE_LIMIT;
        while client.owes() && Instant::now() < end {
            client.line.wait(SHORT)?;
            client.pump()?;
        }
        client.answers.pop_if(|answer| answer.line == b"NOT_FOUND");
        Ok(())
    }

    /// What the client has been told. A client that the server has left is forgotten.
    pub(crate) fn take(&mut self, client: usize) -> Heard {
        let place = &mut self.clients[client];
        let Some(found) = place else {
            return Heard::default();
        };
        let heard = Heard {
            answers: std::mem::take(&mut found.answers),
            has_ended: found.line.has_ended,
            owed: found.owed,
            rest: if found.owed == 0 || found.line.has_ended {
                std::mem::take(&mut found.line.input)
            } else {
                Vec::new()
            },
        };
        if heard.has_ended {
            *place = None;
        }
        heard
    }

    /// Waits until all has been answered that can be, see the module's description. If that does
    /// not come about what has come by then is left for the comparison.
    pub(crate) fn settle(&mut self, active: Option<usize>) -> io::Result<()> {
        let end = Instant::now() + SETTLE_LIMIT;
        let mut is_calm = false;
        loop {
            let has_news = self.pump()?;
            if self.owing() == 0 && !self.is_unnoticed {
                return Ok(());
            }
            if let Some(client) = active.and_then(|active| self.clients[active].as_mut())
                && client.owes()
            {
                client.line.wait(SHORT)?;
                if client.pump()? {
                    continue;
                }
            }
            let stats = self.ask(b"stats\r\n")?;
            let waiting = stats.number("current-waiting").unwrap_or_default();
            let connections = stats.number("current-connections").unwrap_or_default();
            let has_news = self.pump()? || has_news;
            let living = self.clients.iter().flatten();
            let living = living.filter(|client| !client.line.has_ended).count();
            let was_calm = is_calm && !has_news;
            is_calm = waiting == self.owing() as u64 && connections == living as u64 + 1;
            if is_calm && was_calm || Instant::now() > end {
                self.is_unnoticed = false;
                return Ok(());
            }
        }
    }

    /// Gives a command that is answered at once, by the observer.
    pub(crate) fn ask(&mut self, command: &[u8]) -> io::Result<Answer> {
        self.observer.socket.write_all(command)?;
        let end = Instant::now() + SETTLE_LIMIT;
        loop {
            if let Some(answer) = take_answer(&mut self.observer.input) {
                return Ok(answer);
            }
            self.observer.wait(SHORT)?;
            self.observer.pump()?;
            if self.observer.has_ended || Instant::now() > end {
                let log = self.server.output();
                let command = command.escape_ascii();
                return Err(io::Error::other(format!("no answer to {command}\n{log}")));
            }
        }
    }

    /// Whether anything has come.
    fn pump(&mut self) -> io::Result<bool> {
        let mut has_news = false;
        for client in self.clients.iter_mut().flatten() {
            has_news |= client.pump()?;
        }
        Ok(has_news)
    }

    /// Number of clients that have yet to be answered.
    fn owing(&self) -> usize {
        let clients = self.clients.iter().flatten();
        clients.filter(|client| client.owes()).count()
    }

    fn client(&mut self, client: usize) -> &mut Client {
        self.clients[client].as_mut().expect("is connected")
    }
}

impl Client {
    fn owes(&self) -> bool {
        self.owed > 0 && !self.line.has_ended
    }

    fn pump(&mut self) -> io::Result<bool> {
        let has_news = self.line.pump()?;
        while self.owed > 0
            && let Some(answer) = take_answer(&mut self.line.input)
        {
            self.owed -= 1;
            self.answers.push(answer);
        }
        Ok(has_news)
    }
}

impl Line {
    fn connect(endpoint: &Endpoint) -> io::Result<Line> {
        let socket = endpoint.connect()?;
        socket.set_write_timeout(Some(SETTLE_LIMIT))?;
        Ok(Line {
            socket,
            input: Vec::new(),
            has_ended: false,
        })
    }

    /// Waits until something has come, for a short time.
    fn wait(&self, limit: Duration) -> io::Result<()> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO);
        match poll(&mut fds, limit) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is there. Whether that was anything.
    fn pump(&mut self) -> io::Result<bool> {
        let mut has_news = false;
        let mut chunk = [0; 64 * 1024];
        while !self.has_ended {
            match recv(self.socket.as_raw_fd(), &mut chunk, MsgFlags::MSG_DONTWAIT) {
                Ok(0) | Err(Errno::ECONNRESET) => {
                    self.has_ended = true;
                    has_news = true;
                }
                Ok(len) => {
                    self.input.extend_from_slice(&chunk[..len]);
                    has_news = true;
                    if len < chunk.len() {
                        break;
                    }
                }
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(has_news)
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// How long a server may take to come to rest.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);
/// How long a reply may take before the observer is asked whether there will be one.
const SHORT: Duration = Duration::from_millis(1);
