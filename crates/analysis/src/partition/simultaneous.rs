//! Whether the same workers pass the different addresses that are watched at the same time.
//!
//! Threads that share CPUs pass an address as often as the scheduler lets them run, so the counts within one window are uneven
//! even if all threads read the whole object (`shared.rs`). But the windows of one round are held at the same time: if each worker
//! passes all addresses, its counts at two of them differ by about one pass, however unevenly the workers ran. If chance or a
//! dynamic schedule deals the addresses out, the counts at two addresses are independent draws.
//!
//! For a round with windows i, workers t and counts h_it (n_i and m_t their sums by window and worker, N all), Pearson's x = sum (h_it -
//! n_i m_t / N)^2 / (n_i m_t / N) is d N / (N - 1) on average for independent draws with these sums, d = (windows - 1) (workers - 1), with
//! variance of about 2 d. It is near 0 if each worker passes everything. With the sums over rounds, agreement = sum x / sum of
//! expectations. On recorded programs (4 threads on 2 busy CPUs), the agreement is 0.02 to 0.07 for shared tables and the matrix that a
//! product reads in full; 0.75 to 1.5 for a dynamic schedule, 0.7 for tasks, 0.96 and 0.98 for random access; 3 and more for objects with
//! owners.
//!
//! On a busy machine one thread may run alone for a while and pass everything that a dynamic schedule deals out in that time. So
//! most workers must also have taken part: three quarters of them in a round, on average.
//!
//! A schedule that deals out few (K), large chunks puts two addresses into one chunk in 1 / K of the pairs: agreement 1 - 1 / K.

use super::Unit;
use std::collections::BTreeMap;

const MIN_ROUNDS: usize = 5;
/// Agreement up to this value means shared use.
const TOGETHER: f64 = 0.5;
const Z: f64 = -3.0;
/// Agreement from this value on, with enough evidence, excludes shared use.
const APART: f64 = 0.6;
const ENOUGH: f64 = 8.0;
/// For shared use, a round must see this fraction of the workers on average.
const TAKING_PART: f64 = 0.75;

/// What the windows of the same rounds prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Each worker passes all addresses.
    Together,
    /// At any time, each address has its own workers.
    Apart,
    /// Too few windows at the same time, or an agreement between the thresholds.
    Open,
}

/// Compares the windows of each round. `pass`: the number of hits in one pass.
pub(super) fn verdict(units: &[&Unit], workers: &[usize], pass: u64) -> Verdict {
    let mut rounds: BTreeMap<u64, Vec<&Unit>> = BTreeMap::new();
    for unit in units.iter().filter(|u| !u.cut) {
        rounds.entry(unit.round).or_default().push(unit);
    }
    let (mut taking_part, mut all_rounds) = (0.0, 0.0);
    let (mut count, mut x, mut expected, mut variance) = (0, 0.0, 0.0, 0.0);
    for round in rounds.values() {
        let table: Vec<Vec<f64>> =
            round.iter().map(|unit| counts(unit, workers, pass)).filter(|row| row.iter().sum::<f64>() > 0.0).collect();
        let by_worker: Vec<f64> = (0..workers.len()).map(|t| table.iter().map(|row| row[t]).sum()).collect();
        let all: f64 = by_worker.iter().sum();
        let seen = by_worker.iter().filter(|&&m| m > 0.0).count();
        (taking_part, all_rounds) = (taking_part + seen as f64, all_rounds + 1.0);
        let degrees = (table.len().saturating_sub(1) * seen.saturating_sub(1)) as f64;
        if degrees < 1.0 || all <= 1.0 {
            continue;
        }
        for row in &table {
            let n: f64 = row.iter().sum();
            x += row.iter().zip(&by_worker).filter(|(_, m)| **m > 0.0).map(|(h, m)| (h - n * m / all).powi(2) / (n * m / all)).sum::<f64>();
        }
        count += 1;
        expected += degrees * all / (all - 1.0);
        variance += 2.0 * degrees;
    }
    if count < MIN_ROUNDS {
        return Verdict::Open;
    }
    let (agreement, z) = (x / expected, (x - expected) / f64::sqrt(variance));
    match () {
        () if agreement <= TOGETHER && z <= Z && taking_part >= TAKING_PART * all_rounds * workers.len() as f64 => Verdict::Together,
        () if agreement >= APART && expected >= ENOUGH => Verdict::Apart,
        () => Verdict::Open,
    }
}

fn counts(unit: &Unit, workers: &[usize], pass: u64) -> Vec<f64> {
    let of = |worker: usize| unit.counts.iter().filter(|c| c.0 == worker).map(|c| c.1 as f64).sum::<f64>();
    workers.iter().map(|&worker| of(worker) / pass.max(1) as f64).collect()
}
