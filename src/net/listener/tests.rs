//! Listening, by the rules of the original.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use tempfile::TempDir;

use super::bind::bind_address;
use super::*;
use crate::net::stream::ReadOutcome;
use crate::sys::poller::{Interest, Poller};

fn tcp(address: Option<&str>, port: &str) -> ListenSpec {
    ListenSpec {
        address: address.map(OsString::from),
        port: Some(port.into()),
    }
}

fn unix(path: &Path) -> ListenSpec {
    let mut address = OsString::from("unix:");
    address.push(path);
    ListenSpec {
        address: Some(address),
        port: None,
    }
}

fn accept(listener: &Listener) -> Stream {
    let mut poller = Poller::new().unwrap();
    poller.watch(listener.as_fd(), 0, Interest::READ).unwrap();
    let mut ready = Vec::new();
    poller.wait(Some(10_000_000_000), &mut ready).unwrap();
    assert!(ready[0].readable);
    listener.accept().unwrap().unwrap()
}

fn assert_flags(fd: BorrowedFd<'_>) {
    let status = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).unwrap());
    assert!(status.contains(OFlag::O_NONBLOCK));
    let flags = FdFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFD).unwrap());
    assert!(flags.contains(FdFlag::FD_CLOEXEC));
}

fn assert_tcp_options(fd: BorrowedFd<'_>) {
    let socket = socket2::SockRef::from(&fd);
    assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
}

#[test]
fn a_connection_inherits_what_the_listener_has() {
    let listener = Listener::bind(&tcp(Some("127.0.0.1"), "0")).unwrap();
    assert!(socket2::SockRef::from(&listener).reuse_address().unwrap());
    assert_flags(listener.as_fd());
    assert_tcp_options(listener.as_fd());
    assert!(listener.accept().unwrap().is_none());

    let port = listener.local_address().port().unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let stream = accept(&listener);
    assert_flags(stream.as_fd());
    assert_tcp_options(stream.as_fd());
    let name = client.local_addr().unwrap().to_string();
    assert_eq!(stream.peer().to_string(), name);
    assert_eq!(stream.read(&mut [0]).unwrap(), ReadOutcome::WouldBlock);
    client.write_all(b"x").unwrap();
    assert!(listener.accept().unwrap().is_none());
}

#[test]
fn an_empty_port_is_any_port() {
    let listener = Listener::bind(&tcp(Some("localhost"), "")).unwrap();
    assert_ne!(listener.local_address().port(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn without_an_address_it_is_the_ipv4_wildcard() {
    let listener = Listener::bind(&tcp(None, "0")).unwrap();
    assert!(listener.local_address().to_string().starts_with("0.0.0.0:"));
}

#[test]
fn an_ipv6_wildcard_takes_ipv4_unless_it_was_asked_for() {
    let Ok(both) = bind_address("[::]:0".parse().unwrap(), true) else {
        return; // A machine without IPv6.
    };
    let socket = socket2::SockRef::from(&both);
    assert!(!socket.only_v6().unwrap());
    assert!(both.local_address().to_string().starts_with("[::]:"));
}

#[test]
fn a_port_in_use_names_the_step_and_the_address() {
    let first = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = first.local_addr().unwrap().port().to_string();
    let error = Listener::bind(&tcp(Some("127.0.0.1"), &port)).unwrap_err();
    let at = format!("127.0.0.1:{port}");
    assert!(
        ["bind(): ", "listen(): "]
            .iter()
            .any(|step| error.to_string() == format!("{step}{at}"))
    );
}

#[test]
fn what_the_resolver_does_not_know_is_an_error() {
    for spec in [
        tcp(Some("256.0.0.1.invalid"), "0"),
        tcp(Some("127.0.0.1"), "no-such-service"),
        tcp(Some(""), "0"),
    ] {
        let error = Listener::bind(&spec).unwrap_err();
        assert!(matches!(error, ListenError::Resolve { .. }), "{error:?}");
        assert!(error.to_string().starts_with("getaddrinfo(): "));
    }
}

#[test]
fn a_unix_socket_replaces_one_and_stays_behind() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("sock");
    let old = UnixListener::bind(&path).unwrap();
    let listener = Listener::bind(&unix(&path)).unwrap();
    assert_flags(listener.as_fd());
    assert_eq!(listener.local_address().to_string(), path.to_str().unwrap());
    let client = UnixStream::connect(&path).unwrap();
    let stream = accept(&listener);
    assert_flags(stream.as_fd());
    assert_eq!(stream.peer().to_string(), "unix");
    drop((old, client, listener));
    assert!(path.exists());
    Listener::bind(&unix(&path)).unwrap();
}

#[test]
fn a_path_that_is_no_socket_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "precious").unwrap();
    for path in [path.as_path(), dir.path()] {
        let error = Listener::bind(&unix(path)).unwrap_err();
        assert!(matches!(error, ListenError::PathTaken { .. }), "{error:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_path_has_a_length_and_a_folder() {
    let dir = TempDir::new().unwrap();
    let long = dir.path().join("x".repeat(108));
    for path in [long.as_path(), Path::new("")] {
        let error = Listener::bind(&unix(path)).unwrap_err();
        assert!(matches!(error, ListenError::Path { .. }), "{error:?}");
    }
    let error = Listener::bind(&unix(&dir.path().join("no/sock"))).unwrap_err();
    assert!(matches!(error, ListenError::Socket { step: "bind", .. }));
}

#[test]
fn an_inherited_tcp_socket_gets_the_same_options() {
    let listener = Listener::inherit(TcpListener::bind("127.0.0.1:0").unwrap().into()).unwrap();
    assert_flags(listener.as_fd());
    assert_tcp_options(listener.as_fd());
    assert!(listener.accept().unwrap().is_none());
}

#[test]
fn an_inherited_unix_socket_is_taken() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("sock");
    let listener = Listener::inherit(UnixListener::bind(&path).unwrap().into()).unwrap();
    assert!(listener.accept().unwrap().is_none());
}

#[test]
fn an_inherited_descriptor_must_be_a_listening_stream_socket() {
    let (connected, _other) = UnixStream::pair().unwrap();
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let file = tempfile::tempfile().unwrap();
    let datagram = UdpSocket::bind("127.0.0.1:0").unwrap();
    for descriptor in [
        OwnedFd::from(connected),
        bound.into(),
        file.into(),
        datagram.into(),
    ] {
        let error = Listener::inherit(descriptor).unwrap_err();
        assert!(matches!(error, ListenError::InheritedKind { .. }));
    }
}

#[test]
fn the_variables_of_activation_are_read_as_the_service_manager_means_them() {
    let count = |pid: Option<&str>, fds: Option<&str>| {
        inherited_count(pid.map(OsStr::new), fds.map(OsStr::new), 42)
    };
    assert_eq!(count(None, Some("1")).unwrap(), 0);
    assert_eq!(count(Some("42"), None).unwrap(), 0);
    assert_eq!(count(Some("43"), Some("1")).unwrap(), 0);
    assert_eq!(count(Some("43"), Some("x")).unwrap(), 0);
    assert_eq!(count(Some("42"), Some("3")).unwrap(), 3);
    for fds in ["0", "-1", "x", "", "1x", "99999999999"] {
        let error = count(Some("42"), Some(fds)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("LISTEN_FDS={fds}: not a usable number")
        );
    }
    assert!(count(Some("x"), Some("1")).is_err());
}

#[test]
fn what_an_inherited_socket_makes_useless_is_warned_about() {
    let warnings = |spec: &ListenSpec, count| inherited_warnings(spec, count).count();
    assert_eq!(warnings(&ListenSpec::default(), 1), 0);
    assert_eq!(warnings(&ListenSpec::default(), 2), 1);
    assert_eq!(warnings(&tcp(Some("localhost"), "1"), 1), 2);
    let all: Vec<_> = inherited_warnings(&tcp(Some("localhost"), "1"), 2).collect();
    assert!(all[1].contains("-l") && all[2].contains("-p"));
}

#[test]
fn accept_errors_are_told_apart_by_what_to_do() {
    let kind = |errno| AcceptError::from_io(io::Error::from_raw_os_error(errno));
    for errno in [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM] {
        assert!(matches!(kind(errno), AcceptError::Exhausted { .. }));
    }
    for errno in [libc::ECONNABORTED, libc::EPROTO, libc::EPERM] {
        assert!(matches!(kind(errno), AcceptError::Lost { .. }));
    }
    for errno in [libc::EBADF, libc::EINVAL, libc::ENOTSOCK] {
        assert!(matches!(kind(errno), AcceptError::Broken { .. }));
    }
}

#[cfg(any(target_os = "linux", target_os = "freebsd"))]
#[test]
fn several_sockets_of_one_address_all_get_connections() {
    let group = Listener::bind_several(&tcp(Some("127.0.0.1"), "0"), 2).unwrap();
    assert_eq!(group.len(), 2);
    let address = group[0].local_address();
    assert_eq!(group[1].local_address(), address);
    for listener in &group {
        assert_flags(listener.as_fd());
        assert_tcp_options(listener.as_fd());
    }
    // Each connection goes to either; that all of so many go to one does not happen.
    let clients: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(address.to_string()).unwrap())
        .collect();
    let got = group
        .iter()
        .map(|listener| std::iter::from_fn(|| listener.accept().unwrap()).count());
    let got: Vec<_> = got.collect();
    assert!(got.iter().all(|count| *count > 0), "{got:?}");
    assert_eq!(got.iter().sum::<usize>(), clients.len());
}

/// A server that is started twice by mistake must not get every other connection of the first.
#[test]
fn an_address_that_others_share_is_not_joined() {
    let group = Listener::bind_several(&tcp(Some("127.0.0.1"), "0"), 2).unwrap();
    let port = group[0].local_address().port().unwrap().to_string();
    for count in [1, 2] {
        let error = Listener::bind_several(&tcp(Some("127.0.0.1"), &port), count).unwrap_err();
        let ListenError::Socket { step, source, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!((step, source.kind()), ("bind", io::ErrorKind::AddrInUse));
    }
}

#[test]
fn a_path_has_one_socket_for_all() {
    let dir = TempDir::new().unwrap();
    let group = Listener::open_several(&unix(&dir.path().join("b.sock")), 3).unwrap();
    assert_eq!(group.len(), 1);
}
