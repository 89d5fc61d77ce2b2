//! The player of transcripts must object wherever a server differs from what is written. Here it
//! meets servers that say the same to everybody, whatever they are told.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use crate::fixture::Endpoint;
use crate::transcript::{Ids, parse, play_at};

/// Serves each of `count` connections with `said`, and reads until the client has gone.
fn serve(listener: &TcpListener, count: usize, said: &[u8]) -> io::Result<()> {
    let serve_one = |mut socket: TcpStream| {
        socket.write_all(said)?;
        socket.read_to_end(&mut Vec::new()).map(drop)
    };
    listener
        .incoming()
        .take(count)
        .try_for_each(|socket| serve_one(socket?))
}

/// What the player says of `script` when the server says `said` to its one client.
fn outcome(script: &str, said: &'static [u8]) -> Result<(), String> {
    outcome_with(script, said, Ids::Exact)
}

fn outcome_with(script: &str, said: &'static [u8], ids: Ids) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let endpoint = Endpoint::Tcp(listener.local_addr().expect("it is bound"));
    let server = thread::spawn(move || serve(&listener, 1, said));
    let outcome = play_at(&parse("test.txt", script, ids)?, endpoint);
    // A reset by the player is an orderly end for it.
    let _ = server.join().expect("the server does not panic");
    outcome
}

#[track_caller]
fn fails(script: &str, said: &'static [u8], part: &str) {
    let error = outcome(script, said).expect_err("the player is content");
    assert!(error.contains(part), "{part:?} is not in:\n{error}");
}

#[test]
fn right_replies_pass() {
    let script = "
        a> reserve
        a< RESERVED 1 4 | work
        a> stats
        a< OK
        a| ---
        a| name: \"*\"
        a| left: ~5
        a| id: @@
        a< OK ...
        a| two: #
    ";
    let said = b"RESERVED 1 4\r\nwork\r\nOK 31\r\n---\nname: \"a b\"\nleft: 4\nid: 0f\n\r\n\
        OK 21\r\none: 1\ntwo: 2\nsix: 6\n\r\n";
    outcome(script, said).unwrap();
}

#[test]
fn wrong_line_is_reported_with_place_and_past() {
    let error = outcome("a> touch 1\na< TOUCHED\n", b"NOT_FOUND\r\n").unwrap_err();
    for part in [
        "test.txt:2",
        "expected  a< TOUCHED",
        "got       NOT_FOUND",
        "a> touch 1",
    ] {
        assert!(error.contains(part), "{part:?} is not in:\n{error}");
    }
}

#[test]
fn wrong_body_is_reported() {
    fails("a< FOUND 1 1 | x", b"FOUND 1 1\r\ny\r\n", "FOUND 1 1 | y");
    fails("a< FOUND 1 1", b"FOUND 1 1\r\ny\r\n", "FOUND 1 1 | y");
    fails("a< FOUND 1 0", b"FOUND 1 0\r\n\r\n", "FOUND 1 0 |");
    fails("a< FOUND 1 1 | x", b"FOUND 1 1\r\nxyz", "without CR LF");
}

#[test]
fn patterns_do_not_hold_in_bodies() {
    fails("a< FOUND 1 1 | *", b"FOUND 1 1\r\ny\r\n", "FOUND 1 1 | y");
}

#[test]
fn every_row_counts() {
    let said = b"OK 10\r\n---\none: 1\n\r\n";
    fails("a< OK\na| ---\na| one: 2", said, "one: 1");
    fails("a< OK\na| ---", said, "one: 1");
    fails("a< OK\na| ---\na| one: 1\na| two: 2", said, "one: 1");
    fails("a< OK ...\na| one: 2", said, "one: 1");
    fails("a< OK ...\na| one: 1\na| ---", said, "one: 1");
    fails(
        "a< OK\na| ---\na| one: 1",
        b"OK 10\r\n---\none: 1\r\r\n",
        "one: 1",
    );
}

#[test]
fn rows_may_come_in_any_order() {
    let said = b"OK 12\r\n---\n- a\n- b\n\r\n";
    outcome("a< OK unordered\na| ---\na| - b\na| - a", said).unwrap();
    fails("a< OK unordered\na| ---\na| - b", said, "- a");
    fails("a< OK unordered\na| ---\na| - b\na| - b", said, "- a");
    fails("a< OK unordered\na| - b\na| - a\na| ---", said, "- a");
}

#[test]
fn about_means_the_number_or_one_less() {
    assert!(outcome("a< OK\na| t: ~5", b"OK 5\r\nt: 5\n\r\n").is_ok());
    assert!(outcome("a< OK\na| t: ~5", b"OK 5\r\nt: 4\n\r\n").is_ok());
    fails("a< OK\na| t: ~5", b"OK 5\r\nt: 6\n\r\n", "t: 6");
    fails("a< OK\na| t: ~5", b"OK 5\r\nt: 3\n\r\n", "t: 3");
}

#[test]
fn what_is_not_written_must_not_come() {
    fails(
        "a< KICKED",
        b"KICKED\r\nKICKED\r\n",
        "besides all that is written: KICKED",
    );
    fails("a< KICKED\na> (close)", b"KICKED\r\nKICKED\r\n", "besides");
    fails("a< silence 1s", b"KICKED\r\n", "KICKED");
}

#[test]
fn silence_is_reported() {
    fails(
        "a< within 0.05s KICKED",
        b"KICKED\r",
        "KICKED\\r and then nothing more in time",
    );
    fails("a<< eof", b"KICKED\r\n", "KICKED");
}

#[test]
fn raw_bytes_are_compared_byte_for_byte() {
    assert!(outcome(r#"a<< "{ab*2}\x00\n""#, b"abab\0\n").is_ok());
    fails(r#"a<< "ab\r\n""#, b"ac\r\n", "ac\\r\\n");
}

#[test]
fn name_keeps_the_value_it_was_first_given() {
    let script = "a< INSERTED <job>\na< RESERVED <job> 1 | x";
    assert!(outcome(script, b"INSERTED 7\r\nRESERVED 7 1\r\nx\r\n").is_ok());
    fails(
        script,
        b"INSERTED 7\r\nRESERVED 8 1\r\nx\r\n",
        "RESERVED 8 1",
    );
}

#[test]
fn mapped_ids_are_names() {
    let script = "a> delete 1\na< INSERTED 1\na< INSERTED 2\na< FOUND 1 1 | x\na> delete 2";
    let good = b"INSERTED 1025\r\nINSERTED 2049\r\nFOUND 1025 1\r\nx\r\n";
    outcome_with(script, good, Ids::Mapped).unwrap();
    let bad = b"INSERTED 1025\r\nINSERTED 2049\r\nFOUND 2049 1\r\nx\r\n";
    outcome_with(script, bad, Ids::Mapped).unwrap_err();
    let twice = b"INSERTED 1025\r\nINSERTED 1025\r\nFOUND 1025 1\r\nx\r\n";
    outcome_with(script, twice, Ids::Mapped).unwrap_err();
}

#[test]
fn nonsense_is_refused_with_file_and_line() {
    for line in [
        "hello",
        "ab> x",
        "a>x",
        "+1",
        "a| row",
        "a>> x",
        "a> \\q",
        "a> {x}",
        "!signal X",
    ] {
        let error = parse("test.txt", &format!("\n{line}\n"), Ids::Exact).unwrap_err();
        assert!(error.starts_with("test.txt:2: "), "{error}");
    }
}
