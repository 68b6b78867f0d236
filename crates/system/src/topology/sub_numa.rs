//! The vendors' names for the division of packages into nodes.
//!
//! Sources: Intel 64 and IA-32 family and model numbers (SDM volume 4, table 2-1) with the names of the server BIOSes of
//! each generation: cluster on die (Haswell, Broadwell), sub-NUMA clustering (Knights Landing, Skylake and later);
//! AMD's "NUMA topology for EPYC processors" (nodes per socket, NPS) and its BIOS option "L3 cache as NUMA domain".

use firsttouch_model::topology::{SubNuma, Topology};
use std::collections::BTreeSet;

/// Haswell-EP/EX and Broadwell-EP/EX/D (family 6).
const CLUSTER_ON_DIE: [u32; 4] = [63, 79, 86, 71];
/// First EPYC generation: each of its four dies is a node.
const NAPLES: (u32, u32) = (23, 1);
/// AMD families with packages of several dies, each a node, before Zen: Magny-Cours (16) to Excavator (21, 22).
const MODULES: std::ops::Range<u32> = 16..FIRST_ZEN_FAMILY;
/// AMD families with nodes-per-socket settings: Zen (23) and later; Hygon's Dhyana is 24.
const FIRST_ZEN_FAMILY: u32 = 23;

/// Several nodes in each package, or several packages in a node; `None` if each package is one node, or they are unknown.
pub fn recognise(topology: &Topology) -> Option<SubNuma> {
    if topology.packages.is_empty() {
        return None;
    }
    let with_cpus = topology.nodes.iter().filter(|node| !node.cpus.is_empty()).count();
    let most = topology.packages.iter().map(|package| package.nodes.len()).max().unwrap_or(0);
    if topology.nodes.iter().any(|node| packages_of(topology, node.id) > 1) {
        return (with_cpus < topology.packages.len()).then(|| spanned(topology));
    }
    (most >= 2).then(|| divided(topology, u32::try_from(most).unwrap_or(u32::MAX)))
}

fn packages_of(topology: &Topology, node: u32) -> usize {
    topology.packages.iter().filter(|package| package.nodes.contains(&node)).count()
}

fn is_amd(topology: &Topology) -> bool {
    matches!(topology.processor.vendor.as_str(), "AuthenticAMD" | "HygonGenuine")
}

fn spanned(topology: &Topology) -> SubNuma {
    let zen = is_amd(topology) && topology.processor.family.is_some_and(|family| family >= FIRST_ZEN_FAMILY);
    let mode = if zen { "NPS0" } else { "" };
    let meaning = format!(
        "a node spans several packages: {}memory is interleaved over them by the firmware, or NUMA is off (numa=off); part of every page's \
         lines is remote, and first touch decides nothing",
        if zen { "no nodes per socket, " } else { "" }
    );
    SubNuma { mode: mode.to_owned(), nodes_per_package: 0, meaning }
}

fn divided(topology: &Topology, count: u32) -> SubNuma {
    let processor = &topology.processor;
    let model = processor.family.zip(processor.model);
    let plain = || (String::new(), format!("each package has {count} nodes"));
    let (mode, meaning) = match processor.vendor.as_str() {
        "GenuineIntel" if model.is_some_and(|(family, model)| family == 6 && CLUSTER_ON_DIE.contains(&model)) => (
            "CoD".to_owned(),
            format!("cluster on die: each package is {count} nodes, each with its part of the cores, L3 and memory channels"),
        ),
        "GenuineIntel" => (
            format!("SNC{count}"),
            format!("sub-NUMA clustering: each package is {count} nodes, each with its part of the cores, L3 and memory channels"),
        ),
        _ if is_amd(topology) && processor.family.is_none_or(|family| family >= FIRST_ZEN_FAMILY) => {
            if one_node_a_cache(topology) && !matches!(count, 2 | 4) {
                (
                    "L3 as NUMA".to_owned(),
                    format!("the firmware makes each L3 cache a node: {count} in a package, which share its memory channels"),
                )
            } else if model == Some(NAPLES) && count == 4 {
                ("NPS4".to_owned(), "each of the package's 4 dies is a node with its own memory channels".to_owned())
            } else {
                let or = if one_node_a_cache(topology) { " (or the firmware makes each L3 cache a node: L3 as NUMA)" } else { "" };
                (format!("NPS{count}"), format!("{count} nodes per socket, each with its part of the cores and memory channels{or}"))
            }
        }
        _ if is_amd(topology) && processor.family.is_some_and(|family| MODULES.contains(&family)) => {
            (String::new(), format!("each package is a module of {count} dies, each a node"))
        }
        _ => plain(),
    };
    SubNuma { mode, nodes_per_package: count, meaning }
}

/// Whether each node with CPUs has exactly the CPUs of one last-level cache.
fn one_node_a_cache(topology: &Topology) -> bool {
    let caches: BTreeSet<&[u32]> = topology.caches.iter().filter(|cache| cache.level == 3).map(|cache| cache.cpus.as_slice()).collect();
    !caches.is_empty() && topology.nodes.iter().filter(|node| !node.cpus.is_empty()).all(|node| caches.contains(node.cpus.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::topology::{Cache, CacheKind, Node, Package, Processor};

    /// A machine of packages with `nodes` nodes each, 2 CPUs a node and an L3 a CPU or a node.
    fn machine(vendor: &str, family: u32, model: u32, packages: u32, nodes: u32, cpus_per_l3: u32) -> Topology {
        let processor = Processor { vendor: vendor.into(), family: Some(family), model: Some(model), ..Processor::default() };
        let cpus = |node: u32| vec![2 * node, 2 * node + 1];
        let cache = |first: u32| Cache {
            level: 3,
            kind: CacheKind::Unified,
            size_bytes: 1 << 25,
            line_bytes: None,
            ways: None,
            cpus: (first..first + cpus_per_l3).collect(),
        };
        let package = |id: u32| Package {
            id,
            nodes: (id * nodes..(id + 1) * nodes).collect(),
            cpus: (id * nodes..(id + 1) * nodes).flat_map(cpus).collect(),
        };
        Topology {
            processor,
            nodes: (0..packages * nodes).map(|id| Node { id, cpus: cpus(id), ..Node::default() }).collect(),
            packages: (0..packages).map(package).collect(),
            caches: (0..packages * nodes * 2 / cpus_per_l3).map(|index| cache(index * cpus_per_l3)).collect(),
            ..Topology::default()
        }
    }

    /// Check the vendors' names for their modes.
    #[test]
    fn modes_are_named() {
        for (vendor, family, model, nodes, cpus_per_l3, mode) in [
            ("GenuineIntel", 6, 63, 2, 2, "CoD"),
            ("GenuineIntel", 6, 79, 2, 2, "CoD"),
            ("GenuineIntel", 6, 85, 2, 4, "SNC2"),
            ("GenuineIntel", 6, 143, 4, 8, "SNC4"),
            ("GenuineIntel", 6, 173, 3, 6, "SNC3"),
            ("AuthenticAMD", 23, 1, 4, 1, "NPS4"),
            ("AuthenticAMD", 25, 17, 4, 1, "NPS4"),
            ("AuthenticAMD", 25, 17, 2, 1, "NPS2"),
            ("AuthenticAMD", 25, 17, 8, 2, "L3 as NUMA"),
            ("HygonGenuine", 24, 0, 4, 1, "NPS4"),
            ("AuthenticAMD", 16, 9, 2, 2, ""),
            ("AuthenticAMD", 15, 107, 2, 2, ""),
            ("0x48", 0, 0, 2, 2, ""),
        ] {
            let found = recognise(&machine(vendor, family, model, 2, nodes, cpus_per_l3)).expect(vendor);
            assert_eq!((found.mode.as_str(), found.nodes_per_package), (mode, nodes), "{vendor} {family} {model}");
            assert!(!found.meaning.is_empty());
        }
    }

    /// Check that only processors with several dies in a package are described so, and not older ones (QEMU's default is a K8).
    #[test]
    fn modules_are_described() {
        let meaning = |family| recognise(&machine("AuthenticAMD", family, 9, 2, 2, 2)).expect("two nodes a package").meaning;
        assert_eq!(meaning(16), "each package is a module of 2 dies, each a node");
        assert_eq!(meaning(15), "each package has 2 nodes");
    }

    /// Check that one node a package has no mode, and that nodes without CPUs are not counted.
    #[test]
    fn plain_machines_have_no_mode() {
        assert_eq!(recognise(&machine("GenuineIntel", 6, 85, 2, 1, 2)), None);
        let mut one = machine("AuthenticAMD", 25, 17, 1, 1, 2);
        one.nodes.push(Node { id: 1, ..Node::default() });
        assert_eq!(recognise(&one), None);
        assert_eq!(recognise(&Topology::default()), None);
    }

    /// Check that a node of several packages is recognised.
    #[test]
    fn a_node_may_span_packages() {
        let mut machine = machine("AuthenticAMD", 25, 17, 2, 1, 2);
        machine.nodes = vec![Node { id: 0, cpus: vec![0, 1, 2, 3], ..Node::default() }];
        machine.packages.iter_mut().for_each(|package| package.nodes = vec![0]);
        let found = recognise(&machine).expect("spanned");
        assert_eq!((found.mode.as_str(), found.nodes_per_package), ("NPS0", 0));
        machine.processor.vendor = "GenuineIntel".into();
        assert_eq!(recognise(&machine).expect("spanned").mode, "");
    }
}
