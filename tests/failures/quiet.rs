//! What a sharded server costs that does nothing, and that does something large.

use std::time::{Duration, Instant};

use crate::calm::in_calm;
use crate::fixture::{START_LIMIT, pass, wait_until};
use crate::fleet::{Fleet, put, reserved, settle};
use crate::peer::Peer;
use crate::process::{cpu_ticks, resident_kib, status};

/// For how long it is watched.
const WINDOW: Duration = Duration::from_secs(3);
/// Ticks of processor time that all processes together may use in it.
const TICKS_MAX: u64 = 2;
/// How often they may wake: a question after health wakes the supervisor and each child, and the
/// supervisor for each answer.
const WAKES_MAX: u64 = 12;

// A3.3
#[test]
fn a_server_without_work_sleeps() {
    let fleet = Fleet::of(2, 2, &[]);
    let mut peers: Vec<Peer> = (0..100).map(|_| fleet.peer()).collect();
    for (at, peer) in peers.iter_mut().enumerate() {
        settle(peer, &fleet.tube(at % 2, at));
        if at % 3 == 0 {
            peer.send("reserve\r\n");
        }
    }
    assert!(wait_until(START_LIMIT, || fleet
        .peer()
        .stat("current-waiting")
        == "34"));
    let pids = fleet.pids();
    let used = || -> (u64, u64) {
        let ticks = pids.iter().map(|&pid| cpu_ticks(pid)).sum();
        let wakes = pids
            .iter()
            .map(|&pid| status(pid, "voluntary_ctxt_switches"));
        (ticks, wakes.sum())
    };
    let before = used();
    pass(WINDOW);
    let after = used();
    let (ticks, wakes) = (after.0 - before.0, after.1 - before.1);
    eprintln!("100 idle connections: {ticks} ticks, {wakes} wakes in {WINDOW:?}");
    assert!(
        ticks <= TICKS_MAX && wakes <= WAKES_MAX,
        "{ticks} ticks, {wakes} wakes"
    );
}

/// Bytes of a job that takes a link a while.
const HUGE: usize = 100_000_000;
/// How others fare while it is on its way in one direction.
#[derive(Debug)]
struct Passage {
    /// How long it takes.
    whole: Duration,
    /// The longest that another client of the same link waits for two answers meanwhile.
    longest: Duration,
}

impl Passage {
    /// Whether the others have been served in between, and not only before and behind it.
    fn is_shared(&self) -> bool {
        self.longest * 2 <= self.whole
    }
}

/// Sends `bytes`, and has `other` ask until `peer` is answered.
fn pass_beside(peer: &mut Peer, bytes: &[u8], other: &mut Peer) -> (String, Passage) {
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    peer.send(bytes);
    let answer = loop {
        if let Some(answer) = peer.line_within(Duration::ZERO) {
            break answer;
        }
        let asked = Instant::now();
        let id = put(other, b"small");
        assert_eq!(other.ask(&format!("delete {id}")), "DELETED");
        longest = longest.max(asked.elapsed());
    };
    let whole = start.elapsed();
    (answer, Passage { whole, longest })
}

/// Puts and takes a huge job, and says how others fared on its way to the owner and back.
fn pass_both_ways(fleet: &Fleet, tube: &str, body: &[u8]) -> [Passage; 2] {
    let (mut peer, mut other) = (fleet.peer(), fleet.peer());
    settle(&mut peer, tube);
    settle(&mut other, tube);
    assert_eq!(other.ask("use elsewhere"), "USING elsewhere");
    peer.send(format!("put 0 0 60 {HUGE}\r\n"));
    peer.send(body);
    // Now the frontend has nearly all of it, and nothing has gone to the owner.
    let (answer, there) = pass_beside(&mut peer, b"\r\n", &mut other);
    assert!(answer.starts_with("INSERTED "), "{answer}");
    let (answer, back) = pass_beside(&mut peer, b"reserve\r\n", &mut other);
    let (id, taken) = reserved(&mut peer, &answer);
    assert!(taken == body, "the same bytes");
    assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
    [there, back]
}

// R3.6, R3.8, A3.4
#[test]
fn a_huge_job_keeps_nobody_waiting_and_leaves_no_memory_behind() {
    let fleet = Fleet::of(1, 1, &["-z", "100000000"]);
    let tube = fleet.tube(0, 0);
    let pids = [fleet.owner(0), fleet.frontend(0)];
    let before = pids.map(resident_kib);
    let body: Vec<u8> = (0..HUGE).map(|at| (at * 7 + at / 251) as u8).collect();
    let round = || {
        let passages = pass_both_ways(&fleet, &tube, &body);
        eprintln!("a job of {HUGE} bytes goes and comes: {passages:?}");
        let is_shared = passages.iter().all(Passage::is_shared);
        is_shared.then_some(()).ok_or(passages)
    };
    in_calm(round).expect("others are served");
    let grown =
        || pids.map(resident_kib).into_iter().sum::<u64>() - before.into_iter().sum::<u64>();
    assert!(
        wait_until(START_LIMIT, || grown() < 8_000),
        "{} KiB",
        grown()
    );
}
