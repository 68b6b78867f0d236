//! The memory of each node by what it is used for: meminfo of the node, and its pools of huge pages.

use crate::files::Reader;
use crate::proc::meminfo;
use crate::topology::nodes::{NODES, huge_pages, numbers};
use std::path::Path;

/// What memory is used for. The kinds do not overlap: together they are what is used of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Heaps and stacks of programs, transparent huge pages included.
    Anonymous,
    /// The page cache, without shared memory.
    File,
    /// Shared memory and tmpfs.
    Shared,
    /// The pools of huge pages (hugetlbfs), whether the pages are in use or not.
    HugePagePool,
    SlabReclaimable,
    SlabUnreclaimable,
    KernelStack,
    PageTables,
    /// All other use: percpu memory, drivers, network buffers, memory that the kernel kept for itself.
    Other,
}

impl Kind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::File => "file",
            Self::Shared => "shared",
            Self::HugePagePool => "huge_page_pool",
            Self::SlabReclaimable => "slab_reclaimable",
            Self::SlabUnreclaimable => "slab_unreclaimable",
            Self::KernelStack => "kernel_stack",
            Self::PageTables => "page_tables",
            Self::Other => "other",
        }
    }
}

/// The memory of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMemory {
    pub node: u32,
    /// Online CPUs.
    pub cpus: Option<usize>,
    pub total_bytes: u64,
    pub free_bytes: u64,
    /// By kind. A kind that this kernel does not count is missing, and is part of [`Kind::Other`].
    pub used: Vec<(Kind, u64)>,
    /// Transparent huge pages in use: of [`Kind::Anonymous`].
    pub transparent_huge_bytes: Option<u64>,
}

/// The memory of all nodes, by number. If a node's file cannot be read, a doubt says so.
#[must_use]
pub fn read(root: &Path, doubts: &mut Vec<String>) -> Vec<NodeMemory> {
    let mut reader = Reader::new(root);
    let mut nodes = Vec::new();
    for node in numbers(&mut reader) {
        let folder = format!("{NODES}/node{node}");
        let file = format!("{folder}/meminfo");
        // A node that is being removed has no file any more.
        let Some(text) = reader.text(&file) else { continue };
        let pools = huge_pages(&mut reader, &folder);
        let pool_bytes = pools.iter().try_fold(0_u64, |sum, pool| sum.checked_add(pool.page_bytes.checked_mul(pool.total)?));
        match of_node(node, &text, pool_bytes.filter(|_| !pools.is_empty())) {
            Some(memory) => nodes.push(NodeMemory { cpus: reader.list(&format!("{folder}/cpulist")).map(|cpus| cpus.len()), ..memory }),
            None => reader.doubt(&file, format_args!("has no lines such as Node {node} MemTotal: 1024 kB and Node {node} MemFree: 12 kB")),
        }
    }
    doubts.append(&mut reader.doubts);
    nodes
}

fn of_node(node: u32, text: &str, huge_page_pool: Option<u64>) -> Option<NodeMemory> {
    let bytes = |key: &str| meminfo::bytes(text, Some(node), key);
    let (total_bytes, free_bytes) = (bytes("MemTotal")?, bytes("MemFree")?);
    let shared = bytes("Shmem");
    // The page cache counts shared memory too (Documentation/filesystems/proc.rst).
    let file = bytes("FilePages").map(|all| all.saturating_sub(shared.unwrap_or(0)));
    let page_tables = bytes("PageTables").map(|own| own.saturating_add(bytes("SecPageTables").unwrap_or(0)));
    let known = [
        (Kind::Anonymous, bytes("AnonPages")),
        (Kind::File, file),
        (Kind::Shared, shared),
        (Kind::HugePagePool, huge_page_pool),
        (Kind::SlabReclaimable, bytes("SReclaimable")),
        (Kind::SlabUnreclaimable, bytes("SUnreclaim")),
        (Kind::KernelStack, bytes("KernelStack")),
        (Kind::PageTables, page_tables),
    ];
    let mut used: Vec<(Kind, u64)> = known.into_iter().filter_map(|(kind, bytes)| Some((kind, bytes?))).collect();
    let sum = used.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    // The counters are read one after another, and pages in the swap cache count twice: the rest may come out below zero.
    used.push((Kind::Other, total_bytes.saturating_sub(free_bytes).saturating_sub(sum)));
    Some(NodeMemory { node, cpus: None, total_bytes, free_bytes, used, transparent_huge_bytes: bytes("AnonHugePages") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Node 1 MemTotal: 1000 kB\nNode 1 MemFree: 400 kB\nNode 1 MemUsed: 600 kB\nNode 1 FilePages: 200 kB\n\
        Node 1 AnonPages: 100 kB\nNode 1 Shmem: 50 kB\nNode 1 KernelStack: 10 kB\nNode 1 PageTables: 5 kB\nNode 1 SecPageTables: 1 kB\n\
        Node 1 SReclaimable: 20 kB\nNode 1 SUnreclaim: 30 kB\nNode 1 AnonHugePages: 64 kB\n";

    fn kib(memory: &NodeMemory, kind: Kind) -> Option<u64> {
        memory.used.iter().find(|(one, _)| *one == kind).map(|(_, bytes)| bytes >> 10)
    }

    /// Check that the kinds do not overlap, and are together what is used.
    #[test]
    fn kinds_add_up() {
        let memory = of_node(1, TEXT, Some(100 << 10)).unwrap();
        assert_eq!((memory.total_bytes, memory.free_bytes, memory.transparent_huge_bytes), (1000 << 10, 400 << 10, Some(64 << 10)));
        assert_eq!(memory.used.iter().map(|(_, bytes)| bytes).sum::<u64>(), 600 << 10);
        let kinds = [
            (Kind::Anonymous, 100),
            (Kind::File, 150),
            (Kind::Shared, 50),
            (Kind::HugePagePool, 100),
            (Kind::PageTables, 6),
            (Kind::Other, 134),
        ];
        for (kind, expected) in kinds {
            assert_eq!(kib(&memory, kind), Some(expected), "{}", kind.name());
        }
    }

    /// Check kernels that count less, counters that contradict each other, and text that is not a node's meminfo.
    #[test]
    fn damaged_files_are_survived() {
        let little = of_node(0, "Node 0 MemTotal: 8 kB\nNode 0 MemFree: 3 kB\nNode 0 AnonPages: x kB\n", None).unwrap();
        assert_eq!(little.used, [(Kind::Other, 5 << 10)]);
        let wild = "Node 0 MemTotal: 8 kB\nNode 0 MemFree: 90 kB\nNode 0 FilePages: 1 kB\nNode 0 Shmem: 7 kB\nNode 0 AnonPages: 18014398509481983 kB\n";
        let wild = of_node(0, wild, Some(u64::MAX)).unwrap();
        assert_eq!((kib(&wild, Kind::File), kib(&wild, Kind::Other)), (Some(0), Some(0)));
        for text in ["", "Node 0 MemTotal: 8 kB\n", "Node 1 MemTotal: 8 kB\nNode 1 MemFree: 8 kB\n", "MemTotal: 8 kB\nMemFree: 8 kB\n"] {
            assert_eq!(of_node(0, text, None), None, "{text}");
        }
    }

    /// Check the recorded machines: what is used adds up, pools of huge pages and memoryless nodes included.
    #[test]
    fn recorded_machines_add_up() {
        let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
        let mut seen = 0;
        for machine in std::fs::read_dir(machines).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
            let mut doubts = Vec::new();
            let nodes = read(&machine.path(), &mut doubts);
            assert!(!nodes.is_empty() && doubts.is_empty(), "{:?}: {doubts:?}", machine.path());
            for memory in nodes {
                let used: u64 = memory.used.iter().map(|(_, bytes)| bytes).sum();
                assert_eq!(used, memory.total_bytes - memory.free_bytes, "{:?}: {memory:?}", machine.path());
                seen += 1;
            }
        }
        assert!(seen >= 30, "{seen}");
        let pools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines/guest-huge-pages");
        let pools: Vec<Option<u64>> = read(&pools, &mut Vec::new()).iter().map(|memory| kib(memory, Kind::HugePagePool)).collect();
        assert_eq!(pools, [Some(24 << 11), Some(40 << 11)]);
    }
}
