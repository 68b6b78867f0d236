//! What SQLite's failures mean for who runs firsttouch. SQLite names its own state ("database or disk is full"), not what to do.

use firsttouch_model::error::{Error, ErrorKind, Result};
use firsttouch_system::proc::limits;
use rusqlite::ErrorCode;
use std::path::Path;

/// Says which action failed, and why in words.
pub trait InWords<T> {
    /// `path`: the file that is written.
    ///
    /// # Errors
    /// The error of the result, with a message around it.
    fn in_words<M: Into<String>>(self, path: &Path, message: impl FnOnce() -> M) -> Result<T>;
}

impl<T> InWords<T> for std::result::Result<T, rusqlite::Error> {
    fn in_words<M: Into<String>>(self, path: &Path, message: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|error| of(&error, path).unwrap_or_else(|| Error::other(error.to_string())).context(message()))
    }
}

/// `None` if the failure says nothing about the file system.
fn of(error: &rusqlite::Error, path: &Path) -> Option<Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).display();
    let (kind, words) = match error.sqlite_error_code()? {
        // Where files have a limit, SQLite does not tell which of both it is.
        ErrorCode::DiskFull if limits::file_size().is_some() => (
            ErrorKind::Other,
            format!(
                "it cannot grow: raise the limit on file sizes (ulimit -f), or, if the disk is full, make room on the file system of {folder}"
            ),
        ),
        ErrorCode::DiskFull => {
            (ErrorKind::Other, format!("the disk is full: make room on the file system of {folder}, or name a file on another one (-o)"))
        }
        ErrorCode::SystemIoFailure => (
            ErrorKind::Other,
            format!("the file system of {folder} refuses to store more (a quota, a limit on file sizes, or a fault of the disk): {error}"),
        ),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => (
            ErrorKind::PermissionDenied,
            format!("the file, or the folder {folder}, may not be written, or is gone: name a file elsewhere (-o)"),
        ),
        _ => return None,
    };
    Some(Error::new(kind, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    /// Check that failures of the file system are said with the folder and what to do, without SQLite's words for its own state.
    #[test]
    fn failures_in_words() {
        let said = |code| {
            let failed: std::result::Result<(), _> = Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            format!("{:#}", failed.in_words(Path::new("/data/a.ftp"), || "cannot write profile /data/a.ftp").unwrap_err())
        };
        let full = said(ffi::SQLITE_FULL);
        assert!(
            full.starts_with("cannot write profile /data/a.ftp: the disk is full: make room on the file system of /data, or "),
            "{full}"
        );
        assert!(!full.contains("Error code") && !full.contains("database"), "{full}");
        assert!(said(ffi::SQLITE_READONLY).contains("the folder /data, may not be written"));
        assert!(said(ffi::SQLITE_IOERR).contains("refuses to store more"));
        assert!(!said(ffi::SQLITE_CORRUPT).contains("/data,"));
    }
}
