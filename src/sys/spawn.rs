//! Children: starting one from our own binary, and learning that it has ended.
//!
//! A child gets the standard streams, one socket as descriptor [`CONTROL_FD`], the environment but
//! for the service manager's address, and nothing else of ours: every other descriptor is closed on
//! exec, those too that we were started with. Its signals are as the system sets them, but for
//! SIGHUP: who ignores it (`nohup`) goes on ignoring it in its children.
//!
//! Tests are in `tests/children.rs`, a process of their own: until a child has become the program
//! it holds copies of all descriptors, and other tests would not see an end as soon as they close.
//!
//! To be used by a process with one thread. With several, one could make descriptors at the moment
//! at which a child is born.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{self, Command, ExitStatus};
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::unistd::Pid;

/// Where a child finds its control socket.
pub const CONTROL_FD: RawFd = 3;

/// The variable that tells of a service manager: only the process that it has started may talk to
/// it.
const NOTIFY_VARIABLE: &str = "NOTIFY_SOCKET";

/// Above the number of the last signal of every system; what is in between is refused one by one.
const SIGNALS_END: libc::c_int = 129;

/// Highest descriptor that is looked at where the system does not list those that are open.
#[cfg(not(target_os = "linux"))]
const DESCRIPTORS_END: RawFd = 65_536;

/// Why a child could not be started, or not be asked about.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The path of our own binary is not to be had.
    #[error("cannot find the program's own file")]
    OwnFile {
        /// What the system said.
        source: io::Error,
    },
    /// The descriptors of this process could not be listed or copied.
    #[error("cannot prepare the descriptors of a child")]
    Descriptors {
        /// What the system said.
        source: io::Error,
    },
    /// The child could not be made, or could not become the program.
    #[error("{}: cannot start it as a child", path.display())]
    Start {
        /// What was to be executed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system does not tell what became of the child.
    #[error("waitpid: cannot ask about child {pid}")]
    Wait {
        /// Which child.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// A signal could not be sent.
    #[error("kill: cannot signal child {pid}")]
    Signal {
        /// Which child.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
}

/// A file that can be started as a child.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// Our own binary. To be asked for at the start.
    ///
    /// On Linux it is the very file that this process runs, even when another has taken its place.
    /// Elsewhere it is the path, so that a child may be of a newer version: what it says in its
    /// handshake tells.
    ///
    /// # Errors
    /// [`SpawnError::OwnFile`].
    pub fn own() -> Result<Program, SpawnError> {
        let found = if cfg!(target_os = "linux") {
            // The link is followed by the child, which runs the same file until it becomes it.
            let link = PathBuf::from("/proc/self/exe");
            link.metadata().map(|_| link)
        } else {
            std::env::current_exe()
        };
        let path = found.map_err(|source| SpawnError::OwnFile { source })?;
        Ok(Program { path })
    }

    /// The program in the file `path`, for tests.
    #[must_use]
    pub fn at(path: PathBuf) -> Program {
        Program { path }
    }

    /// Starts the program with `arguments`, and with `title` in place of its name: it is what `ps
    /// -f` shows in front of them, such as `beanshard: owner 2`. `control` becomes the child's
    /// descriptor [`CONTROL_FD`]; the caller closes its own copy, else the end of the child is not
    /// the end of the socket.
    ///
    /// Returns when the child has become the program.
    ///
    /// # Errors
    /// [`SpawnError::Descriptors`] or [`SpawnError::Start`]; there is no child then.
    pub fn spawn(
        &self,
        title: &OsStr,
        arguments: &[OsString],
        control: BorrowedFd<'_>,
    ) -> Result<Child, SpawnError> {
        let failed = |source| SpawnError::Descriptors { source };
        // Until the child is there, something of ours stands at the number that the socket will
        // have: either this copy or what made it take a higher one. So nothing that `Command`
        // opens for itself is there and gets lost.
        let copy = copy_above_streams(control).map_err(failed)?;
        let open = inheritable().map_err(failed)?;
        let socket = copy.as_raw_fd();
        let mut command = Command::new(&self.path);
        command.arg0(title).args(arguments);
        command.env_remove(NOTIFY_VARIABLE);
        // SAFETY: it runs between fork and exec, and makes nothing but calls that are allowed
        // there; it allocates nothing.
        unsafe { command.pre_exec(move || become_child(socket, &open)) };
        let inner = command.spawn().map_err(|source| SpawnError::Start {
            path: self.path.clone(),
            source,
        })?;
        Ok(Child { inner })
    }
}

/// A child of this process, until it has been asked for and has ended. Dropping it ends nothing.
#[derive(Debug)]
pub struct Child {
    inner: process::Child,
}

/// How a child has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl Child {
    /// Its number, for logs: it identifies nothing, because the system uses it again.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.inner.id()
    }

    /// How the child has ended, or nothing if it runs. Never waits, and may be asked again. To be
    /// asked of every child after SIGCHLD, which does not tell which and may stand for several.
    ///
    /// # Errors
    /// [`SpawnError::Wait`], if somebody else has asked for the end of our children.
    pub fn ended(&mut self) -> Result<Option<End>, SpawnError> {
        match self.inner.try_wait() {
            Ok(status) => Ok(status.map(End::from)),
            Err(source) => Err(SpawnError::Wait {
                pid: self.pid(),
                source,
            }),
        }
    }

    /// Asks the child to end (SIGTERM). Does nothing if it has ended.
    ///
    /// # Errors
    /// [`SpawnError::Signal`] or [`SpawnError::Wait`].
    pub fn terminate(&mut self) -> Result<(), SpawnError> {
        self.signal(Signal::SIGTERM)
    }

    /// Ends the child (SIGKILL). Does nothing if it has ended.
    ///
    /// # Errors
    /// [`SpawnError::Signal`] or [`SpawnError::Wait`].
    pub fn kill(&mut self) -> Result<(), SpawnError> {
        self.signal(Signal::SIGKILL)
    }

    /// The number is the child's as long as its end was not asked for, so nobody else is hit.
    fn signal(&mut self, signal: Signal) -> Result<(), SpawnError> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        let pid = self.pid();
        kill(Pid::from_raw(pid.cast_signed()), signal).map_err(|errno| SpawnError::Signal {
            pid,
            source: errno.into(),
        })
    }
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> End {
        match (status.code(), status.signal()) {
            (Some(code), _) => End::Exited(code),
            (None, signal) => End::Killed(signal.unwrap_or(0)),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited(code) => write!(f, "exit-{code}"),
            End::Killed(signal) => write!(f, "signal-{signal}"),
        }
    }
}

/// In a child: takes over the control socket. To be called once, at the start.
///
/// # Errors
/// If nothing is open there: the process was not started by a supervisor.
pub fn take_control_socket() -> io::Result<OwnedFd> {
    // SAFETY: the borrow ends with the call, and if nothing is open there, the call says so.
    super::fd::set_close_on_exec(unsafe { BorrowedFd::borrow_raw(CONTROL_FD) }, true)?;
    // SAFETY: the descriptor is open and was so before this program made any of its own; that
    // nobody else takes it is what the caller sees to.
    Ok(unsafe { OwnedFd::from_raw_fd(CONTROL_FD) })
}

/// A copy that is closed on exec, with the lowest free number that is no standard stream's.
fn copy_above_streams(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let raw = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(CONTROL_FD))?;
    // SAFETY: the call has just made it, for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The open descriptors, besides the standard streams, that a program executed now would have.
fn inheritable() -> io::Result<Vec<RawFd>> {
    let mut found = open_descriptors()?;
    found.retain(|&raw| {
        // SAFETY: the borrow ends with the call, which tells if nothing is open there.
        let flags = fcntl(unsafe { BorrowedFd::borrow_raw(raw) }, FcntlArg::F_GETFD);
        raw > libc::STDERR_FILENO
            && flags
                .is_ok_and(|flags| !FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC))
    });
    Ok(found)
}

#[cfg(target_os = "linux")]
fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        found.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<RawFd>().ok()),
        );
    }
    Ok(found)
}

/// All that could be open: the systems' own lists are incomplete or not always there.
#[cfg(not(target_os = "linux"))]
fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let limit = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)?.0;
    let end = RawFd::try_from(limit).map_or(DESCRIPTORS_END, |end| end.min(DESCRIPTORS_END));
    Ok((0..end).collect())
}

/// Between fork and exec: only calls that may be made there, and no allocation.
fn become_child(socket: RawFd, open: &[RawFd]) -> io::Result<()> {
    for &raw in open {
        // SAFETY: a call on numbers.
        unsafe { libc::fcntl(raw, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // A copy is open on exec; a descriptor that is copied to itself stays as it was.
    let placed = if socket == CONTROL_FD {
        // SAFETY: a call on numbers.
        unsafe { libc::fcntl(CONTROL_FD, libc::F_SETFD, 0) }
    } else {
        // SAFETY: a call on numbers; what stands there in the child is nobody's any more.
        unsafe { libc::dup2(socket, CONTROL_FD) }
    };
    Errno::result(placed)?;
    for signal in 1..SIGNALS_END {
        reset_ignored(signal);
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    Ok(())
}

/// Gives a signal that is ignored its default again. Handlers end with exec by themselves.
fn reset_ignored(signal: libc::c_int) {
    if signal == libc::SIGHUP {
        return;
    }
    // SAFETY: the first call only reads, into memory of ours, and if it succeeds has filled it; the
    // second installs no code. Both are allowed between fork and exec.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
        {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}
