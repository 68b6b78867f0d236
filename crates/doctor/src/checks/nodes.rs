//! The shape of the machine.

use crate::diagnosis::{Finding, Severity};
use crate::openmp;
use firsttouch_model::facts::Facts;
use firsttouch_model::topology::{Node, format_list};

pub const WITHOUT_MEMORY: &str = "node-without-memory";
pub const WITHOUT_CPUS: &str = "node-without-cpus";
pub const SUB_NUMA: &str = "sub-numa";

fn ids(facts: &Facts, wanted: impl Fn(&Node) -> bool) -> Vec<u32> {
    facts.topology.nodes.iter().filter(|node| wanted(node)).map(|node| node.id).collect()
}

/// `node 1 has` or `nodes 1,3 have`.
fn nodes_have(nodes: &[u32]) -> String {
    let (noun, verb) = if nodes.len() == 1 { ("node", "has") } else { ("nodes", "have") };
    format!("{noun} {} {verb}", format_list(nodes))
}

/// `1 node`, `2 nodes`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

pub fn without_memory(facts: &Facts) -> Option<Finding> {
    let empty = ids(facts, |node| !node.cpus.is_empty() && node.memory.is_some_and(|memory| memory.total_bytes == 0));
    let first = empty.first()?;
    let full = ids(facts, |node| node.memory.is_some_and(|memory| memory.total_bytes > 0));
    let message = format!(
        "{} CPUs and no memory: all memory that its threads touch is remote{}",
        nodes_have(&empty),
        if full.len() == 1 { ", and all memory is on one node" } else { "" }
    );
    let near = facts.topology.nodes.iter().filter(|node| full.contains(&node.id)).flat_map(|node| node.cpus.iter().copied());
    let mut near: Vec<u32> = near.collect();
    near.sort_unstable();
    let remedy = if near.is_empty() {
        "populate the memory slots of each node".to_owned()
    } else {
        format!("populate the node's memory slots, or run on CPUs with memory: taskset -c {} COMMAND", format_list(&near))
    };
    Some(
        Finding::new(WITHOUT_MEMORY, Severity::High, message)
            .seen(format!("/sys/devices/system/node/node{first}/meminfo"), "MemTotal: 0 kB")
            .remedy(remedy),
    )
}

pub fn without_cpus(facts: &Facts) -> Option<Finding> {
    let far = ids(facts, |node| node.cpus.is_empty() && node.memory.is_some_and(|memory| memory.total_bytes > 0));
    let first = far.first()?;
    let message = format!(
        "{} memory and no CPUs (a slower or faster tier): first touches place no pages there until other nodes are full, and then \
         all accesses to them are remote",
        nodes_have(&far)
    );
    let near = ids(facts, |node| !node.cpus.is_empty() && node.memory.is_none_or(|memory| memory.total_bytes > 0));
    Some(
        Finding::new(WITHOUT_CPUS, Severity::Low, message)
            .seen(format!("/sys/devices/system/node/node{first}/cpulist"), "(no CPUs)")
            .remedy(format!(
                "avoid it: numactl --membind={} COMMAND; or use it on purpose: numactl --membind={} COMMAND",
                format_list(&near),
                format_list(&far)
            )),
    )
}

pub fn sub_numa(facts: &Facts) -> Option<Finding> {
    let mode = facts.topology.sub_numa.as_ref()?;
    let name = if mode.mode.is_empty() { "nodes per package" } else { &mode.mode };
    let value = format!("{name}: {}, {}", count(facts.topology.nodes.len(), "node"), count(facts.topology.packages.len(), "package"));
    let finding = |severity, message| {
        Finding::new(SUB_NUMA, severity, message).seen("/sys/devices/system/node, /sys/devices/system/cpu/cpuN/topology", value)
    };
    if mode.nodes_per_package == 0 {
        // Several packages in one node: the kernel cannot place memory by package.
        return Some(finding(Severity::High, mode.meaning.clone()).remedy(
            "in the firmware's setup, choose a node (or more) for each package (NPS1; memory interleaving off); remove numa=off from /proc/cmdline's options",
        ));
    }
    let places = facts.environment.as_ref().and_then(|variables| openmp::set(variables, "OMP_PLACES"));
    let coarse = places.filter(|text| text.to_ascii_lowercase().starts_with("sockets"));
    let remedy =
        "bind by node, not by socket: export OMP_PROC_BIND=spread OMP_PLACES=cores, or with GCC 12 and later OMP_PLACES=numa_domains";
    let found = match coarse {
        Some(text) => finding(
            Severity::Medium,
            format!(
                "{}; OMP_PLACES={text} lets a thread move between the nodes of its package, away from the memory it touched first",
                mode.meaning
            ),
        )
        .seen("OMP_PLACES", text),
        None => {
            finding(Severity::Low, format!("{}: threads and data that are bound or divided by socket are not on one node", mode.meaning))
        }
    };
    Some(found.remedy(remedy))
}
