//! Strata of samples: the samples of one thread, each of which stands for a known part of the thread's CPU time.
//!
//! How much CPU time each thread used is known, so chance decides only what a thread did in its time, not how much of all samples it has. In
//! sampling theory the threads are strata (Cochran 1977, chapter 5), and the samples of one are a systematic sample of its CPU time. With U_i, what
//! sample i moves a figure by, t_i, the time that it stands for, and U = sum U_i / sum t_i over *all* samples of the thread (those without an access
//! have U_i = 0), the variance is
//!
//!   sum over threads of n / (n - 1) sum over its samples of (U_i - t_i U)^2
//!
//! A program whose threads each use either local or remote memory has a remote fraction without any variance of this kind. What remains is what
//! the samples of one thread do not agree on, and the errors of rates ([`crate::estimator::Doubt`]).
//!
//! Successive samples of a thread may be alike: the program does one thing longer than from tick to tick, or its sweeps keep in step with the ticks
//! for a while, so that all of them see the same part of the sweep. Then a run of samples says as much as one. The same variance is therefore
//! computed of runs of 4, 16 and 64 successive samples as units (batch means, Conway 1963), and the largest counts.
//!
//! Samples that stand for others that were left out in the same 20 ms are one unit each 20 ms, outside of all strata: how much time they stand for is
//! chance.

use crate::work;
use firsttouch_model::rows::Id;
use hashbrown::HashMap;

/// Threads with fewer samples are no stratum of their own: the mean of their samples is not known well enough.
const LEAST_SAMPLES: usize = 20;
/// Recorders leave samples out in windows of this length, ns.
const WINDOW_NS: u64 = 20_000_000;
/// Units that are windows have numbers from here on; ids of samples are smaller.
const WINDOWS: u64 = 1 << 62;

/// Samples of a unit: a single one, and runs of some successive ones of a thread.
pub const RUNS: [usize; 4] = [1, 4, 16, 64];
/// Runs of a length count if a thread has this many of them.
const LEAST_RUNS: usize = 8;

/// The CPU time of a thread, over all of its samples.
#[derive(Clone, Debug, Default)]
pub struct Stratum {
    samples: usize,
    time: f64,
    /// By length of runs: the times of the runs, and their squares' sum.
    pub runs: [Vec<f64>; RUNS.len()],
    squares: [f64; RUNS.len()],
}

impl Stratum {
    fn add(&mut self, time: f64) {
        for ((runs, squares), length) in self.runs.iter_mut().zip(&mut self.squares).zip(RUNS) {
            if self.samples.is_multiple_of(length) {
                runs.push(0.0);
            }
            if let Some(last) = runs.last_mut() {
                *squares += (*last + time).powi(2) - last.powi(2);
                *last += time;
            }
        }
        self.samples += 1;
        self.time += time;
    }

    /// Index of the longest runs that count, up to this one.
    fn longest(&self, at_most: usize) -> usize {
        (0..=at_most).rev().find(|&at| self.runs[at].len() >= LEAST_RUNS).unwrap_or(0)
    }
}

/// Where a unit is: its stratum, and its number among the samples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub stratum: usize,
    pub number: usize,
}

/// The stratum of each unit.
#[derive(Clone, Debug, Default)]
pub struct Strata {
    of_unit: HashMap<u64, Place>,
    of_thread: HashMap<Id, usize>,
    strata: Vec<Stratum>,
}

/// The number of the unit that a sample belongs to: itself, or its window if it stands for others too.
#[must_use]
pub fn unit(sample: Id, time_ns: u64, weight: f64) -> u64 {
    if weight > 1.0 { WINDOWS + time_ns / WINDOW_NS } else { sample.unsigned_abs() }
}

impl Strata {
    /// Adds a sample of a thread that stands for some CPU time. Samples that stand for others too are in no stratum.
    pub fn add(&mut self, thread: Id, sample: Id, time: f64, weight: f64) {
        if weight > 1.0 || !time.is_finite() {
            return;
        }
        let next = self.strata.len();
        let at = *self.of_thread.entry(thread).or_insert(next);
        if at == next {
            self.strata.push(Stratum::default());
        }
        let number = self.strata[at].samples;
        self.strata[at].add(time);
        self.of_unit.insert(unit(sample, 0, weight), Place { stratum: at, number });
    }

    /// The place of a unit.
    #[must_use]
    pub fn of(&self, unit: u64) -> Option<Place> {
        self.of_unit.get(&unit).copied().filter(|place| self.strata[place.stratum].samples >= LEAST_SAMPLES)
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.strata.len()
    }

    #[must_use]
    pub fn all(&self) -> &[Stratum] {
        &self.strata
    }
}

/// What moves a figure, summed over the runs of one length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// The run that is being added up.
    run: usize,
    of_run: f64,
    pub with_time: f64,
    pub squares: f64,
}

impl Sums {
    /// Sums over runs that have all ended.
    pub fn whole_of(with_time: f64, squares: f64) -> Self {
        Self { run: 0, of_run: 0.0, with_time, squares }
    }

    /// Adds what a unit of this run moves, and the sum of the run before if that has ended. `times`: of all runs.
    fn add(&mut self, run: usize, u: f64, times: &[f64]) {
        if run != self.run {
            *self = self.whole(times);
            self.run = run;
        }
        self.of_run += u;
    }

    /// The sums, with those of the current run.
    fn whole(self, times: &[f64]) -> Self {
        let time = times.get(self.run).copied().unwrap_or(0.0);
        Self { of_run: 0.0, with_time: self.with_time + self.of_run * time, squares: self.squares + self.of_run.powi(2), ..self }
    }
}

/// What moves a figure, in one stratum.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    pub u: f64,
    pub of_runs: [Sums; RUNS.len()],
}

impl Moved {
    /// The variance within the stratum, by runs of a length.
    pub fn variance(&self, stratum: &Stratum, at: usize) -> f64 {
        let at = stratum.longest(at);
        let sums = self.of_runs[at].whole(&stratum.runs[at]);
        let n = stratum.runs[at].len() as f64;
        if n < 2.0 || stratum.time <= 0.0 {
            return sums.squares;
        }
        let mean = self.u / stratum.time;
        let squares = sums.squares - 2.0 * mean * sums.with_time + mean * mean * stratum.squares[at];
        squares.max(0.0) * n / (n - 1.0)
    }
}

/// The variance of units in no stratum, and the largest by runs of all strata.
pub fn variance_of_all(outside: f64, units_outside: usize, by_runs: impl Fn(usize) -> f64) -> f64 {
    let n = units_outside as f64;
    let outside = if n > 1.0 { outside * n / (n - 1.0) } else { outside };
    outside + (0..RUNS.len()).map(by_runs).fold(0.0, f64::max)
}

/// Of a stratum from which nothing was added so far.
const UNMOVED: u32 = u32::MAX;

/// The variance of a figure by units.
#[derive(Debug)]
pub struct Spread<'a> {
    strata: &'a Strata,
    /// By stratum: where it is in `moved`. A figure of one object concerns few of many threads.
    at: Vec<u32>,
    moved: Vec<(usize, Moved)>,
    /// Of units in no stratum.
    outside: f64,
    units_outside: usize,
}

impl<'a> Spread<'a> {
    #[must_use]
    pub fn new(strata: &'a Strata) -> Self {
        Self { strata, at: vec![UNMOVED; strata.count()], moved: Vec::new(), outside: 0.0, units_outside: 0 }
    }

    /// Adds a unit that moves the figure by `u`. Units that are not added move it by 0. Those of one stratum come in the order of their numbers.
    pub fn add(&mut self, place: Option<Place>, u: f64) {
        work::step();
        match place {
            Some(Place { stratum, number }) => {
                if self.at[stratum] == UNMOVED {
                    self.at[stratum] = self.moved.len() as u32;
                    self.moved.push((stratum, Moved::default()));
                }
                let (moved, stratum) = (&mut self.moved[self.at[stratum] as usize].1, &self.strata.strata[stratum]);
                moved.u += u;
                for ((sums, length), times) in moved.of_runs.iter_mut().zip(RUNS).zip(&stratum.runs) {
                    sums.add(number / length, u, times);
                }
            }
            None => {
                self.outside += u * u;
                self.units_outside += 1;
            }
        }
    }

    #[must_use]
    pub fn variance(mut self) -> f64 {
        self.moved.sort_unstable_by_key(|(stratum, _)| *stratum);
        let of = |(stratum, moved): &(usize, Moved), at: usize| moved.variance(&self.strata.strata[*stratum], at);
        variance_of_all(self.outside, self.units_outside, |at| self.moved.iter().map(|one| of(one, at)).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strata(samples: &[(Id, f64)]) -> Strata {
        let mut strata = Strata::default();
        for (i, &(thread, time)) in samples.iter().enumerate() {
            strata.add(thread, i as Id, time, 1.0);
        }
        strata
    }

    /// Check that a figure which is the same in all samples of each thread has no variance, and that one which changes within a thread has that
    /// of its samples.
    #[test]
    fn threads_are_strata() {
        let strata = strata(&(0..200).map(|i| (i % 2, 4.0)).collect::<Vec<_>>());
        let mut constant = Spread::new(&strata);
        let mut changing = Spread::new(&strata);
        for i in 0..200 {
            constant.add(strata.of(i), if i % 2 == 0 { 1.0 } else { -1.0 });
            changing.add(strata.of(i), if i / 2 % 2 == 0 { 1.0 } else { -1.0 });
        }
        let (constant, changing) = (constant.variance(), changing.variance());
        assert!(constant < 1e-9, "{constant}");
        assert!((changing / 200.0 - 1.0).abs() < 0.02, "{changing}");
    }

    /// Check that a thread which does one thing for 20 samples, then another for 20, is not certain to do each in half of its time: a run of
    /// samples says as much as one.
    #[test]
    fn runs_of_equal_samples_say_little() {
        let strata = strata(&[(7, 4.0); 2000]);
        let spread = |length: u64| {
            let mut spread = Spread::new(&strata);
            (0..2000).for_each(|i| spread.add(strata.of(i), if (i / length).is_multiple_of(2) { 1.0 } else { 0.0 }));
            spread.variance() / 500.0
        };
        assert!((spread(1) - 1.0).abs() < 0.02, "{}", spread(1));
        assert!(spread(20) > 5.0, "{}", spread(20));
    }

    /// Check that samples without an access count as samples of their thread: a thread that computes half of the time does not have a certain
    /// number of accesses.
    #[test]
    fn samples_without_an_access_count() {
        let strata = strata(&[(7, 4.0); 100]);
        let mut spread = Spread::new(&strata);
        (0..50).for_each(|i| spread.add(strata.of(2 * i), 1.0));
        let variance = spread.variance();
        assert!((variance - 25.0).abs() < 1.0, "{variance}");
    }

    /// Check that threads with few samples, and samples that stand for others, are in no stratum, and that the latter are one unit a window.
    #[test]
    fn few_and_thinned_samples_are_outside() {
        let mut strata = strata(&[(1, 4.0); 19]);
        strata.add(1, 19, 4.0, 32.0);
        assert!((0..20).all(|unit| strata.of(unit).is_none()));
        assert_eq!(unit(5, 30_000_000, 2.0), unit(6, 39_999_999, 2.0));
        assert_ne!(unit(5, 30_000_000, 2.0), unit(6, 40_000_000, 2.0));
        assert_eq!(unit(5, 30_000_000, 1.0), 5);
        let mut spread = Spread::new(&strata);
        (0..19).for_each(|i| spread.add(strata.of(i), 1.0));
        assert!((spread.variance() - 19.0 * 19.0 / 18.0).abs() < 1e-9);
    }
}
