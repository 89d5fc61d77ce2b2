//! A binlog that is written at a stretch: a journal that is told of all jobs, and ended.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use crate::base::ids::{Fingerprint, JobId, ShardId};
use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::time::{Nanos, Secs};
use crate::data::Settings;
use crate::data::error::{DataError, of_binlog};
use crate::data::source::len_of;
use crate::engine::host::{Journal, NoRoom, Record};
use crate::engine::job::{JobKey, JobRecord};
use crate::wal::directory::LOCK;
use crate::wal::disk::Disk;
use crate::wal::error::WalError;
use crate::wal::format::Format;
use crate::wal::journal::{self, Sync, Wal};
use crate::wal::recover::Recovery;
use crate::wal::shard_journal::ShardJournal;
use crate::wal::v8::V8;

/// Bytes of records that are gathered until they are handed to the disk.
const GATHER_BYTES: u64 = 1 << 20;

/// See the module's description.
pub(super) struct Target<F: Format> {
    path: PathBuf,
    wal: Wal<Disk, F>,
    jobs: u32,
    /// Up to where records were handed to the disk.
    flushed: u64,
}

/// A pause that goes from one binlog to another.
pub(super) struct Pause {
    pub(super) tube: TubeNameBuf,
    pub(super) length: Secs,
    pub(super) until: Nanos,
}

/// Gives a folder and what is in it to whom the directory around it belongs: a server that gives up
/// its rights has to be able to use what the superuser has made.
fn give_away(path: &Path) -> io::Result<()> {
    let Some(around) = path.parent() else {
        return Ok(());
    };
    let wanted = fs::metadata(around)?;
    let inside = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    // That of the directory around may have been made just now.
    let others = [Ok(path.to_owned()), Ok(around.join(LOCK))];
    for path in others.into_iter().chain(inside) {
        let path = path?;
        let has = fs::metadata(&path)?;
        if has.uid() != wanted.uid() {
            chown(&path, Some(wanted.uid()), Some(wanted.gid()))?;
        }
    }
    Ok(())
}

/// Whose binlog it is, of so many owners.
pub(super) fn format_of(fingerprint: Fingerprint, index: u16) -> V8 {
    V8 {
        fingerprint,
        owner: ShardId(index as u8),
        skip_damage: false,
    }
}

impl<F: Format> Target<F> {
    /// Begins a binlog in the empty folder at `path`.
    pub(super) fn begin(
        format: F,
        path: &Path,
        settings: Settings,
    ) -> Result<Target<F>, DataError> {
        let journal = journal::Settings {
            file_len: settings.file_len,
            sync: Sync::Always,
        };
        let (now, wall) = (settings.now(), settings.wall);
        let begin = || {
            let disk = Disk::lock(path)?;
            Recovery::read_as(format, disk, journal, now, wall, &mut |_| {})?.finish()
        };
        Ok(Target {
            path: path.to_owned(),
            wal: begin().map_err(of_binlog(path))?,
            jobs: 0,
            flushed: 0,
        })
    }

    /// Writes a job.
    pub(super) fn put(
        &mut self,
        job: &JobRecord,
        tube: TubeName<'_>,
        body: &[u8],
    ) -> Result<(), DataError> {
        let room = self.wal.reserve_put(tube, body);
        self.check(room)?;
        let key = JobKey(self.jobs);
        self.jobs += 1;
        self.wal.append(Record::Put {
            key,
            job,
            tube,
            body,
        });
        self.flush(GATHER_BYTES)
    }

    /// Writes a pause.
    pub(super) fn pause(&mut self, pause: &Pause) -> Result<(), DataError> {
        let tube = pause.tube.as_name();
        let room = self.wal.reserve_pause(tube);
        self.check(room)?;
        self.wal.append(Record::Pause {
            tube,
            length: pause.length,
            until: pause.until,
        });
        self.flush(GATHER_BYTES)
    }

    /// Ends it when all is on the disk. Ids up to `highest` have been given. Returns the bytes of
    /// its files.
    pub(super) fn finish(mut self, highest: JobId) -> Result<u64, DataError> {
        let room = self.wal.mark_ids(highest);
        self.check(room)?;
        self.wal.settle();
        self.wal.close();
        let is_kept = self.wal.confirmed() >= self.wal.position();
        self.check(is_kept.then_some(()).ok_or(NoRoom))?;
        let failed = |step| {
            let path = self.path.clone();
            move |source| WalError::Read { step, path, source }
        };
        give_away(&self.path).map_err(failed("change the owner of"))?;
        Ok(len_of(&self.path).map_err(failed("list"))?)
    }

    /// Hands records to the disk if there are so many bytes of them.
    fn flush(&mut self, least: u64) -> Result<(), DataError> {
        let position = self.wal.position().0;
        if position - self.flushed >= least {
            self.flushed = position;
            self.wal.flush();
        }
        self.check(Ok(()))
    }

    fn check(&mut self, room: Result<(), NoRoom>) -> Result<(), DataError> {
        let failure = self.wal.take_failure();
        let source = match (failure, room) {
            (Some(failure), _) => failure,
            (None, Ok(())) => return Ok(()),
            (None, Err(NoRoom)) => WalError::Use {
                step: "write",
                name: "the next file".to_owned(),
                source: io::ErrorKind::StorageFull.into(),
            },
        };
        Err(of_binlog(&self.path)(source))
    }
}
