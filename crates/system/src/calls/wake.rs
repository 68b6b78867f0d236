//! futex and eventfd: waits for a word in shared memory, and wakes a loop that polls descriptors.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Waits until another thread or process wakes the word, if the word still has this value, and at most `timeout`.
pub fn wait_on(word: &AtomicU32, value: u32, timeout: Duration) {
    let timeout = libc::timespec { tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(1), tv_nsec: i64::from(timeout.subsec_nanos()) };
    // SAFETY: the word and the timeout outlive the call, which only reads them. The word may lie in memory of several processes.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, std::ptr::from_ref(&timeout)) };
}

/// Wakes one waiter of the word, in whatever process.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call, which does not access it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

/// A descriptor that can be read once the bell was rung.
pub struct Bell {
    fd: OwnedFd,
}

impl Bell {
    /// # Errors
    /// When the kernel has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just returned this descriptor; nothing else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of a local.
        unsafe { libc::write(self.fd.as_raw_fd(), std::ptr::from_ref(&one).cast(), 8) };
    }

    /// Silences the bell. Returns whether it had been rung.
    pub fn take(&self) -> bool {
        let mut rings = 0u64;
        // SAFETY: eight bytes of a local. The descriptor does not block.
        unsafe { libc::read(self.fd.as_raw_fd(), std::ptr::from_mut(&mut rings).cast(), 8) == 8 }
    }

    /// The descriptor, to poll.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}
