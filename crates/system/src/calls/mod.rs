//! System calls, one wrapper each. If the kernel or a container refuses a call, the error names the call and the least that helps.
//!
//! | module | calls |
//! |---|---|
//! | [`affinity`] | sched_setaffinity, sched_getaffinity |
//! | [`mempolicy`] | set_mempolicy, get_mempolicy of the calling thread |
//! | [`mbind`] | mbind, tried on unused memory |
//! | [`shared_memory`] | mbind and get_mempolicy on files and System V segments |
//! | [`pages`] | move_pages: where pages are, and moving them |
//! | [`page_sizes`] | PAGEMAP_SCAN |
//! | [`perf`] | perf_event_open |
//! | [`probe`] | tries what placement and profiling need |
//! | [`mapped_file`] | mmap of files |
//! | [`claim`] | fcntl: one process claims a file |
//! | [`ready`] | poll |
//! | [`rename`] | renameat2 |
//! | [`beneath`] | openat2: files below a folder |
//! | [`clock`] | clock_gettime |
//! | [`fresh_pages`] | mmap: the time of first touches |
//! | [`process_memory`] | process_vm_readv |
//! | [`wake`] | futex and eventfd |
//! | [`identity`], [`sysconf`] | the user of this process; page size and clock ticks |
//!
//! Affinity and memory policy apply to the calling thread, and to the processes that it starts or becomes (execve keeps both).

pub mod affinity;
pub mod beneath;
pub mod claim;
pub mod clock;
pub mod fresh_pages;
pub mod heap;
pub mod identity;
pub mod mapped_file;
mod mask;
pub mod mbind;
pub mod mempolicy;
pub mod page_sizes;
pub mod pages;
pub mod perf;
pub mod probe;
pub mod process_memory;
pub mod ready;
mod refusal;
pub mod rename;
pub mod shared_memory;
pub mod sysconf;
pub mod wake;

pub use refusal::{Cause, Refusal};
use std::io;

/// A call that failed, from errno.
fn refused(action: String, name: &'static str) -> Refusal {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Refusal { action, cause: Cause::Call { name, errno, filtered: has_filter() } }
}

/// A policy that the kernel refused. EINVAL means an unknown policy or forbidden nodes; the nodes were checked before, so on an old
/// kernel the policy is unknown.
fn policy_refused(refusal: Refusal, since: Option<&'static str>) -> Refusal {
    let invalid = matches!(refusal.cause, Cause::Call { errno: libc::EINVAL, .. });
    match since.filter(|_| invalid) {
        Some(needs) if is_older(&running_kernel(), needs) => {
            Refusal { cause: Cause::Kernel { needs, running: running_kernel() }, ..refusal }
        }
        _ => refusal,
    }
}

/// Whether the running kernel handles the expiry of CPU-time timers on the way back to user mode (`POSIX_CPU_TIMERS_TASK_WORK`, since
/// Linux 5.9 on x86). Older kernels post the signal in the timer interrupt, so that a system call that is about to sleep can be interrupted.
#[must_use]
pub fn cpu_timers_spare_system_calls() -> bool {
    !is_older(&running_kernel(), "5.9")
}

/// Whether a seccomp filter restricts this process, as in most containers.
fn has_filter() -> bool {
    // SAFETY: the query takes no pointers. If a filter forbids even the query, the result is not 0.
    let mode = unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) };
    mode != 0
}

/// The running kernel, `6.18.44-amd64`.
fn running_kernel() -> String {
    // SAFETY: all zeros are a valid utsname, which the call fills with strings that end with NUL.
    unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut names);
        std::ffi::CStr::from_ptr(names.release.as_ptr()).to_string_lossy().into_owned()
    }
}

/// Whether a kernel is older than a version such as `6.9`; `false` if the version cannot be read.
fn is_older(running: &str, needs: &str) -> bool {
    let numbers = |text: &str| {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    matches!((numbers(running), numbers(needs)), (Some(running), Some(needs)) if running < needs)
}

#[cfg(test)]
mod tests;
