//! Space on the disk that is given back when the disk is full, so that the profile can still say so.

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
}

impl Reserve {
    /// Takes space beside a file. Of little space it takes two thirds: what the rest holds then fits into the file once more. `None` where that
    /// is impossible.
    pub fn beside(path: &Path) -> Option<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-reserve-{}", std::process::id()));
        let mut file = File::create_new(&name).ok()?;
        std::fs::remove_file(&name).ok()?;
        let zeros = vec![0; CHUNK];
        let taken = (0..CHUNKS).take_while(|_| file.write_all(&zeros).is_ok()).count();
        if taken < CHUNKS {
            file.set_len(taken as u64 * 2 / 3 * CHUNK as u64).ok()?;
        }
        Some(Self { _file: file })
    }
}
