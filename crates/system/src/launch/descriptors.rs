//! Descriptors: how many firsttouch may open. The target keeps the limit that firsttouch was started with.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The soft limit before it was raised; `RLIM_INFINITY`: it was not.
static SOFT_LIMIT: AtomicU64 = AtomicU64::new(libc::RLIM_INFINITY);

/// Raises the soft limit on open files to the hard limit: the watchpoints need several descriptors a thread. [`restore_limit`] undoes it.
pub fn raise_file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid rlimit block for both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            let wanted = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) == 0 {
                SOFT_LIMIT.store(limit.rlim_cur, Ordering::Relaxed);
                limit = wanted;
            }
        }
    }
    limit.rlim_cur
}

/// Restores the limit for a program that is about to be executed. Async-signal-safe.
pub(super) fn restore_limit() {
    let soft = SOFT_LIMIT.load(Ordering::Relaxed);
    if soft == libc::RLIM_INFINITY {
        return;
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid rlimit block for both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = soft;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Whether so many descriptors can be opened now.
#[must_use]
pub fn can_open(count: usize) -> bool {
    let open = || {
        // SAFETY: a new descriptor, which nothing else owns.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        // SAFETY: as above.
        (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
    };
    std::iter::repeat_with(open).take(count).collect::<Option<Vec<OwnedFd>>>().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that some descriptors can be opened, and more than the limit allows cannot.
    #[test]
    fn descriptors_are_counted() {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a valid rlimit block.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
        assert!(can_open(4));
        if limit.rlim_cur <= 4096 {
            assert!(!can_open(4096));
        }
    }
}
