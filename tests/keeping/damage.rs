//! Files of an owner that are torn or damaged.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};

use crate::end_and_start;
use crate::fixture::{START_LIMIT, wait_until};
use crate::fleet::{Fleet, put, settle};
use crate::keep;
use crate::peer::Peer;
use crate::process::is_alive;

/// Owner 1 and its three jobs.
struct Patient {
    fleet: Fleet,
    ids: [u64; 3],
    /// Bytes of the log after each put.
    lens: [usize; 3],
}

impl Patient {
    /// The server has ended, so that its file can be changed.
    fn new() -> Patient {
        let fleet = keep(&["-f", "0"]);
        let path = path(&fleet);
        let mut peer = fleet.peer();
        settle(&mut peer, &fleet.tube(1, 0));
        let mut lens = [0; 3];
        let ids = [0, 1, 2].map(|at| {
            let id = put(&mut peer, b"work");
            let bytes = fs::read(&path).expect("it is there");
            let last = bytes.iter().rposition(|&byte| byte != 0);
            lens[at] = last.map_or(0, |last| last + 1);
            id
        });
        let mut patient = Patient { fleet, ids, lens };
        let pids = patient.fleet.pids();
        patient.fleet.server.stop(Signal::SIGKILL).expect("it ends");
        let is_over = || !pids.iter().any(|&pid| is_alive(pid));
        assert!(wait_until(START_LIMIT, is_over));
        patient
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let path = path(&self.fleet);
        let mut bytes = fs::read(&path).expect("the file is there");
        change(&mut bytes);
        // It may not be written to, but it may be replaced.
        fs::remove_file(&path).expect("removed");
        fs::write(&path, bytes).expect("written");
    }

    /// Asserts which of the jobs are there.
    fn expect(&self, there: [bool; 3]) {
        let mut peer = self.fleet.peer();
        assert_eq!(self.ids.map(|id| is_there(&mut peer, id)), there);
    }
}

fn path(fleet: &Fleet) -> PathBuf {
    fleet.server.dir().join("owner-001/binlog.1")
}

fn is_there(peer: &mut Peer, id: u64) -> bool {
    let answer = peer.ask(&format!("peek {id}"));
    if answer.starts_with("FOUND ") {
        peer.line();
    }
    answer.starts_with("FOUND ")
}

// R4.5
#[test]
fn a_torn_end_is_cut_off_and_told() {
    let mut patient = Patient::new();
    let lens = patient.lens;
    patient.change(|bytes| bytes.truncate(lens[2] - 3));
    patient.fleet.server.restart().expect("it starts");
    patient.fleet.wait_until_whole();
    patient.expect([true, true, false]);
    let output = patient.fleet.server.output();
    let told = output
        .lines()
        .find(|line| line.contains("binlog.1: torn at "));
    assert!(
        told.is_some_and(|line| line.starts_with("owner/1: warn")),
        "{output}"
    );
    end_and_start(&mut patient.fleet, Signal::SIGKILL);
    patient.expect([true, true, false]);
    let output = patient.fleet.server.output();
    assert_eq!(output.matches("binlog.1: torn at ").count(), 1, "{output}");
}

// R4.5
#[test]
fn damage_in_the_middle_stops_the_start_unless_it_is_to_be_passed_over() {
    let mut patient = Patient::new();
    let at = patient.lens[0] + 30;
    patient.change(|bytes| bytes[at] ^= 0xff);
    let damaged = fs::read(path(&patient.fleet)).expect("it is there");
    patient.fleet.server.restart().expect("it is started");
    let mut status = None;
    wait_until(START_LIMIT, || {
        status = patient.fleet.server.ended();
        status.is_some()
    });
    let output = patient.fleet.server.output();
    assert_eq!(status.expect("it ends").code(), Some(1), "{output}");
    let folder = path(&patient.fleet);
    let folder = folder.parent().expect("it is in a folder").display();
    let told = format!("owner/1: its binlog needs looking at, as it has said: {folder}");
    assert!(output.contains(&told), "{output}");
    let tries = output.matches("binlog.1 is damaged at ").count();
    assert_eq!(tries, 1, "to try again would change nothing: {output}");
    let told = "owner 1: binlog: binlog.1 is damaged at ";
    let line = output.lines().find(|line| line.contains(told));
    let line = line.unwrap_or_else(|| panic!("{output}"));
    let place = line
        .split(told)
        .nth(1)
        .and_then(|rest| rest.split(':').next());
    let place: usize = place.expect("a place").parse().expect("a number");
    assert!((patient.lens[0]..=at).contains(&place), "{line}");
    assert_eq!(fs::read(path(&patient.fleet)).expect("there"), damaged);

    let mut words: Vec<String> = crate::fleet::words_of(2, 2, &["-b", "<dir>"]).words;
    words.push("--skip-damage".to_owned());
    patient.fleet.server.restart_as(&words).expect("it starts");
    patient.fleet.wait_until_whole();
    // What is behind it in the same file is not read.
    patient.expect([true, false, false]);
    let output = patient.fleet.server.output();
    assert!(output.contains("passed over"), "{output}");
}

// R4.5
#[test]
fn an_owner_that_finds_damage_when_it_is_started_again_keeps_nobody_else_from_serving() {
    let fleet = keep(&["-f", "0"]);
    let mut peer = fleet.peer();
    settle(&mut peer, &fleet.tube(1, 0));
    let ids = [put(&mut peer, b"work"), put(&mut peer, b"more")];
    let log = path(&fleet);
    let damage = || {
        let mut bytes = fs::read(&log).expect("the file is there");
        let at = bytes.iter().position(|&byte| byte == b'w').expect("a body");
        bytes[at] ^= 0x80;
        (at, bytes[at])
    };
    let (at, damaged) = damage();
    let file = File::options()
        .write(true)
        .open(&log)
        .expect("it is opened");
    let write = |byte: u8| file.write_all_at(&[byte], at as u64).expect("written");
    write(damaged);
    kill(fleet.owner(1), Signal::SIGKILL).expect("it was there");
    let tries = || {
        fleet
            .server
            .output()
            .matches("binlog.1 is damaged at ")
            .count()
    };
    assert!(
        wait_until(START_LIMIT, || tries() >= 2),
        "it is tried again"
    );

    let mut other = fleet.peer();
    settle(&mut other, &fleet.tube(0, 0));
    let id = put(&mut other, b"work");
    assert!(is_there(&mut other, id));
    write(damaged ^ 0x80);
    fleet.wait_until_whole();
    let mut peer = fleet.peer();
    assert_eq!(ids.map(|id| is_there(&mut peer, id)), [true, true]);
}
