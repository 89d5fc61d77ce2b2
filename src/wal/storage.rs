//! What the binlog needs of a disk: a folder of files that are made at their full length, written
//! in place, and synced in the background. The real one is [`Disk`](crate::wal::disk::Disk); tests
//! have one that fails and forgets.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;

/// A folder with a binlog, which nobody else writes to.
///
/// What was written is read back by whoever opens the folder later, unless the machine stops: then
/// what was not synced may be there, or not, or in parts.
pub trait Storage {
    /// A file that is open for writing. Clones are the same file.
    type File: Clone;
    /// A file that is open for reading, from its start.
    type Reader: Read;

    /// The names in the folder.
    ///
    /// # Errors
    /// What the system reports.
    fn names(&self) -> io::Result<Vec<OsString>>;

    /// Opens a file to be read, and tells its length in bytes.
    ///
    /// # Errors
    /// What the system reports.
    fn read(&self, name: &str) -> io::Result<(Self::Reader, u64)>;

    /// Makes a file of at least `len` bytes, all of them zero and set aside on the disk, so that
    /// writing there does not need more of it. If that fails there is no such file.
    ///
    /// # Errors
    /// What the system reports; [`is_full`] tells the reason that goes away.
    fn create(&mut self, name: &str, len: u64) -> io::Result<Self::File>;

    /// Opens a file to be written.
    ///
    /// # Errors
    /// What the system reports.
    fn open(&mut self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name, at once and whole.
    ///
    /// # Errors
    /// What the system reports.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system reports.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Writes all of `bytes` at this offset. If it fails, any part may have been written.
    ///
    /// # Errors
    /// What the system reports; [`is_full`] tells the reason that goes away.
    fn write(&mut self, file: &Self::File, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts a file to `len` bytes.
    ///
    /// # Errors
    /// What the system reports.
    fn cut(&mut self, file: &Self::File, len: u64) -> io::Result<()>;

    /// Begins to sync all that was written to `files` so far, and the folder's names if `names` is
    /// set. Only one sync is under way at a time.
    fn start_sync(&mut self, files: Vec<Self::File>, names: bool);

    /// What has become of the sync that was begun, if it has ended since this was last asked.
    fn poll_sync(&mut self) -> Option<io::Result<()>>;

    /// Files have been dropped: what they took of the system's limits may be kept for the next
    /// ones.
    fn tend(&mut self) {}

    /// Becomes readable when a sync has ended, if there is such a thing.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Waits for the end of the sync that was begun.
    ///
    /// # Errors
    /// Why the sync has failed. What is on the disk is unknown then.
    fn wait_sync(&mut self) -> io::Result<()>;
}

/// Whether there was no room: something that can be better the next time.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
