//! fcntl(F_OFD_SETLK): one process claims a file for itself, until it closes the file or ends.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The byte before those that SQLite locks (PENDING_BYTE, 0x40000000), so that a claim never meets SQLite's own locks.
const BYTE: libc::off_t = 0x3fff_ffff;

/// Claims a file. Returns false if another process, or another open file of this process, has claimed it. File systems without locks
/// cannot tell: there, every claim succeeds.
///
/// Close the file only after every SQLite connection to it: closing a file gives up all of SQLite's locks on it (fcntl(2)).
#[must_use]
pub fn claim(file: &File) -> bool {
    // Only a file that is open for writing can be claimed exclusively.
    try_lock(file, libc::F_WRLCK).or_else(|_| try_lock(file, libc::F_RDLCK)).unwrap_or(true)
}

fn try_lock(file: &File, kind: libc::c_int) -> io::Result<bool> {
    // SAFETY: flock is plain data; all zero is valid, and the fields that matter are set.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    (lock.l_start, lock.l_len) = (BYTE, 1);
    // SAFETY: the descriptor is open, and the call only reads the lock.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a file has one claim at a time, and that closing it ends the claim.
    #[test]
    fn a_claim_is_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "").unwrap();
        let open = || File::options().read(true).write(true).open(&path).unwrap();
        let first = open();
        assert!(claim(&first));
        assert!(!claim(&open()));
        assert!(!claim(&File::open(&path).unwrap()), "also for a file that is open for reading only");
        drop(first);
        assert!(claim(&open()));
    }
}
