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

/// See [`Listener::bind`].
pub(super) fn bind(spec: &ListenSpec) -> Result<Listener, ListenError> {
    let path = spec
        .address
        .as_ref()
        .and_then(|address| address.as_bytes().strip_prefix(UNIX_PREFIX));
    match path {
        Some(path) => bind_unix(Path::new(OsStr::from_bytes(path))),
        None => bind_tcp(spec),
    }
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

fn bind_tcp(spec: &ListenSpec) -> Result<Listener, ListenError> {
    let mut last = None;
    let is_wildcard = spec.address.is_none();
    for address in resolve(spec)? {
        match bind_address(address, is_wildcard) {
            Ok(listener) => {
                warn_of_failure(last);
                return Ok(listener);
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
    let domain = Domain::for_address(address);
    let target = SockAddr::from(address);
    let socket = step("socket", &target, Socket::new(domain, Type::STREAM, None))?;
    step("setsockopt", &target, socket.set_reuse_address(true))?;
    set_tcp_options(&socket, &target)?;
    if is_wildcard && address.is_ipv6() {
        step("setsockopt", &target, socket.set_only_v6(false))?;
    }
    start(socket, &target)
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
