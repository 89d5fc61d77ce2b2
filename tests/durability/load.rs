//! Servers that are killed while they work, and the account of what was confirmed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nix::sys::signal::Signal;

use crate::fixture::{START_LIMIT, wait_until};
use crate::hand::{BATCH, Books, Hand};
use crate::peer::Peer;
use crate::serve;

const CLIENTS: u64 = 4;

fn run(flags: &[&str], rounds: u64) {
    let mut server = serve(flags);
    let mut books = Books::default();
    for round in 1..=rounds {
        let answers = Arc::new(AtomicU64::new(0));
        let mut hands = Vec::new();
        for client in 0..CLIENTS {
            let seed = round * CLIENTS + client;
            let hand = Hand::of(&server, format!("{round}/{client}"), seed, &answers);
            hands.push(thread::spawn(|| hand.work()));
        }
        // It is killed in the middle of something.
        let enough = 300 + 170 * (round % 5);
        let is_enough = || answers.load(Ordering::Relaxed) > enough;
        assert!(wait_until(START_LIMIT, is_enough));
        server.stop(Signal::SIGKILL).expect("it ends");
        for hand in hands {
            books.enter(hand.join().expect("every answer was right"));
        }
        server.restart().expect("it starts again");
        let mut peer = Peer::of(&server);
        // Each client may have had so many puts under way.
        books.check(&mut peer, |highest| {
            (1..=highest + (BATCH + 1) * CLIENTS).collect()
        });
        peer.ask("kick 1000000");
        peer.ask("kick 1000000");
    }
    let output = server.output();
    assert!(!output.contains("damaged"), "{output}");
    let jobs = books.bodies.len() as u64;
    eprintln!("{jobs} jobs, {} deleted", books.deleted.len());
}

#[test]
fn a_kill_loses_nothing_that_was_answered_when_answers_wait_for_the_disk() {
    run(&["-f", "0", "-s", "8192"], 5);
}

#[test]
fn a_kill_loses_nothing_that_was_answered_when_it_is_synced_from_time_to_time() {
    run(&["-s", "8192"], 5);
}

#[test]
fn a_kill_loses_nothing_that_was_answered_when_it_is_never_synced() {
    run(&["-F"], 3);
    run(&["-F", "-s", "8192"], 3);
}
