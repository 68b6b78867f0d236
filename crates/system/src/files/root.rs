//! Reads small files below a root. A missing or unreadable file is `None`; a file that cannot be parsed is an error.

use firsttouch_model::error::{Context, Error, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub struct Root(PathBuf);

impl Root {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    pub fn bytes(&self, relative: &str) -> Option<Vec<u8>> {
        fs::read(self.path(relative)).ok()
    }

    /// The trimmed text of a file; `None` if it does not exist or may not be read.
    pub fn text(&self, relative: &str) -> Result<Option<String>> {
        let path = self.path(relative);
        match fs::read(&path) {
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
