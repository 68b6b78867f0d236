// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A small file system that can be full.

use crate::process::run;
use crate::skip::{is_root, lacks_tools, skipped};
use crate::tool::temporary_directory;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A separate small file system, which is unmounted when dropped.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts one, or reports that `test` is skipped.
    pub fn mount(test: &str, bytes: u64) -> Option<Self> {
        if !is_root() || lacks_tools(test, &["mount", "umount"]) {
            if !is_root() {
                skipped(test, "only root may mount a small tmpfs");
            }
            return None;
        }
        let directory = temporary_directory();
        let size = format!("size={bytes}");
        let mounted = run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory.path()));
        if mounted.status != 0 {
            skipped(test, &format!("tmpfs cannot be mounted: {}", mounted.stderr_text()));
            return None;
        }
        Some(SmallDisk(directory))
    }

    /// Fills all free space.
    ///
    /// # Panics
    /// If no file can be made on it.
    pub fn fill(&self) {
        let mut filler = fs::File::create(self.0.path().join("filler")).expect("the filler is made");
        for block in [vec![0; 4096], vec![0; 1]] {
            while filler.write_all(&block).is_ok() {}
        }
    }

    /// Makes room again.
    pub fn empty(&self) {
        let _ = fs::remove_file(self.0.path().join("filler"));
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Unmount lazily, because a target that is still running may use it.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
