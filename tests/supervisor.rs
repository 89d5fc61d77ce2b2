//! The supervisor and its children as processes: how they are named, what happens when one of them
//! dies, and how all of them end.

#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/program.rs"]
mod program;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use fixture::{Listen, START_LIMIT, Server, pass, wait_until};
use program::{ours, ours_after, run, start};

/// How long a child may take to come back, or to follow its supervisor.
const LIMIT: Duration = Duration::from_secs(1);

const FLAGS: [&str; 5] = ["--sharded", "--owners", "2", "--frontends", "2"];

const TITLES: [&str; 4] = [
    "beanshard: frontend 0",
    "beanshard: frontend 1",
    "beanshard: owner 0",
    "beanshard: owner 1",
];

/// Starts `words` and waits until clients are served.
fn start_and_wait(words: &[String]) -> Server {
    let server = start(words, Listen::Tcp);
    let is_ready = || {
        server
            .output()
            .contains(" supervisor: ready address=127.0.0.1:")
    };
    assert!(wait_until(START_LIMIT, is_ready), "{}", server.output());
    server
}

fn serve() -> Server {
    start_and_wait(&ours(&FLAGS))
}

/// State and parent of a process, if there is one.
fn stat(pid: Pid) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether it runs; one that has ended and that nobody has asked for does not.
fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

fn title(pid: Pid) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = words.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(first).into_owned()
}

/// The children that run, by title.
fn children(of: Pid) -> Vec<(String, Pid)> {
    let entries = fs::read_dir("/proc").expect("processes can be listed");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut found: Vec<(String, Pid)> = pids
        .map(Pid::from_raw)
        .filter(|&pid| stat(pid).is_some_and(|(state, ppid)| state != 'Z' && ppid == of.as_raw()))
        .map(|pid| (title(pid), pid))
        .collect();
    found.sort();
    found
}

fn titles(of: Pid) -> Vec<String> {
    children(of).into_iter().map(|(title, _)| title).collect()
}

fn pids(of: Pid) -> Vec<Pid> {
    children(of).into_iter().map(|(_, pid)| pid).collect()
}

#[test]
fn each_process_is_told_by_its_name_and_has_nothing_that_it_does_not_need() {
    let server = serve();
    let comm = |pid: Pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    assert_eq!(titles(server.pid()), TITLES);
    assert_eq!(comm(server.pid()), "beanshard\n");
    let names: Vec<String> = pids(server.pid()).into_iter().map(comm).collect();
    assert_eq!(
        names,
        [
            "bean-front-0\n",
            "bean-front-1\n",
            "bean-owner-0\n",
            "bean-owner-1\n"
        ]
    );
    // The listening socket is no owner's business.
    let listening = |pid: Pid| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process");
        let own = fs::read_link(format!("/proc/{}/fd/3", server.pid())).expect("inherited");
        fds.filter(|fd| {
            let path = fd.as_ref().expect("a descriptor").path();
            fs::read_link(path).is_ok_and(|target| target == own)
        })
        .count()
    };
    let counts: Vec<usize> = pids(server.pid()).into_iter().map(listening).collect();
    assert_eq!(counts, [1, 1, 0, 0]);
    let ready = server.output();
    let ready = ready
        .lines()
        .find(|line| line.contains(": ready "))
        .expect("a line");
    assert!(ready.starts_with("beanshard: info supervisor: "), "{ready}");
    assert!(
        ready.ends_with(&format!("pid={} owners=2 frontends=2", server.pid())),
        "{ready}"
    );
}

#[test]
fn a_child_that_is_killed_is_back_at_once_as_another_process() {
    let server = serve();
    let before = children(server.pid());
    for (what, log) in [(0, "role=frontend index=0"), (3, "role=owner index=1")] {
        let (title, pid) = &before[what];
        kill(*pid, Signal::SIGKILL).expect("a process");
        let is_back = || {
            let now = children(server.pid());
            now.len() == 4 && now.iter().any(|(other, new)| other == title && new != pid)
        };
        assert!(wait_until(LIMIT, is_back), "{}", server.output());
        assert_eq!(titles(server.pid()), TITLES);
        let line = format!("warn supervisor: child ended {log} generation=");
        assert!(server.output().contains(&line), "{}", server.output());
    }
    let output = server.output();
    assert!(output.contains(" how=signal-9 jobs-lost=yes\n"), "{output}");
    assert_eq!(
        output.matches("jobs-lost").count(),
        1,
        "a frontend has none: {output}"
    );
    // The others have stayed.
    let after = children(server.pid());
    assert_eq!((&before[1], &before[2]), (&after[1], &after[2]));
}

#[test]
fn a_supervisor_asked_to_end_leaves_no_child() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut server = serve();
        let pids = pids(server.pid());
        let status = server.stop(signal).expect("it ends");
        assert_eq!(status.code(), Some(0), "{}", server.output());
        assert!(!pids.into_iter().any(is_alive));
        let output = server.output();
        let at = |text: &str| {
            output
                .find(text)
                .unwrap_or_else(|| panic!("{text}: {output}"))
        };
        let order = [
            at(": stopping\n"),
            at("child ended role=frontend"),
            at("child ended role=owner"),
            at(": stopped pid="),
        ];
        assert!(order.is_sorted(), "{output}");
        assert_eq!(output.matches(" how=exit-0\n").count(), 4, "{output}");
    }
}

#[test]
fn children_do_not_outlive_their_supervisor() {
    let mut server = serve();
    let pids = pids(server.pid());
    server.stop(Signal::SIGKILL).expect("it ends");
    let is_over = || !pids.iter().any(|&pid| is_alive(pid));
    assert!(wait_until(LIMIT, is_over));
}

#[test]
fn a_second_signal_ends_all_at_once() {
    let mut server = serve();
    let pids = pids(server.pid());
    // One that does not hear that it is to end.
    kill(pids[0], Signal::SIGSTOP).expect("a process");
    server.signal(Signal::SIGTERM).expect("a process");
    let is_stopping = || server.output().contains(": stopping\n");
    assert!(wait_until(START_LIMIT, is_stopping));
    pass(Duration::from_millis(200));
    assert!(server.is_running(), "{}", server.output());
    let status = server.stop(Signal::SIGTERM).expect("it ends");
    assert_eq!(status.code(), Some(1), "{}", server.output());
    assert!(!pids.into_iter().any(is_alive));
}

#[test]
fn signals_are_the_supervisors_to_hear() {
    let server = serve();
    let before = children(server.pid());
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGUSR1,
        Signal::SIGPIPE,
    ] {
        before
            .iter()
            .for_each(|&(_, pid)| kill(pid, signal).expect("a process"));
    }
    server.signal(Signal::SIGUSR1).expect("a process");
    let is_draining = || server.output().contains(": draining\n");
    assert!(wait_until(START_LIMIT, is_draining));
    server.signal(Signal::SIGUSR1).expect("a process");
    pass(Duration::from_millis(100));
    assert_eq!(children(server.pid()), before);
    assert_eq!(server.output().matches("supervisor: draining\n").count(), 1);
}

/// The service manager hears of the supervisor, and of nobody else.
#[test]
fn the_service_manager_is_told_when_all_serve() {
    let dir = tempfile::tempdir().expect("a folder can be made");
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager
        .set_read_timeout(Some(START_LIMIT))
        .expect("a timeout");
    let shell = format!("export NOTIFY_SOCKET={}", path.display());
    let mut server = start_and_wait(&ours_after(&shell, &FLAGS));
    let hear = || {
        let mut text = [0; 64];
        let len = manager.recv(&mut text).expect("it is told");
        String::from_utf8_lossy(&text[..len]).into_owned()
    };
    assert_eq!(hear(), "READY=1\n");
    for pid in pids(server.pid()) {
        let variables = fs::read(format!("/proc/{pid}/environ")).expect("a process");
        let variables = String::from_utf8_lossy(&variables);
        assert!(variables.contains("PATH=") && !variables.contains("NOTIFY_SOCKET"));
    }
    server.stop(Signal::SIGTERM).expect("it ends");
    assert_eq!(hear(), "STOPPING=1\n");
}

#[test]
fn a_supervisor_with_nothing_to_do_sleeps() {
    let server = serve();
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid()));
        let status = status.expect("a process");
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let count: u64 = count.expect("a count").trim().parse().expect("a number");
        count
    };
    let before = switches();
    pass(Duration::from_secs(2));
    // One question after health may fall into it, and each of four answers wakes it.
    assert!(switches() - before <= 6);
}

/// No descriptor is left for a control socket.
#[test]
fn a_start_that_cannot_succeed_ends_with_status_1() {
    let words = ours_after(
        "ulimit -n 10",
        &["--sharded", "--owners=1", "-l127.0.0.1", "-p0"],
    );
    let ended = run(&words);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(
        ended
            .stderr
            .ends_with(": owner/0: does not start, tried 5 times\n"),
        "{ended:?}"
    );
    assert_eq!(
        ended
            .stderr
            .matches("cannot start child role=owner index=0")
            .count(),
        5
    );
}

#[test]
fn a_child_of_nobody_is_refused() {
    for shell in ["exec 3<&-", "exec 3</dev/null"] {
        let ended = run(&ours_after(shell, &["child"]));
        assert_eq!(ended.status, Some(5), "{ended:?}");
        assert!(
            ended.stderr.contains(": descriptor 3 is no control socket"),
            "{ended:?}"
        );
    }
}
