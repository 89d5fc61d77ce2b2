//! Files: who holds the lock on one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The process that holds a record lock on `file` which would keep others from locking it, if
/// there is one. It is 0 if the system does not know it by a number here.
///
/// Only asks, and locks nothing. Do not call it in a process that holds such a lock on the same
/// file itself: closing `file` would give that up.
///
/// # Errors
/// What `fcntl` reports.
pub fn lock_holder(file: &File) -> io::Result<Option<u32>> {
    // SAFETY: the structure is numbers only, for which zeros are values.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // The constants are of different types on different systems, and all fit the field.
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: `file` is open, and `lock` outlives the call.
    let rc = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    if rc == -1 {
        return Err(io::Error::last_os_error());
    }
    let is_free = lock.l_type == libc::F_UNLCK as libc::c_short;
    Ok((!is_free).then(|| u32::try_from(lock.l_pid).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_has_locked_has_no_holder() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(lock_holder(&file).unwrap(), None);
    }
}
