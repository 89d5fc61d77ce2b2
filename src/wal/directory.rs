//! A binlog directory: which files are in it, which are not, and who is using it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sys::file;
use crate::wal::error::WalError;
use crate::wal::segment::{FileName, file_name};

/// What a look at a directory has found.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Numbers of the files, lowest first: the order in which they were written.
    pub numbers: Vec<u64>,
    /// Names that begin like those of files of the binlog and are none, or are no plain files.
    /// Sorted.
    pub odd: Vec<OsString>,
    /// Names of files that were put aside because they are damaged. Sorted.
    pub put_aside: Vec<OsString>,
    /// Lengths, in bytes, of files that are empty and were made for later.
    pub ahead: Vec<u64>,
    /// The process that has the directory locked, as far as could be seen.
    pub lock: Lock,
}

/// Whether a directory is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// By nobody.
    Free,
    /// By this process; 0 if it has no number here. What is read may be under way.
    Held(u32),
    /// The lock's file may not be opened.
    Unknown,
}

impl Directory {
    /// Lists what is in `path`, in the state of this moment. Nothing is locked.
    ///
    /// # Errors
    /// [`WalError::Read`] if it cannot be listed, or its lock not be asked for.
    pub fn look(path: &Path) -> Result<Directory, WalError> {
        let failed = |step| {
            move |source| WalError::Read {
                step,
                path: path.to_owned(),
                source,
            }
        };
        let mut found = Directory {
            path: path.to_owned(),
            numbers: Vec::new(),
            odd: Vec::new(),
            put_aside: Vec::new(),
            ahead: Vec::new(),
            lock: lock(&path.join(LOCK)).map_err(failed("ask for the lock"))?,
        };
        for entry in fs::read_dir(path).map_err(failed("list"))? {
            let entry = entry.map_err(failed("list"))?;
            let name = entry.file_name();
            match FileName::of(&name) {
                FileName::Segment(number) if is_file(&entry.path()) => found.numbers.push(number),
                FileName::Segment(_) | FileName::Odd => found.odd.push(name),
                FileName::PutAside => found.put_aside.push(name),
                // It may have gone meanwhile.
                FileName::Ahead => found.ahead.extend(entry.metadata().map(|data| data.len())),
                FileName::Other => {}
            }
        }
        found.numbers.sort_unstable();
        found.odd.sort_unstable();
        found.put_aside.sort_unstable();
        Ok(found)
    }

    /// Opens the file with this number; nothing if it is gone by now.
    ///
    /// # Errors
    /// [`WalError::Read`].
    pub fn open(&self, number: u64) -> Result<Option<File>, WalError> {
        match File::open(self.path_of(number)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("open", number, error)),
        }
    }

    /// The error of a step that failed with the file of this number.
    #[must_use]
    pub fn failed(&self, step: &'static str, number: u64, source: io::Error) -> WalError {
        WalError::Read {
            step,
            path: self.path_of(number),
            source,
        }
    }

    /// Numbers between the first and the last that have no file, as first and last of each gap.
    /// The original takes them for files that were removed, and goes on.
    pub fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        self.numbers
            .windows(2)
            .filter(|pair| pair[1] - pair[0] > 1)
            .map(|pair| (pair[0] + 1, pair[1] - 1))
    }

    /// What is worth knowing before the files are looked at, a sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let path = self.path.display();
        let lock = match self.lock {
            Lock::Free => None,
            Lock::Held(0) => Some(format!("{path}: in use; what is read may be under way")),
            Lock::Held(pid) => Some(format!(
                "{path}: in use by process {pid}; what is read may be under way"
            )),
            Lock::Unknown => Some(format!("{path}: whether it is in use cannot be seen")),
        };
        let unread = |names: &[OsString], why: &str| {
            let note = |name: &OsString| {
                let name = name.to_string_lossy();
                format!("{}: {why}, not read", name.escape_debug())
            };
            names.iter().map(note).collect::<Vec<_>>()
        };
        let odd = unread(&self.odd, "not a file of the binlog");
        let put_aside = unread(&self.put_aside, "put aside because it is damaged");
        let gaps = self.gaps().map(|(first, last)| {
            let (first, last) = (file_name(first), file_name(last));
            if first == last {
                format!("{first}: missing")
            } else {
                format!("{first} to {last}: missing")
            }
        });
        lock.into_iter()
            .chain(odd)
            .chain(put_aside)
            .chain(gaps)
            .collect()
    }

    fn path_of(&self, number: u64) -> PathBuf {
        self.path.join(file_name(number))
    }
}

/// Whether a plain file is there. Reading anything else might wait for ever.
fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file())
}

fn lock(path: &Path) -> io::Result<Lock> {
    if !is_file(path) {
        return Ok(Lock::Free);
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound => Ok(Lock::Free),
                io::ErrorKind::PermissionDenied => Ok(Lock::Unknown),
                _ => Err(error),
            };
        }
    };
    Ok(file::lock_holder(&file)?.map_or(Lock::Free, Lock::Held))
}

/// The name of the file that a process locks to have the directory for itself.
pub const LOCK: &str = "lock";

/// The mode of that file.
const LOCK_MODE: u32 = 0o600;

/// Locks the directory at `path` for this process, as long as the file is open and no other
/// descriptor of it is closed: see [`file::lock`].
///
/// # Errors
/// [`WalError::Lock`] if it is not there, may not be written to, or is in use.
pub fn lock_folder(path: &Path) -> Result<File, WalError> {
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
        .mode(LOCK_MODE)
        .open(path.join(LOCK))
        .map_err(failed("open"))?;
    file::lock(&lock).map_err(failed("fcntl"))?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_in_the_order_of_their_numbers_and_odd_names_are_told() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["binlog.10", "binlog.9", "binlog.6", "binlog.007", "other"] {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        for name in ["binlog.5.damaged", "ahead.2", "spare", "ahead.x"] {
            fs::write(dir.path().join(name), b"12").unwrap();
        }
        fs::create_dir(dir.path().join("binlog.11")).unwrap();
        let found = Directory::look(dir.path()).unwrap();
        assert_eq!(found.numbers, [6, 9, 10]);
        assert_eq!(found.ahead, [2, 2]);
        assert_eq!(found.lock, Lock::Free);
        assert_eq!(
            found.notes(),
            [
                "binlog.007: not a file of the binlog, not read",
                "binlog.11: not a file of the binlog, not read",
                "binlog.5.damaged: put aside because it is damaged, not read",
                "binlog.7 to binlog.8: missing",
            ]
        );
        assert!(found.open(8).unwrap().is_none());
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = Directory::look(&dir.path().join("no")).unwrap_err();
        assert!(error.to_string().ends_with("/no: cannot list"), "{error}");
    }
}
