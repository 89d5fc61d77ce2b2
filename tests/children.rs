//! Children, as `sys::spawn` makes them: shells that tell what they were given, and this program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process;

use nix::fcntl::{FcntlArg, fcntl};

use beanshard::base::time::{NANOS_PER_SEC, Secs};
use beanshard::sys::clock::monotonic;
use beanshard::sys::poller::{Interest, Poller};
use beanshard::sys::signal::Signals;
use beanshard::sys::spawn::{Child, End, Program, SpawnError, take_control_socket};

/// Starts a shell with a script; also our end of its control socket.
fn shell(script: &str) -> (Child, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    let program = Program::at("/bin/sh".into());
    let arguments = ["-c", script].map(OsString::from);
    let title = OsStr::new("beanshard: owner 2");
    let child = program.spawn(title, &arguments, far.as_fd()).unwrap();
    (child, near)
}

/// What a script writes to its control socket until that is closed by its end.
fn said(script: &str) -> String {
    let (mut child, mut near) = shell(script);
    let mut text = String::new();
    near.read_to_string(&mut text).unwrap();
    assert_eq!(end_of(&mut child), End::Exited(0), "{script}");
    text
}

/// Waits for the end with the signal that tells of it.
fn end_of(child: &mut Child) -> End {
    let mut signals = Signals::with_children().unwrap();
    let mut poller = Poller::new().unwrap();
    poller.watch(signals.as_fd(), 0, Interest::READ).unwrap();
    let give_up = monotonic().after(Secs(30));
    while monotonic() < give_up {
        if let Some(end) = child.ended().unwrap() {
            return end;
        }
        // A wait may end without a result when a signal comes.
        poller
            .wait(Some(30 * NANOS_PER_SEC), &mut Vec::new())
            .unwrap();
        signals.drain();
    }
    panic!("the child does not end");
}

#[test]
fn the_end_of_a_child_is_told_and_its_socket_ends() {
    assert_eq!(end_of(&mut shell("exit 7").0), End::Exited(7));
    assert_eq!(end_of(&mut shell("kill -9 $$").0), End::Killed(9));
    let (mut child, mut near) = shell("read line <&3; exit 1");
    assert_eq!(child.ended().unwrap(), None);
    assert_ne!(child.pid(), process::id());
    child.kill().unwrap();
    assert_eq!(near.read(&mut [0]).unwrap(), 0);
    assert_eq!(end_of(&mut child), End::Killed(9));
    assert_eq!(child.ended().unwrap(), Some(End::Killed(9)));
    child.terminate().unwrap();
}

#[test]
fn a_child_is_asked_to_end() {
    let (mut child, mut near) = shell("trap 'exit 5' TERM; echo ready >&3; read line <&3");
    near.read_exact(&mut [0; 6]).unwrap();
    child.terminate().unwrap();
    assert_eq!(end_of(&mut child), End::Exited(5));
    assert_eq!(End::Exited(5).to_string(), "exit-5");
    assert_eq!(End::Killed(9).to_string(), "signal-9");
}

/// A child whose supervisor goes sees the end of its socket.
#[test]
fn the_end_of_the_supervisor_is_the_end_of_the_socket() {
    let (mut child, near) = shell("cat <&3; exit 3");
    drop(near);
    assert_eq!(end_of(&mut child), End::Exited(3));
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_has_the_streams_and_its_socket_alone() {
    // One that somebody has left open for programs to come, with a number that no shell uses.
    let (near, _far) = UnixStream::pair().unwrap();
    let raw = fcntl(&near, FcntlArg::F_DUPFD(200)).unwrap();
    // SAFETY: it was made just now, for us alone.
    let open = unsafe { OwnedFd::from_raw_fd(raw) };
    assert_eq!(fcntl(&open, FcntlArg::F_GETFD).unwrap(), 0);
    // The shell lists its own descriptors, without starting a program that has more.
    // What it opens to do so is closed when the list is read.
    let listed = said("for f in /proc/$$/fd/*; do [ -e $f ] && echo ${f##*/}; done >&3; true");
    let mut numbers: Vec<i32> = listed.lines().map(|line| line.parse().unwrap()).collect();
    // A shell keeps copies of what it redirects at 10 and a little above.
    numbers.retain(|number| !(10..20).contains(number));
    assert_eq!(numbers, [0, 1, 2, 3]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_has_the_signals_of_a_fresh_program() {
    use nix::sys::signal::{SigHandler, SigSet, Signal, signal};

    let _signals = Signals::new().unwrap();
    // SAFETY: ignoring a signal installs no code.
    let before = unsafe { signal(Signal::SIGWINCH, SigHandler::SigIgn) }.unwrap();
    SigSet::from(Signal::SIGUSR1).thread_block().unwrap();
    let status = said(
        "while read k v; do case $k in Sig[BIC]*) echo $k $v;; esac; done \
                       </proc/$$/status >&3",
    );
    SigSet::from(Signal::SIGUSR1).thread_unblock().unwrap();
    // SAFETY: what was there before is put back.
    unsafe { signal(Signal::SIGWINCH, before) }.unwrap();
    // Signals 32 and 33 are the C library's own, and it lets nobody change them.
    let exempt = 1 << (libc::SIGHUP - 1) | 0b11 << 31;
    for name in ["SigBlk:", "SigIgn:"] {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let mask = u64::from_str_radix(line.split(' ').nth(1).unwrap(), 16).unwrap();
        assert_eq!(mask & !exempt, 0, "{status}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_is_shown_under_its_title() {
    let shown = said("cat /proc/$$/cmdline >&3");
    assert!(shown.starts_with("beanshard: owner 2\0-c\0"), "{shown:?}");
}

#[test]
fn what_cannot_be_started_is_no_child() {
    let (near, far) = UnixStream::pair().unwrap();
    let program = Program::at("/no/such/file".into());
    let error = program
        .spawn(OsStr::new("x"), &[], far.as_fd())
        .unwrap_err();
    assert!(matches!(error, SpawnError::Start { .. }), "{error:?}");
    drop(far);
    assert_eq!((&near).read(&mut [0]).unwrap(), 0);
}

/// A supervisor whose own descriptor 3 is free, as it is at a fresh start, and a child that is the
/// program itself. The test is three processes: this one, one that a shell makes of the same file
/// with the variable set, and its child, which knows itself by its title.
#[test]
fn a_process_without_a_descriptor_3_starts_its_own_file() {
    const VARIABLE: &str = "BEANSHARD_TEST_SUPERVISOR";
    const TITLE: &str = "beanshard: frontend 1";
    let own_test = [
        "--exact",
        "a_process_without_a_descriptor_3_starts_its_own_file",
        "--test-threads=1",
    ];
    if std::env::args().next().as_deref() == Some(TITLE) {
        let mut control = UnixStream::from(take_control_socket().unwrap());
        control.write_all(b"started").unwrap();
        process::exit(6);
    }
    if std::env::var_os(VARIABLE).is_some() {
        let control = take_control_socket().unwrap();
        let copy = fcntl(&control, FcntlArg::F_DUPFD_CLOEXEC(10)).unwrap();
        drop(control);
        // SAFETY: it was made just now, for us alone.
        let copy = unsafe { OwnedFd::from_raw_fd(copy) };
        let none = Program::at("/no/such/file".into());
        if none.spawn(OsStr::new("x"), &[], copy.as_fd()).is_ok() {
            process::exit(2);
        }
        let arguments = own_test.map(OsString::from);
        let program = Program::own().unwrap();
        let child = program.spawn(OsStr::new(TITLE), &arguments, copy.as_fd());
        let Ok(End::Exited(status)) = child.map(|mut child| end_of(&mut child)) else {
            process::exit(1);
        };
        process::exit(status);
    }
    let file = std::env::current_exe().unwrap();
    let arguments = own_test.join(" ");
    let (mut child, mut near) = shell(&format!(
        "{VARIABLE}=1 exec '{}' {arguments} >/dev/null",
        file.display()
    ));
    let mut text = String::new();
    near.read_to_string(&mut text).unwrap();
    assert_eq!(
        (end_of(&mut child), text.as_str()),
        (End::Exited(6), "started")
    );
}
