//! The data directory of the sharded mode: which of its folders is whose, and the file that says
//! for how many owners it was made.
//!
//! ```text
//! DIR/topology      what is below, as text
//! DIR/topology.new  the same, before it takes its place
//! DIR/lock          locked by the supervisor, and by tools that change it
//! DIR/owner-000/    the binlog of owner 0, locked by that owner
//! DIR/owner-001/    ...
//! DIR/owner-000.2/  the same of the second set of folders, and so on
//! ```
//!
//! The file has a line for each thing: `beanshard topology 1`, `slots 1024`, `owners 4`, and
//! `fingerprint` with 16 hexadecimal digits, which the binlogs have too. It is written beside its
//! place and renamed, so that it is never there in part.
//!
//! A tool that makes all binlogs anew puts them into another *set* of folders, and then a line
//! `folders 2` into the file. So that one rename changes the owners, their map and their jobs at
//! once. Folders of other sets than the one that the file names are left-overs: of a tool that was
//! killed, or that had not removed the old ones yet. Whoever has locked the directory removes them.
//! While there is no file yet, one that is ready to take its place says that they are left-overs.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::base::ids::{Fingerprint, ShardSet};
use crate::base::slot::SLOTS;
use crate::wal::directory::{LOCK, lock_folder};
use crate::wal::error::WalError;
use crate::wal::segment::{FileName, file_name};

/// The target of log lines.
const LOG: &str = "data";

/// The version of the layout.
const VERSION: u32 = 1;

/// Name of the file.
const NAME: &str = "topology";

/// Where it is written before it takes its place.
const NEW_NAME: &str = "topology.new";

/// The mode of the file: whoever looks may read it.
const FILE_MODE: u32 = 0o644;

/// What the names of owners' folders begin with.
const FOLDER_PREFIX: &str = "owner-";

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

/// Which of the sets of folders that a directory may have is used. Each tool that makes the binlogs
/// anew makes the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FolderSet(pub u32);

impl FolderSet {
    /// Of a directory that a server has made.
    pub const FIRST: FolderSet = FolderSet(1);

    /// The one after it.
    #[must_use]
    pub fn next(self) -> FolderSet {
        FolderSet(self.0.saturating_add(1))
    }
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// For whom the directory was made.
    pub topology: Topology,
    /// Which folders are theirs.
    pub folders: FolderSet,
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
    /// There are jobs and nothing that says whose.
    #[error("it has folders of owners ({folder}) but no file {NAME}; put that back from a copy")]
    Lost {
        /// One of the folders.
        folder: String,
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

impl Layout {
    fn text(self) -> String {
        let Topology {
            owners,
            fingerprint,
        } = self.topology;
        let fingerprint = fingerprint.0;
        let folders = match self.folders {
            FolderSet::FIRST => String::new(),
            FolderSet(number) => format!("folders {number}\n"),
        };
        [
            format!("beanshard topology {VERSION}\n"),
            format!("slots {SLOTS}\nowners {owners}\n"),
            format!("fingerprint {fingerprint:016x}\n"),
            folders,
        ]
        .concat()
    }

    fn parse(text: &str) -> Result<Layout, TopologyError> {
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
        let topology = Topology {
            owners: parsed.ok_or_else(|| unreadable(&owners))?,
            fingerprint: Fingerprint(fingerprint),
        };
        let folders = match lines.next() {
            None => FolderSet::FIRST,
            Some(line) => {
                let number = line.strip_prefix("folders ").map(str::parse);
                let number = number.and_then(Result::ok).map(FolderSet);
                let later = number.filter(|&set| set > FolderSet::FIRST);
                later.ok_or_else(|| unreadable(line))?
            }
        };
        match lines.next() {
            None => Ok(Layout { topology, folders }),
            Some(line) => Err(unreadable(line)),
        }
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
    Sharded(Layout),
}

/// Looks what the directory is. Nothing is locked.
///
/// # Errors
/// [`WalError::Read`], or [`WalError::Topology`] if the file is none.
pub fn look(dir: &Path) -> Result<Kind, WalError> {
    match fs::read_to_string(dir.join(NAME)) {
        Ok(text) => {
            let layout = Layout::parse(&text);
            return layout
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

/// Refuses a data directory of the sharded mode where a binlog is asked for. What is no directory
/// at all is left to whoever uses it.
///
/// # Errors
/// [`WalError::Topology`].
pub fn refuse_sharded(dir: &Path) -> Result<(), WalError> {
    if dir.join(NAME).is_file() {
        let dir = dir.to_owned();
        return Err(wrong(&dir.clone(), TopologyError::Sharded { dir }));
    }
    Ok(())
}

/// A data directory that this process has locked.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    kind: Kind,
    /// Keeps the lock as long as it is open.
    _lock: File,
}

impl DataDir {
    /// Locks the directory, and makes in it what a server of such a topology needs, unless it is
    /// there: folders first, the file that names them last. What tools have left is removed.
    ///
    /// # Errors
    /// [`WalError::Lock`] if it is not there, may not be written to, or is in use;
    /// [`WalError::Topology`] if it is something else or for another topology; [`WalError::Use`].
    pub fn open(path: &Path, topology: Topology) -> Result<DataDir, WalError> {
        let mut dir = DataDir::lock(path)?;
        match &dir.kind {
            Kind::Legacy(file) => {
                let (dir, file) = (path.to_owned(), file.clone());
                return Err(wrong(path, TopologyError::Legacy { dir, file }));
            }
            Kind::Sharded(found) => check(path, found.topology, topology)?,
            Kind::New => {}
        }
        dir.clean()?;
        for index in 0..topology.owners {
            make_folder(&dir.owner(index))?;
        }
        let folders = dir.folders();
        dir.write(Layout { topology, folders })?;
        Ok(dir)
    }

    /// Locks the directory for this process, until it ends, and looks what it is.
    ///
    /// # Errors
    /// [`WalError::Lock`], or what [`look`] says.
    pub fn lock(path: &Path) -> Result<DataDir, WalError> {
        let lock = lock_folder(path)?;
        Ok(DataDir {
            path: path.to_owned(),
            kind: look(path)?,
            _lock: lock,
        })
    }

    /// What the directory is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The set of folders that is used, or would be.
    #[must_use]
    pub fn folders(&self) -> FolderSet {
        match &self.kind {
            Kind::Sharded(layout) => layout.folders,
            Kind::New | Kind::Legacy(_) => FolderSet::FIRST,
        }
    }

    /// The folder of the owner with this index.
    #[must_use]
    pub fn owner(&self, index: u16) -> PathBuf {
        owner_dir(&self.path, self.folders(), index)
    }

    /// Makes the empty folder of an owner in a set that is not used yet. Returns where it is.
    ///
    /// # Errors
    /// [`WalError::Use`].
    pub fn make_owner_dir(&self, folders: FolderSet, index: u16) -> Result<PathBuf, WalError> {
        let path = owner_dir(&self.path, folders, index);
        make_folder(&path)?;
        Ok(path)
    }

    /// Removes what tools have left that were killed: folders of a set that is not used, and a file
    /// that has not taken its place.
    ///
    /// # Errors
    /// [`WalError::Topology`] if it cannot be known which folders are used; [`WalError::Read`];
    /// [`WalError::Use`].
    pub fn clean(&self) -> Result<(), WalError> {
        let new = self.path.join(NEW_NAME);
        let is_under_way = new.try_exists().map_err(failed("look for", &new))?;
        let used = self.folders();
        for entry in fs::read_dir(&self.path).map_err(failed("list", &self.path))? {
            let name = entry.map_err(failed("list", &self.path))?.file_name();
            if folder_set(&name).is_none_or(|folders| folders == used) {
                continue;
            }
            if self.kind == Kind::New && !is_under_way {
                let folder = name.display().to_string();
                return Err(wrong(&self.path, TopologyError::Lost { folder }));
            }
            let folder = self.path.join(&name);
            log::debug!(target: LOG, "a folder is not used, removed path={}", folder.display());
            remove_folder(&folder)?;
        }
        // Last, because it is what allows the rest.
        if is_under_way {
            self.sync()?;
            fs::remove_file(&new).map_err(used_as("remove", NEW_NAME))?;
        }
        Ok(())
    }

    /// Writes the file beside its place, where it says that a new directory is being filled.
    ///
    /// # Errors
    /// [`WalError::Use`].
    pub fn announce(&self, layout: Layout) -> Result<(), WalError> {
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(FILE_MODE)
                .open(self.path.join(NEW_NAME))?;
            file.write_all(layout.text().as_bytes())?;
            file.sync_all()
        };
        write().map_err(used_as("write", NEW_NAME))?;
        self.sync()
    }

    /// Puts the file that names the topology in its place. The directory is for that topology from
    /// the moment at which this returns, and what it was before until then.
    ///
    /// # Errors
    /// [`WalError::Use`].
    pub fn write(&mut self, layout: Layout) -> Result<(), WalError> {
        if self.kind == Kind::Sharded(layout) {
            return Ok(());
        }
        self.announce(layout)?;
        fs::rename(self.path.join(NEW_NAME), self.path.join(NAME))
            .map_err(used_as("rename", NEW_NAME))?;
        self.sync()?;
        self.kind = Kind::Sharded(layout);
        Ok(())
    }

    /// Sees to it that the names in the directory are on the disk.
    fn sync(&self) -> Result<(), WalError> {
        sync_folder(&self.path)
    }
}

/// Sees to it that the names in a directory are on the disk.
///
/// # Errors
/// [`WalError::Use`].
pub fn sync_folder(path: &Path) -> Result<(), WalError> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(|source| WalError::Use {
        step: "sync",
        name: path.display().to_string(),
        source,
    })
}

/// The folder of the owner with this index in this set.
#[must_use]
pub fn owner_dir(dir: &Path, folders: FolderSet, index: u16) -> PathBuf {
    dir.join(match folders {
        FolderSet::FIRST => format!("{FOLDER_PREFIX}{index:03}"),
        FolderSet(number) => format!("{FOLDER_PREFIX}{index:03}.{number}"),
    })
}

/// The set of folders that a name in a data directory belongs to, if it is that of an owner's.
fn folder_set(name: &OsStr) -> Option<FolderSet> {
    let rest = name.to_str()?.strip_prefix(FOLDER_PREFIX)?;
    let (index, folders) = match rest.split_once('.') {
        None => (rest, FolderSet::FIRST),
        Some((index, number)) => (index, FolderSet(number.parse().ok()?)),
    };
    let index = index.parse().ok()?;
    // Only what would be written so is ours.
    let is_ours = owner_dir(Path::new(""), folders, index).as_os_str() == name;
    is_ours.then_some(folders)
}

/// Removes a folder with a binlog that is not used. What was put aside as damaged, or is not ours,
/// stays, and the folder with it.
///
/// # Errors
/// [`WalError::Read`] if it cannot be listed, [`WalError::Use`].
pub fn remove_folder(path: &Path) -> Result<(), WalError> {
    let failed_on = |path: &Path, source| WalError::Use {
        step: "remove",
        name: path.display().to_string(),
        source,
    };
    for entry in fs::read_dir(path).map_err(failed("list", path))? {
        let name = entry.map_err(failed("list", path))?.file_name();
        let is_ours = match FileName::of(&name) {
            FileName::Segment(_) | FileName::Ahead => true,
            FileName::PutAside | FileName::Odd => false,
            FileName::Other => name == LOCK,
        };
        if is_ours {
            let file = path.join(&name);
            fs::remove_file(&file).map_err(|source| failed_on(&file, source))?;
        }
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let path = path.display();
            log::warn!(target: LOG, "not removed, there is something else in it path={path}");
            Ok(())
        }
        removed => removed.map_err(|source| failed_on(path, source)),
    }
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

fn used_as(step: &'static str, name: &'static str) -> impl FnOnce(io::Error) -> WalError {
    move |source| WalError::Use {
        step,
        name: name.to_owned(),
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

    fn layout(owners: u16, folders: u32) -> Layout {
        Layout {
            topology: topology(owners),
            folders: FolderSet(folders),
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
        assert_eq!(layout(4, 1).text(), text);
        assert_eq!(Layout::parse(text), Ok(layout(4, 1)));
        let rewritten = format!("{text}folders 2\n");
        assert_eq!(layout(4, 2).text(), rewritten);
        assert_eq!(Layout::parse(&rewritten), Ok(layout(4, 2)));
        for (from, to) in [
            ("topology 1", "topology 2"),
            ("1024", "512"),
            ("owners 4", "owners 0"),
            ("owners 4", "owners 65"),
            ("owners 4\n", ""),
            ("0ab4", "0axx"),
        ] {
            assert!(Layout::parse(&text.replace(from, to)).is_err(), "{to}");
        }
        for line in ["folders 1", "folders x", "folders", "else"] {
            let text = format!("{text}{line}\n");
            assert!(Layout::parse(&text).is_err(), "{line}");
        }
        assert!(Layout::parse(&format!("{rewritten}folders 3\n")).is_err());
    }

    #[test]
    fn a_new_directory_is_made_and_then_kept() {
        let dir = TempDir::new().unwrap();
        assert_eq!(look(dir.path()).unwrap(), Kind::New);
        drop(DataDir::open(dir.path(), topology(2)).unwrap());
        assert!(dir.path().join("owner-001").is_dir());
        assert_eq!(look(dir.path()).unwrap(), Kind::Sharded(layout(2, 1)));
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

    fn make(dir: &Path, folders: &[&str]) {
        for folder in folders {
            let folder = dir.join(folder);
            fs::create_dir(&folder).unwrap();
            for file in ["binlog.1", "ahead.1", "spare", LOCK] {
                fs::write(folder.join(file), b"x").unwrap();
            }
        }
    }

    #[test]
    fn folders_that_the_file_does_not_name_are_removed() {
        let dir = TempDir::new().unwrap();
        let at = dir.path();
        let mut made = DataDir::open(at, topology(2)).unwrap();
        make(
            at,
            &["owner-000.2", "owner-007.2", "owner-1.2", "owner-000.02"],
        );
        fs::write(at.join(NEW_NAME), b"").unwrap();
        drop(DataDir::open(at, topology(2)).unwrap());
        for (name, stays) in [
            ("owner-000", true),
            ("owner-001", true),
            ("owner-000.2", false),
            ("owner-007.2", false),
            (NEW_NAME, false),
            // Nobody of us names a folder so.
            ("owner-1.2", true),
            ("owner-000.02", true),
        ] {
            assert_eq!(at.join(name).exists(), stays, "{name}");
        }

        make(at, &["owner-000.2", "owner-001.2", "owner-002.2"]);
        fs::write(at.join("owner-001/binlog.4.damaged"), b"x").unwrap();
        fs::write(at.join("owner-001/binlog.5"), b"x").unwrap();
        made.write(layout(3, 2)).unwrap();
        assert!(at.join("owner-000").exists(), "until somebody looks");
        let again = DataDir::open(at, topology(3)).unwrap();
        assert_eq!(again.owner(2), at.join("owner-002.2"));
        assert!(at.join("owner-002.2/binlog.1").exists());
        assert!(!at.join("owner-000").exists());
        // What is damaged is not for us to destroy.
        assert!(at.join("owner-001/binlog.4.damaged").exists());
        assert!(!at.join("owner-001/binlog.5").exists());
    }

    #[test]
    fn without_the_file_nothing_is_removed_unless_it_was_being_made() {
        let dir = TempDir::new().unwrap();
        let at = dir.path();
        make(at, &["owner-000.2"]);
        let lost = cause(DataDir::open(at, topology(1)));
        assert!(matches!(lost, TopologyError::Lost { .. }), "{lost}");
        assert!(at.join("owner-000.2/binlog.1").exists());
        assert!(!at.join(NAME).exists());

        DataDir::lock(at).unwrap().announce(layout(1, 2)).unwrap();
        drop(DataDir::open(at, topology(1)).unwrap());
        assert!(!at.join("owner-000.2").exists());
        assert_eq!(look(at).unwrap(), Kind::Sharded(layout(1, 1)));
    }
}
