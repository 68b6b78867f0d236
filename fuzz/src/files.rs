//! Files made from an input, in memory (/dev/shm); removed when dropped.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The most files, and the deepest folders: more would only cost time.
const MOST_FILES: usize = 600;
const DEEPEST: usize = 14;

fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    base.join(format!("firsttouch-fuzz.{}", std::process::id()))
}

/// One file.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = folder();
        fs::create_dir_all(&folder).expect("a folder in memory");
        let path = folder.join(name);
        fs::write(&path, bytes).expect("a file in memory");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(folder());
    }
}

/// A tree of files such as /proc and /sys. A line `@PATH` of the input begins a file, which ends at the next such line.
pub struct Tree(PathBuf);

impl Tree {
    /// The files of `always`, then those of the input.
    pub fn new(always: &[(&str, &[u8])], input: &[u8]) -> Self {
        let tree = Self(folder().join("root"));
        fs::create_dir_all(&tree.0).expect("a folder in memory");
        for (path, bytes) in always {
            tree.write(Path::new(path), bytes);
        }
        let mut files: Vec<(&[u8], &[u8])> = Vec::new();
        let mut rest = input;
        while let Some(named) = rest.strip_prefix(b"@") {
            let (path, after) = cut(named, b"\n");
            let (bytes, next) = cut(after, b"\n@");
            // The rest begins after the @ that the split removed.
            rest = if next.is_empty() { &[] } else { &after[bytes.len() + 1..] };
            files.push((path, bytes));
        }
        for (path, bytes) in files.into_iter().take(MOST_FILES) {
            tree.write(Path::new(OsStr::from_bytes(path)), bytes);
        }
        tree
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file below the root; skips paths that lead elsewhere or are impossible.
    fn write(&self, path: &Path, bytes: &[u8]) {
        let parts: Vec<Component> = path.components().collect();
        if parts.is_empty() || parts.len() > DEEPEST || !parts.iter().all(|part| matches!(part, Component::Normal(_))) {
            return;
        }
        let path = self.0.join(path);
        if path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok()) {
            let _ = fs::write(path, bytes);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(folder());
    }
}

fn cut<'a>(bytes: &'a [u8], at: &[u8]) -> (&'a [u8], &'a [u8]) {
    match bytes.windows(at.len()).position(|window| window == at) {
        Some(place) => (&bytes[..place], &bytes[place + at.len()..]),
        None => (bytes, &[]),
    }
}
