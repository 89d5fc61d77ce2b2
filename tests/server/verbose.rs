//! What `-V` and `-VV` print on standard output: the original's lines (L5.7), which are compared
//! with its own where it is at hand.

use std::env;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::fixture::{Listen, START_LIMIT, Server, wait_until};
use crate::peer::{Peer, put};
use crate::program::{PROGRAM, ours_after, skip, start, words};

/// What a session of some length makes the server print, numbers aside.
const SESSION: &str = "\
pid N
accept N
<N command use\x20
>N reply USING t
<N command put\x20
<N job N
>N reply INSERTED N
<N command <unknown>
>N reply UNKNOWN_COMMAND
<N command put\x20
>N reply EXPECTED_CRLF
<N command <unknown>
>N reply UNKNOWN_COMMAND
<N command put\x20
>N reply BAD_FORMAT
<N command put\x20
>N reply JOB_TOO_BIG
<N command peek-ready
>N reply FOUND N N
>N job N
<N command stats-job\x20
>N reply OK N
>N job N
<N command watch\x20
>N reply WATCHING N
<N command reserve-with-timeout\x20
>N reply RESERVED N N
>N job N
<N command delete\x20
>N reply DELETED
<N command list-tubes
>N reply OK N
>N job N
<N command pause-tube
>N reply PAUSED
<N command put\x20
close N
accept N
<N command reserve
>N reply TIMED_OUT
close N
accept N
<N command quit
close N
";

/// The same session with a single `-V`.
const SESSION_SHORT: &str = "pid N\naccept N\nclose N\naccept N\nclose N\naccept N\nclose N\n";

fn play(server: &mut Server) -> String {
    let mut peer = Peer::of(server);
    peer.ask("use t");
    peer.put(b"abc");
    peer.ask("nonsense");
    // What the body is too long by is a line of its own.
    peer.ask("put 0 0 1 3\r\nabcde");
    peer.line();
    peer.ask("put x");
    peer.ask("put 0 0 1 11\r\n0123456789a");
    for line in ["peek-ready", "stats-job 1"] {
        let answer = peer.ask(line);
        let len = answer.rsplit(' ').next().expect("a length");
        peer.body(len.parse().expect("a number"));
    }
    peer.ask("watch t");
    peer.ask("reserve-with-timeout 1");
    peer.body(3);
    peer.ask("delete 1");
    let answer = peer.ask("list-tubes");
    let len = answer.rsplit(' ').next().expect("a length");
    peer.body(len.parse().expect("a number"));
    peer.ask("pause-tube t 0");
    // A body that does not come is none.
    peer.send(&put(b"abc")[.."put 0 0 60 3\r\na".len()]);
    drop(peer);
    closes(server, 1);

    let mut peer = Peer::of(server);
    peer.send("reserve\r\n");
    peer.half_close();
    assert_eq!(peer.line(), "TIMED_OUT");
    assert!(peer.is_closed());
    closes(server, 2);

    Peer::of(server).send("quit\r\n");
    closes(server, 3);
    server.stop(Signal::SIGTERM).expect("it ends");
    printed(server)
}

/// Waits until the server has told so often that a connection is closed.
fn closes(server: &Server, count: usize) {
    let is_told = || {
        let output = server.output();
        output
            .lines()
            .filter(|line| line.starts_with("close "))
            .count()
            == count
    };
    assert!(wait_until(START_LIMIT, is_told), "{}", server.output());
}

/// What stands on standard output, numbers replaced: descriptors, ids and lengths differ.
fn printed(server: &Server) -> String {
    let is_ours = |line: &&str| !line.contains(": ");
    let output = server.output();
    let mut lines = String::new();
    for line in output.lines().filter(is_ours) {
        let mut in_number = false;
        for c in line.chars() {
            if c.is_ascii_digit() {
                if !in_number {
                    lines.push('N');
                }
            } else {
                lines.push(c);
            }
            in_number = c.is_ascii_digit();
        }
        lines.push('\n');
    }
    lines
}

/// The C server, where there is one.
fn original() -> Option<String> {
    let named = env::var("BEANSHARD_ORACLE").unwrap_or_else(|_| "beanstalkd".to_owned());
    let runs = Command::new(&named).arg("-v").output().is_ok();
    runs.then_some(named)
}

// L5.7
#[test]
fn a_session_is_told_in_the_originals_words() {
    let original = original();
    if original.is_none() {
        skip("nothing is compared with the C server: there is none");
    }
    for program in [Some(PROGRAM.to_owned()), original].into_iter().flatten() {
        for (flag, expected) in [("-VV", SESSION), ("-VVV", SESSION), ("-V", SESSION_SHORT)] {
            let words = words(&[&*program], &[flag, "-z", "10"]);
            let mut server = start(&words, Listen::Tcp);
            assert_eq!(play(&mut server), expected, "{words:?}");
        }
    }
}

// L5.7
#[test]
fn without_the_flag_nothing_is_printed() {
    let mut server = start(&words(&[PROGRAM], &["-z", "10"]), Listen::Tcp);
    let mut peer = Peer::of(&server);
    peer.ask("list-tube-used");
    server.stop(Signal::SIGTERM).expect("it ends");
    assert_eq!(printed(&server), "");
}

// L5.7
#[test]
fn the_address_is_printed_by_whoever_binds_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket").display().to_string();
    let address = format!("unix:{path}");
    let cases: [(&[&str], String); 2] = [
        (&["-l", "127.0.0.1", "-p", "0"], "127.0.0.1:".to_owned()),
        (&["-l", &address], path),
    ];
    for (args, beginning) in cases {
        let words = words(&[PROGRAM, "-V"], args);
        let server = start(&words, Listen::Printed);
        let output = server.output();
        let fd_and_address = output.lines().find_map(|line| line.strip_prefix("bind "));
        let (fd, address) = fd_and_address
            .expect("a line")
            .split_once(' ')
            .expect("two words");
        assert!(
            fd.parse::<u32>().is_ok() && address.starts_with(&beginning),
            "{output}"
        );
        assert!(
            output.starts_with(&format!("pid {}\n", server.pid())),
            "{output}"
        );
    }
}

// L1.22
#[test]
fn nobody_has_to_listen_to_what_is_told() {
    // The reader ends at once.
    let shell = "exec 9>&1; mkfifo <dir>/out; : <<dir>/out & exec 1><dir>/out; wait";
    let mut server = start(&ours_after(shell, &["-VV"]), Listen::Tcp);
    let mut peer = Peer::of(&server);
    for _ in 0..3 {
        assert_eq!(peer.ask("list-tube-used"), "USING default");
    }
    assert!(!wait_until(Duration::from_millis(1), || server
        .ended()
        .is_some()));
}

/// What ours says on standard error while a client comes and goes, with this filter.
fn log_with(filter: &str) -> String {
    let mut server = start(
        &ours_after(&format!("export BEANSHARD_LOG={filter}"), &[]),
        Listen::Tcp,
    );
    assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
    server.stop(Signal::SIGTERM).expect("it ends");
    server.output()
}

#[test]
fn the_log_says_as_much_as_it_is_asked_for() {
    let usual = log_with("info");
    assert!(usual.contains(": info legacy: ready address="), "{usual}");
    assert!(usual.contains(": info legacy: stopped"), "{usual}");
    assert!(!usual.contains("connection"), "{usual}");
    let all = log_with("debug");
    assert!(
        all.contains(": debug clients: connection opened peer="),
        "{all}"
    );
    assert_eq!(log_with("off"), "");
}
