//! A server without work uses no processor time, whatever its clients leave undone.

use std::time::Duration;

use socket2::Socket;

use crate::fixture::{START_LIMIT, Server, pass, wait_until};
use crate::measure::{cpu_during, cpu_time};
use crate::peer::Peer;
use crate::program::serve;

/// What nothing may cost in [`WINDOW`]. A loop that does not wait takes nearly all of it.
const NOTHING: Duration = Duration::from_millis(50);
const WINDOW: Duration = Duration::from_millis(600);

fn assert_idle(server: &Server) {
    let used = cpu_during(server, WINDOW);
    assert!(used < NOTHING, "{used:?} in {WINDOW:?}");
}

fn connect(server: &Server) -> Socket {
    server.endpoint().connect().expect("a connection")
}

fn send(socket: &Socket, bytes: &[u8]) {
    assert_eq!(socket.send(bytes).expect("it is taken"), bytes.len());
}

/// A job larger than what the kernel takes, and a client that has asked for it and does not read.
fn slow_reader(server: &Server) -> Socket {
    let mut peer = Peer::of(server);
    assert!(peer.put(&vec![b'x'; 20_000_000]).starts_with("INSERTED "));
    let slow = connect(server);
    send(&slow, b"reserve\r\n");
    let is_sent = || peer.stat("current-jobs-reserved") == "1";
    assert!(wait_until(START_LIMIT, is_sent));
    slow
}

// Q11
#[test]
fn timers_are_slept_for_and_not_polled_for() {
    let server = serve(&[]);
    let mut peer = Peer::of(&server);
    let mut holders: Vec<Peer> = (0..100).map(|_| Peer::of(&server)).collect();
    // 100 delays and 100 reservations, the ends of which are spread over a second.
    for holder in &mut holders {
        assert!(peer.ask("put 0 1 100 0\r\n").starts_with("INSERTED "));
        pass(Duration::from_micros(4_500));
        assert!(peer.ask("put 0 0 1 0\r\n").starts_with("INSERTED "));
        assert!(holder.ask("reserve").starts_with("RESERVED "));
        holder.body(0);
        pass(Duration::from_micros(4_500));
    }
    let before = cpu_time(&server);
    pass(Duration::from_millis(1_300));
    let used = cpu_time(&server) - before;
    assert!(peer.stat("job-timeouts").parse::<u32>().unwrap() > 0);
    assert_eq!(peer.stat("current-jobs-delayed"), "0");
    eprintln!("timers: {used:?}");
    assert!(used <= Duration::from_millis(30), "{used:?}");
}

// Q12
#[test]
fn a_half_closed_client_that_reads_slowly_costs_nothing() {
    let server = serve(&["-z", "20000000"]);
    let slow = slow_reader(&server);
    slow.shutdown(std::net::Shutdown::Write).unwrap();
    assert_idle(&server);
}

// Q15
#[test]
fn an_urgent_byte_costs_nothing() {
    let server = serve(&[]);
    let urgent = connect(&server);
    urgent.send_out_of_band(b"!").unwrap();
    assert_idle(&server);
    send(&urgent, b"list-tube-used\r\n");
    let mut reply = [std::mem::MaybeUninit::uninit(); 64];
    urgent.set_read_timeout(Some(START_LIMIT)).unwrap();
    assert_eq!(urgent.recv(&mut reply).unwrap(), "USING default\r\n".len());
}

// Q30, A3.4, L1.19
#[test]
fn clients_that_vanish_in_any_state_are_forgotten() {
    let server = serve(&["-z", "20000000"]);
    let mut peer = Peer::of(&server);
    let full = slow_reader(&server);
    let states: [&[u8]; 5] = [
        b"",
        b"put 0 0 1 100\r\nhalf of",
        b"put 0 0 1 100000\r\nlittle of it",
        b"watch empty\r\nignore default\r\nreserve\r\n",
        b"put 0 0 1 20000001\r\nto be thrown away",
    ];
    let mut sockets = vec![full];
    for bytes in states {
        let socket = connect(&server);
        send(&socket, bytes);
        sockets.push(socket);
    }
    // One that waits and has sent more than is read ahead.
    let ahead = connect(&server);
    send(&ahead, b"watch empty\r\nignore default\r\nreserve\r\n");
    ahead.set_nonblocking(true).unwrap();
    let more = b"touch 1\r\n".repeat(20_000);
    let mut sent = 0;
    while let Ok(len @ 1..) = ahead.send(&more[sent..]) {
        sent += len;
    }
    sockets.push(ahead);
    let are_there =
        |peer: &mut Peer, count: usize| peer.stat("current-connections") == count.to_string();
    assert!(wait_until(START_LIMIT, || are_there(
        &mut peer,
        1 + sockets.len()
    )));
    let waiting = || peer.stat("current-waiting") == "2";
    assert!(wait_until(START_LIMIT, waiting));

    for socket in sockets {
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
    assert!(wait_until(START_LIMIT, || are_there(&mut peer, 1)));
    assert_eq!(peer.stat("current-jobs-ready"), "1");
    assert_eq!(peer.stat("current-waiting"), "0");
    assert_idle(&server);
}

// A3.3
#[test]
fn clients_that_do_nothing_cost_nothing() {
    let server = serve(&[]);
    let mut waiting: Vec<Peer> = (0..100).map(|_| Peer::of(&server)).collect();
    for (index, peer) in waiting.iter_mut().enumerate() {
        peer.send(["reserve\r\n", "", "put 0 0 1 9\r\n", "reser"][index % 4]);
    }
    let mut peer = Peer::of(&server);
    assert!(wait_until(START_LIMIT, || peer.stat("current-waiting") == "25"));
    assert_idle(&server);
}
