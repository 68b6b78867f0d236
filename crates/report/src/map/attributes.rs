//! A map as hwloc XML: the machine's topology, with the measured figures as memory attributes of each pair of nodes.

use crate::topology::{Attribute, hwloc_xml_with};
use firsttouch_experiments::map::{Map, PairFigure, PairTable};
use firsttouch_model::topology::Topology;

/// MiB/s (hwloc's unit) in one GB/s (10^9 bytes/s).
const MIB_PER_GB: f64 = 1e9 / 1_048_576.0;

/// hwloc's name of an attribute, the tables to take it from in order of preference, and whether higher is better.
const ATTRIBUTES: [(&str, &[&str], bool); 4] = [
    ("Bandwidth", &["copy", "triad", "schoenauer"], true),
    ("ReadBandwidth", &["read"], true),
    ("WriteBandwidth", &["write"], true),
    ("Latency", &["latency"], false),
];

/// The topology as an hwloc XML document with the measured bandwidths and latencies of all pairs (`lstopo --memattrs -i FILE`).
#[must_use]
pub fn map_xml(map: &Map, topology: &Topology) -> String {
    let mut attributes = Vec::new();
    for (name, tables, higher_is_better) in ATTRIBUTES {
        let table = tables.iter().find_map(|name| map.tables.iter().find(|table| table.name == *name));
        let values = table.map_or_else(Vec::new, |table| values(table, topology, higher_is_better));
        if !values.is_empty() {
            attributes.push(Attribute { name, higher_is_better, values });
        }
    }
    hwloc_xml_with(topology, &attributes)
}

/// (node of the memory, CPUs, figure in MiB/s or ns) of each pair.
fn values(table: &PairTable, topology: &Topology, is_bandwidth: bool) -> Vec<(u32, Vec<u32>, u64)> {
    let factor = if is_bandwidth { MIB_PER_GB } else { 1.0 };
    let value = |cell: &PairFigure| {
        let cpus = topology.nodes.iter().find(|node| node.id == cell.cpu_node)?.cpus.clone();
        Some((cell.memory_node, cpus, (cell.best?.value * factor).round() as u64))
    };
    table.cells.iter().filter_map(value).collect()
}
