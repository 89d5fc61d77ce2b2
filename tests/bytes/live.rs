//! A live server under noise from many connections: it lives, comes to rest, and serves the next.

use std::fs;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use socket2::Socket;

use crate::fixture::{Listen, Server, wait_until};
use crate::noise;
use crate::script::Op;

/// How long the noise lasts.
const NOISE: Duration = Duration::from_secs(2);
/// How long the server is watched afterwards, and the CPU time it may take for it: clients that
/// were left in the middle of something must not cost anything.
const REST: Duration = Duration::from_millis(500);
const REST_CPU_MAX: Duration = Duration::from_millis(50);
const CLIENTS: usize = 16;

#[test]
fn a_live_server_survives_noise_and_rests() {
    let words = [env!("CARGO_BIN_EXE_beanshard").into(), "--legacy".into()];
    let mut server = Server::start(&words, Listen::Tcp).expect("server starts");
    let mut runner = TestRunner::default();
    let mut sockets: Vec<Option<Socket>> = (0..CLIENTS).map(|_| None).collect();
    let end = Instant::now() + NOISE;
    while Instant::now() < end {
        let script = noise::script(CLIENTS).new_tree(&mut runner);
        for op in script.expect("a script can be made up").current() {
            make_noise(&server, &mut sockets, &op);
        }
    }
    assert!(
        server.is_running(),
        "the server has ended\n{}",
        server.output()
    );
    // What the server has not read yet it reads now.
    let mut last = cpu_time(&server);
    let is_idle = wait_until(Duration::from_secs(20), || {
        let now = cpu_time(&server);
        now == std::mem::replace(&mut last, now)
    });
    assert!(is_idle, "the server does not come to rest");
    let start = Instant::now();
    wait_until(REST, || start.elapsed() >= REST);
    let spent = cpu_time(&server).saturating_sub(last);
    assert!(spent <= REST_CPU_MAX, "{spent:?} of CPU time for nothing");
    let mut fresh = server.endpoint().connect().expect("a client is let in");
    fresh.write_all(b"list-tube-used\r\n").expect("can be sent");
    let limit = Some(Duration::from_secs(5));
    fresh.set_read_timeout(limit).expect("has a timeout");
    let mut reply = [0; b"USING default\r\n".len()];
    fresh.read_exact(&mut reply).expect("is answered");
    assert_eq!(&reply, b"USING default\r\n");
}

/// Does to a socket what the script says. A client whose connection the server has closed, or that
/// does not get rid of its bytes because nobody reads its replies, connects anew.
fn make_noise(server: &Server, sockets: &mut [Option<Socket>], op: &Op) {
    match op {
        Op::Feed { client, bytes } => {
            let socket = sockets[*client].get_or_insert_with(|| {
                let socket = server.endpoint().connect().expect("a client is let in");
                socket.set_nonblocking(true).expect("can be set");
                socket
            });
            let sent = (&*socket).write(bytes);
            if sent.is_err() {
                sockets[*client] = None;
            } else if bytes.len() % 4 == 0 {
                let mut chunk = [0; 4096];
                // Most replies are left unread on purpose.
                let _ = socket.read(&mut chunk);
            }
        }
        Op::End { client } => {
            if let Some(socket) = &sockets[*client] {
                // It may be closed already.
                let _ = socket.shutdown(std::net::Shutdown::Write);
            }
        }
        Op::Close { client } => sockets[*client] = None,
        Op::Pass { .. } | Op::Drain => {}
    }
}

/// CPU time that the server has taken, in the clock ticks of the kernel: 10 ms each.
fn cpu_time(server: &Server) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("is there");
    let (_, fields) = stat.rsplit_once(") ").expect("the name stands in brackets");
    // User and system time are the 14th and 15th field, the third being the first here.
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u64 = ticks
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(10 * ticks)
}
