//! An owner's disk that is full, slow or broken, which is no other owner's.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::fixture::{Listen, START_LIMIT, wait_until};
use crate::fleet::{Fleet, put, reserve, settle, words_of};
use crate::made_for_two;
use crate::process::is_alive;
use crate::program::skip;

/// A small disk in place of an owner's folder.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// None if this is not the place for it.
    fn mount(path: PathBuf) -> Option<SmallDisk> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=192k", "tmpfs"])
            .arg(&path)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk { path });
        }
        skip("only root can mount a small disk");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The folder is removed all the same, and if not it is in nobody's way.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

// A3.5, R4.5
#[test]
fn a_full_disk_of_one_owner_refuses_its_new_jobs_and_nothing_else() {
    let dir = made_for_two();
    let Some(disk) = SmallDisk::mount(dir.path().join("owner-001")) else {
        return;
    };
    let words = words_of(2, 1, &["-b", "<dir>", "-f0", "-s", "16384"]);
    let fleet = Fleet::start_in(dir, &words, Listen::Tcp);
    let (mut user, mut stranger) = (fleet.peer(), fleet.peer());
    settle(&mut user, &fleet.tube(1, 0));
    settle(&mut stranger, &fleet.tube(0, 0));
    let mut ids = Vec::new();
    let last = loop {
        let answer = user.put(&[b'x'; 1000]);
        match answer.strip_prefix("INSERTED ") {
            Some(id) => ids.push(id.to_owned()),
            None => break answer,
        }
    };
    assert_eq!(last, "OUT_OF_MEMORY");
    assert!(ids.len() > 60, "only {} jobs fit", ids.len());
    for _ in 0..10 {
        put(&mut stranger, &[b'x'; 10_000]);
    }
    // The rest is taken by somebody else, and jobs that are there go on all the same.
    let filler = disk.path.join("filler");
    let mut file = fs::File::create(&filler).expect("it can be made");
    while file.write_all(&[1; 1024]).is_ok() {}
    for id in &ids {
        assert_eq!(reserve(&mut user).0.to_string(), *id);
        assert_eq!(user.ask(&format!("delete {id}")), "DELETED");
    }
    fs::remove_file(filler).expect("removed");
    let mut is_taken = || user.put(b"again").starts_with("INSERTED ");
    assert!(wait_until(START_LIMIT, &mut is_taken));
    let output = fleet.server.output();
    assert_eq!(
        output.matches("new jobs are refused").count(),
        1,
        "{output}"
    );
    drop(disk);
}

/// In place of the system's call: it fails, or waits, as long as a file says so beside the folder
/// in which the file to be synced is.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int told(int fd, const char *what) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 16);
    if (len < 0) return 0;
    path[len] = 0;
    char *end = strrchr(path, '/');
    if (!end) return 0;
    strcpy(end, what);
    return access(path, F_OK) == 0;
}

int fdatasync(int fd) {
    while (told(fd, ".slow")) usleep(1000);
    if (told(fd, ".broken")) { errno = EIO; return -1; }
    return syscall(SYS_fdatasync, fd);
}
"#;

/// Two owners that write to a disk that can be slow or broken; None if there is no compiler.
fn on_odd_disk(flags: &[&str]) -> Option<Fleet> {
    let dir = TempDir::new().expect("a folder can be made");
    let (source, shim) = (dir.path().join("shim.c"), dir.path().join("shim.so"));
    fs::write(&source, SHIM).expect("written");
    let mut compiler = Command::new("cc");
    let compiled = compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&shim, &source])
        .output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        skip("there is no C compiler");
        return None;
    }
    let mut words = words_of(2, 1, &[&["-b", "<dir>"], flags].concat());
    let preload = format!("LD_PRELOAD={}", shim.display());
    words.words.splice(0..0, ["env".to_owned(), preload]);
    Some(Fleet::start_in(dir, &words, Listen::Tcp))
}

/// Has the disk of owner 1 be `what`, until the file is removed.
fn make(dir: &Path, what: &str) -> PathBuf {
    let path = dir.join(format!("owner-001.{what}"));
    fs::write(&path, b"").expect("written");
    path
}

// A3.3, R4.5
#[test]
fn a_slow_disk_of_one_owner_delays_its_tubes_alone() {
    let Some(fleet) = on_odd_disk(&["-f0"]) else {
        return;
    };
    let (mut user, mut stranger) = (fleet.peer(), fleet.peer());
    settle(&mut user, &fleet.tube(1, 0));
    settle(&mut stranger, &fleet.tube(0, 0));
    put(&mut user, b"first");
    let slow = make(fleet.server.dir(), "slow");
    user.send("put 0 0 60 4\r\nwork\r\n");
    for _ in 0..50 {
        let id = put(&mut stranger, b"work");
        assert_eq!(stranger.ask(&format!("delete {id}")), "DELETED");
    }
    assert!(
        !user.has_line(Duration::from_millis(100)),
        "not on the disk"
    );
    fs::remove_file(slow).expect("removed");
    assert!(user.line().starts_with("INSERTED "));
}

// A3.5, R4.5
#[test]
fn an_owner_whose_sync_fails_ends_and_comes_back_with_what_is_on_the_disk() {
    let Some(fleet) = on_odd_disk(&["-f0", "--owner-wait=20000"]) else {
        return;
    };
    let (mut user, mut stranger) = (fleet.peer(), fleet.peer());
    settle(&mut user, &fleet.tube(1, 0));
    settle(&mut stranger, &fleet.tube(0, 0));
    let kept = put(&mut user, b"kept");
    let theirs = put(&mut stranger, b"work");
    assert_eq!(reserve(&mut stranger).0, theirs);
    let owner = fleet.owner(1);
    let broken = make(fleet.server.dir(), "broken");
    user.send("put 0 0 60 4\r\nlost\r\n");
    // Nobody knows whether it is on the disk, so nobody is told that it is.
    assert!(user.is_closed());
    assert!(wait_until(START_LIMIT, || !is_alive(owner)));
    fs::remove_file(broken).expect("removed");
    let mut user = fleet.peer();
    settle(&mut user, &fleet.tube(1, 0));
    assert_eq!(reserve(&mut user), (kept, b"kept".to_vec()));
    assert_eq!(stranger.ask(&format!("delete {theirs}")), "DELETED");
    let output = fleet.server.output();
    assert!(output.contains("owner 1: binlog: cannot sync "), "{output}");
    assert!(
        output.contains("role=owner index=1 generation=2 how=exit-"),
        "{output}"
    );
}
