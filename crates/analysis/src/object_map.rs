//! The map of an object: the main user and the node of each piece of its address range.

use crate::ObjectMap;
use crate::estimator::Design;
use crate::evidence::Hit;
use crate::groups::Group;
use crate::homes::{GOLDEN, Home};
use crate::threads::Threads;
use std::collections::BTreeMap;

/// The largest number of pieces. A piece is at least a page.
const PIECES: u64 = 32;
/// A piece belongs to a thread with at least this share of its accesses, or to a node with this share of its memory.
const MAJORITY: f64 = 0.7;
const SEVERAL: i64 = -1;
const UNKNOWN: i64 = -2;

/// The places of a piece whose nodes are asked for.
const PLACES: usize = 32;
/// The same of a group, times its objects: each question goes through them.
const MOST_ASKED: usize = 4096;

/// A piece's user is the thread with the majority of the accesses that its samples stand for. Its home is the node of the majority of its places by first
/// touches (`node_at`), where they say that; else that of the samples. Where first touch does not place memory (`by_touch` is false: real nodes, or a policy
/// that interleaves), the samples are asked first.
#[must_use]
pub fn object_map(
    group: &Group,
    hits: &[Hit],
    threads: &Threads,
    design: &Design,
    by_touch: bool,
    node_at: impl Fn(u64) -> Option<u32>,
) -> ObjectMap {
    let extent = group.extent();
    let pieces = (extent / 4096).clamp(1, PIECES);
    let piece = (extent / pieces).max(1);
    let place = |position: u64| usize::try_from((position / piece).min(pieces - 1)).unwrap_or(0);
    let mut users: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); pieces as usize];
    let mut homes: Vec<BTreeMap<u32, f64>> = vec![BTreeMap::new(); pieces as usize];
    for hit in hits {
        let at = place(hit.position);
        let weight = design.weight(hit.draw);
        for by in &hit.by_thread {
            *users[at].entry(by.thread).or_default() += (by.rate * weight).max(f64::MIN_POSITIVE);
        }
        if let Home::Known { node, .. } = hit.home {
            *homes[at].entry(node).or_default() += 1.0;
        }
    }
    let asked = (MOST_ASKED / group.members.len().max(1)).clamp(1, PLACES) as u64;
    let by_touches = |i: u64| {
        let mut nodes: BTreeMap<u32, f64> = BTreeMap::new();
        for part in 1..=asked.min(piece / 4096 + 1) {
            let within = (u128::from(part.wrapping_mul(GOLDEN)) * u128::from(piece)) >> 64;
            if let Some(node) = node_at(i.saturating_mul(piece).saturating_add(within as u64)) {
                *nodes.entry(node).or_default() += 1.0;
            }
        }
        majority(&nodes)
    };
    let by_samples = |i: u64| majority(&homes[i as usize]);
    let home = |i: u64| if by_touch { by_touches(i).or_else(|| by_samples(i)) } else { by_samples(i).or_else(|| by_touches(i)) };
    ObjectMap {
        users: users.iter().map(|votes| by_worker(votes, threads)).collect(),
        homes: (0..pieces).map(|i| home(i).map_or(UNKNOWN, |node| node.map_or(SEVERAL, i64::from))).collect(),
    }
}

/// A thread of the worker that has the majority; -1 or -2 as in `ObjectMap::users`.
fn by_worker(votes: &BTreeMap<usize, f64>, threads: &Threads) -> i64 {
    let mut workers: BTreeMap<usize, f64> = BTreeMap::new();
    for (&thread, vote) in votes {
        *workers.entry(threads.list[thread].worker).or_default() += vote;
    }
    match majority(&workers) {
        None => UNKNOWN,
        Some(None) => SEVERAL,
        Some(Some(worker)) => {
            let own = votes.iter().filter(|(thread, _)| threads.list[**thread].worker == worker);
            own.max_by(|a, b| a.1.total_cmp(b.1)).map_or(UNKNOWN, |(&thread, _)| i64::try_from(thread).unwrap_or(UNKNOWN))
        }
    }
}

/// `None` without votes; `Some(None)` without a majority.
fn majority<K: Copy + Ord>(votes: &BTreeMap<K, f64>) -> Option<Option<K>> {
    let total: f64 = votes.values().sum();
    let most = votes.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    Some((*most.1 >= MAJORITY * total).then_some(*most.0))
}
