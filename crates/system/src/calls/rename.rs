//! renameat2: renames that replace nothing by accident.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Exchanges two files in one step: at no time does either name lead nowhere.
///
/// # Errors
/// `Unsupported` on file systems that cannot (some network ones); else when one is missing or the system refuses.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    rename(one, other, libc::RENAME_EXCHANGE)
}

/// Renames a file, unless the new name is taken.
///
/// # Errors
/// `AlreadyExists` if it is; else when the system refuses.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rename(from, to, libc::RENAME_NOREPLACE) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        done => return done,
    }
    // A link fails as well if the name is taken.
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // This file system has no links either.
        Err(_) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
        Err(error) => Err(error),
    }
}

fn rename(from: &Path, to: &Path, flags: libc::c_uint) -> io::Result<()> {
    let [from, to] = [CString::new(from.as_os_str().as_bytes())?, CString::new(to.as_os_str().as_bytes())?];
    // SAFETY: both names end with NUL and live until the call returns.
    if unsafe { libc::syscall(libc::SYS_renameat2, libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), flags) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // The file system does not know the flag, or the kernel the call.
    let is_unknown = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP));
    Err(if is_unknown { io::ErrorKind::Unsupported.into() } else { error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that an exchange swaps two files, and that a rename to a taken name is an error that changes nothing.
    #[test]
    fn nothing_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(name));
        fs::write(&a, "1").unwrap();
        fs::write(&b, "2").unwrap();
        exchange(&a, &b).unwrap();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&a), read(&b)), ("2".to_owned(), "1".to_owned()));
        assert_eq!(exchange(&a, &c).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(rename_new(&a, &b).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((read(&a), read(&b)), ("2".to_owned(), "1".to_owned()));
        rename_new(&a, &c).unwrap();
        assert!(read(&c) == "2" && !a.exists());
    }
}
