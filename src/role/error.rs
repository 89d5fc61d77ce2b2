//! Why a process ends when nobody asked it to.

use std::io;
use std::path::PathBuf;

use crate::net::listener::ListenError;
use crate::role::control::ControlError;
use crate::sys::process::ProcessError;
use crate::sys::signal::SignalError;
use crate::sys::spawn::{CONTROL_FD, SpawnError};
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
    /// The supervisor says what it has not to say to this process.
    #[error("the supervisor says what has no meaning here: {kind:?}")]
    Told {
        /// What it says.
        kind: ControlKind,
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
    /// A child cannot be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The supervisor or a child cannot be talked to.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A control socket cannot be watched.
    #[error("cannot watch the control socket")]
    WatchControl {
        /// What the system said.
        source: io::Error,
    },
    /// A child was started by somebody else than a supervisor.
    #[error("descriptor {CONTROL_FD} is no control socket: children are started by --sharded")]
    NoControlSocket {
        /// What is wrong with it.
        source: io::Error,
    },
    /// The first thing that a child was told was not what it is to be.
    #[error("the supervisor does not say what this child is to be")]
    NoSetup,
    /// A child does not get ready.
    #[error("{role}/{index}: does not start, tried {tries} times")]
    GaveUp {
        /// What the child is.
        role: &'static str,
        /// Which of its role.
        index: u16,
        /// How often it was tried.
        tries: u32,
    },
    /// An owner's binlog cannot be gone on with, and to try again would change nothing.
    #[error("{role}/{index}: its binlog needs looking at, as it has said: {}", .folder.display())]
    Hopeless {
        /// What the child is.
        role: &'static str,
        /// Which of its role.
        index: u16,
        /// Where its binlog is.
        folder: PathBuf,
    },
    /// Everything was ended at once, because it was asked for twice.
    #[error("ended at once")]
    Forced,
}
