//! How much the counts of one window vary if the object is dealt out.
//!
//! A dynamic schedule or a task queue deals each address out, sweep by sweep, to one of the threads that run at that time. So the counts
//! show it only if several threads ran at once: a thread that runs alone passes all addresses of a sweep, as if it used the object in full.
//! On a busy machine whole sweeps may be by one thread each, and the counts agree between addresses that are watched at the same time.
//!
//! With a threads running at the time of a pass, the pass is by each of them with probability 1 / a, and adds 1 - 1 / a to the sum over the
//! threads of the variances of their counts. Passes come in proportion to the CPU time. So for n passes the sum is n (1 - 1 / A) or more,
//! where 1 / A is the mean of 1 / a over the CPU time of all threads: the time in which at least one of them ran, divided by their CPU
//! time. The former is not longer than the window, so A is at least the CPU time divided by the length of the window.

use super::Unit;
use std::collections::BTreeMap;

/// 1 - 1 / A.
pub(super) struct Dealing {
    /// At least, in each round: from the CPU time of the workers that passed a watched address in it.
    by_round: BTreeMap<u64, f64>,
    /// For rounds in which CPU times are not known.
    otherwise: f64,
    /// The workers ran at the same time for less than half as much as they could have.
    pub(super) ran_apart: bool,
}

impl Dealing {
    /// As many threads as possible ran all the time.
    pub(super) fn at_best(workers: usize, cpus: usize) -> Self {
        Self { by_round: BTreeMap::new(), otherwise: spread(workers.min(cpus.max(2)) as f64), ran_apart: false }
    }

    /// As the CPU times of the workers show. Profiles of earlier versions do not have them.
    pub(super) fn measured(units: &[&Unit], workers: &[usize], cpus: usize) -> Self {
        let mut rounds: BTreeMap<u64, BTreeMap<usize, f64>> = BTreeMap::new();
        for unit in units.iter().filter(|unit| !unit.running.is_empty()) {
            let round = rounds.entry(unit.round).or_default();
            for &(worker, part) in unit.running.iter().filter(|(worker, _)| workers.contains(worker)) {
                let most = round.entry(worker).or_default();
                *most = part.clamp(*most, 1.0);
            }
        }
        let at_best = Self::at_best(workers.len(), cpus);
        if rounds.is_empty() {
            return at_best;
        }
        let ran_apart = mean_spread(&rounds, workers) < 0.5 * at_best.otherwise;
        let by_round = rounds.into_iter().map(|(round, parts)| (round, spread(parts.values().sum()))).collect();
        Self { by_round, ran_apart, ..at_best }
    }

    /// The least sum of the variances of the counts of a window in this round, for each pass.
    pub(super) fn least(&self, round: u64) -> f64 {
        self.by_round.get(&round).copied().unwrap_or(self.otherwise)
    }
}

/// The mean over the rounds, if workers that a round does not show ran as much as in the others.
fn mean_spread(rounds: &BTreeMap<u64, BTreeMap<usize, f64>>, workers: &[usize]) -> f64 {
    let usual = |worker: &usize| {
        let seen: Vec<f64> = rounds.values().filter_map(|round| round.get(worker)).copied().collect();
        (*worker, seen.iter().sum::<f64>() / seen.len().max(1) as f64)
    };
    let usual: Vec<(usize, f64)> = workers.iter().map(usual).collect();
    let of = |round: &BTreeMap<usize, f64>| spread(usual.iter().map(|(worker, part)| round.get(worker).unwrap_or(part)).sum());
    rounds.values().map(of).sum::<f64>() / rounds.len() as f64
}

fn spread(at_once: f64) -> f64 {
    1.0 - 1.0 / at_once.max(1.0)
}
