//! Whether the same workers pass the different addresses that are watched at the same time.
//!
//! Threads that share CPUs pass an address as often as the scheduler lets them run, so the counts within one window are uneven
//! even if all threads read the whole object (`shared.rs`). But the windows of one round are held at the same time: if each worker
//! passes all addresses, its counts at two of them differ by about one pass, however unevenly the workers ran. If chance or a
//! dynamic schedule deals the addresses out, the counts at two addresses are independent draws.
//!
//! For a round with windows i, workers t and counts h_it (n_i and m_t their sums by window and worker, N all, e_it = n_i m_t / N, and
//! d = (windows - 1) (workers - 1)):
//!
//! - Pearson's x = sum (h_it - e_it)^2 / e_it is d N / (N - 1) on average for independent draws with these sums, with variance of about 2 d.
//!   It is near 0 if each worker passes everything. With the sums over rounds, agreement = sum x / sum of expectations. On recorded programs
//!   (4 threads on 2 busy CPUs), the agreement is 0.02 to 0.07 for shared tables and the matrix that a product reads in full; 0.75 to 1.5
//!   for a dynamic schedule, 0.7 for tasks, 0.96 and 0.98 for random access; 3 and more for objects with owners.
//! - y = sum (h_it - e_it)^2 / n_i is (windows - 1) l N / (N - 1) on average or more if the addresses are dealt out, l by `dealing.rs`,
//!   with variance of about 2 (windows - 1) l (1 - l): 1.07 and 1.13 of that for a dynamic schedule, 1.2 and 1.4 for tasks, 0.02 for shared
//!   tables (4 threads on 2 CPUs without other load). Here rounds have the weight l: where one thread ran at a time, l is 0, and the round
//!   proves nothing.
//!
//! Use is in full if both sums are well below what dealing out gives: agreement <= 0.5, sum l y at most three quarters of its expectation
//! and three standard deviations below it. If this would hold had the threads run at once, but does not, use is [`Verdict::RanApart`]: a
//! thread that runs alone passes everything that a dynamic schedule deals out in that time.
//!
//! A schedule that deals out few (K), large chunks puts two addresses into one chunk in 1 / K of the pairs: agreement 1 - 1 / K.

use super::Unit;
use super::dealing::Dealing;
use std::collections::BTreeMap;

const MIN_ROUNDS: usize = 5;
/// Agreement up to this value means shared use.
const TOGETHER: f64 = 0.5;
/// So does this part of the least dispersion of counts that are dealt out.
const OF_LEAST: f64 = 0.75;
const Z: f64 = -3.0;
/// Agreement from this value on, with enough evidence, excludes shared use.
const APART: f64 = 0.6;
const ENOUGH: f64 = 8.0;

/// What the windows of the same rounds prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Each worker passes all addresses.
    Together,
    /// At any time, each address has its own workers.
    Apart,
    /// The same workers pass all addresses, but too few ran at once to tell whether each of them passes all.
    RanApart,
    /// Too few windows at the same time, or an agreement between the thresholds.
    Open,
}

/// The counts of a round: passes by window and worker.
struct Table {
    round: u64,
    rows: Vec<Vec<f64>>,
    by_worker: Vec<f64>,
    all: f64,
}

impl Table {
    fn new(round: u64, units: &[&Unit], workers: &[usize], pass: u64) -> Self {
        let rows: Vec<Vec<f64>> = units.iter().map(|unit| unit.passes(workers, pass)).filter(|row| row.iter().sum::<f64>() > 0.0).collect();
        let by_worker: Vec<f64> = (0..workers.len()).map(|t| rows.iter().map(|row| row[t]).sum()).collect();
        let all = by_worker.iter().sum();
        Self { round, rows, by_worker, all }
    }

    /// (windows - 1, workers - 1)
    fn degrees(&self) -> (f64, f64) {
        let seen = self.by_worker.iter().filter(|&&m| m > 0.0).count();
        (self.rows.len().saturating_sub(1) as f64, seen.saturating_sub(1) as f64)
    }

    /// Pearson's x, and y.
    fn dispersion(&self) -> (f64, f64) {
        let (mut x, mut y) = (0.0, 0.0);
        for row in &self.rows {
            let n: f64 = row.iter().sum();
            for (h, m) in row.iter().zip(&self.by_worker).filter(|(_, m)| **m > 0.0) {
                let expected = n * m / self.all;
                x += (h - expected).powi(2) / expected;
                y += (h - expected).powi(2) / n;
            }
        }
        (x, y)
    }

    /// The sum of the variances of the counts, for each pass, if all workers deal with each other.
    fn most(&self) -> f64 {
        1.0 - self.by_worker.iter().map(|m| (m / self.all).powi(2)).sum::<f64>()
    }
}

/// A sum of squares, its expectation and its variance.
#[derive(Clone, Copy, Default)]
struct Sums {
    found: f64,
    expected: f64,
    variance: f64,
}

impl Sums {
    fn add(&mut self, found: f64, expected: f64, variance: f64) {
        (self.found, self.expected, self.variance) = (self.found + found, self.expected + expected, self.variance + variance);
    }

    fn agreement(&self) -> f64 {
        self.found / self.expected.max(1e-9)
    }

    fn z(&self) -> f64 {
        (self.found - self.expected) / self.variance.sqrt().max(1e-9)
    }
}

/// Compares the windows of each round. `pass`: the number of hits in one pass. `measured`: how counts vary that are dealt out to
/// the threads that ran; `at_best`: if as many as possible had run.
pub(super) fn verdict(units: &[&Unit], workers: &[usize], pass: u64, measured: &Dealing, at_best: &Dealing) -> Verdict {
    let mut rounds: BTreeMap<u64, Vec<&Unit>> = BTreeMap::new();
    for unit in units.iter().filter(|u| !u.cut) {
        rounds.entry(unit.round).or_default().push(unit);
    }
    let tables = rounds.iter().map(|(&round, units)| Table::new(round, units, workers, pass));
    let tables: Vec<Table> = tables.filter(|table| table.degrees().0 * table.degrees().1 >= 1.0 && table.all > 1.0).collect();
    if tables.len() < MIN_ROUNDS {
        return Verdict::Open;
    }
    let mut pearson = Sums::default();
    for table in &tables {
        let degrees = table.degrees().0 * table.degrees().1;
        pearson.add(table.dispersion().0, degrees * table.all / (table.all - 1.0), 2.0 * degrees);
    }
    let is_below = |dealing: &Dealing| {
        let sums = against(&tables, dealing);
        pearson.agreement() <= TOGETHER && sums.agreement() <= OF_LEAST && sums.z() <= Z
    };
    match () {
        () if is_below(measured) => Verdict::Together,
        () if is_below(at_best) => Verdict::RanApart,
        () if pearson.agreement() >= APART && pearson.expected >= ENOUGH => Verdict::Apart,
        () => Verdict::Open,
    }
}

/// The sums of y against what dealing out gives at least.
fn against(tables: &[Table], dealing: &Dealing) -> Sums {
    let mut sums = Sums::default();
    for table in tables {
        let least = dealing.least(table.round).min(table.most());
        let windows = table.degrees().0;
        let expected = windows * least * table.all / (table.all - 1.0);
        sums.add(least * table.dispersion().1, least * expected, least * least * 2.0 * windows * least * (1.0 - least));
    }
    sums
}
