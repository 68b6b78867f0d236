//! Answers a plan's questions about program files from ELF files on this system.

use firsttouch_plan::{Frame, ProgramFiles};
use firsttouch_symbols::{Line, LineSearch, build_id, static_objects};
use hashbrown::HashMap;
use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// ELF address and size of static arrays.
type Arrays = Vec<(u64, u64)>;

/// Program files. The line table of each is read once.
#[derive(Default)]
pub struct ElfFiles {
    /// `None` if the file's lines cannot be read.
    lines: RefCell<HashMap<PathBuf, Option<LineSearch>>>,
    arrays: RefCell<HashMap<(PathBuf, String), Arrays>>,
}

impl ElfFiles {
    fn search<T: Default>(&self, path: &Path, question: impl FnOnce(&mut LineSearch) -> T) -> T {
        let mut lines = self.lines.borrow_mut();
        let search = lines.entry(path.to_owned()).or_insert_with(|| LineSearch::open(path).ok());
        search.as_mut().map(question).unwrap_or_default()
    }
}

impl ProgramFiles for ElfFiles {
    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn build_id(&self, path: &Path) -> Option<String> {
        build_id(path)
    }

    fn modified_unix_s(&self, path: &Path) -> Option<i64> {
        std::fs::metadata(path).ok().map(|file| file.mtime())
    }

    fn device_and_inode(&self, path: &Path) -> Option<(u64, u64)> {
        std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
    }

    fn static_arrays(&self, path: &Path, name: &str) -> Arrays {
        let key = (path.to_owned(), name.to_owned());
        self.arrays.borrow_mut().entry(key).or_insert_with(|| static_arrays(path, name)).clone()
    }

    fn code_at(&self, path: &Path, lines: &[Frame]) -> Vec<(u64, u64)> {
        self.search(path, |search| search.find(&as_lines(lines)))
    }

    fn copies(&self, path: &Path, offset: u64, lines: &[Frame]) -> Vec<(u64, u64)> {
        self.search(path, |search| search.copies(offset, &as_lines(lines)))
    }

    fn is_at(&self, path: &Path, offset: u64, lines: &[Frame]) -> bool {
        self.search(path, |search| search.is_at(offset, &as_lines(lines)))
    }
}

fn as_lines(frames: &[Frame]) -> Vec<Line> {
    frames.iter().map(|frame| Line { function: frame.function.clone(), file: frame.file.clone(), line: frame.line }).collect()
}

/// Static arrays of this name: variables, and members of a Fortran COMMON block.
fn static_arrays(path: &Path, name: &str) -> Arrays {
    let Ok(statics) = static_objects(path, 1) else { return Vec::new() };
    let own = statics.objects.iter().map(|object| (object.name.as_str(), object.address, object.bytes));
    let members = statics.objects.iter().flat_map(|object| {
        object.members.iter().map(|(name, offset, bytes)| (name.as_str(), object.address.wrapping_add(*offset), *bytes))
    });
    own.chain(members).filter(|(own, ..)| *own == name).map(|(_, address, bytes)| (address, bytes)).collect()
}
