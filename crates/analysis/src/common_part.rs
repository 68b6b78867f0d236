//! The variance of figures that differ from a common figure in few units: the shares of many objects.
//!
//! The share s of an object moves by U_i = e_i - s a_i, where a_i is what unit i moves all accesses by, and e_i those to the object. Most units have no
//! access to one object of many, so their part of the variance is s^2 times that of the a_i, which is summed once. The cost of a share is then that
//! of the object's own units, and not of all units. (Subtracting the common part of own units costs digits if they are most of all; their
//! variance is summed in full, see [`CommonPart::pays`].)

use crate::strata::{Moved, Place, RUNS, Strata, Sums, variance_of_all};
use crate::work;

/// Own units are worth a sum of their own if they are at most one of so many.
const FEW: usize = 8;

/// What all units move a figure by, and the variance of that.
#[derive(Debug)]
pub struct CommonPart {
    /// By stratum and length of runs: what each run moves it by.
    of_runs: Vec<[Vec<f64>; RUNS.len()]>,
    moved: Vec<Moved>,
    /// By length of runs: the variance over all strata.
    variances: [f64; RUNS.len()],
    outside: f64,
    units_outside: usize,
}

/// A unit that moves the figure by `own` less the common part; `all` is what the common part is for a share of 1.
#[derive(Clone, Copy, Debug)]
pub struct OwnUnit {
    pub place: Option<Place>,
    pub own: f64,
    pub all: f64,
}

impl CommonPart {
    /// `units`: the place of each, and what it moves all by.
    pub fn new(strata: &Strata, units: impl Iterator<Item = (Option<Place>, f64)>) -> Self {
        let of_runs = strata.all().iter().map(|stratum| stratum.runs.each_ref().map(|runs| vec![0.0; runs.len()])).collect();
        let mut common = Self { of_runs, moved: Vec::new(), variances: [0.0; RUNS.len()], outside: 0.0, units_outside: 0 };
        for (place, all) in units {
            match place {
                Some(place) => {
                    for (runs, length) in common.of_runs[place.stratum].iter_mut().zip(RUNS) {
                        runs[place.number / length] += all;
                    }
                }
                None => {
                    common.outside += all * all;
                    common.units_outside += 1;
                }
            }
        }
        common.moved = strata.all().iter().zip(&common.of_runs).map(|(stratum, runs)| Moved::by_all_runs(stratum, runs)).collect();
        let of_all = |at: usize| strata.all().iter().zip(&common.moved).map(|(stratum, moved)| moved.variance(stratum, at)).sum();
        common.variances = std::array::from_fn(of_all);
        common
    }

    /// Whether [`Self::variance`] costs less than adding all units.
    #[must_use]
    pub fn pays(own: usize, all: usize) -> bool {
        own.saturating_mul(FEW) < all
    }

    /// The variance of a figure that each unit moves by -`share` times what it moves all by, and these units by something of their own, too. Those of
    /// one stratum come in the order of their numbers.
    #[must_use]
    pub fn variance(&self, strata: &Strata, share: f64, mut own: Vec<OwnUnit>) -> f64 {
        own.sort_by_key(|unit| unit.place.map(|place| place.stratum));
        let mut outside = share * share * self.outside;
        let mut variances = self.variances.map(|variance| share * share * variance);
        for units in own.chunk_by(|a, b| a.place.map(|place| place.stratum) == b.place.map(|place| place.stratum)) {
            let Some(Place { stratum: index, .. }) = units[0].place else {
                outside += units.iter().map(|unit| (unit.own - share * unit.all).powi(2) - (share * unit.all).powi(2)).sum::<f64>();
                continue;
            };
            let (stratum, common) = (&strata.all()[index], &self.moved[index]);
            let moved = common.times(-share).with(units, share, stratum, &self.of_runs[index]);
            for (at, variance) in variances.iter_mut().enumerate() {
                *variance += moved.variance(stratum, at) - share * share * common.variance(stratum, at);
            }
        }
        variance_of_all(outside.max(0.0), self.units_outside, |at| variances[at])
    }
}

impl Moved {
    /// The sums over all runs of a stratum.
    fn by_all_runs(stratum: &crate::strata::Stratum, runs: &[Vec<f64>; RUNS.len()]) -> Self {
        let sums = |at: usize| {
            let with_time = runs[at].iter().zip(&stratum.runs[at]).map(|(moved, time)| moved * time).sum();
            Sums::whole_of(with_time, runs[at].iter().map(|moved| moved * moved).sum())
        };
        Self { u: runs[0].iter().sum(), of_runs: std::array::from_fn(sums) }
    }

    fn times(self, factor: f64) -> Self {
        let sums = self.of_runs.map(|sums| Sums::whole_of(factor * sums.with_time, factor * factor * sums.squares));
        Self { u: factor * self.u, of_runs: sums }
    }

    /// With the own part of some units. `runs`: what each run moves by for a share of 1.
    fn with(mut self, units: &[OwnUnit], share: f64, stratum: &crate::strata::Stratum, runs: &[Vec<f64>; RUNS.len()]) -> Self {
        self.u += units.iter().map(|unit| unit.own).sum::<f64>();
        for (at, length) in RUNS.into_iter().enumerate() {
            let run = |unit: &OwnUnit| unit.place.map_or(0, |place| place.number / length);
            let sums = &mut self.of_runs[at];
            for units in units.chunk_by(|a, b| run(a) == run(b)) {
                work::step();
                let (own, common) = (units.iter().map(|unit| unit.own).sum::<f64>(), share * runs[at][run(&units[0])]);
                sums.squares += (own - common).powi(2) - common * common;
                sums.with_time += own * stratum.runs[at][run(&units[0])];
            }
            sums.squares = sums.squares.max(0.0);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::{Design, Draw};
    use crate::strata::Spread;
    use std::sync::Arc;

    /// Check that the variance by own units is that of all units added one by one, in strata and outside of them.
    #[test]
    fn few_units_give_the_variance_of_all() {
        let mut strata = Strata::default();
        let number = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24);
        (0..3000_i64).for_each(|i| strata.add(i % 7, i, 3.0 + number(i.unsigned_abs()), 1.0));
        // Some units have no place: they are not among the samples.
        let places: Vec<Option<Place>> = (0..3100).map(|unit| strata.of(unit)).collect();
        let all: Vec<f64> = (0..3100).map(|i| number(i + 5000) - 0.3).collect();
        let common = CommonPart::new(&strata, places.iter().copied().zip(all.iter().copied()));
        for (every, share) in [(10_usize, 0.1), (35, 0.6), (1000, 0.001)] {
            let own = |i: usize| if i.is_multiple_of(every) { number(i as u64 + 9000) } else { 0.0 };
            let mut spread = Spread::new(&strata);
            (0..3100).for_each(|i| spread.add(places[i], own(i) - share * all[i]));
            let units = (0..3100).step_by(every).map(|i| OwnUnit { place: places[i], own: own(i), all: all[i] }).collect();
            let (dense, sparse) = (spread.variance(), common.variance(&strata, share, units));
            assert!((sparse / dense - 1.0).abs() < 1e-9, "{every}: {sparse} for {dense}");
        }
    }

    /// Check that the shares of all objects together cost no more than in proportion to the samples.
    #[test]
    fn shares_cost_what_their_samples_do() {
        let design = |samples: usize| {
            let mut strata = Strata::default();
            (0..samples as i64).for_each(|i| strata.add(i % 8, i, 1.0, 1.0));
            let draw = |i: usize| Draw {
                group: i % (samples / 4),
                round: i as u64,
                z: 1.0,
                held_ns: 1.0,
                rate: 1.0,
                cut: false,
                doubts: [None; 2],
            };
            Design::of_rounds((0..samples).map(draw).collect(), samples / 4).with_strata(Arc::new(strata))
        };
        let steps_of = |samples: usize| {
            let design = design(samples);
            work::steps(|| {
                let shares: f64 = (0..samples / 4).filter_map(|group| design.share(&[group])).map(|share| share.value).sum();
                assert!((shares - 1.0).abs() < 1e-9, "{shares}");
            })
        };
        work::assert_growth("shares", work::LINEAR, steps_of, 2000);
    }
}
