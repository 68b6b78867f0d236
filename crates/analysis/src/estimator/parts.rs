//! Shares of the same accesses by many threads: what does not depend on the thread is computed once, in particular the order of the rounds. The
//! formulas are in the parent module. The order of each sum is fixed, so that every run gives identical digits.

use super::{Design, Sums, moved_by};
use firsttouch_model::Estimate;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// A draw without hits: it adds the mean of its group alone.
const NO_HIT: u32 = u32::MAX;

/// What one draw adds to the variance.
#[derive(Debug)]
struct Term {
    /// Its index among the hits.
    hit: u32,
    /// Index of the successive terms of one round that it belongs to.
    run: u32,
    weight: f64,
    rate: f64,
}

/// The draws of one group.
#[derive(Debug)]
struct GroupTerms {
    terms: Vec<Term>,
    /// The number of draws, also without hits.
    draws: usize,
    /// The sum of z where the group's mean counts.
    sum_z: Option<f64>,
    one_hit: f64,
}

/// A fraction as if all weights were right.
struct Sampling {
    estimate: Estimate,
    part_sum: f64,
}

/// The draws with hits of which parts are estimated.
#[derive(Debug)]
pub struct Whole<'a> {
    design: &'a Design,
    /// (draw, rate), each draw once.
    hits: Vec<(usize, f64)>,
    weights: Vec<f64>,
    /// The sum of weight x rate.
    sum: f64,
    groups: Vec<GroupTerms>,
    /// Over several groups, by hit: the index of its group.
    group_of: Vec<u32>,
    /// The runs in the order of their rounds, and by round where those of it end.
    runs: Vec<u32>,
    rounds: Vec<(usize, usize)>,
    /// The number of rounds with hits.
    hit_rounds: usize,
    /// The number of equally weighted hits that say as much.
    effective: f64,
    /// By class of doubts.
    doubts: Vec<Doubted>,
}

/// The hits that have an error in common.
#[derive(Debug)]
struct Doubted {
    error: f64,
    lasting: f64,
    hits: Vec<u32>,
}

impl Design {
    /// Prepares the estimates of parts of these draws. `hits`: (draw, rate), each draw once.
    #[must_use]
    pub fn whole(&self, hits: Vec<(usize, f64)>) -> Whole<'_> {
        let weights: Vec<f64> = hits.iter().map(|&(i, _)| self.weight(i)).collect();
        let sum = hits.iter().zip(&weights).map(|(&(_, rate), weight)| weight * rate).sum();
        let (groups, group_of, rounds_of_runs) = self.terms(&hits);
        let mut runs: Vec<u32> = (0..rounds_of_runs.len() as u32).collect();
        runs.sort_by_key(|&run| rounds_of_runs[run as usize]);
        let mut rounds: Vec<(usize, usize)> = Vec::new();
        for (at, &run) in runs.iter().enumerate() {
            let round = rounds_of_runs[run as usize];
            match rounds.last_mut() {
                Some(last) if last.0 == round => last.1 = at + 1,
                _ => rounds.push((round, at + 1)),
            }
        }
        let mut doubts: BTreeMap<NonZeroU32, Doubted> = BTreeMap::new();
        for (at, &(draw, _)) in hits.iter().enumerate() {
            for doubt in self.draws[draw].doubts.into_iter().flatten() {
                let new = || Doubted { error: doubt.error.into(), lasting: doubt.lasting.into(), hits: Vec::new() };
                doubts.entry(doubt.class).or_insert_with(new).hits.push(at as u32);
            }
        }
        Whole {
            design: self,
            hit_rounds: if group_of.is_empty() { rounds.len() } else { self.rounds_of(&hits) },
            effective: self.effective(hits.len() as u64, hits.iter().map(|&(i, _)| i)),
            doubts: doubts.into_values().collect(),
            sum,
            groups,
            group_of,
            runs,
            rounds,
            weights,
            hits,
        }
    }

    /// The number of rounds with hits.
    fn rounds_of(&self, hits: &[(usize, f64)]) -> usize {
        let mut rounds: Vec<usize> = hits.iter().map(|&(i, _)| self.round[i]).collect();
        rounds.sort_unstable();
        rounds.dedup();
        rounds.len()
    }

    /// The terms of each group, by hit the index of its group, and the round of each run.
    fn terms(&self, hits: &[(usize, f64)]) -> (Vec<GroupTerms>, Vec<u32>, Vec<usize>) {
        let mut indices: Vec<usize> = hits.iter().map(|&(i, _)| self.draws[i].group).collect();
        indices.sort_unstable();
        indices.dedup();
        let mut rounds: Vec<usize> = Vec::new();
        let mut term = |draw: usize, hit: u32, rate: f64| {
            if rounds.last() != Some(&self.round[draw]) {
                rounds.push(self.round[draw]);
            }
            Term { hit, run: rounds.len() as u32 - 1, weight: self.weight(draw), rate }
        };
        let all_hits = || hits.iter().enumerate();
        let several = indices.len() > 1;
        let mut hit_of = vec![NO_HIT; if several { self.draws.len() } else { 0 }];
        if several {
            all_hits().for_each(|(at, &(draw, _))| hit_of[draw] = at as u32);
        }
        let of_group = |&group: &usize| {
            let stratum = &self.strata[group];
            let terms = if several {
                let with_hit = |&i: &usize| (i, hit_of[i], hits.get(hit_of[i] as usize).map_or(0.0, |hit| hit.1));
                stratum.draws.iter().map(with_hit).map(|(i, hit, rate)| term(i, hit, rate)).collect()
            } else {
                // Windows without hits contribute nothing: part, whole and mean are 0 there.
                all_hits().map(|(at, &(i, rate))| term(i, at as u32, rate)).collect()
            };
            // Over several groups, the means of numerator and denominator do not cancel within each group.
            let has_mean = several && stratum.mean != 0.0;
            let sum_z = has_mean.then(|| stratum.draws.iter().map(|&i| self.draws[i].z).sum());
            GroupTerms { terms, draws: stratum.draws.len(), sum_z, one_hit: stratum.one_hit }
        };
        let groups = indices.iter().map(of_group).collect();
        let at = |draw: usize| indices.partition_point(|&group| group < self.draws[draw].group) as u32;
        let group_of = if several { hits.iter().map(|&(draw, _)| at(draw)).collect() } else { Vec::new() };
        (groups, group_of, rounds)
    }
}

impl Whole<'_> {
    /// The fraction that `parts` is of the whole, as an estimate. `parts`: for each hit the rate of the part, at most that of the whole. None if
    /// the whole is 0.
    #[must_use]
    pub fn part(&self, parts: &[f64]) -> Option<Estimate> {
        let Sampling { estimate, part_sum } = self.by_sampling(parts)?;
        Some(estimate.widened_by(self.moved(parts, part_sum, |class| class.error)))
    }

    /// The same, and the interval that it has by chance alone: what a longer run makes narrower.
    #[must_use]
    pub fn part_and_chance(&self, parts: &[f64]) -> Option<(Estimate, Estimate)> {
        let Sampling { estimate, part_sum } = self.by_sampling(parts)?;
        let all = self.moved(parts, part_sum, |class| class.error);
        let lasting = self.moved(parts, part_sum, |class| class.lasting);
        let shrinking = [0, 1].map(|side| (all[side].powi(2) - lasting[side].powi(2)).max(0.0).sqrt());
        Some((estimate.widened_by(all), estimate.widened_by(shrinking)))
    }

    /// How far the fraction may be too high and too low, because of these errors of the classes of doubts.
    fn moved(&self, parts: &[f64], part_sum: f64, error: impl Fn(&Doubted) -> f64) -> [f64; 2] {
        let own = |at: u32| (self.weights[at as usize] * parts[at as usize], self.weights[at as usize] * self.hits[at as usize].1);
        let of_class = |hits: &[u32]| hits.iter().map(|&at| own(at)).fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
        moved_by(part_sum, self.sum, self.doubts.iter().map(|class| (of_class(&class.hits), error(class))))
    }

    fn by_sampling(&self, parts: &[f64]) -> Option<Sampling> {
        if self.sum <= 0.0 || !self.sum.is_finite() {
            return None;
        }
        let (design, sum) = (self.design, self.sum);
        let part_sum: f64 = self.weights.iter().zip(parts).map(|(weight, part)| weight * part).sum();
        let value = (part_sum / sum).clamp(0.0, 1.0);
        let (mut sums, floors, of_runs) = self.by_window(parts, value);
        // As many units as there are rounds with hits: other rounds contribute nothing.
        let of_round = |begin: usize, end: usize| self.runs[begin..end].iter().map(|&run| of_runs[run as usize]).sum::<f64>();
        let mut begin = 0;
        let of_rounds = self.rounds.iter().map(|&(round, end)| (round, of_round(std::mem::replace(&mut begin, end), end)));
        let of_rounds: Vec<(usize, f64)> = of_rounds.collect();
        sums.by_round = of_rounds.iter().map(|(_, u)| u * u).sum();
        sums.rounds = self.hit_rounds;
        if sums.rounds < design.least_rounds {
            sums.by_round = 0.0;
        } else {
            sums.within_strata = design.within_strata(of_rounds.into_iter()).map(|variance| variance.max(floors));
        }
        let by_sampling = design.interval(value, sums, self.hits.len() as u64, self.effective);
        let estimate = if sums.within_strata.is_some() { by_sampling } else { self.at_least_as_at_ends(by_sampling) };
        Some(Sampling { estimate, part_sum })
    }

    /// With an interval that reaches at least as far as those of the values 0 and 1. Near them, the linearised variance is small also where one draw
    /// has nearly all accesses: it does not know that the value would be another one without that draw.
    fn at_least_as_at_ends(&self, estimate: Estimate) -> Estimate {
        let at = |value: f64| Estimate::fraction(value, 0.0, self.effective.max(1.0) as u64);
        Estimate { low: estimate.low.min(at(1.0).low), high: estimate.high.max(at(0.0).high), ..estimate }
    }

    /// The sums with windows as units, the sum of the groups' least variances, and what each run moves the fraction by.
    fn by_window(&self, parts: &[f64], value: f64) -> (Sums, f64, Vec<f64>) {
        let centre = self.centre(parts, value);
        let (mut sums, mut floors) = (Sums::default(), 0.0);
        let mut of_runs = vec![0.0; self.runs.len()];
        for (at, group) in self.groups.iter().enumerate() {
            let mean = group.sum_z.map_or(0.0, |sum_z| centre[at] / sum_z);
            let mut own = 0.0;
            for term in &group.terms {
                let part = parts.get(term.hit as usize).copied().unwrap_or(0.0);
                let u = term.weight * (part - value * term.rate - mean) / self.sum;
                own += u * u;
                sums.fourth += u.powi(4);
                of_runs[term.run as usize] += u;
            }
            let n = group.draws as f64;
            let floor = (group.one_hit / self.sum).powi(2) * value * (1.0 - value);
            floors += floor;
            sums.by_window += (own * if n > 1.0 { n / (n - 1.0) } else { 1.0 }).max(floor);
            sums.windows += group.draws;
        }
        (sums, floors, of_runs)
    }

    /// By group: what moves its mean, if there are several.
    fn centre(&self, parts: &[f64], value: f64) -> Vec<f64> {
        let mut centre = vec![0.0; self.groups.len()];
        for ((&group, &(draw, rate)), part) in self.group_of.iter().zip(&self.hits).zip(parts) {
            centre[group as usize] += self.design.draws[draw].z * (part - value * rate);
        }
        centre
    }
}
