//! The agent library as a private temporary file.

use crate::leftovers;
use crate::run_directory::RunDirectory;
use firsttouch_model::error::{Context, Error, Result};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the library's file.
pub const FILE: &str = "libfirsttouch_agent.so";

/// The unpacked agent; dropping this removes the folder. After `kill -9` of firsttouch the folder stays (the target may still preload
/// it in programs that it executes), and a later run removes it. A process with the agent holds the library.
pub struct Unpacked {
    folder: RunDirectory,
}

impl Unpacked {
    /// Writes the library into a folder only this user can enter, on a file system that allows execution.
    ///
    /// # Errors
    /// When no temporary directory allows it; the profile is then taken without the agent.
    pub fn write(library: &[u8]) -> Result<Self> {
        let mut reasons = Vec::new();
        for parent in candidates() {
            match unpack_into(&parent, library) {
                Ok(folder) => return Ok(Self { folder }),
                Err(error) => reasons.push(format!("{}: {error:#}", parent.display())),
            }
        }
        Err(Error::unsupported(format!(
            "cannot unpack the agent library: {}: set TMPDIR to a directory that allows execution",
            reasons.join("; ")
        )))
    }

    #[must_use]
    pub fn library(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }
}

fn candidates() -> Vec<PathBuf> {
    let mut list = vec![std::env::temp_dir()];
    list.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    list.push(PathBuf::from("/dev/shm"));
    // LD_PRELOAD separates its entries by colons and spaces, so it cannot name such a path.
    list.retain(|p| p.is_absolute() && !p.to_string_lossy().contains([':', ' ']));
    list
}

fn unpack_into(parent: &Path, library: &[u8]) -> Result<RunDirectory> {
    if forbids_execution(parent) {
        return Err(Error::unsupported("mounted noexec"));
    }
    leftovers::remove_old_runs(parent);
    let folder = RunDirectory::create_in(parent)?;
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o500)
        .open(folder.path().join(FILE))
        .and_then(|mut f| std::io::Write::write_all(&mut f, library))
        .context("cannot write the library")?;
    Ok(folder)
}

pub(super) fn forbids_execution(path: &Path) -> bool {
    let Ok(name) = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()) else { return true };
    // SAFETY: statvfs is plain data, filled by the call; the name ends with NUL.
    unsafe {
        let mut info: libc::statvfs = std::mem::zeroed();
        libc::statvfs(name.as_ptr(), &mut info) != 0 || info.f_flag & libc::ST_NOEXEC != 0
    }
}
