//! The kernel's calls that place this process: what it may use, and where its memory comes from. They hold for the calling thread, and
//! for what it starts or becomes (execve keeps both).

mod affinity;
mod mask;
mod mbind;
mod mempolicy;
mod pages;
mod refusal;
mod segment;

pub use affinity::{allowed_cpus, bind_to_cpus};
pub use mbind::try_mbind;
pub use mempolicy::set_policy;
pub use pages::Pages;
pub use segment::{Part, Place, Segment, Wanted};

pub use refusal::{Cause, Refusal};
use std::io;

/// A call that failed, from errno.
fn refused(action: String, name: &'static str) -> Refusal {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Refusal { action, cause: Cause::Call { name, errno, filtered: has_filter() } }
}

/// A policy that the kernel refused: it has one error for a policy it does not know and for nodes it does not allow, which were looked at
/// before.
fn policy_refused(refusal: Refusal, since: Option<&'static str>) -> Refusal {
    let invalid = matches!(refusal.cause, Cause::Call { errno: libc::EINVAL, .. });
    match since.filter(|_| invalid) {
        Some(needs) if is_older(&running_kernel(), needs) => {
            Refusal { cause: Cause::Kernel { needs, running: running_kernel() }, ..refusal }
        }
        _ => refusal,
    }
}

/// Whether a seccomp filter is on this process, as containers have one.
fn has_filter() -> bool {
    // SAFETY: the query takes no pointers. Where the filter forbids the query itself, there is one.
    let mode = unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) };
    mode != 0
}

/// The running kernel, `6.18.44-amd64`.
fn running_kernel() -> String {
    // SAFETY: all zeros are a valid utsname, which the call fills with strings that end.
    unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut names);
        std::ffi::CStr::from_ptr(names.release.as_ptr()).to_string_lossy().into_owned()
    }
}

/// Whether a kernel is older than a version such as `6.9`; an unreadable one is not.
fn is_older(running: &str, needs: &str) -> bool {
    let numbers = |text: &str| {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    matches!((numbers(running), numbers(needs)), (Some(running), Some(needs)) if running < needs)
}

#[cfg(test)]
mod tests;
