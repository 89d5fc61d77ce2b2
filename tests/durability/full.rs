//! A disk that is full: new jobs are refused, everything else goes on, and when there is room again
//! nobody has to do anything.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::fixture::{Listen, START_LIMIT, Server, wait_until};
use crate::peer::Peer;
use crate::program;
use crate::program::{ours, skip};

/// A small disk for one test.
struct SmallDisk {
    dir: TempDir,
}

impl SmallDisk {
    /// None if this is not the place for it.
    fn mount() -> Option<SmallDisk> {
        let dir = tempfile::tempdir().expect("a folder can be made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=192k", "tmpfs"])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk { dir });
        }
        skip("only root can mount a small disk");
        None
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn words(&self) -> Vec<String> {
        let dir = self.path().display().to_string();
        ours(&["-b", &dir, "-s", "16384", "-f", "0"])
    }

    /// Has somebody else take what is left. The file can be removed to give it back.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("filler");
        let mut file = fs::File::create(&path).expect("it can be made");
        while file.write_all(&[1; 1024]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The folder is removed all the same, and if not it is in nobody's way.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

const BODY: &[u8] = &[b'x'; 1000];

/// Puts until there is no more room, and tells the ids.
fn fill_with_jobs(peer: &mut Peer) -> Vec<u64> {
    let mut ids = Vec::new();
    loop {
        let answer = peer.put(BODY);
        match answer.strip_prefix("INSERTED ") {
            Some(id) => ids.push(id.parse().expect("an id")),
            None => {
                assert_eq!(answer, "OUT_OF_MEMORY");
                return ids;
            }
        }
    }
}

fn obey(peer: &mut Peer, line: &str, answer: &str) {
    assert_eq!(peer.ask(line), answer, "{line}");
}

fn reserve(peer: &mut Peer, id: u64) {
    obey(
        peer,
        &format!("reserve-job {id}"),
        &format!("RESERVED {id} 1000"),
    );
    peer.body(1000);
}

/// Each job is taken, released, taken, buried, kicked, and released with a delay.
fn work_on(peer: &mut Peer, ids: &[u64]) {
    for id in ids {
        reserve(peer, *id);
        obey(peer, &format!("release {id} 5 0"), "RELEASED");
        reserve(peer, *id);
        obey(peer, &format!("bury {id} 6"), "BURIED");
        obey(peer, &format!("kick-job {id}"), "KICKED");
        reserve(peer, *id);
        obey(peer, &format!("release {id} 7 1000"), "RELEASED");
        obey(peer, "kick 10", "KICKED 1");
    }
}

fn takes_jobs_again(peer: &mut Peer) -> bool {
    wait_until(Duration::from_secs(5), || {
        peer.put(b"again").starts_with("INSERTED")
    })
}

fn expect(server: &Server, ids: &[u64], highest: u64) {
    let mut peer = Peer::of(server);
    for id in 1..=highest {
        let there = ids.contains(&id).then_some(BODY);
        assert_eq!(crate::peek(&mut peer, id).as_deref(), there, "{id}");
    }
}

// Q3, Q4, Q6, Q7
#[test]
fn on_a_full_disk_jobs_are_refused_and_all_else_goes_on() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let mut server = program::start(&disk.words(), Listen::Tcp);
    let mut peer = Peer::of(&server);
    let ids = fill_with_jobs(&mut peer);
    let highest = *ids.last().expect("some fit");
    assert!(ids.len() > 60, "only {} jobs fit", ids.len());
    // The body of a put that was refused is not taken for commands.
    peer.send("put 0 0 0 16\r\nlist-tube-used\r\n\r\nlist-tubes-watched\r\n");
    assert_eq!(peer.line(), "OUT_OF_MEMORY");
    assert_eq!(peer.line(), "OK 14");
    peer.body(14);

    work_on(&mut peer, &ids);
    let filler = disk.fill();
    work_on(&mut peer, &ids);
    let (gone, left) = ids.split_at(ids.len() - 3);
    for id in gone {
        obey(&mut peer, &format!("delete {id}"), "DELETED");
    }
    fs::remove_file(filler).expect("removed");
    assert!(takes_jobs_again(&mut peer));
    let output = server.output();
    assert_eq!(
        output.matches("new jobs are refused").count(),
        1,
        "{output}"
    );

    server.stop(Signal::SIGKILL).expect("it ends");
    server.restart().expect("it starts again");
    expect(&server, left, highest);
    assert!(takes_jobs_again(&mut Peer::of(&server)));
}

#[test]
fn deletions_make_room_without_a_restart() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let mut server = program::start(&disk.words(), Listen::Tcp);
    let mut peer = Peer::of(&server);
    for _ in 0..3 {
        let ids = fill_with_jobs(&mut peer);
        let (gone, left) = ids.split_at(ids.len() / 2);
        for id in gone {
            obey(&mut peer, &format!("delete {id}"), "DELETED");
        }
        assert!(takes_jobs_again(&mut peer));
        server.stop(Signal::SIGKILL).expect("it ends");
        server.restart().expect("it starts again");
        peer = Peer::of(&server);
        for id in gone {
            assert_eq!(crate::peek(&mut peer, *id), None);
        }
        for id in left {
            assert_eq!(crate::peek(&mut peer, *id).as_deref(), Some(BODY));
            obey(&mut peer, &format!("delete {id}"), "DELETED");
        }
        assert!(takes_jobs_again(&mut peer));
    }
}

#[test]
fn room_that_somebody_else_gives_back_is_found() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let server = program::start(&disk.words(), Listen::Tcp);
    let mut peer = Peer::of(&server);
    assert!(takes_jobs_again(&mut peer));
    let filler = disk.fill();
    fill_with_jobs(&mut peer);
    assert_eq!(peer.put(BODY), "OUT_OF_MEMORY");
    fs::remove_file(filler).expect("removed");
    assert!(takes_jobs_again(&mut peer));
    assert!(fill_with_jobs(&mut peer).len() > 60);
    assert!(server.output().contains("there is room again"));
}

// L5.4, 6.10
#[test]
fn a_start_on_a_full_disk_ends_and_harms_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let mut server = program::start(&disk.words(), Listen::Tcp);
    let ids = fill_with_jobs(&mut Peer::of(&server));
    server.stop(Signal::SIGTERM).expect("it ends");
    let filler = disk.fill();
    server.restart().expect("it is started");
    assert!(wait_until(START_LIMIT, || !server.is_running()));
    let status = server.ended().expect("it has ended");
    assert_eq!(status.code(), Some(1));
    assert!(
        server.output().contains("cannot create binlog."),
        "{}",
        server.output()
    );

    fs::remove_file(filler).expect("removed");
    server.restart().expect("it starts again");
    expect(&server, &ids, ids.len() as u64);
    server.restart().expect("it starts again");
    expect(&server, &ids, ids.len() as u64);
}
