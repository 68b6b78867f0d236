//! Folders with the sources of a program that was built elsewhere (`--source-root`). No file outside of them is opened.

use crate::{ErrorKind, PipelineError, Result};
use firsttouch_system::calls::beneath::open_beneath;
use std::fs::File;
use std::path::{Path, PathBuf};

/// `DIR`, or `PREFIX=DIR`: files below PREFIX are below DIR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoot {
    prefix: Option<PathBuf>,
    folder: PathBuf,
}

impl SourceRoot {
    /// # Errors
    /// When it is not a folder.
    pub fn parse(text: &str) -> Result<Self> {
        let (prefix, folder) = match text.split_once('=').filter(|(prefix, _)| prefix.starts_with('/')) {
            Some((prefix, folder)) => (Some(PathBuf::from(prefix)), folder),
            None => (None, text),
        };
        if !Path::new(folder).is_dir() {
            return Err(PipelineError::new(ErrorKind::Folder, format!("cannot use --source-root {text}: {folder} is not a folder")));
        }
        Ok(Self { prefix, folder: folder.into() })
    }

    /// The file that a profile names: below the prefix, or the longest end of its path that is in the folder.
    pub fn open(&self, file: &Path) -> Option<File> {
        if let Some(prefix) = &self.prefix {
            return open_beneath(&self.folder, file.strip_prefix(prefix).ok()?, false).ok();
        }
        let mut rest = file.strip_prefix("/").unwrap_or(file).components();
        while !rest.as_path().as_os_str().is_empty() {
            if let Ok(file) = open_beneath(&self.folder, rest.as_path(), false) {
                return Some(file);
            }
            rest.next();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Check which files are found, and that nothing outside of the folder is.
    #[test]
    fn files_are_found_below_the_folder() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("src");
        fs::create_dir_all(folder.join("lib")).unwrap();
        for (name, text) in [("a.c", "top"), ("lib/a.c", "lib"), ("../secret.c", "secret")] {
            fs::write(folder.join(name), text).unwrap();
        }
        symlink("../../secret.c", folder.join("lib/link.c")).unwrap();
        let read = |root: &SourceRoot, name: &str| root.open(Path::new(name)).and_then(|file| std::io::read_to_string(file).ok());
        let root = SourceRoot::parse(folder.to_str().unwrap()).unwrap();
        assert_eq!(read(&root, "/home/ci/build/lib/a.c").as_deref(), Some("lib"));
        assert_eq!(read(&root, "/home/ci/build/a.c").as_deref(), Some("top"));
        assert_eq!(read(&root, "lib/a.c").as_deref(), Some("lib"));
        for name in ["/home/b.c", "/x/lib/link.c", "/x/../secret.c", "../secret.c", "/", ""] {
            assert_eq!(read(&root, name), None, "{name}");
        }
        let mapped = SourceRoot::parse(&format!("/home/ci={}", folder.display())).unwrap();
        assert_eq!(read(&mapped, "/home/ci/lib/a.c").as_deref(), Some("lib"));
        assert_eq!(read(&mapped, "/home/other/a.c"), None);
        assert!(SourceRoot::parse("/no/such/folder").unwrap_err().to_string().contains("is not a folder"));
    }
}
