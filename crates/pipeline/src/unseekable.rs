//! Files that can be read only once, from the start: pipes, as a shell makes them for `<(COMMAND)`. They are copied first.

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
}

impl Readable {
    /// The file itself, or a copy if it is a pipe.
    ///
    /// # Errors
    /// When a pipe cannot be read or copied.
    pub fn of(path: &Path) -> io::Result<Self> {
        if !is_pipe(path) {
            return Ok(Self { path: path.to_owned(), copy: None });
        }
        let folder = RunDirectory::temporary()?;
        let copy = folder.path().join("pipe");
        if io::copy(&mut File::open(path)?.take(MOST_BYTES + 1), &mut File::create(&copy)?)? > MOST_BYTES {
            return Err(too_large(MOST_BYTES));
        }
        Ok(Self { path: copy, copy: Some(folder) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_copy(&self) -> bool {
        self.copy.is_some()
    }
}

/// Whether a file is a pipe, which reading would empty.
#[must_use]
pub fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo())
}
