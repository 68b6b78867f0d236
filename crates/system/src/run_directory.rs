//! A directory for the files of one run, which only this user can enter. It is held (`claim.rs`) while the run needs it, so that
//! `firsttouch clean` leaves it alone, and removed at the end. After `kill -9` it stays until `clean` or the next run of the same user removes it.

use crate::calls::claim::hold;
use crate::calls::clock::monotonic_ns;
use crate::calls::identity;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The start of the names in directories that others use too.
pub(crate) const PREFIX: &str = "firsttouch-";
/// The file in it that is held.
const LOCK: &str = "lock";

#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    _lock: File,
}

impl RunDirectory {
    /// A directory in the system's directory for temporary files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn temporary() -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    /// # Errors
    /// When it cannot be made.
    pub fn create_in(parent: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (user, number) = (identity::user_and_group().0, NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = parent.join(format!("{PREFIX}{user}-{}-{:x}{number:x}", std::process::id(), monotonic_ns()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::options().read(true).write(true).create_new(true).open(path.join(LOCK)).inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        })?;
        hold(&lock);
        Ok(Self { path, _lock: lock })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
