//! Why the program ends when nobody asked it to, and with which exit status. Scripts know the
//! original's numbers, so they are kept.

use std::error;
use std::fmt;

use crate::base::limits::HOPELESS_STATUS;
use crate::data::error::DataError;
use crate::role::error::RoleError;
use crate::sys::process::ProcessError;
use crate::wal::error::WalError;

/// Why the program cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its role could not be played.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// A binlog directory could not be looked at.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// An offline tool has not done what it was asked for.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl Error {
    /// The exit status with which a child tells its supervisor of this error.
    #[must_use]
    pub fn child_exit_code(&self) -> u8 {
        match self {
            Error::Role(RoleError::Wal(WalError::Damaged { .. } | WalError::Foreign { .. })) => {
                HOPELESS_STATUS
            }
            Error::Role(_) | Error::Wal(_) | Error::Data(_) => self.exit_code(),
        }
    }

    /// The exit status that tells of this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Role(role) => role_exit_code(role),
            Error::Wal(wal) => wal_exit_code(wal),
            Error::Data(data) => data_exit_code(data),
        }
    }
}

fn wal_exit_code(error: &WalError) -> u8 {
    match error {
        WalError::Read { .. } | WalError::Lock { .. } | WalError::Topology { .. } => 10,
        WalError::Print { .. }
        | WalError::Use { .. }
        | WalError::Damaged { .. }
        | WalError::Foreign { .. }
        | WalError::Numbers { .. } => 1,
    }
}

fn data_exit_code(error: &DataError) -> u8 {
    match error {
        DataError::Directory(source) | DataError::Binlog { source, .. } => wal_exit_code(source),
        DataError::NotEmpty { .. } | DataError::NotSharded { .. } | DataError::NotLegacy { .. } => {
            10
        }
        DataError::Damaged { .. } | DataError::Misplaced { .. } | DataError::Publish { .. } => 1,
    }
}

fn role_exit_code(error: &RoleError) -> u8 {
    match error {
        RoleError::Poller { .. }
        | RoleError::Wait { .. }
        | RoleError::WatchWal { .. }
        | RoleError::Told { .. }
        | RoleError::Spawn(_)
        | RoleError::Control(_)
        | RoleError::WatchControl { .. }
        | RoleError::NoSetup
        | RoleError::GaveUp { .. }
        | RoleError::Hopeless { .. }
        | RoleError::Forced => 1,
        RoleError::NoControlSocket { .. } => 5,
        RoleError::WatchListener { .. } => 2,
        RoleError::Wal(wal) => wal_exit_code(wal),
        RoleError::Listen { .. } | RoleError::Signal(_) | RoleError::WatchSignals { .. } => 111,
        RoleError::Process(process) => match process {
            ProcessError::DescriptorLimit { .. } => 1,
            ProcessError::UserDatabase { .. } => 32,
            ProcessError::NoSuchUser { .. } => 33,
            ProcessError::Privileges { .. } => 34,
            ProcessError::Random { .. } | ProcessError::Machine { .. } => 50,
        },
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

    use std::io;

    use super::*;
    use crate::net::address::Address;
    use crate::net::listener::ListenError;
    use crate::sys::signal::SignalError;

    fn refused() -> io::Error {
        io::Error::from_raw_os_error(libc::EACCES)
    }

    #[test]
    fn an_error_is_printed_with_its_causes() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let error = Error::Role(
            ListenError::Socket {
                step: "bind",
                address: Address::Internet(address),
                source: refused(),
            }
            .into(),
        );
        assert_eq!(
            Chain(&error).to_string(),
            "make_server_socket(): bind(): 127.0.0.1:80: Permission denied (os error 13)"
        );
        let error = Error::Role(ProcessError::NoSuchUser { user: "kr".into() }.into());
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
            assert_eq!(Error::Role(error.into()).exit_code(), code);
        }
        let source = refused;
        for (error, code) in [
            (RoleError::Poller { source: source() }, 1),
            (RoleError::Wait { source: source() }, 1),
            (RoleError::WatchListener { source: source() }, 2),
            (RoleError::WatchSignals { source: source() }, 111),
            (SignalError::Install { source: source() }.into(), 111),
            (ListenError::InheritedKind { descriptor: 3 }.into(), 111),
        ] {
            assert_eq!(Error::Role(error).exit_code(), code);
        }
    }

    #[test]
    fn a_binlog_that_cannot_be_read_is_10() {
        let error = Error::Wal(WalError::Read {
            step: "list",
            path: "/d".into(),
            source: refused(),
        });
        assert_eq!(error.exit_code(), 10);
        assert_eq!(
            Chain(&error).to_string(),
            "/d: cannot list: Permission denied (os error 13)"
        );
        assert_eq!(Error::Wal(refused().into()).exit_code(), 1);
    }
}
