//! Whether loops divide an object differently. Of samples of all loops together, a rule of parts may seem to hold that no loop has: where two loops
//! go through an array from both ends, the samples of both are mixed, and each neighbourhood has an owner by chance.

use crate::evidence::Hit;
use crate::partition::{MIN_UNITS, Partition, Unit, in_blocks};
use crate::threads::Threads;
use firsttouch_model::rows::{Id, Profile};
use std::collections::BTreeMap;

/// A line counts from this part of the samples.
const LEAST_PART: f64 = 0.2;
/// Other lines divide it as one line does if the owners by that line make at least this part of their accesses.
const AGREES: f64 = 0.75;

/// The line of a loop, or the address of its instruction where no line is known. The stacks of the first thread and of the others differ.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Line<'p> {
    Source(&'p str, u32),
    Code(Option<&'p str>, Option<u64>),
}

impl<'p> Line<'p> {
    fn of(profile: &'p Profile, site: Option<Id>) -> Self {
        let frame = site.and_then(|site| profile.sites.get(&site)).and_then(|site| site.frames.first());
        match frame.and_then(|frame| frame.file.as_deref().zip(frame.line)) {
            Some((file, line)) => Self::Source(file, line),
            None => Self::Code(frame.and_then(|frame| frame.module.as_deref()), frame.and_then(|frame| frame.offset)),
        }
    }
}

/// The blocks of the threads, if these samples show some.
pub fn blocks<'h>(threads: &Threads, hits: impl Iterator<Item = &'h Hit>) -> Option<Partition> {
    let unit = |hit: &Hit| {
        let [by] = &hit.by_thread[..] else { return None };
        let worker = threads.list[by.thread].worker;
        Some(Unit {
            position: hit.position,
            shares: vec![(worker, 1.0)],
            counts: vec![(worker, 1)],
            rate: hit.rate(),
            cut: false,
            round: hit.round,
            running: Vec::new(),
        })
    };
    in_blocks(&hits.filter_map(unit).collect::<Vec<_>>())
}

/// Whether one line gives each thread a block, and the others divide the same range differently.
pub fn are_apart(profile: &Profile, threads: &Threads, hits: &[Hit]) -> bool {
    let mut by_line: BTreeMap<Line<'_>, Vec<&Hit>> = BTreeMap::new();
    for hit in hits {
        if let [(site, _)] = hit.sites[..] {
            by_line.entry(Line::of(profile, site)).or_default().push(hit);
        }
    }
    let least = (LEAST_PART * hits.len() as f64).max(MIN_UNITS as f64);
    by_line.iter().filter(|(_, own)| own.len() as f64 >= least).any(|(line, own)| {
        let Some(partition) = blocks(threads, own.iter().copied()) else { return false };
        let (first, last) = own.iter().fold((u64::MAX, 0), |(first, last), hit| (first.min(hit.position), last.max(hit.position)));
        let is_here = |hit: &&&Hit| (first..=last).contains(&hit.position);
        let others = by_line.iter().filter(|(other, _)| *other != line).flat_map(|(_, hits)| hits).filter(is_here);
        let (mut all, mut same) = (0_usize, 0_usize);
        for (position, worker) in others.flat_map(|hit| hit.by_thread.iter().map(|by| (hit.position, threads.list[by.thread].worker))) {
            all += 1;
            same += usize::from(partition.owner(position) == Some(worker));
        }
        all as f64 >= least && (same as f64) < AGREES * all as f64
    })
}
