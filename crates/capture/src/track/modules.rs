//! Files whose code was mapped: which file each name meant then, and those whose static arrays are still to be read.

use hashbrown::HashMap;
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// An executable mapping whose file was not searched for static arrays yet.
pub(super) struct UnreadModule {
    pub pid: i32,
    pub time: u64,
    pub path: PathBuf,
    pub start: u64,
    pub file_offset: u64,
}

#[derive(Default)]
pub struct Modules {
    /// Every module mapped so far, and the identity of its file at that time.
    files: HashMap<String, Option<FileIdentity>>,
    unread: VecDeque<UnreadModule>,
}

impl Modules {
    pub(super) fn add(&mut self, pid: i32, time: u64, start: u64, file_offset: u64, path: &str) {
        self.files.entry(path.to_owned()).or_insert_with(|| identity(path));
        self.unread.push_back(UnreadModule { pid, time, path: path.into(), start, file_offset });
    }

    pub(super) fn next_unread(&mut self) -> Option<UnreadModule> {
        self.unread.pop_front()
    }

    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The process replaced its program.
    pub(super) fn forget_unread(&mut self, pid: i32) {
        self.unread.retain(|module| module.pid != pid);
    }

    /// Whether a library of this name was mapped, of any version: `libfirsttouch.so`.
    #[must_use]
    pub fn has(&self, library: &str) -> bool {
        self.files.keys().any(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with(library)))
    }

    /// Modules whose files were replaced since they were mapped. Their code must not get names from the files of today.
    #[must_use]
    pub fn replaced(&self) -> Vec<String> {
        // A path below /proc/PID shows the mapped file itself, as long as the process lives.
        let is_other = |path: &str, then: Option<FileIdentity>| !path.starts_with("/proc/") && identity(path) != then;
        let mut replaced: Vec<String> =
            self.files.iter().filter(|(path, then)| is_other(path, **then)).map(|(path, _)| path.clone()).collect();
        replaced.sort();
        replaced
    }
}

/// Distinguishes a file from a later one of the same name: device, inode, size, time of the last change.
type FileIdentity = (u64, u64, u64, i64, i64);

fn identity(path: &str) -> Option<FileIdentity> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a library is known by its file name, with any version, and not by the name of a directory.
    #[test]
    fn libraries_are_known_by_name() {
        let mut modules = Modules::default();
        modules.add(1, 0, 0, 0, "/opt/libfirsttouch.so/solver");
        assert!(!modules.has("libfirsttouch.so"));
        modules.add(1, 0, 0, 0, "/opt/lib/libfirsttouch.so.1");
        assert!(modules.has("libfirsttouch.so") && !modules.has("libfirsttouch.so.2"));
    }
}
