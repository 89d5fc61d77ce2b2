//! The command line of C tests: read by the program's own parser, and laid down in C's structure.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process;

use super::layout::Server;
use super::server::{job_data_size_limit, program, verbose};
use crate::cli::{self, Action, Config, Output, SyncPolicy};

/// Exit status for words that ask for no server and that a test cannot mean.
const STATUS_USAGE: i32 = 5;

/// Reads `words`, which are those behind the program's name and end with null, into `server` and
/// the globals. What the program would answer by ending ends the process here.
#[unsafe(no_mangle)]
unsafe extern "C" fn optparse(server: *mut Server, words: *mut *mut c_char) {
    // SAFETY: the caller gives C strings, with null behind the last.
    let words = unsafe { words_of(words) };
    let parsed = cli::parse([program()].into_iter().chain(words));
    for warning in &parsed.warnings {
        eprintln!("{}: {warning}", parsed.program);
    }
    let config = match parsed.action {
        Action::Run(config) => config,
        Action::Print {
            text,
            stream,
            status,
        } => {
            match stream {
                Output::Stdout => print!("{text}"),
                Output::Stderr => eprint!("{text}"),
            }
            process::exit(status.into());
        }
        Action::Child(_) | Action::Wal(_) | Action::Tool(_) => process::exit(STATUS_USAGE),
    };
    // SAFETY: the caller gives the structure, and C tests have one thread.
    unsafe {
        fill(&mut *server, &config);
        job_data_size_limit = config.body_len_max as usize;
        verbose = c_int::try_from(config.verbose).unwrap_or(c_int::MAX);
    }
}

/// # Safety
/// `words` are C strings, with null behind the last.
unsafe fn words_of(mut words: *mut *mut c_char) -> Vec<OsString> {
    let mut found = Vec::new();
    // SAFETY: the caller says so.
    unsafe {
        while !(*words).is_null() {
            let word = CStr::from_ptr(*words).to_bytes();
            found.push(OsStr::from_bytes(word).to_owned());
            words = words.add(1);
        }
    }
    found
}

fn fill(server: &mut Server, config: &Config) {
    if let Some(port) = &config.listen.port {
        server.port = kept(port);
    }
    if let Some(address) = &config.listen.address {
        server.addr = kept(address);
    }
    if let Some(user) = &config.user {
        server.user = kept(user);
    }
    if let Some(dir) = &config.binlog_dir {
        server.wal.dir = kept(dir.as_os_str());
        server.wal.r#use = 1;
    }
    server.wal.filesize = c_int::try_from(config.binlog_file_len).unwrap_or(c_int::MAX);
    match config.binlog_sync {
        SyncPolicy::Never => server.wal.wantsync = 0,
        SyncPolicy::EveryMs(ms) => {
            server.wal.wantsync = 1;
            // The parser takes no more milliseconds than that.
            server.wal.syncrate = i64::try_from(ms * 1_000_000).unwrap_or(i64::MAX);
        }
    }
}

/// The text as a C string that stays.
fn kept(text: &OsStr) -> *mut c_char {
    CString::new(text.to_owned().into_vec())
        .expect("a word was a C string")
        .into_raw()
}
