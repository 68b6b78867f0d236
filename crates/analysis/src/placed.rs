//! Memory that another placement of its pages would not improve: pages that are at their main users, and pages that are spread finely over all nodes.

use crate::evidence::{ByThread, Hit};
use crate::findings::REMOTE_BAR;
use crate::homes::Home;
use crate::judge::Judge;
use crate::partition::{Partition, PartitionKind};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Pages are at their users if placing each of them anew would make no larger part of the remote accesses local. The nodes must be known for most of the
/// accesses.
const LITTLE_GAIN: f64 = 0.25;
const MOST: f64 = 0.75;
/// Neighbouring places whose users are looked at together, and the least number of such parts.
const PART: usize = 16;
const LEAST_PARTS: usize = 4;
/// Memory is spread if the node with most of the samples has at most this many times its share of them, and no more neighbours are on one node.
const ALIKE: f64 = 1.25;

impl Judge<'_> {
    /// Whether nearly as much would be remote if each page were on the node of the thread whose part it is, or on that of the threads that use it and
    /// its neighbours most. Both gains are measured on the samples that tell the users, so they come out too large: a doubt leaves the finding.
    pub(crate) fn is_at_users(&self, hits: &[Hit], partition: &Partition) -> bool {
        if !matches!(partition.kind, PartitionKind::Single | PartitionKind::Block | PartitionKind::BlockCyclic) {
            return false;
        }
        let node_of: HashMap<usize, u32> =
            hits.iter().flat_map(|hit| hit.by_thread.iter()).map(|by| (self.threads.list[by.thread].worker, by.node)).collect();
        let mut uses: Vec<Use<'_>> = hits.iter().filter_map(|hit| Use::of(hit, self.design.weight(hit.draw))).collect();
        uses.retain_mut(|one| {
            let owner = partition.owner(one.position).and_then(|owner| node_of.get(&owner).copied());
            one.owner = owner.unwrap_or(one.home);
            owner.is_some()
        });
        let all: f64 = hits.iter().map(|hit| self.design.weight(hit.draw) * hit.rate()).sum();
        let known: f64 = uses.iter().map(Use::accesses).sum();
        if uses.len() < LEAST_PARTS * PART || known < MOST * all {
            return false;
        }
        let now: f64 = uses.iter().map(|one| one.by_others(one.home)).sum();
        let at_owners: f64 = uses.iter().map(|one| one.by_others(one.owner)).sum();
        let gain = f64::max(now - at_owners, gain_in_parts(uses));
        gain <= f64::min(REMOTE_BAR * known, LITTLE_GAIN * now)
    }

    /// Whether the accesses go to all nodes alike, those to neighbouring places too: threads that go through the memory together load all nodes at each
    /// moment.
    pub(crate) fn is_spread(&self, hits: &[Hit]) -> bool {
        let known: BTreeMap<u64, u32> =
            hits.iter().filter_map(|hit| if let Home::Known { node, .. } = hit.home { Some((hit.position, node)) } else { None }).collect();
        let homes: Vec<u32> = known.into_values().collect();
        if homes.len() < LEAST_PARTS * PART || (homes.len() as f64) < MOST * hits.len() as f64 {
            return false;
        }
        let mut by_node: BTreeMap<u32, usize> = BTreeMap::new();
        homes.iter().for_each(|home| *by_node.entry(*home).or_default() += 1);
        let most = by_node.values().copied().max().unwrap_or(0);
        let alike = homes.windows(2).filter(|two| two[0] == two[1]).count();
        let is_even = |count: usize| count as f64 * self.target.nodes as f64 <= ALIKE * homes.len() as f64;
        is_even(most) && is_even(alike)
    }
}

/// A hit in memory whose node is known.
struct Use<'a> {
    position: u64,
    home: u32,
    /// The node of the thread whose part it is in.
    owner: u32,
    weight: f64,
    by_thread: &'a [ByThread],
}

impl<'a> Use<'a> {
    fn of(hit: &'a Hit, weight: f64) -> Option<Self> {
        let Home::Known { node, .. } = hit.home else { return None };
        Some(Self { position: hit.position, home: node, owner: node, weight, by_thread: &hit.by_thread })
    }

    fn accesses(&self) -> f64 {
        self.weight * self.by_thread.iter().map(|by| by.rate).sum::<f64>()
    }

    /// The accesses by threads of other nodes than this one.
    fn by_others(&self, node: u32) -> f64 {
        self.weight * self.by_thread.iter().filter(|by| by.node != node).map(|by| by.rate).sum::<f64>()
    }
}

/// The accesses that would be local besides if the pages of a few neighbouring places that are on one node were on the node that uses them most.
fn gain_in_parts(mut uses: Vec<Use<'_>>) -> f64 {
    uses.sort_by_key(|one| one.position);
    let of_part = |part: &[Use<'_>]| {
        let mut by_home: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        for one in part {
            let sums = by_home.entry(one.home).or_default();
            one.by_thread.iter().for_each(|by| *sums.entry(by.node).or_default() += one.weight * by.rate);
        }
        let gain = |(home, sums): (u32, BTreeMap<u32, f64>)| {
            let most = sums.values().copied().fold(0.0, f64::max);
            most - sums.get(&home).copied().unwrap_or(0.0)
        };
        by_home.into_iter().map(gain).sum::<f64>()
    };
    uses.chunks(PART).map(of_part).sum()
}
