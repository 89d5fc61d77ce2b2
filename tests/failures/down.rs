//! An owner that is down and that nothing has been asked yet: it is waited for, then the command
//! fails, and nothing else.

use std::time::{Duration, Instant};

use crate::fixture::{START_LIMIT, wait_until};
use crate::fleet::{Fleet, put, reserve, settle};
use crate::peer::Peer;

/// `--owner-wait` of the tests in which nobody comes back.
const WAIT_MS: &str = "--owner-wait=300";
const WAIT: Duration = Duration::from_millis(300);
const FAILED: &str = "INTERNAL_ERROR";

/// Commands that need a tube, or a job, of an owner.
fn commands(tube: &str, job: u64) -> Vec<String> {
    [
        "use T",
        "watch T",
        "stats-tube T",
        "pause-tube T 1",
        "peek J",
        "reserve-job J",
        "delete J",
        "kick-job J",
        "stats-job J",
        "touch J",
        "release J 0 0",
        "bury J 0",
        "list-tubes",
        "stats",
    ]
    .iter()
    .map(|line| line.replace('T', tube).replace('J', &job.to_string()))
    .collect()
}

// R3.9, C4.6
#[test]
fn a_command_for_an_owner_that_is_down_fails_after_the_wait_and_changes_nothing() {
    let fleet = Fleet::of(2, 1, &[WAIT_MS]);
    let (here, there) = (fleet.tube(0, 0), fleet.tube(1, 0));
    let mut other = fleet.peer();
    settle(&mut other, &there);
    let job = put(&mut other, b"lost");
    settle(&mut other, &here);
    put(&mut other, b"kept");
    let lines = commands(&there, job);
    let mut peers: Vec<Peer> = lines.iter().map(|_| fleet.peer()).collect();
    for peer in &mut peers {
        assert_eq!(peer.ask(&format!("use {here}")), format!("USING {here}"));
    }
    fleet.take_down(1);

    let start = Instant::now();
    for (peer, line) in peers.iter_mut().zip(&lines) {
        peer.send(format!("{line}\r\n"));
    }
    let rows = format!("stats-tube {here}");
    assert_eq!(other.row(&rows, "total-jobs"), "1");
    for (peer, line) in peers.iter_mut().zip(&lines) {
        assert_eq!(peer.line(), FAILED, "{line}");
        assert!(start.elapsed() >= WAIT, "{line}: {:?}", start.elapsed());
    }
    for (peer, line) in peers.iter_mut().zip(&lines) {
        assert_eq!(
            peer.ask("list-tube-used"),
            format!("USING {here}"),
            "{line}"
        );
        assert_eq!(peer.ask("list-tubes-watched"), "OK 14", "{line}");
        assert_eq!(peer.body(14), b"---\n- default\n", "{line}");
        put(peer, b"more");
    }
    fleet.allow();
    fleet.wait_until_whole();
    assert_eq!(other.row(&rows, "current-jobs-ready"), "15");
    assert_eq!(other.row(&rows, "total-jobs"), "15");
}

// R3.9, C4.6
#[test]
fn a_session_that_uses_and_watches_tubes_of_an_owner_that_is_down_goes_on() {
    let fleet = Fleet::of(2, 1, &[WAIT_MS]);
    let (here, there) = (fleet.tube(0, 0), fleet.tube(1, 0));
    let mut user = fleet.peer();
    settle(&mut user, &there);
    fleet.take_down(1);
    // The bodies of puts that fail are no commands.
    user.send("put 0 0 60 6\r\nquit\r\n\r\nreserve-with-timeout 0\r\n");
    user.send(format!("ignore {there}\r\nlist-tube-used\r\n"));
    assert_eq!(user.line(), FAILED, "put");
    assert_eq!(user.line(), FAILED, "reserve");
    assert_eq!(user.line(), "NOT_IGNORED");
    assert_eq!(user.line(), format!("USING {there}"));
    assert_eq!(user.ask(&format!("watch {here}")), "WATCHING 2");
    assert_eq!(user.ask("reserve-with-timeout 0"), FAILED, "one of two");
    assert_eq!(user.ask(&format!("ignore {there}")), FAILED);
    assert_eq!(user.ask(&format!("use {here}")), format!("USING {here}"));
    let job = put(&mut user, b"work");
    assert_eq!(user.ask("reserve-with-timeout 0"), FAILED, "still two");
    fleet.allow();
    fleet.wait_until_whole();
    assert_eq!(reserve(&mut user), (job, b"work".to_vec()));
}

// R3.9
#[test]
fn an_owner_that_comes_back_within_the_wait_is_waited_for() {
    let fleet = Fleet::of(2, 1, &["--owner-wait=10000"]);
    let there = fleet.tube(1, 0);
    let mut asked: Vec<(Peer, String, &str)> = Vec::new();
    let lines = [
        ("use T", "USING "),
        ("watch T", "WATCHING 2"),
        ("stats-tube T", "OK "),
        ("pause-tube T 1", "PAUSED"),
        ("list-tubes", "OK "),
        ("stats", "OK "),
        ("put 0 0 60 4\r\nwork", "INSERTED "),
    ];
    for (line, answer) in lines {
        let line = line.replace('T', &there);
        asked.push((fleet.peer(), line, answer));
    }
    let (putter, half) = (&mut asked[6].0, "put 0 0 60 4\r\nwo");
    settle(putter, &there);
    let mut sender = fleet.peer();
    settle(&mut sender, &there);
    sender.send(half);
    assert!(wait_until(START_LIMIT, || fleet.peer().stat("cmd-put") == "1"));
    fleet.take_down(1);
    for (peer, line, _) in &mut asked {
        peer.send(format!("{line}\r\n"));
    }
    sender.send("rk\r\n");
    let (first, _, _) = &mut asked[0];
    assert!(!first.has_line(Duration::from_millis(200)));
    fleet.allow();
    for (peer, line, answer) in &mut asked {
        let said = peer.line();
        assert!(said.starts_with(*answer), "{line}: {said}");
    }
    assert!(
        sender.line().starts_with("INSERTED "),
        "a body that came meanwhile"
    );
    let rows = format!("stats-tube {there}");
    assert_eq!(fleet.peer().row(&rows, "total-jobs"), "2");
}
