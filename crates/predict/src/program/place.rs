//! Assigns nodes to the accesses of every cell, according to a placement.

use super::cells::{Cell, Cells, ObjectCells};
use crate::machine::MachineModel;
use crate::placement::{nearest, room};
use firsttouch_model::traffic::Division;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A placement of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Placement {
    /// As the program placed it.
    AsIs,
    /// Every thread first touches what it uses: its own part if parts have owners, else an equal block in order of threads.
    ParallelFirstTouch,
    /// Every thread finds what it uses on its own node: in a copy a node, or because it has the same part every time. No placement of the
    /// object as it is does this; a change of the source can.
    Local,
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
            Self::Local => "local",
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
            Self::Local => write!(f, "local to each thread"),
            Self::Interleave => write!(f, "interleave"),
            Self::WeightedInterleave => write!(f, "weighted interleave"),
            Self::OneNode { node } => write!(f, "all on node {node}"),
            Self::Plan => write!(f, "the plan"),
            Self::Exhaustive => write!(f, "best combination"),
        }
    }
}

/// Where a machine can place the memory of a program.
pub struct Places {
    /// By rule that spreads pages: its nodes, with shares. Round robin, by weights, then the blocks of objects without owners.
    spreads: Vec<Spread>,
    /// By object: the index of the spread for its parallel first touch; `None` if parts have owners.
    blocks: Vec<Option<usize>>,
    /// The node of each worker.
    seats: Vec<usize>,
    /// By node: the bytes that it has room for, and all nodes, nearest first.
    room: Vec<f64>,
    nearest: Vec<Vec<usize>>,
}

/// Nodes with shares that sum to 1.
type Spread = Vec<(usize, f64)>;

/// How one object's pages are placed.
#[derive(Clone, Copy)]
pub enum Rule {
    AsIs,
    ByOwner,
    ByBlock,
    ByUser,
    Node(usize),
    /// Index of the spread.
    Spread(usize),
}

/// The nodes of a cell.
pub enum Mix<'a> {
    Node(usize),
    Spread(&'a [(usize, f64)]),
}

/// Where the pages of each rule are, after bytes that do not fit on a node have been moved.
pub struct Placed<'a> {
    spreads: Cow<'a, [Spread]>,
    seats: &'a [usize],
    /// By node: the nodes that its pages end up on; `None` if they all fit.
    moved: Option<Vec<Spread>>,
}

impl Rule {
    /// Whether the accesses to an object are the work of their threads: each finds what it uses on its own node, or `recorded`.
    pub fn stays(self, recorded: bool) -> bool {
        recorded || matches!(self, Self::ByUser)
    }
}

impl Placed<'_> {
    /// The nodes of a cell of an object that is placed by this rule.
    pub fn of(&self, rule: Rule, cell: &Cell) -> Mix<'_> {
        let node = match rule {
            Rule::AsIs => cell.home,
            Rule::ByOwner => cell.owner,
            Rule::ByBlock => cell.block,
            Rule::ByUser => self.seats[cell.worker],
            Rule::Node(node) => node,
            Rule::Spread(index) => return Mix::Spread(&self.spreads[index]),
        };
        self.on(node)
    }

    /// The nodes of memory that is to be on a worker's own node.
    pub fn of_worker(&self, worker: usize) -> Mix<'_> {
        self.on(self.seats[worker])
    }

    fn on(&self, node: usize) -> Mix<'_> {
        match self.moved.as_ref().map(|moved| &moved[node][..]) {
            None | Some([_]) => Mix::Node(node),
            Some(parts) => Mix::Spread(parts),
        }
    }

    /// Whether bytes do not fit on their nodes.
    pub fn is_moved(&self) -> bool {
        self.moved.is_some()
    }
}

impl Places {
    /// `nodes`: those that memory can be placed on. `seats`: the node of each worker.
    pub fn new(machine: &MachineModel, nodes: &[usize], seats: &[usize], cells: &Cells) -> Self {
        let mut spreads = vec![round_robin(machine, nodes, false), round_robin(machine, nodes, true)];
        let mut blocks = Vec::with_capacity(cells.objects.len());
        for (index, object) in cells.objects.iter().enumerate() {
            blocks.push((object.division != Division::Owned).then(|| {
                spreads.push(equal_blocks(&cells.users(index), seats));
                spreads.len() - 1
            }));
        }
        let nearest = (0..machine.nodes.len()).map(|node| nearest(machine, node)).collect();
        Self { spreads, blocks, seats: seats.to_vec(), room: room(machine), nearest }
    }

    /// The rule by which an object, of this index, is placed. The caller has resolved `Plan` and `Exhaustive`.
    pub fn rule(&self, index: usize, object: &ObjectCells, placement: Placement) -> Rule {
        match placement {
            Placement::AsIs | Placement::Plan | Placement::Exhaustive => Rule::AsIs,
            Placement::OneNode { node } => Rule::Node(node),
            Placement::Local => Rule::ByUser,
            Placement::Interleave => Rule::Spread(0),
            Placement::WeightedInterleave => Rule::Spread(1),
            Placement::ParallelFirstTouch if object.has_blocks => Rule::ByBlock,
            Placement::ParallelFirstTouch => self.blocks[index].map_or(Rule::ByOwner, Rule::Spread),
        }
    }

    /// Adds the bytes of an object to those on each node.
    pub fn load(&self, index: usize, object: &ObjectCells, rule: Rule, load: &mut [f64]) {
        let on = match rule {
            Rule::AsIs => &object.by_home,
            Rule::ByOwner => &object.by_owner,
            // Of copies each node has the part that its threads use, at least.
            Rule::ByUser | Rule::ByBlock => self.blocks[index].map_or(&object.by_owner, |index| &self.spreads[index]),
            Rule::Node(node) => {
                load[node] += object.bytes;
                return;
            }
            Rule::Spread(index) => &self.spreads[index],
        };
        on.iter().for_each(|(node, share)| load[*node] += object.bytes * share);
    }

    /// Where pages are if these bytes are to be on each node. What does not fit on a node goes to the nearest node with room; all pages of a full
    /// node are moved in the same proportion, wherever they are.
    pub fn place(&self, load: &[f64]) -> Placed<'_> {
        if load.iter().zip(&self.room).all(|(load, room)| load <= room) {
            return Placed { spreads: Cow::Borrowed(&self.spreads), seats: &self.seats, moved: None };
        }
        let moved = self.spill(load);
        let move_spread = |spread: &Spread| -> Spread {
            spread.iter().flat_map(|(node, share)| moved[*node].iter().map(move |(to, part)| (*to, share * part))).collect()
        };
        Placed { spreads: self.spreads.iter().map(move_spread).collect(), seats: &self.seats, moved: Some(moved) }
    }

    /// For each node, where the bytes on it end up: what does not fit goes to the nearest node with room.
    fn spill(&self, load: &[f64]) -> Vec<Spread> {
        let mut free: Vec<f64> = self.room.iter().zip(load).map(|(room, load)| (room - load).max(0.0)).collect();
        let moved = (0..load.len()).map(|node| {
            let mut over = load[node] - self.room[node];
            if over <= 0.0 {
                return vec![(node, 1.0)];
            }
            let mut parts = Vec::new();
            for target in self.nearest[node].iter().copied().filter(|target| *target != node) {
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
}

fn round_robin(machine: &MachineModel, nodes: &[usize], weighted: bool) -> Spread {
    let weight = |node: usize| if weighted { machine.nodes[node].curve(0.0).limit } else { 1.0 };
    let sum: f64 = nodes.iter().map(|node| weight(*node)).sum();
    nodes.iter().map(|node| (*node, weight(*node) / sum)).collect()
}

/// An object in equal blocks for its users, with its traffic spread evenly over them.
fn equal_blocks(users: &BTreeSet<usize>, seats: &[usize]) -> Spread {
    let mut blocks: BTreeMap<usize, f64> = BTreeMap::new();
    for node in users.iter().filter_map(|worker| seats.get(*worker)) {
        *blocks.entry(*node).or_default() += 1.0 / users.len() as f64;
    }
    blocks.into_iter().collect()
}
