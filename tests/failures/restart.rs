//! How long an owner that died is away, and what others notice of it; and the end of everything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::calm::in_calm;
use crate::fixture::{START_LIMIT, wait_until};
use crate::fleet::{Fleet, put, reserve, settle};
use crate::peer::Peer;
use crate::process::{crash, is_alive};

/// Within what time an owner that keeps jobs in memory serves again.
const BACK_LIMIT: Duration = Duration::from_millis(300);
/// For how long clients of other owners may wait for an answer meanwhile.
const STALL_LIMIT: Duration = Duration::from_millis(50);

/// Puts and deletes until it is told to end, and says how long the longest answer took.
fn probe(mut peer: Peer, is_over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let start = Instant::now();
        let id = put(&mut peer, b"probe");
        longest = longest.max(start.elapsed());
        let start = Instant::now();
        assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
        longest = longest.max(start.elapsed());
    }
    longest
}

/// Until when an owner that died is back, and the longest answer of another owner meanwhile.
fn die_and_come_back() -> (Duration, Duration) {
    let fleet = Fleet::of(2, 1, &[]);
    let (mut user, mut stranger) = (fleet.peer(), fleet.peer());
    settle(&mut user, &fleet.tube(1, 0));
    settle(&mut stranger, &fleet.tube(0, 0));
    let owner = fleet.owner(1);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let probing = scope.spawn(|| probe(stranger, &is_over));
        let start = Instant::now();
        crash(owner);
        put(&mut user, b"next");
        let time = start.elapsed();
        is_over.store(true, Ordering::Relaxed);
        (time, probing.join().expect("no error"))
    })
}

// R3.14, A3.5
#[test]
fn an_owner_that_died_is_back_soon_and_clients_of_others_notice_nothing() {
    let round = || {
        let (time, stall) = die_and_come_back();
        eprintln!("an owner was back after {time:?}; longest answer of another: {stall:?}");
        let is_in_time = time <= BACK_LIMIT && stall <= STALL_LIMIT;
        is_in_time.then_some(()).ok_or((time, stall))
    };
    in_calm(round).expect("back in time, and no stall");
}

/// Clients that put, reserve and delete as fast as they can until their connections are closed.
fn with_load(fleet: &Fleet, end: impl FnOnce()) {
    let peers: Vec<Peer> = (0..4).map(|_| fleet.peer()).collect();
    thread::scope(|scope| {
        for (number, mut peer) in peers.into_iter().enumerate() {
            settle(&mut peer, &fleet.tube(number % 2, number));
            scope.spawn(move || work_until_closed(peer));
        }
        let mut other = fleet.peer();
        let is_busy = || other.stat("cmd-delete").parse::<u32>().expect("a number") > 1_000;
        assert!(wait_until(START_LIMIT, is_busy));
        end();
    });
}

fn work_until_closed(mut peer: Peer) {
    while peer.try_send("put 0 0 60 4\r\nwork\r\n") && peer.has_line(START_LIMIT) {
        if !peer.try_send("reserve-with-timeout 0\r\n") {
            return;
        }
        let Some(line) = peer.try_line() else { return };
        let id = line.split(' ').nth(1).unwrap_or("0").to_owned();
        if line.starts_with("RESERVED ") && peer.try_line().is_none() {
            return;
        }
        if !peer.try_send(format!("delete {id}\r\n")) || !peer.has_line(START_LIMIT) {
            return;
        }
    }
}

// R3.7
#[test]
fn a_supervisor_that_is_killed_takes_all_with_it() {
    let mut fleet = Fleet::of(2, 2, &[]);
    let pids = fleet.pids();
    let mut start = Instant::now();
    let supervisor = fleet.supervisor();
    with_load(&fleet, || {
        start = Instant::now();
        crash_unwaited(supervisor);
    });
    let is_over = || pids[1..].iter().all(|&pid| !is_alive(pid));
    assert!(
        wait_until(Duration::from_secs(1), is_over),
        "{:?}",
        start.elapsed()
    );
    assert!(fleet.server.ended().is_some());
}

/// Its parent is this process, which has not asked for its end yet.
fn crash_unwaited(pid: Pid) {
    nix::sys::signal::kill(pid, Signal::SIGKILL).expect("a process");
}

// R3.7
#[test]
fn a_server_asked_to_end_under_load_ends_well_and_leaves_no_process() {
    let mut fleet = Fleet::of(2, 2, &[]);
    let pids = fleet.pids();
    let mut status = None;
    let server = &fleet.server;
    with_load(&fleet, || {
        server.signal(Signal::SIGTERM).expect("a process")
    });
    assert!(wait_until(START_LIMIT, || {
        status = fleet.server.ended();
        status.is_some()
    }));
    let output = fleet.server.output();
    assert_eq!(status.and_then(|status| status.code()), Some(0), "{output}");
    assert!(!pids.into_iter().any(is_alive));
    assert_eq!(output.matches(" how=exit-0\n").count(), 4, "{output}");
}

// R3.14: a process that dies again and again is away for longer each time.
#[test]
fn an_owner_that_dies_again_and_again_harms_only_its_own_clients() {
    let fleet = Fleet::of(2, 1, &["--owner-wait=200"]);
    let (mut user, mut stranger) = (fleet.peer(), fleet.peer());
    settle(&mut user, &fleet.tube(1, 0));
    settle(&mut stranger, &fleet.tube(0, 0));
    for _ in 0..3 {
        let owner = fleet.owner(1);
        put(&mut user, b"work");
        crash(owner);
        put(&mut stranger, b"work");
    }
    // The third time it is away for a second.
    assert_eq!(user.put(b"work"), "INTERNAL_ERROR");
    assert!(wait_until(START_LIMIT, || user
        .put(b"work")
        .starts_with("INSERTED ")));
    assert_eq!(reserve(&mut user).1, b"work");
    assert_eq!(
        stranger.row(&format!("stats-tube {}", fleet.tube(0, 0)), "total-jobs"),
        "3"
    );
}
