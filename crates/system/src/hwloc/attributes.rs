//! Distances between nodes (`distances2`), and bandwidth and latency (`memattr`).

use super::bitmap;
use super::objects::{Objects, line, number};
use firsttouch_model::error::{Error, Result};
use firsttouch_model::pairs::{PairFigure, PairKind};
use firsttouch_model::topology::{Access, Distances, Topology};
use roxmltree::Node as Element;

/// HWLOC_DISTANCES_KIND_MEANS_LATENCY of hwloc/distances.h.
const MEANS_LATENCY: u64 = 1 << 2;
/// Room for four figures of each pair of nodes on the largest machine.
const MOST_FIGURES: usize = 4 << 20;

/// The latency matrix of the nodes: the operating system's, which hwloc calls NUMALatency, before others.
pub fn distances(root: Element, topology: &mut Topology, objects: &mut Objects) {
    let mut matrices: Vec<Element> = root
        .children()
        .filter(|element| element.has_tag_name("distances2") && element.attribute("type") == Some("NUMANode"))
        .filter(|element| number(*element, "kind").is_none_or(|kind| kind & MEANS_LATENCY != 0))
        .collect();
    matrices.sort_by_key(|element| element.attribute("name") != Some("NUMALatency"));
    let Some(&element) = matrices.first() else { return };
    match matrix(element, topology, objects) {
        Ok(distances) => topology.distances = Some(distances),
        Err(what) => objects.doubts.push(format!("the distances at line {} are left out: {what}", line(element))),
    }
}

fn matrix(element: Element, topology: &Topology, objects: &Objects) -> Result<Distances> {
    let words = |name: &str| -> Result<Vec<u64>> {
        let parts = element.children().filter(|child| child.has_tag_name(name)).filter_map(|child| child.text());
        parts
            .flat_map(str::split_whitespace)
            .map(|word| word.parse().map_err(|_| Error::invalid_data(format!("{name} has {word:.20?} among its numbers"))))
            .collect()
    };
    let by_gp = element.attribute("indexing") == Some("gp");
    let mut nodes = Vec::new();
    for index in words("indexes")? {
        let node = if by_gp { objects.node_of_gp.get(&index).copied() } else { u32::try_from(index).ok() };
        let node = node.filter(|node| topology.node(*node).is_some() && !nodes.contains(node));
        nodes.push(node.ok_or_else(|| Error::invalid_data(format!("{index} is not a node of this file, or appears twice")))?);
    }
    let values = words("u64values")?;
    if nodes.is_empty() || values.len() != nodes.len() * nodes.len() {
        return Err(Error::invalid_data(format!("{} values for {} nodes", values.len(), nodes.len())));
    }
    let rows = values.chunks(nodes.len());
    let matrix: Result<Vec<Vec<u32>>, _> = rows.map(|row| row.iter().map(|value| u32::try_from(*value)).collect()).collect();
    let matrix = matrix.map_err(|_| Error::invalid_data("a value is larger than any distance"))?;
    // Sort by node number, as everywhere.
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&place| nodes[place]);
    Ok(Distances {
        nodes: order.iter().map(|&place| nodes[place]).collect(),
        matrix: order.iter().map(|&from| order.iter().map(|&to| matrix[from][to]).collect()).collect(),
    })
}

/// Reads bandwidth (MiB/s) and latency (ns) of each node from its nearest CPUs; returns the figures of all pairs.
pub fn access(root: Element, topology: &mut Topology, objects: &Objects) -> Vec<PairFigure> {
    let mut figures = Vec::new();
    for attribute in root.children().filter(|element| element.has_tag_name("memattr")) {
        let Some(name) = attribute.attribute("name") else { continue };
        for value in attribute.children().filter(|element| element.has_tag_name("memattr_value")) {
            if value.attribute("target_obj_type") != Some("NUMANode") {
                continue;
            }
            let target = number(value, "target_obj_gp_index").and_then(|gp| objects.node_of_gp.get(&gp).copied());
            let (Some(target), Some(figure)) = (target, number(value, "value")) else { continue };
            let from = value
                .attribute("initiator_cpuset")
                .and_then(bitmap::parse)
                .or_else(|| objects.cpus_of_gp.get(&number(value, "initiator_obj_gp_index")?).cloned());
            let initiators = topology.nodes_of(&from.unwrap_or_default());
            if let (Some(kind), true) = (kind(name), figures.len() < MOST_FIGURES) {
                figures.push(PairFigure { kind, memory: target, from: initiators.clone(), value: figure });
            }
            let Some(node) = topology.nodes.iter_mut().find(|node| node.id == target) else { continue };
            if let Some(access) = class_of(&mut node.access, initiators) {
                set(access, name, figure);
            }
        }
    }
    figures
}

fn kind(name: &str) -> Option<PairKind> {
    match name {
        "Bandwidth" => Some(PairKind::Bandwidth),
        "ReadBandwidth" => Some(PairKind::ReadBandwidth),
        "Latency" => Some(PairKind::Latency),
        "ReadLatency" => Some(PairKind::ReadLatency),
        _ => None,
    }
}

/// hwloc does not write the kernel's class of access; from CPUs it is 1. Like the kernel, keep one set of initiators: the first.
fn class_of(list: &mut Vec<Access>, initiators: Vec<u32>) -> Option<&mut Access> {
    if list.is_empty() {
        list.push(Access { class: 1, initiators: initiators.clone(), ..Access::default() });
    }
    list.first_mut().filter(|access| access.initiators == initiators)
}

/// `Bandwidth` and `Latency` stand for both directions, unless the file has figures by direction.
fn set(access: &mut Access, name: &str, figure: u64) {
    let figure = Some(figure);
    match name {
        "ReadBandwidth" => access.read_bandwidth_mib_s = figure,
        "WriteBandwidth" => access.write_bandwidth_mib_s = figure,
        "ReadLatency" => access.read_latency_ns = figure,
        "WriteLatency" => access.write_latency_ns = figure,
        "Bandwidth" => {
            access.read_bandwidth_mib_s = access.read_bandwidth_mib_s.or(figure);
            access.write_bandwidth_mib_s = access.write_bandwidth_mib_s.or(figure);
        }
        "Latency" => {
            access.read_latency_ns = access.read_latency_ns.or(figure);
            access.write_latency_ns = access.write_latency_ns.or(figure);
        }
        _ => {}
    }
}
