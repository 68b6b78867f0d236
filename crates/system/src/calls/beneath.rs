//! openat2: files below a folder, by paths that never lead out of it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Why a file is not opened: a symbolic link (or `..`) leads out of the folder.
pub const LEADS_OUT: &str = "it leads out of the folder (a symbolic link)";

/// Opens `relative` below `folder` for reading. Symbolic links are followed as long as they stay below it. A FIFO does not wait for its other
/// side. With `is_folder`, only a folder is opened.
///
/// # Errors
/// [`LEADS_OUT`] if it is not below the folder; else when it is missing or the system refuses.
pub fn open_beneath(folder: &Path, relative: &Path, is_folder: bool) -> io::Result<File> {
    let below = File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(folder)?;
    let name = CString::new(relative.as_os_str().as_bytes())?;
    let kind = if is_folder { libc::O_DIRECTORY } else { 0 };
    // SAFETY: an all-zero open_how is valid.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::from((libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY | kind).cast_unsigned());
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: the name ends with NUL, and both it and `how` live until the call returns.
    let opened = unsafe { libc::syscall(libc::SYS_openat2, below.as_raw_fd(), name.as_ptr(), &raw const how, size_of_val(&how)) };
    if opened >= 0 {
        // SAFETY: the call returned a new descriptor, which nothing else owns.
        return Ok(unsafe { File::from_raw_fd(opened as i32) });
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EXDEV) => Err(io::Error::other(LEADS_OUT)),
        // Kernels before Linux 5.6, and sandboxes that do not know the call.
        error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => open_resolved(folder, relative, kind),
        error => Err(error),
    }
}

/// The same by looking where the path leads before it is opened. (Who can change the folder meanwhile can deceive this.)
fn open_resolved(folder: &Path, relative: &Path, kind: i32) -> io::Result<File> {
    let path = folder.join(relative).canonicalize()?;
    if !path.starts_with(folder.canonicalize()?) {
        return Err(io::Error::other(LEADS_OUT));
    }
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | kind).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Check that links are followed below the folder and nowhere else, with and without openat2.
    #[test]
    fn nothing_outside_is_opened() {
        let tree = tempfile::tempdir().unwrap();
        let (inside, outside) = (tree.path().join("inside"), tree.path().join("secret"));
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(inside.join("a/file"), "1").unwrap();
        fs::write(&outside, "2").unwrap();
        symlink("../file", inside.join("a/b/near")).unwrap();
        symlink("../../../secret", inside.join("a/b/relative")).unwrap();
        symlink(&outside, inside.join("absolute")).unwrap();
        symlink("../..", inside.join("a/up")).unwrap();
        for open in [open_beneath, |folder: &Path, relative: &Path, _| open_resolved(folder, relative, 0)] {
            let read = |relative: &str| open(&inside, Path::new(relative), false).and_then(io::read_to_string);
            assert_eq!(read("a/b/near").unwrap(), "1");
            for out in ["a/b/relative", "absolute", "../secret", "a/up/secret"] {
                assert_eq!(read(out).unwrap_err().to_string(), LEADS_OUT, "{out}");
            }
            assert_eq!(read("a/missing").unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }
}
