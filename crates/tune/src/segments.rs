//! Which part of an object is used from which node: the most likely sequence of states along its addresses.
//!
//! Each state, a node or "several nodes", gives the sampled accesses in its part a likelihood: a node's own threads make all of them but a few
//! strays, "several" makes them in the proportions of the whole object. A change of state costs as much as the evidence that chance alone
//! could give (Bayesian information criterion: ln n for a border). The Viterbi algorithm finds the best sequence in O(accesses x nodes), whatever the
//! partition is: one part, blocks, blocks in turn, several arrays in one mapping.

use crate::uses::{ObjectUses, Use};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The part of a node's accesses that may come from other nodes: halos of a stencil, a thread that was elsewhere for a moment.
const STRAY: f64 = 0.04;
/// A border costs this many times ln n.
const BORDER: f64 = 1.0;
/// A distance between the accesses of two parts that is more than this part of one of them is too far to guess the border in it: further accesses will
/// show it.
const FAR: f64 = 0.05;
/// With fewer accesses, nothing is known.
const LEAST_USES: usize = 8;

/// Where a part should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Node(u32),
    /// Used from these nodes, ascending.
    Several(Vec<u32>),
}

/// A part of an object, [`start`, `end`), in whole units of moving.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub start: u64,
    pub end: u64,
    /// What of it surely belongs to it: where the nearest access of the next part is far away, only up to its own last one.
    pub sure: Range<u64>,
    pub target: Target,
    /// The accesses in it, by index in the sorted list.
    pub uses: Range<usize>,
}

/// The parts of an object. Sorts its accesses by address. Empty if they are too few.
#[must_use]
pub fn segments(object: &mut ObjectUses) -> Vec<Segment> {
    object.uses.sort_by_key(|one| (one.address, one.time_ns));
    if object.uses.len() < LEAST_USES {
        return Vec::new();
    }
    let nodes: Vec<u32> = counted(&object.uses).into_keys().collect();
    let states = if nodes.len() == 1 { vec![0; object.uses.len()] } else { likeliest(object, &nodes) };
    let mut found: Vec<Segment> = Vec::new();
    let mut first = 0;
    // What lies in one unit of moving moves together.
    let reach = longest_gap(object.bytes, samples(&object.uses)).max(object.grain_bytes);
    for part in states.chunk_by(|a, b| a == b) {
        // Memory between accesses that are far apart is in no part.
        for near in object.uses[first..first + part.len()].chunk_by(|one, next| next.address - one.address <= reach) {
            let uses = first..first + near.len();
            first = uses.end;
            let target = match part.first().and_then(|state| nodes.get(*state)) {
                Some(node) => Target::Node(*node),
                None => several(&object.uses[uses.clone()]),
            };
            found.push(Segment { start: 0, end: 0, sure: 0..0, target, uses });
        }
    }
    set_borders(object, &mut found);
    found
}

/// The number of samples that show these accesses. One sample shows several of them, which lie side by side where a loop is unrolled.
fn samples(uses: &[Use]) -> usize {
    uses.iter().map(|one| (one.thread, one.time_ns)).collect::<BTreeSet<_>>().len()
}

fn counted(uses: &[Use]) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    uses.iter().for_each(|one| *counts.entry(one.node).or_default() += 1);
    counts
}

/// The nodes that use a part, without strays. Where strays are rarer than [`STRAY`] in the whole object, its proportions explain a part of one node
/// better than that node alone does. Where all of many nodes are as rare as strays, all of them use it.
fn several(uses: &[Use]) -> Target {
    let counts = counted(uses);
    let least = STRAY * uses.len() as f64;
    let nodes: Vec<u32> = counts.iter().filter(|(_, count)| **count as f64 > least).map(|(node, _)| *node).collect();
    match nodes[..] {
        [] => Target::Several(counts.into_keys().collect()),
        [node] => Target::Node(node),
        _ => Target::Several(nodes),
    }
}

/// When one node took a part over from others: the time of its first access, if the accesses before and after it are so much more likely with a
/// border in time than without one (the same criterion as for borders between addresses). A thread that initialises memory for others leaves
/// such a border, and so does a program that divides its work anew.
#[must_use]
pub fn taken_over(uses: &[Use]) -> Option<u64> {
    let mut by_time: Vec<(u64, u32)> = uses.iter().map(|one| (one.time_ns, one.node)).collect();
    by_time.sort_unstable();
    let log = |counts: &BTreeMap<u32, usize>, all: usize| -> f64 {
        counts.values().filter(|count| **count > 0).map(|count| *count as f64 * (*count as f64 / all as f64).ln()).sum()
    };
    let all = by_time.len();
    let (mut before, mut after) = (BTreeMap::new(), counted(uses));
    let as_one = log(&after, all);
    let mut best: Option<(f64, u64)> = None;
    for (index, (time_ns, node)) in by_time.iter().enumerate() {
        let left = all - index;
        if index >= LEAST_USES && left >= LEAST_USES {
            let (owner, own) = after.iter().max_by_key(|(_, count)| **count).map_or((0, 0), |(node, count)| (*node, *count));
            let is_own = own as f64 >= (1.0 - 2.0 * STRAY) * left as f64 && *node == owner;
            let is_others = 2 * before.get(&owner).copied().unwrap_or(0) < index;
            let gain = log(&before, index) + log(&after, left) - as_one - 2.0 * BORDER * (all as f64).ln();
            if is_own && is_others && gain > best.map_or(0.0, |(best, _)| best) {
                best = Some((gain, *time_ns));
            }
        }
        *before.entry(*node).or_default() += 1;
        after.entry(*node).and_modify(|count| *count -= 1);
    }
    best.map(|(_, time_ns)| time_ns)
}

/// The state of each access: the index of a node, or their number for "several". All accesses to one unit of moving have one state.
fn likeliest(object: &ObjectUses, nodes: &[u32]) -> Vec<usize> {
    let (states, all) = (nodes.len() + 1, object.uses.len() as f64);
    let shares: Vec<f64> = counted(&object.uses).values().map(|count| *count as f64 / all).collect();
    let own = (1.0 - STRAY).ln();
    let stray = (STRAY / (nodes.len() - 1) as f64).ln();
    let border = BORDER * all.ln();
    let mut best = vec![0.0; states];
    let mut from: Vec<Vec<usize>> = Vec::new();
    let units: Vec<&[Use]> = object.uses.chunk_by(|a, b| object.grain(a.address) == object.grain(b.address)).collect();
    for unit in &units {
        let (leader, top) = best.iter().copied().enumerate().fold((0, f64::NEG_INFINITY), |top, one| if one.1 > top.1 { one } else { top });
        let mut before = Vec::with_capacity(states);
        for (state, score) in best.iter_mut().enumerate() {
            let changes = top - border > *score;
            before.push(if changes { leader } else { state });
            *score = if changes { top - border } else { *score };
            for one in *unit {
                let place = nodes.binary_search(&one.node).unwrap_or(0);
                *score += if state == nodes.len() {
                    shares[place].ln()
                } else if state == place {
                    own
                } else {
                    stray
                };
            }
        }
        from.push(before);
    }
    let mut state = best.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(state, _)| state);
    let mut path = vec![0; object.uses.len()];
    let mut end = path.len();
    for (unit, before) in units.iter().zip(&from).rev() {
        path[end - unit.len()..end].fill(state);
        end -= unit.len();
        state = before[state];
    }
    path
}

/// The longest gap that chance leaves between samples, spread at random over a length: near ln n / n of it.
fn longest_gap(length: u64, samples: usize) -> u64 {
    let count = samples.max(1) as f64;
    ((length as f64 / count) * (count.ln() + 3.0)) as u64
}

/// A border lies in the middle between the accesses on both sides of it. Memory that is far away from all accesses is in no part.
fn set_borders(object: &ObjectUses, found: &mut [Segment]) {
    let grain = object.grain_bytes.max(1);
    let in_object = longest_gap(object.bytes, samples(&object.uses));
    let (object_start, object_end) =
        (object.start / grain * grain, object.start.saturating_add(object.bytes).div_ceil(grain).saturating_mul(grain));
    let address = |index: usize| object.uses[index].address / grain * grain;
    let middle = |low: u64, high: u64| low + (high - low) / grain / 2 * grain;
    let ranges: Vec<(usize, usize)> = found.iter().map(|one| (one.uses.start, one.uses.end - 1)).collect();
    for (number, segment) in found.iter_mut().enumerate() {
        let (first, last) = (address(ranges[number].0), address(ranges[number].1));
        // An object may be used in a part only (a heap).
        let reach = in_object.min(longest_gap(last - first, samples(&object.uses[segment.uses.clone()])));
        let below = number.checked_sub(1).map_or(object_start, |before| middle(address(ranges[before].1), first) + grain);
        let above = ranges.get(number + 1).map_or(object_end, |after| middle(last, address(after.0)) + grain);
        let (lowest, highest) =
            (first.saturating_sub(reach / grain * grain), last.saturating_add(grain).saturating_add(reach / grain * grain));
        segment.start = below.max(lowest).min(first);
        segment.end = above.min(highest).max(last + grain);
        let is_far = |gap: u64| gap as f64 > FAR * (last + grain - first) as f64;
        // The next part is so near that the border is guessed between the two.
        let gap_below =
            number.checked_sub(1).filter(|_| below > lowest).map_or(0, |before| first.saturating_sub(address(ranges[before].1)));
        let gap_above = ranges.get(number + 1).filter(|_| above < highest).map_or(0, |after| address(after.0).saturating_sub(last));
        let sure_start = if is_far(gap_below) { first } else { segment.start };
        segment.sure = sure_start..if is_far(gap_above) { last + grain } else { segment.end };
    }
}
