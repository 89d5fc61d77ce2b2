//! What signals do to a server with clients.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use crate::fixture::{Listen, START_LIMIT, Server, wait_until};
use crate::peer::{Peer, put};
use crate::program::{ours, serve};

/// How long a server may take to end when asked to.
pub(crate) const END_LIMIT: Duration = Duration::from_secs(1);

/// Has a server obey commands without a pause, until it is gone.
fn keep_busy(server: &Server) {
    let mut socket = server.endpoint().connect().expect("a connection");
    let mut commands = put(b"work");
    commands.extend_from_slice(b"peek-delayed\r\nstats\r\n");
    let block = commands.repeat(20);
    thread::spawn(move || {
        while socket.write_all(&block).is_ok() {
            if !matches!(socket.read(&mut [0; 65_536]), Ok(1..)) {
                return;
            }
        }
    });
}

// L5.6: the original ends by the signal itself; ours says that it meant to.
#[test]
fn a_server_asked_to_end_does_so_at_once_whatever_its_clients_do() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut server = serve(&["-z", "4000000"]);
        let mut waiting = Peer::of(&server);
        waiting.send("watch nothing\r\nignore default\r\nreserve\r\n");
        let mut slow = Peer::of(&server);
        assert!(slow.put(&[b'x'; 4_000_000]).starts_with("INSERTED "));
        slow.send("peek-ready\r\n".repeat(50));
        for _ in 0..3 {
            keep_busy(&server);
        }
        let mut peer = Peer::of(&server);
        let is_busy = || peer.stat("total-jobs").parse::<u32>().unwrap_or(0) > 500;
        assert!(wait_until(START_LIMIT, is_busy));
        let before = Instant::now();
        let status = server.stop(signal).expect("it ends");
        assert!(before.elapsed() < END_LIMIT, "{:?}", before.elapsed());
        assert_eq!(status.code(), Some(0), "{signal}");
    }
}

// L5.6, K21
#[test]
fn in_drain_mode_new_jobs_are_refused_and_everything_else_works() {
    let server = serve(&["-z", "10"]);
    let mut peer = Peer::of(&server);
    let (mut waiting, mut other) = (Peer::of(&server), Peer::of(&server));
    for id in 1..=3 {
        assert_eq!(peer.put(b"work"), format!("INSERTED {id}"));
    }
    assert_eq!(peer.stat("draining"), "false");
    server.signal(Signal::SIGUSR1).expect("a process");
    assert!(wait_until(START_LIMIT, || other.stat("draining") == "true"));

    // The body goes, or the line behind it would not be known.
    assert_eq!(peer.put(b"list-tubes"), "DRAINING");
    assert_eq!(peer.ask("list-tube-used"), "USING default");
    assert_eq!(peer.ask("put 0 0 1 1\r\nabc"), "EXPECTED_CRLF");
    assert_eq!(peer.line(), "UNKNOWN_COMMAND");
    assert_eq!(peer.ask("put 0 0 1 11\r\n01234567890"), "JOB_TOO_BIG");
    assert_eq!(peer.ask("put x"), "BAD_FORMAT");

    assert_eq!(peer.ask("reserve"), "RESERVED 1 4");
    assert_eq!(peer.body(4), b"work");
    assert_eq!(peer.ask("release 1 0 0"), "RELEASED");
    assert_eq!(peer.ask("reserve-job 1"), "RESERVED 1 4");
    peer.body(4);
    assert_eq!(peer.ask("bury 1 0"), "BURIED");
    assert_eq!(peer.ask("kick 1"), "KICKED 1");
    assert_eq!(peer.ask("delete 1"), "DELETED");
    assert_eq!(peer.ask("use t"), "USING t");

    waiting.send("watch empty\r\nignore default\r\nreserve-with-timeout 100\r\n");
    assert_eq!(waiting.line(), "WATCHING 2");
    assert_eq!(waiting.line(), "WATCHING 1");
    waiting.half_close();
    assert_eq!(waiting.line(), "TIMED_OUT");

    // New clients are served, and there is no way back.
    server.signal(Signal::SIGUSR1).expect("a process");
    let mut late = Peer::of(&server);
    assert_eq!(late.put(b"work"), "DRAINING");
    assert_eq!(late.stat("draining"), "true");
    assert_eq!(late.stat("current-jobs-ready"), "2");
}

// L1.22, L5.6, A3.4
#[test]
fn a_client_that_goes_while_a_body_is_sent_harms_nobody() {
    let server = serve(&["-z", "20000000"]);
    let mut peer = Peer::of(&server);
    // Larger than what the kernel takes.
    for id in 1..=2 {
        assert_eq!(peer.put(&vec![b'x'; 20_000_000]), format!("INSERTED {id}"));
    }
    for how in ["reset", "close", "shutdown"] {
        let socket = server.endpoint().connect().expect("a connection");
        let send = |bytes: &[u8]| socket.send(bytes).expect("it is taken");
        send(b"reserve\r\npeek 2\r\n");
        let reserved = || peer.stat("current-jobs-reserved") == "1";
        assert!(wait_until(START_LIMIT, reserved), "the body is on its way");
        match how {
            "reset" => socket.set_linger(Some(Duration::ZERO)).expect("an option"),
            "shutdown" => socket.shutdown(Shutdown::Both).expect("it is open"),
            _ => {}
        }
        drop(socket);
        let alone = || peer.stat("current-connections") == "1";
        assert!(wait_until(START_LIMIT, alone), "{how}");
        assert_eq!(peer.stat("current-jobs-ready"), "2", "{how}");
        assert_eq!(peer.stat("current-jobs-reserved"), "0", "{how}");
        assert_eq!(peer.stat("current-workers"), "0", "{how}");
    }
}

// L5.6
#[test]
fn a_mask_that_was_inherited_hides_no_signal() {
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGUSR1].into_iter().collect();
    signals.thread_block().expect("this thread's mask");
    // A program takes over the mask of the thread that starts it.
    let started = Server::start(&ours::<&str>(&[]), Listen::Tcp);
    signals.thread_unblock().expect("this thread's mask");
    let mut server = started.expect("the server starts");
    let mut peer = Peer::of(&server);
    assert_eq!(peer.stat("draining"), "false");
    server.signal(Signal::SIGUSR1).expect("a process");
    assert!(wait_until(START_LIMIT, || peer.stat("draining") == "true"));
    assert_eq!(server.stop(Signal::SIGTERM).unwrap().code(), Some(0));
}
