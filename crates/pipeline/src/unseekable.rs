//! Files that can be read only once, from the start: pipes, as a shell makes them for `<(COMMAND)`. They are copied first. And directories with the
//! profiles of ranks, which are merged first.

use firsttouch_profile::merge::{Found, find, is_directory, merge_to};
use firsttouch_system::run_directory::RunDirectory;
use firsttouch_system::too_large;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The most that is copied from a pipe, bytes.
const MOST_BYTES: u64 = 4 << 30;

/// A file that can be read several times.
pub(crate) struct Readable {
    path: PathBuf,
    /// The directory of the copy, which is removed in the end.
    copy: Option<RunDirectory>,
    /// The profiles of a directory, which were merged.
    ranks: Option<Found>,
}

impl Readable {
    /// The file itself, or a copy if it is a pipe.
    ///
    /// # Errors
    /// When a pipe cannot be read or copied.
    pub fn of(path: &Path) -> io::Result<Self> {
        if !is_pipe(path) {
            return Ok(Self { path: path.to_owned(), copy: None, ranks: None });
        }
        let folder = RunDirectory::temporary()?;
        let copy = folder.path().join("pipe");
        if io::copy(&mut File::open(path)?.take(MOST_BYTES + 1), &mut File::create(&copy)?)? > MOST_BYTES {
            return Err(too_large(MOST_BYTES));
        }
        Ok(Self { path: copy, copy: Some(folder), ranks: None })
    }

    /// As [`Readable::of`] for a profile, which may also be a directory with the profiles of ranks.
    ///
    /// # Errors
    /// Also when the profiles in a directory cannot be merged.
    pub fn profile(path: &Path) -> io::Result<Self> {
        if !is_directory(path) {
            return Self::of(path);
        }
        let found = find(&[path.to_owned()]).map_err(io::Error::other)?;
        let cannot =
            |error: io::Error| io::Error::new(error.kind(), format!("cannot merge {} in a temporary directory: {error}", path.display()));
        let folder = RunDirectory::temporary().map_err(cannot)?;
        let merged = folder.path().join("merged.ftp");
        merge_to(&found.files, &merged).map_err(io::Error::other)?;
        Ok(Self { path: merged, copy: Some(folder), ranks: Some(found) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a copy of a pipe. Nobody knows who wrote that.
    pub fn is_copy(&self) -> bool {
        self.copy.is_some() && self.ranks.is_none()
    }

    /// The profiles of ranks that it was merged from.
    pub fn ranks(&self) -> Option<&Found> {
        self.ranks.as_ref()
    }
}

/// Whether a file is a pipe, which reading would empty.
#[must_use]
pub fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo())
}
