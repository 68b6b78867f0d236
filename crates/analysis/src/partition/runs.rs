//! Several runs per worker: plain blocks in each of a few arrays that lie side by side in one object.
//!
//! If one of two arrays gets most of the accesses, one run per worker explains the units well enough for the rule of blocks (`block.rs`): of two threads
//! in halves of two arrays, the first one with twice the accesses, 5 of 6. But its errors then lie together. So the borders are looked for
//! again without the condition that a worker has one run, at a price for each border. The price follows from chance: if a fifth of a block's units are by
//! others, somewhere in the block a stretch has k more units by others than by the owner with a probability of n / 4^k. The two borders of a run cost
//! together the k for which that probability is one in a thousand.

use super::{Chance, MOST_TURNS, UNITS_A_PART, Unit};
use std::collections::BTreeSet;

/// The units of which runs must explain this part.
const LEAST: f64 = 0.95;
/// The probability that chance alone adds a run.
const CHANCE: f64 = 0.001;
/// The number of workers considered; more are not compared.
const MOST_WORKERS: usize = 256;

/// The runs (first position and worker) if they explain nearly all units, and leave less than half of those unexplained that `blocks` do (which may be
/// empty). `units` are sorted by position.
pub(super) fn runs(units: &[&Unit], chance: &Chance, blocks: &[(u64, usize)]) -> Option<Vec<(u64, usize)>> {
    let workers: Vec<usize> = chance.shares.keys().copied().collect();
    if workers.len() > MOST_WORKERS {
        return None;
    }
    let assigned = borders(units, &workers);
    let explained: f64 = units.iter().zip(&assigned).map(|(unit, worker)| unit.share(*worker)).sum();
    let owner = |position: u64| blocks[..blocks.partition_point(|block| block.0 <= position)].last().map(|block| block.1);
    let by_blocks: f64 = units.iter().filter_map(|unit| Some(unit.share(owner(unit.position)?))).sum();
    let n = units.len() as f64;
    if explained < LEAST * n || 2.0 * (n - explained) > n - by_blocks {
        return None;
    }
    let mut found: Vec<(u64, usize)> = Vec::new();
    let mut last_end = 0;
    for (unit, worker) in units.iter().zip(assigned) {
        if found.last().is_none_or(|run| run.1 != worker) {
            let start = if found.is_empty() { 0 } else { last_end + (unit.position - last_end) / 2 };
            found.push((start, worker));
        }
        last_end = unit.position;
    }
    let owners = found.iter().map(|run| run.1).collect::<BTreeSet<_>>().len();
    // One worker with a second run, beside others with one block each, leaves them blocks.
    let is_of_arrays = 2 * found.len() >= 3 * owners && found.len() <= MOST_TURNS * owners;
    let fits = is_of_arrays && units.len() >= UNITS_A_PART * found.len();
    fits.then_some(found)
}

/// The worker of each unit, so that the sum of shares less the price of the borders is largest.
fn borders(units: &[&Unit], workers: &[usize]) -> Vec<usize> {
    let price = (units.len().max(1) as f64 / CHANCE).ln() / 4.0_f64.ln() / 2.0;
    let mut best = vec![0.0_f64; workers.len()];
    let mut from: Vec<Vec<u16>> = Vec::with_capacity(units.len());
    for unit in units {
        let leader = (0..workers.len()).max_by(|&a, &b| best[a].total_cmp(&best[b]).then(b.cmp(&a))).unwrap_or(0);
        let mut came = vec![0_u16; workers.len()];
        let mut next = vec![0.0; workers.len()];
        for (at, &worker) in workers.iter().enumerate() {
            let before = if best[leader] - price > best[at] { leader } else { at };
            came[at] = u16::try_from(before).unwrap_or(0);
            next[at] = best[at].max(best[leader] - price) + unit.share(worker);
        }
        best = next;
        from.push(came);
    }
    let mut at = (0..workers.len()).max_by(|&a, &b| best[a].total_cmp(&best[b]).then(b.cmp(&a))).unwrap_or(0);
    let mut assigned = vec![0; units.len()];
    for (unit, came) in assigned.iter_mut().zip(&from).rev() {
        *unit = workers.get(at).copied().unwrap_or(0);
        at = came.get(at).map_or(0, |before| usize::from(*before));
    }
    assigned
}
