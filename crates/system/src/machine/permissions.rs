//! What a profiler without root is allowed to do here.

use crate::files::Root;
use crate::proc::status::Status;
use firsttouch_model::error::Result;

/// CAP_SYS_ADMIN and CAP_PERFMON (linux/capability.h): either overrides `perf_event_paranoid`.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

/// Settings of the kernel; `None` if a file is missing (older kernel, feature not built in, masked in a container).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// kernel.perf_event_paranoid: -1 all, 0 raw, 1 CPU events, 2 own processes in user mode; 3 and 4 (Debian, Ubuntu) nothing.
    pub perf_event_paranoid: Option<i64>,
    /// kernel.perf_event_mlock_kb: locked ring buffer memory of each user, KiB.
    pub perf_event_mlock_kb: Option<u64>,
    /// kernel.kptr_restrict: whether kernel addresses are hidden.
    pub kptr_restrict: Option<i64>,
    /// kernel.yama.ptrace_scope: above 0, attaching to a process that is not a child needs a capability.
    pub ptrace_scope: Option<i64>,
    /// kernel.numa_balancing: 0 off, 1 on, 2 memory tiering.
    pub numa_balancing: Option<i64>,
    /// Seccomp mode of this process: 0 none, 1 strict, 2 a filter (a container usually has one).
    pub seccomp: Option<i64>,
    /// Effective capabilities of this process.
    pub capabilities: Option<u64>,
}

impl Permissions {
    pub(crate) fn read(root: &Root) -> Result<Self> {
        let status = Status::parse(root.text("proc/self/status")?.unwrap_or_default());
        Ok(Self {
            perf_event_paranoid: root.number("proc/sys/kernel/perf_event_paranoid")?,
            perf_event_mlock_kb: root.number("proc/sys/kernel/perf_event_mlock_kb")?,
            kptr_restrict: root.number("proc/sys/kernel/kptr_restrict")?,
            ptrace_scope: root.number("proc/sys/kernel/yama/ptrace_scope")?,
            numa_balancing: root.number("proc/sys/kernel/numa_balancing")?,
            seccomp: status.value("Seccomp").and_then(|text| text.parse().ok()),
            capabilities: status.capabilities(),
        })
    }

    /// Whether this process has a capability that overrides `perf_event_paranoid`.
    #[must_use]
    pub fn may_ignore_paranoid(&self) -> bool {
        self.capabilities.is_some_and(|set| set & (1 << CAP_SYS_ADMIN | 1 << CAP_PERFMON) != 0)
    }
}
