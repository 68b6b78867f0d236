//! A process: its threads, and its memory by mapping and node.

use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes of each node that has any.
pub type ByNode = BTreeMap<u32, u64>;

/// Where a process's memory is, summed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryUse {
    /// Resident bytes by node, huge pages of hugetlbfs included; `None` where the kernel does not tell.
    pub nodes: Option<ByNode>,
    /// `VmRSS` of /proc/PID/status: all but the pages of hugetlbfs.
    pub rss_bytes: Option<u64>,
    /// Pages of hugetlbfs.
    pub hugetlb_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
}

/// What `firsttouch ps` shows of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessThreads {
    pub pid: i32,
    pub name: String,
    pub memory: MemoryUse,
    pub threads: Vec<Thread>,
    pub doubts: Vec<String>,
}

/// A thread. What the kernel does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Thread {
    pub tid: i32,
    pub name: String,
    /// The letter of proc(5): R running or waiting for a CPU, S sleeping, D waiting for a device, T stopped, Z ended.
    pub state: char,
    /// The CPU it last ran on, and that CPU's node.
    pub cpu: u32,
    pub node: Option<u32>,
    /// User and system time.
    pub cpu_ms: u64,
    pub allowed_cpus: Option<Vec<u32>>,
    pub allowed_nodes: Option<Vec<u32>>,
    /// Times the scheduler moved it to another CPU.
    pub migrations: Option<u64>,
    /// Pages the balancing moved for it.
    pub pages_migrated: Option<u64>,
    /// The node the balancing wants it on.
    pub preferred_node: Option<u32>,
    /// Hinting faults by the node of the page, as the balancing weighs them: old ones fade.
    pub hint_faults: Option<ByNode>,
}

/// What `firsttouch maps` shows of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessMaps {
    pub pid: i32,
    pub name: String,
    pub memory: MemoryUse,
    /// By address.
    pub mappings: Vec<Mapping>,
    /// Objects of a profile that lie in this process now, by address.
    pub objects: Vec<MappedObject>,
    pub doubts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// `rw-p`; empty when only numa_maps could be read.
    pub permissions: String,
    /// A path, `[heap]`, `[stack]`, or empty for anonymous memory.
    pub name: String,
    /// The kernel's words, such as `default` or `interleave:0-1`; `None` without numa_maps.
    pub policy: Option<String>,
    /// Size of the pages the mapping is made of: that of hugetlbfs for its mappings, else the base page.
    pub page_bytes: Option<u64>,
    /// Whether the pages are of hugetlbfs.
    pub hugetlb: bool,
    /// Resident bytes. All nodes' sum, or of smaps where nodes are not told.
    pub resident_bytes: u64,
    /// The part of them in transparent huge pages.
    pub transparent_huge_bytes: u64,
    pub swap_bytes: u64,
    /// Resident bytes by node; `None` where the kernel does not tell.
    pub nodes: Option<ByNode>,
}

/// An object of a profile, found again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MappedObject {
    /// The profile's object id.
    pub id: i64,
    pub name: String,
    pub address: u64,
    pub bytes: u64,
    /// Pages asked about (a sample, evenly spread), and where the kernel said they are.
    pub pages_asked: u64,
    pub pages_by_node: BTreeMap<u32, u64>,
}
