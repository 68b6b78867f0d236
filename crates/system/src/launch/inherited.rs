//! Signal dispositions, descriptors and affinity that Rust's runtime and libraries change before `main`; the target gets the originals. Libraries'
//! constructors do not see OpenMP's variables, which are for the target.
//!
//! Rust's runtime ignores SIGPIPE, and opens /dev/null for closed standard descriptors. firsttouch itself must be able to reap its child
//! (SIGCHLD) and to get an error for a file that may not grow (SIGXFSZ). Ignored signals and open descriptors persist across exec.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

const SIGNALS: [i32; 3] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ];

static DISPOSITIONS: [AtomicUsize; SIGNALS.len()] = [const { AtomicUsize::new(libc::SIG_DFL) }; SIGNALS.len()];
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// CPUs that firsttouch was started on: the kernel's mask, and the bytes of it that the kernel filled (CONFIG_NR_CPUS ends at 8192).
static CPUS: [AtomicU64; 128] = [const { AtomicU64::new(0) }; 128];
static CPUS_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Commands that run OpenMP kernels in this process, so that OpenMP's variables are for it, too.
const WITH_KERNELS: [&[u8]; 4] = [b"bench", b"map", b"reproduce", b"demo"];

/// Variables of OpenMP that are hidden from constructors: the addresses of their strings, whose first characters are replaced.
static HIDDEN: [AtomicPtr<c_char>; 64] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 64];
/// In place of the `O` or `G` of a hidden variable.
const HIDDEN_MARK: c_char = b'-' as c_char;

/// Runs before the constructors of libraries. With OMP_PROC_BIND, the constructor of libgomp (which the bundled programs need) binds
/// this thread to the first OpenMP place, and its children would inherit that. With OMP_DISPLAY_ENV, and for values that it does not accept,
/// it prints what the target's own runtime prints again.
#[used]
#[unsafe(link_section = ".preinit_array")]
static BEFORE_LIBRARIES: extern "C" fn(c_int, *const *const c_char, *const *mut c_char) = {
    extern "C" fn before(_: c_int, arguments: *const *const c_char, environment: *const *mut c_char) {
        // SAFETY: the kernel writes at most the size of the mask; nothing else runs yet.
        let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&CPUS), CPUS.as_ptr()) };
        CPUS_BYTES.store(usize::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
        // SAFETY: the loader passes the vectors of strings that the kernel made, which end with null; nothing else runs yet.
        unsafe {
            if !has_kernels(arguments) {
                hide_openmp(environment);
            }
        }
    }
    before
};

/// Whether the command, the first argument that is no option, runs OpenMP kernels in this process.
///
/// # Safety
/// `arguments` is a vector of strings that ends with null.
unsafe fn has_kernels(arguments: *const *const c_char) -> bool {
    // SAFETY: by the function's contract; the second step is taken only if there is a first string.
    unsafe {
        let mut at = arguments;
        while !(*at).is_null() {
            at = at.add(1);
            if (*at).is_null() || *(*at) != b'-' as c_char {
                break;
            }
        }
        !(*at).is_null() && WITH_KERNELS.contains(&CStr::from_ptr(*at).to_bytes())
    }
}

/// Hides the first variables of OpenMP and of GCC's runtime, as many as there is room for.
///
/// # Safety
/// `environment` is a vector of writable strings that ends with null, and nothing else uses them.
unsafe fn hide_openmp(environment: *const *mut c_char) {
    let mut room = HIDDEN.iter();
    let mut at = environment;
    // SAFETY: by the function's contract.
    unsafe {
        while !(*at).is_null() {
            let variable = CStr::from_ptr(*at).to_bytes();
            if variable.starts_with(b"OMP_") || variable.starts_with(b"GOMP_") {
                let Some(free) = room.next() else { return };
                free.store(*at, Ordering::Relaxed);
                **at = HIDDEN_MARK;
            }
            at = at.add(1);
        }
    }
}

/// Makes hidden variables visible again.
fn show_openmp() {
    for hidden in &HIDDEN {
        let variable = hidden.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if variable.is_null() {
            return;
        }
        // SAFETY: a string of the environment, of at least four characters; constructors run in this thread alone.
        unsafe {
            *variable = if *variable.add(1) == b'O' as c_char { b'G' } else { b'O' } as c_char;
        }
    }
}

/// Restores the affinity that firsttouch was started with. Async-signal-safe.
pub fn restore_cpus() {
    let bytes = CPUS_BYTES.load(Ordering::Relaxed);
    if bytes > 0 {
        // SAFETY: the mask that the kernel returned, which does not change any more.
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, bytes, CPUS.as_ptr()) };
    }
}

/// Runs after the constructors of libraries, before the runtime starts.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = {
    extern "C" fn remember() {
        show_openmp();
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
