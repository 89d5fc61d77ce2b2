//! What a server with a binlog keeps when it is killed, when its files are damaged, and when the
//! disk is full; and how it starts and ends.

#[path = "durability/damage.rs"]
mod damage;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[cfg(target_os = "linux")]
#[path = "durability/full.rs"]
mod full;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "durability/hand.rs"]
mod hand;
#[path = "durability/load.rs"]
mod load;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/peer.rs"]
mod peer;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/program.rs"]
mod program;
#[path = "durability/start.rs"]
mod start;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/transcript/mod.rs"]
mod transcript;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use fixture::{Listen, Server};
use peer::Peer;
use program::{ours, words};

/// The words that start ours with its binlog in the fixture's folder and with `flags`.
fn our_words(flags: &[&str]) -> Vec<String> {
    ours(&[&["-b", "<dir>"], flags].concat())
}

/// The same for the C server, if it is there.
fn their_words(flags: &[&str]) -> Option<Vec<String>> {
    let oracle = env::var("BEANSHARD_ORACLE").unwrap_or_else(|_| "beanstalkd".into());
    if Command::new(&oracle).arg("-v").output().is_err() {
        program::skip("no beanstalkd in PATH or BEANSHARD_ORACLE");
        return None;
    }
    Some(words(&[&*oracle, "-b", "<dir>"], flags))
}

/// Starts ours with its binlog in a folder of its own.
fn serve(flags: &[&str]) -> Server {
    program::start(&our_words(flags), Listen::Tcp)
}

/// The names in a binlog's folder, but for the fixture's own and the lock.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("names are ASCII"))
        .filter(|name| name != "output" && name != "lock")
        .collect();
    names.sort_unstable();
    names
}

fn len_of(dir: &Path, name: &str) -> u64 {
    let file = fs::metadata(dir.join(name));
    file.unwrap_or_else(|error| panic!("{name}: {error}")).len()
}

/// The id that a put has given.
fn put(peer: &mut Peer, body: &[u8]) -> u64 {
    let answer = peer.put(body);
    let id = answer.strip_prefix("INSERTED ").map(str::parse);
    id.and_then(Result::ok)
        .unwrap_or_else(|| panic!("{answer}"))
}

/// The body of a job that is there.
fn peek(peer: &mut Peer, id: u64) -> Option<Vec<u8>> {
    let answer = peer.ask(&format!("peek {id}"));
    if answer == "NOT_FOUND" {
        return None;
    }
    let len = answer.strip_prefix(&format!("FOUND {id} "));
    let len = len.unwrap_or_else(|| panic!("{answer}"));
    Some(peer.body(len.parse().expect("a length")))
}
