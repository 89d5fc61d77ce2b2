//! How a server with a binlog starts and ends, and what it leaves in the directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::{Uid, User, chown};

use beanshard::wal::directory::Directory;
use beanshard::wal::reader::Account;

use crate::fixture::{Endpoint, Listen, Server};
use crate::len_of;
use crate::names;
use crate::our_words;
use crate::peek;
use crate::peer::Peer;
use crate::program;
use crate::program::{Ended, ours_after, run};
use crate::put;
use crate::serve;
use crate::their_words;

/// Any free port.
const ANYWHERE: [&str; 4] = ["-l", "127.0.0.1", "-p", "0"];

/// Runs `words` with the binlog in `dir`, for which there is no hope.
fn end_in(words: &[String], dir: &Path) -> Ended {
    let dir = dir.display().to_string();
    let words: Vec<String> = words
        .iter()
        .map(|word| word.replace("<dir>", &dir))
        .collect();
    run(&words)
}

// L5.4, L6.2
#[test]
fn a_directory_that_cannot_be_locked_is_10() {
    let words = our_words(&ANYWHERE);
    let dir = tempfile::tempdir().expect("a folder can be made");
    let file = dir.path().join("file");
    fs::write(&file, b"").expect("written");
    for path in [dir.path().join("missing"), file] {
        let ended = end_in(&words, &path);
        assert_eq!(ended.status, Some(10), "{ended:?}");
        let start = format!("failed to lock wal dir {}", path.display());
        assert!(ended.stderr.contains(&start), "{ended:?}");
    }
}

// L6.2
#[test]
fn a_directory_in_use_is_refused_by_ours_and_the_c_server() {
    let ours = our_words(&[]);
    let here = our_words(&ANYWHERE);
    let mut pairs = vec![(ours.clone(), here.clone())];
    if let (Some(theirs), Some(there)) = (their_words(&[]), their_words(&ANYWHERE)) {
        pairs.extend([(theirs, here), (ours, there)]);
    }
    for (holder, other) in pairs {
        let mut server = program::start(&holder, Listen::Tcp);
        let id = put(&mut Peer::of(&server), b"work");
        let ended = end_in(&other, server.dir());
        assert_eq!(ended.status, Some(10), "{ended:?}");
        assert!(ended.stderr.contains("failed to lock wal dir"), "{ended:?}");
        // Nothing has happened to the holder, and its end lets the other in.
        assert_eq!(put(&mut Peer::of(&server), b"work"), id + 1);
        server.stop(Signal::SIGKILL).expect("it ends");
        server.restart().expect("it starts again");
        assert_eq!(Peer::of(&server).stat("current-jobs-ready"), "2");
    }
}

// L5.2
#[test]
fn the_user_who_is_changed_to_can_use_files_that_may_not_be_written_to() {
    if !Uid::effective().is_root() {
        return program::skip("only root can become somebody else");
    }
    let dir = tempfile::tempdir().expect("a folder can be made");
    let Ok(Some(nobody)) = User::from_name("nobody") else {
        return program::skip("there is no nobody");
    };
    chown(dir.path(), Some(nobody.uid), Some(nobody.gid)).expect("root may");
    let words = our_words(&["-u", "nobody", "-s", "4096"]);
    let mut server = Server::start_in(dir, &words, Listen::Tcp).expect("the server starts");
    let body = vec![b'x'; 3000];
    for end in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut peer = Peer::of(&server);
        let ids = [(); 6].map(|()| put(&mut peer, &body));
        server.stop(end).expect("it ends");
        server.restart().expect("it starts again");
        let mut peer = Peer::of(&server);
        for id in ids {
            assert_eq!(peek(&mut peer, id).as_ref(), Some(&body));
        }
        for name in names(server.dir()) {
            let file = fs::metadata(server.dir().join(&name)).expect("it is there");
            let mode = file.permissions().mode() & 0o777;
            assert_eq!((file.uid(), mode), (nobody.uid.as_raw(), 0o400), "{name}");
        }
    }
}

// L5.3
#[test]
fn a_port_in_use_is_found_before_the_lock() {
    let server = program::start(&our_words(&[]), Listen::Port);
    let Endpoint::Tcp(address) = server.endpoint() else {
        panic!("a port was asked for");
    };
    let port = address.port().to_string();
    let ended = end_in(&our_words(&["-l", "127.0.0.1", "-p", &port]), server.dir());
    assert_eq!(ended.status, Some(111), "{ended:?}");
    assert!(ended.stderr.contains("bind()"), "{ended:?}");
    assert!(!ended.stderr.contains("lock"), "{ended:?}");
}

// L5.4
#[test]
fn a_start_that_can_make_no_file_is_1_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder can be made");
    let args = [&["-b", "<dir>"], &ANYWHERE[..]].concat();
    // What the fixture prints has to fit.
    let words = ours_after("trap '' XFSZ; ulimit -f 64", &args);
    let ended = end_in(&words, dir.path());
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot create binlog.1"), "{ended:?}");
    assert!(names(dir.path()).is_empty(), "{:?}", names(dir.path()));
}

// Q25
#[test]
fn numbers_that_are_used_up_are_told() {
    let dir = tempfile::tempdir().expect("a folder can be made");
    fs::write(dir.path().join("binlog.2147483647"), b"").expect("written");
    let ended = end_in(&our_words(&ANYWHERE), dir.path());
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("2147483647"), "{ended:?}");
}

#[test]
fn clients_that_come_during_the_reading_are_served_after_it() {
    const JOBS: usize = 20_000;
    let mut server = serve(&["-F"]);
    let mut peer = Peer::of(&server);
    peer.send(crate::peer::put(&[b'x'; 100]).repeat(JOBS));
    (0..JOBS).for_each(|_| drop(peer.line()));
    server.restart().expect("it starts again");
    // The socket is there before the server.
    let mut peers: Vec<Peer> = (0..20).map(|_| Peer::of(&server)).collect();
    for (peer, id) in peers.iter_mut().zip(JOBS as u64 + 1..) {
        assert_eq!(peer.put(b"work"), format!("INSERTED {id}"));
    }
    assert_eq!(peers[0].stat("current-jobs-ready"), (JOBS + 20).to_string());
    assert!(server.output().contains(&format!("jobs={JOBS}")));
}

// Q25
#[test]
fn an_end_leaves_no_empty_files_and_no_unused_space() {
    let mut server = serve(&["-s", "4096"]);
    let mut peer = Peer::of(&server);
    let ids = [(); 10].map(|()| put(&mut peer, &[b'x'; 1000]));
    let there = names(server.dir());
    assert!(there.contains(&"spare".to_owned()), "{there:?}");

    let status = server.stop(Signal::SIGTERM).expect("it ends");
    assert_eq!(status.code(), Some(0));
    let directory = Directory::look(server.dir()).expect("it is there");
    let account = Account::read(&directory).expect("it can be read");
    assert_eq!(names(server.dir()).len(), account.files.len());
    for file in &account.files {
        // The end of a disk's block costs nothing, but if it has no room for a record the C server
        // complains.
        let rest = file.rest_bytes();
        assert!(rest == 0 || (84..4096).contains(&rest), "{file:?}");
    }
    assert_eq!(account.jobs.len(), ids.len());
}

// 6.10
#[test]
fn a_start_without_jobs_goes_on_to_the_next_number() {
    let args = ["-s", "4096"];
    for words in [Some(our_words(&args)), their_words(&args)] {
        let Some(words) = words else { return };
        let mut server = program::start(&words, Listen::Tcp);
        for number in 1..=3 {
            let index = Peer::of(&server).stat("binlog-current-index");
            assert_eq!(index, number.to_string());
            let mut there = names(server.dir());
            there.retain(|name| name != "spare");
            assert_eq!(there, [format!("binlog.{number}")]);
            server.stop(Signal::SIGKILL).expect("it ends");
            server.restart().expect("it starts again");
        }
    }
}

// Q25, 6.10
#[test]
fn restarts_pile_up_no_files() {
    for end in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut server = serve(&[]);
        let id = put(&mut Peer::of(&server), b"work");
        for _ in 0..5 {
            server.stop(end).expect("it ends");
            server.restart().expect("it starts again");
            assert!(peek(&mut Peer::of(&server), id).is_some());
        }
        server.stop(Signal::SIGTERM).expect("it ends");
        let there = names(server.dir());
        let len: u64 = there.iter().map(|name| len_of(server.dir(), name)).sum();
        assert!(there.len() <= 2 && len < 4096, "{len} bytes in {there:?}");
    }
}

#[test]
fn what_a_kill_leaves_of_empty_files_is_ignored_by_the_c_server_and_removed_by_ours() {
    let mut server = serve(&["-s", "4096", "-f", "0"]);
    let mut peer = Peer::of(&server);
    let ids: Vec<u64> = (0..10).map(|_| put(&mut peer, b"work")).collect();
    server.stop(Signal::SIGKILL).expect("it ends");
    assert!(names(server.dir()).contains(&"spare".to_owned()));
    // One that a crash has left before it was done.
    fs::write(server.dir().join("ahead.9999"), b"").expect("written");
    for words in [their_words(&["-s", "4096"]), Some(our_words(&[]))] {
        let Some(words) = words else { continue };
        server.restart_as(&words).expect("it takes over");
        let mut peer = Peer::of(&server);
        assert!(ids.iter().all(|&id| peek(&mut peer, id).is_some()));
    }
    assert!(!names(server.dir()).contains(&"ahead.9999".to_owned()));
}

// L6.3, Q25
#[test]
fn odd_names_and_missing_numbers_stop_nothing() {
    let mut server = serve(&[]);
    let first = put(&mut Peer::of(&server), b"first");
    server.stop(Signal::SIGTERM).expect("it ends");
    let path = |name: &str| server.dir().join(name);
    fs::rename(path("binlog.1"), path("binlog.1000000000")).expect("renamed");
    let odd = [
        "binlog.",
        "binlog.+3",
        "binlog.007",
        "binlog.1x",
        "ahead.x",
        "spare.1",
    ];
    for name in odd {
        fs::write(path(name), b"\x07\0\0\0").expect("written");
    }
    server.restart().expect("it starts again");
    let mut peer = Peer::of(&server);
    let second = put(&mut peer, b"second");
    assert_eq!(peer.stat("binlog-current-index"), "1000000001");
    server.restart().expect("it starts again");
    let mut peer = Peer::of(&server);
    assert_eq!(peek(&mut peer, first).as_deref(), Some(&b"first"[..]));
    assert_eq!(peek(&mut peer, second).as_deref(), Some(&b"second"[..]));
    let there = names(server.dir());
    assert!(odd.iter().all(|name| there.contains(&(*name).to_owned())));
    let output = server.output();
    for name in &odd[..4] {
        let line = format!("not read file={name}\n");
        assert_eq!(output.matches(&line).count(), 2, "{output}");
    }
}

// Q10
#[test]
fn a_smaller_limit_of_bodies_at_a_restart_loses_nothing() {
    let mut server = serve(&[]);
    let lens = [65_535, 65_534, 100, 0];
    let mut peer = Peer::of(&server);
    let ids = lens.map(|len| put(&mut peer, &vec![b'x'; len]));
    for limit in ["65535", "10"] {
        server.stop(Signal::SIGKILL).expect("it ends");
        server
            .restart_as(&our_words(&["-z", limit]))
            .expect("it starts again");
        let mut peer = Peer::of(&server);
        for (id, len) in ids.into_iter().zip(lens) {
            assert_eq!(peek(&mut peer, id), Some(vec![b'x'; len]), "{id}");
        }
    }
}

// 6.10
#[test]
fn files_may_be_of_any_length() {
    for len in ["0", "1", "601", "4096"] {
        let mut server = serve(&["-s", len]);
        let mut peer = Peer::of(&server);
        let body = |id: u64| vec![b'x'; [0, 1, 500, 3000, 20_000][id as usize % 5]];
        for id in 1..=60 {
            assert_eq!(put(&mut peer, &body(id)), id);
        }
        for id in (1..=60).filter(|id| id % 7 != 0) {
            assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
        }
        for end in [Signal::SIGKILL, Signal::SIGTERM] {
            server.stop(end).expect("it ends");
            server.restart().expect("it starts again");
            let mut peer = Peer::of(&server);
            for id in 1..=60 {
                let there = (id % 7 == 0).then(|| body(id));
                assert_eq!(peek(&mut peer, id), there, "-s {len}, {id}");
            }
        }
    }
}

const ROWS: [&str; 5] = [
    "binlog-oldest-index",
    "binlog-current-index",
    "binlog-records-migrated",
    "binlog-records-written",
    "binlog-max-size",
];

// 4.1, 4.3
#[test]
fn statistics_of_the_binlog_are_those_of_the_c_server() {
    let theirs = their_words(&["-s", "1234"]);
    for words in [Some(our_words(&["-s", "1234"])), theirs] {
        let Some(words) = words else { return };
        let mut server = program::start(&words, Listen::Tcp);
        let mut peer = Peer::of(&server);
        let rows = |peer: &mut Peer| ROWS.map(|row| peer.stat(row));
        let file = |peer: &mut Peer, id| peer.row(&format!("stats-job {id}"), "file");
        assert_eq!(rows(&mut peer), ["1", "1", "0", "0", "1234"]);
        let first = put(&mut peer, b"work");
        assert_eq!(rows(&mut peer), ["1", "1", "0", "1", "1234"]);
        assert_eq!(file(&mut peer, first), "1");
        server.stop(Signal::SIGTERM).expect("it ends");
        server.restart().expect("it starts again");

        let mut peer = Peer::of(&server);
        assert_eq!(rows(&mut peer), ["1", "2", "0", "0", "1234"]);
        let second = put(&mut peer, b"work");
        assert_eq!(file(&mut peer, first), "1");
        assert_eq!(file(&mut peer, second), "2");
        assert_eq!(peer.ask(&format!("delete {first}")), "DELETED");
        assert_eq!(rows(&mut peer), ["2", "2", "0", "2", "1234"]);
    }
    let server = program::serve(&[]);
    let mut peer = Peer::of(&server);
    let id = put(&mut peer, b"work");
    assert_eq!(peer.row(&format!("stats-job {id}"), "file"), "0");
}

// Q20
#[test]
fn ids_go_on_when_all_is_deleted() {
    for end in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut server = serve(&["-s", "4096"]);
        let mut highest = 0;
        for _ in 0..4 {
            let mut peer = Peer::of(&server);
            for _ in 0..3 {
                let id = put(&mut peer, &[b'x'; 1500]);
                assert_eq!(id, highest + 1);
                highest = id;
                assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
            }
            for _ in 0..2 {
                server.stop(end).expect("it ends");
                server.restart().expect("it starts again");
                assert_eq!(Peer::of(&server).stat("current-jobs-ready"), "0");
            }
        }
        let there = names(server.dir());
        assert!(there.len() <= 4, "{there:?}");
    }
}
