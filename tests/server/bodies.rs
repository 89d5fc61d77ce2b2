//! Large bodies: in pieces, announced and not sent, and shared by many who read them.

use std::time::Duration;

use socket2::Socket;

use crate::fixture::{START_LIMIT, pass, wait_until};
use crate::measure::kib;
use crate::peer::Peer;
use crate::program::{serve, serve_unix};

const MB: usize = 1_000_000;

/// Bytes that no two places of a body have in common for long.
fn body_of(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

// L1.11, A3.4
#[test]
fn a_body_of_20_mb_comes_and_goes_in_pieces() {
    let server = serve(&["-z", "20000000"]);
    let mut peer = Peer::of(&server);
    let body = body_of(20 * MB);
    peer.send("put 0 0 60 20000000\r\n");
    // Pieces of odd lengths, and the CR LF apart.
    for piece in body.chunks(333_333) {
        peer.send(piece);
    }
    peer.send("\r");
    pass(Duration::from_millis(20));
    peer.send("\nlist-tube-used\r\n");
    assert_eq!(peer.line(), "INSERTED 1");
    assert_eq!(peer.line(), "USING default");
    assert_eq!(peer.ask("reserve"), "RESERVED 1 20000000");
    assert!(peer.body(body.len()) == body, "the same bytes");
    assert_eq!(peer.ask("delete 1"), "DELETED");
}

// Q26, R3.6
#[test]
fn a_body_that_is_announced_costs_what_has_arrived() {
    let server = serve(&["-z", "1073741824"]);
    let mut peer = Peer::of(&server);
    peer.stat("pid");
    let memory = || (kib(&server, "VmRSS"), kib(&server, "VmSize"));
    let before = memory();
    let mut senders: Vec<Peer> = (0..20).map(|_| Peer::of(&server)).collect();
    for sender in &mut senders {
        sender.send("put 0 0 60 1073741824\r\n");
        sender.send(vec![b'x'; 200_000]);
    }
    let connections = || peer.stat("cmd-put") == "20";
    assert!(wait_until(START_LIMIT, connections));
    // What is still in the kernel's hands is read by and by.
    pass(Duration::from_millis(100));
    let after = memory();
    let grown = (after.0 - before.0, after.1 - before.1);
    assert!(
        grown.0 < 12_000 && grown.1 < 60_000,
        "{grown:?} KiB for 4 MB"
    );
    drop(senders);
    assert!(wait_until(START_LIMIT, || peer.stat("current-connections") == "1"));
    assert_eq!(peer.put(b"work"), "INSERTED 21");
}

// R3.8, Q2, A3.3
#[test]
fn many_who_read_a_large_job_share_its_body_and_may_outlive_it() {
    const READERS: usize = 50;
    let server = serve_unix(&["-z", "4000000"]);
    let mut peer = Peer::of(&server);
    let body = body_of(4 * MB);
    assert_eq!(peer.put(&body), "INSERTED 1");
    let before = kib(&server, "VmRSS");
    let slow: Vec<Socket> = (0..READERS)
        .map(|_| server.endpoint().connect().expect("a connection"))
        .collect();
    for socket in &slow {
        assert_eq!(socket.send(b"peek 1\r\n").expect("it is taken"), 8);
    }
    let count = READERS.to_string();
    assert!(wait_until(START_LIMIT, || peer.stat("cmd-peek") == count));
    let grown = kib(&server, "VmRSS").saturating_sub(before);
    assert!(grown < 3_000, "{grown} KiB for {READERS} readers");

    // The job goes, another takes its place, and the reader gets what was promised.
    let mut reader = Peer::of(&server);
    reader.send("peek 1\r\n");
    assert_eq!(reader.line(), "FOUND 1 4000000");
    assert_eq!(peer.ask("delete 1"), "DELETED");
    assert_eq!(peer.put(&vec![b'z'; 4 * MB]), "INSERTED 2");
    assert!(reader.body(body.len()) == body, "the bytes of job 1");

    // With the last reader the body goes, too.
    drop(slow);
    assert_eq!(peer.ask("delete 2"), "DELETED");
    let left = || kib(&server, "VmRSS").saturating_sub(before);
    assert!(wait_until(START_LIMIT, || left() < 1_000), "{} KiB", left());
}
