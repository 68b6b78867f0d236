//! What firsttouch was started with and its own runtime changes before `main`: the target gets it back.
//!
//! Rust's runtime ignores SIGPIPE, and opens /dev/null for standard descriptors that are closed. The tool itself must be able to
//! reap its child (SIGCHLD) and to hear of files that may not grow (SIGXFSZ). What is ignored, and what is open, stays so over exec.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SIGNALS: [i32; 3] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ];

static DISPOSITIONS: [AtomicUsize; SIGNALS.len()] = [const { AtomicUsize::new(libc::SIG_DFL) }; SIGNALS.len()];
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Runs before the runtime starts.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = {
    extern "C" fn remember() {
        for (&signal, kept) in SIGNALS.iter().zip(&DISPOSITIONS) {
            // SAFETY: only asks; sigaction is plain data.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 {
                    kept.store(action.sa_sigaction, Ordering::Relaxed);
                }
            }
        }
        for (descriptor, closed) in (0..).zip(&CLOSED) {
            // SAFETY: only asks for flags.
            closed.store(unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0, Ordering::Relaxed);
        }
    }
    remember
};

/// Gives a forked child what firsttouch was started with. Async-signal-safe.
pub(super) fn restore() {
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
