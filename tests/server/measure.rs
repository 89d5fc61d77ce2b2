//! What Linux tells of a server's process: a test must not believe the server about itself.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

use crate::fixture::{Server, pass};

/// Processor time that the server has used, in the system's ticks of mostly 10 ms.
pub(crate) fn cpu_time(server: &Server) -> Duration {
    let stat = read(server, "stat");
    // The program's name stands in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(')').expect("stat has a name");
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().expect("times are numbers"))
        .sum();
    let per_sec = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let per_sec = per_sec.and_then(|ticks| u64::try_from(ticks).ok());
    Duration::from_millis(1000 * ticks / per_sec.expect("the system has a tick"))
}

/// Processor time that the server uses while `window` passes.
pub(crate) fn cpu_during(server: &Server, window: Duration) -> Duration {
    let before = cpu_time(server);
    pass(window);
    cpu_time(server) - before
}

/// The value of a row of the server's `/proc/PID/status`.
pub(crate) fn status(server: &Server, key: &str) -> String {
    let status = read(server, "status");
    let start = format!("{key}:");
    let value = status.lines().find_map(|row| row.strip_prefix(&start));
    value.expect("the system tells this").trim().to_owned()
}

/// KiB of a row of the server's `/proc/PID/status`: `VmRSS` for memory in use.
pub(crate) fn kib(server: &Server, key: &str) -> u64 {
    let value = status(server, key);
    let number = value.strip_suffix(" kB").map(str::parse);
    number.expect("a size").expect("a number")
}

/// A file of the server's folder in `/proc`.
pub(crate) fn read(server: &Server, name: &str) -> String {
    let path = PathBuf::from(format!("/proc/{}", server.pid())).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
