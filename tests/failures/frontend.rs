//! A frontend dies: its clients see that, owners release all that they held at once, and whoever
//! comes is served.

use std::time::{Duration, Instant};

use crate::calm::in_calm;
use crate::fixture::{Listen, START_LIMIT, wait_until};
use crate::fleet::{Fleet, put, reserved, settle};
use crate::peer::Peer;
use crate::process::{crash, stop};

/// Within what time everything that a frontend's clients held is free for others.
const CLEAN_LIMIT: Duration = Duration::from_secs(1);

const JOBS: usize = 10_000;

/// Puts many jobs into a tube of each of two owners.
fn fill(fleet: &Fleet, tubes: &[String; 2]) {
    let mut peer = fleet.peer();
    for tube in tubes {
        settle(&mut peer, tube);
        for _ in 0..JOBS / 2 / 100 {
            peer.send("put 0 0 120 4\r\nwork\r\n".repeat(100));
            for _ in 0..100 {
                assert!(peer.line().starts_with("INSERTED "));
            }
        }
    }
}

/// Has each of the clients reserve as many jobs, one half at each owner.
fn hold(peers: &mut [Peer], tubes: &[String; 2]) {
    let each = JOBS / 2 / peers.len();
    for tube in tubes {
        for peer in &mut *peers {
            settle(peer, tube);
            tubes
                .iter()
                .filter(|other| *other != tube)
                .for_each(|other| {
                    peer.ask(&format!("ignore {other}"));
                });
            peer.send("reserve\r\n".repeat(each));
        }
        for peer in &mut *peers {
            for _ in 0..each {
                let answer = peer.line();
                reserved(peer, &answer);
            }
        }
    }
}

/// Kills the frontend of so many clients that hold [`JOBS`] jobs, and says how long it took until
/// all of these were ready.
fn time_to_clean(clients: usize) -> Duration {
    let fleet = Fleet::of(2, 2, &[]);
    let tubes = [fleet.tube(0, 0), fleet.tube(1, 0)];
    fill(&fleet, &tubes);
    let mut held = fleet.peers_at(0, clients);
    hold(&mut held, &tubes);
    let mut watcher = fleet.peer_at(1);
    assert_eq!(watcher.stat("current-jobs-reserved"), JOBS.to_string());
    let pid = fleet.frontend(0);
    let rows = tubes.map(|tube| format!("stats-tube {tube}"));
    let start = Instant::now();
    crash(pid);
    let half = (JOBS / 2).to_string();
    for row in &rows {
        while watcher.row(row, "current-jobs-ready") != half {
            assert!(start.elapsed() < START_LIMIT, "all are released");
        }
        assert_eq!(watcher.row(row, "current-jobs-reserved"), "0");
    }
    let time = start.elapsed();
    // The address is served all the time.
    let mut fresh = fleet.peer();
    assert_eq!(fresh.ask("list-tube-used"), "USING default");
    assert!(held.iter_mut().all(Peer::is_closed));
    fleet.wait_until_whole();
    assert_eq!(fresh.stat("current-jobs-ready"), JOBS.to_string());
    eprintln!("{JOBS} jobs of {clients} clients of a frontend that died are ready after {time:?}");
    time
}

fn assert_clean_in_time(clients: usize) {
    let round = || {
        Some(time_to_clean(clients))
            .filter(|time| *time <= CLEAN_LIMIT)
            .ok_or(())
    };
    in_calm(round).expect("all is released in time");
}

// A3.5
#[test]
fn what_few_clients_of_a_frontend_held_is_ready_again_when_it_dies() {
    assert_clean_in_time(10);
}

// A3.5
#[test]
fn what_many_clients_of_a_frontend_held_is_ready_again_when_it_dies() {
    assert_clean_in_time(500);
}

// A3.5: both frontends stand still, then die, and connections wait for who comes after them.
#[test]
fn connections_that_are_not_accepted_yet_outlive_a_frontend() {
    for listen in [Listen::Tcp, Listen::Printed] {
        let more: &[&str] = match listen {
            Listen::Printed => &["-V", "-l", "127.0.0.1", "-p", "0"],
            Listen::Tcp
            | Listen::Unix
            | Listen::UnixPath
            | Listen::UnixPathUnasked
            | Listen::Port => &[],
        };
        let fleet = Fleet::start(2, 2, more, listen);
        let frontends = [fleet.frontend(0), fleet.frontend(1)];
        frontends.into_iter().for_each(stop);
        let mut peers: Vec<Peer> = (0..50).map(|_| fleet.peer()).collect();
        for peer in &mut peers {
            peer.send("put 0 0 60 4\r\nwork\r\n");
        }
        frontends.into_iter().for_each(crash);
        for peer in &mut peers {
            assert!(peer.line().starts_with("INSERTED "), "{listen:?}");
        }
        assert_eq!(peers[0].stat("current-jobs-ready"), "50");
    }
}

// A3.5, R3.7: a put of which the client does not know is a put or none, and is not made again.
#[test]
fn clients_of_other_frontends_notice_nothing() {
    let fleet = Fleet::of(2, 2, &[]);
    let tube = fleet.tube(1, 0);
    let (mut own, mut other) = (fleet.peer_at(0), fleet.peer_at(1));
    settle(&mut own, &tube);
    settle(&mut other, &tube);
    put(&mut other, b"held");
    other.send("reserve\r\n");
    let answer = other.line();
    let (id, _) = reserved(&mut other, &answer);
    own.send("reserve\r\n");
    assert!(wait_until(START_LIMIT, || fleet
        .peer()
        .stat("current-waiting")
        == "1"));
    crash(fleet.frontend(0));
    assert!(own.is_closed());
    // Nobody waits any more who could be given it.
    let next = put(&mut other, b"next");
    other.send("reserve\r\n");
    let answer = other.line();
    assert_eq!(reserved(&mut other, &answer), (next, b"next".to_vec()));
    assert_eq!(other.ask(&format!("delete {id}")), "DELETED");
}
