//! The route of data between nodes: the fewest links; of several such routes, the first in the order of the description.

use super::Link;
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

/// The links from each node to each other, at from * nodes + to.
pub fn routes(nodes: usize, links: &[Link]) -> Result<Vec<Vec<usize>>, NoRoutes> {
    let mut leaving = vec![Vec::new(); nodes];
    for (index, link) in links.iter().enumerate() {
        leaving[link.from].push(index);
    }
    let mut table = Vec::with_capacity(nodes * nodes);
    let mut all = 0;
    for from in 0..nodes {
        let arrived_by = search(from, links, &leaving);
        for to in 0..nodes {
            let way = way(from, to, links, &arrived_by).ok_or(NoRoutes::Between(from, to))?;
            all += way.len();
            if all > MOST_LINKS {
                return Err(NoRoutes::TooLong);
            }
            table.push(way);
        }
    }
    Ok(table)
}

fn search(from: usize, links: &[Link], leaving: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut arrived_by = vec![None; leaving.len()];
    let mut queue = VecDeque::from([from]);
    // With a link between every two nodes, the links of the first node are enough.
    let mut missing = leaving.len() - 1;
    while missing > 0
        && let Some(node) = queue.pop_front()
    {
        for &link in &leaving[node] {
            let to = links[link].to;
            if to != from && arrived_by[to].is_none() {
                arrived_by[to] = Some(link);
                queue.push_back(to);
                missing -= 1;
            }
        }
    }
    arrived_by
}

fn way(from: usize, to: usize, links: &[Link], arrived_by: &[Option<usize>]) -> Option<Vec<usize>> {
    let mut way = Vec::new();
    let mut node = to;
    while node != from {
        let link = arrived_by[node]?;
        way.push(link);
        node = links[link].from;
    }
    way.reverse();
    Some(way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bandwidth;

    fn link(from: usize, to: usize) -> Link {
        Link { from, to, capacity: Bandwidth(1.0) }
    }

    /// Check that data takes the fewest links, by direction.
    #[test]
    fn the_shortest_way_is_taken() {
        let ring = [link(0, 1), link(1, 2), link(2, 0)];
        let table = routes(3, &ring).unwrap();
        assert_eq!(table[2], [0, 1]);
        assert_eq!(table[6], [2]);
        assert!(table[0].is_empty());
    }

    /// Check that an unreachable node is reported.
    #[test]
    fn a_missing_way_is_named() {
        assert_eq!(routes(3, &[link(0, 1), link(1, 0), link(2, 0)]), Err(NoRoutes::Between(0, 2)));
    }

    /// Check that many nodes take little time and memory: each with a link to each other, and in a row.
    #[test]
    fn many_nodes_have_routes() {
        const NODES: usize = 1024;
        let each = (0..NODES).flat_map(|from| (0..NODES).filter(move |to| *to != from).map(move |to| link(from, to)));
        let start = std::time::Instant::now();
        assert_eq!(routes(NODES, &each.collect::<Vec<_>>()).unwrap().len(), NODES * NODES);
        let row = (1..NODES).flat_map(|node| [link(node - 1, node), link(node, node - 1)]);
        assert_eq!(routes(NODES, &row.collect::<Vec<_>>()), Err(NoRoutes::TooLong));
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}
