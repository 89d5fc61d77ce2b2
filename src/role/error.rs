//! Why a process ends when nobody asked it to.

use std::io;

use crate::net::listener::ListenError;
use crate::role::control::ControlError;
use crate::sys::process::ProcessError;
use crate::sys::signal::SignalError;
use crate::wal::error::WalError;
use crate::wire::kind::ControlKind;

/// Why a process cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
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
    /// The binlog cannot be used.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// The channel by which the binlog tells of syncs cannot be watched.
    #[error("cannot watch the binlog")]
    WatchWal {
        /// What the system said.
        source: io::Error,
    },
    /// The control socket is of no use any more.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The supervisor says what it has not to say to this process.
    #[error("the supervisor says what has no meaning here: {kind:?}")]
    Told {
        /// What it says.
        kind: ControlKind,
    },
    /// The control socket cannot be watched.
    #[error("cannot watch the control socket")]
    WatchControl {
        /// What the system said.
        source: io::Error,
    },
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
