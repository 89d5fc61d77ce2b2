//! Ours as a program: its words, and runs that end by themselves.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use crate::fixture::{Listen, START_LIMIT, Server, wait_until};

/// The program that is tested.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_beanshard");

/// The words that start ours with `args`.
pub(crate) fn ours<S: AsRef<str>>(args: &[S]) -> Vec<String> {
    words(&[PROGRAM], args)
}

/// `head` and `tail` as words.
pub(crate) fn words<S: AsRef<str>, T: AsRef<str>>(head: &[S], tail: &[T]) -> Vec<String> {
    let head = head.iter().map(|word| word.as_ref().to_owned());
    head.chain(tail.iter().map(|word| word.as_ref().to_owned()))
        .collect()
}

/// The words that run a line of shell and then become ours with `args`. The process stays the
/// same, so that sockets handed over to it are still meant for it.
pub(crate) fn ours_after(shell: &str, args: &[&str]) -> Vec<String> {
    let script = format!("{shell}; exec \"$@\"");
    words(&["sh", "-c", &script, "sh", PROGRAM], args)
}

/// Starts ours with `args` on a socket that it inherits.
pub(crate) fn serve(args: &[&str]) -> Server {
    start(&ours(args), Listen::Tcp)
}

/// The same with a Unix socket, whose buffers are small: on TCP the kernel may take megabytes that
/// nobody reads.
pub(crate) fn serve_unix(args: &[&str]) -> Server {
    start(&ours(args), Listen::Unix)
}

/// Starts `words`.
pub(crate) fn start(words: &[String], listen: Listen) -> Server {
    Server::start(words, listen).expect("the server starts")
}

/// How a run ended: the status, and what was printed on both streams.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `words`, which end by themselves.
pub(crate) fn run(words: &[String]) -> Ended {
    // What it prints must not wait for us to read it, hence files and no pipes.
    let dir = tempfile::tempdir().expect("a folder can be made");
    let path = |name: &str| dir.path().join(name);
    let file = |name: &str| fs::File::create(path(name)).expect("a file can be made");
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .spawn()
        .unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let mut status = None;
    wait_until(START_LIMIT, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    if status.is_none() {
        // It may have ended by now, which is as good.
        let _ = child.kill();
        let _ = child.wait();
    }
    let text = |name: &str| fs::read_to_string(path(name)).expect("what is printed is UTF-8");
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    let status = status.unwrap_or_else(|| panic!("{words:?} does not end\n{stderr}"));
    Ended {
        status: status.code(),
        stdout,
        stderr,
    }
}

/// Whether `words` can be run here, with success.
pub(crate) fn can_run<S: AsRef<OsStr>>(words: &[S]) -> bool {
    let output = Command::new(&words[0]).args(&words[1..]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Tells that a test cannot be done here.
pub(crate) fn skip(why: &str) {
    eprintln!("skipped: {why}");
}
