//! What Linux tells of a process by its number, and what one process can do to another.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, Socket};

use crate::fixture::{START_LIMIT, wait_until};

/// State and parent of a process, if there is one.
fn state(pid: Pid) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether it runs; one that has ended and that nobody has asked for does not.
pub(crate) fn is_alive(pid: Pid) -> bool {
    state(pid).is_some_and(|(state, _)| state != 'Z')
}

/// The name under which it was started.
fn title(pid: Pid) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = words.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(first).into_owned()
}

/// The children that run, by title.
pub(crate) fn children(of: Pid) -> Vec<(String, Pid)> {
    let entries = fs::read_dir("/proc").expect("processes can be listed");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_child = |&pid: &Pid| {
        state(pid).is_some_and(|(state, parent)| state != 'Z' && parent == of.as_raw())
    };
    let mut found: Vec<_> = pids
        .map(Pid::from_raw)
        .filter(is_child)
        .map(|pid| (title(pid), pid))
        .collect();
    found.sort();
    found
}

/// Stops the process, and returns when it stands.
pub(crate) fn stop(pid: Pid) {
    kill(pid, Signal::SIGSTOP).expect("a process");
    let stands = || state(pid).is_some_and(|(state, _)| state == 'T');
    assert!(wait_until(START_LIMIT, stands), "{pid} does not stop");
}

/// Has a stopped process go on.
pub(crate) fn go_on(pid: Pid) {
    kill(pid, Signal::SIGCONT).expect("a process");
}

/// Ends the process as a crash would, and returns when it is gone.
pub(crate) fn crash(pid: Pid) {
    kill(pid, Signal::SIGKILL).expect("a process");
    assert!(wait_until(START_LIMIT, || !is_alive(pid)), "{pid} lives");
}

/// KiB of memory in use.
pub(crate) fn resident_kib(pid: Pid) -> u64 {
    status(pid, "VmRSS")
}

/// The number in a row of `/proc/PID/status`.
pub(crate) fn status(pid: Pid, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let start = format!("{key}:");
    let value = status.lines().find_map(|row| row.strip_prefix(&start));
    let number = value.expect("a row").split_ascii_whitespace().next();
    number.expect("a value").parse().expect("a number")
}

/// Processor time used so far, in the system's ticks.
pub(crate) fn cpu_ticks(pid: Pid) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    let times = rest.split_ascii_whitespace().skip(11).take(2);
    times
        .map(|time| time.parse::<u64>().expect("a number"))
        .sum()
}

/// The first descriptor that can be a link: those before are the streams and the control socket.
const FIRST_LINK_FD: RawFd = 4;

/// Copies of the sockets to other processes, in the order of their descriptors.
pub(crate) fn links(pid: Pid) -> Vec<Socket> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process");
    let fds = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut fds: Vec<RawFd> = fds.filter(|&fd| fd >= FIRST_LINK_FD).collect();
    fds.sort_unstable();
    fds.into_iter()
        .filter(|fd| is_socket(pid, *fd))
        .map(|fd| Socket::from(copy(pid, fd).expect("a descriptor can be copied")))
        .filter(|socket| socket.domain().is_ok_and(|domain| domain == Domain::UNIX))
        .collect()
}

/// Cuts a link while both of its processes live.
pub(crate) fn cut(link: &Socket) {
    link.shutdown(Shutdown::Both).expect("a link can be cut");
}

/// Whether something has been sent over one of the links that the process has not read.
pub(crate) fn has_unread(pid: Pid) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    links(pid).iter().any(|link| {
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        link.recv_with_flags(&mut byte, flags)
            .is_ok_and(|len| len > 0)
    })
}

fn is_socket(pid: Pid, fd: RawFd) -> bool {
    fs::read_link(format!("/proc/{pid}/fd/{fd}"))
        .is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
}

/// Copies a descriptor of another process.
fn copy(pid: Pid, fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: calls on numbers; what they return is checked and is this process's alone.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })?;
    // SAFETY: as above.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) })
}

fn owned(raw: libc::c_long) -> io::Result<OwnedFd> {
    match RawFd::try_from(raw) {
        // SAFETY: a system call has just made it, for us alone.
        Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
