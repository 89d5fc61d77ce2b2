//! Where the server listens: ports, addresses, and the files of Unix sockets.

use std::net::{Ipv6Addr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};

use nix::sys::signal::Signal;

use crate::fixture::{Endpoint, Listen, Server};
use crate::peer::Peer;
use crate::program::{ours, ours_after, skip, start};

fn port(server: &Server) -> u16 {
    match server.endpoint() {
        Endpoint::Tcp(address) => address.port(),
        Endpoint::Unix(path) => panic!("{} has no port", path.display()),
    }
}

// L5.5
#[test]
fn an_empty_port_and_port_0_are_any_port() {
    for port_flag in ["-p0", "--port="] {
        let server = start(
            &ours(&["-V", "-l", "127.0.0.1", port_flag]),
            Listen::Printed,
        );
        assert_ne!(port(&server), 0);
        assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
    }
}

// L5.5
#[test]
fn a_name_is_resolved() {
    let server = start(
        &ours(&["-V", "-l", "localhost", "-p", "0"]),
        Listen::Printed,
    );
    assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
}

// L5.5
#[test]
fn an_ipv6_address_is_listened_on_and_printed_in_brackets() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return skip("no IPv6 here");
    }
    let server = start(&ours(&["-V", "-l", "::1", "-p", "0"]), Listen::Printed);
    let address = format!(" [::1]:{}\n", port(&server));
    assert!(server.output().contains(&address), "{}", server.output());
    assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
}

// L5.6, K19
#[test]
fn a_unix_socket_takes_the_place_of_one_and_stays_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    // A server that is alive, and has no say.
    let old = UnixListener::bind(&path).unwrap();
    let flag = format!("unix:{}", path.display());
    let words = ours_after("umask 027", &["-V", "-l", &flag]);
    for _ in 0..2 {
        let mut server = start(&words, Listen::Printed);
        assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
        let warning = format!("removing existing local socket path={}", path.display());
        assert!(server.output().contains(&warning), "{}", server.output());
        assert!(server.stop(Signal::SIGTERM).unwrap().success());
        let left = path.metadata().expect("the file stays");
        assert!(left.file_type().is_socket());
        assert_eq!(left.permissions().mode() & 0o777, 0o750);
    }
    assert!(UnixStream::connect(&path).is_err());
    drop(old);
}
