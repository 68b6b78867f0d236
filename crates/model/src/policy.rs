//! Memory policies of processes.

use crate::Error;
use crate::topology::{Topology, format_list};
use std::fmt;

/// Where the kernel takes memory from: a mode, and its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub mode: Mode,
    /// Sorted; empty for [`Mode::Local`].
    pub nodes: Vec<u32>,
    /// The kernel's balancing may move pages between the nodes of a [`Mode::Bind`].
    pub balancing: bool,
}

/// set_mempolicy(2)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only these nodes.
    Bind,
    /// This node; other nodes when it is full.
    Preferred,
    /// These nodes; other nodes when they are full.
    PreferredMany,
    /// A page from each node in turn.
    Interleave,
    /// As `Interleave`, by the weights in /sys/kernel/mm/mempolicy/weighted_interleave.
    WeightedInterleave,
    /// The node that the thread runs on.
    Local,
}

/// Name, number (linux/mempolicy.h) and, for newer modes, the first kernel of each mode.
const MODES: [(Mode, &str, i32, Option<&str>); 6] = [
    (Mode::Bind, "bind", 2, None),
    (Mode::Preferred, "preferred", 1, None),
    (Mode::PreferredMany, "preferred-many", 5, Some("5.15")),
    (Mode::Interleave, "interleave", 3, None),
    (Mode::WeightedInterleave, "weighted-interleave", 6, Some("6.9")),
    (Mode::Local, "local", 4, None),
];

/// The flag MPOL_F_NUMA_BALANCING, and the first kernel that supports it.
const BALANCING: (i32, &str) = (1 << 13, "5.12");

impl Mode {
    fn row(self) -> (&'static str, i32, Option<&'static str>) {
        MODES.iter().find(|(mode, ..)| *mode == self).map_or(("", 0, None), |(_, name, number, since)| (name, *number, *since))
    }
}

impl Policy {
    #[must_use]
    pub fn new(mode: Mode, nodes: Vec<u32>) -> Self {
        Self { mode, nodes, balancing: false }
    }

    /// # Errors
    /// When the kernel would refuse the nodes: no node has memory, or a mode of one node has several nodes.
    pub fn check(&self, topology: &Topology) -> Result<(), Error> {
        let Self { mode, nodes, .. } = self;
        if *mode == Mode::Local {
            return Ok(());
        }
        if *mode == Mode::Preferred && nodes.len() > 1 {
            let nodes = format_list(nodes);
            return Err(Error::invalid_input(format!("{mode} takes one node, not {nodes}; preferred-many takes several")));
        }
        let has_memory = |node: &u32| topology.node(*node).is_none_or(|node| node.memory.is_none_or(|memory| memory.total_bytes > 0));
        if nodes.iter().any(has_memory) {
            return Ok(());
        }
        Err(Error::invalid_input(match nodes[..] {
            [] => format!("{mode} needs a node"),
            [node] => format!("node {node} has no memory"),
            _ => format!("none of the nodes {} has memory", format_list(nodes)),
        }))
    }

    /// The kernel's number for the mode with its flags.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.mode.row().1 | if self.balancing { BALANCING.0 } else { 0 }
    }

    /// The first kernel that supports the policy; `None` if all do.
    #[must_use]
    pub fn since(&self) -> Option<&'static str> {
        if self.balancing { Some(BALANCING.1) } else { self.mode.row().2 }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

/// The text in messages: `bind to nodes 0-1, with balancing`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mode.fmt(f)?;
        match self.nodes[..] {
            [] => {}
            [node] => write!(f, " of node {node}")?,
            _ => write!(f, " of nodes {}", format_list(&self.nodes))?,
        }
        f.write_str(if self.balancing { ", with balancing" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Memory, Node};

    fn machine() -> Topology {
        let node = |id, total_bytes| Node { id, memory: Some(Memory { total_bytes, free_bytes: None }), ..Node::default() };
        Topology { nodes: vec![node(0, 1 << 30), node(1, 0), node(2, 0), Node { id: 3, ..Node::default() }], ..Topology::default() }
    }

    /// Check which nodes each mode accepts: the kernel refuses a list in which no node has memory.
    #[test]
    fn nodes_without_memory_are_refused() {
        for (mode, nodes, answer) in [
            (Mode::Bind, &[0][..], None),
            (Mode::Bind, &[0, 1], None),
            (Mode::Interleave, &[3], None),
            (Mode::Bind, &[1], Some("node 1 has no memory")),
            (Mode::WeightedInterleave, &[1, 2], Some("none of the nodes 1-2 has memory")),
            (Mode::Preferred, &[0, 3], Some("preferred takes one node, not 0,3; preferred-many takes several")),
            (Mode::Preferred, &[0], None),
            (Mode::PreferredMany, &[0, 3], None),
            (Mode::PreferredMany, &[], Some("preferred-many needs a node")),
            (Mode::Local, &[], None),
        ] {
            let refusal = Policy::new(mode, nodes.to_vec()).check(&machine()).err().map(|error| error.to_string());
            assert_eq!(refusal.as_deref(), answer, "{mode} {nodes:?}");
        }
    }

    /// Check the numbers against linux/mempolicy.h, as far as libc has them, and the text in messages.
    #[test]
    fn policies_have_the_kernels_numbers() {
        let bind = Policy { balancing: true, ..Policy::new(Mode::Bind, vec![0, 1]) };
        assert_eq!(bind.number(), libc::MPOL_BIND | libc::MPOL_F_NUMA_BALANCING);
        assert_eq!((bind.to_string().as_str(), bind.since()), ("bind of nodes 0-1, with balancing", Some("5.12")));
        for (mode, number, words) in [
            (Mode::Bind, libc::MPOL_BIND, "bind of node 4"),
            (Mode::Preferred, libc::MPOL_PREFERRED, "preferred of node 4"),
            (Mode::Interleave, libc::MPOL_INTERLEAVE, "interleave of node 4"),
            (Mode::Local, libc::MPOL_LOCAL, "local of node 4"),
        ] {
            let policy = Policy::new(mode, vec![4]);
            assert_eq!((policy.number(), policy.to_string().as_str(), policy.since()), (number, words, None));
        }
        assert_eq!(Policy::new(Mode::WeightedInterleave, vec![]).since(), Some("6.9"));
    }
}
