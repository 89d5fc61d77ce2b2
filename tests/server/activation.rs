//! The service manager's side of the program: sockets that it hands over, and what it is told.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::fixture::{Listen, START_LIMIT};
#[cfg(target_os = "linux")]
use crate::measure::read;
use crate::peer::Peer;
use crate::program::{PROGRAM, ours, ours_after, serve, start, words};

// L5.7
#[test]
fn inherited_sockets_of_both_kinds_are_served() {
    for listen in [Listen::Tcp, Listen::Unix] {
        let server = start(&ours::<&str>(&[]), listen);
        assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
        let output = server.output();
        assert!(!output.contains(" warn "), "{output}");
    }
}

// L5.7
#[test]
fn of_several_inherited_sockets_the_first_is_served_with_a_warning() {
    let words = ours_after("exec 4<&3; export LISTEN_FDS=2", &[]);
    let server = start(&words, Listen::Tcp);
    assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
    let output = server.output();
    assert!(
        output.contains("more than one inherited socket, using the first"),
        "{output}"
    );
}

// L5.7
#[test]
fn address_and_port_are_ignored_with_a_warning_each_if_a_socket_is_inherited() {
    let server = serve(&["-l", "no-such-host.invalid", "-p", "no-such-service"]);
    assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
    for flag in ["-l", "-p"] {
        let warning = format!("inherited socket in use, ignoring option {flag}\n");
        assert!(server.output().contains(&warning), "{}", server.output());
    }
}

// L5.7
#[test]
fn sockets_meant_for_another_process_are_left_alone() {
    // They were there for the shell, which started the server as a child of its own.
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; \"$@\" & trap \"kill $!\" TERM; wait";
    let head = ["sh", "-c", script, "sh", PROGRAM];
    let words = words(&head, &["-V", "-l", "127.0.0.1", "-p", "0"]);
    let mut server = start(&words, Listen::Printed);
    let mut peer = Peer::of(&server);
    assert_eq!(peer.ask("list-tube-used"), "USING default");
    assert!(
        !server.output().contains("inherited"),
        "{}",
        server.output()
    );
    server.stop(Signal::SIGTERM).unwrap();
    assert!(peer.is_closed());
}

// Q29
#[cfg(target_os = "linux")]
#[test]
fn an_inherited_socket_does_not_block_any_more() {
    for listen in [Listen::Tcp, Listen::Unix] {
        let server = start(&ours::<&str>(&[]), listen);
        assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
        let info = read(&server, "fdinfo/3");
        let flags = info.lines().find_map(|row| row.strip_prefix("flags:"));
        let flags = u32::from_str_radix(flags.expect("a row").trim(), 8).unwrap();
        assert_ne!(flags & 0o4000, 0, "O_NONBLOCK in {info}");
    }
}

/// What the service manager is told next.
fn next_notice(manager: &UnixDatagram) -> String {
    let set = manager.set_read_timeout(Some(START_LIMIT));
    set.expect("a socket has this option");
    let mut notice = [0; 256];
    let len = manager.recv(&mut notice).expect("a notice comes");
    String::from_utf8_lossy(&notice[..len]).trim().to_owned()
}

fn manager_at(path: &Path) -> UnixDatagram {
    UnixDatagram::bind(path).expect("a socket can be made")
}

// Readiness is our addition: the original has a unit of type simple.
#[test]
fn the_service_manager_hears_when_clients_are_served_and_when_it_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = manager_at(&path);
    let variable = format!("export NOTIFY_SOCKET={}", path.display());
    let mut server = start(&ours_after(&variable, &[]), Listen::UnixPathUnasked);
    assert_eq!(next_notice(&manager), "READY=1");
    // No second try: there is a socket now, and somebody behind it.
    let mut peer = Peer::of(&server);
    assert_eq!(peer.ask("list-tube-used"), "USING default");
    manager.set_nonblocking(true).unwrap();
    assert!(manager.recv(&mut [0; 64]).is_err(), "told once");
    manager.set_nonblocking(false).unwrap();

    assert!(server.stop(Signal::SIGTERM).unwrap().success());
    assert_eq!(next_notice(&manager), "STOPPING=1");
}

// As above: what fails later is not announced.
#[test]
fn a_server_that_does_not_start_does_not_say_that_it_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = manager_at(&path);
    let variable = format!("export NOTIFY_SOCKET={}", path.display());
    let mut server = start(
        &ours_after(&variable, &["-u", "no-such-user"]),
        Listen::UnixPathUnasked,
    );
    assert!(crate::fixture::wait_until(START_LIMIT, || server
        .ended()
        .is_some()));
    let wait = Duration::from_millis(1);
    manager.set_read_timeout(Some(wait)).unwrap();
    assert!(manager.recv(&mut [0; 64]).is_err());
}
