//! Hot addresses: the hit limit cuts most windows off, which makes counts equal. What differs is how long it took until the limit was
//! reached.
//!
//! If a worker passes everything, it reaches the limit after the same CPU time at all addresses that are watched at once. If the addresses
//! are dealt out, r hits are r passes or fewer, of which each is by this worker with some probability. The time until the r-th then has a
//! relative variance of l / r or more, l by `dealing.rs`. So has the rate that is estimated from it. On recorded programs (4 threads on 2
//! CPUs, limits of 8 and 12), its relative standard deviation within a round is 0.02 to 0.03 for shared tables; 0.26 and 0.32 for a dynamic
//! schedule, and 0.37 to 0.39 for one over 1.6 MiB.

use super::Unit;
use super::dealing::Dealing;
use std::collections::BTreeMap;

/// The number of pairs of a round and a worker with several cut windows, at least.
const MIN_PAIRS: usize = 8;
/// Rates with at most this part of the least variance of what is dealt out are even.
const OF_LEAST: f64 = 0.75;
const Z: f64 = -3.0;

/// Whether the workers pass the addresses watched at the same time at the same rate; `None` if too few were. `cut`: windows that the limit
/// cut off.
pub(super) fn is_even(cut: &[&Unit], workers: &[usize], dealing: &Dealing) -> Option<bool> {
    let mut rounds: BTreeMap<(u64, usize), Vec<(f64, f64)>> = BTreeMap::new();
    for unit in cut {
        for &(worker, hits) in unit.counts.iter().filter(|(worker, hits)| *hits > 0 && workers.contains(worker)) {
            rounds.entry((unit.round, worker)).or_default().push((unit.share(worker) * unit.rate, hits as f64));
        }
    }
    let (mut pairs, mut found, mut expected, mut variance) = (0, 0.0, 0.0, 0.0);
    for ((round, _), rates) in rounds.iter().filter(|(_, rates)| rates.len() >= 2) {
        let count = rates.len() as f64;
        let mean = rates.iter().map(|r| r.0).sum::<f64>() / count;
        if !(mean > 0.0 && mean.is_finite()) {
            continue;
        }
        // The most hits: what is dealt out varies at least as much.
        let least = dealing.least(*round) / rates.iter().map(|r| r.1).fold(1.0, f64::max);
        pairs += 1;
        found += rates.iter().map(|r| (r.0 / mean - 1.0).powi(2)).sum::<f64>();
        expected += (count - 1.0) * least;
        variance += 2.0 * (count - 1.0) * least * least;
    }
    (pairs >= MIN_PAIRS).then(|| found <= OF_LEAST * expected && found - expected <= Z * variance.sqrt().max(1e-12))
}
