//! Accesses estimated from watch windows, with variance.
//!
//! **What is estimated.** A window i watches one 8-byte word of one object for `held_ns`. With k_i accesses in that time
//! (rows of `accesses`, summed; windows cut off by the hit limit are already extrapolated) the word's rate is
//! r_i = k_i / held_ns, in accesses a ns. Given the round, object o was drawn with known expectation `inclusion`, and the
//! word uniformly over the object; so with
//!
//! z_i = words_i x round_ns_i / inclusion_i   (words x ns that the window stands for, words = bytes / 8)
//!
//! sum z_i r_i is an unbiased estimate of the accesses to any set of objects (Horvitz and Thompson 1952), and sum z_i of
//! their exposure: the sum over the objects of words x lifetime within the watched span.
//!
//! **Groups.** The exposure W_g of a group of objects is known exactly, from births and deaths, also for members that never
//! saw a window. The ratio estimate A_g = W_g x sum z_i r_i / sum z_i = K_g sum z_i r_i, K_g = W_g / sum z_i, removes the
//! noise of how often and when the group was drawn; its bias is of the order 1 / windows. Groups with fewer than 8 windows
//! keep K = 1: for them (some have no window at all) only the plain sum is unbiased over all of them together. So do groups
//! where W_g and sum z_i differ more than twofold over 30 windows or more: then they were not drawn as the exposure says.
//! Windows on memory not yet touched count with rate 0, because the exposure holds that time too.
//!
//! **Shares.** access share of g = A_g / sum A; share of a part v (a thread, the remote part) of g = sum z v / sum z r over
//! the same windows; over several groups R = sum_g K_g sum z v / sum_g K_g sum z r.
//!
//! **Variance**, by linearisation (Särndal, Swensson and Wretman 1992, section 5.5). Window i moves A_g by
//! e_i = K_g z_i (r_i - mean_g), mean_g = sum z r / sum z (0 where K = 1), and a ratio R = V / A by
//! u_i = (e_i of v - R x e_i of r) / A, which carries the covariance of numerator and denominator. Then
//! - windows as units: sum over groups of n / (n - 1) sum u_i^2;
//! - rounds as units (their windows see the same phase of the program): m / (m - 1) sum over rounds of (sum of u_i)^2, from
//!   20 rounds on; of hinting faults, which come scan by scan, from 3 on, with as many degrees of freedom at most as scans less one.
//!
//! The larger of the two is taken. Words are drawn stratified, which only makes the truth better than this. Timer samples have rounds as units only
//! (a round is a sample), and the threads are strata (`strata.rs`).
//! A group with few hits gets at least the variance of one hit in one window, h_g^2 with h_g = K_g mean(z_i / held_i): an
//! object that was never hit may still have been accessed.
//!
//! **Interval.** [`Estimate::fraction`] (symmetric in log-odds) with Student's quantile. Its degrees of freedom are those of
//! the variance itself: 2 (sum u^2)^2 / (sum u^4 - (sum u^2)^2 / n), since a few windows with many hits hold less information than many windows
//! with one hit. At 0 or 1 exactly, the rule of three with the effective number of hit windows (sum a)^2 / sum a^2, a = K z r. Near 0 or 1,
//! the interval of a part of windows or hints reaches at least as far as there: if one window has nearly all accesses, its u_i is about R only.
//!
//! **Hot addresses.** Rates of cut windows depend on the cost of a trap, which is known only to within `hot_error` (a part of the rate, the
//! same for all): a share's interval is widened by share x |cut part of the group - cut part of all| x `hot_error`, in quadrature.
//!
//! **Missing addresses.** Of a part m of all accesses, the addresses are not known (`missing`). A share s of accesses may be as low as s (1 - m), and as high as
//! s (1 - m) + m: so the ends of the interval move by s m and (1 - s) m.
//!
//! The error from pages whose first toucher is uncertain is added where remote fractions are made (`TouchSummary::home_error`).
//!
//! The derivation is part of the file, which is why the file is longer than others.

mod parts;

use crate::common_part::{CommonPart, OwnUnit};
use crate::strata::{Place, Spread, Strata};
use firsttouch_model::Estimate;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Below this many windows a group keeps K = 1.
const RATIO_WINDOWS: usize = 8;
/// From this many windows on, exposure and windows must agree within a factor of two.
const CHECK_WINDOWS: usize = 30;
/// Rounds as units need at least this many.
const ROUNDS: usize = 20;

/// Scans as units need at least this many.
const SCANS: usize = 3;

/// One draw: a window, or a hint.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    pub group: usize,
    pub round: u64,
    /// Words x ns that the draw represents.
    pub z: f64,
    pub held_ns: f64,
    /// Accesses to the word per ns; 0 without accesses, or if the memory was not yet touched.
    pub rate: f64,
    /// The hit limit ended the window early, so the rate depends on the estimated cost of a trap.
    pub cut: bool,
    /// What this draw stands for has errors that other draws have in common.
    pub doubts: [Option<Doubt>; 2],
}

/// An error that the weights of several draws have in common: those of one loop, whose rate was estimated once, or those of one thread in it.
///
/// Packed, because there are two of them for each sample.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, packed(4))]
pub struct Doubt {
    /// Draws with the same number have the error in common.
    pub class: NonZeroU32,
    /// The relative error of their weights, as half a 95 % interval.
    pub error: f32,
    /// The part of it that remains however long the program runs: what no sample shows. The rest is of chance too (the error of an estimated rate).
    pub lasting: f32,
}

/// How far a fraction (`part` of `all`) may be too high and too low, because the weights of classes of draws are uncertain: by class its part and all
/// of it, and its error. A small error moves the fraction by what its class differs from it. An error of 1 or more is a guess: a factor of up to 1 +
/// error, in either direction, so that a class with little weight may be most of all.
fn moved_by(part: f64, all: f64, classes: impl Iterator<Item = ((f64, f64), f64)>) -> [f64; 2] {
    let value = part / all;
    let squares = classes.map(|((own, of_class), error)| {
        if error < 1.0 {
            let moved = (error * (own - value * of_class) / all).powi(2);
            return [moved, moved];
        }
        let with = |factor: f64| (part + (factor - 1.0) * own) / (all + (factor - 1.0) * of_class) - value;
        let (more, less) = (with(1.0 + error), with(1.0 / (1.0 + error)));
        [more.min(less).min(0.0).powi(2), more.max(less).max(0.0).powi(2)]
    });
    squares.fold([0.0, 0.0], |sum, own| [sum[0] + own[0], sum[1] + own[1]]).map(f64::sqrt)
}

/// The draws on one group, and sums over them. The names follow the equations above.
#[derive(Clone, Debug, Default)]
struct Stratum {
    draws: Vec<usize>,
    k: f64,
    /// The mean rate that e is relative to (0 where K = 1).
    mean: f64,
    /// Estimated accesses, and those in cut windows.
    total: f64,
    cut: f64,
    /// The number of accesses that one hit in one window represents.
    one_hit: f64,
    /// Sums of e^2 and e^4.
    e2: f64,
    e4: f64,
    mismatch: bool,
}

impl Stratum {
    /// The variance of the group's accesses with windows as units; at least the variance of one hit.
    fn variance(&self) -> f64 {
        let n = self.draws.len() as f64;
        let correction = if n > 1.0 { n / (n - 1.0) } else { 1.0 };
        if self.draws.is_empty() { 0.0 } else { (self.e2 * correction).max(self.one_hit.powi(2)) }
    }
}

/// For each group, the sums over all other groups. They are accumulated from both ends, because subtracting a group's own part from the
/// total could leave only rounding error.
fn others(strata: &[Stratum]) -> Vec<(f64, f64)> {
    let own = |stratum: &Stratum| (stratum.variance(), stratum.e4);
    let mut others = vec![(0.0, 0.0); strata.len()];
    let mut add = |sum: &mut (f64, f64), (g, stratum): (usize, &Stratum)| {
        others[g] = (others[g].0 + sum.0, others[g].1 + sum.1);
        let (variance, fourth) = own(stratum);
        *sum = (sum.0 + variance, sum.1 + fourth);
    };
    let mut sum = (0.0, 0.0);
    strata.iter().enumerate().for_each(|one| add(&mut sum, one));
    sum = (0.0, 0.0);
    strata.iter().enumerate().rev().for_each(|one| add(&mut sum, one));
    others
}

/// The strata, and by round its place in them.
#[derive(Debug)]
struct RoundsInStrata {
    strata: Arc<Strata>,
    places: Vec<Option<Place>>,
    /// What the rounds move all accesses by.
    common: CommonPart,
}

/// All windows with their weights.
#[derive(Debug, Default)]
pub struct Design {
    draws: Vec<Draw>,
    strata: Vec<Stratum>,
    /// The index of each draw's round, and the sum of e in each round.
    round: Vec<usize>,
    round_e: Vec<f64>,
    round_e2: f64,
    /// The estimated accesses in each round.
    round_a: Vec<f64>,
    /// Where each draw is an access, so that an object without accesses has no draws: the effective number of all units.
    all_units: Option<f64>,
    /// By group, the part of all accesses in the rounds in which it lived; empty if that is not known.
    lives: Vec<f64>,
    /// The number of each round.
    numbers: Vec<u64>,
    /// Of timer samples: the strata, and by round its place in them.
    strata_of_rounds: Option<RoundsInStrata>,
    /// Estimated accesses, and those in cut windows.
    total: f64,
    cut: f64,
    /// By group: variance and sum of e^4 over all other groups.
    others: Vec<(f64, f64)>,
    /// The relative error that the rates of all cut windows have in common.
    hot_error: f64,
    /// Accesses whose addresses are not known, in the unit of `total`.
    missing: f64,
    /// By class of doubts: estimated accesses, and the relative error.
    doubts: BTreeMap<NonZeroU32, (f64, f64)>,
    /// The least number of rounds for which rounds are used as units.
    least_rounds: usize,
}

/// The sums that give a variance and its degrees of freedom.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    by_window: f64,
    fourth: f64,
    by_round: f64,
    /// In place of both, where rounds are in strata.
    within_strata: Option<f64>,
    windows: usize,
    /// Rounds with hits.
    rounds: usize,
}

/// How many units of equal size say as much as these (Kish).
fn effective(accesses: impl Iterator<Item = f64>) -> f64 {
    let (sum, squares) = accesses.fold((0.0, 0.0), |(sum, squares), a| (sum + a, squares + a * a));
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// Sums by round in a fixed order, so that every run gives identical digits.
#[derive(Default)]
struct RoundSums(Vec<(usize, f64)>);

impl RoundSums {
    fn add(&mut self, round: usize, u: f64) {
        match self.0.last_mut() {
            Some(last) if last.0 == round => last.1 += u,
            _ => self.0.push((round, u)),
        }
    }

    /// (round, sum), by round.
    fn sums(mut self) -> Vec<(usize, f64)> {
        self.0.sort_by_key(|entry| entry.0);
        self.0.chunk_by(|a, b| a.0 == b.0).map(|of_round| (of_round[0].0, of_round.iter().map(|entry| entry.1).sum())).collect()
    }
}

impl Design {
    /// `exposure[g]`: words x ns of group g within the watched span; 0 when unknown.
    #[must_use]
    pub fn new(draws: Vec<Draw>, exposure: &[f64]) -> Self {
        let mut strata = vec![Stratum::default(); exposure.len()];
        let mut rounds: HashMap<u64, usize> = HashMap::new();
        let mut round = Vec::with_capacity(draws.len());
        let mut numbers = Vec::new();
        for (i, draw) in draws.iter().enumerate() {
            strata[draw.group].draws.push(i);
            let next = rounds.len();
            let index = *rounds.entry(draw.round).or_insert(next);
            if index == next {
                numbers.push(draw.round);
            }
            round.push(index);
        }
        let mut round_e = vec![0.0; rounds.len()];
        for (stratum, &exposure) in strata.iter_mut().zip(exposure) {
            let n = stratum.draws.len() as f64;
            let sum_z: f64 = stratum.draws.iter().map(|&i| draws[i].z).sum();
            let sum_zr: f64 = stratum.draws.iter().map(|&i| draws[i].z * draws[i].rate).sum();
            let factor = exposure / sum_z;
            stratum.mismatch = stratum.draws.len() >= CHECK_WINDOWS && !(0.5..=2.0).contains(&factor);
            let by_ratio = stratum.draws.len() >= RATIO_WINDOWS && factor.is_finite() && factor > 0.0 && !stratum.mismatch;
            (stratum.k, stratum.mean) = if by_ratio { (factor, sum_zr / sum_z) } else { (1.0, 0.0) };
            stratum.total = stratum.k * sum_zr;
            stratum.cut = stratum.draws.iter().filter(|&&i| draws[i].cut).map(|&i| stratum.k * draws[i].z * draws[i].rate).sum();
            for &i in &stratum.draws {
                let e = stratum.k * draws[i].z * (draws[i].rate - stratum.mean);
                stratum.e2 += e * e;
                stratum.e4 += e.powi(4);
                stratum.one_hit += stratum.k * draws[i].z / draws[i].held_ns / n;
                round_e[round[i]] += e;
            }
        }
        let total = strata.iter().map(|s| s.total).sum();
        let cut = strata.iter().map(|s| s.cut).sum();
        let round_e2 = round_e.iter().map(|e| e * e).sum();
        let mut round_a = vec![0.0; rounds.len()];
        for (draw, &round) in draws.iter().zip(&round) {
            round_a[round] += strata[draw.group].k * draw.z * draw.rate;
        }
        let others = others(&strata);
        let mut design = Self {
            draws,
            strata,
            round,
            round_e,
            round_e2,
            round_a,
            all_units: None,
            lives: Vec::new(),
            numbers,
            strata_of_rounds: None,
            total,
            cut,
            others,
            hot_error: 0.0,
            missing: 0.0,
            doubts: BTreeMap::new(),
            least_rounds: ROUNDS,
        };
        design.doubts = design.doubtful((0..design.draws.len()).map(|i| (i, design.weight(i) * design.draws[i].rate)));
        design
    }

    /// The design of hinting faults, in which each draw was hit and a round is a scan. The exposure is unknown, so each draw stands for
    /// itself. `groups`: number of groups.
    #[must_use]
    pub fn of_scans(draws: Vec<Draw>, groups: usize) -> Self {
        let mut design = Self { least_rounds: SCANS, ..Self::new(draws, &vec![0.0; groups]) };
        design.all_units = Some(effective((0..design.draws.len()).map(|draw| design.weight(draw) * design.draws[draw].rate)));
        design.strata.iter_mut().for_each(|stratum| stratum.mismatch = false);
        design
    }

    /// The design of timer samples: each draw stands for itself, and a round is a sample. `groups`: number of groups.
    #[must_use]
    pub fn of_rounds(draws: Vec<Draw>, groups: usize) -> Self {
        let design = Self::of_scans(draws, groups);
        Self { least_rounds: ROUNDS, all_units: Some(effective(design.round_a.iter().copied())), ..design }
    }

    /// The same design, with the strata that its rounds are in.
    #[must_use]
    pub fn with_strata(self, strata: Arc<Strata>) -> Self {
        let places: Vec<Option<Place>> = self.numbers.iter().map(|&number| strata.of(number)).collect();
        let common = CommonPart::new(&strata, places.iter().copied().zip(self.round_e.iter().copied()));
        Self { strata_of_rounds: Some(RoundsInStrata { strata, places, common }), ..self }
    }

    /// The variance by rounds within their strata; `None` if there are no strata, or too few rounds to be units.
    fn within_strata(&self, e: impl Iterator<Item = (usize, f64)>) -> Option<f64> {
        let RoundsInStrata { strata, places, .. } = self.in_strata()?;
        let mut spread = Spread::new(strata);
        e.for_each(|(round, e)| spread.add(places[round], e));
        Some(spread.variance())
    }

    fn in_strata(&self) -> Option<&RoundsInStrata> {
        self.strata_of_rounds.as_ref().filter(|_| self.round_e.len() >= self.least_rounds)
    }

    /// The same variance of accesses that have this share. `own`: what their rounds move them by.
    fn share_within_strata(&self, share: f64, own: &[(usize, f64)]) -> Option<f64> {
        if !CommonPart::pays(own.len(), self.round_e.len()) {
            return self.within_strata(self.moved_by_rounds(share, own));
        }
        let RoundsInStrata { strata, places, common } = self.in_strata()?;
        let unit = |&(round, own): &(usize, f64)| OwnUnit { place: places[round], own, all: self.round_e[round] };
        Some(common.variance(strata, share, own.iter().map(unit).collect()))
    }

    /// The same design with this common relative error of the rates of cut windows.
    #[must_use]
    pub fn with_hot_error(self, hot_error: f64) -> Self {
        Self { hot_error, ..self }
    }

    /// The same design where so many more accesses were made, whose addresses are not known.
    #[must_use]
    pub fn with_missing(self, missing: f64) -> Self {
        Self { missing, ..self }
    }

    /// How far a share may be too high and too low, because the addresses of some accesses are not known.
    fn by_missing(&self, share: f64) -> [f64; 2] {
        let missing = self.missing();
        [share * missing, (1.0 - share) * missing]
    }

    /// The part of all accesses whose addresses are not known.
    #[must_use]
    pub fn missing(&self) -> f64 {
        let part = self.missing / (self.total + self.missing);
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Whether any draw saw an access.
    #[must_use]
    pub fn any(&self) -> bool {
        self.total > 0.0
    }

    /// The estimated number of accesses to a group.
    #[must_use]
    pub fn accesses(&self, group: usize) -> f64 {
        self.strata[group].total
    }

    /// The number of windows on a group.
    #[must_use]
    pub fn windows(&self, group: usize) -> usize {
        self.strata[group].draws.len()
    }

    /// The number of accesses that a rate of one access per ns in window `draw` represents: K z, in ns.
    #[must_use]
    pub fn weight(&self, draw: usize) -> f64 {
        self.strata[self.draws[draw].group].k * self.draws[draw].z
    }

    /// Whether the number of accesses that a draw stands for is a guess: it may be twice as many, or hardly any.
    #[must_use]
    pub fn is_guess(&self, draw: usize) -> bool {
        self.draws[draw].doubts.into_iter().flatten().any(|doubt| doubt.error >= 1.0)
    }

    /// Whether the windows on the group contradict its exposure: they differ more than twofold.
    #[must_use]
    pub fn mismatch(&self, group: usize) -> bool {
        self.strata[group].mismatch
    }

    /// The share of some groups together in all accesses. None when no access was seen at all.
    #[must_use]
    pub fn share(&self, groups: &[usize]) -> Option<Estimate> {
        if self.total <= 0.0 {
            return None;
        }
        let own = || groups.iter().map(|&group| &self.strata[group]);
        let sum = |part: fn(&Stratum) -> f64| own().map(part).sum::<f64>();
        let (accesses, one_hit) = (sum(|own| own.total), own().map(|own| own.one_hit).fold(0.0, f64::max));
        let share = accesses / self.total;
        let draws: Vec<usize> = own().flat_map(|own| own.draws.iter().copied()).collect();
        let hits = draws.iter().filter(|&&i| self.draws[i].rate > 0.0).count() as u64;
        let (of_own, of_others) = ((1.0 - share) / self.total, share / self.total);
        let others = match groups {
            [group] => self.others[*group],
            _ => self.others_than(groups),
        };
        let mut sums = Sums {
            windows: self.draws.len(),
            by_window: of_own.powi(2) * sum(Stratum::variance) + of_others.powi(2) * others.0,
            fourth: of_own.powi(4) * sum(|own| own.e4) + of_others.powi(4) * others.1,
            ..Sums::default()
        };
        // Rounds: all of them with -share x e, those with windows of the groups corrected.
        let mut own_e = RoundSums::default();
        for own in own() {
            for &i in &own.draws {
                own_e.add(self.round[i], own.k * self.draws[i].z * (self.draws[i].rate - own.mean));
            }
        }
        let own_e = own_e.sums();
        let all = share * share * self.round_e2;
        let corrected: f64 = own_e.iter().map(|&(r, e)| (e - share * self.round_e[r]).powi(2) - (share * self.round_e[r]).powi(2)).sum();
        sums.by_round = (all + corrected) / self.total.powi(2);
        sums.within_strata = self
            .share_within_strata(share, &own_e)
            .map(|variance| variance / self.total.powi(2))
            .map(|variance| variance.max(share * (1.0 - share) * (one_hit / self.total).powi(2)));
        if accesses <= 0.0 {
            // Never hit: at most as many accesses as three hits represent, on top of those seen, and as rounds without a hit leave open while it lived.
            let bound = |worth: f64| Estimate::fraction(0.0, 0.0, worth.clamp(0.0, 1e12) as u64);
            let by_hits = bound(self.total / one_hit.max(f64::MIN_POSITIVE));
            let life = groups.iter().map(|&group| self.during_life(group)).sum::<f64>();
            let high = by_hits.high.max(bound(self.units_that_show(&draws)).high.min(life));
            return Some(Estimate { samples: 0, high, ..by_hits }.stretched_by(self.by_missing(0.0)));
        }
        let by_sampling = self.interval(share, sums, hits, self.effective(hits, draws.iter().copied()));
        let by_traps = share * (sum(|own| own.cut) / accesses - self.cut / self.total).abs() * self.hot_error;
        let of_own = self.doubtful(draws.iter().map(|&i| (i, self.weight(i) * self.draws[i].rate)));
        let own = |class: &NonZeroU32| of_own.get(class).map_or(0.0, |own| own.0);
        let by_doubts = moved_by(accesses, self.total, self.doubts.iter().map(|(class, &(all, error))| ((own(class), all), error)));
        Some(by_sampling.widened(by_traps).widened_by(by_doubts).stretched_by(self.by_missing(share)))
    }

    /// The effective number of units with accesses that would have shown an object with these draws: the rounds in which it was drawn, or all units where each
    /// draw is an access. An object that was drawn only before the program began its work may have any share of it.
    fn units_that_show(&self, draws: &[usize]) -> f64 {
        self.all_units.unwrap_or_else(|| {
            let mut rounds: Vec<usize> = draws.iter().map(|&draw| self.round[draw]).collect();
            rounds.sort_unstable();
            rounds.dedup();
            effective(rounds.into_iter().map(|round| self.round_a[round]))
        })
    }

    /// The part of all accesses in the rounds in which a group lived.
    fn during_life(&self, group: usize) -> f64 {
        self.lives.get(group).copied().unwrap_or(1.0)
    }

    /// The same design, with the times in which the groups lived (birth and death, ns). `starts`: the time of each round, by its number.
    #[must_use]
    pub fn with_lives(mut self, lives: &[(u64, u64)], starts: &HashMap<u64, u64>) -> Self {
        let of_round = |(number, accesses): (&u64, &f64)| (starts.get(number).copied().unwrap_or(0), *accesses);
        let mut rounds: Vec<(u64, f64)> = self.numbers.iter().zip(&self.round_a).map(of_round).collect();
        rounds.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut sums = vec![0.0];
        for (_, accesses) in &rounds {
            sums.push(sums[sums.len() - 1] + accesses);
        }
        let all = sums[rounds.len()];
        // From the round in which the group was born.
        let within = |&(born, died): &(u64, u64)| {
            let from = rounds.partition_point(|round| round.0 <= born).saturating_sub(1);
            let until = rounds.partition_point(|round| round.0 <= died).max(from);
            if all > 0.0 { (sums[until] - sums[from]) / all } else { 1.0 }
        };
        self.lives = lives.iter().map(within).collect();
        self
    }

    /// How far the fraction that `part` is of `whole` may be too high and too low, because the weights of classes of draws are uncertain. Both are
    /// accesses by draw.
    #[must_use]
    pub fn doubt_of(&self, part: &[(usize, f64)], whole: &[(usize, f64)]) -> [f64; 2] {
        let sum = |values: &[(usize, f64)]| values.iter().map(|(_, value)| value).sum::<f64>();
        let (of_part, of_whole) = (self.doubtful(part.iter().copied()), self.doubtful(whole.iter().copied()));
        let own = |class: &NonZeroU32| of_part.get(class).map_or(0.0, |own| own.0);
        match sum(whole) {
            all if all > 0.0 => moved_by(sum(part), all, of_whole.iter().map(|(class, &(all, error))| ((own(class), all), error))),
            _ => [0.0; 2],
        }
    }

    /// What each round moves accesses by that have this share: `own` of them, less the share of all.
    fn moved_by_rounds(&self, share: f64, own: &[(usize, f64)]) -> impl Iterator<Item = (usize, f64)> {
        let mut own = own.iter().peekable();
        self.round_e.iter().enumerate().map(move |(round, all)| {
            let part = own.next_if(|(of, _)| *of == round).map_or(0.0, |(_, e)| *e);
            (round, part - share * all)
        })
    }

    /// Variance and sum of e^4 over all groups but these.
    fn others_than(&self, groups: &[usize]) -> (f64, f64) {
        let others = self.strata.iter().enumerate().filter(|(group, _)| !groups.contains(group));
        others.fold((0.0, 0.0), |sum, (_, other)| (sum.0 + other.variance(), sum.1 + other.e4))
    }

    /// Sums of (draw, value) over the draws of each class of doubts, with the error of the class. Ordered, so that every run gives identical
    /// digits.
    fn doubtful(&self, values: impl Iterator<Item = (usize, f64)>) -> BTreeMap<NonZeroU32, (f64, f64)> {
        let mut sums = BTreeMap::new();
        for (draw, value) in values {
            for doubt in self.draws[draw].doubts.into_iter().flatten() {
                let sum: &mut (f64, f64) = sums.entry(doubt.class).or_insert((0.0, f64::from(doubt.error)));
                sum.0 += value;
            }
        }
        sums
    }

    /// The fraction that `parts` is of `whole`, as an estimate. `whole`: (draw, rate) of draws with hits, each draw once; `parts`: for each
    /// of them the rate of the part, at most that of the whole. None if the whole is 0. For several parts of one whole, see [`Self::whole`].
    #[must_use]
    pub fn part_of(&self, whole: Vec<(usize, f64)>, parts: &[f64]) -> Option<Estimate> {
        self.whole(whole).part(parts)
    }

    /// The number of equally weighted draws that say as much as these, of which `hits` have hits.
    fn effective(&self, hits: u64, draws: impl Iterator<Item = usize>) -> f64 {
        let (mut a1, mut a2) = (0.0, 0.0);
        for i in draws {
            let a = self.weight(i) * self.draws[i].rate;
            a1 += a;
            a2 += a * a;
        }
        if a2 > 0.0 { (a1 * a1 / a2).clamp(1.0, hits.max(1) as f64) } else { 1.0 }
    }

    fn interval(&self, value: f64, sums: Sums, hits: u64, effective: f64) -> Estimate {
        let m = self.round_e.len() as f64;
        let by_round = if self.round_e.len() >= self.least_rounds { sums.by_round * m / (m - 1.0) } else { 0.0 };
        let spread = sums.fourth - sums.by_window.powi(2) / (sums.windows.max(1) as f64);
        let degrees =
            if spread > 0.0 { (2.0 * sums.by_window.powi(2) / spread).clamp(1.0, sums.windows.max(2) as f64 - 1.0) } else { effective };
        let by_scan = self.least_rounds == SCANS && by_round > sums.by_window;
        let degrees = if by_scan { degrees.min(sums.rounds as f64 - 1.0) } else { degrees };
        let extreme = value <= f64::EPSILON || value >= 1.0 - f64::EPSILON;
        let samples = if extreme { effective } else { degrees + 1.0 };
        let error = sums.within_strata.unwrap_or(sums.by_window.max(by_round)).sqrt();
        let estimate = Estimate::fraction(value, if error.is_finite() { error } else { 1.0 }, samples.max(1.0) as u64);
        Estimate { samples: hits, ..estimate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(group: usize, rates: &[f64]) -> Vec<Draw> {
        rates
            .iter()
            .enumerate()
            .map(|(i, &rate)| Draw { group, round: i as u64, z: 1.0, held_ns: 1.0, rate, cut: false, doubts: [None; 2] })
            .collect()
    }

    /// Check that the exposure scales a group with enough windows, and not one with few.
    #[test]
    fn exposure_scales_groups() {
        let design = Design::new([draws(0, &[1.0; 10]), draws(1, &[1.0; 2])].concat(), &[15.0, 3.0]);
        assert!((design.accesses(0) - 15.0).abs() < 1e-9 && (design.accesses(1) - 2.0).abs() < 1e-9);
    }

    /// Check that a group without hits has share 0 and an upper limit that corresponds to about three hits.
    #[test]
    fn never_hit_is_bounded() {
        let rates: Vec<f64> = vec![1.0; 300];
        let design = Design::new([draws(0, &rates), draws(1, &[0.0; 300])].concat(), &[300.0, 300.0]);
        let share = design.share(&[1]).unwrap();
        assert_eq!((share.value, share.low, share.samples), (0.0, 0.0, 0));
        assert!((share.high - 0.01).abs() < 0.002, "{share:?}");
    }

    fn design_with(later: &[Draw], starts: &HashMap<u64, u64>, until: u64) -> Design {
        let draws = [draws(1, &[0.0; 40]), later.to_vec()].concat();
        Design::new(draws, &[40.0, 40.0]).with_lives(&[(0, u64::MAX), (0, until)], starts)
    }

    /// Check that rounds without any access bound nothing: an object that was drawn only before the program began its work may have any share. One without
    /// draws, where each draw is an access, is bounded by the number of samples.
    #[test]
    fn rounds_without_accesses_show_nothing() {
        let later: Vec<Draw> = draws(0, &[1.0; 40]).into_iter().map(|draw| Draw { round: draw.round + 1000, ..draw }).collect();
        let design = Design::new([draws(1, &[0.0; 40]), later.clone()].concat(), &[40.0, 40.0]);
        let share = design.share(&[1]).unwrap();
        assert_eq!((share.value, share.low, share.high), (0.0, 0.0, 1.0));
        let starts = design.numbers.iter().map(|&number| (number, 10 * number)).collect();
        let with_life = |until: u64| design_with(&later, &starts, until).share(&[1]).unwrap().high;
        assert!((with_life(u64::MAX) - 1.0).abs() < 1e-9 && (with_life(10_100) - 11.0 / 40.0).abs() < 1e-9, "{}", with_life(10_100));
        assert!(with_life(300) < 0.08, "it died before the program began its work: {}", with_life(300));
        let samples = Design::of_rounds(later, 2).share(&[1]).unwrap();
        assert!((samples.high - 0.072).abs() < 0.005, "{samples:?}");
    }

    /// Check that a constant part of every window has no variance beyond the floor of one hit.
    #[test]
    fn constant_part_is_narrow() {
        let design = Design::new(draws(0, &[4.0; 400]), &[400.0]);
        let whole: Vec<(usize, f64)> = (0..400).map(|i| (i, 4.0)).collect();
        let parts = vec![1.0; whole.len()];
        let part = design.part_of(whole, &parts).unwrap();
        assert!((part.value - 0.25).abs() < 1e-9 && part.half_width() < 0.01, "{part:?}");
    }

    /// Check that a part near 0 or 1 is not certain if one draw has nearly all accesses, and that draws of one weight keep it narrow.
    #[test]
    fn one_draw_shows_no_part() {
        let part = |rates: &[f64], own: &dyn Fn(usize) -> bool| {
            let design = Design::new(draws(0, rates), &[rates.len() as f64]);
            let parts: Vec<f64> = rates.iter().enumerate().map(|(i, &rate)| if own(i) { rate } else { 0.0 }).collect();
            design.part_of(rates.iter().copied().enumerate().collect(), &parts).unwrap()
        };
        let mut hot = vec![1.0; 80];
        (hot[40], hot[41]) = (50_000.0, 75.0);
        let (least, most) = (part(&hot, &|i| i == 41), part(&hot, &|i| i != 41));
        assert!(least.value < 0.002 && least.high > 0.9, "{least:?}");
        assert!(most.value > 0.998 && most.low < 0.1, "{most:?}");
        let even = part(&[1.0; 800], &|i| i % 20 == 1);
        assert!((even.value - 0.05).abs() < 1e-9 && even.high < 0.08, "{even:?}");
    }

    /// Check that the error of hot addresses widens the shares of groups with and without them, and widens nothing if all groups are hot.
    #[test]
    fn doubts_about_traps_count() {
        let half = |hot: &[bool; 2]| {
            let mut all = [draws(0, &[4.0; 400]), draws(1, &[4.0; 400])].concat();
            all.iter_mut().for_each(|draw| draw.cut = hot[draw.group]);
            let design = Design::new(all, &[400.0, 400.0]).with_hot_error(0.2);
            design.share(&[1]).unwrap().half_width()
        };
        let (none, one, both) = (half(&[false, false]), half(&[true, false]), half(&[true, true]));
        assert!(none < 0.01 && (one - 0.05).abs() < 0.01 && (both - none).abs() < 1e-9, "{none} {one} {both}");
    }

    /// Check that a class of which no speed is known may have ten times as many accesses or a tenth: a loop with a twentieth of the time may make a
    /// third of them. Where all classes have the same part, and where there is one, nothing changes.
    #[test]
    fn guesses_are_factors() {
        let classes = |b: f64| [((0.475, 0.95), 9.0), ((b, 0.05), 9.0)];
        let [down, up] = moved_by(0.475, 1.0, classes(0.0).into_iter());
        assert!((0.475 - down - 0.267).abs() < 0.002 && (up - 0.032).abs() < 0.002, "{down} {up}");
        assert_eq!(moved_by(0.5, 1.0, classes(0.025).into_iter()).map(|moved| moved < 1e-12), [true, true]);
        assert_eq!(moved_by(0.3, 1.0, [((0.3, 1.0), 9.0)].into_iter()).map(|moved| moved < 1e-12), [true, true]);
        let small = moved_by(0.475, 1.0, [((0.475, 0.95), 0.1), ((0.0, 0.05), 0.1)].into_iter());
        assert_eq!(small[0], small[1], "a small error moves both ends alike");
    }

    /// Check that chance has the part of an error that shrinks with time, and not what no sample shows.
    #[test]
    fn lasting_doubts_are_not_of_chance() {
        let class = NonZeroU32::MIN;
        let estimates = |error, lasting| {
            let mut all = draws(0, &[1.0; 400]);
            all.iter_mut().take(200).for_each(|draw| draw.doubts[0] = Some(Doubt { class, error, lasting }));
            let design = Design::new(all, &[400.0]);
            let parts: Vec<f64> = (0..400).map(|at| if at < 200 { 1.0 } else { 0.0 }).collect();
            design.whole((0..400).map(|at| (at, 1.0)).collect()).part_and_chance(&parts).unwrap()
        };
        let (sure, by_chance) = estimates(0.0, 0.0);
        assert_eq!(sure, by_chance);
        for (error, lasting) in [(0.5, 0.5), (9.0, 9.0)] {
            let (all, chance) = estimates(error, lasting);
            assert!(all.half_width() > 1.2 * sure.half_width() && chance == sure, "{all:?} {chance:?}");
        }
        let (all, chance) = estimates(0.5, 0.0);
        assert!((all.half_width() - chance.half_width()).abs() < 1e-9, "{all:?} {chance:?}");
        let (all, chance) = estimates(0.5, 0.3);
        assert!(all.half_width() > chance.half_width() && chance.half_width() > sure.half_width(), "{all:?} {chance:?} {sure:?}");
    }
}
