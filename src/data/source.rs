//! A binlog that is read and left as it is. What a start would do to the folder seems to be done.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::base::ids::{JobId, ShardId};
use crate::base::name::TubeName;
use crate::base::slot::{SLOTS, Slot};
use crate::data::error::{DataError, of_binlog};
use crate::data::{Settings, Show, Stage, Step};
use crate::session::shards::ShardMap;
use crate::wal::directory::lock_folder;
use crate::wal::error::WalError;
use crate::wal::format::Format;
use crate::wal::journal::{self, Sync};
use crate::wal::recover::{Progress, Recovery};
use crate::wal::segment::FileName;
use crate::wal::storage::Storage;
use crate::wal::topology::{DataDir, Kind, Topology};
use crate::wal::v8::V8;

/// See the module's description.
pub(super) struct Source {
    path: PathBuf,
}

/// The jobs of a binlog, of which none is restored yet.
pub(super) type Found<F> = Recovery<Source, F>;

impl Storage for Source {
    type File = ();
    type Reader = File;

    fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.path)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect()
    }

    fn read(&self, name: &str) -> io::Result<(File, u64)> {
        let file = File::open(self.path.join(name))?;
        let len = file.metadata()?.len();
        Ok((file, len))
    }

    fn create(&mut self, _: &str, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn rename(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, (): &(), _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn cut(&mut self, (): &(), _: u64) -> io::Result<()> {
        Ok(())
    }

    fn start_sync(&mut self, _: Vec<()>, _: bool) {}

    fn poll_sync(&mut self) -> Option<io::Result<()>> {
        None
    }

    fn wait_sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the binlog at `path`, which this process has locked.
pub(super) fn read<F: Format>(
    format: F,
    path: &Path,
    owner: Option<u16>,
    settings: Settings,
    show: Show<'_>,
) -> Result<Found<F>, DataError> {
    let stage = Stage::Read(owner);
    let all = len_of(path).map_err(|source| WalError::Read {
        step: "list",
        path: path.to_owned(),
        source,
    })?;
    let mut report = |progress: Progress| {
        let done = progress.bytes.min(all);
        show(Step::new(stage, done, all));
    };
    report(Progress::default());
    let journal = journal::Settings {
        file_len: settings.file_len,
        sync: Sync::Never,
    };
    let source = Source {
        path: path.to_owned(),
    };
    let (now, wall) = (settings.now(), settings.wall);
    let found = Recovery::read_as(format, source, journal, now, wall, &mut report);
    let found = found.map_err(of_binlog(path))?;
    let files = found.damaged_files();
    if files > 0 && !settings.skip_damage {
        let path = path.to_owned();
        return Err(DataError::Damaged { path, files });
    }
    Ok(found)
}

/// Bytes of the files of the binlog in this folder.
pub(super) fn len_of(path: &Path) -> io::Result<u64> {
    let mut len = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if let FileName::Segment(_) = FileName::of(&entry.file_name()) {
            len += entry.metadata()?.len();
        }
    }
    Ok(len)
}

/// A data directory that is read. It is locked as long as this is there, and so are its binlogs.
pub(super) struct Owners {
    pub(super) dir: DataDir,
    pub(super) topology: Topology,
    pub(super) map: ShardMap,
    _locks: Vec<File>,
}

impl Owners {
    /// Locks all of the directory at `path`, and removes what other runs have left in it.
    pub(super) fn lock(path: &Path) -> Result<Owners, DataError> {
        let dir = DataDir::lock(path)?;
        let topology = match dir.kind() {
            Kind::Sharded(layout) => layout.topology,
            Kind::New | Kind::Legacy(_) => {
                let path = path.to_owned();
                return Err(DataError::NotSharded { path });
            }
        };
        dir.clean()?;
        // A process that has lost its supervisor may still be there for a moment.
        let locks = (0..topology.owners).map(|index| lock_folder(&dir.owner(index)));
        Ok(Owners {
            topology,
            map: ShardMap::new(topology.owners.into()),
            _locks: locks.collect::<Result<_, _>>()?,
            dir,
        })
    }

    /// Reads the binlog of the owner with this index.
    pub(super) fn read(
        &self,
        index: u16,
        settings: Settings,
        show: Show<'_>,
    ) -> Result<Found<V8>, DataError> {
        let format = V8 {
            fingerprint: self.topology.fingerprint,
            owner: ShardId(index as u8),
            skip_damage: settings.skip_damage,
        };
        read(format, &self.dir.owner(index), Some(index), settings, show)
    }
}

/// One of them.
pub(super) struct Owner<'a> {
    pub(super) all: &'a Owners,
    pub(super) index: u16,
}

impl Owner<'_> {
    pub(super) fn id(&self) -> ShardId {
        ShardId(self.index as u8)
    }

    /// Refuses a job that is not where its tube is, or whose id would be looked for elsewhere.
    pub(super) fn check(&self, id: JobId, tube: TubeName<'_>) -> Result<(), DataError> {
        let slot = Slot::of(tube);
        let is_here = self.all.map.of_slot(slot) == self.id();
        if is_here && id.0 % SLOTS == u64::from(slot.0) {
            return Ok(());
        }
        Err(DataError::Misplaced {
            path: self.all.dir.owner(self.index),
            id,
            tube: String::from_utf8_lossy(tube.as_bytes()).into_owned(),
        })
    }
}
