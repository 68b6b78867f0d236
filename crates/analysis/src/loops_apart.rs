//! Whether loops divide an object differently. Of samples of all loops together, a rule of parts may seem to hold that no loop has: where two loops
//! go through an array from both ends, the samples of both are mixed, and each neighbourhood has an owner by chance.

use crate::evidence::Hit;
use crate::groups::Group;
use crate::partition::{MIN_UNITS, Partition, PartitionKind, Sample, Sight, Unit, classify};
use crate::threads::Threads;
use firsttouch_model::rows::Id;
use std::collections::BTreeMap;

/// A loop counts from this part of the samples.
const LEAST_PART: f64 = 0.2;
/// Other loops divide it as one loop does if the owners by that loop make at least this part of their accesses.
const AGREES: f64 = 0.75;

/// The blocks of the threads, if these samples show some.
pub fn blocks<'h>(threads: &Threads, group: &Group, hits: impl Iterator<Item = &'h Hit>) -> Option<Partition> {
    let mut weights: BTreeMap<usize, f64> = BTreeMap::new();
    let mut units = Vec::new();
    for hit in hits {
        let [by] = &hit.by_thread[..] else { continue };
        let worker = threads.list[by.thread].worker;
        *weights.entry(worker).or_default() += 1.0;
        units.push(Unit {
            position: hit.position,
            shares: vec![(worker, 1.0)],
            counts: vec![(worker, 1)],
            rate: hit.rate(),
            cut: false,
            round: hit.round,
            running: Vec::new(),
        });
    }
    let (stride, rows) = (group.stride, group.rows);
    let partition = classify(&Sample { units, weights, stride, rows, cpus: usize::MAX, sight: Sight::Only });
    (partition.kind == PartitionKind::Block).then_some(partition)
}

/// Whether one loop gives each thread a block, and the others divide the same range differently.
pub fn are_apart(threads: &Threads, group: &Group, hits: &[Hit]) -> bool {
    if group.processes() > 1 {
        return false;
    }
    let mut by_site: BTreeMap<Option<Id>, Vec<&Hit>> = BTreeMap::new();
    for hit in hits {
        if let [(site, _)] = hit.sites[..] {
            by_site.entry(site).or_default().push(hit);
        }
    }
    let least = (LEAST_PART * hits.len() as f64).max(MIN_UNITS as f64);
    by_site.iter().filter(|(_, own)| own.len() as f64 >= least).any(|(site, own)| {
        let Some(partition) = blocks(threads, group, own.iter().copied()) else { return false };
        let (first, last) = own.iter().fold((u64::MAX, 0), |(first, last), hit| (first.min(hit.position), last.max(hit.position)));
        let is_here = |hit: &&&Hit| (first..=last).contains(&hit.position);
        let others = by_site.iter().filter(|(other, _)| other != &site).flat_map(|(_, hits)| hits).filter(is_here);
        let (mut all, mut same) = (0.0, 0.0);
        for by in others.flat_map(|hit| hit.by_thread.iter().map(move |by| (hit.position, threads.list[by.thread].worker))) {
            all += 1.0;
            same += f64::from(u8::from(partition.owner(by.0) == Some(by.1)));
        }
        all >= least && same < AGREES * all
    })
}
