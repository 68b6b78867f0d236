//! Measures first touches in this process.

use crate::clock::monotonic_ns;
use std::io;

/// Bytes from one touch to the next: no page is smaller.
const STEP: usize = 4096;

/// The time that first touches of so many fresh pages take, ns. Huge pages are not used.
///
/// # Errors
/// When there is no memory for them.
pub fn touch_fresh_pages(pages: usize) -> io::Result<u64> {
    let bytes = pages * STEP;
    let (read_write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh private mapping, touched within its bounds and unmapped once.
    unsafe {
        let base = libc::mmap(std::ptr::null_mut(), bytes, read_write, private, -1, 0);
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE);
        let start = monotonic_ns();
        for page in 0..pages {
            base.cast::<u8>().add(page * STEP).write_volatile(1);
        }
        let took = monotonic_ns() - start;
        libc::munmap(base, bytes);
        Ok(took)
    }
}
