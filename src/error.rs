//! Why the program ends when nobody asked it to, and with which exit status. Scripts know the
//! original's numbers, so they are kept.

use std::error;
use std::fmt;
use std::io;

use crate::net::listener::ListenError;
use crate::sys::process::ProcessError;
use crate::sys::signal::SignalError;

/// Why the program cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to listen on.
    #[error("make_server_socket()")]
    Listen {
        /// The step that failed.
        #[from]
        source: ListenError,
    },
    /// Signals cannot be listened for.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// The process cannot be what it should be.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The set of descriptors to wait for cannot be made.
    #[error("cannot make the event queue")]
    Poller {
        /// What the system said.
        source: io::Error,
    },
    /// The channel for signals cannot be watched.
    #[error("cannot watch for signals")]
    WatchSignals {
        /// What the system said.
        source: io::Error,
    },
    /// The listening socket cannot be watched.
    #[error("sockwant: cannot watch the listening socket")]
    WatchListener {
        /// What the system said.
        source: io::Error,
    },
    /// The event loop cannot wait.
    #[error("cannot wait for events")]
    Wait {
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// The exit status that tells of this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Poller { .. } | Error::Wait { .. } => 1,
            Error::WatchListener { .. } => 2,
            Error::Listen { .. } | Error::Signal(_) | Error::WatchSignals { .. } => 111,
            Error::Process(process) => match process {
                ProcessError::DescriptorLimit { .. } => 1,
                ProcessError::UserDatabase { .. } => 32,
                ProcessError::NoSuchUser { .. } => 33,
                ProcessError::Privileges { .. } => 34,
                ProcessError::Random { .. } | ProcessError::Machine { .. } => 50,
            },
        }
    }
}

/// Prints an error and what caused it, joined by `: `, on one line.
pub struct Chain<'a>(pub &'a dyn error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(source) = next {
            write!(f, ": {source}")?;
            next = source.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::net::address::Address;

    fn refused() -> io::Error {
        io::Error::from_raw_os_error(libc::EACCES)
    }

    #[test]
    fn an_error_is_printed_with_its_causes() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let error = Error::from(ListenError::Socket {
            step: "bind",
            address: Address::Internet(address),
            source: refused(),
        });
        assert_eq!(
            Chain(&error).to_string(),
            "make_server_socket(): bind(): 127.0.0.1:80: Permission denied (os error 13)"
        );
        let error = Error::from(ProcessError::NoSuchUser { user: "kr".into() });
        assert_eq!(Chain(&error).to_string(), "getpwnam(kr): no such user");
    }

    #[test]
    fn exit_codes_are_the_originals() {
        let user = || "kr".into();
        let process = [
            (
                ProcessError::UserDatabase {
                    user: user(),
                    source: refused(),
                },
                32,
            ),
            (ProcessError::NoSuchUser { user: user() }, 33),
            (
                ProcessError::Privileges {
                    call: "setuid",
                    user: user(),
                    source: refused(),
                },
                34,
            ),
            (ProcessError::Random { source: refused() }, 50),
            (ProcessError::Machine { source: refused() }, 50),
        ];
        for (error, code) in process {
            assert_eq!(Error::from(error).exit_code(), code);
        }
        let source = refused;
        for (error, code) in [
            (Error::Poller { source: source() }, 1),
            (Error::Wait { source: source() }, 1),
            (Error::WatchListener { source: source() }, 2),
            (Error::WatchSignals { source: source() }, 111),
            (SignalError::Install { source: source() }.into(), 111),
            (ListenError::InheritedKind { descriptor: 3 }.into(), 111),
        ] {
            assert_eq!(error.exit_code(), code);
        }
    }
}
