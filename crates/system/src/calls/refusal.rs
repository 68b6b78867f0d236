//! Why the kernel did not place a program, and the least that helps.

use firsttouch_model::remedy::{NO_NUMA, PROFILE, SYS_NICE};
use firsttouch_model::topology::format_list;
use std::fmt;

/// An action that the kernel refused, and why. The program has not run yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `set the memory policy bind of nodes 0-1`
    pub action: String,
    pub cause: Cause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A system call failed.
    Call {
        name: &'static str,
        errno: i32,
        /// Whether a seccomp filter is on this process.
        filtered: bool,
    },
    /// The running kernel is too old for the request.
    Kernel { needs: &'static str, running: String },
    /// The kernel accepted only a part: a cpuset allows no more.
    Part { noun: &'static str, taken: Vec<u32>, missing: Vec<u32> },
}

impl Refusal {
    fn remedy(&self) -> String {
        let container = format!("in a container: {SYS_NICE}, or {PROFILE}");
        match &self.cause {
            Cause::Call { errno: libc::EPERM, filtered: true, .. } => container,
            Cause::Call { errno: libc::EPERM, .. } => format!("a security module or a sandbox forbids it; {container}"),
            Cause::Call { errno: libc::ENOSYS, filtered: true, .. } => {
                format!("a container's filter hides it, or the kernel does not have it; {container}")
            }
            Cause::Call { errno: libc::ENOSYS, .. } => NO_NUMA.to_owned(),
            Cause::Call { .. } => "see what this process may use: firsttouch topology".to_owned(),
            Cause::Kernel { .. } => "run it on a newer kernel, or with another policy".to_owned(),
            Cause::Part { noun, taken, .. } => {
                format!("name {noun}s {} only, or have the control group's cpuset allow the others", format_list(taken))
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: ", self.action)?;
        match &self.cause {
            Cause::Call { name, errno, .. } => write!(f, "{name} failed: {}", std::io::Error::from_raw_os_error(*errno))?,
            Cause::Kernel { needs, running } => write!(f, "it needs Linux {needs}, and this is {running}")?,
            Cause::Part { noun, missing, .. } => {
                let (s, are) = if missing.len() == 1 { ("", "is") } else { ("s", "are") };
                write!(f, "{noun}{s} {} {are} not in the cpuset of this process", format_list(missing))?;
            }
        }
        write!(f, "; {}", self.remedy())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each cause names the least that helps.
    #[test]
    fn each_cause_has_its_remedy() {
        let call = |errno, filtered| Cause::Call { name: "set_mempolicy", errno, filtered };
        for (cause, words) in [
            (
                call(libc::EPERM, true),
                "cannot place it: set_mempolicy failed: Operation not permitted (os error 1); in a container: docker run --cap-add SYS_NICE (",
            ),
            (call(libc::EPERM, false), "a security module or a sandbox forbids it; in a container: docker run --cap-add SYS_NICE"),
            (call(libc::ENOSYS, false), "this kernel was built without NUMA"),
            (call(libc::ENOSYS, true), "a container's filter hides it"),
            (call(libc::EINVAL, false), "Invalid argument (os error 22); see what this process may use: firsttouch topology"),
            (
                Cause::Kernel { needs: "6.9", running: "6.1.0-56-amd64".to_owned() },
                "cannot place it: it needs Linux 6.9, and this is 6.1.0-56-amd64; run it on a newer kernel",
            ),
            (
                Cause::Part { noun: "CPU", taken: vec![0, 1], missing: vec![2] },
                "cannot place it: CPU 2 is not in the cpuset of this process; name CPUs 0-1 only, or have",
            ),
            (Cause::Part { noun: "node", taken: vec![0], missing: vec![1, 2] }, "nodes 1-2 are not in the cpuset"),
        ] {
            let text = Refusal { action: "place it".to_owned(), cause }.to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
