//! Constants of the running system: sysconf.

/// The size of a base page.
#[must_use]
pub fn page_bytes() -> usize {
    // SAFETY: sysconf takes and returns numbers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Clock ticks a second (USER_HZ), the unit of CPU times in /proc.
#[must_use]
pub fn ticks_per_s() -> u64 {
    // SAFETY: sysconf takes and returns numbers.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1).unsigned_abs()
}
