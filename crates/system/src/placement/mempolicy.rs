//! The memory policy of a thread.

use super::refusal::Refusal;
use super::{mask, policy_refused, refused};
use firsttouch_model::policy::Policy;

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
