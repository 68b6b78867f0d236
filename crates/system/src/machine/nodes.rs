//! Nodes and their CPUs: sys/devices/system/node, or one node with all CPUs where the kernel has no NUMA support.

use crate::files::{Root, parse_list};
use crate::proc::stat;
use firsttouch_model::error::{Context, Error, Result};
use std::collections::BTreeMap;
use std::fs;

const NODES: &str = "sys/devices/system/node";

pub fn read(root: &Root, doubts: &mut Vec<String>) -> Result<BTreeMap<u32, Vec<u32>>> {
    let numbers = match list(root, &format!("{NODES}/online"))? {
        Some(numbers) => numbers,
        None => scan(root),
    };
    let mut nodes = BTreeMap::new();
    for number in numbers {
        let cpus = list(root, &format!("{NODES}/node{number}/cpulist"))?;
        if cpus.is_none() {
            doubts.push(format!("node {number} is online, but its CPUs could not be read; taken as a node without CPUs"));
        }
        nodes.insert(number, cpus.unwrap_or_default());
    }
    if nodes.values().all(Vec::is_empty) {
        let cpus = all_cpus(root)?;
        doubts.push(format!("/{NODES} names no CPUs; taken as one node with all {} CPUs", cpus.len()));
        nodes = BTreeMap::from([(0, cpus)]);
    }
    Ok(nodes)
}

fn list(root: &Root, relative: &str) -> Result<Option<Vec<u32>>> {
    let Some(text) = root.text(relative)? else { return Ok(None) };
    parse_list(&text).map(Some).with_context(|| format!("cannot read {}", root.path(relative).display()))
}

/// The nodeN directories, for kernels that do not list them.
fn scan(root: &Root) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(root.path(NODES)) else { return Vec::new() };
    let mut numbers: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn all_cpus(root: &Root) -> Result<Vec<u32>> {
    for relative in ["sys/devices/system/cpu/online", "sys/devices/system/cpu/present"] {
        if let Some(cpus) = list(root, relative)?.filter(|cpus| !cpus.is_empty()) {
            return Ok(cpus);
        }
    }
    let cpus = stat::online_cpus(&root.text("proc/stat")?.unwrap_or_default());
    if cpus.is_empty() {
        return Err(Error::not_found(format!(
            "cannot find this machine's CPUs: neither {} nor {} names any; is /proc or /sys missing in this container?",
            root.path("sys/devices/system/cpu/online").display(),
            root.path("proc/stat").display()
        )));
    }
    Ok(cpus)
}
