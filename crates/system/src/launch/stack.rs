//! A stack that is large enough, also under a small `ulimit -s`, which the target inherits unchanged.

use std::thread::Builder;

/// Reading arguments and judging a profile take some hundred KiB.
const ENOUGH: u64 = 4 << 20;

/// Does the work on this thread, or on one with a larger stack if the stack of this thread may not grow enough.
///
/// # Errors
/// When the system allows no second thread.
pub fn with_enough_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    if limit().is_none_or(|limit| limit >= ENOUGH) {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(2 * ENOUGH as usize).spawn_scoped(scope, work)?;
        // Signals are for the thread that works, which may wait for them.
        block_signals();
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// The soft limit on this thread's stack, bytes; `None` if it cannot be read.
fn limit() -> Option<u64> {
    // SAFETY: rlimit is plain data, filled by a successful call.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        (libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) == 0).then_some(limit.rlim_cur)
    }
}

fn block_signals() {
    // SAFETY: the set is plain data, filled by sigfillset; only this thread's mask changes.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}
