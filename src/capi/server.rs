//! The server of C tests. A test sets globals, opens the socket and forks; its child calls
//! [`srvserve`], which runs the program itself in the child's place: the socket handed over as a
//! service manager does it, the globals as flags. What was only in the child's memory goes along
//! as a pending signal (drain mode) and as a plan for the library that is loaded before the program
//! (`falloc`), so that the program has nothing in it for tests.

use std::env;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr::{fn_addr_eq, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal, raise};
use nix::unistd::execve;

use super::layout::{Heap, Server, Socket, Wal};
use crate::base::limits::BODY_LEN_MAX_DEFAULT;
use crate::cli::{BINLOG_FILE_LEN_DEFAULT, SYNC_EVERY_MS_DEFAULT};
use crate::error::Chain;
use crate::net::listener::{ListenError, ListenSpec, Listener};
use crate::sys::fd::LISTEN_FD;
use crate::sys::{clock, file};

/// Nanoseconds in a millisecond.
const MS: i64 = 1_000_000;

/// Names the program that serves.
const SERVER_VARIABLE: &str = "CTESTS_SERVER";
/// Names the library that is loaded before it when `falloc` is not its default.
const PRELOAD_VARIABLE: &str = "CTESTS_PRELOAD";
/// What that library makes of each file, see `ctests/preload.c`.
const PLAN_VARIABLE: &str = "CTESTS_FALLOC_PLAN";
/// `sharded` asks for the mode of several processes.
const MODE_VARIABLE: &str = "CTESTS_MODE";

/// How often `falloc` is asked what it would say. Its last answer stands for all that follow.
const PROBES: usize = 64;

type Falloc = unsafe extern "C" fn(c_int, c_int) -> c_int;

/// The one server. Tests write to it before they start it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "C knows it by this name")]
static mut srv: Server = Server {
    port: c"11300".as_ptr().cast_mut(),
    addr: null_mut(),
    user: null_mut(),
    wal: Wal {
        filesize: BINLOG_FILE_LEN_DEFAULT as c_int,
        r#use: 0,
        dir: null_mut(),
        head: null_mut(),
        cur: null_mut(),
        tail: null_mut(),
        nfile: 0,
        next: 0,
        resv: 0,
        alive: 0,
        nmig: 0,
        nrec: 0,
        wantsync: 1,
        syncrate: SYNC_EVERY_MS_DEFAULT as i64 * MS,
        lastsync: 0,
    },
    sock: Socket {
        fd: 0,
        f: None,
        x: null_mut(),
        added: 0,
    },
    conns: Heap {
        cap: 0,
        len: 0,
        data: null_mut(),
        less: None,
        setpos: None,
    },
};

/// First part of a warning.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "C knows it by this name")]
static mut progname: *const c_char = c"beanshard".as_ptr();

/// How often `-V` was given.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "C knows it by this name")]
pub(super) static mut verbose: c_int = 0;

/// Limit of a body's bytes.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "C knows it by this name")]
pub(super) static mut job_data_size_limit: usize = BODY_LEN_MAX_DEFAULT as usize;

/// Makes room in a new file of the binlog: 0 or an errno. Tests put their own in.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "C knows it by this name")]
static mut falloc: Falloc = rawfalloc;

/// Whether drain mode was entered.
static IS_DRAINING: AtomicBool = AtomicBool::new(false);

/// The program's name.
pub(super) fn program() -> OsString {
    // SAFETY: C tests have one thread, and what they store is a C string or null.
    unsafe {
        let name = progname;
        if name.is_null() {
            return OsString::new();
        }
        OsString::from_vec(CStr::from_ptr(name).to_bytes().to_vec())
    }
}

fn complain(message: impl std::fmt::Display) {
    eprintln!("{}: {message}", program().display());
}

/// What [`falloc`] is at first: the first `len` bytes of `fd` set aside as the binlog does it.
#[unsafe(no_mangle)]
extern "C" fn rawfalloc(fd: c_int, len: c_int) -> c_int {
    // SAFETY: the descriptor is borrowed for the call: what is made of it is not dropped.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    match file::set_aside(&file, u64::try_from(len).unwrap_or(0)) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// The wall clock.
#[unsafe(no_mangle)]
extern "C" fn nanoseconds() -> i64 {
    clock::wall()
}

/// A listening descriptor, or -1 and a message. Either part may be null.
#[unsafe(no_mangle)]
unsafe extern "C" fn make_server_socket(host: *const c_char, port: *const c_char) -> c_int {
    // SAFETY: the caller gives C strings or null.
    let spec = unsafe {
        ListenSpec {
            address: word(host),
            port: word(port),
        }
    };
    match listen(&spec) {
        Ok(fd) => fd,
        Err(error) => {
            complain(Chain(&error));
            -1
        }
    }
}

fn listen(spec: &ListenSpec) -> Result<c_int, ListenError> {
    let listener = Listener::bind(spec)?;
    let kept = listener.as_fd().try_clone_to_owned();
    let kept = kept.map_err(|source| ListenError::Socket {
        step: "dup",
        address: listener.local_address(),
        source,
    })?;
    Ok(kept.into_raw_fd())
}

/// # Safety
/// `text` is a C string or null.
unsafe fn word(text: *const c_char) -> Option<OsString> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller says so.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    Some(OsStr::from_bytes(bytes).to_owned())
}

/// Counters and names are the program's, which sets them when it starts.
#[unsafe(no_mangle)]
extern "C" fn prot_init() {}

/// Lets the servers that are started from here on drain.
#[unsafe(no_mangle)]
extern "C" fn enter_drain_mode(_signal: c_int) {
    IS_DRAINING.store(true, Ordering::Relaxed);
}

/// The lock is taken and the files are read by the program, when it starts.
#[unsafe(no_mangle)]
extern "C" fn srv_acquire_wal(_server: *mut Server) {}

/// Serves as `server` and the globals say. Does not return.
#[unsafe(no_mangle)]
unsafe extern "C" fn srvserve(server: *mut Server) {
    // SAFETY: the caller gives the structure, with C strings in it, and C tests have one thread.
    let error = unsafe { replace_by_program(&*server) };
    complain(format_args!("cannot run the server: {error}"));
    // Nothing that the test registered for its own end is the child's business.
    // SAFETY: the process may end here.
    unsafe { libc::_exit(1) };
}

/// Runs the program in the place of this process; returns only if it cannot.
///
/// # Safety
/// `server` has C strings in it, and the process has one thread.
unsafe fn replace_by_program(server: &Server) -> io::Error {
    let Some(program) = env::var_os(SERVER_VARIABLE) else {
        return io::Error::other(format!("{SERVER_VARIABLE} is not set"));
    };
    // SAFETY: the caller says so.
    let (arguments, variables) = unsafe { (arguments(&program, server), variables(server)) };
    if let Err(error) = hand_over(server.sock.fd) {
        return error;
    }
    if IS_DRAINING.load(Ordering::Relaxed)
        && let Err(errno) = keep_pending(Signal::SIGUSR1)
    {
        return errno.into();
    }
    match execve(&c_string(program), &arguments, &variables) {
        Ok(never) => match never {},
        Err(errno) => errno.into(),
    }
}

/// The program's flags.
///
/// # Safety
/// `server` has C strings in it, and the process has one thread.
unsafe fn arguments(program: &OsStr, server: &Server) -> Vec<CString> {
    let is_sharded = env::var_os(MODE_VARIABLE).is_some_and(|mode| mode == "sharded");
    let mode: &[&str] = if is_sharded {
        &["--sharded", "--owners=2", "--frontends=2"]
    } else {
        &["--legacy"]
    };
    let wal = &server.wal;
    // SAFETY: the caller says so.
    let (dir, body_len_max, verbosity) = unsafe { (word(wal.dir), job_data_size_limit, verbose) };
    let mut words: Vec<OsString> = vec![program.to_owned()];
    words.extend(mode.iter().map(OsString::from));
    words.push(format!("-z{body_len_max}").into());
    words.push(format!("-s{}", wal.filesize).into());
    words.extend((0..verbosity).map(|_| "-V".into()));
    if wal.wantsync == 0 {
        words.push("-F".into());
    } else {
        // The flag counts milliseconds. Less than one is not at once.
        words.push(format!("-f{}", (wal.syncrate + MS - 1) / MS).into());
    }
    if wal.r#use != 0 {
        words.extend(["-b".into(), dir.unwrap_or_default()]);
    }
    words.into_iter().map(c_string).collect()
}

/// The program's environment: this one, and what tells of the socket and of `falloc`.
///
/// # Safety
/// The process has one thread.
unsafe fn variables(server: &Server) -> Vec<CString> {
    let pid = std::process::id();
    let mut ours = vec![
        ("LISTEN_PID", OsString::from(pid.to_string())),
        ("LISTEN_FDS", "1".into()),
    ];
    // SAFETY: the caller says so.
    if let Some(plan) = unsafe { falloc_plan(server.wal.filesize) } {
        ours.push((PLAN_VARIABLE, plan.into()));
        ours.push((
            "LD_PRELOAD",
            env::var_os(PRELOAD_VARIABLE).unwrap_or_default(),
        ));
    }
    let inherited = env::vars_os().filter(|(name, _)| ours.iter().all(|(own, _)| name != own));
    let pair = |name: &OsStr, value: &OsStr| {
        let mut text = name.to_owned();
        text.push("=");
        text.push(value);
        c_string(text)
    };
    let inherited: Vec<_> = inherited.map(|(name, value)| pair(&name, &value)).collect();
    let ours = ours
        .iter()
        .map(|(name, value)| pair(OsStr::new(name), value));
    inherited.into_iter().chain(ours).collect()
}

/// What `falloc` says of one file after another, found out by asking it about one that nobody
/// needs; None if it is the default. It may count its calls, but this process will be another
/// program before anybody looks.
///
/// # Safety
/// The process has one thread.
unsafe fn falloc_plan(file_len: c_int) -> Option<String> {
    // SAFETY: the caller says so.
    let ask = unsafe { falloc };
    if fn_addr_eq(ask, rawfalloc as Falloc) {
        return None;
    }
    // SAFETY: a stream that was opened has a descriptor, until it is closed.
    unsafe {
        let scratch = libc::tmpfile();
        let fd = if scratch.is_null() {
            -1
        } else {
            libc::fileno(scratch)
        };
        let answers: Vec<String> = (0..PROBES).map(|_| ask(fd, file_len).to_string()).collect();
        if !scratch.is_null() {
            libc::fclose(scratch);
        }
        Some(answers.join(","))
    }
}

/// Makes `socket` the descriptor at which the program looks for it.
fn hand_over(socket: c_int) -> io::Result<()> {
    // SAFETY: the calls take numbers, and this process owns no descriptor that it would miss.
    let rc = unsafe {
        if socket == LISTEN_FD {
            libc::fcntl(socket, libc::F_SETFD, 0)
        } else {
            libc::dup2(socket, LISTEN_FD)
        }
    };
    if rc == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends the process a signal that only the program will see: it lets it through once it listens
/// for it.
fn keep_pending(signal: Signal) -> nix::Result<()> {
    SigSet::from(signal).thread_block()?;
    raise(signal)
}

fn c_string(text: OsString) -> CString {
    CString::new(text.into_vec()).expect("it came from C or from the environment")
}
