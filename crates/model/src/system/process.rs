//! A process: its threads, and its memory by mapping and node.

use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes on each node; nodes without any are left out.
pub type ByNode = BTreeMap<u32, u64>;

/// The sums of a process's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryUse {
    /// Resident bytes by node, huge pages of hugetlbfs included; `None` if the kernel does not report it.
    pub nodes: Option<ByNode>,
    /// `VmRSS` of /proc/PID/status: without pages of hugetlbfs.
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

/// A thread. Fields that the kernel does not report are `None`.
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
    /// How often the scheduler moved it to another CPU.
    pub migrations: Option<u64>,
    /// Pages that NUMA balancing moved for it.
    pub pages_migrated: Option<u64>,
    /// The node that NUMA balancing prefers for it.
    pub preferred_node: Option<u32>,
    /// NUMA-hinting faults by the node of the page. The kernel decays old faults.
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
    /// Objects of a profile that exist in this process now, by address.
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
    /// Page size of the mapping: that of hugetlbfs for its mappings, else the base page.
    pub page_bytes: Option<u64>,
    /// Whether the pages are of hugetlbfs.
    pub hugetlb: bool,
    /// Resident bytes: the sum of all nodes, or from smaps if nodes are unknown.
    pub resident_bytes: u64,
    /// The part of them in transparent huge pages.
    pub transparent_huge_bytes: u64,
    pub swap_bytes: u64,
    /// Resident bytes by node; `None` if the kernel does not report it.
    pub nodes: Option<ByNode>,
}

/// An object of a profile that was found in a running process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MappedObject {
    /// The profile's object id.
    pub id: i64,
    pub name: String,
    pub address: u64,
    pub bytes: u64,
    /// Pages queried (an evenly spread sample), and the node of each according to the kernel.
    pub pages_asked: u64,
    pub pages_by_node: BTreeMap<u32, u64>,
}
