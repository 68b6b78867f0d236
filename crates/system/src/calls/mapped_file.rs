//! Files mapped for reading.

use std::fs::File;
use std::io;

/// The contents of a file.
pub type MappedFile = memmap2::Mmap;

/// Maps a file. Another process may change the file meanwhile: parse the contents as untrusted.
///
/// # Errors
/// When the file cannot be mapped, for example because it is not a regular file.
pub fn map(file: &File) -> io::Result<MappedFile> {
    // SAFETY: a private read-only mapping. Callers treat its contents as untrusted bytes, so a file that changes meanwhile can only make
    // a parse fail.
    unsafe { memmap2::Mmap::map(file) }
}
