//! Files of code that this process does not find under the name that the program mapped them by: in another mount namespace (a container), or
//! deleted.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const DELETED: &str = " (deleted)";

/// A path at which the file of a mapping can be read while the process lives; `None` if the file can be read by its own name, or by no name.
pub(super) fn readable(root: &Path, pid: i32, (start, end): (u64, u64), path: &str) -> Option<String> {
    let process = root.join(format!("proc/{pid}"));
    let identity = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|meta| (meta.dev(), meta.ino()));
    let found = if path.ends_with(DELETED) {
        let program = process.join("exe");
        let is_program = fs::read_link(&program).is_ok_and(|link| link == Path::new(path));
        if is_program { program } else { process.join(format!("map_files/{start:x}-{end:x}")) }
    } else {
        process.join("root").join(path.trim_start_matches('/'))
    };
    let inside = identity(&found)?;
    (identity(Path::new(path)) != Some(inside)).then(|| found.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Check that the file of a container and a deleted program are found, and that a file that has the same name here keeps it.
    #[test]
    fn files_of_other_namespaces() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path();
        let process = root.join("proc/7");
        fs::create_dir_all(process.join("root/inner")).expect("a folder");
        fs::create_dir_all(process.join("map_files")).expect("a folder");
        fs::write(process.join("root/inner/program"), "text").expect("a file");
        let inner = readable(root, 7, (0, 1), "/inner/program").expect("the file of the container");
        assert!(inner.ends_with("proc/7/root/inner/program"), "{inner}");
        assert_eq!(readable(root, 7, (0, 1), "/inner/nothing"), None);
        let here = root.join("here");
        fs::write(&here, "text").expect("a file");
        let name = here.to_string_lossy().into_owned();
        let copy = process.join("root").join(name.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
        fs::hard_link(&here, &copy).expect("a link");
        assert_eq!(readable(root, 7, (0, 1), &name), None);
        // The kernel opens the links exe and those in map_files even when the file has no name any more.
        symlink("/gone (deleted)", process.join("exe")).expect("a link");
        fs::write(process.join("map_files/10-20"), "text").expect("a file");
        let deleted = readable(root, 7, (0x10, 0x20), "/lib/old.so (deleted)").expect("the deleted library");
        assert!(deleted.ends_with("map_files/10-20"), "{deleted}");
        assert_eq!(readable(root, 7, (0x10, 0x20), "/gone (deleted)"), None, "the link leads nowhere here");
    }
}
