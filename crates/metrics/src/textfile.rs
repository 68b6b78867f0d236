//! A file for node_exporter's textfile collector. It holds the old metrics or the new ones, whole, at any time: the collector may read it at any time.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The first bytes of a file that this command wrote.
const START: &str = "# HELP firsttouch_";
/// node_exporter may run as another user.
const MODE: u32 = 0o644;

/// Replaces the file. A link stays, and what it points to is replaced; pipes and devices are written to.
///
/// # Errors
/// When another kind of file is already there, or the system refuses: then the old file is unchanged.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Ok(old) if old.is_file() => Some(old),
        Ok(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => return File::options().write(true).open(path)?.write_all(text.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if old.is_some() {
        refuse_another_kind(&target)?;
    }
    let part = part(&target);
    let written = put(&part, text, old.map_or_else(|| Permissions::from_mode(MODE), |old| old.permissions()), &target);
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

fn put(part: &Path, text: &str, permissions: Permissions, target: &Path) -> io::Result<()> {
    // What a killed exporter left. The name is always the same, so that no more than one is ever left.
    match fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(part)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(permissions)?;
    // Some file systems say only now that the disk is full.
    file.sync_all()?;
    fs::rename(part, target)
}

/// The name beside the file. The collector reads names that end in `.prom`, and this one does not.
fn part(target: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".new");
    target.with_file_name(name)
}

fn refuse_another_kind(path: &Path) -> io::Result<()> {
    let mut start = Vec::new();
    File::open(path)?.take(START.len() as u64).read_to_end(&mut start)?;
    if start.is_empty() || start == START.as_bytes() {
        return Ok(());
    }
    Err(io::Error::other("another kind of file is already there, which was not written by firsttouch"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const TEXT: &str = "# HELP firsttouch_build_info The version.\nfirsttouch_build_info 1\n";

    /// Check new files, replaced ones, links, permissions, and what a kill left.
    #[test]
    fn files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link, left] = ["a.prom", "link.prom", ".a.prom.new"].map(|name| folder.path().join(name));
        write(&path, TEXT).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&left, "half").unwrap();
        symlink("a.prom", &link).unwrap();
        let more = format!("{TEXT}more 1\n");
        write(&link, &more).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), more);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(link.is_symlink() && !left.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    /// Check that files of others, folders and folders that do not exist are errors that change nothing.
    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes.prom");
        fs::write(&notes, "node_up 1\n").unwrap();
        assert!(write(&notes, TEXT).unwrap_err().to_string().contains("another kind of file"));
        assert_eq!(fs::read_to_string(&notes).unwrap(), "node_up 1\n");
        assert_eq!(write(folder.path(), TEXT).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(write(&folder.path().join("none/a.prom"), TEXT).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(write(Path::new("/dev/full"), TEXT).unwrap_err().kind(), io::ErrorKind::StorageFull);
        write(Path::new("/dev/null"), TEXT).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
