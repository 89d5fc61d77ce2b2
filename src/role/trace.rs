//! What `-V` and `-VV` print on standard output, in the original's words (L5.7): connections, and
//! with the second `V` each command, body and reply. The number is that of the descriptor.

use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};

use crate::net::listener::Listener;
use crate::net::stream::Stream;
use crate::role::conn::Conn;
use crate::session::table::{Sessions, Trace, Traced};

/// See the module's description.
#[derive(Clone, Copy, Debug)]
pub struct Tracer {
    verbosity: u32,
}

impl Tracer {
    /// Prints as much as so many `-V` ask for.
    #[must_use]
    pub fn new(verbosity: u32) -> Tracer {
        Tracer { verbosity }
    }

    /// Whether sessions have to record what they do.
    #[must_use]
    pub fn wants_commands(self) -> bool {
        self.verbosity >= 2
    }

    /// Prints the process id.
    pub(super) fn started(self, pid: u32) {
        self.line(format_args!("pid {pid}"));
    }

    /// Prints where the server listens, unless somebody else has seen to that.
    pub(super) fn bound(self, listener: &Listener) {
        if listener.is_inherited() {
            return;
        }
        let (fd, address) = (listener.as_fd().as_raw_fd(), listener.local_address());
        self.line(format_args!("bind {fd} {address}"));
    }

    pub(super) fn accepted(self, stream: &Stream) {
        self.line(format_args!("accept {}", stream.as_fd().as_raw_fd()));
    }

    pub(super) fn closed(self, stream: &Stream) {
        self.line(format_args!("close {}", stream.as_fd().as_raw_fd()));
    }

    /// Prints what sessions have recorded.
    pub(super) fn print<S>(self, sessions: &mut Sessions<S>, conns: &[Option<Conn>]) {
        if !self.wants_commands() {
            return;
        }
        let out = &mut io::stdout().lock();
        for trace in sessions.take_traces() {
            let conn = conns
                .get(trace.session.slot() as usize)
                .and_then(Option::as_ref);
            if let Some(conn) = conn.filter(|conn| conn.session == trace.session) {
                // Nobody may be listening; that is no reason to stop serving.
                let _ = print_one(out, conn.stream.as_fd().as_raw_fd(), &trace);
            }
        }
    }

    fn line(self, line: fmt::Arguments<'_>) {
        if self.verbosity >= 1 {
            let _ = writeln!(io::stdout(), "{line}");
        }
    }
}

fn print_one(out: &mut impl Write, fd: i32, trace: &Trace) -> io::Result<()> {
    match &trace.what {
        Traced::Command(kind) => {
            let name = kind.map_or("<unknown>", |kind| kind.prefix());
            writeln!(out, "<{fd} command {name}")
        }
        Traced::Body(id) => writeln!(out, "<{fd} job {}", id.map_or(0, |id| id.0)),
        Traced::Reply(line) => {
            writeln!(out, ">{fd} reply {}", line.escape_ascii())?;
            match sent_job(line) {
                Some(id) => writeln!(out, ">{fd} job {id}"),
                None => Ok(()),
            }
        }
    }
}

/// The job whose body follows this reply line, 0 for statistics.
fn sent_job(line: &[u8]) -> Option<u64> {
    let mut words = line.split(|&byte| byte == b' ');
    match words.next()? {
        b"OK" => Some(0),
        b"RESERVED" | b"FOUND" => std::str::from_utf8(words.next()?).ok()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{JobId, SessionId};
    use crate::proto::command::Kind;

    #[test]
    fn lines_are_the_originals() {
        let mut out = Vec::new();
        for what in [
            Traced::Command(Some(Kind::Put)),
            Traced::Body(Some(JobId(7))),
            Traced::Reply(b"INSERTED 7".to_vec()),
            Traced::Command(None),
            Traced::Reply(b"RESERVED 7 5".to_vec()),
            Traced::Reply(b"OK 12".to_vec()),
        ] {
            let session = SessionId::new(0, 1, 0);
            print_one(&mut out, 5, &Trace { session, what }).unwrap();
        }
        let expected = "<5 command put \n<5 job 7\n>5 reply INSERTED 7\n<5 command <unknown>\n\
                        >5 reply RESERVED 7 5\n>5 job 7\n>5 reply OK 12\n>5 job 0\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
