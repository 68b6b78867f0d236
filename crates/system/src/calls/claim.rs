//! fcntl(F_OFD_SETLK): one process claims a file for itself, or several hold it, until they close the file or end. Other containers see these
//! locks, and other hosts on file systems that share locks.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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

/// Holds a file together with others, so that nobody removes it. As the preloaded libraries do (native/preload/hold.h).
pub fn hold(file: &File) {
    // A file system without locks cannot tell; there, the age of the file counts.
    let _ = try_lock(file, libc::F_RDLCK);
}

/// Whether a process has claimed the file or holds it; `None` if that cannot be told.
#[must_use]
pub fn is_held(path: &Path) -> Option<bool> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path).ok()?;
    let mut lock = lock_of(libc::F_WRLCK);
    // SAFETY: the descriptor is open, and the call writes to the lock only.
    let is_told = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) } == 0;
    is_told.then_some(lock.l_type != libc::F_UNLCK as libc::c_short)
}

fn lock_of(kind: libc::c_int) -> libc::flock {
    // SAFETY: flock is plain data; all zero is valid, and the fields that matter are set.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    (lock.l_start, lock.l_len) = (BYTE, 1);
    lock
}

fn try_lock(file: &File, kind: libc::c_int) -> io::Result<bool> {
    let lock = lock_of(kind);
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
        assert_eq!(is_held(&path), Some(true));
        drop(first);
        assert!(claim(&open()));
        assert_eq!((is_held(&path), is_held(&folder.path().join("b"))), (Some(false), None));
    }

    /// Check that a file is held until the last mapping of it ends, also after its descriptor is closed, as by the preloaded libraries.
    #[test]
    fn mappings_hold_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "x").unwrap();
        let (one, other) = (File::open(&path).unwrap(), File::open(&path).unwrap());
        hold(&one);
        hold(&other);
        drop(other);
        assert_eq!(is_held(&path), Some(true));
        let mapping = crate::calls::mapped_file::map(&one).unwrap();
        drop(one);
        assert_eq!((is_held(&path), &*mapping), (Some(true), &b"x"[..]));
        drop(mapping);
        assert_eq!(is_held(&path), Some(false));
    }
}
