//! One test or one run of a benchmark: a process of its own, started, watched and cleaned up.

use std::env;
use std::io::{self, Read, Seek, pipe};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, Signal, killpg, signal};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// What is to be run.
pub(crate) struct Run<'a> {
    /// Say what to run.
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// How long it may take.
    pub(crate) limit: Duration,
    /// The program that serves.
    pub(crate) server: &'a str,
    /// The library for servers with a full disk.
    pub(crate) preload: &'a str,
}

/// What came of it.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// What it and its servers have said on both streams.
    pub(crate) output: String,
    /// What it has reported beside that.
    pub(crate) report: String,
}

/// How a process ended.
pub(crate) enum Outcome {
    Passed,
    /// By its own judgement.
    Failed,
    /// In some other way.
    Error(String),
}

/// Longest folder whose sockets have a path that fits: 107 bytes, and some for the name.
const FOLDER_LEN_MAX: usize = 80;
/// Kept of the beginning and of the end of the output, each.
const OUTPUT_LEN_MAX: usize = 64 * 1024;
/// How often it is looked whether the process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// Runs this program again, in a fresh folder, and waits for it.
pub(crate) fn run(run: &Run<'_>) -> io::Result<Ended> {
    let folder = folder()?;
    let mut report = tempfile::tempfile()?;
    let (read, write) = pipe()?;
    let mut command = Command::new(env::current_exe()?);
    command
        .envs(run.variables.iter().copied())
        .env("CT_DIR", folder.path())
        .env("CTESTS_PRELOAD", run.preload)
        .env_remove("LISTEN_PID")
        .env_remove("LISTEN_FDS")
        .env_remove("NOTIFY_SOCKET")
        // What is reported comes where nothing is read.
        .env("CT_REPORT_FD", "0")
        .stdin(report.try_clone()?)
        .stdout(write.try_clone()?)
        .stderr(write)
        .process_group(0);
    if env::var_os("CTESTS_SERVER").is_none() {
        command.env("CTESTS_SERVER", run.server);
    }
    let mut child = command.spawn()?;
    // The command has ends of the pipe, which would keep it open.
    drop(command);
    let reader = thread::spawn(move || read_output(read));
    let has_ended = wait(&child, run.limit);
    let status = end(&mut child)?;
    let output = reader.join().expect("the reader does not panic")?;
    report.rewind()?;
    let mut text = String::new();
    report.read_to_string(&mut text)?;
    let outcome = if has_ended {
        judge(status)
    } else {
        Outcome::Error(format!("it took longer than {:?}", run.limit))
    };
    Ok(Ended {
        outcome,
        output,
        report: text,
    })
}

/// Takes back what Rust has done about signals before `main`: C tests expect the system's ways.
pub(crate) fn forget_handlers() {
    for ours in [Signal::SIGPIPE, Signal::SIGSEGV, Signal::SIGBUS] {
        // SAFETY: the default installs no code.
        unsafe { signal(ours, SigHandler::SigDfl) }.expect("these can be set");
    }
}

/// A fresh folder with a short name.
fn folder() -> io::Result<tempfile::TempDir> {
    let usual = env::temp_dir();
    let is_short = usual.as_os_str().len() < FOLDER_LEN_MAX;
    let parent = if is_short { &usual } else { Path::new("/tmp") };
    tempfile::Builder::new().prefix("ct").tempdir_in(parent)
}

/// Waits until the process has ended, and leaves its remains: as long as they are there, its group
/// cannot be another's. Says whether it ended in time.
fn wait(child: &Child, limit: Duration) -> bool {
    let start = Instant::now();
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    while matches!(
        waitid(Id::Pid(pid(child)), flags),
        Ok(WaitStatus::StillAlive)
    ) {
        if start.elapsed() > limit {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
    true
}

/// Ends whoever is left of the group, and gives the status of its first process.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    // There may be nobody left.
    let _ = killpg(pid(child), Signal::SIGKILL);
    child.wait()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

fn judge(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(0), _) => Outcome::Passed,
        (_, Some(libc::SIGABRT)) => Outcome::Failed,
        _ => Outcome::Error(status.to_string()),
    }
}

/// All that is said until everybody who could say something has gone; of very much, the beginning
/// and the end.
fn read_output(mut from: impl Read) -> io::Result<String> {
    let mut begin = Vec::new();
    from.by_ref()
        .take(OUTPUT_LEN_MAX as u64)
        .read_to_end(&mut begin)?;
    let mut end = Vec::new();
    let mut left_out = 0;
    let mut buffer = vec![0; OUTPUT_LEN_MAX];
    loop {
        let len = from.read(&mut buffer)?;
        if len == 0 {
            break;
        }
        end.extend_from_slice(&buffer[..len]);
        if end.len() > 2 * OUTPUT_LEN_MAX {
            let gone = end.len() - OUTPUT_LEN_MAX;
            end.drain(..gone);
            left_out += gone;
        }
    }
    let mut text = String::from_utf8_lossy(&begin).into_owned();
    if left_out > 0 {
        text.push_str(&format!("\n[{left_out} bytes are left out]\n"));
    }
    text.push_str(&String::from_utf8_lossy(&end));
    Ok(text)
}
