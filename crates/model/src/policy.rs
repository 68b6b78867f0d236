//! Memory policies of a process.

use crate::topology::{Topology, format_list};
use std::fmt;

/// Where the kernel takes memory from, and the nodes that it is about; none for [`Mode::Local`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub mode: Mode,
    /// Sorted.
    pub nodes: Vec<u32>,
    /// The kernel's balancing may move pages between the nodes of a [`Mode::Bind`].
    pub balancing: bool,
}

/// set_mempolicy(2)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// These nodes, or none.
    Bind,
    /// This node, or others when it is full.
    Preferred,
    /// These nodes, or others when they are full.
    PreferredMany,
    /// A page from each node in turn.
    Interleave,
    /// The same, by the weights in /sys/kernel/mm/mempolicy/weighted_interleave.
    WeightedInterleave,
    /// The node that the thread runs on.
    Local,
}

/// Name, number (linux/mempolicy.h) and first kernel of each mode, where that matters.
const MODES: [(Mode, &str, i32, Option<&str>); 6] = [
    (Mode::Bind, "bind", 2, None),
    (Mode::Preferred, "preferred", 1, None),
    (Mode::PreferredMany, "preferred-many", 5, Some("5.15")),
    (Mode::Interleave, "interleave", 3, None),
    (Mode::WeightedInterleave, "weighted-interleave", 6, Some("6.9")),
    (Mode::Local, "local", 4, None),
];

/// The flag MPOL_F_NUMA_BALANCING, and the first kernel that has it.
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
    /// When the kernel would refuse the nodes: none has memory, or a mode of one node has several.
    pub fn check(&self, topology: &Topology) -> Result<(), String> {
        let Self { mode, nodes, .. } = self;
        if *mode == Mode::Local {
            return Ok(());
        }
        if *mode == Mode::Preferred && nodes.len() > 1 {
            return Err(format!("{} takes one node, not {}; preferred-many takes several", mode, format_list(nodes)));
        }
        let has_memory = |node: &u32| topology.node(*node).is_none_or(|node| node.memory.is_none_or(|memory| memory.total_bytes > 0));
        if nodes.iter().any(has_memory) {
            return Ok(());
        }
        Err(match nodes[..] {
            [] => format!("{mode} needs a node"),
            [node] => format!("node {node} has no memory"),
            _ => format!("none of the nodes {} has memory", format_list(nodes)),
        })
    }

    /// The mode with its flags, as the kernel has it.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.mode.row().1 | if self.balancing { BALANCING.0 } else { 0 }
    }

    /// The first kernel that has all this, where not every one does.
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

/// `bind to nodes 0-1, with balancing`, as a message has it.
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

    /// Check which nodes each mode takes: the kernel refuses those without memory, unless others have some.
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
            assert_eq!(Policy::new(mode, nodes.to_vec()).check(&machine()).err().as_deref(), answer, "{mode} {nodes:?}");
        }
    }

    /// Check the numbers against linux/mempolicy.h, as far as libc has them, and the words of messages.
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
