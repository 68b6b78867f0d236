//! How many threads each domain gets, and which CPUs they run on.

/// `compact`, `scatter`, `spread`: ways to distribute all threads over the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Fills one node after the other.
    Compact,
    /// One thread on each node in turn.
    Scatter,
    /// Equal blocks of thread numbers on each node.
    Spread,
}

pub const FILLS: [(&str, Fill); 3] = [("compact", Fill::Compact), ("scatter", Fill::Scatter), ("spread", Fill::Spread)];

impl Fill {
    /// The CPU of each of `threads` threads, from the CPUs of each node. If there are more threads than CPUs, starts again.
    pub fn cpus(self, nodes: &[Vec<u32>], threads: usize) -> Vec<u32> {
        let all = match self {
            Self::Compact => nodes.concat(),
            Self::Scatter => in_turn(nodes),
            Self::Spread => return spread(nodes, threads),
        };
        all.into_iter().cycle().take(threads).collect()
    }
}

/// The first of each list, then the second of each, and so on.
pub fn in_turn(lists: &[Vec<u32>]) -> Vec<u32> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|place| lists.iter().filter_map(move |list| list.get(place).copied())).collect()
}

/// Blocks of thread numbers, as in `firsttouch report --pin spread`: thread i on node i * nodes / threads.
fn spread(nodes: &[Vec<u32>], threads: usize) -> Vec<u32> {
    let total: usize = nodes.iter().map(Vec::len).sum();
    if total == 0 {
        return Vec::new();
    }
    let block = |node: usize| ((node + 1) * threads).div_ceil(nodes.len()) - (node * threads).div_ceil(nodes.len());
    // No CPU gets a second thread until all have one.
    let rounds = threads.div_ceil(total);
    let room: Vec<usize> = nodes.iter().map(|cpus| cpus.len() * rounds).collect();
    let shares = within_room((0..nodes.len()).map(block).collect(), &room);
    nodes.iter().zip(shares).flat_map(|(cpus, share)| cpus.iter().copied().cycle().take(share)).collect()
}

/// Equal shares of `threads` (the first ones one larger if they do not divide evenly), limited by the room in each domain.
pub fn balanced(threads: usize, room: &[usize]) -> Vec<usize> {
    let domains = room.len().max(1);
    let shares = (0..room.len()).map(|domain| threads / domains + usize::from(domain < threads % domains));
    within_room(shares.collect(), room)
}

/// Moves threads that exceed a domain's room to domains with room left, one by one.
fn within_room(mut shares: Vec<usize>, room: &[usize]) -> Vec<usize> {
    let mut excess = 0;
    for (share, room) in shares.iter_mut().zip(room) {
        excess += share.saturating_sub(*room);
        *share = (*share).min(*room);
    }
    while excess > 0 {
        let before = excess;
        for (share, room) in shares.iter_mut().zip(room) {
            if excess > 0 && *share < *room {
                *share += 1;
                excess -= 1;
            }
        }
        if excess == before {
            break;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check each way to fill two nodes, with fewer threads than CPUs, as many, and more.
    #[test]
    fn nodes_are_filled() {
        let nodes = [vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
        for (fill, threads, cpus) in [
            (Fill::Compact, 3, &[0, 1, 2][..]),
            (Fill::Compact, 8, &[0, 1, 2, 3, 4, 5, 6, 7]),
            (Fill::Compact, 9, &[0, 1, 2, 3, 4, 5, 6, 7, 0]),
            (Fill::Scatter, 3, &[0, 4, 1]),
            (Fill::Scatter, 8, &[0, 4, 1, 5, 2, 6, 3, 7]),
            (Fill::Scatter, 10, &[0, 4, 1, 5, 2, 6, 3, 7, 0, 4]),
            (Fill::Spread, 1, &[0]),
            (Fill::Spread, 2, &[0, 4]),
            (Fill::Spread, 5, &[0, 1, 2, 4, 5]),
            (Fill::Spread, 8, &[0, 1, 2, 3, 4, 5, 6, 7]),
            (Fill::Spread, 10, &[0, 1, 2, 3, 0, 4, 5, 6, 7, 4]),
        ] {
            assert_eq!(fill.cpus(&nodes, threads), cpus, "{fill:?} {threads}");
        }
    }

    /// Check nodes of unequal size: no CPU gets a second thread before every CPU has one.
    #[test]
    fn unequal_nodes_share_by_room() {
        let nodes = [vec![0], vec![1, 2, 3, 4], vec![5, 6]];
        assert_eq!(Fill::Scatter.cpus(&nodes, 7), [0, 1, 5, 2, 6, 3, 4]);
        assert_eq!(Fill::Spread.cpus(&nodes, 7), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(Fill::Spread.cpus(&nodes, 6), [0, 1, 2, 3, 5, 6]);
        assert_eq!(balanced(6, &[1, 4, 2]), [1, 3, 2]);
        assert_eq!(balanced(7, &[1, 4, 2]), [1, 4, 2]);
        assert_eq!(balanced(5, &[4, 4]), [3, 2]);
    }

    /// Check that filling no CPUs ends.
    #[test]
    fn nothing_is_filled_with_nothing() {
        for fill in [Fill::Compact, Fill::Scatter, Fill::Spread] {
            assert!(fill.cpus(&[], 4).is_empty() && fill.cpus(&[vec![]], 4).is_empty());
        }
        assert_eq!(balanced(4, &[]), Vec::<usize>::new());
        assert_eq!(balanced(4, &[1, 1]), [1, 1]);
    }
}
