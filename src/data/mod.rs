//! The offline tools of the data: from another number of owners to this one ([`reshard()`]), from a
//! legacy binlog into a directory of the sharded mode ([`import()`]), and back ([`export()`]).
//!
//! What is read is never changed: it is read as a start would read it, through a storage that
//! writes nothing (`source`). What is written is a new directory of its own, a journal with the
//! full record of each job (`target`). It is complete and synced before one step puts it in the
//! place of the old. So whoever is killed, at whatever moment, leaves the old or the new, and
//! left-overs that nobody takes for either.
//!
//! The jobs of one old binlog are in memory at a time, as at a start.

pub mod bar;
pub mod error;
mod export;
mod import;
mod reshard;
mod source;
pub mod summary;
mod target;

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::base::time::Nanos;
use crate::data::error::DataError;
use crate::data::summary::Summary;
use crate::wal::directory::LOCK;
use crate::wal::error::WalError;
use crate::wal::record::WallNanos;

pub use crate::data::export::export;
pub use crate::data::import::import;
pub use crate::data::reshard::reshard;

/// What all tools need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a file that is written, unless a record is longer.
    pub file_len: u64,
    /// How many owners a new directory is for if nothing is said.
    pub owners: u16,
    /// Goes on in spite of damage, without what is damaged.
    pub skip_damage: bool,
    /// What the wall clock shows. It is the engine's clock here as well, so that no moment of a job
    /// is changed by going from one to the other and back.
    pub wall: WallNanos,
}

impl Settings {
    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.wall.0).unwrap_or(0))
    }
}

/// What a tool is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It reads a binlog, of an owner if it is one; counted in bytes.
    Read(Option<u16>),
    /// It writes a binlog, of an owner if it is one; counted in jobs.
    Write(Option<u16>),
    /// What was written takes its place.
    Swap,
    /// What was there before is removed.
    Clean,
}

/// How far a tool has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// In what.
    pub stage: Stage,
    /// How much of it is done.
    pub done: u64,
    /// How much there is.
    pub all: u64,
}

impl Step {
    fn new(stage: Stage, done: u64, all: u64) -> Step {
        Step { stage, done, all }
    }
}

/// Is told of each step before it is made.
pub type Show<'a> = &'a mut dyn FnMut(Step);

/// One of the tools, and on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// See [`reshard()`].
    Reshard {
        /// The data directory.
        dir: PathBuf,
        /// For how many owners it is to be.
        owners: u16,
    },
    /// See [`import()`].
    Import {
        /// The legacy binlog.
        from: PathBuf,
        /// The new data directory.
        dir: PathBuf,
        /// For how many owners it is to be.
        owners: Option<u16>,
    },
    /// See [`export()`].
    Export {
        /// The data directory.
        dir: PathBuf,
        /// The new legacy binlog.
        to: PathBuf,
    },
}

/// Does it.
///
/// # Errors
/// [`DataError`]. What was there before is as it was then.
pub fn run(task: &Task, settings: Settings, show: Show<'_>) -> Result<Summary, DataError> {
    match task {
        Task::Reshard { dir, owners } => reshard(dir, *owners, settings, show),
        Task::Import { from, dir, owners } => {
            let owners = owners.unwrap_or(settings.owners);
            import(from, dir, owners, settings, show)
        }
        Task::Export { dir, to } => export(dir, to, settings, show),
    }
}

/// Refuses to fill a directory that has anything in it but the file that locks it.
fn refuse_others(path: &Path) -> Result<(), DataError> {
    let failed = |source| WalError::Read {
        step: "list",
        path: path.to_owned(),
        source,
    };
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != LOCK {
            return Err(DataError::NotEmpty {
                path: path.to_owned(),
                name: name.display().to_string(),
            });
        }
    }
    Ok(())
}
