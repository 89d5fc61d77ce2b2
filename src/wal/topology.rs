//! The data directory of the sharded mode: which of its folders is whose, and the file that says
//! for how many owners it was made.
//!
//! ```text
//! DIR/topology      what is below, as text
//! DIR/lock          locked by the supervisor, and by tools that change it
//! DIR/owner-000/    the binlog of owner 0, locked by that owner
//! DIR/owner-001/    ...
//! ```
//!
//! The file has a line for each thing: `beanshard topology 1`, `slots 1024`, `owners 4`, and
//! `fingerprint` with 16 hexadecimal digits, which the binlogs have too. It is written beside its
//! place and renamed, so that it is never there in part.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::base::ids::{Fingerprint, ShardSet};
use crate::base::slot::SLOTS;
use crate::sys::file;
use crate::wal::directory::LOCK;
use crate::wal::error::WalError;
use crate::wal::segment::{FileName, file_name};

/// The version of the layout.
const VERSION: u32 = 1;

/// Name of the file.
const NAME: &str = "topology";

/// Where it is written before it takes its place.
const NEW_NAME: &str = "topology.new";

/// The mode of the file: whoever looks may read it.
const FILE_MODE: u32 = 0o644;

/// The mode of an owner's folder.
const FOLDER_MODE: u32 = 0o755;

/// For whom a data directory was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// How many owners there are, 1 to [`ShardSet::SHARDS_MAX`].
    pub owners: u16,
    /// What stands for the map from slots to owners.
    pub fingerprint: Fingerprint,
}

/// Why a directory cannot be used as one of the sharded mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// The file does not say what it should.
    #[error("the file {NAME} is damaged, or of another version of this program: {line:?}")]
    Unreadable {
        /// The first line that is not as it should be.
        line: String,
    },
    /// The directory was made for another number of owners.
    #[error(
        "it was made for {made} owners and not for {asked}; start with --owners {made}, or change \
         it while no server uses it: beanshard reshard --dir {} --owners {asked}", dir.display()
    )]
    Owners {
        /// The directory.
        dir: PathBuf,
        /// How many it was made for.
        made: u16,
        /// How many there should be.
        asked: u16,
    },
    /// It was made with another map from tubes to owners.
    #[error("its fingerprint is {found:016x}, that of {owners} owners is {expected:016x}")]
    Fingerprint {
        /// What the file says.
        found: u64,
        /// What it should say.
        expected: u64,
        /// For so many owners.
        owners: u16,
    },
    /// It is a binlog of the other mode.
    #[error(
        "it has a binlog of --legacy ({file}); to take its jobs over into another directory: \
         beanshard import --from {} --dir NEW", dir.display()
    )]
    Legacy {
        /// The directory.
        dir: PathBuf,
        /// One of its files.
        file: String,
    },
    /// It is a directory of the sharded mode, and a binlog was asked for.
    #[error(
        "it has the data of --sharded; to take its jobs over into a binlog: beanshard export \
         --dir {} --to NEW", dir.display()
    )]
    Sharded {
        /// The directory.
        dir: PathBuf,
    },
}

impl Topology {
    fn text(self) -> String {
        let Topology {
            owners,
            fingerprint,
        } = self;
        let fingerprint = fingerprint.0;
        [
            format!("beanshard topology {VERSION}\n"),
            format!("slots {SLOTS}\nowners {owners}\n"),
            format!("fingerprint {fingerprint:016x}\n"),
        ]
        .concat()
    }

    fn parse(text: &str) -> Result<Topology, TopologyError> {
        let mut lines = text.lines();
        let mut value = |key: &str| {
            let line = lines.next().unwrap_or("");
            let value = line
                .strip_prefix(key)
                .and_then(|rest| rest.strip_prefix(' '));
            let line = line.to_owned();
            value
                .map(str::to_owned)
                .ok_or(TopologyError::Unreadable { line })
        };
        let unreadable = |line: &str| TopologyError::Unreadable {
            line: line.to_owned(),
        };
        let (version, slots) = (value("beanshard topology")?, value("slots")?);
        let (owners, fingerprint) = (value("owners")?, value("fingerprint")?);
        if version != VERSION.to_string() {
            return Err(unreadable(&version));
        }
        if slots != SLOTS.to_string() {
            return Err(unreadable(&slots));
        }
        let is_possible = |&owners: &u16| (1..=ShardSet::SHARDS_MAX).contains(&owners.into());
        let parsed = owners.parse().ok().filter(is_possible);
        let fingerprint =
            u64::from_str_radix(&fingerprint, 16).map_err(|_| unreadable(&fingerprint))?;
        Ok(Topology {
            owners: parsed.ok_or_else(|| unreadable(&owners))?,
            fingerprint: Fingerprint(fingerprint),
        })
    }
}

/// What a directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing of ours is in it.
    New,
    /// A binlog of the legacy mode, with this file among its files.
    Legacy(String),
    /// A data directory of the sharded mode.
    Sharded(Topology),
}

/// Looks what the directory is. Nothing is locked.
///
/// # Errors
/// [`WalError::Read`], or [`WalError::Topology`] if the file is none.
pub fn look(dir: &Path) -> Result<Kind, WalError> {
    match fs::read_to_string(dir.join(NAME)) {
        Ok(text) => {
            let topology = Topology::parse(&text);
            return topology
                .map(Kind::Sharded)
                .map_err(|source| wrong(dir, source));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(failed("read", &dir.join(NAME))(source)),
    }
    let mut first = None;
    for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
        let name = entry.map_err(failed("list", dir))?.file_name();
        if let FileName::Segment(number) = FileName::of(&name) {
            first = Some(first.map_or(number, |first: u64| first.min(number)));
        }
    }
    Ok(first.map_or(Kind::New, |first| Kind::Legacy(file_name(first))))
}

/// Refuses a data directory of the sharded mode where a binlog is asked for.
///
/// # Errors
/// [`WalError::Topology`], or [`WalError::Read`].
pub fn refuse_sharded(dir: &Path) -> Result<(), WalError> {
    if dir
        .join(NAME)
        .try_exists()
        .map_err(failed("look for", &dir.join(NAME)))?
    {
        let dir_named = dir.to_owned();
        return Err(wrong(dir, TopologyError::Sharded { dir: dir_named }));
    }
    Ok(())
}

/// A data directory that this process has locked.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Keeps the lock as long as it is open.
    _lock: File,
}

impl DataDir {
    /// Locks the directory, and makes in it what a server of such a topology needs, unless it is
    /// there: folders first, the file that names them last.
    ///
    /// # Errors
    /// [`WalError::Lock`] if it is not there, may not be written to, or is in use;
    /// [`WalError::Topology`] if it is something else or for another topology; [`WalError::Use`].
    pub fn open(path: &Path, topology: Topology) -> Result<DataDir, WalError> {
        let dir = DataDir::lock(path)?;
        match look(path)? {
            Kind::Legacy(file) => {
                let dir = path.to_owned();
                return Err(wrong(path, TopologyError::Legacy { dir, file }));
            }
            Kind::Sharded(found) => check(path, found, topology)?,
            Kind::New => {}
        }
        for index in 0..topology.owners {
            make_folder(&owner_dir(path, index))?;
        }
        dir.write(topology)?;
        Ok(dir)
    }

    /// Locks the directory for this process, until it ends.
    ///
    /// # Errors
    /// [`WalError::Lock`].
    pub fn lock(path: &Path) -> Result<DataDir, WalError> {
        let failed = |step| {
            move |source| WalError::Lock {
                step,
                path: path.to_owned(),
                source,
            }
        };
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(LOCK))
            .map_err(failed("open"))?;
        file::lock(&lock).map_err(failed("fcntl"))?;
        Ok(DataDir {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Puts the file that names the topology in its place. The directory is for that topology from
    /// the moment at which this returns, and what it was before until then.
    ///
    /// # Errors
    /// [`WalError::Use`].
    pub fn write(&self, topology: Topology) -> Result<(), WalError> {
        let text = topology.text();
        if fs::read_to_string(self.path.join(NAME)).is_ok_and(|there| there == text) {
            return Ok(());
        }
        let new = self.path.join(NEW_NAME);
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(FILE_MODE)
                .open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, self.path.join(NAME))?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| WalError::Use {
            step: "write",
            name: NAME.to_owned(),
            source,
        })
    }
}

/// The folder of the owner with this index.
#[must_use]
pub fn owner_dir(dir: &Path, index: u16) -> PathBuf {
    dir.join(format!("owner-{index:03}"))
}

fn make_folder(path: &Path) -> Result<(), WalError> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(WalError::Use {
            step: "make",
            name: path.display().to_string(),
            source: error,
        }),
        _ => Ok(()),
    }
}

fn check(dir: &Path, found: Topology, asked: Topology) -> Result<(), WalError> {
    let wrong = |source| Err(wrong(dir, source));
    if found.owners != asked.owners {
        return wrong(TopologyError::Owners {
            dir: dir.to_owned(),
            made: found.owners,
            asked: asked.owners,
        });
    }
    if found.fingerprint != asked.fingerprint {
        return wrong(TopologyError::Fingerprint {
            found: found.fingerprint.0,
            expected: asked.fingerprint.0,
            owners: found.owners,
        });
    }
    Ok(())
}

fn wrong(dir: &Path, source: TopologyError) -> WalError {
    WalError::Topology {
        path: dir.to_owned(),
        source,
    }
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WalError {
    move |source| WalError::Read {
        step,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn topology(owners: u16) -> Topology {
        Topology {
            owners,
            fingerprint: Fingerprint(0xab0 + u64::from(owners)),
        }
    }

    fn cause(result: Result<DataDir, WalError>) -> TopologyError {
        match result {
            Err(WalError::Topology { source, .. }) => source,
            other => panic!("{other:?}"),
        }
    }

    // Data on disk depends on it.
    #[test]
    fn the_text_is_pinned_and_read_back() {
        let text = "beanshard topology 1\nslots 1024\nowners 4\nfingerprint 0000000000000ab4\n";
        assert_eq!(topology(4).text(), text);
        assert_eq!(Topology::parse(text), Ok(topology(4)));
        for (from, to) in [
            ("topology 1", "topology 2"),
            ("1024", "512"),
            ("owners 4", "owners 0"),
            ("owners 4", "owners 65"),
            ("owners 4\n", ""),
            ("0ab4", "0axx"),
        ] {
            assert!(Topology::parse(&text.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_new_directory_is_made_and_then_kept() {
        let dir = TempDir::new().unwrap();
        assert_eq!(look(dir.path()).unwrap(), Kind::New);
        drop(DataDir::open(dir.path(), topology(2)).unwrap());
        assert!(dir.path().join("owner-001").is_dir());
        assert_eq!(look(dir.path()).unwrap(), Kind::Sharded(topology(2)));
        drop(DataDir::open(dir.path(), topology(2)).unwrap());

        let other = cause(DataDir::open(dir.path(), topology(3)));
        let (made, asked) = (2, 3);
        let (dir, at) = (dir.path().to_owned(), dir.path());
        assert_eq!(other, TopologyError::Owners { dir, made, asked });
        let told = other.to_string();
        let command = format!("beanshard reshard --dir {} --owners 3", at.display());
        assert!(told.ends_with(&command), "{told}");
        assert!(!at.join("owner-002").exists());

        let moved = Topology {
            fingerprint: Fingerprint(1),
            ..topology(2)
        };
        let other = cause(DataDir::open(at, moved));
        assert!(matches!(other, TopologyError::Fingerprint { .. }));
        assert!(refuse_sharded(at).is_err());
    }

    #[test]
    fn a_binlog_of_the_other_mode_is_left_alone() {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("binlog.7"), b"").unwrap();
        refuse_sharded(dir.path()).unwrap();
        let other = cause(DataDir::open(dir.path(), topology(2)));
        assert!(other.to_string().contains("(binlog.7)"), "{other}");
        assert!(!dir.path().join(NAME).exists());
    }
}
