//! The machine as the kernel describes it: nodes, CPUs, caches, pages, and what a profiler is allowed to do on it.
//!
//! Readers take a root directory (normally `/`), so that they can be tested on recorded machines.

pub mod balancing;
mod cache;
pub mod clock;
pub mod counters;
pub mod devices;
pub mod facts;
mod files;
pub mod fresh_pages;
pub mod hwloc;
pub mod launch;
mod list;
mod nodes;
pub mod page_sample;
pub mod perf;
pub mod perf_probe;
mod permissions;
pub mod placement;
pub mod preload;
pub mod process;
pub mod procfs;
pub mod program;
pub mod residency;
mod target;
pub mod topology;

pub use list::{ListError, parse_list};
pub use permissions::Permissions;
pub use target::{ImportedMachine, TargetError, TargetMachine};

use anyhow::Result;
use files::Root;
use firsttouch_model::rows::Machine;
use std::path::Path;

/// Assumed where the kernel does not tell: the base page of every common x86-64 and most arm64 systems.
const USUAL_PAGE_BYTES: u64 = 4096;

/// This machine, what may be observed on it, and what had to be assumed.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineInfo {
    pub machine: Machine,
    pub permissions: Permissions,
    /// Memory a program can still use: the smaller of what the system has and what the container allows; 0 when unknown.
    pub available_memory_bytes: u64,
    /// What could not be read and what was assumed instead.
    pub doubts: Vec<String>,
}

impl MachineInfo {
    /// Reads the machine below a root.
    ///
    /// # Errors
    /// When a file is there but cannot be understood, or nothing names the CPUs.
    pub fn read(at: &Path) -> Result<Self> {
        let root = Root::new(at);
        let mut doubts = Vec::new();
        let node_cpus = nodes::read(&root, &mut doubts)?;
        let caches = cache::read(&root, node_cpus.values().flatten().min().copied().unwrap_or(0))?;
        let page_bytes = page_bytes(&root).unwrap_or_else(|| {
            doubts.push(format!("the page size could not be read from proc/self/auxv; {USUAL_PAGE_BYTES} bytes assumed"));
            USUAL_PAGE_BYTES
        });
        let machine = Machine {
            hostname: root.text("proc/sys/kernel/hostname")?.unwrap_or_default(),
            kernel: root.text("proc/sys/kernel/osrelease")?.unwrap_or_default(),
            node_cpus,
            page_bytes,
            huge_page_bytes: root.number("sys/kernel/mm/transparent_hugepage/hpage_pmd_size")?.unwrap_or(0),
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

/// The word in brackets of a sysfs choice such as `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// AT_PAGESZ of the auxiliary vector: pairs of native words.
fn page_bytes(root: &Root) -> Option<u64> {
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let bytes = root.bytes("proc/self/auxv")?;
    let word = |slice: &[u8]| slice.try_into().map(usize::from_ne_bytes).ok();
    bytes
        .chunks_exact(2 * WORD)
        .find(|pair| word(&pair[..WORD]) == Some(AT_PAGESZ))
        .and_then(|pair| word(&pair[WORD..]))
        .filter(|size| size.is_power_of_two() && *size >= 1024)
        .map(|size| size as u64)
}

/// MemAvailable, capped by the control group (version 2, then 1); 0 when neither is told.
fn available_memory_bytes(root: &Root) -> Result<u64> {
    let system = root.text("proc/meminfo")?.and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
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

#[cfg(test)]
mod tests {
    use super::chosen;

    /// Check that the chosen word is found, and its absence is no panic.
    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("[always]"), Some("always"));
        for text in ["", "always never", "[", "]", "[a b]"] {
            assert_eq!(chosen(text), None, "{text}");
        }
    }
}
