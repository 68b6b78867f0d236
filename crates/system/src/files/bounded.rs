//! Reads whole files that users name. Each kind of file has a largest size (docs/limits.md), and no device makes firsttouch read for ever.

use firsttouch_model::format_bytes;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The bytes of a regular file.
///
/// # Errors
/// When it is no regular file, is larger than `most`, or cannot be read.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path)?;
    if file.metadata()?.len() > most {
        return Err(too_large(most));
    }
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// The text of a regular file.
///
/// # Errors
/// As [`read_bounded`], and when it is not UTF-8.
pub fn read_bounded_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_bounded(path, most)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text"))
}

fn open(path: &Path) -> io::Result<File> {
    // Opening a FIFO would wait for its other side.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    match file.metadata()? {
        about if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        about if !about.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => Ok(file),
    }
}

/// The error for a larger file.
#[must_use]
pub fn too_large(most: u64) -> io::Error {
    io::Error::other(format!("it is larger than {}", format_bytes(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the limit, and that devices and folders are refused at once.
    #[test]
    fn input_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "1234").unwrap();
        assert_eq!(read_bounded(&path, 4).unwrap(), b"1234");
        assert_eq!(read_bounded(&path, 3).unwrap_err().to_string(), "it is larger than 3 B");
        assert_eq!(too_large(16 << 20).to_string(), "it is larger than 16 MiB");
        assert_eq!(read_bounded(Path::new("/dev/zero"), 4).unwrap_err().to_string(), "it is not a regular file");
        assert_eq!(read_bounded(folder.path(), 4).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_bounded_text(&path, 4).unwrap_err().to_string(), "it is not text");
    }
}
