//! A plan on the nodes of one machine: logical nodes become real ones, and threads' parts the nodes of the threads.

use super::{Blocks, Place, Plan};
use firsttouch_model::Pin;
use firsttouch_model::topology::format_list;

/// The nodes that a run may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// With CPUs and memory that this process may use, sorted: what logical nodes stand for.
    pub nodes: Vec<u32>,
}

/// What the kernel is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Policies {
    /// Nothing.
    Leave,
    /// One of the kernel's policies (linux/mempolicy.h), for all of it.
    Whole { mode: u32, nodes: Vec<u32> },
    /// Each part's own preferred node: (end as a fraction, node).
    Parts { parts: Vec<(f64, u32)>, period_bytes: Option<f64>, rows: u32 },
}

/// The kernel's numbers of policies.
const PREFERRED: u32 = 1;
const BIND: u32 = 2;
const INTERLEAVE: u32 = 3;
const WEIGHTED_INTERLEAVE: u32 = 6;

/// A plan as it goes here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// By entry.
    pub policies: Vec<Policies>,
    /// The real node of each thread; empty where threads are not pinned.
    pub threads: Vec<u32>,
    /// What cannot be as the plan says, a sentence each.
    pub doubts: Vec<String>,
}

/// Maps a plan onto nodes. On one node there is nothing to place, and no thread to keep.
#[must_use]
pub fn apply(plan: &Plan, reach: &Reach) -> Applied {
    let mut applied = Applied::default();
    if reach.nodes.len() < 2 {
        applied.policies = plan.entries.iter().map(|_| Policies::Leave).collect();
        return applied;
    }
    let here = Here { plan, nodes: &reach.nodes };
    if plan.threads.pin.is_some() {
        applied.threads = (0..plan.threads.count).map(|thread| here.node_of_thread(thread)).collect();
    }
    for entry in &plan.entries {
        let (policy, doubt) = here.policies(&entry.place);
        applied.policies.push(policy);
        applied.doubts.extend(doubt.map(|doubt| format!("{}: {doubt}", entry.what)));
    }
    applied
}

struct Here<'a> {
    plan: &'a Plan,
    nodes: &'a [u32],
}

impl Here<'_> {
    fn node_of_thread(&self, thread: u32) -> u32 {
        let count = self.nodes.len();
        let place = match &self.plan.threads.pin {
            Some(pin @ Pin::Nodes(_)) => {
                let logical = pin.node(thread as usize, self.plan.threads.count as usize, self.plan.nodes as usize, 1).0 as usize;
                // On as many nodes as planned, themselves; on others, in proportion.
                logical * count / self.plan.nodes.max(1) as usize
            }
            _ => Pin::Spread.node(thread as usize, self.plan.threads.count as usize, count, 1).0 as usize,
        };
        self.nodes[place.min(count - 1)]
    }

    fn policies(&self, place: &Place) -> (Policies, Option<String>) {
        match place {
            Place::Leave => (Policies::Leave, None),
            Place::Preferred(node) => self.whole(PREFERRED, std::slice::from_ref(node)),
            Place::Bind(nodes) => self.whole(BIND, nodes),
            Place::Interleave(nodes) => self.whole(INTERLEAVE, nodes),
            Place::Weighted(nodes) => self.whole(WEIGHTED_INTERLEAVE, nodes),
            Place::Blocked(blocks) => (self.parts(blocks), None),
        }
    }

    fn whole(&self, mode: u32, logical: &[u32]) -> (Policies, Option<String>) {
        if logical.is_empty() {
            return (Policies::Whole { mode, nodes: self.nodes.to_vec() }, None);
        }
        let mut nodes: Vec<u32> = logical.iter().filter_map(|node| self.nodes.get(*node as usize)).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let absent: Vec<u32> = logical.iter().copied().filter(|node| *node as usize >= self.nodes.len()).collect();
        if nodes.is_empty() {
            return (Policies::Leave, Some(format!("left alone: there is no logical node {} here", format_list(&absent))));
        }
        let doubt =
            (!absent.is_empty()).then(|| format!("there is no logical node {} here, so it goes to the others", format_list(&absent)));
        (Policies::Whole { mode, nodes }, doubt)
    }

    /// Neighbouring parts of one node are one.
    fn parts(&self, blocks: &Blocks) -> Policies {
        let mut parts: Vec<(f64, u32)> = Vec::new();
        for (end, thread) in blocks.parts() {
            let node = self.node_of_thread(thread);
            match parts.last_mut() {
                Some(last) if last.1 == node => last.0 = end,
                _ => parts.push((end, node)),
            }
        }
        Policies::Parts { parts, period_bytes: blocks.period_bytes, rows: blocks.rows }
    }
}
