//! What ours writes, byte by byte.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::signal::Signal;

use beanshard::wal::record::{Decoded, Version, decode};

use crate::bytes_of;
use crate::fixture::{Listen, Server};
use crate::peer::Peer;
use crate::program::{ours, start};
use crate::their_words;

/// Where in a record, counted from the end of the name, the two moments are that it was made or is
/// due.
const MOMENTS: std::ops::Range<usize> = 40..56;

/// The first file, in which all moments are 0.
fn masked(dir: &Path) -> Vec<u8> {
    let mut bytes = bytes_of(dir, 1);
    let mut at = 4;
    while let Ok(Decoded::Record { len, record }) = decode(Version::V7, &bytes[at..]) {
        let name_len = record
            .content
            .map_or(0, |content| content.tube.as_bytes().len());
        let job = at + 4 + name_len;
        at += len;
        bytes[job + MOMENTS.start..job + MOMENTS.end].fill(0);
    }
    bytes
}

fn serve_ours() -> Server {
    let words = ours(&["-b", "<dir>", "-f", "0", "-s", "4096"]);
    start(&words, Listen::Tcp)
}

/// A bit of everything that both write down.
fn live(server: &Server) {
    let mut peer = Peer::of(server);
    for (line, answer) in [
        ("use tb", "USING tb"),
        ("watch tb", "WATCHING 2"),
        ("put 7 0 33 5\r\nhello", "INSERTED 1"),
        ("put 4294967295 4294967295 4294967295 0\r\n", "INSERTED 2"),
        ("reserve", "RESERVED 1 5"),
        ("release 1 9 50", "RELEASED"),
        ("kick 10", "KICKED 2"),
        ("reserve-job 1", "RESERVED 1 5"),
        ("bury 1 11", "BURIED"),
        ("use default", "USING default"),
        ("put 0 0 0 1\r\nx", "INSERTED 3"),
        ("kick-job 1", "KICKED"),
        ("delete 2", "DELETED"),
        ("reserve", "RESERVED 3 1"),
        ("release 3 4294967295 4294967295", "RELEASED"),
        ("reserve", "RESERVED 1 5"),
        ("delete 1", "DELETED"),
    ] {
        assert_eq!(peer.ask(line), answer, "{line}");
        if let Some(len) = answer.strip_prefix("RESERVED ") {
            let (_, len) = len.split_once(' ').expect("a length");
            peer.body(len.parse().expect("a length"));
        }
    }
}

// 6.2, 6.3, 6.6
#[test]
fn files_have_the_bytes_of_the_c_servers_files_but_for_moments() {
    let Some(words) = their_words(&["-s", "4096"]) else {
        return;
    };
    let (mut ours, mut theirs) = (serve_ours(), start(&words, Listen::Tcp));
    live(&ours);
    live(&theirs);
    let mode = |server: &Server| {
        let file = fs::metadata(server.dir().join("binlog.1")).expect("it is there");
        file.permissions().mode()
    };
    assert_eq!(mode(&ours), mode(&theirs));
    let bytes = masked(ours.dir());
    assert_eq!(bytes, masked(theirs.dir()));
    assert_eq!(bytes.len(), 4096);
    let used = bytes.iter().rposition(|&byte| byte != 0);
    assert!(used.is_some_and(|used| used > 11 * 84), "{used:?}");

    // Q25: only ours gives back what it has set aside.
    ours.stop(Signal::SIGTERM).expect("it ends");
    theirs.stop(Signal::SIGTERM).expect("it ends");
    let cut = masked(ours.dir());
    assert_eq!(cut, bytes[..cut.len()]);
    assert!(bytes[cut.len()..].iter().all(|&byte| byte == 0));
    assert!(cut.len() < 4096);
    assert_eq!(masked(theirs.dir()), bytes);
}

// 6.2
#[test]
fn a_put_has_the_bytes_of_the_example() {
    let server = serve_ours();
    let mut peer = Peer::of(&server);
    peer.ask("use tb");
    assert_eq!(peer.ask("put 7 0 33 5\r\nhello"), "INSERTED 1");
    let job = "0700000002000000746201000000000000000700000000000000\
        0000000000000000000af4ae070000000700000000000000\
        00000000000000000000000000000000\
        0000000000000000000000000000000000000000\
        01000000";
    let mut expected: Vec<u8> = (0..job.len() / 2)
        .map(|at| u8::from_str_radix(&job[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect();
    expected.extend(b"hello\r\n");
    assert_eq!(expected.len(), 97);
    assert_eq!(masked(server.dir())[..97], expected);
}
