//! Which node a CPU's memory controllers or caches belong to.

use crate::files::{Root, parse_list};
use std::collections::{BTreeMap, BTreeSet};

const NODES: &str = "sys/devices/system/node";
const CPUS: &str = "sys/devices/system/cpu";

/// The nodes of CPUs.
pub struct CpuNodes(BTreeMap<u32, u32>);

impl CpuNodes {
    /// Reads them. Without nodes (a kernel without NUMA), all CPUs are on node 0.
    pub fn read(root: &Root) -> Self {
        let mut nodes = BTreeMap::new();
        for node in numbered(root, NODES, "node") {
            let list = root.text(&format!("{NODES}/node{node}/cpulist")).ok().flatten().unwrap_or_default();
            nodes.extend(parse_list(&list).unwrap_or_default().into_iter().map(|cpu| (cpu, node)));
        }
        Self(nodes)
    }

    pub fn node(&self, cpu: u32) -> Option<u32> {
        if self.0.is_empty() { Some(0) } else { self.0.get(&cpu).copied() }
    }

    /// The node of each CPU of a unit's `cpumask`, which has one CPU for each part of the machine that it counts: a package, mostly.
    ///
    /// # Errors
    /// When a part has several nodes: the kernel does not say which of them a controller belongs to.
    pub fn of_mask(&self, root: &Root, mask: &[u32]) -> Result<Vec<(u32, u32)>, String> {
        let placed: Vec<(u32, u32)> = mask.iter().filter_map(|cpu| Some((*cpu, self.node(*cpu)?))).collect();
        let package = |cpu: u32| root.number::<i64>(&format!("{CPUS}/cpu{cpu}/topology/physical_package_id")).ok().flatten();
        let counted: BTreeSet<u32> = placed.iter().map(|(_, node)| *node).collect();
        let packages: BTreeSet<Option<i64>> = placed.iter().map(|(cpu, _)| package(*cpu)).collect();
        let all: BTreeSet<u32> = self.0.iter().filter(|(cpu, _)| packages.contains(&package(**cpu))).map(|(_, node)| *node).collect();
        match all.iter().find(|node| !counted.contains(node)) {
            Some(node) => Err(format!(
                "a package has several nodes, and the kernel does not say which of them a memory controller belongs to (node {node} would have none)"
            )),
            None => Ok(placed),
        }
    }

    /// The nodes of the CPUs that share each level-3 cache, by the cache's id.
    pub fn by_cache(&self, root: &Root) -> BTreeMap<u32, BTreeSet<u32>> {
        let mut nodes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for cpu in numbered(root, CPUS, "cpu") {
            let Some(node) = self.node(cpu) else { continue };
            let folder = format!("{CPUS}/cpu{cpu}/cache");
            for index in numbered(root, &folder, "index") {
                let number = |name: &str| root.number::<u32>(&format!("{folder}/index{index}/{name}")).ok().flatten();
                if number("level") == Some(3)
                    && let Some(id) = number("id")
                {
                    nodes.entry(id).or_default().insert(node);
                }
            }
        }
        nodes
    }
}

/// The numbers of the names in a folder that are `prefix` and a number, sorted.
pub fn numbered(root: &Root, folder: &str, prefix: &str) -> BTreeSet<u32> {
    let names = root.names(folder).unwrap_or_default();
    let number = |name: &String| name.strip_prefix(prefix).filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
    names.iter().filter_map(number).collect()
}
