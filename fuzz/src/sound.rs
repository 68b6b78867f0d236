//! Properties of every topology, however damaged its source, and of all its outputs.

use firsttouch_model::topology::Topology;
use firsttouch_report::{Style, TopologyJson, hwloc_xml, picture, topology_text};
use std::collections::BTreeSet;

/// Checks that the lists are consistent.
pub fn sound(topology: &Topology) {
    let online: BTreeSet<u32> = topology.cpus.online.iter().copied().collect();
    assert!(!online.is_empty());
    let mut seen = BTreeSet::new();
    for node in &topology.nodes {
        assert!(node.cpus.iter().all(|cpu| online.contains(cpu) && seen.insert(*cpu)), "node {} has another's CPU", node.id);
    }
    let in_cores: Vec<u32> = topology.cores.iter().flat_map(|core| core.cpus.clone()).collect();
    assert_eq!(in_cores.iter().copied().collect::<BTreeSet<_>>().len(), in_cores.len(), "a CPU is in two cores");
    if let Some(distances) = &topology.distances {
        let size = distances.nodes.len();
        assert!(distances.matrix.len() == size && distances.matrix.iter().all(|row| row.len() == size));
    }
}

/// Writes the topology in every format; hwloc's format must parse again.
pub fn rendered(topology: &Topology) {
    assert!(!topology_text(topology, Style { width: 80, colour: false }).is_empty());
    serde_json::to_string(&TopologyJson::new(topology)).expect("JSON");
    assert!(picture(topology).ends_with("</svg>\n"));
    let xml = hwloc_xml(topology);
    let again = firsttouch_system::hwloc::read(&xml).unwrap_or_else(|error| panic!("our own XML is refused: {error:#}\n{xml}"));
    sound(&again);
}
