//! The CPUs a thread may run on.

use super::refusal::{Cause, Refusal};
use super::{mask, refused};
use firsttouch_model::topology::format_list;

/// More CPUs than any kernel is built for (CONFIG_NR_CPUS ends at 8192), in words of 64.
const WORDS: usize = 1024;

/// Binds the calling thread to CPUs.
///
/// # Errors
/// When the kernel refuses, or accepts only a part of them.
pub fn bind_to_cpus(cpus: &[u32]) -> Result<(), Refusal> {
    let action = || format!("bind to CPUs {}", format_list(cpus));
    let words = mask::from_numbers(cpus);
    // SAFETY: the kernel reads size_of_val(words) bytes, which outlive the call; 0 is the calling thread.
    let status = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(words.as_slice()), words.as_ptr()) };
    if status != 0 {
        return Err(refused(action(), "sched_setaffinity"));
    }
    // If the cpuset allows only a part, the kernel uses that part and reports success.
    let Some(taken) = allowed_cpus() else { return Ok(()) };
    let missing: Vec<u32> = cpus.iter().copied().filter(|cpu| taken.binary_search(cpu).is_err()).collect();
    if missing.is_empty() { Ok(()) } else { Err(Refusal { action: action(), cause: Cause::Part { noun: "CPU", taken, missing } }) }
}

/// The CPUs the calling thread may run on; `None` if the kernel refuses to answer.
#[must_use]
pub fn allowed_cpus() -> Option<Vec<u32>> {
    let mut words: Vec<libc::c_ulong> = vec![0; WORDS];
    // SAFETY: the kernel writes at most size_of_val(words) bytes, which outlive the call; 0 is the calling thread.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(words.as_slice()), words.as_mut_ptr()) };
    (written > 0).then(|| mask::to_numbers(&words))
}
