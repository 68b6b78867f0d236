//! Maps a plan onto the nodes of one machine: logical nodes become real ones, and the parts of threads get the nodes of the threads.

use crate::{Blocks, Plan, Policy};
use firsttouch_model::Pin;
use firsttouch_model::topology::format_list;
use std::fmt;

/// The nodes that a run may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunNodes {
    /// Nodes with CPUs and memory that this process may use, sorted: the targets of logical nodes.
    pub nodes: Vec<u32>,
    /// The nodes of the whole machine, where a rank of a job is confined to some: memory that is spread over all nodes goes there if the rank has one
    /// node. Empty if the process is not confined.
    pub all: Vec<u32>,
}

/// The policy that is requested from the kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelPolicy {
    /// No policy.
    Leave,
    /// One of the kernel's policies (linux/mempolicy.h) for the whole object.
    Whole { mode: u32, nodes: Vec<u32> },
    /// A preferred node for each part: (end as a fraction, node).
    Parts { parts: Vec<(f64, u32)>, period_bytes: Option<f64>, rows: u32 },
}

/// The kernel's numbers of its policies.
const PREFERRED: u32 = 1;
const BIND: u32 = 2;
const INTERLEAVE: u32 = 3;
const WEIGHTED_INTERLEAVE: u32 = 6;

/// A plan on the nodes of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The policy of each entry of the plan.
    pub policies: Vec<KernelPolicy>,
    /// The real node of each thread that takes a place, in the order of their numbers; empty where threads are not pinned.
    pub threads: Vec<u32>,
    /// The numbers of the threads that take no place and are not pinned.
    pub idle: Vec<u32>,
    /// Entries that name nodes which the run does not have.
    pub doubts: Vec<AbsentNodes>,
}

/// An entry that names nodes which do not exist on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentNodes {
    /// The entry's name.
    pub what: String,
    /// The logical nodes that do not exist.
    pub nodes: Vec<u32>,
    /// Whether none of its nodes exists, so that its memory is left alone.
    pub is_left_alone: bool,
}

impl fmt::Display for AbsentNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = format_list(&self.nodes);
        match self.is_left_alone {
            true => write!(f, "{}: left alone: there is no logical node {nodes} here", self.what),
            false => write!(f, "{}: there is no logical node {nodes} here, so it goes to the others", self.what),
        }
    }
}

/// Maps a plan onto nodes. With one node, it places no memory and pins no threads.
#[must_use]
pub fn apply(plan: &Plan, run: &RunNodes) -> Applied {
    let mut applied = Applied::default();
    if run.nodes.len() < 2 {
        let wide = Mapping { plan, nodes: &run.all };
        let spread = |entry: &crate::Entry| match &entry.policy {
            // Ranks on one node each share it, so it is for all of them.
            Policy::Interleave(nodes) | Policy::Weighted(nodes) if nodes.is_empty() && run.all.len() > 1 => wide.policy(&entry.policy).0,
            _ => KernelPolicy::Leave,
        };
        applied.policies = plan.entries.iter().map(spread).collect();
        return applied;
    }
    let mapping = Mapping { plan, nodes: &run.nodes };
    if plan.threads.pin.is_some() {
        let placed = (0..plan.threads.count).filter(|thread| !plan.threads.is_idle(*thread));
        applied.threads = placed.map(|thread| mapping.node_of_thread(thread)).collect();
        applied.idle.clone_from(&plan.threads.idle);
    }
    for entry in &plan.entries {
        let (policy, absent) = mapping.policy(&entry.policy);
        if !absent.is_empty() {
            let is_left_alone = policy == KernelPolicy::Leave;
            applied.doubts.push(AbsentNodes { what: entry.what.clone(), nodes: absent, is_left_alone });
        }
        applied.policies.push(policy);
    }
    applied
}

/// Maps logical nodes to the nodes of the run.
struct Mapping<'a> {
    plan: &'a Plan,
    nodes: &'a [u32],
}

impl Mapping<'_> {
    fn node_of_thread(&self, thread: u32) -> u32 {
        let (count, threads) = (self.nodes.len(), &self.plan.threads);
        let position = match &threads.pin {
            Some(pin @ Pin::Nodes(_)) => {
                let logical = pin.node(thread as usize, threads.count as usize, self.plan.nodes as usize, 1).0 as usize;
                // With as many nodes as planned, each logical node is the node at its index; else nodes are assigned in proportion.
                logical * count / self.plan.nodes.max(1) as usize
            }
            _ => Pin::Spread.node(threads.place(thread) as usize, threads.placed() as usize, count, 1).0 as usize,
        };
        self.nodes[position.min(count - 1)]
    }

    /// The kernel's policy, and the logical nodes that do not exist.
    fn policy(&self, policy: &Policy) -> (KernelPolicy, Vec<u32>) {
        match policy {
            Policy::Leave => (KernelPolicy::Leave, Vec::new()),
            Policy::Preferred(node) => self.whole(PREFERRED, std::slice::from_ref(node)),
            Policy::Bind(nodes) => self.whole(BIND, nodes),
            Policy::Interleave(nodes) => self.whole(INTERLEAVE, nodes),
            Policy::Weighted(nodes) => self.whole(WEIGHTED_INTERLEAVE, nodes),
            Policy::Blocked(blocks) => (self.parts(blocks), Vec::new()),
        }
    }

    fn whole(&self, mode: u32, logical: &[u32]) -> (KernelPolicy, Vec<u32>) {
        if logical.is_empty() {
            return (KernelPolicy::Whole { mode, nodes: self.nodes.to_vec() }, Vec::new());
        }
        let mut nodes: Vec<u32> = logical.iter().filter_map(|node| self.nodes.get(*node as usize)).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let absent: Vec<u32> = logical.iter().copied().filter(|node| *node as usize >= self.nodes.len()).collect();
        if nodes.is_empty() {
            return (KernelPolicy::Leave, absent);
        }
        (KernelPolicy::Whole { mode, nodes }, absent)
    }

    /// Merges adjacent parts on one node.
    fn parts(&self, blocks: &Blocks) -> KernelPolicy {
        let mut parts: Vec<(f64, u32)> = Vec::new();
        for (end, thread) in blocks.parts() {
            let node = self.node_of_thread(thread);
            match parts.last_mut() {
                Some(last) if last.1 == node => last.0 = end,
                _ => parts.push((end, node)),
            }
        }
        KernelPolicy::Parts { parts, period_bytes: blocks.period_bytes, rows: blocks.rows }
    }
}
