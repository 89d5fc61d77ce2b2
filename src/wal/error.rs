//! Why a binlog directory cannot be looked at. What is wrong *in* its files is no error: it is told
//! where it is found.

use std::io;
use std::path::PathBuf;

/// Why looking at a binlog directory ended.
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
    /// What was found cannot be told.
    #[error("cannot write the output")]
    Print {
        /// What the system said.
        #[from]
        source: io::Error,
    },
}
