//! The nodes of the ranks of a job: where a run in a rank goes that its launcher did not bind.

use firsttouch_analysis::Analysis;
use std::collections::BTreeSet;

/// The nodes of each rank of a host, in the order of their local numbers. Nodes are logical, 0 to `nodes` - 1, of the whole host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankNodes {
    pub nodes: u32,
    pub of_rank: Vec<Vec<u32>>,
}

/// Ranks of a host that a plan can name.
pub const MOST_RANKS: usize = 4096;

impl RankNodes {
    /// The nodes of a job's ranks on the host with the most ranks; `None` if the profile is of no job of several ranks. On the recorded machine, where
    /// ranks may have been anywhere, equal blocks of ranks.
    #[must_use]
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let host = (0..analysis.hosts.len()).max_by_key(|host| (of_host(analysis, *host).count(), usize::MAX - host))?;
        let view = &analysis.hosts[host];
        let ranks = of_host(analysis, host).count();
        if !(2..=MOST_RANKS).contains(&ranks) || view.nodes < 2 {
            return None;
        }
        let is_virtual = analysis.machine.virtual_machine;
        let seen = |index: usize| -> Vec<u32> {
            let threads = of_host(analysis, host)
                .nth(index)
                .and_then(|rank| analysis.threads.get(rank.first_thread..rank.first_thread + rank.threads));
            let own =
                threads.into_iter().flatten().filter(|thread| !thread.idle).filter_map(|thread| thread.node.checked_sub(view.first_node));
            own.collect::<BTreeSet<u32>>().into_iter().collect()
        };
        let block = |rank: usize| {
            let (first, end) = (rank * view.nodes / ranks, ((rank + 1) * view.nodes / ranks).max(rank * view.nodes / ranks + 1));
            (first..end).filter_map(|node| u32::try_from(node).ok()).collect()
        };
        let of_rank =
            (0..ranks).map(|rank| Some(seen(rank)).filter(|nodes| is_virtual && !nodes.is_empty()).unwrap_or_else(|| block(rank)));
        Some(Self { nodes: u32::try_from(view.nodes).unwrap_or(u32::MAX), of_rank: of_rank.collect() })
    }

    /// The real nodes of a rank: `here` are those that it may use. With another number of ranks or nodes, in proportion.
    #[must_use]
    pub fn real(&self, local_rank: u32, local_size: u32, here: &[u32]) -> Vec<u32> {
        let ranks = self.of_rank.len();
        let index = local_rank as usize * ranks / (local_size.max(1) as usize);
        let Some(logical) = self.of_rank.get(index.min(ranks.saturating_sub(1))) else { return Vec::new() };
        let real = |node: &u32| here.get(*node as usize * here.len() / self.nodes.max(1) as usize).copied();
        logical.iter().filter_map(real).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// The nodes of the rank with the most.
    #[must_use]
    pub fn most(&self) -> usize {
        self.of_rank.iter().map(Vec::len).max().unwrap_or(0)
    }
}

fn of_host(analysis: &Analysis, host: usize) -> impl Iterator<Item = &firsttouch_analysis::job::RankView> {
    analysis.ranks.iter().filter(move |rank| rank.host == host && rank.rank.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that ranks find their nodes on machines with other nodes, and in jobs with other numbers of ranks.
    #[test]
    fn ranks_find_their_nodes() {
        let plan = RankNodes { nodes: 2, of_rank: vec![vec![0], vec![0], vec![1], vec![1]] };
        assert_eq!([0, 1, 2, 3].map(|rank| plan.real(rank, 4, &[0, 1])), [[0], [0], [1], [1]]);
        assert_eq!([0, 1].map(|rank| plan.real(rank, 2, &[3, 7])), [[3], [7]]);
        assert_eq!([0, 3, 4, 7].map(|rank| plan.real(rank, 8, &[0, 1, 2, 3])), [[0], [0], [2], [2]]);
        let wide = RankNodes { nodes: 4, of_rank: vec![vec![0, 1], vec![2, 3]] };
        assert_eq!(wide.real(1, 2, &[0, 1, 2, 3]), [2, 3]);
        assert_eq!(wide.real(1, 2, &[0, 1]), [1]);
        assert_eq!((wide.real(0, 0, &[]), RankNodes::default().real(0, 1, &[0])), (vec![], vec![]));
    }
}
