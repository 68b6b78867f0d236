//! Nodes: CPUs, memory, huge pages and the firmware's access figures; sys/devices/system/node.

use crate::files::{Reader, short, size_bytes};
use crate::proc::meminfo;
use firsttouch_model::topology::{Access, CpuLists, HugePages, Memory, MemorySideCache, Node};
use std::collections::BTreeMap;

pub const NODES: &str = "sys/devices/system/node";
/// Kernels support at most 1024 nodes (CONFIG_NODES_SHIFT ends at 10): larger numbers are damage.
const MOST: u32 = 1024;

pub fn read(reader: &mut Reader, cpus: &CpuLists) -> Vec<Node> {
    let mut nodes = outline(reader, cpus);
    for node in &mut nodes {
        let folder = format!("{NODES}/node{}", node.id);
        node.huge_pages = huge_pages(reader, &folder);
        node.access = [0, 1].into_iter().filter_map(|class| access(reader, &folder, class)).collect();
        node.memory_side_caches = memory_side_caches(reader, &folder);
    }
    nodes
}

/// The numbers of the nodes: those that are online, or the nodeN directories if the kernel does not list them. Empty without NUMA support.
pub fn numbers(reader: &mut Reader) -> Vec<u32> {
    let mut numbers = reader.list(&format!("{NODES}/online")).unwrap_or_default();
    if numbers.iter().any(|number| *number >= MOST) {
        reader.doubt(&format!("{NODES}/online"), format_args!("names nodes above {}, which no kernel has; not used", MOST - 1));
        numbers.clear();
    }
    if numbers.is_empty() {
        numbers = reader.numbered(NODES, "node");
        numbers.retain(|number| *number < MOST);
    }
    numbers
}

/// Only the nodes' CPUs and memory.
pub fn outline(reader: &mut Reader, cpus: &CpuLists) -> Vec<Node> {
    let numbers = numbers(reader);
    if numbers.is_empty() {
        return vec![only_node(reader, cpus)];
    }
    let mut nodes: Vec<Node> = numbers.into_iter().map(|id| one(reader, id)).collect();
    assign_cpus(reader, &mut nodes, cpus);
    nodes
}

/// A kernel without NUMA support, or a sandbox without /sys: one node with all CPUs and the memory of proc/meminfo.
fn only_node(reader: &mut Reader, cpus: &CpuLists) -> Node {
    reader.doubt(NODES, format_args!("names no nodes; taken as one node with all {} CPUs", cpus.online.len()));
    let memory = memory(reader, "proc/meminfo", None);
    Node { id: 0, cpus: cpus.online.clone(), memory, ..Node::default() }
}

fn one(reader: &mut Reader, id: u32) -> Node {
    let folder = format!("{NODES}/node{id}");
    let file = format!("{folder}/cpulist");
    let cpus = reader.list(&file).unwrap_or_else(|| {
        reader.doubt(&file, format_args!("cannot be read; node {id} is taken as a node without CPUs"));
        Vec::new()
    });
    Node { id, cpus, memory: memory(reader, &format!("{folder}/meminfo"), Some(id)), ..Node::default() }
}

/// Makes every online CPU belong to at most one node, and adds a doubt where files disagree.
fn assign_cpus(reader: &mut Reader, nodes: &mut [Node], cpus: &CpuLists) {
    let mut owner: BTreeMap<u32, u32> = BTreeMap::new();
    for node in nodes.iter_mut() {
        let file = format!("{NODES}/node{}/cpulist", node.id);
        node.cpus.retain(|cpu| {
            if cpus.online.binary_search(cpu).is_err() {
                reader.doubt(&file, format_args!("names CPU {cpu}, which is not online; left out"));
                return false;
            }
            if let Some(first) = owner.get(cpu) {
                reader.doubt(&file, format_args!("names CPU {cpu}, as node {first} does; taken as on node {first}"));
                return false;
            }
            owner.insert(*cpu, node.id);
            true
        });
    }
    let unassigned: Vec<u32> = cpus.online.iter().copied().filter(|cpu| !owner.contains_key(cpu)).collect();
    if owner.is_empty() {
        // All CPU lists are empty or damaged: assume that the CPUs are on the first node.
        if let Some(node) = nodes.first_mut() {
            reader.doubt(NODES, format_args!("no node has CPUs; all {} CPUs are taken as on node {}", unassigned.len(), node.id));
            node.cpus = unassigned;
        }
    } else if let Some(cpu) = unassigned.first() {
        reader.doubt(NODES, format_args!("no node has CPU {cpu} ({} CPUs in all), though it is online", unassigned.len()));
    }
}

/// `MemTotal` and `MemFree` of the system, or of a node.
fn memory(reader: &mut Reader, file: &str, node: Option<u32>) -> Option<Memory> {
    let Some(text) = reader.text(file) else {
        reader.doubt(file, "cannot be read; the node's memory is unknown");
        return None;
    };
    let (total, free) = (meminfo::bytes(&text, node, "MemTotal"), meminfo::bytes(&text, node, "MemFree"));
    let prefix = node.map_or_else(String::new, |node| format!("Node {node} "));
    let Some(total_bytes) = total else {
        reader.doubt(file, format_args!("has no line such as {prefix}MemTotal: 1024 kB"));
        return None;
    };
    if free.is_none() {
        reader.doubt(file, format_args!("has no line such as {prefix}MemFree: 1024 kB"));
    }
    if let Some(free) = free.filter(|free| *free > total_bytes) {
        reader.doubt(file, format_args!("has {free} bytes free of {total_bytes}"));
    }
    Some(Memory { total_bytes, free_bytes: free })
}

/// The pools of huge pages: hugepages/hugepages-2048kB/{nr,free,surplus}_hugepages.
pub fn huge_pages(reader: &mut Reader, folder: &str) -> Vec<HugePages> {
    let mut pools = Vec::new();
    for name in reader.names(&format!("{folder}/hugepages")) {
        let Some(kib) = name.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("kB")) else { continue };
        let Some(page_bytes) = kib.parse::<u64>().ok().and_then(|kib| kib.checked_mul(1024)) else { continue };
        let pool = format!("{folder}/hugepages/{name}");
        let Some(total) = reader.number(&format!("{pool}/nr_hugepages")) else { continue };
        let free = reader.number(&format!("{pool}/free_hugepages"));
        if free.is_some_and(|free| free > total) {
            reader.doubt(&format!("{pool}/free_hugepages"), format_args!("more pages are free than the {total} of the pool"));
        }
        pools.push(HugePages { page_bytes, total, free, surplus: reader.number(&format!("{pool}/surplus_hugepages")) });
    }
    pools.sort_by_key(|pool| pool.page_bytes);
    pools
}

/// accessN/initiators: figures of the firmware's HMAT, and links to the nodes they were measured from.
fn access(reader: &mut Reader, folder: &str, class: u32) -> Option<Access> {
    let folder = format!("{folder}/access{class}/initiators");
    let mut figure = |name: &str| reader.number::<u64>(&format!("{folder}/{name}"));
    let access = Access {
        class,
        read_bandwidth_mib_s: figure("read_bandwidth"),
        write_bandwidth_mib_s: figure("write_bandwidth"),
        read_latency_ns: figure("read_latency"),
        write_latency_ns: figure("write_latency"),
        initiators: reader.numbered(&folder, "node"),
    };
    let empty = Access { class, ..Access::default() };
    (access != empty).then_some(access)
}

fn memory_side_caches(reader: &mut Reader, folder: &str) -> Vec<MemorySideCache> {
    let folder = format!("{folder}/memory_side_cache");
    let mut caches = Vec::new();
    for level in reader.numbered(&folder, "index") {
        let file = format!("{folder}/index{level}/size");
        let Some(text) = reader.text(&file) else { continue };
        let Some(size_bytes) = size_bytes(&text) else {
            reader.doubt(&file, format_args!("expected a size in bytes, found {}", short(&text)));
            continue;
        };
        caches.push(MemorySideCache { level, size_bytes, line_bytes: reader.number(&format!("{folder}/index{level}/line_size")) });
    }
    caches
}
