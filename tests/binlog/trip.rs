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

use beanshard::base::ids::JobId;
use beanshard::base::time::NANOS_PER_SEC;
use beanshard::sys::clock;
use beanshard::wal::reader::Account;
use beanshard::wal::record::Version;
use nix::sys::signal::Signal::{self, SIGKILL, SIGTERM};
use tempfile::TempDir;

use crate::account;
use crate::fixture::{Listen, START_LIMIT, Server, wait_until};
use crate::hand;
use crate::life::Maker::{self, Ours, Theirs};
use crate::life::{Life, Shown};
use crate::peer::Peer;
use crate::program::ours;
use crate::their_words;

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
        let copy = copy_of(self.server.dir());
        let printed = self.server.output().len();
        self.server.restart_as(&words).expect("it takes over");
        self.life.go_on(&self.server, next, &account);
        if next == Theirs {
            // Q27: it may complain of a file whose writer was killed, though nothing is wrong.
            let output = self.server.output();
            let complaints = &output[printed..];
            assert!(!complaints.contains("No such file"), "{complaints}");
            assert!(!complaints.contains("version"), "{complaints}");
        }
        self.drain(copy, &words, &account);
        Some(())
    }

    /// Starts `words` from a copy of the files, which are as `account` says, and looks at the order
    /// of all jobs.
    fn drain(&self, copy: TempDir, words: &[String], account: &Account) {
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

/// A folder with the binlog's files that are in `dir`.
fn copy_of(dir: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder can be made");
    for file in fs::read_dir(dir).expect("it is there") {
        let name = file.expect("an entry").file_name();
        if name.as_encoded_bytes().starts_with(b"binlog.") {
            fs::copy(dir.join(&name), copy.path().join(&name)).expect("copied");
        }
    }
    copy
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
    let Some(words) = words_of(Theirs, "4096") else {
        return;
    };
    let mut server = Server::start(&words, Listen::Tcp).expect("the server starts");
    let mut peer = Peer::of(&server);
    (0..6).for_each(|_| drop(peer.put(&[b'x'; 1000])));
    let order = [5, 2, 6, 1, 3, 4];
    for id in order {
        assert_eq!(
            peer.ask(&format!("reserve-job {id}")),
            format!("RESERVED {id} 1000")
        );
        peer.body(1000);
        assert_eq!(peer.ask(&format!("bury {id} 0")), "BURIED");
    }
    server.stop(SIGTERM).expect("it ends");

    let words = words_of(Ours, "4096").expect("ours is there");
    server.restart_as(&words).expect("it takes over");
    let mut peer = Peer::of(&server);
    let copies = |peer: &mut Peer| peer.stat("binlog-records-migrated").parse::<u64>();
    churn(&mut peer, |peer| copies(peer).expect("a number") >= 6);
    server.restart().expect("it starts again");
    assert_eq!(kick_all(&mut Peer::of(&server), "peek-buried"), order);
}

/// Puts and deletes until `is_done`.
fn churn(peer: &mut Peer, is_done: impl Fn(&mut Peer) -> bool) {
    let is_done = || {
        let id = peer.put(&[b'x'; 1000]).replace("INSERTED ", "");
        assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
        is_done(peer)
    };
    assert!(wait_until(START_LIMIT, is_done));
}

fn serve_by_hand(maker: Maker, bytes: &[u8]) -> Option<Server> {
    let dir = tempfile::tempdir().expect("a folder can be made");
    fs::write(dir.path().join("binlog.1"), bytes).expect("written");
    let server = Server::start_in(dir, &words_of(maker, "4096")?, Listen::Tcp);
    Some(server.expect("the server starts"))
}

// Q21
#[test]
fn a_copy_of_a_buried_job_is_no_burial() {
    let server = serve_by_hand(Ours, &hand::copied_burial()).expect("ours is there");
    let mut peer = Peer::of(&server);
    peer.ask("use tb");
    assert_eq!(kick_all(&mut peer, "peek-buried"), [2, 1]);
}

#[test]
fn a_delay_that_has_ended_meanwhile_is_over() {
    for maker in [Ours, Theirs] {
        let Some(server) = serve_by_hand(maker, &hand::copied_burial()) else {
            return;
        };
        let mut peer = Peer::of(&server);
        peer.ask("watch tb");
        assert_eq!(reserve_all(&mut peer), [3]);
    }
}

#[test]
fn what_is_left_of_version_5_goes_on_in_files_of_version_7() {
    let mut server = serve_by_hand(Ours, &hand::version_5()).expect("ours is there");
    let expect = |server: &Server, makers: &[Maker]| {
        let mut peer = Peer::of(server);
        for (id, mut shown) in (3..).zip(hand::jobs()) {
            for &maker in makers {
                shown = shown.after_restart(maker);
            }
            assert_eq!(Shown::ask(&mut peer, id), shown);
        }
        peer.ask("peek 3");
        assert_eq!(peer.body(5), b"three");
        let left = peer.row("stats-job 3", "time-left");
        let now = clock::wall().cast_unsigned() / NANOS_PER_SEC;
        let end = now + left.parse::<u64>().expect("seconds");
        assert!(end.abs_diff(hand::DEADLINE_NANOS / NANOS_PER_SEC) <= 2);
    };
    expect(&server, &[Ours]);
    let mut peer = Peer::of(&server);
    let oldest = |peer: &mut Peer| peer.stat("binlog-oldest-index");
    churn(&mut peer, |peer| oldest(peer) != "1");
    expect(&server, &[Ours]);
    server.stop(SIGKILL).expect("it ends");
    let account = account(server.dir());
    let versions = account.files.iter().map(|file| file.version);
    assert!(versions.eq(account.files.iter().map(|_| Ok(Version::V7))));
    let created = account.jobs[&JobId(3)].job.created_at.0.cast_unsigned();
    // The two clocks are not read at the same moment.
    assert!(
        created.abs_diff(hand::CREATED_NANOS) < 1_000_000,
        "{created}"
    );

    let Some(words) = words_of(Theirs, "4096") else {
        return;
    };
    server.restart_as(&words).expect("it takes over");
    expect(&server, &[Theirs]);
    server
        .restart_as(&words_of(Ours, "4096").expect("ours"))
        .expect("it takes over");
    expect(&server, &[Ours]);
}
