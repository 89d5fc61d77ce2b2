//! A process that stands still for a while is not one that has died: nothing that it has is taken
//! from it, others go on, and memory does not grow.

use std::time::Duration;

use crate::fixture::{START_LIMIT, pass, wait_until};
use crate::fleet::{Fleet, put, reserve, reserved, settle};
use crate::peer::Peer;
use crate::process::{go_on, has_unread, resident_kib, stop};

// A3.3, A3.5
#[test]
fn a_frontend_that_stands_still_keeps_its_jobs_until_their_time_is_over() {
    let fleet = Fleet::of(2, 2, &[]);
    let tube = fleet.tube(1, 0);
    let (mut slow, mut other) = (fleet.peer_at(0), fleet.peer_at(1));
    settle(&mut slow, &tube);
    settle(&mut other, &tube);
    let long = put(&mut slow, b"long");
    assert_eq!(reserve(&mut slow).0, long);
    assert!(slow.ask("put 0 0 2 5\r\nshort").starts_with("INSERTED "));
    let (short, _) = reserve(&mut slow);
    let frontend = fleet.frontend(0);
    stop(frontend);
    slow.send(format!("delete {long}\r\n"));
    slow.send(format!("delete {short}\r\n"));
    // Longer than anything that would be done about a frontend that has died.
    assert_eq!(other.ask("reserve-with-timeout 1"), "TIMED_OUT");
    // The owner counts its time to run, and then the short one comes to somebody else.
    assert_eq!(reserve(&mut other), (short, b"short".to_vec()));
    let rows = format!("stats-job {long}");
    assert_eq!(other.row(&rows, "state"), "reserved");
    assert_eq!(other.row(&rows, "timeouts"), "0");
    put(&mut other, b"work");
    go_on(frontend);
    assert_eq!(slow.line(), "DELETED");
    assert_eq!(slow.line(), "NOT_FOUND", "it is another's by now");
    assert_eq!(reserve(&mut slow).1, b"work");
}

// A3.3, C4.6
#[test]
fn an_owner_that_stands_still_keeps_its_own_clients_waiting_and_nobody_else() {
    let fleet = Fleet::of(2, 2, &["--owner-wait=100"]);
    let (here, there) = (fleet.tube(0, 0), fleet.tube(1, 0));
    let mut putters: Vec<Peer> = (0..20).map(|_| fleet.peer()).collect();
    putters.iter_mut().for_each(|peer| settle(peer, &there));
    let mut holder = fleet.peer();
    settle(&mut holder, &there);
    let held = put(&mut holder, b"held");
    reserve(&mut holder);
    let mut other = fleet.peer();
    settle(&mut other, &here);
    let mut asking = [fleet.peer(), fleet.peer()];
    let owner = fleet.owner(1);
    stop(owner);
    for (number, peer) in putters.iter_mut().enumerate() {
        peer.send(format!("put {number} 0 60 2\r\n{number:02}\r\n"));
    }
    asking[0].send("stats\r\n");
    asking[1].send("list-tubes\r\n");
    for _ in 0..100 {
        let id = put(&mut other, b"work");
        assert_eq!(reserve(&mut other).0, id);
        assert_eq!(other.ask(&format!("delete {id}")), "DELETED");
    }
    // Never a part of the answer.
    assert!(
        asking
            .iter_mut()
            .all(|peer| peer.line() == "INTERNAL_ERROR")
    );
    assert!(!putters[0].has_line(Duration::ZERO), "it is not down");
    go_on(owner);
    for peer in &mut putters {
        assert!(peer.line().starts_with("INSERTED "));
    }
    assert_eq!(holder.ask(&format!("delete {held}")), "DELETED");
    for number in 0..20 {
        let body = format!("{number:02}").into_bytes();
        assert_eq!(reserve(&mut holder).1, body, "each once and in order");
    }
    assert_eq!(holder.ask("reserve-with-timeout 0"), "TIMED_OUT");
}

/// Bytes of a job of which a few fill a link.
const LARGE: usize = 100_000;
/// Jobs of that size that a link that is not read takes: what may wait for it, and what the kernel
/// has. The rest goes to others.
const LINK_TAKES: usize = 30;

// A3.3, R3.6
#[test]
fn a_frontend_that_stands_still_is_handed_no_more_jobs_than_its_link_takes() {
    const COUNT: usize = 100;
    let fleet = Fleet::of(1, 2, &["-z", "200000"]);
    let mut slow = fleet.peers_at(0, COUNT);
    let mut quick = fleet.peers_at(1, COUNT);
    // The slow ones have waited longer.
    for (at, peer) in slow.iter_mut().chain(&mut quick).enumerate() {
        peer.send("reserve\r\n");
        if at + 1 == COUNT || at + 1 == 2 * COUNT {
            let waiting = (at + 1).to_string();
            let is_waiting = || fleet.peer().stat("current-waiting") == waiting;
            assert!(wait_until(START_LIMIT, is_waiting));
        }
    }
    let mut producer = fleet.peer_at(1);
    let (frontend, owner) = (fleet.frontend(0), fleet.owner(0));
    let before = resident_kib(owner);
    stop(frontend);
    let body = vec![b'x'; LARGE];
    for _ in 0..COUNT + LINK_TAKES {
        put(&mut producer, &body);
    }
    for peer in &mut quick {
        let answer = peer.line();
        assert_eq!(reserved(peer, &answer).1.len(), LARGE);
    }
    let job_kib = LARGE as u64 / 1_000 * (COUNT + LINK_TAKES) as u64;
    let grown = resident_kib(owner).saturating_sub(before);
    assert!(grown < 2 * job_kib, "{grown} KiB");
    let number = |peer: &mut Peer, key| -> usize {
        let value = peer.row("stats-tube default", key);
        value.parse().expect("a number")
    };
    let taken = COUNT - number(&mut producer, "current-waiting");
    eprintln!("a link that is not read takes {taken} jobs of {LARGE} bytes");
    assert!((1..=LINK_TAKES).contains(&taken), "{taken}");
    assert_eq!(
        number(&mut producer, "current-jobs-reserved"),
        COUNT + taken
    );
    assert_eq!(
        number(&mut producer, "current-jobs-ready"),
        LINK_TAKES - taken
    );
    go_on(frontend);
    // Those who were passed over are given what there is, and each job once.
    for _ in LINK_TAKES..COUNT {
        put(&mut producer, &body);
    }
    for peer in &mut slow {
        let answer = peer.line();
        assert_eq!(reserved(peer, &answer).1.len(), LARGE);
    }
    assert_eq!(
        producer.row("stats-tube default", "current-jobs-ready"),
        "0"
    );
    assert_eq!(
        producer.row("stats-tube default", "current-jobs-reserved"),
        "200"
    );
}

// A3.3, R3.6
#[test]
fn an_owner_does_not_grow_for_a_frontend_that_does_not_read() {
    const CLIENTS: usize = 100;
    let fleet = Fleet::of(1, 2, &["-z", "1000000"]);
    let mut producer = fleet.peer_at(1);
    producer.send("use far\r\n");
    assert_eq!(producer.line(), "USING far");
    let id = put(&mut producer, &vec![b'x'; 1_000_000]);
    let mut slow = fleet.peers_at(0, CLIENTS);
    let (frontend, owner) = (fleet.frontend(0), fleet.owner(0));
    let before = resident_kib(owner);
    stop(owner);
    // Much in text, much in bodies, and all of it asked for before the frontend stands still.
    for (at, peer) in slow.iter_mut().enumerate() {
        let line = if at % 2 == 0 { "peek" } else { "stats-job" };
        peer.send(format!("{line} {id}\r\n").repeat(500));
    }
    assert!(wait_until(START_LIMIT, || has_unread(owner)));
    pass(Duration::from_millis(200));
    stop(frontend);
    go_on(owner);
    for _ in 0..200 {
        let job = put(&mut producer, b"work");
        assert_eq!(producer.ask(&format!("delete {job}")), "DELETED");
    }
    let grown = resident_kib(owner).saturating_sub(before);
    eprintln!("an owner grew by {grown} KiB for a frontend that stood still");
    assert!(grown < 8_000, "{grown} KiB");
    go_on(frontend);
    for (at, peer) in slow.iter_mut().enumerate().skip(1).step_by(2) {
        let answer = peer.line();
        assert!(answer.starts_with("OK "), "{at}: {answer}");
    }
}
