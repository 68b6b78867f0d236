//! Signal dispositions, descriptors and affinity that Rust's runtime and libraries change before `main`; the target gets the originals.
//!
//! Rust's runtime ignores SIGPIPE, and opens /dev/null for closed standard descriptors. firsttouch itself must be able to reap its child
//! (SIGCHLD) and to get an error for a file that may not grow (SIGXFSZ). Ignored signals and open descriptors persist across exec.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

const SIGNALS: [i32; 3] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ];

static DISPOSITIONS: [AtomicUsize; SIGNALS.len()] = [const { AtomicUsize::new(libc::SIG_DFL) }; SIGNALS.len()];
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// CPUs that firsttouch was started on: the kernel's mask, and the bytes of it that the kernel filled (CONFIG_NR_CPUS ends at 8192).
static CPUS: [AtomicU64; 128] = [const { AtomicU64::new(0) }; 128];
static CPUS_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Runs before the constructors of libraries. With OMP_PROC_BIND, the constructor of libgomp (which the bundled programs need) binds
/// this thread to the first OpenMP place, and its children would inherit that.
#[used]
#[unsafe(link_section = ".preinit_array")]
static REMEMBER_CPUS: extern "C" fn() = {
    extern "C" fn remember() {
        // SAFETY: the kernel writes at most the size of the mask; nothing else runs yet.
        let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&CPUS), CPUS.as_ptr()) };
        CPUS_BYTES.store(usize::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
    }
    remember
};

/// Restores the affinity that firsttouch was started with. Async-signal-safe.
pub fn restore_cpus() {
    let bytes = CPUS_BYTES.load(Ordering::Relaxed);
    if bytes > 0 {
        // SAFETY: the mask that the kernel returned, which does not change any more.
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, bytes, CPUS.as_ptr()) };
    }
}

/// Runs before the runtime starts.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = {
    extern "C" fn remember() {
        for (&signal, kept) in SIGNALS.iter().zip(&DISPOSITIONS) {
            // SAFETY: a query; sigaction is plain data.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 {
                    kept.store(action.sa_sigaction, Ordering::Relaxed);
                }
            }
        }
        for (descriptor, closed) in (0..).zip(&CLOSED) {
            // SAFETY: a query of flags.
            closed.store(unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0, Ordering::Relaxed);
        }
    }
    remember
};

/// Whether firsttouch was started with its standard output closed: what it writes there is lost.
#[must_use]
pub fn is_stdout_closed() -> bool {
    CLOSED[1].load(Ordering::Relaxed)
}

/// From now on, a write beyond the limit on file sizes (`ulimit -f`) is an error instead of the end of this process, so that it can remove what it has
/// written in part. Programs that it starts have the disposition that it was started with: exec replaces a handler by the default.
pub fn outlive_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: sigaction is plain data, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        // What is ignored stays so, in programs too.
        if libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_DFL {
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGXFSZ, &action, std::ptr::null_mut());
        }
    }
}

/// Undoes [`restore`] if exec failed: a broken pipe and a file that may not grow are errors again instead of signals.
pub(super) fn undo_restore() {
    // SAFETY: ignoring needs no handler memory.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    outlive_size_limit();
}

/// Restores what firsttouch was started with, in a forked child or in this process before exec. Async-signal-safe.
pub(super) fn restore() {
    super::descriptors::restore_limit();
    for (&signal, kept) in SIGNALS.iter().zip(&DISPOSITIONS) {
        // SAFETY: SIG_DFL and SIG_IGN, the only dispositions that are inherited, need no handler memory.
        unsafe { libc::signal(signal, kept.load(Ordering::Relaxed)) };
    }
    for (descriptor, closed) in (0..).zip(&CLOSED) {
        if closed.load(Ordering::Relaxed) {
            // SAFETY: the child's own copy of what the runtime opened.
            unsafe { libc::close(descriptor) };
        }
    }
}
