//! Sessions that are bound to an owner, by an ask under way or by what they hold, when it dies or
//! the link to it is cut: their connections are closed. Those of others stay.

use std::time::{Duration, Instant};

use crate::calm::in_calm;
use crate::fixture::{START_LIMIT, wait_until};
use crate::fleet::{Fleet, put, reserve, reserved, settle};
use crate::peer::Peer;
use crate::process::{crash, cut, go_on, has_unread, links, stop};

/// Until when an owner or a link that is gone serves again.
const BACK_LIMIT: Duration = Duration::from_millis(300);

/// How a link with puts under way is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// The owner dies before it has read them.
    Crash,
    /// The owner lives, and may read them before it sees the end.
    Cut,
}

/// Has clients put through a link that breaks, and says how many of the jobs are there later.
fn break_with_puts(how: Break) -> usize {
    const COUNT: usize = 50;
    let fleet = Fleet::of(2, 1, &[]);
    let there = fleet.tube(1, 0);
    let mut putters: Vec<Peer> = (0..COUNT).map(|_| fleet.peer()).collect();
    putters.iter_mut().for_each(|peer| settle(peer, &there));
    let owner = fleet.owner(1);
    stop(owner);
    for (number, peer) in putters.iter_mut().enumerate() {
        peer.send(format!("put 0 0 60 2\r\n{number:02}\r\n"));
    }
    // The frontend has read the put of each, and sent it.
    let mut other = fleet.peer();
    settle(&mut other, &fleet.tube(0, 0));
    put(&mut other, b"mark");
    assert!(wait_until(START_LIMIT, || has_unread(owner)));
    match how {
        Break::Crash => crash(owner),
        Break::Cut => {
            cut(&links(owner)[0]);
            go_on(owner);
        }
    }
    for peer in &mut putters {
        assert!(peer.is_closed(), "nobody knows what became of it: {how:?}");
    }
    fleet.wait_until_whole();
    let mut reader = fleet.peer();
    settle(&mut reader, &there);
    let mut seen = Vec::new();
    while reader.ask("peek-ready").starts_with("FOUND ") {
        reader.body(2);
        let (_, body) = reserve(&mut reader);
        assert!(!seen.contains(&body), "{body:?} was put twice");
        seen.push(body);
    }
    seen.len()
}

// A3.6, R3.9
#[test]
fn a_put_whose_answer_is_lost_is_not_made_again() {
    assert_eq!(break_with_puts(Break::Crash), 0, "it had read none");
    assert!(break_with_puts(Break::Cut) <= 50);
}

/// What binds a session to owner 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bond {
    /// It holds a job there.
    Reservation,
    /// It waits for a job there.
    Wait,
    /// It waits for a job there and elsewhere.
    WideWait,
    /// It has an offer from there, and none yet from elsewhere.
    Offer,
    /// It has an offer from elsewhere, and none yet from there.
    OfferElsewhere,
}

/// A session that holds a job of owner 0, and is bound to owner 1.
fn bind(fleet: &Fleet, bond: Bond) -> Peer {
    let (here, there) = (fleet.tube(0, 0), fleet.tube(1, 0));
    let mut peer = fleet.peer();
    settle(&mut peer, &here);
    put(&mut peer, b"held");
    reserve(&mut peer);
    settle(&mut peer, &there);
    peer.ask(&format!("ignore {here}"));
    let is_wide = !matches!(bond, Bond::Reservation | Bond::Wait);
    if is_wide {
        let elsewhere = fleet.tube(0, 1);
        peer.ask(&format!("watch {elsewhere}"));
        peer.ask(&format!("use {elsewhere}"));
    }
    match bond {
        Bond::Reservation => {
            put(&mut peer, b"gone");
            reserve(&mut peer);
        }
        Bond::Wait | Bond::WideWait => {
            peer.send("reserve\r\n");
            let mut other = fleet.peer();
            let is_waiting = || other.stat("current-waiting") == "1";
            assert!(wait_until(START_LIMIT, is_waiting), "{bond:?}");
        }
        Bond::Offer => {
            peer.ask(&format!("use {there}"));
            put(&mut peer, b"on offer");
            ask_with_stopped(fleet, 0, &mut peer);
        }
        Bond::OfferElsewhere => {
            put(&mut peer, b"on offer");
            ask_with_stopped(fleet, 1, &mut peer);
        }
    }
    peer
}

/// Has the client reserve while an owner stands still.
fn ask_with_stopped(fleet: &Fleet, owner: usize, peer: &mut Peer) {
    let owner = fleet.owner(owner);
    stop(owner);
    peer.send("reserve\r\n");
    assert!(wait_until(START_LIMIT, || has_unread(owner)));
}

// R3.7, R3.14, A3.4
#[test]
fn a_session_that_is_bound_to_an_owner_that_dies_is_closed_and_its_other_jobs_return() {
    let bonds = [
        Bond::Reservation,
        Bond::Wait,
        Bond::WideWait,
        Bond::Offer,
        Bond::OfferElsewhere,
    ];
    for bond in bonds {
        let fleet = Fleet::of(2, 1, &[]);
        let mut bound = bind(&fleet, bond);
        crash(fleet.owner(1));
        // Who stood still has to hear that the session is gone.
        go_on(fleet.owner(0));
        assert!(bound.is_closed(), "{bond:?}");
        let mut other = fleet.peer();
        settle(&mut other, &fleet.tube(0, 0));
        assert_eq!(reserve(&mut other).1, b"held", "{bond:?}");
        settle(&mut other, &fleet.tube(0, 1));
        if bond == Bond::OfferElsewhere {
            assert_eq!(reserve(&mut other).1, b"on offer");
        }
        assert_eq!(
            other.ask("list-tube-used"),
            format!("USING {}", fleet.tube(0, 1))
        );
    }
}

// R3.14
#[test]
fn what_a_session_only_uses_and_watches_is_known_to_the_next_owner_and_the_jobs_are_gone() {
    let fleet = Fleet::of(2, 2, &[]);
    let there = fleet.tube(1, 0);
    let mut sessions = [fleet.peer_at(0), fleet.peer_at(1)];
    sessions.iter_mut().for_each(|peer| settle(peer, &there));
    let [one, two] = &mut sessions;
    let lost = put(one, b"lost");
    crash(fleet.owner(1));
    fleet.wait_until_whole();
    let rows = format!("stats-tube {there}");
    let output = fleet.server.output();
    assert!(output.contains(" how=signal-9 jobs-lost=yes\n"), "{output}");
    let mut fresh = fleet.peer();
    assert_eq!(fresh.row(&rows, "current-using"), "2");
    assert_eq!(fresh.row(&rows, "current-watching"), "2");
    assert_eq!(fresh.row(&rows, "current-jobs-ready"), "0");
    two.send("reserve\r\n");
    assert!(wait_until(START_LIMIT, || fresh.stat("current-waiting") == "1"));
    put(one, b"work");
    let answer = two.line();
    let (id, body) = reserved(two, &answer);
    assert_eq!(body, b"work");
    assert_ne!(id, lost, "who still has the id would meet another job");
}

/// How long it takes until a put into a tube of an owner is answered, after `harm` was done.
fn time_until_served(user: &mut Peer, harm: impl FnOnce()) -> Duration {
    let start = Instant::now();
    harm();
    assert!(user.put(b"next").starts_with("INSERTED "));
    start.elapsed()
}

// R3.7, R3.14
#[test]
fn a_link_that_is_cut_concerns_its_sessions_alone_and_is_made_anew() {
    let round = || {
        let fleet = Fleet::of(2, 1, &[]);
        let (here, there) = (fleet.tube(0, 0), fleet.tube(1, 0));
        let mut peers: Vec<Peer> = (0..4).map(|_| fleet.peer()).collect();
        let [holder, waiter, user, stranger] = &mut peers[..] else {
            unreachable!("four of them");
        };
        settle(holder, &there);
        let job = put(holder, b"work");
        reserve(holder);
        settle(waiter, &fleet.tube(1, 1));
        waiter.send("reserve\r\n");
        settle(user, &there);
        settle(stranger, &here);
        let id = put(stranger, b"mine");
        reserve(stranger);
        assert!(wait_until(START_LIMIT, || fleet
            .peer()
            .stat("current-waiting")
            == "1"));
        let link = links(fleet.owner(1)).swap_remove(0);
        let time = time_until_served(user, || cut(&link));
        assert!(holder.is_closed() && waiter.is_closed());
        assert_eq!(stranger.ask(&format!("delete {id}")), "DELETED");
        assert_eq!(reserve(user), (job, b"work".to_vec()), "it lives");
        eprintln!("a link that was cut serves again after {time:?}");
        if time <= BACK_LIMIT {
            Ok(())
        } else {
            Err(time)
        }
    };
    in_calm(round).expect("the link is back in time");
}

// R3.14
#[test]
fn a_cut_link_is_no_affair_of_other_frontends() {
    let fleet = Fleet::of(2, 2, &[]);
    let there = fleet.tube(1, 0);
    let mut holders = [fleet.peer_at(0), fleet.peer_at(1)];
    for holder in &mut holders {
        settle(holder, &there);
        put(holder, b"work");
        reserve(holder);
    }
    cut(&links(fleet.owner(1))[0]);
    let mut fresh = fleet.peer();
    let rows = format!("stats-tube {there}");
    let is_released = || fresh.row(&rows, "current-jobs-ready") == "1";
    assert!(wait_until(START_LIMIT, is_released));
    assert_eq!(fresh.row(&rows, "current-jobs-reserved"), "1");
    let mut answers: Vec<bool> = holders
        .iter_mut()
        .map(|holder| {
            holder.send("list-tube-used\r\n");
            holder.has_line(START_LIMIT)
        })
        .collect();
    answers.sort_unstable();
    assert_eq!(answers, [false, true]);
}
