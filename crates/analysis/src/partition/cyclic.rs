//! Block-cyclic partitions: position modulo a period determines the worker (`schedule(static, chunk)`, round-robin rows).
//!
//! Periods tried: first one row and whole numbers of rows, then those that a periodogram suggests. With x the positions of the units, n
//! their number and p_t the share of worker t, S(f) = sum over workers |F_t(f) - p_t F(f)|^2, F_t(f) = sum over the worker's units of
//! exp(2 pi i f x): what all units have in common drops out. Frequencies run from 2 periods in the range up to a period of two
//! base pages, in steps of a quarter of 1 / range, within a budget; by a few of the units first, and by more of them if no period explains nearly
//! everything. Sampled addresses often lie on a lattice (windows follow a
//! low-discrepancy sequence, hits the sweep of the program): then several frequencies explain the units equally well (aliases),
//! and units next to each other in phase may be next to each other in address too. So the lowest strong peaks are tried as well
//! as the highest, and a period P is accepted when each unit agrees with the nearest in phase *among those far in address* (at
//! least half of P and a fiftieth of the range away), over at least half of the units: kappa >= 0.45 + 0.75 / sqrt(units).
//!
//! The period found is then made exact: of frequencies within a tenth of 1 / range, the middle of those with the highest
//! agreement. The error of a peak shifts the phases by a few per cent from one end of the range to the other, which is enough to
//! assign the borders of the parts to the wrong worker.
//!
//! Chance, over all periods looked at, must stay below 0.01 by one of two bounds (Chernoff): without periods S / (n / T)
//! follows about a Gamma law with shape T (effective workers), tail exp(T - s + T ln(s / T)); or that of the agreement a itself,
//! exp(-(n / 1.5) KL(a, sum p^2)), where 1.5 allows for units that are each other's nearest.
//!
//! [`fine_period`] looks for periods below two pages in the same way, so that memory whose pages hold parts of several workers is not taken for memory
//! that all of them use in full. Rows have whole numbers of words, so those periods are whole multiples of [`WORD`].

use super::{Chance, Unit, neighbours};
use std::ops::Range;

/// The number of units used for the periodogram; and for a second one, if the best period of the first one explains less than nearly everything.
/// Few of many units may lie on a lattice on which a wrong period explains most of them.
const PERIODOGRAM_UNITS: usize = 256;
const MORE_UNITS: usize = 1024;
/// The kappa of a period that explains nearly everything.
const NEARLY_ALL: f64 = 0.95;
/// The number of unit rotations computed for one periodogram.
const BUDGET: usize = 5_000_000;
/// The number of low peaks tried besides the strongest.
const LOW_PEAKS: usize = 6;
/// The number of neighbours in phase examined on each side.
const REACH: usize = 24;
/// The shortest period: two base pages.
pub(super) const SHORTEST: f64 = 8192.0;

/// Fewer units next to each other in phase may be strays, and no part of a worker. A part fits into a gap that is nearly as long.
const UNITS_OF_A_PART: usize = 3;
const FITS: f64 = 0.9;

/// Fine periods are multiples of this, bytes.
const WORD: usize = 8;
/// Units whose spectrum chooses among the fine periods, and the number of periods that are then examined.
const FINE_UNITS: usize = 512;
const FINE_PEAKS: usize = 16;
/// Chance must give a fine period less often than this. No page has an owner, so finding one needs more certainty than missing it.
const FINE_CHANCE: f64 = 1e-4;

/// Frequencies tried around the one found: their number on each side, and their distance in units of 1 / range.
const SHARP_STEPS: i32 = 20;
const SHARP: f64 = 0.005;

type Phases = Vec<(f64, usize)>;

/// How well a period explains the units far from each other (kappa), the period in bytes, and the workers by phase. `units` are sorted by position.
pub(super) fn period(units: &[&Unit], chance: &Chance, stride: u64, rows: usize) -> Option<(f64, f64, Phases)> {
    // Try rows first: each row may be divided in the same way, as arrays of one site often are.
    if rows >= 2
        && stride > 0
        && let Some(found) = accept(units, chance, stride as f64, 0.0)
    {
        return Some(found);
    }
    if rows >= 4 && stride > 0 {
        let most = (rows / 2).min(4 * chance.shares.len().max(2)).min(512);
        let chances = (most as f64).ln();
        let by_rows = (2..=most).filter_map(|k| accept(units, chance, (k as u64).saturating_mul(stride) as f64, chances));
        if let Some(found) = by_rows.max_by(|a, b| a.0.total_cmp(&b.0)) {
            return Some(found);
        }
    }
    let mut best: Option<(f64, f64, Phases)> = None;
    let more = (units.len() > PERIODOGRAM_UNITS).then_some(MORE_UNITS);
    for most in [Some(PERIODOGRAM_UNITS), more].into_iter().flatten() {
        if best.as_ref().is_some_and(|best| best.0 >= NEARLY_ALL) {
            break;
        }
        let (peaks, chances) = peaks(units, chance, most);
        for peak in peaks {
            for period in [1.0, 2.0, 3.0].map(|k| k / peak) {
                if let Some(found) = accept(units, chance, period, chances)
                    && best.as_ref().is_none_or(|b| found.0 > b.0 + 0.05)
                {
                    best = Some(found);
                }
            }
        }
    }
    best.map(|found| sharpen(units, chance, found))
}

/// The part of a period for which units show an owner: all but the places, of a page each, between two neighbours in phase of different workers, and
/// gaps of one worker's in which another one's shortest part would fit. Units on a lattice may have few phases, and agree with each other about those only:
/// pages in turn, of which one in 31 is seen, have a period of 62 pages with three phases.
pub(super) fn shown(period: f64, phases: &[(f64, usize)]) -> f64 {
    let Some(&(first, _)) = phases.first() else { return 0.0 };
    let page = SHORTEST / 2.0;
    let next = |i: usize| phases.get(i + 1).copied().unwrap_or((first + 1.0, phases[0].1));
    let gap = |i: usize| ((next(i).0 - phases[i].0) * period - page).max(0.0);
    let borders: Vec<usize> = (0..phases.len()).filter(|&i| phases[i].1 != next(i).1).collect();
    let (mut unknown, mut shortest) = (borders.iter().map(|&i| gap(i)).sum::<f64>(), f64::INFINITY);
    for (at, &before) in borders.iter().enumerate() {
        let (last, turns) = borders.get(at + 1).map_or((borders[0], 1.0), |&last| (last, 0.0));
        let middle = |i: usize| f64::midpoint(phases[i].0, next(i).0);
        let units = (last + phases.len() - before) % phases.len();
        if units >= UNITS_OF_A_PART || borders.len() == 1 {
            shortest = shortest.min((middle(last) + turns - middle(before)) * period);
        }
    }
    unknown += (0..phases.len()).filter(|&i| phases[i].1 == next(i).1).map(gap).filter(|gap| *gap >= FITS * shortest).sum::<f64>();
    (1.0 - unknown / period).max(0.0)
}

/// The same of some of the units that the period was found from, by position and worker; 0 if they are all of one worker.
pub(super) fn shown_by(period: f64, units: impl Iterator<Item = (u64, usize)>) -> f64 {
    let mut phases: Phases = units.map(|(position, worker)| ((position as f64 / period).fract(), worker)).collect();
    phases.sort_by(|a, b| a.0.total_cmp(&b.0));
    if phases.windows(2).all(|two| two[0].1 == two[1].1) { 0.0 } else { shown(period, &phases) }
}

/// The middle of the periods near the one found that agree best, with its phases.
fn sharpen(units: &[&Unit], chance: &Chance, found: (f64, f64, Phases)) -> (f64, f64, Phases) {
    let (Some(first), Some(last)) = (units.first(), units.last()) else { return found };
    let range = (last.position - first.position).max(1) as f64;
    let period = |step: i32| 1.0 / (1.0 / found.1 + f64::from(step) * SHARP / range);
    let tried = (-SHARP_STEPS..=SHARP_STEPS).filter_map(|step| accept(units, chance, period(step), f64::NEG_INFINITY).map(|a| (step, a.0)));
    let tried: Vec<(i32, f64)> = tried.collect();
    let best = tried.iter().map(|t| t.1).fold(f64::NEG_INFINITY, f64::max);
    let best: Vec<i32> = tried.iter().filter(|t| t.1 >= best - 0.01).map(|t| t.0).collect();
    let middle = best.get(best.len() / 2).map(|&step| period(step));
    let exact = middle.and_then(|period| accept(units, chance, period, f64::NEG_INFINITY));
    exact.unwrap_or(found)
}

/// A period below two pages, and the workers by phase: each page holds parts of several workers. `units` are sorted by position.
pub(super) fn fine_period(units: &[&Unit], chance: &Chance) -> Option<(f64, Phases)> {
    let workers: Vec<usize> = chance.shares.keys().copied().collect();
    let thin = units.iter().step_by(units.len().div_ceil(FINE_UNITS).max(1));
    let points = thin.map(|u| (u.position as f64, workers.binary_search(&u.main_worker()).unwrap_or(0)));
    let spectrum = Spectrum::new(points.collect(), workers.len());
    let periods = (2 * WORD..SHORTEST as usize).step_by(WORD).map(|period| period as f64);
    let circle = Circle::new();
    let mut strongest: Vec<(f64, f64)> = periods.map(|period| (spectrum.at(1.0 / period, &circle), period)).collect();
    let attempts = (strongest.len() as f64).ln() + (0.01 / FINE_CHANCE).ln();
    strongest.sort_by(|a, b| b.0.total_cmp(&a.0));
    strongest.truncate(FINE_PEAKS);
    let accepted = strongest.iter().filter_map(|(_, period)| accept_from(units, chance, *period, attempts, 0.0));
    let found: Vec<(f64, f64, Phases)> = accepted.collect();
    let best = found.iter().map(|one| one.0).fold(f64::NEG_INFINITY, f64::max);
    // Multiples of a period explain as much.
    let good = found.into_iter().filter(|one| one.0 >= best - 0.05);
    good.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(_, period, phases)| (period, phases))
}

/// The worker that owns a position.
pub(super) fn owner(period: f64, phases: &[(f64, usize)], position: u64) -> Option<usize> {
    let phase = (position as f64 / period).fract();
    let place = phases.partition_point(|p| p.0 <= phase);
    let n = phases.len();
    if n == 0 {
        return None;
    }
    let near = [phases[(place + n - 1) % n], phases[place % n]];
    let distance = |p: f64| (p - phase).abs().min(1.0 - (p - phase).abs());
    near.into_iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0))).map(|p| p.1)
}

/// Kappa, period and phases, if units near in phase agree. `chances`: the logarithm of the number of periods examined.
fn accept(units: &[&Unit], chance: &Chance, period: f64, chances: f64) -> Option<(f64, f64, Phases)> {
    accept_from(units, chance, period, chances, SHORTEST)
}

/// The same for periods of `shortest` bytes and more.
fn accept_from(units: &[&Unit], chance: &Chance, period: f64, chances: f64, shortest: f64) -> Option<(f64, f64, Phases)> {
    if !(period.is_finite() && period >= shortest) {
        return None;
    }
    let mut by_phase: Vec<(f64, &Unit)> = units.iter().map(|&u| ((u.position as f64 / period).fract(), u)).collect();
    by_phase.sort_by(|a, b| a.0.total_cmp(&b.0));
    let range = units.last()?.position - units.first()?.position;
    let far = (period / 2.0).max(range as f64 / 50.0) as u64;
    let n = by_phase.len();
    let (mut agreement, mut compared) = (0.0, 0usize);
    for (i, (phase, unit)) in by_phase.iter().enumerate() {
        let circular = |p: f64| (p - phase).abs().min(1.0 - (p - phase).abs());
        let is_far = |other: &&(f64, &Unit)| other.1.position.abs_diff(unit.position) >= far;
        // On each side the first is the nearest.
        let after = (1..=REACH.min(n - 1)).map(|step| &by_phase[(i + step) % n]).find(is_far);
        let before = (1..=REACH.min(n - 1)).map(|step| &by_phase[(i + n - step) % n]).find(is_far);
        let near = after.into_iter().chain(before).min_by(|a, b| circular(a.0).total_cmp(&circular(b.0)));
        if let Some(near) = near {
            agreement += unit.agreement(near.1);
            compared += 1;
        }
    }
    if compared * 2 < n {
        return None;
    }
    let agreement = agreement / compared as f64;
    let kappa = chance.kappa(agreement);
    let log_chance = chances - compared as f64 / 1.5 * divergence(agreement, chance.agreement);
    (kappa >= neighbours::threshold(n) && log_chance < (0.01f64).ln())
        .then(|| (kappa, period, by_phase.iter().map(|(phase, u)| (*phase, u.main_worker())).collect()))
}

/// The Kullback-Leibler divergence of two Bernoulli distributions with probabilities `a` and `p`.
fn divergence(a: f64, p: f64) -> f64 {
    let term = |x: f64, y: f64| if x > 0.0 { x * (x / y.max(1e-12)).ln() } else { 0.0 };
    term(a, p) + term(1.0 - a, 1.0 - p)
}

/// Frequencies (1 / bytes) of possible periods: the strongest, and the lowest that are at least 0.6 as strong. Also the logarithm of the
/// number of frequencies that count as attempts of chance (negative infinity if the strongest exceeds what chance gives). `most`: units that are used.
fn peaks(units: &[&Unit], chance: &Chance, most: usize) -> (Vec<f64>, f64) {
    let step = units.len().div_ceil(most);
    let thin: Vec<&Unit> = units.iter().copied().step_by(step).collect();
    let (Some(first), Some(last)) = (units.first().map(|u| u.position), units.last().map(|u| u.position)) else { return (Vec::new(), 0.0) };
    let range = (last - first) as f64;
    if range < 2.0 * SHORTEST {
        return (Vec::new(), 0.0);
    }
    let workers: Vec<usize> = chance.shares.keys().copied().collect();
    let points: Vec<(f64, usize)> =
        thin.iter().map(|u| ((u.position - first) as f64, workers.binary_search(&u.main_worker()).unwrap_or(0))).collect();
    let spectrum = Spectrum::new(points, workers.len());
    let spacing = 0.25 / range;
    let lowest = 2.0 / range;
    let values = spectrum.scan(lowest, spacing, frequencies(range, thin.len()));
    let best = largest(&values);
    let shape = chance.workers;
    let s = values.get(best).copied().unwrap_or(0.0) / (thin.len() as f64 / shape);
    let log_tail = if s > shape { shape - s + shape * (s / shape).ln() } else { 0.0 };
    let mut chances = (values.len().max(1) as f64).ln();
    if values.len() < 3 {
        return (Vec::new(), 0.0);
    }
    if log_tail + chances < (0.01f64).ln() {
        chances = f64::NEG_INFINITY;
    }
    let is_peak = |&i: &usize| values[i] >= 0.6 * values[best] && values[i] >= values[i - 1] && values[i] >= values[i + 1];
    let low = (1..values.len().saturating_sub(1)).filter(is_peak).take(LOW_PEAKS);
    let coarse: Vec<usize> = low.chain([best]).collect();
    let fine = coarse.into_iter().map(|i| spectrum.refine(lowest + i as f64 * spacing, spacing)).filter(|&f| f > 0.0);
    (fine.collect(), chances)
}

/// The number of frequencies tried, a quarter of 1 / range apart: as many as there are until the shortest period, within the budget.
fn frequencies(range: f64, points: usize) -> usize {
    ((4.0 * range / SHORTEST) as usize).min(BUDGET / points.max(1))
}

fn largest(values: &[f64]) -> usize {
    (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]).then(b.cmp(&a))).unwrap_or(0)
}

/// Frequencies that are summed at once.
const AT_ONCE: usize = 8;

/// exp(2 pi i x).
fn turn(x: f64) -> (f64, f64) {
    let angle = std::f64::consts::TAU * x.fract();
    (angle.cos(), angle.sin())
}

fn product(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn single((real, imaginary): (f64, f64)) -> (f32, f32) {
    (real as f32, imaginary as f32)
}

/// Complex numbers, one a frequency. Single precision is enough: after 10,000 turns, an angle is off by less than a thousandth.
#[derive(Clone, Copy, Default)]
struct Lanes {
    real: [f32; AT_ONCE],
    imaginary: [f32; AT_ONCE],
}

impl Lanes {
    fn add(&mut self, other: &Self) {
        for k in 0..AT_ONCE {
            self.real[k] += other.real[k];
            self.imaginary[k] += other.imaginary[k];
        }
    }

    fn turn(&mut self, by: (f32, f32)) {
        for k in 0..AT_ONCE {
            let (real, imaginary) = (self.real[k], self.imaginary[k]);
            self.real[k] = real * by.0 - imaginary * by.1;
            self.imaginary[k] = real * by.1 + imaginary * by.0;
        }
    }
}

/// exp(2 pi i x) for so many x between 0 and 1.
struct Circle(Vec<(f64, f64)>);

const CIRCLE: usize = 4096;

impl Circle {
    fn new() -> Self {
        Self((0..CIRCLE).map(|step| turn((step as f64 + 0.5) / CIRCLE as f64)).collect())
    }

    /// exp(2 pi i x), x >= 0, to 2 pi / 8192.
    fn at(&self, x: f64) -> (f64, f64) {
        // Whole turns drop out; beyond 2^64 steps there are no fractions.
        self.0[(x * CIRCLE as f64) as u64 as usize % CIRCLE]
    }
}

struct Spectrum {
    /// The positions by worker.
    points: Vec<f64>,
    /// Where those of each worker end.
    ends: Vec<usize>,
    shares: Vec<f64>,
}

impl Spectrum {
    /// `points`: position and worker index, below `workers`.
    fn new(mut points: Vec<(f64, usize)>, workers: usize) -> Self {
        points.sort_by_key(|point| point.1);
        let ends: Vec<usize> = (0..workers.max(1)).map(|worker| points.partition_point(|point| point.1 <= worker)).collect();
        let begins = std::iter::once(&0).chain(&ends);
        let shares = begins.zip(&ends).map(|(begin, end)| (end - begin) as f64 / points.len().max(1) as f64).collect();
        Self { points: points.into_iter().map(|point| point.0).collect(), ends, shares }
    }

    /// The ranges of points of each worker.
    fn workers(&self) -> impl Iterator<Item = Range<usize>> {
        let begins = std::iter::once(&0).chain(&self.ends);
        begins.zip(&self.ends).map(|(begin, end)| *begin..*end)
    }

    /// S(f) for f = lowest, lowest + spacing, ... Several frequencies at once, in lanes that do not wait for each other.
    fn scan(&self, lowest: f64, spacing: f64, count: usize) -> Vec<f64> {
        let (mut state, mut turns) = (Vec::with_capacity(self.points.len()), Vec::with_capacity(self.points.len()));
        for position in &self.points {
            let step = turn(spacing * position);
            let mut now = turn(lowest * position);
            let (mut lanes, mut group) = (Lanes::default(), (1.0, 0.0));
            for k in 0..AT_ONCE {
                (lanes.real[k], lanes.imaginary[k]) = single(now);
                (now, group) = (product(now, step), product(group, step));
            }
            state.push(lanes);
            // From one group of frequencies to the next.
            turns.push(single(group));
        }
        let mut sums = vec![Lanes::default(); self.shares.len()];
        let mut values = Vec::with_capacity(count + AT_ONCE);
        while values.len() < count {
            for (sum, own) in sums.iter_mut().zip(self.workers()) {
                *sum = Lanes::default();
                for (now, by) in state[own.clone()].iter_mut().zip(&turns[own]) {
                    sum.add(now);
                    now.turn(*by);
                }
            }
            let mut all = Lanes::default();
            sums.iter().for_each(|one| all.add(one));
            values.extend((0..AT_ONCE).map(|k| {
                let power = |(f, p): (&Lanes, &f64)| {
                    let of = |own: f32, all: f32| (f64::from(own) - p * f64::from(all)).powi(2);
                    of(f.real[k], all.real[k]) + of(f.imaginary[k], all.imaginary[k])
                };
                sums.iter().zip(&self.shares).map(power).sum::<f64>()
            }));
        }
        values.truncate(count);
        values
    }

    /// S(f), to about a thousandth.
    fn at(&self, frequency: f64, circle: &Circle) -> f64 {
        let sum = |own: Range<usize>| {
            let turns = self.points[own].iter().map(|position| circle.at(frequency * position));
            turns.fold((0.0, 0.0), |sum: (f64, f64), one| (sum.0 + one.0, sum.1 + one.1))
        };
        let sums: Vec<(f64, f64)> = self.workers().map(sum).collect();
        let (real, imaginary): (f64, f64) = sums.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        sums.iter().zip(&self.shares).map(|(sum, p)| (sum.0 - p * real).powi(2) + (sum.1 - p * imaginary).powi(2)).sum()
    }

    /// The frequency of the peak near `at`, searched within `width`.
    fn refine(&self, mut at: f64, mut width: f64) -> f64 {
        for _ in 0..4 {
            let fine = width / 8.0;
            let lowest = at - width;
            at = lowest + largest(&self.scan(lowest, fine, 17)) as f64 * fine;
            width = fine;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the search takes a bounded number of steps, however large the object is and however many samples and workers it has.
    #[test]
    fn the_search_is_bounded() {
        assert_eq!(frequencies(100.0 * SHORTEST, PERIODOGRAM_UNITS), 400);
        for range in [1e9, 1e15, 1.8e19] {
            for points in [1, 16, PERIODOGRAM_UNITS] {
                assert!(frequencies(range, points) * points <= BUDGET, "{range} {points}");
            }
        }
        let far = 1 << 46;
        let workers = 1000;
        let unit = |at: u64| Unit {
            position: at * (far / 2000) + at * at % 4096,
            shares: vec![((at * 7919 % workers) as usize, 1.0)],
            counts: Vec::new(),
            rate: 0.0,
            cut: false,
            round: at,
            running: Vec::new(),
        };
        let units: Vec<Unit> = (0..2000).map(unit).collect();
        let units: Vec<&Unit> = units.iter().collect();
        let (peaks, _) = peaks(&units, &Chance::of(&units), PERIODOGRAM_UNITS);
        assert!(peaks.len() <= LOW_PEAKS + 1, "{}", peaks.len());
        let longest = frequencies(far as f64, PERIODOGRAM_UNITS) as f64 * 0.25 / far as f64;
        assert!(peaks.iter().all(|peak| *peak <= 1.1 * longest), "{peaks:?} {longest}");
    }

    /// Check that the sums of several frequencies at once, and those from a table, are the sums by definition.
    #[test]
    fn spectra_are_sums_of_turns() {
        let points: Vec<(f64, usize)> = (0..200u64).map(|i| ((i * i * 7919 % 1_000_003 * 64) as f64, (i * 31 % 3) as usize)).collect();
        let exactly = |frequency: f64| {
            let turns = |worker: usize| {
                let own = points.iter().filter(|point| point.1 == worker);
                own.map(|point| turn(frequency * point.0)).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            };
            let share = |worker: usize| points.iter().filter(|point| point.1 == worker).count() as f64 / points.len() as f64;
            let all = (0..3).map(turns).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (0..3).map(|t| (turns(t).0 - share(t) * all.0).powi(2) + (turns(t).1 - share(t) * all.1).powi(2)).sum::<f64>()
        };
        let spectrum = Spectrum::new(points.clone(), 3);
        let (lowest, spacing) = (2.0 / 64e6, 0.25 / 64e6);
        let found = spectrum.scan(lowest, spacing, 20_001);
        assert_eq!(found.len(), 20_001);
        for i in (0..20_001).step_by(667) {
            let known = exactly(lowest + i as f64 * spacing);
            assert!((found[i] - known).abs() < 0.002 * known + 0.1, "{i}: {} {known}", found[i]);
        }
        let circle = Circle::new();
        for period in [16.0, 200.0, 4096.0, 8184.0] {
            let (found, known) = (spectrum.at(1.0 / period, &circle), exactly(1.0 / period));
            assert!((found - known).abs() < 0.01 * known + 1.0, "{period}: {found} {known}");
        }
    }

    /// Check what part of a period its units show: parts of eight pages with units on half of all pages, three phases of 62 pages, and one page of another
    /// worker among 31 pages of one, of which each second one is seen.
    #[test]
    fn few_phases_show_little() {
        let phases = |pages: usize, seen: &dyn Fn(usize) -> Option<usize>| -> Vec<(f64, usize)> {
            let units = (0..pages).flat_map(|page| std::iter::repeat_n(page, 4)).filter_map(|page| Some((page, seen(page)?)));
            units.map(|(page, worker)| ((page as f64 + 0.5) / pages as f64, worker)).collect()
        };
        let part = |pages: usize, seen: &dyn Fn(usize) -> Option<usize>| shown(pages as f64 * 4096.0, &phases(pages, seen));
        assert_eq!(part(16, &|page| Some(page / 8)), 1.0);
        let half = part(16, &|page| (page % 2 == 0).then_some(page / 8));
        assert!((half - 14.0 / 16.0).abs() < 1e-9, "{half}");
        let three = part(62, &|page| [(6, 1), (17, 0), (37, 1)].iter().find(|one| one.0 == page).map(|one| one.1));
        assert!(three < 0.1, "{three}");
        let among = part(62, &|page| if page == 37 { Some(1) } else { (page % 2 == 0).then_some(0) });
        assert!((among - 32.0 / 62.0).abs() < 1e-9, "{among}");
        assert_eq!(part(2, &|page| Some(page)), 1.0);
    }
}
