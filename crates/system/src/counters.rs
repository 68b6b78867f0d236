//! Counters of placement and migration: numastat and vmstat of each node, and /proc/vmstat.

use crate::files::{Reader, short};
use crate::proc::meminfo;
use firsttouch_model::system::{Counters, NodeCounters};
use std::collections::BTreeMap;
use std::path::Path;

const NODES: &str = "sys/devices/system/node";
const VMSTAT: &str = "proc/vmstat";
/// The six counters of numastat; /proc/vmstat has their sums under the same names.
const SUMS: [&str; 6] = ["numa_hit", "numa_miss", "numa_foreign", "numa_interleave", "numa_local", "numa_other"];
/// Prefixes of the lines of vmstat about placement and migration.
const PREFIXES: [&str; 5] = ["numa_", "pgmigrate_", "thp_migration_", "pgpromote_", "pgdemote_"];

/// Reads the counters below `root`. If a file cannot be read, its counters are missing and a doubt says so.
#[must_use]
pub fn read(root: &Path) -> Counters {
    let mut reader = Reader::new(root);
    let mut counters = Counters { nodes: nodes(&mut reader), ..Counters::default() };
    counters.system = pairs(&mut reader, VMSTAT, true).unwrap_or_default();
    counters.system.retain(|name, _| PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
    if counters.system.is_empty() {
        reader.doubt(VMSTAT, "cannot be read, or has no numa_ counters (a kernel without NUMA support)");
    }
    if counters.nodes.is_empty() {
        reader.doubt(NODES, "no node's numastat can be read; only sums over all nodes are known");
    } else {
        counters.system.retain(|name, _| !SUMS.contains(&name.as_str()));
    }
    if reader.number::<u64>("proc/sys/vm/numa_stat") == Some(0) {
        reader.doubt(
            "proc/sys/vm/numa_stat",
            "is 0: the kernel does not count numa_hit and the other counters of numastat; root can turn them on: sysctl vm.numa_stat=1",
        );
    }
    counters.doubts = reader.doubts;
    counters
}

fn nodes(reader: &mut Reader) -> Vec<NodeCounters> {
    let mut nodes = Vec::new();
    for id in reader.numbered(NODES, "node") {
        let folder = format!("{NODES}/node{id}");
        let Some(mut counters) = pairs(reader, &format!("{folder}/numastat"), true) else { continue };
        // Since Linux 6.x some migrations are counted by node. The rest of the file repeats numastat, or is not about placement.
        let more = pairs(reader, &format!("{folder}/vmstat"), false).unwrap_or_default();
        counters.extend(more.into_iter().filter(|(name, _)| name.starts_with("pgpromote_") || name.starts_with("pgdemote_")));
        nodes.push(NodeCounters { id, counters });
    }
    nodes
}

/// Memory of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMemory {
    pub node: u32,
    pub total_bytes: u64,
    pub free_bytes: u64,
}

/// Memory of each node that has a readable meminfo.
#[must_use]
pub fn memory(root: &Path) -> Vec<NodeMemory> {
    let mut reader = Reader::new(root);
    let read = |node: u32| {
        let text = reader.text(&format!("{NODES}/node{node}/meminfo"))?;
        let bytes = |key: &str| meminfo::bytes(&text, Some(node), key);
        Some(NodeMemory { node, total_bytes: bytes("MemTotal")?, free_bytes: bytes("MemFree")? })
    };
    let nodes: Vec<u32> = Reader::new(root).numbered(NODES, "node");
    nodes.into_iter().filter_map(read).collect()
}

/// The memory tier of each node, if the kernel reports it (Linux 6.1): lower numbers are faster.
#[must_use]
pub fn tiers(root: &Path) -> BTreeMap<u32, u32> {
    const TIERS: &str = "sys/devices/virtual/memory_tiering";
    let mut reader = Reader::new(root);
    let mut nodes = BTreeMap::new();
    for tier in reader.numbered(TIERS, "memory_tier") {
        for node in reader.list(&format!("{TIERS}/memory_tier{tier}/nodelist")).unwrap_or_default() {
            nodes.entry(node).or_insert(tier);
        }
    }
    nodes
}

/// Parses lines of a name and a number. With `strict`, a line of another form is a doubt.
fn pairs(reader: &mut Reader, file: &str, strict: bool) -> Option<BTreeMap<String, u64>> {
    let text = reader.text(file)?;
    let mut pairs = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (name, value, end) = (words.next(), words.next().and_then(|word| word.parse().ok()), words.next());
        let (Some(name), Some(value), None) = (name, value, end) else {
            if strict {
                reader.doubt(file, format_args!("expected a name and a number, found {}", short(line)));
            }
            continue;
        };
        if pairs.insert(name.to_owned(), value).is_some_and(|first| first != value) {
            reader.doubt(file, format_args!("has {} twice", short(name)));
        }
    }
    Some(pairs)
}
