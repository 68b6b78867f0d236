//! Files that can be read only once, from the start: pipes, as a shell makes them for `<(COMMAND)`. They are copied first.

use firsttouch_system::run_directory::RunDirectory;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

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
        io::copy(&mut File::open(path)?, &mut File::create(&copy)?)?;
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
