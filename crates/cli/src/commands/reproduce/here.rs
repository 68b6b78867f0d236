//! What this machine allows: nodes with CPUs, and memory for arrays.

use crate::commands::map::machine;
use crate::commands::run::whole_nodes;
use crate::commands::{Usage, usage};
use anyhow::{Result, anyhow, bail};
use firsttouch_model::format_bytes;
use firsttouch_model::topology::{Topology, format_list};
use firsttouch_report::Here as Described;
use firsttouch_system::{MachineInfo, topology};
use std::path::Path;

/// Arrays whose size nobody named take this part of the free memory at most.
const USUAL_PART: u64 = 4;
/// And those that somebody named this: the kernel needs some as well.
const MOST: (u64, u64) = (4, 5);
/// Arrays of so many times the last-level caches are mostly in memory.
const CACHES: u64 = 2;
const LEAST_BYTES: u64 = 1 << 20;

pub struct Here {
    /// Nodes with CPUs and memory that this process may use.
    pub nodes: Vec<Seats>,
    topology: Topology,
    free_bytes: u64,
}

/// A node's CPUs, one a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats {
    pub node: u32,
    pub cpus: Vec<u32>,
}

impl Here {
    pub fn read() -> Result<Self> {
        let topology = topology::read_this_system()?;
        let nodes: Vec<Seats> = whole_nodes(&topology).into_iter().map(|node| Seats { node, cpus: one_a_core(&topology, node) }).collect();
        if nodes.is_empty() {
            bail!("cannot run experiments here: no node has both CPUs and memory that this process may use");
        }
        let available = MachineInfo::read(Path::new("/")).map_or(0, |info| info.available_memory_bytes);
        let free_on_node = nodes.iter().filter_map(|seats| topology.node(seats.node)?.memory?.free_bytes).min();
        // What is bound to a node has that node's memory only. Of a single node the free memory is less than what can be had (caches).
        let of_node = if nodes.len() > 1 { free_on_node } else { None };
        let free_bytes = of_node.into_iter().chain((available > 0).then_some(available)).min().unwrap_or(0);
        Ok(Self { nodes, topology, free_bytes })
    }

    pub fn described(&self) -> Described {
        Described { machine: machine(&self.topology), cpus: self.topology.cpus.online.len(), nodes: self.topology.nodes.len() }
    }

    /// One CPU a core, node by node.
    pub fn cpus(&self) -> Vec<u32> {
        self.nodes.iter().flat_map(|seats| seats.cpus.iter().copied()).collect()
    }

    /// `node 0`, `nodes 0-3`.
    pub fn node_words(&self) -> String {
        let list: Vec<u32> = self.nodes.iter().map(|seats| seats.node).collect();
        format!("{} {}", if list.len() == 1 { "node" } else { "nodes" }, format_list(&list))
    }

    /// Why placement cannot matter here; none where it can.
    pub fn impossible(&self) -> Option<String> {
        let [only] = &self.nodes[..] else { return None };
        Some(if self.topology.nodes.len() == 1 {
            "this machine has one node, so every page is at home whoever touches it first".to_owned()
        } else {
            format!("this process may use CPUs and memory of node {} only, so every page is at home whoever touches it first", only.node)
        })
    }

    /// The memory that the arrays of a run take: what was asked for, if it fits, else the usual, or more where caches are large.
    pub fn array_bytes(&self, asked: Option<u64>, usual: u64) -> Result<u64> {
        let most = self.free_bytes / MOST.1 * MOST.0;
        match asked {
            Some(bytes) if bytes < LEAST_BYTES => {
                Err(Usage(anyhow!("--size {} is too small for an experiment: 1 MiB is the least", format_bytes(bytes))).into())
            }
            Some(bytes) if most > 0 && bytes > most => usage(Err(anyhow!(
                "--size {} does not fit: {} can be used without bringing the machine into need{}; choose less",
                format_bytes(bytes),
                format_bytes(most),
                if self.nodes.len() > 1 { " (of the node with the least free memory, as runs are bound to nodes)" } else { "" }
            ))),
            Some(bytes) => Ok(bytes),
            None => {
                let usual = usual.max(CACHES * self.cache_bytes());
                Ok(if self.free_bytes == 0 { usual } else { usual.min(self.free_bytes / USUAL_PART).max(LEAST_BYTES) })
            }
        }
    }

    /// A word where caches hold so much of the arrays that placement hardly matters.
    pub fn doubt_on_size(&self, bytes: u64) -> Option<String> {
        let cache = self.cache_bytes();
        (bytes < CACHES * cache).then(|| {
            format!(
                "The arrays ({}) are smaller than twice the last-level caches ({}): these hide where memory is.",
                format_bytes(bytes),
                format_bytes(cache)
            )
        })
    }

    /// All caches of the last level together.
    fn cache_bytes(&self) -> u64 {
        let caches = &self.topology.caches;
        let last = caches.iter().map(|cache| cache.level).max();
        caches.iter().filter(|cache| Some(cache.level) == last).map(|cache| cache.size_bytes).sum()
    }
}

/// The first CPU of each core of the node that this process may use; all of them where cores are not known.
fn one_a_core(topology: &Topology, node: u32) -> Vec<u32> {
    let allowed = topology.process.as_ref().and_then(|process| process.allowed_cpus.as_ref());
    let may_run = |cpu: &&u32| allowed.is_none_or(|cpus| cpus.contains(cpu));
    let cpus: Vec<u32> = topology.node(node).map_or(&[][..], |node| &node.cpus).iter().filter(may_run).copied().collect();
    let is_first = |cpu: &u32| {
        let core = topology.cores.iter().find(|core| core.cpus.contains(cpu));
        core.and_then(|core| core.cpus.iter().find(|other| cpus.contains(other))).is_none_or(|first| first == cpu)
    };
    cpus.iter().copied().filter(is_first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::topology::{Core, Node, ProcessLimits};

    /// Check that SMT siblings are left out, also where the first one may not be used.
    #[test]
    fn a_core_has_one_seat() {
        let core = |cpus: &[u32]| Core { id: None, package: None, cpus: cpus.to_vec() };
        let limits = |cpus: &[u32]| Some(ProcessLimits { allowed_cpus: Some(cpus.to_vec()), ..ProcessLimits::default() });
        let mut topology = Topology {
            nodes: vec![Node { id: 0, cpus: vec![0, 1, 4, 5], ..Node::default() }, Node { id: 1, cpus: vec![2, 3], ..Node::default() }],
            cores: vec![core(&[0, 4]), core(&[1, 5])],
            ..Topology::default()
        };
        assert_eq!(one_a_core(&topology, 0), [0, 1]);
        assert_eq!(one_a_core(&topology, 1), [2, 3]);
        topology.process = limits(&[1, 4, 5, 3]);
        assert_eq!(one_a_core(&topology, 0), [1, 4]);
        assert_eq!(one_a_core(&topology, 1), [3]);
        assert!(one_a_core(&topology, 9).is_empty());
    }
}
