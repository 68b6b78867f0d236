//! Lines of source files, each file read once.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Larger files are not read as source code, bytes.
const LARGEST_FILE: u64 = 8 << 20;

/// Source files by path. Relative paths are relative to the current directory. Missing or too large files have no lines.
#[derive(Default)]
pub struct SourceCache {
    files: HashMap<PathBuf, Option<Source>>,
    /// Files changed later are not the ones that the program was built from.
    newest: Option<SystemTime>,
    changed: Vec<PathBuf>,
}

struct Source {
    text: String,
    /// The range of each line in the text, without its line end.
    lines: Vec<Range<usize>>,
}

impl Source {
    fn read(path: &Path) -> Option<Self> {
        // Check the file before opening it: opening a FIFO would wait, and so would reading some files of /proc.
        fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let mut bytes = Vec::new();
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > LARGEST_FILE {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut start = 0;
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            lines.push(start..start + line.trim_end_matches(['\n', '\r']).len());
            start += line.len();
        }
        Some(Self { text, lines })
    }

    fn line(&self, index: usize) -> Option<&str> {
        self.text.get(self.lines.get(index)?.clone())
    }
}

impl SourceCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty cache that ignores files changed after `newest`: their lines may have moved.
    #[must_use]
    pub fn until(newest: SystemTime) -> Self {
        Self { newest: Some(newest), ..Self::default() }
    }

    /// Requested files that have changed since, in the order of the requests.
    #[must_use]
    pub fn changed(&self) -> &[PathBuf] {
        &self.changed
    }

    fn is_changed(&self, file: &Path) -> bool {
        let modified = || fs::metadata(file).and_then(|meta| meta.modified()).ok();
        self.newest.is_some_and(|newest| modified().is_some_and(|modified| modified > newest))
    }

    /// The text of a line; lines count from 1.
    pub fn line(&mut self, file: &Path, line: u32) -> Option<&str> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        self.source(file)?.line(index)
    }

    /// The lines from `radius` before to `radius` after a line, and its index among them: the input of [`crate::variable_near`].
    pub fn window(&mut self, file: &Path, line: u32, radius: usize) -> Option<(Vec<&str>, usize)> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let source = self.source(file)?;
        source.line(index)?;
        let first = index.saturating_sub(radius);
        let lines = (first..=index.saturating_add(radius)).map_while(|index| source.line(index));
        Some((lines.collect(), index - first))
    }

    fn source(&mut self, file: &Path) -> Option<&Source> {
        if !self.files.contains_key(file) {
            let changed = self.is_changed(file);
            if changed {
                self.changed.push(file.to_owned());
            }
            self.files.insert(file.to_owned(), if changed { None } else { Source::read(file) });
        }
        self.files.get(file)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn lines_of_files() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a.c"), b"one\r\ntwo\n\nf\xfcnf").unwrap();
        fs::write(path("empty"), b"").unwrap();
        File::create(path("large")).unwrap().set_len(LARGEST_FILE + 1).unwrap();
        let mut cache = SourceCache::new();
        for (line, text) in
            [(0, None), (1, Some("one")), (2, Some("two")), (3, Some("")), (4, Some("f\u{fffd}nf")), (5, None), (u32::MAX, None)]
        {
            assert_eq!(cache.line(&path("a.c"), line), text);
        }
        for name in ["empty", "large", "missing", "."] {
            assert_eq!(cache.line(&path(name), 1), None, "{name}");
        }
        assert_eq!(cache.window(&path("a.c"), 2, 1), Some((vec!["one", "two", ""], 1)));
        assert_eq!(cache.window(&path("a.c"), 1, 9).unwrap().1, 0);
        assert_eq!(cache.window(&path("a.c"), 5, 1), None);
        // Read once.
        fs::remove_file(path("a.c")).unwrap();
        assert_eq!(cache.line(&path("a.c"), 1), Some("one"));
        // Tests run in the crate's directory.
        assert_eq!(cache.line(Path::new("Cargo.toml"), 1), Some("[package]"));
    }
}
