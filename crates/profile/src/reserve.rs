//! Little space on the disk: some of it is given back when the disk is full, so that the profile can still say so.

use std::fs::File;
use std::io::Write;
use std::path::Path;

const CHUNK: usize = 16 << 10;
/// As much as the rows of some flushes, which a full disk makes SQLite move into the file.
const CHUNKS: usize = 64;

/// An invisible file that takes space until it is dropped.
#[derive(Debug)]
pub struct Reserve {
    _file: File,
    /// Whether there was less space than wanted.
    pub is_little: bool,
}

impl Reserve {
    /// Takes space beside a file: of little space, one chunk. `None` where that is impossible.
    pub fn beside(path: &Path) -> Option<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-reserve-{}", std::process::id()));
        let mut file = File::create_new(&name).ok()?;
        std::fs::remove_file(&name).ok()?;
        let zeros = vec![0; CHUNK];
        let taken = (0..CHUNKS).take_while(|_| file.write_all(&zeros).is_ok()).count();
        let is_little = taken < CHUNKS;
        if is_little {
            file.set_len(if taken > 1 { CHUNK as u64 } else { 0 }).ok()?;
        }
        Some(Self { _file: file, is_little })
    }
}

/// How SQLite keeps a new file.
#[derive(Clone, Copy)]
pub struct Layout {
    pub journal: &'static str,
    pub page_bytes: u32,
}

impl Layout {
    pub const USUAL: Self = Self { journal: "WAL", page_bytes: 4096 };
    pub const WITHOUT_SHARED_MEMORY: Self = Self { journal: "DELETE", ..Self::USUAL };
    /// Nothing can be taken back.
    pub const DRAFT: Self = Self { journal: "OFF", ..Self::USUAL };
    /// Rows take space once, not in the WAL and again in the file, and tables without rows take little. A crash loses the profile.
    pub const LITTLE_SPACE: Self = Self { journal: "MEMORY", page_bytes: 1024 };
}
