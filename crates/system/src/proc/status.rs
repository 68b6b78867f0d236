//! /proc/PID/status and /proc/PID/task/TID/status: `Key:\tvalue` lines.

use super::{kib, small_file};
use std::path::Path;

/// The text of the file; its values are looked up by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status(String);

impl Status {
    #[must_use]
    pub fn of_process(root: &Path, pid: i32) -> Option<Self> {
        small_file(&root.join(format!("proc/{pid}/status"))).map(Self)
    }

    #[must_use]
    pub fn parse(text: String) -> Self {
        Self(text)
    }

    /// The text after `Key:`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    }

    fn bytes(&self, key: &str) -> Option<u64> {
        kib(self.value(key)?)
    }

    /// Resident memory, without pages of hugetlbfs.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        self.bytes("VmRSS")
    }

    #[must_use]
    pub fn hugetlb_bytes(&self) -> Option<u64> {
        self.bytes("HugetlbPages")
    }

    #[must_use]
    pub fn swapped_bytes(&self) -> Option<u64> {
        self.bytes("VmSwap")
    }

    /// How often the thread gave up its CPU to wait. Yields and preemptions are not counted.
    #[must_use]
    pub fn waits(&self) -> Option<u64> {
        self.value("voluntary_ctxt_switches")?.parse().ok()
    }

    /// CPUs the thread may run on, as the kernel lists them.
    #[must_use]
    pub fn allowed_cpus(&self) -> Option<&str> {
        self.value("Cpus_allowed_list").filter(|list| !list.is_empty())
    }

    /// The process that a thread belongs to.
    #[must_use]
    pub fn process(&self) -> Option<i32> {
        self.value("Tgid")?.parse().ok().filter(|pid| *pid >= 1)
    }

    /// The real user.
    #[must_use]
    pub fn user(&self) -> Option<u32> {
        self.value("Uid")?.split_whitespace().next()?.parse().ok()
    }

    /// The effective user, who owns the files that the process creates.
    #[must_use]
    pub fn effective_user(&self) -> Option<u32> {
        self.value("Uid")?.split_whitespace().nth(1)?.parse().ok()
    }

    /// The process's id as it sees itself: that of its innermost PID namespace.
    #[must_use]
    pub fn innermost_id(&self) -> Option<i32> {
        self.value("NSpid")?.split_whitespace().next_back()?.parse().ok().filter(|pid| *pid >= 1)
    }

    /// Is a signal in one of the sets `SigBlk`, `SigIgn`, `SigCgt`?
    fn is_in_signals(&self, set: &str, signal: i32) -> bool {
        self.value(set).and_then(|text| u64::from_str_radix(text, 16).ok()).is_some_and(|set| set >> (signal - 1) & 1 == 1)
    }

    /// Effective capabilities, a bit each.
    #[must_use]
    pub fn capabilities(&self) -> Option<u64> {
        u64::from_str_radix(self.value("CapEff")?, 16).ok()
    }
}

/// What the profiler reads of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStatus {
    pub waits: u64,
    pub allowed_cpus: Option<String>,
    /// The process handles SIGTRAP, and the thread does not block it.
    pub takes_traps: bool,
}

#[must_use]
pub fn of_thread(root: &Path, pid: i32, tid: i32) -> Option<ThreadStatus> {
    let status = Status::parse(small_file(&root.join(format!("proc/{pid}/task/{tid}/status")))?);
    Some(ThreadStatus {
        waits: status.waits()?,
        allowed_cpus: status.allowed_cpus().map(str::to_owned),
        takes_traps: status.is_in_signals("SigCgt", libc::SIGTRAP) && !status.is_in_signals("SigBlk", libc::SIGTRAP),
    })
}

/// Bytes of a process's memory that are in swap.
#[must_use]
pub fn swapped_bytes(root: &Path, pid: i32) -> Option<u64> {
    Status::of_process(root, pid)?.swapped_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check values of each kind, and that keys match whole.
    #[test]
    fn values_are_read() {
        let status = Status::parse(
            "Name:\ta\nTgid:\t12\nNSpid:\t12\t3\nUid:\t7\t0\t0\t0\nVmRSS:\t    8 kB\nVmSwap:\t 0 kB\nCapEff:\t00f0\nCpus_allowed:\tf\n\
             Cpus_allowed_list:\t0-3\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t9\n"
                .to_owned(),
        );
        assert_eq!((status.process(), status.user(), status.waits(), status.capabilities()), (Some(12), Some(7), Some(5), Some(0xf0)));
        assert_eq!((status.resident_bytes(), status.swapped_bytes(), status.hugetlb_bytes()), (Some(8192), Some(0), None));
        assert_eq!((status.allowed_cpus(), status.effective_user(), status.innermost_id()), (Some("0-3"), Some(0), Some(3)));
    }

    /// Check that damaged values are `None`.
    #[test]
    fn damaged_values() {
        for text in ["", "Tgid", "Tgid:", "Tgid: 0", "Tgid: x", "Uid:", "VmRSS: 1", "VmRSS: 18446744073709551615 kB", "CapEff: z"] {
            let status = Status::parse(text.to_owned());
            assert_eq!(
                (status.process(), status.user(), status.resident_bytes(), status.capabilities()),
                (None, None, None, None),
                "{text}"
            );
        }
        assert_eq!(Status::parse("Cpus_allowed_list:\n".to_owned()).allowed_cpus(), None);
    }
}
