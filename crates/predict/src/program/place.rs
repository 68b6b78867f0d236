//! Where pages would be: a placement gives every sampled address its nodes.

use crate::machine::Machine;
use crate::placement::{nearest, room};
use firsttouch_domain::traffic::{Division, ObjectTraffic, Traffic, TrafficSample};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A way to place memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Placement {
    /// As the program placed it.
    AsIs,
    /// Every thread touches first what it uses: its own part where parts have owners, else an equal block in order of threads.
    ParallelFirstTouch,
    /// Pages go round all nodes.
    Interleave,
    /// Pages go round by the bandwidth of the nodes' controllers.
    WeightedInterleave,
    /// All pages on one node.
    OneNode { node: usize },
}

impl Placement {
    /// As the JSON has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::AsIs => "as-is",
            Self::ParallelFirstTouch => "parallel-first-touch",
            Self::Interleave => "interleave",
            Self::WeightedInterleave => "weighted-interleave",
            Self::OneNode { .. } => "one-node",
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
        }
    }
}

/// What placing needs.
pub struct Places<'a> {
    pub machine: &'a Machine,
    pub traffic: &'a Traffic,
    pub nodes: &'a [usize],
}

/// The nodes of each sample, what did not fit moved on.
pub struct Mixes<'a> {
    placed: Vec<Placed<'a>>,
    /// By node, where its pages went.
    moved: Vec<Vec<(usize, f64)>>,
}

/// How one object's samples are placed.
struct Placed<'a> {
    placement: Placement,
    traffic: &'a Traffic,
    round_robin: Vec<(usize, f64)>,
    /// The object in equal blocks by its users, its traffic even over them.
    blocks: Vec<(usize, f64)>,
}

impl Mixes<'_> {
    /// Nodes of a sample of the object with this index, in shares that sum to 1.
    pub fn of(&self, object: usize, sample: &TrafficSample) -> Vec<(usize, f64)> {
        let Some(placed) = self.placed.get(object) else { return Vec::new() };
        let mix = placed.mix(object, sample);
        mix.into_iter()
            .flat_map(|(node, share)| self.moved.get(node).into_iter().flatten().map(move |(to, part)| (*to, share * part)))
            .collect()
    }
}

impl Placed<'_> {
    fn mix(&self, object: usize, sample: &TrafficSample) -> Vec<(usize, f64)> {
        match self.placement {
            Placement::AsIs => vec![(sample.home as usize, 1.0)],
            Placement::OneNode { node } => vec![(node, 1.0)],
            Placement::Interleave | Placement::WeightedInterleave => self.round_robin.clone(),
            Placement::ParallelFirstTouch if self.traffic.objects[object].division == Division::Owned => vec![(self.owner(sample), 1.0)],
            Placement::ParallelFirstTouch => self.blocks.clone(),
        }
    }

    /// The node of whose part it is.
    fn owner(&self, sample: &TrafficSample) -> usize {
        let most = || sample.bytes.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(worker, _)| *worker);
        let worker = sample.owner.or_else(most).and_then(|worker| self.traffic.workers.get(worker));
        worker.map_or(sample.home as usize, |worker| worker.node as usize)
    }
}

impl<'a> Places<'a> {
    fn placed(&self, object: &ObjectTraffic, placement: Placement) -> Placed<'a> {
        let weight = |node: usize| match placement {
            Placement::WeightedInterleave => self.machine.nodes[node].curve(0.0).limit,
            _ => 1.0,
        };
        let sum: f64 = self.nodes.iter().map(|node| weight(*node)).sum();
        let users: BTreeSet<usize> = object.samples.iter().flat_map(|sample| &sample.bytes).map(|(worker, _)| *worker).collect();
        let mut blocks: BTreeMap<usize, f64> = BTreeMap::new();
        for worker in users.iter().filter_map(|worker| self.traffic.workers.get(*worker)) {
            *blocks.entry(worker.node as usize).or_default() += 1.0;
        }
        let all: f64 = blocks.values().sum();
        Placed {
            placement,
            traffic: self.traffic,
            round_robin: self.nodes.iter().map(|node| (*node, weight(*node) / sum)).collect(),
            blocks: blocks.into_iter().map(|(node, users)| (node, users / all.max(1.0))).collect(),
        }
    }
}

/// Places every object, by its id. What a node has no room for goes to the nearest that has; pages of a full node are moved alike, wherever
/// they lie.
pub fn spill<'a>(places: &Places<'a>, placement: &dyn Fn(i64) -> Placement) -> Mixes<'a> {
    let objects = &places.traffic.objects;
    let placed: Vec<Placed<'_>> = objects.iter().map(|object| places.placed(object, placement(object.id))).collect();
    let count = places.machine.nodes.len();
    let mut load = vec![0.0; count];
    for (index, object) in objects.iter().enumerate() {
        let each = object.bytes as f64 / object.samples.len().max(1) as f64;
        for (node, share) in object.samples.iter().flat_map(|sample| placed[index].mix(index, sample)) {
            load[node] += each * share;
        }
    }
    let limits = room(places.machine);
    let mut free: Vec<f64> = limits.iter().zip(&load).map(|(room, load)| (room - load).max(0.0)).collect();
    let moved = (0..count).map(|node| {
        let mut over = load[node] - limits[node];
        if over <= 0.0 {
            return vec![(node, 1.0)];
        }
        let mut parts = Vec::new();
        for target in nearest(places.machine, node).into_iter().filter(|target| *target != node) {
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
    let moved = moved.collect();
    Mixes { placed, moved }
}
