//! Files that are torn or damaged: what is lost is told, with file and place, nothing else is lost,
//! and what could not be read is never removed.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;

use crate::fixture::{Listen, START_LIMIT, Server, wait_until};
use crate::names;
use crate::our_words;
use crate::peek;
use crate::peer::Peer;
use crate::put;
use crate::their_words;

/// Bytes of a record of a job in `default`, besides the body.
const RECORD_LEN: usize = 84 + 7 + 2;

/// Where the record of job `id` begins, in a file where all bodies are as [`body`] says.
fn start_of(id: u64) -> usize {
    4 + (id as usize - 1) * (RECORD_LEN + 100)
}

fn body(id: u64) -> Vec<u8> {
    let mut body = format!("{id} ").into_bytes();
    body.resize(100, b'x');
    body
}

/// A server that has put jobs and was stopped, so that its files can be changed.
struct Patient {
    server: Server,
    /// Bytes that it had printed before.
    printed: usize,
}

impl Patient {
    /// Each run has put three jobs.
    fn of(runs: u64, end: Signal) -> Patient {
        let server = Server::start(&our_words(&["-s", "4096"]), Listen::Tcp);
        let mut server = server.expect("the server starts");
        for run in 0..runs {
            if run > 0 {
                server.restart().expect("it starts again");
            }
            let mut peer = Peer::of(&server);
            for id in 3 * run + 1..=3 * run + 3 {
                assert_eq!(put(&mut peer, &body(id)), id);
            }
            server.stop(end).expect("it ends");
        }
        Patient { server, printed: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.server.dir().join(name)
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path(name);
        let mut bytes = fs::read(&path).expect("the file is there");
        change(&mut bytes);
        // It may not be written to, but it may be replaced.
        fs::remove_file(&path).expect("removed");
        fs::write(&path, bytes).expect("written");
    }

    /// Starts the server, and gives its lines about files of the binlog.
    fn start(&mut self) -> Vec<String> {
        self.server.restart().expect("it starts");
        Peer::of(&self.server).stat("pid");
        let output = self.server.output();
        let lines = output[self.printed..].lines();
        let about: Vec<String> = lines
            .filter(|line| line.contains("binlog."))
            .map(|line| line[line.find("binlog.").unwrap_or(0)..].to_owned())
            .collect();
        self.printed = output.len();
        about
    }

    /// Asserts which of the jobs 1 to 9 are there.
    fn expect(&self, ids: &[u64]) {
        let mut peer = Peer::of(&self.server);
        for id in 1..=9 {
            let there = ids.contains(&id).then(|| body(id));
            assert_eq!(peek(&mut peer, id), there, "{id}");
        }
    }

    /// Puts and deletes until `name` is there.
    fn churn_until_there_is(&self, name: &str) {
        let mut peer = Peer::of(&self.server);
        // Files go when what was copied out of them is synced, which has a time of its own.
        let is_there = wait_until(START_LIMIT, || {
            for _ in 0..4 {
                let id = put(&mut peer, &[b'x'; 1000]);
                assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
            }
            self.path(name).exists()
        });
        assert!(is_there, "{:?}", names(self.server.dir()));
    }
}

// 6.9
#[test]
fn a_torn_end_is_cut_off_and_told_once() {
    let tears: [fn(&mut Vec<u8>, usize); 4] = [
        |bytes, at| bytes.truncate(at),
        |bytes, at| bytes[at..].fill(0),
        // In the middle of the structure, and of the name's length.
        |bytes, at| bytes.truncate(at - 60),
        |bytes, _| bytes.truncate(start_of(3) + 2),
    ];
    for end in [Signal::SIGTERM, Signal::SIGKILL] {
        for tear in tears {
            let mut patient = Patient::of(1, end);
            let at = start_of(3);
            patient.change("binlog.1", |bytes| tear(bytes, at + 120));
            let len = fs::metadata(patient.path("binlog.1")).expect("there").len();
            let line = format!(
                "binlog.1: torn record at {at} is cut off bytes={}",
                len - at as u64
            );
            assert_eq!(patient.start(), [line]);
            patient.expect(&[1, 2]);
            // Job 3 was never known to this run.
            assert_eq!(put(&mut Peer::of(&patient.server), &body(3)), 3);
            assert!(patient.start().is_empty());
            patient.expect(&[1, 2, 3]);
        }
    }
}

// Q8
#[test]
fn damage_costs_what_is_behind_it_in_its_file_and_the_file_is_put_aside() {
    let mut patient = Patient::of(3, Signal::SIGTERM);
    let at = start_of(5 - 3);
    // A name that is too long.
    patient.change("binlog.2", |bytes| bytes[at + 1] = 1);
    let damaged = fs::read(patient.path("binlog.2")).expect("it is there");
    let rest = damaged.len() - at;
    let lines = patient.start();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let start = format!("binlog.2: damaged at {at}: name length ");
    assert!(lines[0].starts_with(&start), "{lines:?}");
    let end = format!("the {rest} bytes from {at} on are not read");
    assert!(lines[0].ends_with(&end), "{lines:?}");
    let left = [1, 2, 3, 4, 7, 8, 9];
    patient.expect(&left);
    // It is told until the file is put aside, and then that it is.
    assert_eq!(patient.start(), lines);
    patient.expect(&left);

    patient.churn_until_there_is("binlog.2.damaged");
    patient.expect(&left);
    let aside = fs::read(patient.path("binlog.2.damaged")).expect("it is there");
    assert_eq!(aside, damaged);
    let output = patient.server.output();
    let told = "put aside, damaged and not needed any more file=binlog.2.damaged\n";
    assert_eq!(output.matches(told).count(), 1, "{output}");
    patient.printed = output.len();

    for _ in 0..2 {
        assert_eq!(patient.start(), ["binlog.2.damaged"]);
        patient.expect(&left);
    }
    if let Some(words) = their_words(&["-s", "4096"]) {
        let server = &mut patient.server;
        server.restart_as(&words).expect("it takes over");
        patient.expect(&left);
    }
    let aside = fs::read(patient.path("binlog.2.damaged")).expect("it is there");
    assert_eq!(aside, damaged);
}

// Q8
#[test]
fn files_of_which_nothing_can_be_read_are_put_aside() {
    for (bytes, what) in [
        (&b"\x08\0\0\0something"[..], "version 8 is unknown"),
        (b"\x07", "file ends after 1 bytes, within its header"),
        (b"\x07\0\0", "file ends after 3 bytes, within its header"),
    ] {
        for name in ["binlog.0", "binlog.1", "binlog.3"] {
            let mut patient = Patient::of(1, Signal::SIGTERM);
            fs::rename(patient.path("binlog.1"), patient.path("binlog.2")).expect("renamed");
            fs::write(patient.path(name), bytes).expect("written");
            let lines = patient.start();
            let line = format!("{name}: damaged at 0: {what}; nothing of it is read");
            assert_eq!(lines[0], line);
            patient.expect(&[1, 2, 3]);
            let aside = format!("{name}.damaged");
            patient.churn_until_there_is(&aside);
            assert_eq!(fs::read(patient.path(&aside)).expect("there"), bytes);
            patient.start();
            patient.expect(&[1, 2, 3]);
        }
    }
}

#[test]
fn a_file_that_was_put_aside_before_is_not_written_over() {
    let mut patient = Patient::of(1, Signal::SIGTERM);
    fs::write(patient.path("binlog.2.damaged"), b"older").expect("written");
    fs::write(patient.path("binlog.2"), b"\x08\0\0\0newer").expect("written");
    patient.start();
    for id in 1..=3 {
        Peer::of(&patient.server).ask(&format!("delete {id}"));
    }
    patient.start();
    let there = names(patient.server.dir());
    let aside = there
        .iter()
        .filter(|name| name.starts_with("binlog.2.damaged"));
    let mut bytes: Vec<Vec<u8>> = aside
        .map(|name| fs::read(patient.path(name)).expect("it is there"))
        .collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [&b"\x08\0\0\0newer"[..], b"older"], "{there:?}");
}

#[test]
fn nothing_counts_on_from_an_impossible_id() {
    let mut patient = Patient::of(1, Signal::SIGTERM);
    let id = start_of(2) + 4 + "default".len();
    patient.change("binlog.1", |bytes| bytes[id..id + 8].fill(0xff));
    for highest in [3, 4] {
        patient.start();
        patient.expect(&[&[1][..], &[3, 4][..highest - 2]].concat());
        let mut peer = Peer::of(&patient.server);
        assert_eq!(peek(&mut peer, u64::MAX), Some(body(2)));
        assert_eq!(
            put(&mut peer, &body(highest as u64 + 1)),
            highest as u64 + 1
        );
    }
    // Nor is such an id remembered for ever.
    let mut peer = Peer::of(&patient.server);
    for id in [u64::MAX, 1, 3, 4, 5] {
        assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
    }
    patient.churn_until_there_is("binlog.5");
    patient.start();
    patient.expect(&[]);
    let mut peer = Peer::of(&patient.server);
    assert!((6..1000).contains(&put(&mut peer, b"work")));
}

#[test]
fn an_empty_file_is_nothing_to_tell_of() {
    let mut patient = Patient::of(1, Signal::SIGTERM);
    fs::write(patient.path("binlog.2"), b"").expect("written");
    fs::write(patient.path("binlog.3"), b"\x07\0\0\0").expect("written");
    fs::write(patient.path("binlog.4"), [0; 4096]).expect("written");
    assert!(patient.start().is_empty());
    patient.expect(&[1, 2, 3]);
    // No number is left out, of which the C server would complain.
    let there = names(patient.server.dir());
    assert_eq!(there, ["binlog.1", "binlog.2", "spare"]);
}
