//! numactl 2.0.16.

use crate::{list, numbers, parse_list};
use serde_json::Value;
use std::collections::BTreeMap;

/// The allowed difference in free memory, which changes between the reading of a file and the output of a tool: the larger of this part of
/// the node and this size.
const FREE_PART: f64 = 0.05;
const FREE_MIB: f64 = 256.0;

fn words(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// `numactl --hardware`
#[derive(Default)]
pub struct Numactl {
    pub nodes: Vec<u32>,
    pub details: Vec<Detail>,
    pub distances: Option<Vec<Vec<u32>>>,
}

#[derive(Default)]
pub struct Detail {
    pub cpus: Vec<u32>,
    pub size_mib: f64,
    pub free_mib: f64,
}

impl Numactl {
    pub fn parse(text: &str) -> Self {
        let mut reported = Self::default();
        let (facts, matrix) = text.split_once("node distances:\n").unwrap_or((text, ""));
        let mut details: BTreeMap<u32, Detail> = BTreeMap::new();
        for line in facts.lines() {
            if let Some(rest) = line.strip_prefix("available: ") {
                let list = rest.split_once('(').unwrap().1.trim_end_matches(')');
                reported.nodes = parse_list(list);
            } else if let Some((subject, value)) = line.strip_prefix("node ").and_then(|line| line.split_once(':')) {
                let (id, what) = subject.split_once(' ').unwrap();
                let detail = details.entry(id.parse().unwrap()).or_default();
                let mib = || value.trim().trim_end_matches(" MB").parse().unwrap();
                match what {
                    "cpus" => detail.cpus = words(value),
                    "size" => detail.size_mib = mib(),
                    "free" => detail.free_mib = mib(),
                    _ => {}
                }
            }
        }
        reported.details = details.into_values().collect();
        let rows: Vec<Vec<u32>> = matrix.lines().filter_map(|line| line.split_once(':')).map(|(_, row)| words(row)).collect();
        reported.distances = (!rows.is_empty()).then_some(rows);
        reported
    }
}

/// `numactl --show`
#[derive(Default)]
pub struct Show {
    pub policy: String,
    pub cpus: Vec<u32>,
    pub membind: Vec<u32>,
    pub interleaved: Vec<u32>,
    /// `None` if the current node is preferred.
    pub preferred: Option<u32>,
}

impl Show {
    pub fn parse(text: &str) -> Self {
        // If the policy is local, numactl omits a newline: `preferred node: physcpubind: 2 3`.
        let value = |key: &str| text.split_once(key).and_then(|(_, rest)| rest.lines().next()).unwrap_or_default().trim().to_owned();
        Self {
            policy: value("policy:"),
            cpus: words(&value("physcpubind:")),
            membind: words(&value("membind:")),
            interleaved: words(&value("interleavemask:")),
            preferred: value("preferred node:").parse().ok(),
        }
    }
}

/// Compares nodes, CPUs, memory and distances of `firsttouch topology --json` with `numactl --hardware`.
pub fn hardware_agrees(name: &str, json: &Value, text: &str) {
    let reported = Numactl::parse(text);
    let nodes = list(json, "nodes");
    assert_eq!(nodes.iter().map(|node| node["id"].as_u64().unwrap() as u32).collect::<Vec<_>>(), reported.nodes, "{name}");
    for (node, reported) in nodes.iter().zip(&reported.details) {
        let id = &node["id"];
        assert_eq!(numbers(&node["cpus"]), reported.cpus, "{name}: CPUs of node {id}");
        let mib = |key: &str| (node["memory"][key].as_u64().unwrap() >> 20) as f64;
        assert_eq!(mib("total_bytes"), reported.size_mib, "{name}: memory of node {id}");
        let most = FREE_MIB.max(reported.size_mib * FREE_PART);
        assert!((mib("free_bytes") - reported.free_mib).abs() <= most, "{name}: free memory of node {id}");
    }
    if let Some(reported) = reported.distances {
        let rows: Vec<Vec<u32>> = list(&json["distances"], "matrix").iter().map(numbers).collect();
        assert_eq!(rows, reported, "{name}: distances");
    }
}

/// Compares the process's policy and limits in `firsttouch topology --json` with `numactl --show`, run in the same place.
pub fn show_agrees(name: &str, json: &Value, text: &str) {
    let reported = Show::parse(text);
    let process = &json["process"];
    let words = [("prefer", "preferred"), ("prefer (many)", "preferred many")];
    let mode = process["policy"]["mode"].as_str().unwrap();
    let mode = words.iter().find(|(ours, _)| *ours == mode).map_or(mode, |(_, theirs)| theirs);
    assert_eq!(mode, reported.policy, "{name}: policy");
    let nodes = numbers(&process["policy"]["nodes"]);
    let reported_nodes = match mode {
        "bind" => reported.membind.clone(),
        "interleave" => reported.interleaved,
        "preferred" => reported.preferred.into_iter().collect(),
        _ => Vec::new(),
    };
    assert_eq!(nodes, reported_nodes, "{name}: nodes of the policy");
    let online = numbers(&json["cpus"]["online"]);
    let cpus: Vec<u32> = numbers(&process["allowed_cpus"]).into_iter().filter(|cpu| online.contains(cpu)).collect();
    assert_eq!(cpus, reported.cpus, "{name}: allowed CPUs");
    // numactl omits nodes without memory. The kernel's list includes them, and nodes that may be added later.
    let with_memory: Vec<u32> = list(json, "nodes")
        .iter()
        .filter(|node| node["memory"]["total_bytes"].as_u64() > Some(0))
        .map(|node| node["id"].as_u64().unwrap() as u32)
        .collect();
    // For a bind policy, numactl shows only its nodes.
    if mode == "bind" {
        return;
    }
    let kept = |nodes: Vec<u32>| nodes.into_iter().filter(|node| with_memory.contains(node)).collect::<Vec<_>>();
    assert_eq!(kept(numbers(&process["allowed_nodes"])), kept(reported.membind), "{name}: allowed nodes");
}
