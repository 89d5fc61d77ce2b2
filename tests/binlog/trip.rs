//! A binlog that goes from server to server, ours and the C one, ended in order or killed: what one
//! has shown the next one shows.
//!
//! The format cannot say all, and the two do not write down the same, so these are different:
//! a reservation is not written, nor what a job was between one and the record that follows it; nor
//! is a release without delay by the C server; the C server adds one to `buries` at each of its
//! starts, and keeps buried jobs in the order in which it first reads of them; and where the C
//! server has copied jobs that it has buried itself, nothing tells when that was.

use std::fs;
use std::path::Path;

use beanshard::wal::reader::Account;
use nix::sys::signal::Signal::{self, SIGKILL, SIGTERM};

use crate::fixture::{Listen, Server};
use crate::life::Life;
use crate::life::Maker::{self, Ours, Theirs};
use crate::peer::Peer;
use crate::program::ours;
use crate::{account, hand, their_words};

/// The words that start a server of either maker with files of this length.
fn words_of(maker: Maker, file_len: &str) -> Option<Vec<String>> {
    match maker {
        Ours => Some(ours(&["-b", "<dir>", "-f", "0", "-s", file_len])),
        // Q10: by default it would lose bodies of the greatest length at its next start.
        Theirs => their_words(&["-s", file_len, "-z", "65537"]),
    }
}

/// A journey of a binlog.
struct Trip {
    /// Bytes of a file, for the next server.
    file_len: &'static str,
    server: Server,
    maker: Maker,
    life: Life,
    /// The C server has copied jobs to free a file.
    they_have_copied: bool,
    we_have_copied: bool,
}

impl Trip {
    fn start(maker: Maker, file_len: &'static str, seed: u64) -> Option<Trip> {
        let server = Server::start(&words_of(maker, file_len)?, Listen::Tcp);
        let server = server.expect("the server starts");
        let life = Life::new(&server, maker, seed);
        Some(Trip {
            file_len,
            server,
            maker,
            life,
            they_have_copied: false,
            we_have_copied: false,
        })
    }

    /// Lives for a while, and goes on with another server.
    fn go(&mut self, steps: u32, end: Signal, next: Maker) -> Option<()> {
        (0..steps).for_each(|_| self.life.step());
        let copies = Peer::of(&self.server).stat("binlog-records-migrated");
        match self.maker {
            Ours => self.we_have_copied |= copies != "0",
            Theirs => self.they_have_copied |= copies != "0",
        }
        self.life.check();
        self.server.stop(end).expect("it ends");

        let account = account(self.server.dir());
        self.life.check_account(self.server.dir(), &account);
        let words = words_of(next, self.file_len)?;
        self.maker = next;
        let dir = self.server.dir().to_owned();
        self.server.restart_as(&words).expect("it takes over");
        self.life.go_on(&self.server, next, &account);
        self.drain_copy(&dir, &words, &account);
        Some(())
    }

    /// Starts `words` from a copy of the files in `from`, which are as `account` says, and looks at
    /// the order of all jobs.
    fn drain_copy(&self, from: &Path, words: &[String], account: &Account) {
        let copy = tempfile::tempdir().expect("a folder can be made");
        for file in fs::read_dir(from).expect("it is there") {
            let name = file.expect("an entry").file_name();
            if name.as_encoded_bytes().starts_with(b"binlog.") {
                fs::copy(from.join(&name), copy.path().join(&name)).expect("copied");
            }
        }
        let server = Server::start_in(copy, words, Listen::Tcp).expect("the server starts");
        let mut peer = Peer::of(&server);
        for tube in Life::tubes() {
            peer.ask(&format!("watch {tube}"));
        }
        assert_eq!(reserve_all(&mut peer), self.life.ready(account));
        for tube in Life::tubes() {
            peer.ask(&format!("use {tube}"));
            let buried = kick_all(&mut peer, "peek-buried");
            self.check_buried(buried, self.life.buried(account, &tube));
            let delayed = kick_all(&mut peer, "peek-delayed");
            assert_eq!(delayed, self.life.delayed(account, &tube));
        }
    }

    fn check_buried(&self, mut found: Vec<u64>, mut expected: Vec<(u64, Maker)>) {
        if self.maker == Theirs {
            found.sort_unstable();
            expected.sort_unstable_by_key(|&(id, _)| id);
        } else if self.they_have_copied {
            expected.retain(|&(_, by)| by == Ours);
            found.retain(|id| expected.iter().any(|(one, _)| one == id));
        }
        let expected: Vec<u64> = expected.into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, expected);
    }
}

/// Takes all ready jobs, and tells their order.
fn reserve_all(peer: &mut Peer) -> Vec<u64> {
    let mut order = Vec::new();
    loop {
        let answer = peer.ask("reserve-with-timeout 0");
        if answer == "TIMED_OUT" {
            return order;
        }
        order.push(take_job(peer, "RESERVED", &answer));
    }
}

/// Kicks jobs one by one, and tells their order, which `peek` lets be seen.
fn kick_all(peer: &mut Peer, peek: &str) -> Vec<u64> {
    let mut order = Vec::new();
    loop {
        let answer = peer.ask(peek);
        if answer == "NOT_FOUND" {
            return order;
        }
        order.push(take_job(peer, "FOUND", &answer));
        assert_eq!(peer.ask("kick 1"), "KICKED 1");
    }
}

/// Takes the body of the job that `answer` announces, and tells the job's id.
fn take_job(peer: &mut Peer, word: &str, answer: &str) -> u64 {
    let parts: Vec<&str> = answer.split(' ').collect();
    let &[first, id, len] = &parts[..] else {
        panic!("{answer}");
    };
    assert_eq!(first, word);
    peer.body(len.parse().expect("a length"));
    id.parse().expect("an id")
}

// K15, K20, Q10, Q21
#[test]
fn jobs_go_from_server_to_server_and_back() {
    for (seed, end) in [(1, SIGTERM), (2, SIGKILL)] {
        let Some(mut trip) = Trip::start(Theirs, "4096", seed) else {
            return;
        };
        trip.life.let_time_run_out();
        for next in [Ours, Theirs, Theirs, Ours, Ours, Theirs, Ours, Ours] {
            trip.go(150, end, next).expect("both are there");
        }
        assert!(trip.they_have_copied, "they had nothing to copy");
        assert!(trip.we_have_copied, "we had nothing to copy");
    }
}

#[test]
fn jobs_go_to_the_c_server_and_back() {
    for (seed, end) in [(3, SIGTERM), (4, SIGKILL)] {
        let Some(mut trip) = Trip::start(Ours, "4096", seed) else {
            return;
        };
        trip.life.let_time_run_out();
        for next in [Ours, Ours, Theirs, Ours, Ours, Theirs, Ours] {
            let Some(()) = trip.go(150, end, next) else {
                return;
            };
        }
        assert!(trip.we_have_copied, "we had nothing to copy");
    }
}

// Q21
#[test]
fn burials_by_the_c_server_keep_their_order_when_ours_copies_them() {
    for seed in 5..=7 {
        let Some(mut trip) = Trip::start(Theirs, "10485760", seed) else {
            return;
        };
        trip.file_len = "4096";
        trip.go(300, SIGTERM, Ours).expect("both are there");
        assert!(!trip.they_have_copied);
        trip.go(600, SIGKILL, Ours).expect("ours is there");
        trip.go(600, SIGTERM, Ours).expect("ours is there");
        assert!(trip.we_have_copied, "we had nothing to copy");
    }
}
