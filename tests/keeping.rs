//! What a sharded server with `-b` keeps when it or one of its owners is killed, when a file is
//! damaged, and when an owner's disk is full, slow or broken; and what its directory is for.

#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/calm.rs"]
mod calm;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "failures/fleet.rs"]
mod fleet;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "durability/hand.rs"]
mod hand;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/peer.rs"]
mod peer;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "failures/process.rs"]
mod process;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/program.rs"]
mod program;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/transcript/mod.rs"]
mod transcript;

#[path = "keeping/damage.rs"]
mod damage;
#[path = "keeping/directory.rs"]
mod directory;
#[path = "keeping/disk.rs"]
mod disk;
#[path = "keeping/lives.rs"]
mod lives;
#[path = "keeping/load.rs"]
mod load;

use beanshard::session::shards::ShardMap;
use beanshard::wal::topology::{DataDir, Topology};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use fleet::Fleet;
use process::is_alive;

/// Two owners and two frontends, with data in the fixture's folder.
fn keep(flags: &[&str]) -> Fleet {
    Fleet::of(2, 2, &[&["-b", "<dir>"], flags].concat())
}

/// A folder that is a data directory of two owners, in which nothing is yet.
fn made_for_two() -> TempDir {
    let dir = TempDir::new().expect("a folder can be made");
    let topology = Topology {
        owners: 2,
        fingerprint: ShardMap::new(2).fingerprint(),
    };
    drop(DataDir::open(dir.path(), topology).expect("it can be made"));
    dir
}

/// Ends the server in this way, with all of its processes, and starts it again.
fn end_and_start(fleet: &mut Fleet, end: Signal) {
    let pids = fleet.pids();
    fleet.server.stop(end).expect("it ends");
    let is_over = || !pids.iter().any(|&pid| is_alive(pid));
    assert!(fixture::wait_until(fixture::START_LIMIT, is_over));
    fleet.server.restart().expect("it starts again");
    fleet.wait_until_whole();
}
