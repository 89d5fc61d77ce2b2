//! The whole server, or one owner again and again, is killed under load, and every job is
//! accounted for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use beanshard::base::name::TubeName;
use beanshard::base::slot::{SLOT_BITS, Slot};
use nix::sys::signal::{Signal, kill};

use crate::fixture::{START_LIMIT, wait_until};
use crate::fleet::Fleet;
use crate::hand::{BATCH, Books, Hand};
use crate::keep;
use crate::process::crash;

const CLIENTS: u64 = 4;
/// The owner that is killed alone.
const MORTAL: usize = 1;

/// What a client says first: it puts into a tube of this owner, and watches these.
fn greeting(fleet: &Fleet, owner: usize, watched: &[usize]) -> Vec<String> {
    let watches = watched
        .iter()
        .map(|&owner| format!("watch {}", fleet.tube(owner, 0)));
    [format!("use {}", fleet.tube(owner, 0))]
        .into_iter()
        .chain(watches)
        .collect()
}

/// All ids that may have been given in the tubes of the clients, if this is the highest known.
fn ids(fleet: &Fleet, highest: u64) -> Vec<u64> {
    let last = (highest >> SLOT_BITS) + (BATCH + 1) * CLIENTS;
    let tubes = [fleet.tube(0, 0), fleet.tube(1, 0)];
    let slots = tubes.map(|tube| Slot::of(TubeName::parse(tube.as_bytes()).expect("a name")));
    let of_slot =
        |slot: Slot| (1..=last).map(move |number| number << SLOT_BITS | u64::from(slot.0));
    slots.into_iter().flat_map(of_slot).collect()
}

/// What is put in the next round gets higher ids than all that there are.
fn check_and_wake(fleet: &Fleet, books: &mut Books) {
    let mut peer = fleet.peer();
    books.check(&mut peer, |highest| ids(fleet, highest));
    for owner in 0..2 {
        peer.ask(&format!("use {}", fleet.tube(owner, 0)));
        peer.ask("kick 1000000");
        peer.ask("kick 1000000");
        let slot = |id: &&u64| **id & ((1 << SLOT_BITS) - 1);
        let answer = peer.put(b"next");
        let id = answer.strip_prefix("INSERTED ").expect("an id");
        let id: u64 = id.parse().expect("a number");
        let highest = books
            .bodies
            .keys()
            .filter(|other| slot(other) == slot(&&id));
        assert!(highest.max().is_none_or(|&highest| id > highest), "{id}");
        assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
    }
}

fn run(flags: &[&str], rounds: u64) {
    let mut fleet = keep(&[flags, &["--owner-wait=20000"]].concat());
    let mut books = Books::default();
    for round in 1..=rounds {
        let answers = Arc::new(AtomicU64::new(0));
        let mut hands = Vec::new();
        for client in 0..CLIENTS {
            let seed = round * CLIENTS + client;
            let hand = Hand::of(&fleet.server, format!("{round}/{client}"), seed, &answers);
            let hand = hand.greeting(&greeting(&fleet, client as usize % 2, &[0, 1]));
            hands.push(thread::spawn(|| hand.work()));
        }
        let enough = 300 + 170 * (round % 5);
        let is_enough = || answers.load(Ordering::Relaxed) > enough;
        assert!(wait_until(START_LIMIT, is_enough));
        // All at one blow, or the supervisor alone, whom the others follow.
        let pids = fleet.pids();
        let count = if round % 2 == 0 { 1 } else { pids.len() };
        for &pid in &pids[..count] {
            kill(pid, Signal::SIGKILL).expect("a process");
        }
        for hand in hands {
            books.enter(hand.join().expect("every answer was right"));
        }
        fleet.server.restart().expect("it starts again");
        fleet.wait_until_whole();
        check_and_wake(&fleet, &mut books);
    }
    let output = fleet.server.output();
    assert!(!output.contains("damaged"), "{output}");
    let jobs = books.bodies.len() as u64;
    eprintln!("{jobs} jobs, {} deleted", books.deleted.len());
}

// R4.5
#[test]
fn a_kill_of_all_loses_nothing_that_was_answered_when_answers_wait_for_the_disk() {
    run(&["-f", "0", "-s", "8192"], 4);
}

// R4.5
#[test]
fn a_kill_of_all_loses_nothing_that_was_answered_when_it_is_synced_from_time_to_time() {
    run(&["-s", "8192"], 4);
}

// R4.5
#[test]
fn a_kill_of_all_loses_nothing_that_was_answered_when_it_is_never_synced() {
    run(&["-F"], 2);
}

/// Kills an owner as often as it comes back at once or soon, in the middle of something.
fn kill_again_and_again(flags: &[&str]) {
    const DEATHS: usize = 3;
    let fleet = keep(&[flags, &["--owner-wait=20000"]].concat());
    let (is_over, answers) = (AtomicBool::new(false), Arc::new(AtomicU64::new(0)));
    let mut books = Books::default();
    let mut comebacks = [0; 2];
    thread::scope(|scope| {
        let mut hands = Vec::new();
        for client in 0..CLIENTS {
            let hand = Hand::of(&fleet.server, format!("{client}"), client, &answers);
            // Two of them know of one owner only.
            let (owner, watched) = match client {
                0 | 1 => (client as usize, vec![client as usize]),
                _ => (client as usize % 2, vec![0, 1]),
            };
            let hand = hand.greeting(&greeting(&fleet, owner, &watched));
            let (fleet, is_over) = (&fleet, &is_over);
            hands.push(scope.spawn(move || hand.work_on(&fleet.server, is_over)));
        }
        for death in 0..DEATHS as u64 {
            let enough = answers.load(Ordering::Relaxed) + 300 + 70 * death;
            let is_enough = || answers.load(Ordering::Relaxed) > enough;
            assert!(wait_until(START_LIMIT, is_enough));
            crash(fleet.owner(MORTAL));
        }
        fleet.wait_until_whole();
        is_over.store(true, Ordering::Relaxed);
        for (client, hand) in hands.into_iter().enumerate() {
            let (notes, count) = hand.join().expect("every answer was right");
            books.enter(notes);
            if client < 2 {
                comebacks[client] = count;
            }
        }
    });
    assert_eq!(
        comebacks[1 - MORTAL],
        0,
        "another owner's client was closed"
    );
    check_and_wake(&fleet, &mut books);
    let count = books.bodies.len();
    eprintln!(
        "{count} jobs, {} deleted; closed {comebacks:?}",
        books.deleted.len()
    );
}

// R3.14, R4.5
#[test]
fn an_owner_killed_again_and_again_loses_nothing_that_was_answered() {
    kill_again_and_again(&["-f", "0", "-s", "8192"]);
}

// R3.14, R4.5
#[test]
fn an_owner_killed_again_and_again_loses_nothing_that_was_written() {
    kill_again_and_again(&["-F", "-s", "8192"]);
}
