//! How a program would be started, and the results of starting it in several ways.

use crate::system::Spread;
use serde::Serialize;
use std::collections::BTreeMap;

/// Where each thread and page of a program would be placed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    pub cpus: Vec<u32>,
    /// The nodes of these CPUs.
    pub nodes: Vec<u32>,
    pub policy: LaunchPolicy,
    /// The CPUs of each thread, in order of creation; empty if threads are not pinned.
    pub threads: Vec<Seat>,
    /// Where pages go that a thread on each node touches first. For a pinned program, only nodes that have a thread.
    pub first_touch: Vec<FirstTouch>,
    /// Variables that are set for the program.
    pub environment: BTreeMap<String, String>,
    /// Where a plan puts the program's allocations.
    pub plan: Vec<PlannedMemory>,
    /// Options that are ignored (`--best-effort`).
    pub left_out: Vec<String>,
}

/// An entry of a plan, resolved on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedMemory {
    /// The variable, and the line that allocates it.
    pub what: String,
    pub at: String,
    /// The policy, in the plan's words.
    pub policy: String,
    /// The nodes that it goes to; for a partition, the node of each part in order, with adjacent parts of one node merged. Empty if it is
    /// left alone.
    pub nodes: Vec<u32>,
    /// Whether the program to be run contains the allocation; `None` if no program is named.
    pub found: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchPolicy {
    /// The kernel's name, as in `topology.process.policy.mode`; `unknown` if the kernel does not say.
    pub mode: String,
    pub nodes: Vec<u32>,
    pub balancing: bool,
    /// Whether the policy was not requested: firsttouch was started with it.
    pub inherited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Seat {
    pub thread: usize,
    pub cpu: u32,
    pub node: Option<u32>,
}

/// Pages touched first by a thread on `from`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstTouch {
    pub from: u32,
    /// The first node, then the nodes used when it is full; for an interleaved policy all nodes.
    pub nodes: Vec<u32>,
    pub in_turn: bool,
    /// Whether other nodes are used when all of these are full.
    pub or_others: bool,
}

/// A way to start a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// On the CPUs and the memory of one node.
    OneNode,
    /// On all nodes, as the program itself places its memory.
    AllNodes,
    /// On all nodes, with pages interleaved over them.
    Interleaved,
    /// One process per node at the same time, each bound to its own node.
    OneProcessANode,
}

pub const WAYS: [Way; 4] = [Way::OneNode, Way::AllNodes, Way::Interleaved, Way::OneProcessANode];

/// The runs of the program in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    pub way: Way,
    /// With several processes, the time of the last one to end, seconds.
    pub wall_s: Spread,
    pub runs: Vec<f64>,
}

/// The comparison of all ways, as ratios of median times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratios {
    /// Time on all nodes divided by time on one.
    pub all_over_one: f64,
    /// Time on all nodes divided by time interleaved: the gain of interleaving.
    pub all_over_interleaved: f64,
    /// Time on all nodes divided by the time of the same work with a process on each node that uses only local memory: the joint gain of
    /// perfect placement and perfect parallelism.
    pub all_over_home: f64,
}

impl Ratios {
    /// `None` if a way was not timed.
    #[must_use]
    pub fn of(tried: &[Tried], nodes: usize) -> Option<Self> {
        let time = |way| tried.iter().find(|tried| tried.way == way).map(|tried| tried.wall_s.median).filter(|median| *median > 0.0);
        let (one, all) = (time(Way::OneNode)?, time(Way::AllNodes)?);
        let home = time(Way::OneProcessANode)? / nodes.max(1) as f64;
        Some(Self { all_over_one: all / one, all_over_interleaved: all / time(Way::Interleaved)?, all_over_home: all / home })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the ratios of times, and that a way without a time gives no ratio.
    #[test]
    fn ratios_of_times() {
        let tried = |times: [f64; 4]| -> Vec<Tried> {
            WAYS.into_iter().zip(times).map(|(way, time)| Tried { way, wall_s: Spread::of(vec![time]), runs: vec![time] }).collect()
        };
        let ratios = Ratios { all_over_one: 0.75, all_over_interleaved: 1.5, all_over_home: 1.2 };
        assert_eq!(Ratios::of(&tried([4.0, 3.0, 2.0, 5.0]), 2), Some(ratios));
        assert_eq!(Ratios::of(&tried([4.0, 3.0, 0.0, 5.0]), 2), None);
        assert_eq!(Ratios::of(&tried([4.0, 3.0, 2.0, 5.0])[..3], 2), None);
    }
}
