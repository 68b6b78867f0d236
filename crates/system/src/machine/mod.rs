//! The machine that a profile is taken on, what a profiler may do there, and the machine that a profile is judged on.
//!
//! A damaged file is an error here: a wrong machine in a profile would be worse than no profile.

mod caches;
mod kernel;
mod nodes;
mod permissions;
mod target_machine;

pub(crate) use kernel::HUGE_PAGE_BYTES;
pub use kernel::{clock_source, host_name, huge_page_bytes};
pub use permissions::Permissions;
pub use target_machine::{ImportedMachine, TargetError, TargetMachine};

use crate::files::{Root, USUAL_PAGE_BYTES, chosen};
use crate::proc::meminfo;
use crate::{counters, files};
use firsttouch_model::error::Result;
use firsttouch_model::rows::Machine;
use std::path::Path;

/// The machine, what may be observed on it, and what had to be assumed.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineInfo {
    pub machine: Machine,
    pub permissions: Permissions,
    /// Memory a program can still use: the smaller of the system's and the container's; 0 if unknown.
    pub available_memory_bytes: u64,
    /// What could not be read and what was assumed instead.
    pub doubts: Vec<String>,
}

impl MachineInfo {
    /// Reads the machine below a root.
    ///
    /// # Errors
    /// When a file exists but cannot be parsed, or nothing names the CPUs.
    pub fn read(at: &Path) -> Result<Self> {
        let root = Root::new(at);
        let mut doubts = Vec::new();
        let node_cpus = nodes::read(at, &mut doubts)?;
        let caches = caches::read(&root, node_cpus.values().flatten().min().copied().unwrap_or(0))?;
        let page_bytes = files::page_bytes(at).unwrap_or_else(|| {
            doubts.push(format!("the page size could not be read from proc/self/auxv; {USUAL_PAGE_BYTES} bytes assumed"));
            USUAL_PAGE_BYTES
        });
        let machine = Machine {
            hostname: root.text(kernel::HOST_NAME)?.unwrap_or_default(),
            kernel: root.text("proc/sys/kernel/osrelease")?.unwrap_or_default(),
            node_cpus,
            page_bytes,
            huge_page_bytes: root.number(HUGE_PAGE_BYTES)?.unwrap_or(0),
            transparent_huge_pages: root
                .text("sys/kernel/mm/transparent_hugepage/enabled")?
                .and_then(|text| chosen(&text).map(str::to_owned))
                .unwrap_or_default(),
            private_cache_bytes: caches.private_bytes,
            shared_cache_bytes: caches.shared_bytes,
            numa_balancing: root.number("proc/sys/kernel/numa_balancing")?.unwrap_or(0),
            node_tiers: counters::tiers(at),
        };
        Ok(Self { machine, permissions: Permissions::read(&root)?, available_memory_bytes: available_memory_bytes(&root)?, doubts })
    }
}

/// MemAvailable, capped by the control group (version 2, then 1); 0 if neither can be read.
fn available_memory_bytes(root: &Root) -> Result<u64> {
    let system = root.text("proc/meminfo")?.and_then(|text| meminfo::bytes(&text, None, "MemAvailable"));
    let mut group = None;
    for (limit, usage) in [
        ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ] {
        // "max" means no limit, and is not a number.
        let Some(limit) = root.text(limit)?.and_then(|text| text.parse::<u64>().ok()) else { continue };
        let used = root.text(usage)?.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        group = Some(limit.saturating_sub(used));
        break;
    }
    Ok(match (system, group) {
        (Some(system), Some(group)) => system.min(group),
        (one, other) => one.or(other).unwrap_or(0),
    })
}
