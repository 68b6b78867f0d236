//! The route of data between nodes: the fewest links; of several such routes, the first in the order of the description.

use std::collections::VecDeque;
use std::fmt;

/// Links of all routes together. With 1024 nodes in a row there would be 350 million.
const MOST_LINKS: usize = 16 << 20;

/// Why there are no routes.
#[derive(Debug, PartialEq, Eq)]
pub enum NoRoutes {
    /// From the first of these nodes to the second.
    Between(usize, usize),
    TooLong,
}

impl fmt::Display for NoRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between(from, to) => write!(f, "no way leads from node {from} to node {to}"),
            Self::TooLong => write!(f, "the ways between all nodes have more than {MOST_LINKS} links together"),
        }
    }
}

/// A direct connection of two nodes, and the links that its data pass: one of its own, one that it shares, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub links: Vec<usize>,
}

/// The links from each node to each other, at from * nodes + to.
pub fn routes(nodes: usize, edges: &[Edge]) -> Result<Vec<Vec<usize>>, NoRoutes> {
    let mut leaving = vec![Vec::new(); nodes];
    for (index, edge) in edges.iter().enumerate() {
        leaving[edge.from].push(index);
    }
    let mut table = Vec::with_capacity(nodes * nodes);
    let mut all = 0;
    for from in 0..nodes {
        let arrived_by = search(from, edges, &leaving);
        for to in 0..nodes {
            let way = way(from, to, edges, &arrived_by).ok_or(NoRoutes::Between(from, to))?;
            all += way.len();
            if all > MOST_LINKS {
                return Err(NoRoutes::TooLong);
            }
            table.push(way);
        }
    }
    Ok(table)
}

fn search(from: usize, edges: &[Edge], leaving: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut arrived_by = vec![None; leaving.len()];
    let mut queue = VecDeque::from([from]);
    // With an edge between every two nodes, the edges of the first node are enough.
    let mut missing = leaving.len() - 1;
    while missing > 0
        && let Some(node) = queue.pop_front()
    {
        for &edge in &leaving[node] {
            let to = edges[edge].to;
            if to != from && arrived_by[to].is_none() {
                arrived_by[to] = Some(edge);
                queue.push_back(to);
                missing -= 1;
            }
        }
    }
    arrived_by
}

fn way(from: usize, to: usize, edges: &[Edge], arrived_by: &[Option<usize>]) -> Option<Vec<usize>> {
    let mut way = Vec::new();
    let mut node = to;
    while node != from {
        let edge = &edges[arrived_by[node]?];
        way.extend(edge.links.iter().rev());
        node = edge.from;
    }
    way.reverse();
    Some(way)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Edges with a link each.
    fn edges(pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Edge> {
        pairs.into_iter().enumerate().map(|(index, (from, to))| Edge { from, to, links: vec![index] }).collect()
    }

    /// Check that data takes the fewest links, by direction.
    #[test]
    fn the_shortest_way_is_taken() {
        let ring = edges([(0, 1), (1, 2), (2, 0)]);
        let table = routes(3, &ring).unwrap();
        assert_eq!(table[2], [0, 1]);
        assert_eq!(table[6], [2]);
        assert!(table[0].is_empty());
    }

    /// Check that an unreachable node is reported.
    #[test]
    fn a_missing_way_is_named() {
        assert_eq!(routes(3, &edges([(0, 1), (1, 0), (2, 0)])), Err(NoRoutes::Between(0, 2)));
    }

    /// Check that many nodes take little time and memory: each with a link to each other, and in a row.
    #[test]
    fn many_nodes_have_routes() {
        const NODES: usize = 1024;
        let each = (0..NODES).flat_map(|from| (0..NODES).filter(move |to| *to != from).map(move |to| (from, to)));
        let start = std::time::Instant::now();
        assert_eq!(routes(NODES, &edges(each)).unwrap().len(), NODES * NODES);
        let row = (1..NODES).flat_map(|node| [(node - 1, node), (node, node - 1)]);
        assert_eq!(routes(NODES, &edges(row)), Err(NoRoutes::TooLong));
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}
