//! Why a binlog directory cannot be looked at or used. What is wrong *in* its files is no error: it
//! is told where it is found.

use std::io;
use std::path::PathBuf;

use crate::wal::topology::TopologyError;

/// Why looking at a binlog directory, or using one, ended.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The directory, its lock or one of its files cannot be read.
    #[error("{}: cannot {step}", path.display())]
    Read {
        /// What was to be done: `list`, `open`, `read`.
        step: &'static str,
        /// What it was to be done with.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory cannot be had for this process alone.
    #[error("failed to lock wal dir {}: {step}", path.display())]
    Lock {
        /// What was to be done: `open`, `fcntl`.
        step: &'static str,
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in a directory that is in use could not be done. What is on the disk may not be
    /// what it should be.
    #[error("binlog: cannot {step} {name}")]
    Use {
        /// What was to be done: `create`, `rename`, `write`, `sync`, ...
        step: &'static str,
        /// The file it was to be done with, within the directory.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// Something that was on the disk is not there any more, or is not what it was. There is an
    /// option to go on without it.
    #[error("binlog: {name} is damaged at {at}: {fault}")]
    Damaged {
        /// The file, within the directory.
        name: String,
        /// Where, in bytes from the start of the file.
        at: u64,
        /// What is wrong.
        fault: String,
    },
    /// A file is another program's, or another owner's.
    #[error("binlog: {name} cannot be used here: {why}")]
    Foreign {
        /// The file, within the directory.
        name: String,
        /// What was found, and what was expected.
        why: String,
    },
    /// The highest number that a file may have is taken.
    #[error("binlog: file numbers are used up at {highest}")]
    Numbers {
        /// It.
        highest: u64,
    },
    /// The directory is for something else than was asked.
    #[error("{}", path.display())]
    Topology {
        /// The directory.
        path: PathBuf,
        /// What it is for.
        source: TopologyError,
    },
    /// What was found cannot be told.
    #[error("cannot write the output")]
    Print {
        /// What the system said.
        #[from]
        source: io::Error,
    },
}
