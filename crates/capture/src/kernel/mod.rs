//! The seam to the kernel: every system call of the capture lives here, with its contract.

mod inherited;
pub mod perf;
pub mod perf_records;
pub mod perf_ring;
pub mod process;
pub mod residency;
pub mod signals;

pub use inherited::restore_cpus;

/// CLOCK_MONOTONIC in nanoseconds, the clock of every time in a profile.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The last error of this thread.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
