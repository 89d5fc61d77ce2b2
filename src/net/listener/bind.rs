//! Making a listening socket: what the options ask for, in steps that each can fail.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use dns_lookup::{AddrInfoHints, getaddrinfo};
use socket2::{Domain, SockAddr, Socket, Type};

use super::{ListenError, ListenSpec, Listener, PORT_DEFAULT};
use crate::base::limits::LISTEN_BACKLOG;
use crate::net::address::Address;

/// What makes an address a path.
const UNIX_PREFIX: &[u8] = b"unix:";

/// Whether the system shares connections out among the sockets of one address.
const IS_BALANCED: bool = cfg!(any(target_os = "linux", target_os = "freebsd"));

/// See [`Listener::bind`].
pub(super) fn bind(spec: &ListenSpec) -> Result<Listener, ListenError> {
    match unix_path(spec) {
        Some(path) => bind_unix(path),
        None => bind_tcp(spec, bind_address),
    }
}

/// See [`Listener::bind_several`].
pub(super) fn bind_several(spec: &ListenSpec, count: usize) -> Result<Vec<Listener>, ListenError> {
    match unix_path(spec) {
        None if IS_BALANCED && count > 1 => bind_tcp(spec, |address, is_wildcard| {
            bind_group(address, is_wildcard, count)
        }),
        _ => Ok(vec![bind(spec)?]),
    }
}

/// The path, if a Unix socket is asked for.
fn unix_path(spec: &ListenSpec) -> Option<&Path> {
    let address = spec.address.as_ref()?.as_bytes();
    let path = address.strip_prefix(UNIX_PREFIX)?;
    Some(Path::new(OsStr::from_bytes(path)))
}

fn bind_unix(path: &Path) -> Result<Listener, ListenError> {
    let unusable = |source| ListenError::Path {
        path: path.to_owned(),
        source,
    };
    if path.as_os_str().is_empty() {
        // Linux would make up a name that no client could know.
        return Err(unusable(io::ErrorKind::InvalidInput.into()));
    }
    let address = SockAddr::unix(path).map_err(unusable)?;
    if let Ok(there) = path.metadata() {
        if !there.file_type().is_socket() {
            return Err(ListenError::PathTaken {
                path: path.to_owned(),
            });
        }
        // Quirk: it is replaced even if a server lives behind it.
        log::warn!(target: "listener", "removing existing local socket path={}", path.display());
        std::fs::remove_file(path).map_err(|source| ListenError::OldSocket {
            path: path.to_owned(),
            source,
        })?;
    }
    let socket = step(
        "socket",
        &address,
        Socket::new(Domain::UNIX, Type::STREAM, None),
    )?;
    start(socket, &address)
}

/// What `bind` makes of the first of the resolver's addresses that works.
fn bind_tcp<T>(
    spec: &ListenSpec,
    bind: impl Fn(SocketAddr, bool) -> Result<T, ListenError>,
) -> Result<T, ListenError> {
    let mut last = None;
    let is_wildcard = spec.address.is_none();
    for address in resolve(spec)? {
        match bind(address, is_wildcard) {
            Ok(bound) => {
                warn_of_failure(last);
                return Ok(bound);
            }
            Err(error) => warn_of_failure(last.replace(error)),
        }
    }
    Err(last.unwrap_or_else(|| {
        let (host, port) = names(spec);
        ListenError::NoAddress { host, port }
    }))
}

/// Reports an address that others stand in for.
fn warn_of_failure(failure: Option<ListenError>) {
    if let Some(error) = failure {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let source = source.unwrap_or_default();
        log::warn!(target: "listener", "address of several not usable: {error}: {source}");
    }
}

pub(super) fn bind_address(
    address: SocketAddr,
    is_wildcard: bool,
) -> Result<Listener, ListenError> {
    let socket = tcp_socket(address, is_wildcard)?;
    start(socket, &SockAddr::from(address))
}

/// Sockets that share an address. The kernel would let another server of the same user join them
/// unasked, so one that joins nobody goes first: it finds out if the address is taken, and which
/// port it is if any will do.
fn bind_group(
    address: SocketAddr,
    is_wildcard: bool,
    count: usize,
) -> Result<Vec<Listener>, ListenError> {
    let asked = SockAddr::from(address);
    let first = tcp_socket(address, is_wildcard)?;
    step("bind", &asked, first.bind(&asked))?;
    let bound = step("getsockname", &asked, first.local_addr())?;
    drop(first);
    let mut group = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = tcp_socket(address, is_wildcard)?;
        step("setsockopt", &bound, share_port(&socket))?;
        group.push(start(socket, &bound)?);
    }
    Ok(group)
}

#[cfg(target_os = "freebsd")]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port_lb(true)
}

/// Elsewhere than on Linux it would not balance, and nobody calls it.
#[cfg(not(target_os = "freebsd"))]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

/// A socket that is not bound yet.
fn tcp_socket(address: SocketAddr, is_wildcard: bool) -> Result<Socket, ListenError> {
    let target = SockAddr::from(address);
    let domain = Domain::for_address(address);
    let socket = step("socket", &target, Socket::new(domain, Type::STREAM, None))?;
    step("setsockopt", &target, socket.set_reuse_address(true))?;
    set_tcp_options(&socket, &target)?;
    if is_wildcard && address.is_ipv6() {
        step("setsockopt", &target, socket.set_only_v6(false))?;
    }
    Ok(socket)
}

/// The options that accepted connections inherit.
pub(super) fn set_tcp_options(socket: &Socket, address: &SockAddr) -> Result<(), ListenError> {
    step("setsockopt", address, socket.set_keepalive(true))?;
    step("setsockopt", address, socket.set_tcp_nodelay(true))
}

fn start(socket: Socket, address: &SockAddr) -> Result<Listener, ListenError> {
    step("fcntl", address, socket.set_nonblocking(true))?;
    step("bind", address, socket.bind(address))?;
    step("listen", address, socket.listen(LISTEN_BACKLOG))?;
    Ok(Listener {
        socket,
        is_inherited: false,
    })
}

/// Names the step that failed, and on what.
pub(super) fn step<T>(
    step: &'static str,
    address: &SockAddr,
    result: io::Result<T>,
) -> Result<T, ListenError> {
    result.map_err(|source| ListenError::Socket {
        step,
        address: Address::from(address),
        source,
    })
}

fn resolve(spec: &ListenSpec) -> Result<Vec<SocketAddr>, ListenError> {
    let (host, port) = names(spec);
    let hints = AddrInfoHints {
        flags: libc::AI_PASSIVE,
        socktype: libc::SOCK_STREAM,
        ..AddrInfoHints::default()
    };
    let found = getaddrinfo(host.as_deref(), Some(&port), Some(hints));
    match found.map_err(io::Error::from) {
        // What is not of the internet's families has been asked for by nobody.
        Ok(found) => Ok(found.flatten().map(|info| info.sockaddr).collect()),
        Err(source) => Err(ListenError::Resolve { host, port, source }),
    }
}

/// Host and port for the resolver. Bytes that are not UTF-8 are replaced by what no host has in
/// its name, so the resolver will refuse it.
fn names(spec: &ListenSpec) -> (Option<String>, String) {
    let text = |name: &OsString| name.to_string_lossy().into_owned();
    let port = spec.port.as_ref().map_or(PORT_DEFAULT.to_owned(), text);
    (spec.address.as_ref().map(text), port)
}

/// Host and port as people write them.
pub(super) fn target(host: Option<&str>, port: &str) -> String {
    format!("{}:{port}", host.unwrap_or("*"))
}
