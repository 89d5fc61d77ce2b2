//! Clients that send more than they read: what they are owed is bounded, kept, and nobody else's
//! concern.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use socket2::Socket;

use crate::fixture::{START_LIMIT, Server, wait_until};
use crate::measure::{cpu_during, kib};
use crate::peer::Peer;
use crate::program::{serve, serve_unix};

/// Sends `bytes`, or as many of them as are taken.
fn send_until_full(socket: &Socket, bytes: &[u8]) {
    socket
        .set_write_timeout(Some(Duration::from_millis(100)))
        .expect("an option");
    let mut sent = 0;
    while sent < bytes.len() {
        match socket.send(&bytes[sent..]) {
            Ok(len) => sent += len,
            Err(_) => break,
        }
    }
}

/// How many commands `stats-tube` have been obeyed when no more are.
fn obeyed_at_standstill(peer: &mut Peer) -> usize {
    let mut last = String::from("0");
    let stands = || {
        let now = peer.stat("cmd-stats-tube");
        let stands = now == last && now != "0";
        last = now;
        stands
    };
    assert!(wait_until(START_LIMIT, stands));
    last.parse().expect("a number")
}

fn connect(server: &Server) -> Socket {
    server.endpoint().connect().expect("a connection")
}

// A3.3, R3.6
#[test]
fn a_client_that_does_not_read_makes_the_server_keep_little_and_others_wait_for_nothing() {
    let server = serve(&[]);
    let mut other = Peer::of(&server);
    other.stat("pid");
    let before = kib(&server, "VmRSS");
    // Some 40 MB of replies for each, of which the kernel takes a few.
    const COUNT: usize = 100_000;
    let commands = b"stats-tube default\r\n".repeat(COUNT);
    let slow: Vec<Socket> = (0..8).map(|_| connect(&server)).collect();
    for socket in &slow {
        send_until_full(socket, &commands);
    }
    let obeyed = obeyed_at_standstill(&mut other);
    assert!(obeyed < 8 * COUNT / 2, "{obeyed} replies");
    assert_eq!(other.put(b"work"), "INSERTED 1");
    assert_eq!(other.ask("delete 1"), "DELETED");
    let grown = kib(&server, "VmRSS").saturating_sub(before);
    eprintln!("slow readers: {grown} KiB for 8, {obeyed} replies");
    assert!(grown < 8 * 512, "{grown} KiB for 8 clients");
    assert!(cpu_during(&server, Duration::from_millis(300)) < Duration::from_millis(50));

    drop(slow);
    assert!(wait_until(START_LIMIT, || other
        .stat("current-connections")
        == "1"));
}

// L1.17, R3.6, K12
#[test]
fn a_half_closed_client_gets_all_it_is_owed_however_late_it_reads() {
    const COUNT: usize = 40_000;
    let server = serve(&[]);
    let mut socket = connect(&server);
    let sender = socket.try_clone().expect("a second handle");
    let sending = thread::spawn(move || {
        let mut sender = sender;
        // More than all buffers hold: the server has to come back for the rest.
        sender
            .write_all(&b"stats-tube default\r\n".repeat(COUNT))
            .expect("it is taken in the end");
        sender.write_all(b"reserve\r\n").expect("it is taken");
        sender.shutdown(std::net::Shutdown::Write).expect("open");
    });
    let mut other = Peer::of(&server);
    let obeyed = obeyed_at_standstill(&mut other);
    assert!(obeyed < COUNT, "{obeyed} replies");

    socket
        .set_read_timeout(Some(START_LIMIT))
        .expect("an option");
    let mut replies = Vec::new();
    socket.read_to_end(&mut replies).expect("an end in order");
    sending.join().expect("all was sent");
    let text = String::from_utf8(replies).expect("ASCII");
    assert_eq!(text.matches("cmd-pause-tube").count(), COUNT);
    assert!(text.ends_with("\r\nTIMED_OUT\r\n"));
}

// A3.4, R3.8
#[test]
fn a_client_that_never_reads_leaves_nothing_behind() {
    let server = serve_unix(&["-z", "1000000"]);
    let mut other = Peer::of(&server);
    // Without the pages of the program itself, of which more come as more of it runs.
    let before = kib(&server, "RssAnon");
    let body = vec![b'x'; 1_000_000];
    for _ in 0..20 {
        other.put(&body);
    }
    let slow: Vec<Socket> = (0..20).map(|_| connect(&server)).collect();
    for socket in &slow {
        send_until_full(socket, b"reserve\r\nstats\r\nput 0 0 1 1000\r\nhalf");
    }
    assert!(wait_until(START_LIMIT, || other
        .stat("current-jobs-reserved")
        == "20"));
    // The bodies are on their way, and the jobs are gone before they are.
    drop(slow);
    assert!(wait_until(START_LIMIT, || other
        .stat("current-connections")
        == "1"));
    assert_eq!(other.stat("current-jobs-reserved"), "0");
    assert_eq!(other.stat("current-jobs-ready"), "20");
    for id in 1..=20 {
        assert_eq!(other.ask(&format!("delete {id}")), "DELETED");
    }
    let grown = || kib(&server, "RssAnon").saturating_sub(before);
    assert!(
        wait_until(START_LIMIT, || grown() < 4_096),
        "{} KiB",
        grown()
    );
}
