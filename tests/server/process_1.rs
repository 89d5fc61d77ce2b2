//! The server as process 1, as containers have it: there the kernel drops every signal that is left
//! to its default action.

use std::fs;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fixture::{Listen, START_LIMIT, Server, wait_until};
use crate::peer::Peer;
use crate::program::{PROGRAM, can_run, skip, start, words};
use crate::signals::END_LIMIT;

// L5.6, L5.4: in a container the original does not end, or with status 143.
#[test]
fn process_1_of_a_container_ends_when_asked_to() {
    let head = ["unshare", "-rfp", "--kill-child"];
    if !can_run(&words(&head, &["true"])) {
        return skip("no process namespace for us");
    }
    let script = "test $$ = 1; export LISTEN_PID=$$; exec \"$@\"";
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let words = words(&head, &["sh", "-ec", script, "sh", PROGRAM]);
        let mut server = start(&words, Listen::Tcp);
        let mut peer = Peer::of(&server);
        assert_eq!(peer.stat("pid"), "1");
        let before = Instant::now();
        kill(only_child(&server), signal).expect("a process");
        let mut status = None;
        wait_until(START_LIMIT, || {
            status = server.ended();
            status.is_some()
        });
        assert_eq!(status.expect("it ends").code(), Some(0), "{signal}");
        assert!(before.elapsed() < END_LIMIT);
        assert!(peer.is_closed());
    }
}

/// The process that what was started has started.
fn only_child(server: &Server) -> Pid {
    let parent = server.pid().to_string();
    let is_child = |pid: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        let is_parent = |row: &str| row.strip_prefix("PPid:").map(str::trim) == Some(&*parent);
        status.is_ok_and(|status| status.lines().any(is_parent))
    };
    let processes = fs::read_dir("/proc").expect("Linux");
    let child = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(is_child);
    Pid::from_raw(child.expect("a child"))
}
