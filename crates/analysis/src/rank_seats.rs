//! The nodes of a job's ranks on a virtual machine: where a launcher would put them.
//!
//! A rank, with the processes that it starts, is a unit, whatever the size of the others. The ranks of a host are laid out on the nodes of one machine:
//!
//! 1. `--ranks-per-node N`: so many ranks on each node, one after the other (block), or in turn on as many nodes as that needs (cyclic).
//! 2. `--distribution cyclic`, or the pinning `scatter`: rank by rank on the next node.
//! 3. Ranks that the launcher had bound to different CPUs: the nodes that have the same part of the machine's CPUs. With more nodes than CPUs, a CPU's part is several nodes.
//! 4. Else blocks of ranks, by the pinning: with more nodes than ranks, a block of nodes for each rank.
//!
//! Threads of a rank with several nodes are all on the first if they fit, and else spread over these nodes.

use crate::Target;
use crate::target::Distribution;
use firsttouch_model::Pin;
use firsttouch_model::cpu_list;
use firsttouch_model::rows::{Id, Profile, RankPlace};
use std::collections::{BTreeMap, BTreeSet};

/// Where the processes of ranks sit, and on which host each process ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankSeats {
    /// The first process of each part, the index of its host, and the nodes of its threads (none if it is no rank).
    parts: Vec<(Id, usize, Vec<u32>)>,
    ranks: usize,
    /// The launcher's binding decided where ranks sit.
    pub is_by_binding: bool,
    /// It did, and a rank with several nodes was bound to CPUs of each: its threads are on all of these. With more nodes than CPUs, one CPU stands for several nodes.
    pub is_bound_across: bool,
}

/// A rank on its host.
struct Rank<'a> {
    part: usize,
    place: &'a RankPlace,
    /// The CPUs of its host, in order.
    cpus: Vec<u32>,
}

impl RankSeats {
    /// The seats of the ranks of a profile. `target`: of one host, its nodes counted from 0.
    #[must_use]
    pub fn new(profile: &Profile, target: &Target) -> Self {
        let alone = || profile.meta.rank.iter().map(|place| (0, 0, place, &profile.machine));
        let merged = profile.parts.iter().filter_map(|part| Some((part.first.process, part.host, part.place.as_ref()?, &part.machine)));
        let parts: Vec<(Id, usize)> = match profile.parts.as_slice() {
            [] => vec![(0, 0)],
            parts => parts.iter().map(|part| (part.first.process, usize::try_from(part.host).unwrap_or(0))).collect(),
        };
        let mut seats = Self { parts: parts.iter().map(|(process, host)| (*process, *host, Vec::new())).collect(), ..Self::default() };
        let mut by_host: BTreeMap<Id, Vec<Rank<'_>>> = BTreeMap::new();
        let listed: Vec<_> = if profile.parts.is_empty() { alone().collect() } else { merged.collect() };
        seats.ranks = listed.len();
        for (process, host, place, machine) in listed {
            let Ok(part) = parts.binary_search_by_key(&process, |(first, _)| *first) else { continue };
            let mut cpus: Vec<u32> = machine.node_cpus.values().flatten().copied().collect();
            cpus.sort_unstable();
            by_host.entry(host).or_default().push(Rank { part, place, cpus });
        }
        for ranks in by_host.values() {
            let (nodes, is_by_binding) = nodes_of(ranks, target);
            seats.is_by_binding |= is_by_binding;
            seats.is_bound_across |= is_by_binding && ranks.iter().all(|rank| rank.cpus.len() >= target.places());
            for (rank, nodes) in ranks.iter().zip(nodes) {
                seats.parts[rank.part].2 = nodes;
            }
        }
        seats
    }

    fn part(&self, process: Id) -> Option<&(Id, usize, Vec<u32>)> {
        self.parts.get(self.parts.partition_point(|(first, ..)| *first <= process).checked_sub(1)?)
    }

    /// The index of the host on which a process ran.
    #[must_use]
    pub fn host(&self, process: Id) -> usize {
        self.part(process).map_or(0, |(_, host, _)| *host)
    }

    /// The number of ranks, if there are several on a host; a rank that is alone on its host has all of it.
    #[must_use]
    pub fn count(&self) -> usize {
        if self.parts.iter().any(|(.., nodes)| !nodes.is_empty()) { self.ranks } else { 0 }
    }

    /// The nodes for the threads of a process, on its host's machine; empty if it belongs to no rank.
    #[must_use]
    pub fn nodes(&self, process: Id) -> &[u32] {
        self.part(process).map_or(&[], |(.., nodes)| nodes)
    }
}

/// The nodes of each rank of a host, and whether the launcher's binding decided.
fn nodes_of(ranks: &[Rank<'_>], target: &Target) -> (Vec<Vec<u32>>, bool) {
    let (numbers, count) = numbers(ranks);
    if count < 2 {
        return (vec![Vec::new(); ranks.len()], false);
    }
    let is_given = target.ranks.is_given() || target.pin != Pin::Spread;
    let by_binding = if is_given { None } else { by_binding(ranks, target) };
    let by_number = || numbers.iter().map(|number| by_number(*number, count, target)).collect();
    let is_by_binding = by_binding.is_some();
    (by_binding.unwrap_or_else(by_number), is_by_binding)
}

/// The number of each rank among those of its host, and how many there are: those that are missing in the profile keep their places.
fn numbers(ranks: &[Rank<'_>]) -> (Vec<usize>, usize) {
    let known: Option<Vec<usize>> = ranks.iter().map(|rank| usize::try_from(rank.place.local_rank?).ok()).collect();
    let is_distinct = |numbers: &Vec<usize>| numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len();
    let numbers = known.filter(is_distinct).unwrap_or_else(|| (0..ranks.len()).collect());
    let size = ranks.iter().filter_map(|rank| usize::try_from(rank.place.local_size?).ok()).max().unwrap_or(0);
    let needed = numbers.iter().max().map_or(0, |last| last + 1);
    (numbers, size.clamp(needed, needed.max(MOST_RANKS)))
}

/// A damaged profile may say anything about the number of ranks of a host.
const MOST_RANKS: usize = 1 << 16;

fn by_number(number: usize, count: usize, target: &Target) -> Vec<u32> {
    let places = target.places();
    let on = |place: usize| vec![target.cpu_node(place % places)];
    let is_cyclic = target.ranks.distribution == Some(Distribution::Cyclic);
    match target.ranks.per_node {
        Some(each) if is_cyclic => on(number % count.div_ceil(each.max(1)).min(places)),
        Some(each) => on(number / each.max(1)),
        None if is_cyclic => on(number),
        None if count < places && matches!(target.pin, Pin::Spread) => {
            (number * places / count..(number + 1) * places / count).map(|place| target.cpu_node(place)).collect()
        }
        None => vec![target.seat(number, count)],
    }
}

/// The nodes with the same part of the machine's CPUs as those that ranks were bound to; `None` if the binding does not tell the ranks apart.
fn by_binding(ranks: &[Rank<'_>], target: &Target) -> Option<Vec<Vec<u32>>> {
    let nodes: Vec<Vec<u32>> = ranks.iter().map(|rank| bound_nodes(rank, target)).collect::<Option<_>>()?;
    let allowed = |rank: &Rank<'_>| rank.place.bound_cpus.as_deref().and_then(cpu_list::parse).unwrap_or_default();
    let is_whole = |rank: &Rank<'_>| rank.cpus.iter().all(|cpu| allowed(rank).contains(cpu));
    let is_alike = ranks.iter().all(|rank| rank.place.bound_cpus == ranks[0].place.bound_cpus);
    (!is_alike && !ranks.iter().any(is_whole)).then_some(nodes)
}

fn bound_nodes(rank: &Rank<'_>, target: &Target) -> Option<Vec<u32>> {
    let bound = cpu_list::parse(rank.place.bound_cpus.as_deref()?)?;
    let position = |cpu: &u32| rank.cpus.binary_search(cpu).ok();
    let places = |at: usize| {
        let first = at * target.places() / rank.cpus.len();
        first..((at + 1) * target.places() / rank.cpus.len()).max(first + 1)
    };
    let nodes: BTreeSet<usize> = bound.iter().filter_map(position).flat_map(places).collect();
    (!nodes.is_empty()).then(|| nodes.into_iter().map(|place| target.cpu_node(place)).collect())
}
