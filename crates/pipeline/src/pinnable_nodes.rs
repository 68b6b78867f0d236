//! The nodes on which a pinning may put threads. `Pin::node` in firsttouch-model and `Target::seat` in firsttouch-analysis compute the
//! node of each thread (spread, compact).

use firsttouch_model::Pin;
use firsttouch_model::topology::format_list;
use firsttouch_system::TargetMachine;
use std::fmt;

/// The nodes on which a pinning may put threads, on a machine other than the profile's own.
pub(crate) struct PinnableNodes {
    pub nodes: usize,
    /// Nodes with CPUs; empty if all nodes have CPUs.
    pub cpu_nodes: Vec<u32>,
}

impl PinnableNodes {
    /// `None` for the profile's own machine.
    pub fn of(machine: &TargetMachine) -> Option<Self> {
        match machine {
            TargetMachine::Recorded => None,
            TargetMachine::Virtual(nodes) => Some(Self { nodes: *nodes, cpu_nodes: Vec::new() }),
            TargetMachine::Imported(machine) => {
                Some(Self { nodes: node_numbers(machine.topology.nodes.iter().map(|node| &node.id)), cpu_nodes: machine.cpu_nodes() })
            }
        }
    }

    pub fn check(&self, pin: &Pin) -> Result<(), PinFault> {
        pin.check(self.nodes).map_err(|why| PinFault::Pin(why.to_string()))?;
        if let Pin::Nodes(list) = pin
            && !self.cpu_nodes.is_empty()
            && let Some(node) = list.iter().find(|node| !self.cpu_nodes.contains(&node.0))
        {
            return Err(PinFault::NoCpus { node: node.0, cpu_nodes: self.cpu_nodes.clone() });
        }
        Ok(())
    }
}

/// One more than the highest node number, because node numbers may have gaps.
pub(crate) fn node_numbers<'a>(nodes: impl Iterator<Item = &'a u32>) -> usize {
    nodes.max().map_or(1, |last| *last as usize + 1)
}

/// Why a pinning does not fit a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PinFault {
    /// The pinning names a node that does not exist.
    Pin(String),
    NoCpus {
        node: u32,
        cpu_nodes: Vec<u32>,
    },
}

impl fmt::Display for PinFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(why) => f.write_str(why),
            Self::NoCpus { node, cpu_nodes } => write!(f, "node {node} has no CPUs; nodes with CPUs are {}", format_list(cpu_nodes)),
        }
    }
}
