//! The machine that experiments run on: nodes with CPUs, and memory for arrays.

use crate::Result;
use crate::error::{Context, Error, ErrorKind};
use firsttouch_model::topology::{Topology, format_list};
use firsttouch_model::{counted, format_bytes};
use firsttouch_placement::Numbered;
use firsttouch_system::{MachineInfo, topology};
use std::path::Path;

/// Arrays of a default size take at most the free memory divided by this.
const DEFAULT_PART: u64 = 4;
/// Arrays of a size that the user chose may take at most this fraction (numerator, denominator): the kernel needs memory as well.
const MOST: (u64, u64) = (4, 5);
/// Arrays with this many times the size of all last-level caches are mostly in memory.
const CACHES: u64 = 2;
const LEAST_BYTES: u64 = 1 << 20;
/// From this load average on, other programs disturb a measurement.
const BUSY_LOAD: f64 = 0.5;

/// Nodes with CPUs and memory, both of which this process may use.
#[must_use]
pub fn usable_nodes(topology: &Topology) -> Vec<u32> {
    let (nodes, cpus) = (Numbered::nodes(topology), Numbered::cpus(topology));
    let is_usable = |node: &u32| {
        topology.node(*node).is_some_and(|node| {
            let has_memory = node.memory.is_none_or(|memory| memory.total_bytes > 0);
            has_memory && node.cpus.iter().any(|cpu| cpus.check(*cpu).is_ok())
        })
    };
    nodes.allowed().iter().copied().filter(is_usable).collect()
}

/// Processor, CPUs and nodes in words.
#[must_use]
pub fn machine_name(topology: &Topology) -> String {
    let cpus = topology.cpus.online.len();
    let nodes = topology.nodes.len();
    let name = if topology.processor.model_name.is_empty() { "unknown CPU" } else { &topology.processor.model_name };
    format!("{name}, {}, {}", counted(cpus, "CPU"), counted(nodes, "node"))
}

/// Says that other programs run, if the kernel's load average shows them: a measurement then shares caches, controllers and CPUs with them.
#[must_use]
pub fn others_run() -> Option<String> {
    busy(&std::fs::read_to_string("/proc/loadavg").ok()?)
}

fn busy(loadavg: &str) -> Option<String> {
    let load: f64 = loadavg.split_whitespace().next()?.parse().ok()?;
    (load >= BUSY_LOAD).then(|| {
        format!(
            "Other programs ran as well (load {load:.1} in the minute before the start): bandwidths may be too low, and latencies too high. Measure on an idle machine."
        )
    })
}

pub struct Host {
    /// Nodes with CPUs and memory that this process may use.
    pub nodes: Vec<NodeCpus>,
    pub topology: Topology,
    free_bytes: u64,
}

/// One CPU of each core of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCpus {
    pub node: u32,
    pub cpus: Vec<u32>,
}

impl Host {
    pub fn read() -> Result<Self> {
        let topology = topology::read_this_system().of_kind(ErrorKind::System)?;
        let nodes: Vec<NodeCpus> =
            usable_nodes(&topology).into_iter().map(|node| NodeCpus { node, cpus: one_cpu_per_core(&topology, node) }).collect();
        if nodes.is_empty() {
            return Err(Error::new(
                ErrorKind::System,
                "cannot run experiments here: no node has both CPUs and memory that this process may use",
            ));
        }
        let available = MachineInfo::read(Path::new("/")).map_or(0, |info| info.available_memory_bytes);
        let free_on_node = nodes.iter().filter_map(|node| topology.node(node.node)?.memory?.free_bytes).min();
        // A run that is bound to a node gets only that node's memory. With one node, use the available memory, which includes the page
        // cache.
        let of_node = if nodes.len() > 1 { free_on_node } else { None };
        let free_bytes = of_node.into_iter().chain((available > 0).then_some(available)).min().unwrap_or(0);
        Ok(Self { nodes, topology, free_bytes })
    }

    /// One CPU of each core, node by node.
    pub fn cpus(&self) -> Vec<u32> {
        self.nodes.iter().flat_map(|node| node.cpus.iter().copied()).collect()
    }

    /// `node 0`, `nodes 0-3`.
    pub fn node_words(&self) -> String {
        let list: Vec<u32> = self.nodes.iter().map(|node| node.node).collect();
        format!("{} {}", if list.len() == 1 { "node" } else { "nodes" }, format_list(&list))
    }

    /// Why placement cannot matter on this machine; `None` if it can.
    pub fn impossible(&self) -> Option<String> {
        let [only] = &self.nodes[..] else { return None };
        Some(if self.topology.nodes.len() == 1 {
            "this machine has one node, so every page is local, whichever thread touches it first".to_owned()
        } else {
            format!(
                "this process may use CPUs and memory of node {} only, so every page is local, whichever thread touches it first",
                only.node
            )
        })
    }

    /// Bytes of all arrays of a run: `asked` if it fits; else `usual`, but more if caches are large and less if memory is short.
    ///
    /// # Errors
    /// When `asked` is too small or does not fit.
    pub fn array_bytes(&self, asked: Option<u64>, usual: u64) -> Result<u64> {
        let most = self.free_bytes / MOST.1 * MOST.0;
        match asked {
            Some(bytes) if bytes < LEAST_BYTES => {
                Err(Error::usage(format!("--size {} is too small for an experiment: 1 MiB is the least", format_bytes(bytes))))
            }
            Some(bytes) if most > 0 && bytes > most => Err(Error::usage(format!(
                "--size {} does not fit: at most {} can be used without making the machine run out of memory{}; choose less",
                format_bytes(bytes),
                format_bytes(most),
                if self.nodes.len() > 1 { " (on the node with the least free memory, as runs are bound to nodes)" } else { "" }
            ))),
            Some(bytes) => Ok(bytes),
            None => {
                let usual = usual.max(CACHES * self.cache_bytes());
                Ok(if self.free_bytes == 0 { usual } else { usual.min(self.free_bytes / DEFAULT_PART).max(LEAST_BYTES) })
            }
        }
    }

    /// A note if caches hold so much of the arrays that placement hardly matters.
    pub fn note_on_size(&self, bytes: u64) -> Option<String> {
        let cache = self.cache_bytes();
        (bytes < CACHES * cache).then(|| {
            format!(
                "The arrays ({}) are smaller than twice the last-level caches ({}), which hide where memory is.",
                format_bytes(bytes),
                format_bytes(cache)
            )
        })
    }

    /// The sum of all last-level caches.
    fn cache_bytes(&self) -> u64 {
        let caches = &self.topology.caches;
        let last = caches.iter().map(|cache| cache.level).max();
        caches.iter().filter(|cache| Some(cache.level) == last).map(|cache| cache.size_bytes).sum()
    }
}

/// The first CPU of each core of the node that this process may use; all CPUs if cores are unknown.
fn one_cpu_per_core(topology: &Topology, node: u32) -> Vec<u32> {
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

    /// Check that other programs are noticed by the load average, and that an idle or unknown system has no note.
    #[test]
    fn load_is_noticed() {
        assert!(busy("5.08 2.60 2.21 3/412 1234\n").is_some_and(|note| note.contains("load 5.1")));
        assert_eq!((busy("0.12 0.60 2.21 1/412 1234\n"), busy("")), (None, None));
    }

    /// Check that SMT siblings are left out, also where the first one may not be used.
    #[test]
    fn a_core_gives_one_cpu() {
        let core = |cpus: &[u32]| Core { id: None, package: None, cpus: cpus.to_vec() };
        let limits = |cpus: &[u32]| Some(ProcessLimits { allowed_cpus: Some(cpus.to_vec()), ..ProcessLimits::default() });
        let mut topology = Topology {
            nodes: vec![Node { id: 0, cpus: vec![0, 1, 4, 5], ..Node::default() }, Node { id: 1, cpus: vec![2, 3], ..Node::default() }],
            cores: vec![core(&[0, 4]), core(&[1, 5])],
            ..Topology::default()
        };
        assert_eq!(one_cpu_per_core(&topology, 0), [0, 1]);
        assert_eq!(one_cpu_per_core(&topology, 1), [2, 3]);
        topology.process = limits(&[1, 4, 5, 3]);
        assert_eq!(one_cpu_per_core(&topology, 0), [1, 4]);
        assert_eq!(one_cpu_per_core(&topology, 1), [3]);
        assert!(one_cpu_per_core(&topology, 9).is_empty());
    }
}
