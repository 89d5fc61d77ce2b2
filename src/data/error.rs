//! Why an offline tool has not done what it was asked for.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::base::ids::JobId;
use crate::wal::error::WalError;

/// See the module's description.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// Something with the data directory itself.
    #[error(transparent)]
    Directory(#[from] WalError),
    /// Something with one of the binlogs.
    #[error("{}", path.display())]
    Binlog {
        /// Its folder.
        path: PathBuf,
        /// What.
        source: WalError,
    },
    /// What is to be filled is not empty.
    #[error("{}: not empty, there is {name}", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// Something in it.
        name: String,
    },
    /// What is to be read is no data directory.
    #[error("{}: no data directory of --sharded, it has no file topology", path.display())]
    NotSharded {
        /// The directory.
        path: PathBuf,
    },
    /// What is to be read is no legacy binlog.
    #[error("{}: no binlog of --legacy, it has no file binlog.N", path.display())]
    NotLegacy {
        /// The directory.
        path: PathBuf,
    },
    /// A file cannot be read to its end, and that is not to be passed over.
    #[error(
        "{}: {files} of its files are damaged, see beanshard wal check {}; \
         --skip-damage goes on without what is damaged", path.display(), path.display()
    )]
    Damaged {
        /// The binlog's folder.
        path: PathBuf,
        /// How many.
        files: usize,
    },
    /// A job is at an owner that does not have its tube, or its id says another tube.
    #[error("{}: job {} does not belong to tube {tube} of this owner", path.display(), id.0)]
    Misplaced {
        /// The binlog's folder.
        path: PathBuf,
        /// The job.
        id: JobId,
        /// The tube.
        tube: String,
    },
    /// A step in the directory that is filled has failed.
    #[error("{}: cannot {step}", path.display())]
    Publish {
        /// What was to be done.
        step: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The error of the binlog in this folder.
pub(super) fn of_binlog(path: &Path) -> impl FnOnce(WalError) -> DataError {
    move |source| DataError::Binlog {
        path: path.to_owned(),
        source,
    }
}
