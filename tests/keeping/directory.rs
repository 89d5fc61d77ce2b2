//! What a data directory is for, and who may use it.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::end_and_start;
use crate::fixture::{Listen, START_LIMIT, Server, wait_until};
use crate::fleet::{Fleet, put, words_of};
use crate::keep;
use crate::made_for_two;
use crate::peer::Peer;
use crate::program::{Ended, ours, run};

/// Runs ours with its data in `dir`, for which there is no hope.
fn end_in(dir: &Path, flags: &[&str]) -> Ended {
    let dir = dir.to_str().expect("ASCII");
    let words = [&["-b", dir, "-l", "127.0.0.1", "-p", "0"], flags].concat();
    run(&ours(&words))
}

fn refused(dir: &Path, flags: &[&str], why: &str) {
    let ended = end_in(dir, flags);
    assert_eq!(ended.status, Some(10), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
}

// R4.5
#[test]
fn a_directory_is_for_so_many_owners() {
    let mut fleet = keep(&["-f", "0"]);
    let id = put(&mut fleet.peer(), b"work");
    fleet.server.stop(Signal::SIGTERM).expect("it ends");
    let dir = fleet.server.dir().to_owned();
    let why = format!(
        "it was made for 2 owners and not for 3; start with --owners 2, or change it while no \
         server uses it: beanshard reshard --dir {} --owners 3",
        dir.display()
    );
    refused(&dir, &["--sharded", "--owners=3"], &why);
    assert!(!dir.join("owner-002").exists());
    // Who does not say how many takes what it was made for.
    let words = ours(&["--sharded", "--frontends=2", "-b", "<dir>"]);
    fleet.server.restart_as(&words).expect("it starts again");
    fleet.wait_until_whole();
    let answer = fleet.peer().ask(&format!("peek {id}"));
    assert_eq!(answer, format!("FOUND {id} 4"));
}

// R4.5
#[test]
fn a_directory_of_one_mode_is_refused_by_the_other() {
    let dir = TempDir::new().expect("a folder can be made");
    let words = ours(&["--legacy", "-b", "<dir>"]);
    let mut legacy = Server::start_in(dir, &words, Listen::Tcp).expect("the server starts");
    put(&mut Peer::of(&legacy), b"work");
    legacy.stop(Signal::SIGTERM).expect("it ends");
    let why = "it has a binlog of --legacy (binlog.1)";
    refused(legacy.dir(), &["--sharded"], why);
    assert!(!legacy.dir().join("topology").exists());

    let fleet = keep(&[]);
    let why = "it has the data of --sharded; to take its jobs over";
    refused(fleet.server.dir(), &["--legacy"], why);
}

// L6.2, R4.5
#[test]
fn a_directory_in_use_is_refused() {
    let fleet = keep(&["-f", "0"]);
    let id = put(&mut fleet.peer(), b"work");
    for flags in [&["--sharded"][..], &["--sharded", "--owners=2"]] {
        refused(fleet.server.dir(), flags, "failed to lock wal dir");
    }
    let answer = fleet.peer().ask(&format!("peek {id}"));
    assert_eq!(answer, format!("FOUND {id} 4"));
    assert!(put(&mut fleet.peer(), b"work") > id);
}

/// Locks a file as long as it is open.
fn lock(path: &Path) -> File {
    let mut file = OpenOptions::new();
    let file = file.write(true).create(true).truncate(false).open(path);
    let file = file.expect("a file can be made");
    let whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_SETLK(&whole)).expect("it is free");
    file
}

// L6.2: what is left of another server may end later than its supervisor.
#[test]
fn an_owner_waits_for_who_has_its_folder() {
    let dir = made_for_two();
    let holder = lock(&dir.path().join("owner-001/lock"));
    let words = words_of(2, 1, &["-b", "<dir>"]).words;
    let server = Server::start_in(dir, &words, Listen::Tcp).expect("it is started");
    let refused = || server.output().contains("owner-001: fcntl");
    assert!(wait_until(START_LIMIT, refused), "{}", server.output());
    drop(holder);
    put(&mut Peer::of(&server), b"work");
}

// R4.5
#[test]
fn restarts_pile_up_no_files() {
    let mut fleet = keep(&["-f", "0"]);
    let id = put(&mut fleet.peer(), b"work");
    for end in [
        Signal::SIGTERM,
        Signal::SIGKILL,
        Signal::SIGKILL,
        Signal::SIGTERM,
    ] {
        end_and_start(&mut fleet, end);
        let answer = fleet.peer().ask(&format!("peek {id}"));
        assert_eq!(answer, format!("FOUND {id} 4"));
    }
    fleet.server.stop(Signal::SIGTERM).expect("it ends");
    for owner in 0..2 {
        let count = files(&fleet, owner).len();
        assert!(count <= 2, "{count}");
    }
}

/// The files of an owner's binlog.
fn files(fleet: &Fleet, owner: usize) -> Vec<String> {
    let dir = fleet.server.dir().join(format!("owner-{owner:03}"));
    let entries = fs::read_dir(dir).expect("the folder is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.into_string().expect("ASCII"))
        .filter(|name| name != "lock")
        .collect()
}
