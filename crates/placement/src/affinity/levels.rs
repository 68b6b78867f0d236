//! A machine's CPUs in hwloc's order, and the objects they are grouped in.

use crate::list::Numbered;
use firsttouch_model::Error;
use firsttouch_model::topology::{CacheKind, Topology, format_list};
use std::collections::BTreeMap;
use std::fmt;

/// A level of objects that contain CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Machine,
    Package,
    Die,
    Node,
    Cache {
        level: u32,
        instruction: bool,
    },
    /// The caches farthest from the cores.
    LastCache,
    Core,
    Pu,
}

/// hwloc's names.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str("machine"),
            Self::Package => f.write_str("package"),
            Self::Die => f.write_str("die"),
            Self::Node => f.write_str("numa"),
            Self::Cache { level, instruction } => write!(f, "l{level}{}", if *instruction { "i" } else { "" }),
            Self::LastCache => f.write_str("last-level cache"),
            Self::Core => f.write_str("core"),
            Self::Pu => f.write_str("pu"),
        }
    }
}

/// The machine on which expressions are resolved: its CPUs, those this process may use, and their order.
///
/// The order is hwloc's: depth first through the tree of objects, siblings by their lowest CPU number. So the CPUs of a
/// core are adjacent, then those of its caches, its node, its package.
#[derive(Clone, Debug)]
pub struct Layout {
    cpus: Numbered,
    /// The position of each CPU in the order.
    positions: BTreeMap<u32, usize>,
    /// The position of each usable CPU among those of its core.
    ranks: BTreeMap<u32, usize>,
    packages: Vec<Vec<u32>>,
    dies: Vec<Vec<u32>>,
    nodes: Vec<Vec<u32>>,
    /// The CPUs of each node that the topology names, by the kernel's number.
    numbered_nodes: BTreeMap<u32, Vec<u32>>,
    caches: Vec<(u32, CacheKind, Vec<u32>)>,
    cores: Vec<Vec<u32>>,
}

impl Layout {
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        Self::with(topology, Numbered::cpus(topology))
    }

    /// With usable CPUs other than those of this process.
    #[must_use]
    pub fn with(topology: &Topology, cpus: Numbered) -> Self {
        let online = &topology.cpus.online;
        // If a level is unknown, assume one object with all CPUs; if cores are unknown, one core for each CPU.
        let known = |objects: Vec<Vec<u32>>, otherwise: Vec<Vec<u32>>| if objects.is_empty() { otherwise } else { objects };
        let packages = known(topology.packages.iter().map(|package| package.cpus.clone()).collect(), vec![online.clone()]);
        let dies = known(topology.dies.iter().map(|die| die.cpus.clone()).collect(), packages.clone());
        let numbered_nodes = topology.nodes.iter().map(|node| (node.id, node.cpus.clone())).collect();
        let nodes = topology.nodes.iter().map(|node| node.cpus.clone()).filter(|cpus| !cpus.is_empty()).collect();
        let nodes = known(nodes, vec![online.clone()]);
        let caches: Vec<_> = topology.caches.iter().map(|cache| (cache.level, cache.kind, cache.cpus.clone())).collect();
        let mut cores: Vec<Vec<u32>> = topology.cores.iter().map(|core| core.cpus.clone()).collect();
        cores.extend(online.iter().filter(|cpu| !topology.cores.iter().any(|core| core.cpus.contains(cpu))).map(|cpu| vec![*cpu]));

        let groups = [&packages, &dies, &nodes, &cores].into_iter().flatten().chain(caches.iter().map(|(.., cpus)| cpus));
        let positions = positions(online, groups);
        let ranks = cores.iter().flat_map(|core| core.iter().filter(|cpu| cpus.check(**cpu).is_ok()).copied().zip(0..)).collect();
        Self { cpus, positions, ranks, packages, dies, nodes, numbered_nodes, caches, cores }
    }

    /// # Errors
    /// Says why this process may not use the CPU.
    pub fn check(&self, cpu: u32) -> Result<(), Error> {
        self.cpus.check(cpu)
    }

    /// All usable CPUs, in order.
    #[must_use]
    pub fn all(&self) -> Vec<u32> {
        self.usable(self.cpus.allowed())
    }

    /// The usable ones of these CPUs, in order.
    #[must_use]
    pub fn usable(&self, cpus: &[u32]) -> Vec<u32> {
        let mut usable: Vec<u32> = cpus.iter().copied().filter(|cpu| self.check(*cpu).is_ok()).collect();
        usable.sort_by_key(|cpu| self.positions.get(cpu));
        usable
    }

    /// The usable ones of these CPUs: first one CPU of each core, then the second ones, and so on; otherwise in the given order.
    #[must_use]
    pub fn cores_first(&self, cpus: &[u32]) -> Vec<u32> {
        let mut sorted: Vec<u32> = cpus.iter().copied().filter(|cpu| self.check(*cpu).is_ok()).collect();
        sorted.sort_by_key(|cpu| self.ranks.get(cpu));
        sorted
    }

    /// The usable CPUs of a node, by the kernel's number of it, each core once before any core twice.
    ///
    /// # Errors
    /// When the node does not exist or has no usable CPU.
    pub fn node(&self, number: u32) -> Result<Vec<u32>, Error> {
        let Some(cpus) = self.numbered_nodes.get(&number) else {
            let known: Vec<u32> = self.numbered_nodes.keys().copied().collect();
            return Err(Error::not_found(format!("node {number} does not exist: the machine has nodes {}", format_list(&known))));
        };
        let usable = self.cores_first(&self.usable(cpus));
        if usable.is_empty() { Err(Error::not_found(format!("node {number} has no CPU that this process may use"))) } else { Ok(usable) }
    }

    /// The CPUs of each object of a level, the objects in order. Nodes without CPUs are left out.
    #[must_use]
    pub fn objects(&self, level: Level) -> Vec<Vec<u32>> {
        let caches = |level: u32, instruction: bool| {
            let matches = |kind: CacheKind| (kind == CacheKind::Instruction) == instruction;
            self.caches.iter().filter(move |(of, kind, _)| *of == level && matches(*kind)).map(|(.., cpus)| cpus.clone()).collect()
        };
        let mut objects = match level {
            Level::Machine => vec![self.positions.keys().copied().collect()],
            Level::Package => self.packages.clone(),
            Level::Die => self.dies.clone(),
            Level::Node => self.nodes.clone(),
            Level::Cache { level, instruction } => caches(level, instruction),
            Level::LastCache => self.caches.iter().map(|(level, ..)| *level).max().map_or_else(Vec::new, |last| caches(last, false)),
            Level::Core => self.cores.clone(),
            Level::Pu => self.positions.keys().map(|cpu| vec![*cpu]).collect(),
        };
        objects.sort_by_key(|cpus| cpus.iter().filter_map(|cpu| self.positions.get(cpu)).min().copied());
        objects
    }
}

/// The position of each CPU: sorted by the lowest CPU of the largest object it is in, then of the next smaller one, and so on.
fn positions<'a>(online: &[u32], groups: impl Iterator<Item = &'a Vec<u32>>) -> BTreeMap<u32, usize> {
    let mut groups: Vec<&Vec<u32>> = groups.collect();
    groups.sort_by_key(|cpus| std::cmp::Reverse(cpus.len()));
    let mut keys: BTreeMap<u32, Vec<u32>> = online.iter().map(|cpu| (*cpu, Vec::new())).collect();
    for group in groups {
        let Some(lowest) = group.iter().min() else { continue };
        for cpu in group {
            if let Some(key) = keys.get_mut(cpu) {
                key.push(*lowest);
            }
        }
    }
    let mut sorted: Vec<(Vec<u32>, u32)> = keys.into_iter().map(|(cpu, key)| (key, cpu)).collect();
    sorted.sort();
    sorted.into_iter().map(|(_, cpu)| cpu).zip(0..).collect()
}
