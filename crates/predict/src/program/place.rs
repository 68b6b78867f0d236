//! Assigns nodes to every sampled address, according to a placement.

use super::volumes::Mix;
use crate::machine::MachineModel;
use crate::placement::{nearest, room};
use firsttouch_model::traffic::{Division, ObjectTraffic, Traffic, TrafficSample};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A placement of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Placement {
    /// As the program placed it.
    AsIs,
    /// Every thread first touches what it uses: its own part if parts have owners, else an equal block in order of threads.
    ParallelFirstTouch,
    /// Pages on all nodes in turn.
    Interleave,
    /// Pages on all nodes in turn, weighted by the bandwidth of the nodes' controllers.
    WeightedInterleave,
    /// All pages on one node.
    OneNode { node: usize },
    /// The placement chosen for each object ([`super::Program::follow`]).
    Plan,
    /// The placement that the search through all combinations found best for each object ([`super::Program::follow_found`]).
    Exhaustive,
}

impl Placement {
    /// The name in the JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::AsIs => "as-is",
            Self::ParallelFirstTouch => "parallel-first-touch",
            Self::Interleave => "interleave",
            Self::WeightedInterleave => "weighted-interleave",
            Self::OneNode { .. } => "one-node",
            Self::Plan => "plan",
            Self::Exhaustive => "exhaustive",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsIs => write!(f, "as is"),
            Self::ParallelFirstTouch => write!(f, "parallel first touch"),
            Self::Interleave => write!(f, "interleave"),
            Self::WeightedInterleave => write!(f, "weighted interleave"),
            Self::OneNode { node } => write!(f, "all on node {node}"),
            Self::Plan => write!(f, "the plan"),
            Self::Exhaustive => write!(f, "best combination"),
        }
    }
}

/// The input of a placement.
pub struct Places<'a> {
    pub machine: &'a MachineModel,
    pub traffic: &'a Traffic,
    pub nodes: &'a [usize],
}

/// The nodes of each sample, after bytes that do not fit on a node have been moved.
pub struct Mixes<'a> {
    traffic: &'a Traffic,
    rules: Vec<Rule>,
    /// By rule that spreads pages: its nodes, with shares.
    spreads: Vec<Vec<(usize, f64)>>,
    /// By node: the nodes that its pages end up on, with shares.
    moved: Vec<Vec<(usize, f64)>>,
}

/// How one object's pages are placed.
#[derive(Clone, Copy)]
enum Rule {
    AsIs,
    ByOwner,
    Node(usize),
    /// Index of the spread.
    Spread(usize),
}

impl Mixes<'_> {
    /// The nodes of a sample of the object with this index.
    pub fn of(&self, object: usize, sample: &TrafficSample) -> Mix<'_> {
        let node = match self.rules[object] {
            Rule::AsIs => sample.home as usize,
            Rule::ByOwner => self.owner(sample),
            Rule::Node(node) => node,
            Rule::Spread(index) => return Mix::Spread(&self.spreads[index]),
        };
        match &self.moved[node][..] {
            [_] => Mix::Node(node),
            parts => Mix::Spread(parts),
        }
    }

    /// The node of the worker that owns the sample's part.
    fn owner(&self, sample: &TrafficSample) -> usize {
        let most = || sample.bytes.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(worker, _)| *worker);
        let worker = sample.owner.or_else(most).and_then(|worker| self.traffic.workers.get(worker));
        worker.map_or(sample.home as usize, |worker| worker.node as usize)
    }
}

impl<'a> Places<'a> {
    /// Places every object, by its id. What does not fit on a node goes to the nearest node with room; all pages of a full node are moved
    /// in the same proportion, wherever they are.
    pub fn place(&self, placement: &dyn Fn(i64) -> Placement) -> Mixes<'a> {
        let count = self.machine.nodes.len();
        let stay = (0..count).map(|node| vec![(node, 1.0)]).collect();
        let mut mixes =
            Mixes { traffic: self.traffic, rules: Vec::new(), spreads: vec![self.round_robin(false), self.round_robin(true)], moved: stay };
        for object in &self.traffic.objects {
            mixes.rules.push(match placement(object.id) {
                // The caller has already resolved `Plan` and `Exhaustive`.
                Placement::AsIs | Placement::Plan | Placement::Exhaustive => Rule::AsIs,
                Placement::OneNode { node } => Rule::Node(node),
                Placement::Interleave => Rule::Spread(0),
                Placement::WeightedInterleave => Rule::Spread(1),
                Placement::ParallelFirstTouch if object.division == Division::Owned => Rule::ByOwner,
                Placement::ParallelFirstTouch => {
                    mixes.spreads.push(self.blocks(object));
                    Rule::Spread(mixes.spreads.len() - 1)
                }
            });
        }
        let mut load = vec![0.0; count];
        for (index, object) in self.traffic.objects.iter().enumerate() {
            let each = object.bytes as f64 / object.samples.len().max(1) as f64;
            for sample in &object.samples {
                match mixes.of(index, sample) {
                    Mix::Node(node) => load[node] += each,
                    Mix::Spread(shares) => shares.iter().for_each(|(node, share)| load[*node] += each * share),
                }
            }
        }
        mixes.moved = spill(self.machine, &load);
        for spread in &mut mixes.spreads {
            *spread =
                spread.iter().flat_map(|(node, share)| mixes.moved[*node].iter().map(move |(to, part)| (*to, share * part))).collect();
        }
        mixes
    }

    fn round_robin(&self, weighted: bool) -> Vec<(usize, f64)> {
        let weight = |node: usize| if weighted { self.machine.nodes[node].curve(0.0).limit } else { 1.0 };
        let sum: f64 = self.nodes.iter().map(|node| weight(*node)).sum();
        self.nodes.iter().map(|node| (*node, weight(*node) / sum)).collect()
    }

    /// The object in equal blocks for its users, with its traffic spread evenly over them.
    fn blocks(&self, object: &ObjectTraffic) -> Vec<(usize, f64)> {
        let users: BTreeSet<usize> = object.samples.iter().flat_map(|sample| &sample.bytes).map(|(worker, _)| *worker).collect();
        let mut blocks: BTreeMap<usize, f64> = BTreeMap::new();
        for worker in users.iter().filter_map(|worker| self.traffic.workers.get(*worker)) {
            *blocks.entry(worker.node as usize).or_default() += 1.0 / users.len() as f64;
        }
        blocks.into_iter().collect()
    }
}

/// For each node, where the bytes on it end up: what does not fit goes to the nearest node with room.
fn spill(machine: &MachineModel, load: &[f64]) -> Vec<Vec<(usize, f64)>> {
    let limits = room(machine);
    let mut free: Vec<f64> = limits.iter().zip(load).map(|(room, load)| (room - load).max(0.0)).collect();
    let moved = (0..load.len()).map(|node| {
        let mut over = load[node] - limits[node];
        if over <= 0.0 {
            return vec![(node, 1.0)];
        }
        let mut parts = Vec::new();
        for target in nearest(machine, node).into_iter().filter(|target| *target != node) {
            let taken = over.min(free[target]);
            if taken > 0.0 {
                (free[target], over) = (free[target] - taken, over - taken);
                parts.push((target, taken / load[node]));
            }
        }
        let gone: f64 = parts.iter().map(|(_, part)| part).sum();
        parts.push((node, 1.0 - gone));
        parts
    });
    moved.collect()
}
