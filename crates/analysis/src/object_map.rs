//! The map of an object: the main user and the node of each piece of its address range.

use crate::ObjectMap;
use crate::evidence::Hit;
use crate::groups::Group;
use crate::homes::Home;
use crate::threads::Threads;
use std::collections::BTreeMap;

/// The largest number of pieces. A piece is at least a page.
const PIECES: u64 = 32;
/// A piece belongs to a thread or node with at least this share of it.
const MAJORITY: f64 = 0.6;
const SEVERAL: i64 = -1;
const UNKNOWN: i64 = -2;

/// A piece's user is the thread with the majority of its sampled accesses. Its home is the node of the majority of these accesses;
/// without any, the node of its middle by first touches (`node_at`).
#[must_use]
pub fn object_map(group: &Group, hits: &[Hit], threads: &Threads, node_at: impl Fn(u64) -> Option<u32>) -> ObjectMap {
    let extent = group.extent();
    let pieces = (extent / 4096).clamp(1, PIECES);
    let piece = (extent / pieces).max(1);
    let place = |position: u64| usize::try_from((position / piece).min(pieces - 1)).unwrap_or(0);
    let mut users: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); pieces as usize];
    let mut homes: Vec<BTreeMap<u32, f64>> = vec![BTreeMap::new(); pieces as usize];
    for hit in hits {
        let at = place(hit.position);
        let rate = hit.rate().max(f64::MIN_POSITIVE);
        for by in &hit.by_thread {
            // Each sample has the same weight, whatever its rate: the map shows which threads use a piece, not how much.
            *users[at].entry(by.thread).or_default() += by.rate / rate;
        }
        if let Home::Known { node, .. } = hit.home {
            *homes[at].entry(node).or_default() += 1.0;
        }
    }
    ObjectMap {
        users: users.iter().map(|votes| by_worker(votes, threads)).collect(),
        homes: (0..pieces)
            .map(|i| match majority(&homes[i as usize]) {
                Some(Some(node)) => i64::from(node),
                Some(None) => SEVERAL,
                None => node_at(i.saturating_mul(piece).saturating_add(piece / 2)).map_or(UNKNOWN, i64::from),
            })
            .collect(),
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
