//! The memory policy of the calling thread: set_mempolicy and get_mempolicy.

use super::refusal::Refusal;
use super::{mask, policy_refused, refused};
use crate::proc::numa_maps::MODES;
use firsttouch_model::policy::Policy;
use firsttouch_model::topology::MemoryPolicy;
use std::io;

/// Mode flags and their words (linux/mempolicy.h).
const FLAGS: [(libc::c_int, &str); 3] =
    [(libc::MPOL_F_STATIC_NODES, "static"), (libc::MPOL_F_RELATIVE_NODES, "relative"), (libc::MPOL_F_NUMA_BALANCING, "balancing")];
/// More nodes than any kernel is built for (CONFIG_NODES_SHIFT ends at 10), in words of 64.
const WORDS: usize = 64;

/// Gives the calling thread a memory policy.
///
/// # Errors
/// When the kernel refuses: it has no such policy, or a container forbids the call.
pub fn set_policy(policy: &Policy) -> Result<(), Refusal> {
    let words = mask::from_numbers(&policy.nodes);
    let (nodes, bits) = if policy.nodes.is_empty() { (std::ptr::null(), 0) } else { (words.as_ptr(), mask::bits(&words) + 1) };
    // SAFETY: the kernel reads `bits - 1` bits (it counts one too many, mm/mempolicy.c, get_nodes), which outlive the call.
    let status = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::c_long::from(policy.number()), nodes, bits) };
    if status == 0 {
        return Ok(());
    }
    Err(policy_refused(refused(format!("set the memory policy {policy}"), "set_mempolicy"), policy.since()))
}

/// Asks the kernel for the policy of the calling thread.
///
/// # Errors
/// When the kernel has no NUMA support, or a seccomp filter forbids the call.
pub fn of_this_thread() -> io::Result<MemoryPolicy> {
    let mut mode: libc::c_int = 0;
    let mut mask = [0u64; WORDS];
    // SAFETY: the kernel writes one int and at most WORDS * 64 bits, both of which outlive the call; address and flags
    // 0 ask for the thread's own policy.
    let status = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            mask.as_mut_ptr(),
            (WORDS * 64) as libc::c_ulong,
            std::ptr::null::<libc::c_void>(),
            0 as libc::c_ulong,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let nodes = (0u32..).zip(mask).flat_map(|(word, bits)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit));
    let number = FLAGS.iter().fold(mode, |mode, (flag, _)| mode & !flag);
    Ok(MemoryPolicy {
        mode: usize::try_from(number)
            .ok()
            .and_then(|number| MODES.get(number))
            .map_or_else(|| format!("mode {number}"), |&name| name.to_owned()),
        flags: FLAGS.iter().filter(|(flag, _)| mode & flag != 0).map(|(_, word)| (*word).to_owned()).collect(),
        nodes: nodes.collect(),
        source: "get_mempolicy".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the kernel's answer, if it gives one, is a known mode.
    #[test]
    fn the_kernel_is_asked() {
        if let Ok(policy) = of_this_thread() {
            assert!(MODES.contains(&policy.mode.as_str()), "{policy:?}");
        }
    }
}
