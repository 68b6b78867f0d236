//! A machine's topology, read from the system or from an hwloc XML file. The names of the fields are the keys of the JSON
//! (docs/topology.md).
//!
//! Numbers of nodes, CPUs, packages and dies are the kernel's own; they may have holes. CPU and node lists are sorted.

use crate::shown::make_one_line;
use serde::{Deserialize, Serialize};

/// A machine. What could not be read is empty or `None`, with an entry in `doubts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    pub processor: Processor,
    pub cpus: CpuLists,
    pub packages: Vec<Package>,
    /// Dies, as the kernel numbers them within their package.
    pub dies: Vec<Die>,
    /// Cores with their SMT siblings.
    pub cores: Vec<Core>,
    pub caches: Vec<Cache>,
    /// Online nodes.
    pub nodes: Vec<Node>,
    /// Size of a base page; `None` when unknown.
    pub page_bytes: Option<u64>,
    /// The firmware's relative memory latencies (ACPI SLIT, local = 10); `None` when unknown or contradictory.
    pub distances: Option<Distances>,
    /// Several nodes in a package, or several packages in a node.
    pub sub_numa: Option<SubNuma>,
    /// Where this process may run and allocate; `None` for a machine read from a file.
    pub process: Option<ProcessLimits>,
    /// Scheduling domains, from the innermost; empty if the kernel does not show them.
    pub scheduling_domains: Vec<SchedulingDomain>,
    /// What could not be read or contradicts itself, and what was assumed instead.
    pub doubts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// The processor's own text (`GenuineIntel`, `AuthenticAMD`); empty if unknown.
    pub vendor: String,
    pub model_name: String,
    /// x86 family and model numbers.
    pub family: Option<u32>,
    pub model: Option<u32>,
    /// Whether this is a virtual machine: its topology may be made up.
    pub hypervisor: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLists {
    pub online: Vec<u32>,
    /// Present, but not online.
    pub offline: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    pub id: u32,
    pub cpus: Vec<u32>,
    /// Nodes with CPUs of this package.
    pub nodes: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Die {
    pub id: u32,
    pub package: u32,
    pub cpus: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// The kernel's core number, unique within a package only.
    pub id: Option<u32>,
    pub package: Option<u32>,
    /// The core's CPUs: SMT siblings.
    pub cpus: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    Data,
    Instruction,
    Unified,
}

/// One cache, with the CPUs that share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    pub level: u32,
    pub kind: CacheKind,
    pub size_bytes: u64,
    pub line_bytes: Option<u64>,
    pub ways: Option<u64>,
    pub cpus: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub id: u32,
    /// Online CPUs; empty for a node of memory only.
    pub cpus: Vec<u32>,
    /// `None` when unknown; a node without memory has 0 bytes.
    pub memory: Option<Memory>,
    pub huge_pages: Vec<HugePages>,
    /// The firmware's figures (ACPI HMAT) for access from the best initiators.
    pub access: Vec<Access>,
    pub memory_side_caches: Vec<MemorySideCache>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub total_bytes: u64,
    /// `None` for a machine read from a file without free memory.
    pub free_bytes: Option<u64>,
}

/// A pool of huge pages of one size on one node (hugetlbfs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePages {
    pub page_bytes: u64,
    pub total: u64,
    pub free: Option<u64>,
    pub surplus: Option<u64>,
}

/// Access of a node's memory from its nearest initiators. Units are those of the kernel: MiB/s and ns
/// (Documentation/admin-guide/mm/numaperf.rst).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// 0: nearest initiators of any kind, such as a GPU; 1: nearest nodes with CPUs.
    pub class: u32,
    /// Nodes that the figures were measured from.
    pub initiators: Vec<u32>,
    pub read_bandwidth_mib_s: Option<u64>,
    pub write_bandwidth_mib_s: Option<u64>,
    pub read_latency_ns: Option<u64>,
    pub write_latency_ns: Option<u64>,
}

/// A cache in front of a node's memory, such as DRAM in front of persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySideCache {
    pub level: u32,
    pub size_bytes: u64,
    pub line_bytes: Option<u64>,
}

/// `matrix[i][j]`: the distance from `nodes[i]` to the memory of `nodes[j]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distances {
    pub nodes: Vec<u32>,
    pub matrix: Vec<Vec<u32>>,
}

/// How packages and nodes are divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubNuma {
    /// The vendor's name, such as `SNC2`, `CoD`, `NPS4`; empty if the vendor has no name for it.
    pub mode: String,
    /// Nodes with CPUs in each package; 0 when a node spans packages.
    pub nodes_per_package: u32,
    /// The meaning of the mode, in words.
    pub meaning: String,
}

/// Where a process may run and allocate, as in `numactl --show`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    pub policy: Option<MemoryPolicy>,
    /// `None` when unknown.
    pub allowed_cpus: Option<Vec<u32>>,
    pub allowed_nodes: Option<Vec<u32>>,
    pub cpuset: Option<Cpuset>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPolicy {
    /// `default`, `prefer`, `bind`, `interleave`, `local`, `prefer (many)`, `weighted interleave`: the kernel's words.
    pub mode: String,
    /// `static`, `relative`, `balancing`.
    pub flags: Vec<String>,
    pub nodes: Vec<u32>,
    /// The source: `get_mempolicy` or `numa_maps`.
    pub source: String,
}

/// The cgroup's cpuset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpuset {
    /// Path of the group below its mount point.
    pub group: String,
    pub cpus: Option<Vec<u32>>,
    pub nodes: Option<Vec<u32>>,
}

/// The domains of one level and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulingDomain {
    /// 0 is the innermost.
    pub level: u32,
    /// `SMT`, `MC`, `PKG`, `NUMA`, ...; empty if the kernel does not say.
    pub name: String,
    /// The CPUs of each domain; empty if only the names can be read.
    pub spans: Vec<Vec<u32>>,
}

impl Topology {
    /// Replaces what could control a terminal, or begin a line, in every text: files may come from anywhere.
    pub fn make_names_safe(&mut self) {
        let own = [&mut self.processor.vendor, &mut self.processor.model_name].into_iter();
        own.chain(&mut self.doubts).chain(self.scheduling_domains.iter_mut().map(|domain| &mut domain.name)).for_each(make_one_line);
        let Some(process) = &mut self.process else { return };
        let policy = process.policy.iter_mut();
        policy.flat_map(|policy| [&mut policy.mode, &mut policy.source].into_iter().chain(&mut policy.flags)).for_each(make_one_line);
        process.cpuset.iter_mut().for_each(|cpuset| make_one_line(&mut cpuset.group));
    }

    #[must_use]
    pub fn node(&self, id: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The node a CPU is on.
    #[must_use]
    pub fn node_of_cpu(&self, cpu: u32) -> Option<u32> {
        self.nodes.iter().find(|node| node.cpus.binary_search(&cpu).is_ok()).map(|node| node.id)
    }

    /// Nodes that have some of these CPUs.
    #[must_use]
    pub fn nodes_of(&self, cpus: &[u32]) -> Vec<u32> {
        self.nodes.iter().filter(|node| node.cpus.iter().any(|cpu| cpus.binary_search(cpu).is_ok())).map(|node| node.id).collect()
    }

    /// SMT threads of the core with the most; 0 if cores are unknown.
    #[must_use]
    pub fn threads_per_core(&self) -> usize {
        self.cores.iter().map(|core| core.cpus.len()).max().unwrap_or(0)
    }
}

impl Distances {
    #[must_use]
    pub fn between(&self, from: u32, to: u32) -> Option<u32> {
        let place = |id| self.nodes.iter().position(|node| *node == id);
        self.matrix.get(place(from)?)?.get(place(to)?).copied()
    }
}

impl CacheKind {
    /// The letter after `L1`: `d`, `i`, or nothing.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Self::Data => "d",
            Self::Instruction => "i",
            Self::Unified => "",
        }
    }
}

impl Cache {
    /// `L1d`, `L2`, `L3`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("L{}{}", self.level, self.kind.letter())
    }
}

/// Sorted numbers in the kernel's list format, such as `0-3,8`; empty without numbers.
#[must_use]
pub fn format_list(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let words: Vec<String> =
        parts.into_iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") }).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the list format against the kernel's (lib/vsprintf.c, `%*pbl`): neighbours are joined, also two of them.
    #[test]
    fn lists_are_written() {
        for (numbers, text) in [
            (&[][..], ""),
            (&[0], "0"),
            (&[0, 1], "0-1"),
            (&[0, 1, 2, 3, 8], "0-3,8"),
            (&[1, 3, 5, 6], "1,3,5-6"),
            (&[u32::MAX - 1, u32::MAX], "4294967294-4294967295"),
        ] {
            assert_eq!(format_list(numbers), text);
        }
    }

    /// Check look-ups on node numbers with holes.
    #[test]
    fn look_ups_use_the_kernels_numbers() {
        let node = |id, cpus: &[u32]| Node { id, cpus: cpus.to_vec(), ..Node::default() };
        let topology = Topology { nodes: vec![node(0, &[0, 2]), node(4, &[5]), node(7, &[])], ..Topology::default() };
        assert_eq!((topology.node_of_cpu(5), topology.node_of_cpu(1)), (Some(4), None));
        assert_eq!(topology.nodes_of(&[2, 5, 9]), [0, 4]);
        assert!(topology.node(7).is_some() && topology.node(1).is_none());
        let distances = Distances { nodes: vec![0, 4], matrix: vec![vec![10, 21], vec![20, 10]] };
        assert_eq!((distances.between(0, 4), distances.between(4, 0), distances.between(0, 7)), (Some(21), Some(20), None));
    }
}
