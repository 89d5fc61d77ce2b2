//! The real storage: a folder that this process has locked.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sys::file;
use crate::wal::directory::lock_folder;
use crate::wal::error::WalError;
use crate::wal::storage::Storage;
use crate::wal::syncer::Syncer;

/// See the module's description.
pub struct Disk {
    path: PathBuf,
    /// The folder itself, to be synced.
    folder: Arc<File>,
    /// Keeps the lock as long as it is open.
    _lock: File,
    syncer: Syncer,
    /// Descriptors that are closed for a moment when a file is to be opened, so that clients cannot
    /// take the last one.
    spare: Vec<File>,
}

/// Files that may be open for writing at once, besides the one that always is: those before it
/// until they are synced, and one that is being made.
const SPARE_DESCRIPTORS: usize = 4;

/// Files are made in whole blocks of so many bytes, as the original does.
const BLOCK_LEN: u64 = 4096;

/// The mode of a file of the binlog: nobody has to change it by hand.
const FILE_MODE: u32 = 0o400;

impl Disk {
    /// Locks the folder at `path` for this process, until it ends.
    ///
    /// # Errors
    /// [`WalError::Lock`] if it is not there, may not be written to, or is in use.
    pub fn lock(path: &Path) -> Result<Disk, WalError> {
        let failed = |step| {
            move |source| WalError::Lock {
                step,
                path: path.to_owned(),
                source,
            }
        };
        let lock = lock_folder(path)?;
        let folder = Arc::new(File::open(path).map_err(failed("open"))?);
        let mut disk = Disk {
            path: path.to_owned(),
            folder,
            _lock: lock,
            syncer: Syncer::start().map_err(failed("start a thread"))?,
            spare: Vec::new(),
        };
        disk.refill();
        Ok(disk)
    }

    /// Opens a file with a descriptor that was kept for it.
    fn open_with(&mut self, options: &OpenOptions, name: &str) -> io::Result<File> {
        self.refill();
        self.spare.pop();
        options.open(self.path.join(name))
    }

    /// Takes descriptors to be kept, as far as there are any.
    fn refill(&mut self) {
        while self.spare.len() < SPARE_DESCRIPTORS
            && let Ok(one) = self.folder.try_clone()
        {
            self.spare.push(one);
        }
    }
}

impl Storage for Disk {
    type File = Arc<File>;
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

    fn create(&mut self, name: &str, len: u64) -> io::Result<Arc<File>> {
        let options = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .to_owned();
        let made = self.open_with(&options, name)?;
        if let Err(error) = file::set_aside(&made, len.next_multiple_of(BLOCK_LEN)) {
            drop(made);
            // The first error is the one that matters.
            let _ = fs::remove_file(self.path.join(name));
            self.refill();
            return Err(error);
        }
        Ok(Arc::new(made))
    }

    fn open(&mut self, name: &str) -> io::Result<Arc<File>> {
        let options = OpenOptions::new().write(true).to_owned();
        let opened = match self.open_with(&options, name) {
            // The mode allows it to the superuser alone, but it is the owner's to change.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let set =
                    |mode| fs::set_permissions(self.path.join(name), Permissions::from_mode(mode));
                set(FILE_MODE | 0o200)?;
                let opened = options.open(self.path.join(name));
                set(FILE_MODE)?;
                opened
            }
            opened => opened,
        };
        opened.map(Arc::new)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn write(&mut self, file: &Arc<File>, at: u64, bytes: &[u8]) -> io::Result<()> {
        file.write_all_at(bytes, at)
    }

    fn cut(&mut self, file: &Arc<File>, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    fn start_sync(&mut self, mut files: Vec<Arc<File>>, names: bool) {
        if names {
            files.push(Arc::clone(&self.folder));
        }
        self.syncer.start_sync(files);
    }

    fn poll_sync(&mut self) -> Option<io::Result<()>> {
        self.syncer.poll()
    }

    fn tend(&mut self) {
        self.refill();
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.syncer.wake_fd())
    }

    fn wait_sync(&mut self) -> io::Result<()> {
        self.syncer.wait()
    }
}
