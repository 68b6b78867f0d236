//! Reads small files below a root. A missing or unreadable file is `None`; a file that cannot be parsed is an error.
//!
//! A root other than `/` is a recorded tree, which may come from anywhere: nothing outside of it is read, nothing but regular files, and only so
//! much of them as /proc and /sys have.

use crate::calls::beneath::open_beneath;
use firsttouch_model::error::{Context, Error, Result};
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The largest file of a recorded tree that is read, bytes: /proc/PID/smaps of a large process.
const MOST_BYTES: u64 = 64 << 20;

pub struct Root(PathBuf);

impl Root {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    pub fn bytes(&self, relative: &str) -> Option<Vec<u8>> {
        self.read(relative).ok()
    }

    fn is_recorded(&self) -> bool {
        self.0 != Path::new("/")
    }

    fn read(&self, relative: &str) -> io::Result<Vec<u8>> {
        if !self.is_recorded() {
            return fs::read(self.path(relative));
        }
        let file = open_beneath(&self.0, Path::new(relative), false)?;
        match file.metadata()? {
            about if about.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            about if !about.is_file() => return Err(io::Error::other("it is not a regular file")),
            _ => {}
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
        }
        Ok(bytes)
    }

    fn entries(&self, relative: &str) -> io::Result<fs::ReadDir> {
        if !self.is_recorded() {
            return fs::read_dir(self.path(relative));
        }
        let folder = open_beneath(&self.0, Path::new(relative), true)?;
        fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
    }

    /// The names in a folder.
    pub fn names(&self, relative: &str) -> io::Result<Vec<String>> {
        Ok(self.entries(relative)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// The names of the folders in a folder, without links; `Err` holds a name that is no text, as it can be shown.
    pub fn folders(&self, relative: &str) -> io::Result<Vec<std::result::Result<String, String>>> {
        let folders = self.entries(relative)?.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        Ok(folders.map(|entry| entry.file_name().into_string().map_err(|name| name.to_string_lossy().into_owned())).collect())
    }

    /// The trimmed text of a file; `None` if it does not exist or may not be read.
    pub fn text(&self, relative: &str) -> Result<Option<String>> {
        let path = self.path(relative);
        match self.read(relative) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes).map_err(|_| Error::invalid_data("not text"));
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                Ok(Some(text.trim().to_owned()))
            }
            Err(error) if absent(&error) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    pub fn number<T: std::str::FromStr>(&self, relative: &str) -> Result<Option<T>> {
        let Some(text) = self.text(relative)? else { return Ok(None) };
        let number = text.parse().map_err(|_| Error::invalid_data(format!("expected a number, found {text:?}")));
        number.map(Some).with_context(|| format!("cannot read {}", self.path(relative).display()))
    }
}

/// Containers hide, mask or forbid single files of /proc and /sys; such files count as missing.
fn absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied, Unsupported};
    matches!(error.kind(), NotFound | PermissionDenied | NotADirectory | IsADirectory | Unsupported | InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    /// Check that a recorded tree can neither show files outside of it nor make firsttouch wait or read for ever.
    #[test]
    fn recorded_trees_are_confined() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::new(tree.path());
        fs::write(tree.path().join("file"), "7\n").unwrap();
        symlink("file", tree.path().join("near")).unwrap();
        symlink("/etc/passwd", tree.path().join("passwd")).unwrap();
        symlink("/dev/zero", tree.path().join("zero")).unwrap();
        symlink("/etc", tree.path().join("etc")).unwrap();
        assert!(Command::new("mkfifo").arg(tree.path().join("fifo")).status().unwrap().success());
        let large = fs::File::create(tree.path().join("large")).unwrap();
        large.set_len(MOST_BYTES + 1).unwrap();
        assert_eq!(root.number::<u32>("near").unwrap(), Some(7));
        for (name, why) in [
            ("passwd", "it leads out of the folder"),
            ("zero", "it leads out of the folder"),
            ("etc/passwd", "it leads out of the folder"),
            ("fifo", "it is not a regular file"),
            ("large", "it is larger than 64 MiB"),
        ] {
            let error = root.text(name).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(name) && error.root_cause().to_string().contains(why), "{name}: {text}: {}", error.root_cause());
            assert_eq!(root.bytes(name), None);
        }
        assert!(root.names("etc").is_err() && root.names(".").unwrap().contains(&"file".to_owned()));
    }
}
