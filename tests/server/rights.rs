//! Whose rights the server has, and how many descriptors: the user of `-u`, limits, and what
//! happens at them.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::unistd::Uid;

use crate::fixture::{Listen, wait_until};
use crate::measure::{cpu_during, read, status};
use crate::peer::Peer;
use crate::program::{can_run, ours, ours_after, skip, start, words};

/// A number of `nobody`, or several, as `id` tells them.
fn id_of_nobody(flag: &str) -> Option<String> {
    let output = Command::new("id").args([flag, "nobody"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

// L5.2, Q22
#[test]
fn after_a_change_of_user_nothing_of_root_is_left() {
    let ids = ["-u", "-g", "-G"].map(id_of_nobody);
    let (true, [Some(user), Some(group), Some(groups)]) = (Uid::effective().is_root(), ids) else {
        return skip("only root can become nobody");
    };
    // Groups that would stay if nobody took care.
    let head = ["setpriv", "--groups=0,1,2"];
    let words = if can_run(&[&head[..], &["true"]].concat()) {
        words(&head, &ours(&["-u", "nobody"]))
    } else {
        ours(&["-u", "nobody"])
    };
    let server = start(&words, Listen::Tcp);
    assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
    let four = |id: &str| [id; 4].join("\t");
    assert_eq!(status(&server, "Uid"), four(&user));
    assert_eq!(status(&server, "Gid"), four(&group));
    assert_eq!(status(&server, "Groups"), groups);
}

/// The limits of open files: what holds, and up to where that can be raised.
fn file_limits(limits: &str) -> (u64, u64) {
    let row = limits
        .lines()
        .find_map(|row| row.strip_prefix("Max open files"));
    let mut numbers = row.expect("a row").split_whitespace().map(str::parse);
    let mut next = || numbers.next().expect("a number").expect("a number");
    (next(), next())
}

// L1.24
#[test]
fn the_limit_of_descriptors_is_raised_as_far_as_it_goes() {
    let server = start(&ours_after("ulimit -S -n 64", &[]), Listen::Tcp);
    assert_eq!(Peer::of(&server).ask("list-tube-used"), "USING default");
    let (soft, hard) = file_limits(&read(&server, "limits"));
    assert!(hard > 64, "a test is not possible with {hard}");
    assert_eq!(soft, hard);
}

// L1.24, Q13
#[test]
fn clients_beyond_the_limit_wait_and_cost_nothing() {
    let server = start(&ours_after("ulimit -n 24", &[]), Listen::Tcp);
    let mut first = Peer::of(&server);
    assert_eq!(first.ask("list-tube-used"), "USING default");
    let mut served: Vec<Peer> = Vec::new();
    let mut waiting: Vec<Peer> = (0..24).map(|_| Peer::of(&server)).collect();
    for peer in &mut waiting {
        peer.send("list-tube-used\r\n");
    }
    // Wait for the first who is not served; those before it are.
    while waiting[0].has_line(Duration::from_millis(300)) {
        served.push(waiting.remove(0));
    }
    assert!(served.len() >= 4 && waiting.len() > 8, "{}", served.len());

    let told = || {
        server
            .output()
            .matches("new connections have to wait")
            .count()
    };
    assert_eq!(told(), 1);
    let used = cpu_during(&server, Duration::from_millis(1_100));
    assert!(used < Duration::from_millis(60), "{used:?}");
    assert_eq!(told(), 1, "it is said once, not in each of the two pauses");
    assert_eq!(first.ask("list-tube-used"), "USING default");

    // A place that becomes free is taken long before the pause is over. The first may be lucky:
    // nobody knows how old the pause is that it ends.
    let mut quickest = Duration::MAX;
    for round in 0..4 {
        served.remove(0);
        let start = Instant::now();
        let mut next = waiting.remove(0);
        assert_eq!(next.line(), "USING default");
        if round > 0 {
            quickest = quickest.min(start.elapsed());
        }
        served.push(next);
    }
    assert!(quickest < Duration::from_millis(250), "{quickest:?}");
    assert_eq!(told(), 1, "nor for each place that was free for a moment");

    drop(served);
    let all = || {
        waiting
            .iter_mut()
            .all(|peer| peer.has_line(Duration::from_secs(5)))
    };
    assert!(wait_until(Duration::ZERO, all), "everybody's turn comes");
}
