//! Which pages of an object move, or why they stay.

use crate::segments::{Segment, Target};
use crate::uses::{ObjectUses, Use};
use crate::worth::{Distances, Rate, earns, expected_s};
use firsttouch_placement::move_pages::{Rule, Span};
use std::collections::BTreeMap;

/// Misplaced accesses to a part: with fewer, or a smaller part of them, its pages stay. Borders between parts are known up to the next access only.
const LEAST_MISPLACED: f64 = 4.0;
const LEAST_SHARE: f64 = 0.05;
/// More of a shared part's accesses than this must go to nodes that have too many of them.
const LEAST_EXCESS: f64 = 0.15;
/// A shared part has so many accesses in each half of its time, and this part of them by others than the node that makes most.
const LEAST_IN_HALF: usize = 8;
const LEAST_MIXED: f64 = 0.15;
/// More accesses than this by threads that were on another node than usual: the nodes of threads say nothing about the future.
const WANDERING: f64 = 0.1;
/// A way of use that is younger may be the end of another one.
const LEAST_AGE_S: f64 = 0.5;

/// Pages of one object that go to one place, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub object: i64,
    pub target: Target,
    pub spans: Vec<Span>,
    /// The node that most of them are on.
    pub from: Option<u32>,
    /// Bytes to move, estimated from the accesses.
    pub bytes: f64,
    /// CPU seconds a second that threads no longer wait.
    pub gain_rate: f64,
    /// How long the present way of use is expected to last.
    pub expected_s: f64,
    pub cost_s: f64,
    /// When it was decided, seconds after tuning began; set by the tuner.
    pub decided_s: f64,
}

/// Why an object stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    InPlace,
    TooFew {
        seen: usize,
    },
    Exempt(String),
    HomesUnknown,
    /// Its present use is too new.
    Young,
    NotWorth {
        gain_s: f64,
        cost_s: f64,
    },
    /// Its users change nodes: this part of its accesses.
    ThreadsMove {
        share: f64,
    },
    /// So many tries left pages where they were.
    CannotMove {
        tries: u32,
    },
}

/// What a decision is made with, besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    pub distances: &'a Distances,
    pub rate: &'a Rate,
    /// How long the present way has been seen, in the window and in all.
    pub seen_s: f64,
    pub age_s: f64,
    pub usual_s: Option<f64>,
    pub undone: u32,
    /// The part of its accesses, also of earlier ways of use, by threads that were on another node than usual.
    pub wandering: f64,
}

/// The part of the accesses that came from threads which were on another node than usual. `usual`: the usual node of each thread.
#[must_use]
pub fn wandering(uses: &[Use], usual: &BTreeMap<i64, u32>) -> f64 {
    let away = uses.iter().filter(|one| usual.get(&one.thread).is_some_and(|node| *node != one.node)).count();
    if uses.is_empty() { 0.0 } else { away as f64 / uses.len() as f64 }
}

/// The node on which each thread made most accesses.
#[must_use]
pub fn usual_nodes<'a>(uses: impl Iterator<Item = &'a Use>) -> BTreeMap<i64, u32> {
    let mut counts: BTreeMap<i64, BTreeMap<u32, usize>> = BTreeMap::new();
    uses.for_each(|one| *counts.entry(one.thread).or_default().entry(one.node).or_default() += 1);
    let most = |counts: BTreeMap<u32, usize>| {
        counts.into_iter().max_by_key(|(node, count)| (*count, std::cmp::Reverse(*node))).map(|(node, _)| node)
    };
    counts.into_iter().filter_map(|(thread, counts)| Some((thread, most(counts)?))).collect()
}

/// The moves of an object. `parts`: of its accesses, which are sorted by address.
///
/// # Errors
/// Why it stays.
pub fn decide(object: &ObjectUses, parts: &[Segment], given: &Circumstances<'_>) -> Result<Vec<Decision>, Held> {
    if let Some(why) = &object.exempt {
        return Err(Held::Exempt(why.clone()));
    }
    if parts.is_empty() {
        return Err(Held::TooFew { seen: object.uses.len() });
    }
    if object.uses.iter().all(|one| one.home.is_none()) {
        return Err(Held::HomesUnknown);
    }
    let mut decisions: Vec<Decision> = Vec::new();
    for part in parts {
        let uses = &object.uses[part.uses.clone()];
        let Some(found) = misplaced(object, part, uses, given) else { continue };
        match decisions.iter_mut().find(|one| one.target == found.target) {
            Some(one) => {
                one.spans.extend(found.spans);
                one.bytes += found.bytes;
                one.gain_rate += found.gain_rate;
                one.cost_s += found.cost_s;
            }
            None => decisions.push(found),
        }
    }
    if decisions.is_empty() {
        return Err(Held::InPlace);
    }
    let share = given.wandering;
    if share > WANDERING {
        return Err(Held::ThreadsMove { share });
    }
    if given.age_s < LEAST_AGE_S {
        return Err(Held::Young);
    }
    let worth: Vec<Decision> =
        decisions.iter().filter(|one| earns(one.gain_rate, one.expected_s, one.cost_s, given.undone)).cloned().collect();
    if worth.is_empty() {
        let gain_s = decisions.iter().map(|one| one.gain_rate * one.expected_s).sum();
        return Err(Held::NotWorth { gain_s, cost_s: decisions.iter().map(|one| one.cost_s).sum() });
    }
    Ok(worth)
}

/// The move of one part, if enough of its accesses show that its pages are on a wrong node.
fn misplaced(object: &ObjectUses, part: &Segment, uses: &[Use], given: &Circumstances<'_>) -> Option<Decision> {
    let known: Vec<(&Use, u32)> = uses.iter().filter_map(|one| Some((one, one.home?))).collect();
    let mut on: BTreeMap<u32, usize> = BTreeMap::new();
    known.iter().for_each(|(_, home)| *on.entry(*home).or_default() += 1);
    let from = on.iter().filter(|(node, _)| part.target != Target::Node(**node)).max_by_key(|(_, count)| **count).map(|(node, _)| *node);
    let count = known.len().max(1) as f64;
    let saved = |one: &Use, home: u32| one.cpu_ns * given.distances.saved(one.node, home);
    let (moving, saved_ns, rule) = match &part.target {
        Target::Node(node) => {
            // Those of the node's own threads become local; those of others that are local now do not stay so.
            let gains = known.iter().filter(|(one, home)| one.node == *node && home != node);
            let losses = known.iter().filter(|(one, home)| one.node != *node && *home == one.node);
            let wrong = gains.clone().count() as f64 - losses.clone().count() as f64;
            if wrong < LEAST_MISPLACED || wrong / count < LEAST_SHARE {
                return None;
            }
            let net: f64 = gains.map(|(one, home)| saved(one, *home)).sum::<f64>() - losses.map(|(one, _)| saved(one, *node)).sum::<f64>();
            let elsewhere = known.iter().filter(|(_, home)| home != node).count() as f64;
            (elsewhere / count, net, Rule::To(vec![*node]))
        }
        Target::Several(nodes) if nodes.len() > 1 => {
            // No placement makes all of these accesses local. Spread, they use the bandwidth of all nodes: what is above an even share waits for
            // one. Accesses that are local now, more than an even share, do not stay so.
            let even = 1.0 / nodes.len() as f64;
            let share = |node: &u32| on.get(node).copied().unwrap_or(0) as f64 / count;
            let above: f64 = on.keys().map(|node| if nodes.contains(node) { (share(node) - even).max(0.0) } else { share(node) }).sum();
            let local = known.iter().filter(|(one, home)| one.node == *home).count() as f64 / count;
            let net = above - (local - even).max(0.0);
            if net < LEAST_EXCESS || net * count < LEAST_MISPLACED || !is_shared_all_the_time(uses) {
                return None;
            }
            let all: f64 = known.iter().map(|(one, _)| one.cpu_ns).sum();
            (above, net * all * given.distances.saved(*nodes.first()?, *nodes.get(1)?), Rule::Interleave(nodes.clone()))
        }
        Target::Several(_) => return None,
    };
    let bytes = moving * (part.sure.end - part.sure.start) as f64;
    Some(Decision {
        object: object.id,
        target: part.target.clone(),
        spans: vec![span(object, part, rule)],
        from,
        bytes,
        gain_rate: saved_ns / 1e9 / given.seen_s.max(0.1),
        expected_s: expected_s(given.age_s, given.usual_s, given.undone),
        cost_s: given.rate.cost_s(bytes),
        decided_s: 0.0,
    })
}

/// Whether threads of several nodes use a part in the earlier and in the later half of its accesses. Else one node used it before, and another one does now:
/// the program changed its partition, or has just initialised its memory.
fn is_shared_all_the_time(uses: &[Use]) -> bool {
    let mut by_time: Vec<&Use> = uses.iter().collect();
    by_time.sort_by_key(|one| one.time_ns);
    let is_mixed = |half: &[&Use]| {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        half.iter().for_each(|one| *counts.entry(one.node).or_default() += 1);
        let most = counts.into_values().max().unwrap_or(0);
        (half.len() - most) as f64 >= LEAST_MIXED * half.len() as f64
    };
    let (earlier, later) = by_time.split_at(by_time.len() / 2);
    earlier.len() >= LEAST_IN_HALF && is_mixed(earlier) && is_mixed(later)
}

/// Pages of the kernel's base size; those of a huge page have one target.
fn span(object: &ObjectUses, part: &Segment, rule: Rule) -> Span {
    const PAGE: u64 = 4096;
    Span { start: part.sure.start, end: part.sure.end, page_bytes: PAGE, grain_bytes: object.grain_bytes.max(PAGE), present: None, rule }
}
