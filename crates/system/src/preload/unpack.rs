//! The agent library as a private temporary file.

use crate::calls::identity;
use firsttouch_model::error::{Context, Error, Result};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Name of the library's file.
pub const FILE: &str = "libfirsttouch_agent.so";
const PREFIX: &str = "firsttouch-";

/// The unpacked agent; dropping this removes the folder. After `kill -9` of firsttouch the folder stays (the target may still preload
/// it in programs that it executes), and a later run removes it.
pub struct Unpacked {
    folder: PathBuf,
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
        self.folder.join(FILE)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
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

fn unpack_into(parent: &Path, library: &[u8]) -> Result<PathBuf> {
    if forbids_execution(parent) {
        return Err(Error::unsupported("mounted noexec"));
    }
    remove_stale(parent);
    let (user, _) = identity::user_and_group();
    let folder = parent.join(format!("{PREFIX}{user}-{}-{:x}", std::process::id(), crate::calls::clock::monotonic_ns()));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let file = folder.join(FILE);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o500)
        .open(&file)
        .and_then(|mut f| std::io::Write::write_all(&mut f, library));
    if let Err(error) = written {
        let _ = fs::remove_dir_all(&folder);
        return Err(error).context("cannot write the library");
    }
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

/// Removes folders of this user whose firsttouch has ended (name: firsttouch-UID-PID-TIME).
fn remove_stale(parent: &Path) {
    let mine = format!("{PREFIX}{}-", identity::user_and_group().0);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(&mine).and_then(|rest| rest.split('-').next()?.parse::<i32>().ok()) else { continue };
        let old = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok()).is_some_and(|age| age.as_secs() > 86_400);
        // A target that outlived its firsttouch may still exec with this library preloaded: remove only folders older than a day.
        if old && !crate::launch::signals::process_exists(pid) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
