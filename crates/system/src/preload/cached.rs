//! A preloaded library that outlives firsttouch: the program that replaces this process uses it, and so do the programs it starts. It
//! lies in the cache directory under the hash of its contents, and is written once.

use super::unpack::forbids_execution;
use crate::calls::identity;
use firsttouch_model::error::{Context, Error, Result};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Writes the library unless it is already there, and returns its path.
///
/// # Errors
/// When no directory can hold an executable file.
pub fn cached(name: &str, library: &[u8]) -> Result<PathBuf> {
    let mut reasons = Vec::new();
    for folder in candidates() {
        match cached_in(&folder, name, library) {
            Ok(path) => return Ok(path),
            Err(error) => reasons.push(format!("{}: {error:#}", folder.display())),
        }
    }
    Err(Error::unsupported(format!(
        "cannot store the library that pins threads: {}: set XDG_CACHE_HOME to a directory that allows execution",
        reasons.join("; ")
    )))
}

/// Folders that only this user can write to; the last is in a directory that others can write to.
pub(crate) fn candidates() -> Vec<PathBuf> {
    let (user, _) = identity::user_and_group();
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let mut list: Vec<PathBuf> = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache"))).into_iter().collect();
    list.extend(of("XDG_RUNTIME_DIR"));
    let mut list: Vec<PathBuf> = list.into_iter().map(|folder| folder.join("firsttouch")).collect();
    list.push(std::env::temp_dir().join(format!("firsttouch-{user}")));
    // LD_PRELOAD separates its entries by colons and spaces.
    list.retain(|path| path.is_absolute() && !path.to_string_lossy().contains([':', ' ']));
    list
}

fn cached_in(folder: &Path, name: &str, library: &[u8]) -> Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    check_owner(folder)?;
    if forbids_execution(folder) {
        return Err(Error::unsupported("mounted noexec"));
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(library);
    let path = folder.join(format!("{name}-{:016x}.so", hasher.finish()));
    if fs::read(&path).is_ok_and(|stored| stored == library) && check_owner(&path).is_ok() {
        return Ok(path);
    }
    // Write under a temporary name and rename: a firsttouch that starts at the same time never sees half a file.
    let draft = folder.join(format!(".{name}-{}.new", std::process::id()));
    let _ = fs::remove_file(&draft);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o500)
        .open(&draft)
        .and_then(|mut file| std::io::Write::write_all(&mut file, library))
        .and_then(|()| fs::rename(&draft, &path));
    if let Err(error) = written {
        let _ = fs::remove_file(&draft);
        return Err(error).context("cannot write the library");
    }
    Ok(path)
}

/// Makes sure that no other user can put a library there.
fn check_owner(path: &Path) -> Result<()> {
    let about = fs::symlink_metadata(path)?;
    if about.uid() != identity::effective_user() || about.mode() & 0o022 != 0 || about.is_symlink() {
        return Err(Error::unsupported(format!("{} belongs to another user, or others may write to it", path.display())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Check that a library is written once, renewed where it was damaged, and not taken from a folder that others can write to.
    #[test]
    fn a_library_is_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache/firsttouch");
        let path = cached_in(&cache, "lib", b"one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        let written = fs::metadata(&path).unwrap().ino();
        assert_eq!(cached_in(&cache, "lib", b"one").unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), written);
        assert_ne!(cached_in(&cache, "lib", b"two").unwrap(), path);

        fs::remove_file(&path).unwrap();
        fs::write(&path, b"damaged").unwrap();
        cached_in(&cache, "lib", b"one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 2, "no drafts are left");

        fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(cached_in(&cache, "lib", b"one").is_err());
    }
}
