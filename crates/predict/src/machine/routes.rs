//! The route of data between nodes: the fewest links; of several such routes, the first in the order of the description.

use super::Link;
use std::collections::VecDeque;

/// The links from each node to each other, at from * nodes + to. The error is a pair of nodes without a route.
pub fn routes(nodes: usize, links: &[Link]) -> Result<Vec<Vec<usize>>, (usize, usize)> {
    let mut leaving = vec![Vec::new(); nodes];
    for (index, link) in links.iter().enumerate() {
        leaving[link.from].push(index);
    }
    let mut table = Vec::with_capacity(nodes * nodes);
    for from in 0..nodes {
        let arrived_by = search(from, links, &leaving);
        for to in 0..nodes {
            table.push(way(from, to, links, &arrived_by).ok_or((from, to))?);
        }
    }
    Ok(table)
}

fn search(from: usize, links: &[Link], leaving: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut arrived_by = vec![None; leaving.len()];
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for &link in &leaving[node] {
            let to = links[link].to;
            if to != from && arrived_by[to].is_none() {
                arrived_by[to] = Some(link);
                queue.push_back(to);
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
        assert_eq!(routes(3, &[link(0, 1), link(1, 0), link(2, 0)]), Err((0, 2)));
    }
}
