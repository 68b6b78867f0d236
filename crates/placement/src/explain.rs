//! Where threads and pages go under a placement: the rules of the kernel's mm/mempolicy.c, on a machine's distances.

use firsttouch_model::launch::{Explanation, FirstTouch, LaunchPolicy, Seat};
use firsttouch_model::policy::{Mode, Policy};
use firsttouch_model::topology::{MemoryPolicy, Topology};
use std::collections::BTreeSet;

/// The requested placement; what is not requested is inherited from this process.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    pub policy: Option<Policy>,
    /// CPUs the process is bound to.
    pub cpus: Option<Vec<u32>>,
    /// The CPU of each thread that is pinned.
    pub threads: Vec<u32>,
    /// The numbers of the threads that are not, ascending.
    pub unpinned: Vec<u32>,
    /// Variables for the program.
    pub environment: Vec<(String, String)>,
}

/// Explains where threads and pages would go.
#[must_use]
pub fn explain(placement: &Placement, topology: &Topology, inherited: Option<&MemoryPolicy>, left_out: Vec<String>) -> Explanation {
    let allowed = || crate::Numbered::cpus(topology).allowed().to_vec();
    let cpus = placement.cpus.clone().unwrap_or_else(allowed);
    let pinned = (0..).filter(|number| placement.unpinned.binary_search(number).is_err()).map(|number| number as usize);
    let seat = |(&cpu, thread)| Seat { thread, cpu, node: topology.node_of_cpu(cpu) };
    let threads: Vec<Seat> = placement.threads.iter().zip(pinned).map(seat).collect();
    let seats: BTreeSet<u32> = threads.iter().filter_map(|seat| seat.node).collect();
    let nodes = topology.nodes_of(&cpus);
    let from = if threads.is_empty() { nodes.clone() } else { seats.into_iter().collect() };
    let policy = match (&placement.policy, inherited) {
        (Some(policy), _) => LaunchPolicy {
            mode: kernels_word(policy.mode).to_owned(),
            nodes: policy.nodes.clone(),
            balancing: policy.balancing,
            inherited: false,
        },
        (None, Some(policy)) => LaunchPolicy {
            mode: policy.mode.clone(),
            nodes: policy.nodes.clone(),
            balancing: policy.flags.iter().any(|flag| flag == "balancing"),
            inherited: true,
        },
        (None, None) => LaunchPolicy { mode: "unknown".to_owned(), nodes: vec![], balancing: false, inherited: true },
    };
    let first_touch = from.into_iter().map(|node| first_touch(node, &policy, topology)).collect();
    Explanation {
        cpus,
        nodes,
        policy,
        threads,
        first_touch,
        environment: placement.environment.iter().cloned().collect(),
        plan: Vec::new(),
        left_out,
    }
}

fn kernels_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Bind => "bind",
        Mode::Preferred => "prefer",
        Mode::PreferredMany => "prefer (many)",
        Mode::Interleave => "interleave",
        Mode::WeightedInterleave => "weighted interleave",
        Mode::Local => "local",
    }
}

fn first_touch(from: u32, policy: &LaunchPolicy, topology: &Topology) -> FirstTouch {
    let (nodes, in_turn, or_others) = match policy.mode.as_str() {
        "bind" => (nearest(from, &policy.nodes, topology), false, false),
        "prefer" | "prefer (many)" if !policy.nodes.is_empty() => (nearest(from, &policy.nodes, topology), false, true),
        "interleave" | "weighted interleave" => (policy.nodes.clone(), true, true),
        _ => {
            let allowed = crate::Numbered::nodes(topology).allowed().to_vec();
            (nearest(from, &allowed, topology).into_iter().take(1).collect(), false, true)
        }
    };
    FirstTouch { from, nodes, in_turn, or_others }
}

/// The nodes with memory, nearest to `from` first. For equal distances the kernel's choice is unknown, and the lowest number comes
/// first.
fn nearest(from: u32, nodes: &[u32], topology: &Topology) -> Vec<u32> {
    let has_memory = |node: &&u32| topology.node(**node).is_none_or(|node| node.memory.is_none_or(|memory| memory.total_bytes > 0));
    let mut nodes: Vec<u32> = nodes.iter().filter(has_memory).copied().collect();
    let distance = |to: u32| topology.distances.as_ref().and_then(|distances| distances.between(from, to)).unwrap_or(u32::MAX);
    nodes.sort_by_key(|node| (*node != from, distance(*node), *node));
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::topology::{CpuLists, Distances, Memory, Node};

    /// Nodes 0 and 1 with CPUs 0-1 and 2-3; node 2 has only memory and is near node 1.
    fn machine() -> Topology {
        let memory = Some(Memory { total_bytes: 1 << 30, free_bytes: None });
        let node = |id, cpus| Node { id, cpus, memory, ..Node::default() };
        Topology {
            cpus: CpuLists { online: vec![0, 1, 2, 3], offline: vec![] },
            nodes: vec![node(0, vec![0, 1]), node(1, vec![2, 3]), node(2, vec![])],
            distances: Some(Distances { nodes: vec![0, 1, 2], matrix: vec![vec![10, 21, 31], vec![21, 10, 17], vec![31, 17, 10]] }),
            ..Topology::default()
        }
    }

    /// Check where pages go under each policy, from each node.
    #[test]
    fn pages_follow_the_policy() {
        for (policy, from_0, from_1, in_turn, or_others) in [
            (Policy::new(Mode::Local, vec![]), &[0][..], &[1][..], false, true),
            (Policy::new(Mode::Bind, vec![1, 2]), &[1, 2], &[1, 2], false, false),
            (Policy::new(Mode::Bind, vec![0, 2]), &[0, 2], &[2, 0], false, false),
            (Policy::new(Mode::Preferred, vec![2]), &[2], &[2], false, true),
            (Policy::new(Mode::PreferredMany, vec![0, 2]), &[0, 2], &[2, 0], false, true),
            (Policy::new(Mode::Interleave, vec![0, 2]), &[0, 2], &[0, 2], true, true),
        ] {
            let placement = Placement { policy: Some(policy), ..Placement::default() };
            let explained = explain(&placement, &machine(), None, vec![]);
            let touches: Vec<_> = explained.first_touch.iter().map(|touch| (touch.from, &touch.nodes[..])).collect();
            assert_eq!(touches, [(0, from_0), (1, from_1)], "{:?}", explained.policy);
            assert!(explained.first_touch.iter().all(|touch| (touch.in_turn, touch.or_others) == (in_turn, or_others)));
        }
    }

    /// Check that pinned threads have their CPUs, and that only their nodes are explained.
    #[test]
    fn threads_have_seats() {
        let placement = Placement { cpus: Some(vec![2, 3]), threads: vec![3, 2, 9], ..Placement::default() };
        let explained = explain(&placement, &machine(), None, vec![]);
        let seats: Vec<_> = explained.threads.iter().map(|seat| (seat.thread, seat.cpu, seat.node)).collect();
        assert_eq!(seats, [(0, 3, Some(1)), (1, 2, Some(1)), (2, 9, None)]);
        let placement = Placement { threads: vec![3, 2], unpinned: vec![0, 2], ..placement };
        let seats: Vec<_> = explain(&placement, &machine(), None, vec![]).threads.iter().map(|seat| (seat.thread, seat.cpu)).collect();
        assert_eq!(seats, [(1, 3), (3, 2)]);
        assert_eq!((explained.nodes, explained.policy.mode.as_str(), explained.policy.inherited), (vec![1], "unknown", true));
        assert_eq!(explained.first_touch, [FirstTouch { from: 1, nodes: vec![1], in_turn: false, or_others: true }]);
    }
}
