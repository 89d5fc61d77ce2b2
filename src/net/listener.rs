//! The listening socket: inherited from a service manager, a Unix socket, or TCP, looked for in
//! this order, and accepting from it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Socket, Type};

use crate::net::address::Address;
use crate::net::stream::Stream;
use crate::sys::{fd, process};

mod bind;

use bind::{set_tcp_options, step, target};

/// The port unless one is asked for.
pub const PORT_DEFAULT: &str = "11300";

/// Where to listen, as the options say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenSpec {
    /// A host name or address for the resolver, or `unix:` and a path. Without it: every address
    /// of this machine, in the resolver's first family.
    pub address: Option<OsString>,
    /// A port number or a service name for the resolver, [`PORT_DEFAULT`] without it; an empty one
    /// means any free port. Of no use to a Unix socket.
    pub port: Option<OsString>,
}

/// Why there is no listening socket.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The resolver does not know the host or the service.
    #[error("getaddrinfo(): {}", target(host.as_deref(), port))]
    Resolve {
        /// The host asked for, if any.
        host: Option<String>,
        /// The port or service.
        port: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The resolver knows the host, but no address of it.
    #[error("getaddrinfo(): {}: no address to listen on", target(host.as_deref(), port))]
    NoAddress {
        /// The host asked for, if any.
        host: Option<String>,
        /// The port or service.
        port: String,
    },
    /// A step in making the socket failed.
    #[error("{step}(): {address}")]
    Socket {
        /// The call.
        step: &'static str,
        /// What it was to listen on.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// The path is none that a socket can have: empty or too long.
    #[error("{}: not usable as the path of a socket", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// Something that is not a socket is there already.
    #[error("another file already exists in the given path: {}", path.display())]
    PathTaken {
        /// The path.
        path: PathBuf,
    },
    /// The socket file that is there already cannot be removed.
    #[error("{}: cannot remove the old socket", path.display())]
    OldSocket {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A variable of socket activation makes no sense.
    #[error("{name}={}: not a usable number", value.display())]
    Activation {
        /// The variable.
        name: &'static str,
        /// What it says.
        value: OsString,
    },
    /// The variables of socket activation speak of a descriptor that is not open.
    #[error("inherited socket {descriptor}: cannot take it over")]
    Inherited {
        /// The descriptor.
        descriptor: RawFd,
        /// What the system said.
        source: io::Error,
    },
    /// What was inherited is not a listening stream socket, TCP or Unix.
    #[error("inherited socket {descriptor}: not a listening stream socket")]
    InheritedKind {
        /// The descriptor.
        descriptor: RawFd,
    },
}

/// Why a connection could not be accepted, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// Descriptors or memory have run out. The connection stays in the queue, so the listener is
    /// best left alone until a connection closes or a moment has passed.
    #[error("accept(): descriptors or memory have run out")]
    Exhausted {
        /// What the system said.
        source: io::Error,
    },
    /// This one connection was lost before it was accepted; the next may be fine.
    #[error("accept(): the connection was lost")]
    Lost {
        /// What the system said.
        source: io::Error,
    },
    /// The listening socket itself does not work.
    #[error("accept(): the listening socket is out of order")]
    Broken {
        /// What the system said.
        source: io::Error,
    },
}

/// A listening socket. A Unix socket's file stays behind when it is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    is_inherited: bool,
}

impl Listener {
    /// The inherited socket if a service manager has left one for this process, else one made as
    /// `spec` says. What is worth knowing but no error goes to the log. The variables of socket
    /// activation are removed from the environment; to be called before there is a second thread.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn open(spec: &ListenSpec) -> Result<Listener, ListenError> {
        match Listener::take_inherited(spec)? {
            Some(listener) => Ok(listener),
            None => Listener::bind(spec),
        }
    }

    /// As [`Listener::open`], for `count` processes: an inherited socket is for all of them, and
    /// without one it is as with [`Listener::bind_several`].
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn open_several(spec: &ListenSpec, count: usize) -> Result<Vec<Listener>, ListenError> {
        match Listener::take_inherited(spec)? {
            Some(listener) => Ok(vec![listener]),
            None => Listener::bind_several(spec, count),
        }
    }

    fn take_inherited(spec: &ListenSpec) -> Result<Option<Listener>, ListenError> {
        let owner = std::env::var_os("LISTEN_PID");
        let count = std::env::var_os("LISTEN_FDS");
        process::remove_listen_variables();
        let count = inherited_count(owner.as_deref(), count.as_deref(), process::pid())?;
        if count == 0 {
            return Ok(None);
        }
        for warning in inherited_warnings(spec, count) {
            log::warn!(target: "listener", "{warning}");
        }
        let socket = fd::take_listen_fd(count).map_err(|source| ListenError::Inherited {
            descriptor: fd::LISTEN_FD,
            source,
        })?;
        Listener::inherit(socket).map(Some)
    }

    /// A new socket as `spec` says.
    ///
    /// A Unix socket takes the place of a socket file that is there already, whoever listens on
    /// it. For TCP the resolver's addresses are tried in order and the first that works is used.
    /// Without an address the first is the IPv4 wildcard on Linux; where it is the IPv6 wildcard,
    /// that takes IPv4 too.
    ///
    /// # Errors
    /// [`ListenError`], of several addresses the last one's; the others' go to the log.
    pub fn bind(spec: &ListenSpec) -> Result<Listener, ListenError> {
        bind::bind(spec)
    }

    /// Listening sockets for `count` processes: one for each where the system shares connections
    /// out among the sockets of one TCP address (Linux, FreeBSD), else a single one for all of
    /// them. Each has a queue of its own, so all of them have to be accepted from.
    ///
    /// The address must be free: sockets of another server are not joined.
    ///
    /// # Errors
    /// As [`Listener::bind`]; no socket is left then.
    pub fn bind_several(spec: &ListenSpec, count: usize) -> Result<Vec<Listener>, ListenError> {
        bind::bind_several(spec, count)
    }

    /// Takes over a listening stream socket, TCP or Unix, made by somebody else, and sets on it
    /// what one of our own would have.
    ///
    /// # Errors
    /// [`ListenError::InheritedKind`] if it is something else, [`ListenError::Socket`] if an
    /// option cannot be set.
    pub fn inherit(descriptor: OwnedFd) -> Result<Listener, ListenError> {
        let raw = descriptor.as_raw_fd();
        let socket = Socket::from(descriptor);
        let is_stream = socket.r#type().is_ok_and(|kind| kind == Type::STREAM);
        // A system that cannot tell is believed: accept will say so if it was wrong.
        let is_listening = is_stream && getsockopt(&socket, sockopt::AcceptConn).unwrap_or(true);
        let address = socket.local_addr().ok().filter(|address| {
            matches!(address.domain(), Domain::IPV4 | Domain::IPV6 | Domain::UNIX)
        });
        let (true, Some(address)) = (is_listening, address) else {
            return Err(ListenError::InheritedKind { descriptor: raw });
        };
        if !address.is_unix() {
            set_tcp_options(&socket, &address)?;
        }
        step("fcntl", &address, fd::set_nonblocking(socket.as_fd()))?;
        step(
            "fcntl",
            &address,
            fd::set_close_on_exec(socket.as_fd(), true),
        )?;
        Ok(Listener {
            socket,
            is_inherited: true,
        })
    }

    /// Whether somebody else has made the socket.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.is_inherited
    }

    /// The next connection from the queue, non-blocking and with the listener's TCP options, or
    /// `None` if there is none.
    ///
    /// # Errors
    /// [`AcceptError`].
    pub fn accept(&self) -> Result<Option<Stream>, AcceptError> {
        loop {
            match accept_socket(&self.socket) {
                Ok(socket) => return Ok(Some(Stream::new(socket))),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(AcceptError::from_io(error)),
                },
            }
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn local_address(&self) -> Address {
        self.socket
            .local_addr()
            .map_or(Address::Unknown, |address| Address::from(&address))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AcceptError {
    fn from_io(source: io::Error) -> AcceptError {
        match source.raw_os_error().unwrap_or(0) {
            libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
                AcceptError::Exhausted { source }
            }
            // Besides a connection that ended in the queue: what Linux reports of the new
            // connection's network through accept, and a firewall's refusal.
            libc::ECONNABORTED
            | libc::ECONNRESET
            | libc::EPROTO
            | libc::EPERM
            | libc::ENETDOWN
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::EHOSTUNREACH
            | libc::ENOPROTOOPT
            | libc::ETIMEDOUT => AcceptError::Lost { source },
            _ => AcceptError::Broken { source },
        }
    }
}

/// How many sockets the variables of activation hand to the process `own_pid`; zero if they are
/// not set or meant for another process.
fn inherited_count(
    owner: Option<&OsStr>,
    count: Option<&OsStr>,
    own_pid: u32,
) -> Result<RawFd, ListenError> {
    let (Some(owner), Some(count)) = (owner, count) else {
        return Ok(0);
    };
    let unusable = |name, value: &OsStr| ListenError::Activation {
        name,
        value: value.to_owned(),
    };
    let pid: u32 = parse_number(owner).ok_or_else(|| unusable("LISTEN_PID", owner))?;
    if pid != own_pid {
        return Ok(0);
    }
    parse_number(count)
        .filter(|&count: &RawFd| count > 0)
        .ok_or_else(|| unusable("LISTEN_FDS", count))
}

fn parse_number<T: std::str::FromStr>(text: &OsStr) -> Option<T> {
    text.to_str()?.trim().parse().ok()
}

/// What a user should know about options and sockets that go unused with an inherited socket.
fn inherited_warnings(spec: &ListenSpec, count: RawFd) -> impl Iterator<Item = &'static str> {
    [
        (count > 1, "more than one inherited socket, using the first"),
        (
            spec.address.is_some(),
            "inherited socket in use, ignoring option -l",
        ),
        (
            spec.port.is_some(),
            "inherited socket in use, ignoring option -p",
        ),
    ]
    .into_iter()
    .filter_map(|(applies, text)| applies.then_some(text))
}

/// One call where the system has it, three elsewhere.
#[cfg(not(target_vendor = "apple"))]
fn accept_socket(listener: &Socket) -> io::Result<Socket> {
    use nix::sys::socket::{SockFlag, accept4};

    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    Ok(accept4(listener, flags)?.into())
}

#[cfg(target_vendor = "apple")]
fn accept_socket(listener: &Socket) -> io::Result<Socket> {
    let (socket, _) = listener.accept()?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests;
