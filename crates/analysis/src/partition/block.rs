//! Block partitions: one contiguous run per worker, in any order of workers, of any sizes.
//!
//! Workers are ordered by the middle of the shortest stretch that holds half of their units. (Units scattered over the whole range would
//! move a median.) Dynamic programming then finds the borders that explain the most:
//! accuracy = (sum over units of the share of the worker assigned to it) / units. Workers with one unit explain themselves and are left
//! out. Rule: at least 12 units remain, accuracy >= 0.80 + 0.25 / sqrt(units), and the blocks explain at least half of the units that "all
//! by the most frequent worker" leaves unexplained. So errors at block borders (halos, pages that two blocks share, a border between two
//! samples) cost little, and a second pass by another thread may make up to a fifth of the accesses.
//! With more workers than a third of the units, a rank correlation of worker and position of at least 0.9 also counts.

use super::{Chance, MIN_UNITS, Unit};
use std::collections::BTreeMap;

/// The number of workers considered: the most frequent ones.
const MAX_LANES: usize = 256;

/// The first position and the worker of each block. `units` are sorted by position.
pub(super) fn blocks(units: &[&Unit], chance: &Chance) -> Option<Vec<(u64, usize)>> {
    let mut of_worker: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, unit) in units.iter().enumerate() {
        of_worker.entry(unit.main_worker()).or_default().push(i);
    }
    if of_worker.len() < 2 {
        return None;
    }
    if of_worker.len() * 3 > units.len() && rank_correlation(units).abs() >= 0.9 {
        return Some(units.iter().map(|u| (u.position, u.main_worker())).collect());
    }
    of_worker.retain(|_, list| list.len() >= 2);
    let mut workers: Vec<(usize, usize, usize)> = of_worker.iter().map(|(&worker, list)| (densest(list), worker, list.len())).collect();
    workers.sort_by_key(|&(_, _, count)| std::cmp::Reverse(count));
    workers.truncate(MAX_LANES);
    workers.sort_unstable();
    let order: Vec<usize> = workers.iter().map(|l| l.1).collect();
    let rank: BTreeMap<usize, usize> = order.iter().enumerate().map(|(rank, &worker)| (worker, rank)).collect();
    let kept: Vec<&Unit> = units.iter().copied().filter(|u| rank.contains_key(&u.main_worker())).collect();
    if kept.len() < 12.max(MIN_UNITS * 3 / 4) || order.len() < 2 {
        return None;
    }
    let (score, assigned) = best_borders(&kept, &rank, order.len());
    let n = kept.len() as f64;
    let accuracy = score / n;
    let beats = (accuracy - chance.most) / (1.0 - chance.most).max(1e-9);
    if accuracy < 0.80 + 0.25 / n.sqrt() || beats < 0.5 {
        return None;
    }
    let mut blocks: Vec<(u64, usize)> = Vec::new();
    let mut last_end = 0;
    for (unit, rank) in kept.iter().zip(assigned) {
        if blocks.last().is_none_or(|b| b.1 != order[rank]) {
            // The border lies between two units: assume the middle.
            let start = if blocks.is_empty() { 0 } else { last_end + (unit.position - last_end) / 2 };
            blocks.push((start, order[rank]));
        }
        last_end = unit.position;
    }
    Some(blocks)
}

/// Twice the middle (so that it is a whole number) of the shortest stretch that holds half of `list`, which is sorted.
fn densest(list: &[usize]) -> usize {
    let half = list.len() / 2 + 1;
    list.windows(half.min(list.len())).map(|w| (w[w.len() - 1] - w[0], w[0] + w[w.len() - 1])).min().map_or(0, |(_, middle)| middle)
}

/// Assigns units to workers so that the sum of shares is largest; along the units, the rank of the worker never decreases.
fn best_borders(units: &[&Unit], rank: &BTreeMap<usize, usize>, workers: usize) -> (f64, Vec<usize>) {
    let mut best = vec![0.0f64; workers];
    let mut from: Vec<Vec<u16>> = Vec::with_capacity(units.len());
    for unit in units {
        let mut came = vec![0u16; workers];
        let mut leader = 0;
        let mut next = vec![0.0; workers];
        for worker in 0..workers {
            if best[worker] > best[leader] {
                leader = worker;
            }
            next[worker] = best[leader];
            came[worker] = u16::try_from(leader).unwrap_or(0);
        }
        for (worker, share) in &unit.shares {
            if let Some(&r) = rank.get(worker) {
                next[r] += share;
            }
        }
        best = next;
        from.push(came);
    }
    let mut worker = (0..workers).max_by(|&a, &b| best[a].total_cmp(&best[b]).then(b.cmp(&a))).unwrap_or(0);
    let score = best.get(worker).copied().unwrap_or(0.0);
    let mut assigned = vec![0; units.len()];
    for (i, came) in from.iter().enumerate().rev() {
        assigned[i] = worker;
        worker = came[worker] as usize;
    }
    (score, assigned)
}

/// Spearman's rank correlation of worker and position; ties have their mean rank. `units` are sorted by position.
fn rank_correlation(units: &[&Unit]) -> f64 {
    let n = units.len() as f64;
    let mut by_worker: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, unit) in units.iter().enumerate() {
        by_worker.entry(unit.main_worker()).or_default().push(i);
    }
    let middle = (n - 1.0) / 2.0;
    let (mut below, mut product, mut worker_square) = (0.0, 0.0, 0.0);
    for list in by_worker.values() {
        let count = list.len() as f64;
        let worker_rank = below + (count - 1.0) / 2.0 - middle;
        below += count;
        worker_square += count * worker_rank * worker_rank;
        product += list.iter().map(|&i| (i as f64 - middle) * worker_rank).sum::<f64>();
    }
    let position_square = (n * n * n - n) / 12.0;
    if worker_square > 0.0 && position_square > 0.0 { product / (worker_square * position_square).sqrt() } else { 0.0 }
}
