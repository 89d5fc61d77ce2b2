//! What an owner keeps of jobs and tubes over its death and over a restart of all.

use nix::sys::signal::Signal;

use crate::end_and_start;
use crate::fleet::{Fleet, put, reserve, settle};
use crate::keep;
use crate::peer::Peer;
use crate::process::crash;

/// Rows of a job that stay as they are.
const KEPT: [&str; 9] = [
    "tube", "pri", "ttr", "delay", "reserves", "timeouts", "releases", "buries", "kicks",
];

fn rows(peer: &mut Peer, id: u64) -> Vec<String> {
    let line = format!("stats-job {id}");
    let mut rows: Vec<String> = KEPT.iter().map(|key| peer.row(&line, key)).collect();
    rows.push(peer.row(&line, "state"));
    rows
}

fn number(peer: &mut Peer, line: &str, key: &str) -> u64 {
    peer.row(line, key).parse().expect("a number")
}

/// Jobs in each state, and a tube that is paused.
struct Estate {
    /// Their ids, and what their rows are.
    jobs: Vec<(u64, Vec<String>)>,
    /// Those that are buried, in that order.
    buried: [u64; 3],
    delayed: u64,
    paused: String,
}

/// Holds a job of the tube as long as its connection stands.
fn hold(fleet: &Fleet, tube: &str, id: u64) -> Peer {
    let mut holder = fleet.peer();
    settle(&mut holder, tube);
    let answer = holder.ask(&format!("reserve-job {id}"));
    assert!(answer.starts_with("RESERVED "), "{answer}");
    holder.line();
    holder
}

fn make_estate(peer: &mut Peer, fleet: &Fleet, owner: usize) -> Estate {
    let (tube, paused) = (fleet.tube(owner, 0), fleet.tube(owner, 1));
    assert_eq!(
        peer.ask(&format!("use {paused}")),
        format!("USING {paused}")
    );
    let under_pause = put(peer, b"paused");
    peer.ask(&format!("watch {paused}"));
    assert_eq!(peer.ask(&format!("pause-tube {paused} 5000")), "PAUSED");
    settle(peer, &tube);
    let buried = [b"one", b"two", b"six"].map(|body| put(peer, body));
    // In another order than that of their ids, and the first with a life behind it.
    let buried = [buried[2], buried[0], buried[1]];
    for id in buried {
        peer.ask(&format!("reserve-job {id}"));
        peer.line();
        assert_eq!(peer.ask(&format!("release {id} 7 0")), "RELEASED");
        peer.ask(&format!("reserve-job {id}"));
        peer.line();
        assert_eq!(peer.ask(&format!("bury {id} 9")), "BURIED");
    }
    peer.send("put 3 4000 77 4\r\nlate\r\n");
    let answer = peer.line();
    let delayed = answer.strip_prefix("INSERTED ").expect("an id");
    let delayed = delayed.parse().expect("a number");
    let ready = put(peer, b"ready");
    let held = put(peer, b"held");
    let jobs = [&buried[..], &[delayed, ready, held, under_pause]].concat();
    let mut jobs: Vec<_> = jobs.into_iter().map(|id| (id, rows(peer, id))).collect();
    // It is reserved once more before the owner dies, and ready behind it.
    let reserves = KEPT.iter().position(|key| *key == "reserves");
    jobs[5].1[reserves.expect("a row")] = "1".to_owned();
    Estate {
        jobs,
        buried,
        delayed,
        paused,
    }
}

fn check_estate(peer: &mut Peer, estate: &Estate) {
    for (id, before) in &estate.jobs {
        assert_eq!(rows(peer, *id), *before, "{id}");
    }
    let left = number(peer, &format!("stats-job {}", estate.delayed), "time-left");
    assert!((3900..=4000).contains(&left), "{left}");
    let line = format!("stats-tube {}", estate.paused);
    let left = number(peer, &line, "pause-time-left");
    assert!((4900..=5000).contains(&left), "{left}");
}

/// The job that is held is told last, since it is not that any more.
fn check_buried(peer: &mut Peer, estate: &Estate) {
    for id in estate.buried {
        assert!(peer.ask("peek-buried").starts_with(&format!("FOUND {id} ")));
        peer.line();
        assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
    }
    assert_eq!(peer.ask("peek-buried"), "NOT_FOUND");
}

// R3.14, R4.5
#[test]
fn an_owner_that_died_is_as_it_was_and_nobody_else_notices() {
    // Who sees that the owner is gone sees it for all clients.
    let fleet = Fleet::of(2, 1, &["-b", "<dir>", "-f", "0", "--owner-wait=20000"]);
    let mut peer = fleet.peer();
    let estate = make_estate(&mut peer, &fleet, 1);
    let mut stranger = fleet.peer();
    settle(&mut stranger, &fleet.tube(0, 0));
    let theirs = put(&mut stranger, b"theirs");
    assert_eq!(reserve(&mut stranger).0, theirs);
    let (held, reserves) = (estate.jobs[5].0, |row: &[String]| row[4].clone());
    for death in 1..=2 {
        let mut holder = hold(&fleet, &fleet.tube(1, 0), held);
        crash(fleet.owner(1));
        assert!(holder.is_closed(), "it held a job there");
        let mut estate_now = Estate {
            jobs: estate.jobs.clone(),
            paused: estate.paused.clone(),
            ..estate
        };
        // No record tells of a reservation, unless something else is to be told of the job.
        let row = &mut estate_now.jobs[5].1;
        row[4] = reserves(&rows(&mut peer, held));
        check_estate(&mut peer, &estate_now);
        assert_eq!(
            stranger.ask(&format!("touch {theirs}")),
            "TOUCHED",
            "{death}"
        );
    }
    check_buried(&mut peer, &estate);
    assert_eq!(stranger.ask(&format!("delete {theirs}")), "DELETED");
}

// R4.5
#[test]
fn a_restart_of_all_finds_all_owners_as_they_were() {
    for end in [Signal::SIGKILL, Signal::SIGTERM] {
        let mut fleet = keep(&["-f", "0"]);
        let mut peer = fleet.peer();
        let mut estates = [0, 1].map(|owner| make_estate(&mut peer, &fleet, owner));
        for estate in &mut estates {
            estate.jobs.remove(5);
        }
        end_and_start(&mut fleet, end);
        let mut peer = fleet.peer();
        for (owner, estate) in estates.iter().enumerate() {
            check_estate(&mut peer, estate);
            settle(&mut peer, &fleet.tube(owner, 0));
            check_buried(&mut peer, estate);
        }
    }
}

// Q20, R4.5
#[test]
fn ids_of_an_owner_go_on_when_all_is_deleted() {
    let mut fleet = Fleet::of(2, 1, &["-b", "<dir>", "-f", "0", "-s", "4096"]);
    let tube = fleet.tube(1, 0);
    let mut highest = 0;
    for round in 0..4 {
        let mut peer = fleet.peer();
        settle(&mut peer, &tube);
        for _ in 0..5 {
            let id = put(&mut peer, &[b'x'; 1500]);
            assert!(id > highest, "{id} after {highest}");
            highest = id;
            assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
        }
        match round {
            0 => {
                crash(fleet.owner(1));
                fleet.wait_until_whole();
            }
            1 => end_and_start(&mut fleet, Signal::SIGKILL),
            _ => end_and_start(&mut fleet, Signal::SIGTERM),
        }
    }
}
