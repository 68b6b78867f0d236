//! Tests whether mbind is allowed.

use super::refusal::Refusal;
use super::{mask, refused};

/// Tries mbind on an unused page of this process.
///
/// # Errors
/// When the kernel refuses: a container forbids the call, or the kernel does not have it.
pub fn try_mbind(node: u32) -> Result<(), Refusal> {
    const PREFERRED: libc::c_long = 1;
    const PAGES: usize = 1 << 16;
    let words = mask::from_numbers(&[node]);
    // SAFETY: a new mapping, unmapped again; the kernel reads the bits of `words`, which outlive the call.
    let status = unsafe {
        let page = libc::mmap(std::ptr::null_mut(), PAGES, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        if page == libc::MAP_FAILED {
            return Err(refused("map memory".to_owned(), "mmap"));
        }
        let status = libc::syscall(libc::SYS_mbind, page, PAGES, PREFERRED, words.as_ptr(), mask::bits(&words) + 1, 0);
        let refusal = (status != 0).then(|| refused("set a policy for a range of memory".to_owned(), "mbind"));
        libc::munmap(page, PAGES);
        refusal
    };
    status.map_or(Ok(()), Err)
}
