//! A server process for one test: started on a socket of its own, ended on drop.
//!
//! The usual way in is the systemd protocol: the test binds the listening socket and hands it over
//! as descriptor 3. The kernel then queues connections before the server runs, so nothing has to
//! wait for it, and no two tests can meet on a port. Both our server and the C one take part.
//!
//! This file holds the only sleep of the tests, in [`wait_until`].

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

/// How long a server may take to start or to end.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(10);

/// How a server gets its listening socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Listen {
    /// Inherits a TCP socket on a free port of 127.0.0.1.
    #[default]
    Tcp,
    /// Inherits a Unix socket in the fixture's folder.
    Unix,
    /// Binds a Unix socket in the fixture's folder itself, by `-l unix:PATH`.
    UnixPath,
    /// The same, and it is not waited for: it may as well end at once.
    UnixPathUnasked,
    /// Binds a port that was free a moment ago itself, by `-l` and `-p`.
    Port,
    /// Binds where its words say, with a `-V` among them, and is found by the line that it prints.
    Printed,
}

/// Where clients find the server.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Endpoint {
    /// A connected, blocking socket.
    pub(crate) fn connect(&self) -> io::Result<Socket> {
        match self {
            Endpoint::Tcp(address) => {
                let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
                socket.connect(&SockAddr::from(*address))?;
                socket.set_tcp_nodelay(true)?;
                Ok(socket)
            }
            Endpoint::Unix(path) => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.connect(&SockAddr::unix(path)?)?;
                Ok(socket)
            }
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => write!(f, "{address}"),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A running server and the folder that is its own.
pub(crate) struct Server {
    words: Vec<String>,
    listen: Listen,
    endpoint: Endpoint,
    child: Child,
    dir: TempDir,
}

impl Server {
    /// Starts `words` (program and arguments; `<dir>` in them is the fixture's folder). With an
    /// inherited socket clients may connect at once; otherwise this waits until the server answers.
    pub(crate) fn start(words: &[String], listen: Listen) -> io::Result<Server> {
        Server::start_in(TempDir::new()?, words, listen)
    }

    /// The same with a folder that may have something in it.
    pub(crate) fn start_in(dir: TempDir, words: &[String], listen: Listen) -> io::Result<Server> {
        let words = with_dir(words, dir.path());
        let (child, endpoint) = launch(&words, listen, dir.path())?;
        Ok(Server {
            words,
            listen,
            endpoint,
            child,
            dir,
        })
    }

    /// Where clients find it.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The folder of this fixture. It goes when the fixture goes.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Sends `signal` to the server.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill(self.pid(), signal)?)
    }

    /// Sends `signal` to the server and to its children, if it has any.
    pub(crate) fn signal_all(&self, signal: Signal) -> io::Result<()> {
        self.signal(signal)?;
        let pid = self.pid();
        // Elsewhere a server of several processes is not to be stopped.
        let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = listed.unwrap_or_default();
        let pids = children.split_ascii_whitespace().map(str::parse);
        for pid in pids {
            kill(Pid::from_raw(pid.map_err(io::Error::other)?), signal)?;
        }
        Ok(())
    }

    /// Sends `signal` and waits for the server's end.
    pub(crate) fn stop(&mut self, signal: Signal) -> io::Result<ExitStatus> {
        self.signal(signal)?;
        let mut status = None;
        wait_until(START_LIMIT, || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        });
        status.ok_or_else(|| io::Error::other(format!("still running after {signal}")))
    }

    /// Kills the server and starts it again with the same words in the same folder.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        (self.child, self.endpoint) = launch(&self.words, self.listen, self.dir.path())?;
        Ok(())
    }

    /// The same with other words, of which `<dir>` is this folder.
    pub(crate) fn restart_as(&mut self, words: &[String]) -> io::Result<()> {
        self.words = with_dir(words, self.dir.path());
        self.restart()
    }

    /// How the server has ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The server's process, or what was started in its place to start it.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// All that the server has printed so far, on both streams.
    pub(crate) fn output(&self) -> String {
        fs::read(self.dir.path().join(LOG)).map_or_else(
            |error| format!("({error})"),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Whether the server has not ended by itself.
    pub(crate) fn is_running(&mut self) -> bool {
        self.ended().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that has already ended cannot be killed, which is what was wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `done` says so; false when `limit` is over first.
pub(crate) fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if done() {
            return true;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        thread::sleep(left.min(POLL_EVERY));
    }
}

/// Lets time pass.
pub(crate) fn pass(time: Duration) {
    wait_until(time, || false);
}

fn with_dir(words: &[String], dir: &Path) -> Vec<String> {
    let own = dir.display().to_string();
    words
        .iter()
        .map(|word| word.replace("<dir>", &own))
        .collect()
}

fn launch(words: &[String], listen: Listen, dir: &Path) -> io::Result<(Child, Endpoint)> {
    match listen {
        Listen::Tcp => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let endpoint = Endpoint::Tcp(listener.local_addr()?);
            Ok((hand_over(words, listener.into(), dir)?, endpoint))
        }
        Listen::Unix => {
            let path = dir.join(SOCKET);
            if path.exists() {
                fs::remove_file(&path)?;
            }
            let listener = UnixListener::bind(&path)?;
            Ok((
                hand_over(words, listener.into(), dir)?,
                Endpoint::Unix(path),
            ))
        }
        Listen::UnixPath => {
            let path = dir.join(SOCKET);
            let own = ["-l".to_owned(), format!("unix:{}", path.display())];
            launch_and_ask(words, &own, Endpoint::Unix(path), dir)
        }
        Listen::UnixPathUnasked => {
            let path = dir.join(SOCKET);
            let own = ["-l".to_owned(), format!("unix:{}", path.display())];
            Ok((spawn_words(words, &own, dir)?, Endpoint::Unix(path)))
        }
        Listen::Port => launch_on_port(words, dir),
        Listen::Printed => launch_and_read(words, dir),
    }
}

/// Starts the server with `socket` as descriptor 3. It travels as standard input, which is the one
/// descriptor that can be given away without `unsafe`; the shell moves it and becomes the server.
fn hand_over(words: &[String], socket: OwnedFd, dir: &Path) -> io::Result<Child> {
    let script = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .args(words)
        .stdin(Stdio::from(socket));
    spawn(&mut command, dir)
}

/// Starts the server on a free port. Another process may take the port in between: try anew.
fn launch_on_port(words: &[String], dir: &Path) -> io::Result<(Child, Endpoint)> {
    let mut last = io::Error::other("no port was tried");
    for _ in 0..PORT_TRIES {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let own = ["-l", "127.0.0.1", "-p", &address.port().to_string()].map(str::to_owned);
        match launch_and_ask(words, &own, Endpoint::Tcp(address), dir) {
            Ok(started) => return Ok(started),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Starts the server, which binds its socket itself, and waits until it answers a client.
fn launch_and_ask(
    words: &[String],
    own: &[String],
    endpoint: Endpoint,
    dir: &Path,
) -> io::Result<(Child, Endpoint)> {
    let mut child = spawn_words(words, own, dir)?;
    let mut ended = None;
    let ready = wait_until(START_LIMIT, || {
        ended = child.try_wait().ok().flatten();
        ended.is_some() || answers(&endpoint).unwrap_or(false)
    });
    if ready && ended.is_none() {
        return Ok((child, endpoint));
    }
    let _ = child.kill();
    let _ = child.wait();
    let log = fs::read_to_string(dir.join(LOG)).unwrap_or_default();
    Err(io::Error::other(format!(
        "{words:?} does not answer on {endpoint}: {ended:?}\n{log}"
    )))
}

/// Starts the server and waits until it has said where it listens, which comes after listening.
fn launch_and_read(words: &[String], dir: &Path) -> io::Result<(Child, Endpoint)> {
    let mut child = spawn_words(words, &[], dir)?;
    let mut endpoint = None;
    let log = || fs::read_to_string(dir.join(LOG)).unwrap_or_default();
    wait_until(START_LIMIT, || {
        endpoint = log().lines().find_map(printed_endpoint);
        endpoint.is_some() || child.try_wait().ok().flatten().is_some()
    });
    match endpoint {
        Some(endpoint) => Ok((child, endpoint)),
        None => {
            let _ = child.kill();
            let status = child.wait()?;
            let log = log();
            Err(io::Error::other(format!(
                "{words:?} does not listen: {status}\n{log}"
            )))
        }
    }
}

/// The address of a line `bind <fd> <address>`.
fn printed_endpoint(line: &str) -> Option<Endpoint> {
    let (_, address) = line.strip_prefix("bind ")?.split_once(' ')?;
    Some(match address.parse() {
        Ok(address) => Endpoint::Tcp(address),
        Err(_) => Endpoint::Unix(address.into()),
    })
}

fn spawn_words(words: &[String], own: &[String], dir: &Path) -> io::Result<Child> {
    let (program, args) = words
        .split_first()
        .ok_or_else(|| io::Error::other("no program"))?;
    let mut command = Command::new(program);
    command.args(args).args(own).stdin(Stdio::null());
    spawn(&mut command, dir)
}

fn spawn(command: &mut Command, dir: &Path) -> io::Result<Child> {
    let log: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join(LOG))?;
    command.stdout(log.try_clone()?).stderr(log).spawn()
}

/// Whether a server behind `endpoint` says which tube a fresh client uses.
fn answers(endpoint: &Endpoint) -> io::Result<bool> {
    let mut socket = endpoint.connect()?;
    socket.set_read_timeout(Some(START_LIMIT))?;
    socket.write_all(b"list-tube-used\r\n")?;
    let mut reply = [0; b"USING default\r\n".len()];
    socket.read_exact(&mut reply)?;
    Ok(&reply == b"USING default\r\n")
}

const LOG: &str = "output";
const SOCKET: &str = "socket";
const PORT_TRIES: u32 = 5;
const POLL_EVERY: Duration = Duration::from_millis(5);
