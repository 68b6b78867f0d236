//! The kernel's automatic NUMA balancing: state, tunables, and its effect on the time of a command.

use serde::Serialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balancing {
    /// kernel.numa_balancing: bit 0 moves pages to the threads that use them, bit 1 moves hot pages of slow memory tiers up. `None`:
    /// this kernel has no balancing, or hides it.
    pub value: Option<u64>,
    /// `off`, `on`, `tiering`, `on, tiering`, `unavailable`, or `unknown` where /proc is missing.
    pub state: String,
    /// Nodes that are online; 0 if unknown.
    pub nodes: usize,
    pub tunables: Vec<Tunable>,
    pub doubts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tunable {
    /// The kernel's name, with the unit: `scan_period_min_ms`.
    pub name: String,
    pub value: u64,
    pub meaning: String,
    /// The file it is in.
    pub file: String,
}

/// Runs of a command with balancing in one state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// `on` or `off`.
    pub balancing: String,
    pub runs: Vec<TimedRun>,
    pub wall_s: Spread,
    pub hint_faults: Spread,
    pub hint_faults_local: Spread,
    pub pages_migrated: Spread,
}

/// One run of the command. The counters are of the whole system during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimedRun {
    pub wall_s: f64,
    pub hint_faults: u64,
    pub hint_faults_local: u64,
    pub pages_migrated: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    /// Medians of values in any order; all fields are 0 without values.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else { return Self::default() };
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], values[middle]) } else { values[middle] };
        Self { min, median, max }
    }
}

/// The least number of runs in each state for which disjoint ranges are significant: by chance, the ranges are disjoint in 2 of binomial(8,
/// 4) = 70 orders, which is below 5 % (the exact rank-sum test); with 3 runs each, in 10 %.
pub const LEAST_RUNS: usize = 4;

/// Whether the runs in two states differ significantly: enough runs of each, in disjoint ranges.
#[must_use]
pub fn are_apart(one: &[f64], other: &[f64]) -> bool {
    let range = |runs: &[f64]| (runs.iter().copied().fold(f64::INFINITY, f64::min), runs.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    let ((one_min, one_max), (other_min, other_max)) = (range(one), range(other));
    one.len().min(other.len()) >= LEAST_RUNS && (one_max < other_min || other_max < one_min)
}

impl Measured {
    #[must_use]
    pub fn new(balancing: &str, runs: Vec<TimedRun>) -> Self {
        let spread = |of: fn(&TimedRun) -> f64| Spread::of(runs.iter().map(of).collect());
        Self {
            balancing: balancing.to_owned(),
            wall_s: spread(|run| run.wall_s),
            hint_faults: spread(|run| run.hint_faults as f64),
            hint_faults_local: spread(|run| run.hint_faults_local as f64),
            pages_migrated: spread(|run| run.pages_migrated as f64),
            runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check medians of odd, even and no values.
    #[test]
    fn spreads() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(Spread::of(vec![4.0, 1.0]), Spread { min: 1.0, median: 2.5, max: 4.0 });
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }

    /// Check that a difference needs enough runs and disjoint ranges.
    #[test]
    fn differences() {
        let (low, high) = ([1.0, 2.0, 3.0, 2.0], [5.0, 4.0, 6.0, 5.0]);
        assert!(are_apart(&low, &high) && are_apart(&high, &low));
        assert!(!are_apart(&low[..3], &high) && !are_apart(&low, &high[..3]) && !are_apart(&[], &[]));
        assert!(!are_apart(&low, &[3.0, 4.0, 5.0, 6.0]) && !are_apart(&low, &low));
    }
}
