//! What a plan needs to know about program files.

use crate::Frame;
use std::path::{Path, PathBuf};

/// Facts about ELF files. firsttouch-pipeline implements it for files of this system.
pub trait ProgramFiles {
    /// The path with symbolic links resolved; `None` if there is no such file.
    fn canonical(&self, path: &Path) -> Option<PathBuf>;
    /// The build ID in hexadecimal digits; `None` if the file has none or cannot be read.
    fn build_id(&self, path: &Path) -> Option<String>;
    /// When the file was last modified, seconds since the epoch.
    fn modified_unix_s(&self, path: &Path) -> Option<i64>;
    /// Device and inode.
    fn device_and_inode(&self, path: &Path) -> Option<(u64, u64)>;
    /// ELF address and size of each static array of this name.
    fn static_arrays(&self, path: &Path, name: &str) -> Vec<(u64, u64)>;
    /// The code of these functions and lines, innermost first: half-open ranges of file offsets.
    fn code_at(&self, path: &Path, lines: &[Frame]) -> Vec<(u64, u64)>;
    /// The code of the call at this file offset, which has these functions and lines, and of the copies that the compiler made of it: half-open
    /// ranges. Empty if they are not known.
    fn copies(&self, path: &Path, offset: u64, lines: &[Frame]) -> Vec<(u64, u64)>;
    /// Whether the code at this file offset has these functions and lines.
    fn is_at(&self, path: &Path, offset: u64, lines: &[Frame]) -> bool;
}

/// The static array of this name; of several, the one with this size. `None` if that is not unique.
pub fn static_array(files: &dyn ProgramFiles, path: &Path, name: &str, bytes: u64) -> Option<(u64, u64)> {
    let found = files.static_arrays(path, name);
    if let [one] = found[..] {
        return Some(one);
    }
    let mut sized = found.into_iter().filter(|(_, own)| *own == bytes);
    sized.next().filter(|_| sized.next().is_none())
}
