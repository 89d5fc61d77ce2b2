//! Files: locks on them, and space that is set aside for them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Locks the whole of `file`, which must be open for writing, for this process alone, and does not
/// wait for others. The lock is gone when the process ends or closes *any* descriptor of this file.
///
/// It is the record lock of POSIX, which is the kind that the original takes.
///
/// # Errors
/// What `fcntl` reports; that of a lock which another process holds says that the resource is
/// temporarily unavailable.
pub fn lock(file: &File) -> io::Result<()> {
    let mut lock = whole_file();
    // SAFETY: `file` is open, and `lock` outlives the call.
    let rc = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw mut lock) };
    if rc == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sets aside the first `len` bytes of `file`, which is empty: they are zero, and writing there
/// does not need more of the disk.
///
/// # Errors
/// What the system reports. The file may be of any length up to `len` then.
pub fn set_aside(file: &File, len: u64) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    {
        use nix::errno::Errno;
        let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        match nix::fcntl::posix_fallocate(file, 0, len) {
            Ok(()) => return Ok(()),
            // Not every file system can.
            Err(Errno::EINVAL | Errno::EOPNOTSUPP | Errno::ENOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let zeros = [0; 64 * 1024];
    let mut at = 0;
    while at < len {
        let piece = (len - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..piece as usize], at)?;
        at += piece;
    }
    Ok(())
}

/// The process that holds a record lock on `file` which would keep others from locking it, if
/// there is one. It is 0 if the system does not know it by a number here.
///
/// Only asks, and locks nothing. Do not call it in a process that holds such a lock on the same
/// file itself: closing `file` would give that up.
///
/// # Errors
/// What `fcntl` reports.
pub fn lock_holder(file: &File) -> io::Result<Option<u32>> {
    let mut lock = whole_file();
    // SAFETY: `file` is open, and `lock` outlives the call.
    let rc = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    if rc == -1 {
        return Err(io::Error::last_os_error());
    }
    let is_free = lock.l_type == libc::F_UNLCK as libc::c_short;
    Ok((!is_free).then(|| u32::try_from(lock.l_pid).unwrap_or(0)))
}

/// An exclusive lock on all of a file.
fn whole_file() -> libc::flock {
    // SAFETY: the structure is numbers only, for which zeros are values.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // The constants are of different types on different systems, and all fit the field.
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_zero() {
        let file = tempfile::tempfile().unwrap();
        set_aside(&file, 70_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 70_000);
        let mut bytes = vec![1; 70_000];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_lock_of_our_own_is_in_nobodys_way_here() {
        let file = tempfile::tempfile().unwrap();
        lock(&file).unwrap();
        lock(&file).unwrap();
    }

    #[test]
    fn a_file_that_nobody_has_locked_has_no_holder() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(lock_holder(&file).unwrap(), None);
    }
}
