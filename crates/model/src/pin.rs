//! Where threads run on a virtual machine: `spread`, `compact`, or a list of nodes.

use crate::{Error, ExpressionError, NodeId};
use std::str::FromStr;

/// A thread placement on a machine of N nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Equal blocks of thread numbers on each node: node = floor(i * N / T).
    Spread,
    /// Fills one node after the other: node = floor(i / cores_per_node). When all cores have a thread it begins again with the first, as
    /// `firsttouch run` does.
    Compact,
    /// Explicit nodes by thread number, repeated when there are more threads: `0,0,1,1` or `0-3`.
    Nodes(Vec<NodeId>),
}

impl Pin {
    /// The node of placement slot `slot` of `slots` on a machine with `nodes` nodes of `cores_per_node` cores.
    #[must_use]
    pub fn node(&self, slot: usize, slots: usize, nodes: usize, cores_per_node: usize) -> NodeId {
        let nodes = nodes.max(1);
        let index = match self {
            Self::Spread => slot * nodes / slots.max(1),
            Self::Compact => slot / cores_per_node.max(1) % nodes,
            Self::Nodes(list) => return list.get(slot % list.len().max(1)).copied().unwrap_or(NodeId(0)),
        };
        NodeId(u32::try_from(index.min(nodes - 1)).unwrap_or(0))
    }

    /// Checks that every named node exists on a machine with `nodes` nodes.
    ///
    /// # Errors
    /// Names the first node that does not exist.
    pub fn check(&self, nodes: usize) -> Result<(), Error> {
        if let Self::Nodes(list) = self
            && let Some(node) = list.iter().find(|n| n.0 as usize >= nodes)
        {
            let last = nodes.saturating_sub(1);
            return Err(Error::invalid_input(format!("node {} does not exist: the machine has nodes 0-{last}", node.0)));
        }
        Ok(())
    }
}

impl FromStr for Pin {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        match text {
            "spread" => return Ok(Self::Spread),
            "compact" => return Ok(Self::Compact),
            _ => {}
        }
        let fail = |offset: usize, reason: &str| ExpressionError { expression: text.to_owned(), offset, reason: reason.to_owned() };
        let mut nodes = Vec::new();
        let mut offset = 0;
        for part in text.split(',') {
            let number = |s: &str, at: usize| {
                s.parse::<u32>().map_err(|_| fail(at, "expected spread, compact, or node numbers such as 0,0,1,1 or 0-3"))
            };
            match part.split_once('-') {
                Some((first, last)) => {
                    let (low, high) = (number(first, offset)?, number(last, offset + first.len() + 1)?);
                    if low > high {
                        return Err(fail(offset, "a range must run upwards"));
                    }
                    if high >= 1024 {
                        return Err(fail(offset, "node numbers above 1023 are not supported"));
                    }
                    nodes.extend((low..=high).map(NodeId));
                }
                None => nodes.push(NodeId(number(part, offset)?)),
            }
            offset += part.len() + 1;
        }
        Ok(Self::Nodes(nodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that spread gives equal blocks, also with one extra (idle main) thread in front.
    #[test]
    fn spread_gives_equal_blocks() {
        let nodes: Vec<u32> = (0..8).map(|i| Pin::Spread.node(i, 8, 2, 4).0).collect();
        assert_eq!(nodes, [0, 0, 0, 0, 1, 1, 1, 1]);
        let workers: Vec<u32> = (1..9).map(|i| Pin::Spread.node(i, 9, 4, 4).0).collect();
        assert_eq!(workers, [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    /// Check that compact fills one node after the other, and begins again when all cores have a thread.
    #[test]
    fn compact_begins_again() {
        let nodes: Vec<u32> = (0..7).map(|i| Pin::Compact.node(i, 7, 2, 2).0).collect();
        assert_eq!(nodes, [0, 0, 1, 1, 0, 0, 1]);
    }

    /// Check malformed expressions: the error says where, and nothing panics.
    #[test]
    fn malformed_expressions_name_the_place() {
        for (text, offset) in [("", 0), ("x", 0), ("0,x", 2), ("0,,1", 2), ("3-1", 0), ("0-", 2), ("-1", 0), ("0-99999", 0), ("é", 0)] {
            let error = text.parse::<Pin>().expect_err(text);
            assert_eq!(error.offset, offset, "{text}: {error}");
        }
        assert_eq!("0-1,1".parse::<Pin>(), Ok(Pin::Nodes(vec![NodeId(0), NodeId(1), NodeId(1)])));
    }
}
