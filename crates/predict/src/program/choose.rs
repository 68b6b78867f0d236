//! Chooses a placement for each object: for the plan, and as the best of a search through all combinations.

use super::sums::{Loads, Sums};
use super::{AS_IS, Placement, Placements, Program};
use crate::model::TeamError;
use std::collections::{BTreeMap, BTreeSet};

/// A change that gains less than this counts as no gain.
pub const LEAST_GAIN: f64 = 1.01;

/// All chosen placements together may take at most this many times as long as the program as it is.
const WORSE: f64 = 1.01;
/// A later option must take at most this many times as long as an earlier one; so must a change of a chosen placement. (If it makes more accesses
/// remote, `1 / LITTLE`.)
const BETTER: f64 = 0.99;

/// The placement of each object, by id; other objects stay as they are.
pub type PerObject = BTreeMap<i64, Placement>;

/// A time ratio above this (and below 1) is noise of the samples.
const CLEARLY: f64 = 0.995;
/// A placement without a gain may add at most this fraction of all accesses to the remote ones, or what is within the interval of the samples: memory
/// that all threads use at random is half remote on two nodes wherever it is, and samples of it show 45 to 55 %.
const REMOTE: f64 = 0.02;
/// A gain that costs local accesses must be larger.
const LITTLE: f64 = 1.05;

/// The possible placements of an object's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub object: i64,
    /// Objects that are placed as it is, whatever that is: the same of other processes.
    pub others: Vec<i64>,
    /// The preferred option first, without `AsIs`.
    pub options: Vec<Placement>,
}

/// Why an object is left as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Left {
    /// Its best option by itself is slower: that option, and its time / the time as it is.
    Slower(Placement, f64),
    /// Together with the placements of other objects, it would cost time.
    Together,
    /// It gains nothing, or nothing that is certain: the gain of the placements of its finding, or of all memory that would only be spread.
    NoGain(f64),
}

/// The chosen placements.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// By object; all others stay as they are.
    pub placements: PerObject,
    pub left: Vec<(i64, Left)>,
    /// Time with the placements / time as it is.
    pub time_ratio: f64,
    /// Remote fraction of the traffic, before and after.
    pub remote: [f64; 2],
}

/// The best of all combinations of placements of the objects with most traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub placements: PerObject,
    /// The number of objects that were varied; other objects follow the plan.
    pub objects: usize,
    /// The number of combinations that were computed.
    pub tried: usize,
}

/// The objects that are placed as a candidate is.
struct Kin(BTreeMap<i64, Vec<i64>>);

impl Kin {
    fn of(candidates: &[Candidate]) -> Self {
        Self(candidates.iter().map(|candidate| (candidate.object, candidate.others.clone())).collect())
    }

    /// The placement of a candidate, and of those that follow it.
    fn placed(&self, object: i64, placement: Placement) -> Vec<(i64, Placement)> {
        let others = self.0.get(&object).into_iter().flatten();
        std::iter::once(&object).chain(others).map(|object| (*object, placement)).collect()
    }

    fn all(&self, chosen: &PerObject) -> PerObject {
        chosen.iter().flat_map(|(object, placement)| self.placed(*object, *placement)).collect()
    }
}

impl Program<'_> {
    /// A layout that others are compared with; times are in seconds.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn trial(&self, layout: Placements) -> Result<Trial<'_, '_>, TeamError> {
        Trial::new(self, layout, 1.0)
    }

    /// Chooses a placement for each object that can be placed. First, each object gets its best option that costs no time by itself.
    /// Options are dropped while all together cost time. Then each placement is changed as long as that gains time. Finally, placements
    /// that gain no time but make accesses remote are removed, if the samples are sure of that.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn choose(&self, candidates: &[Candidate]) -> Result<Choice, TeamError> {
        let (as_is, remote_before) = self.outcome_of(&AS_IS)?;
        if !(as_is.0.is_finite() && as_is.0 > 0.0) {
            return Err(TeamError::Time { seconds: as_is.0 });
        }
        let kin = Kin::of(candidates);
        let mut alone: BTreeMap<i64, (Placement, f64)> = BTreeMap::new();
        for candidate in candidates {
            let mut best: Option<(Placement, (f64, f64))> = None;
            for option in &candidate.options {
                let (time, remote) = self.outcome_of(&self.layout(&kin.placed(candidate.object, *option).into_iter().collect()))?;
                let found = (time.0 / as_is.0, remote);
                if best.is_none_or(|(_, known)| is_better(found, known)) {
                    best = Some((*option, found));
                }
            }
            alone.extend(best.map(|(option, (ratio, _))| (candidate.object, (option, ratio))));
        }
        let mut chosen: PerObject =
            alone.iter().filter(|(_, (_, ratio))| *ratio <= WORSE).map(|(object, (option, _))| (*object, *option)).collect();
        let mut now = Trial::new(self, self.layout(&kin.all(&chosen)), as_is.0)?;
        while now.ratio > WORSE && !chosen.is_empty() {
            // Drop the object whose placement costs the most.
            let mut best: Option<(i64, Tried)> = None;
            for object in chosen.keys() {
                let without = now.with_all(&kin.placed(*object, Placement::AsIs))?;
                if best.as_ref().is_none_or(|(_, least)| without.ratio < least.ratio) {
                    best = Some((*object, without));
                }
            }
            let Some((object, without)) = best else { break };
            chosen.remove(&object);
            now.accept(without);
        }
        improve(candidates, &kin, &mut chosen, &mut now)?;
        let mut useless: BTreeSet<i64> = BTreeSet::new();
        for object in chosen.keys().copied().collect::<Vec<_>>() {
            let without = now.with_all(&kin.placed(object, Placement::AsIs))?;
            let is_as_fast = without.ratio * BETTER <= now.ratio && without.ratio <= now.ratio.max(WORSE);
            let is_dominated = without.ratio < now.ratio * CLEARLY && without.remote <= now.remote + 1e-9;
            let adds_remote = || -> Result<bool, TeamError> {
                Ok(without.remote < now.remote - REMOTE
                    && self.price(&[without.layout.clone(), now.layout.clone()])?.adds_remote(0, 1) > 0.0)
            };
            if is_dominated || (is_as_fast && adds_remote()?) {
                chosen.remove(&object);
                now.accept(without);
                useless.insert(object);
            }
        }
        let left = candidates.iter().filter(|candidate| !chosen.contains_key(&candidate.object)).filter_map(|candidate| {
            let (option, ratio) = alone.get(&candidate.object)?;
            let why = match ratio {
                ratio if *ratio > WORSE => Left::Slower(*option, *ratio),
                ratio if useless.contains(&candidate.object) => Left::NoGain(1.0 / ratio),
                _ => Left::Together,
            };
            Some((candidate.object, why))
        });
        let left = left.collect();
        let placements = kin.all(&chosen);
        Ok(Choice { placements, left, time_ratio: now.ratio, remote: [remote_before, now.remote] })
    }

    /// Leaves memory as it is that would only be spread, if that makes more accesses remote, and the gain of spreading all of it is little and within its
    /// own interval, from the samples and the model's relative error, of no gain. `error` is asked for only where that decides.
    ///
    /// # Errors
    /// When the model refuses the team, or has no error.
    pub fn leave_what_is_spread_in_vain<E: From<TeamError>>(
        &self,
        mut choice: Choice,
        error: &dyn Fn() -> Result<f64, E>,
    ) -> Result<Choice, E> {
        let is_spread = |placement: &Placement| matches!(placement, Placement::Interleave | Placement::WeightedInterleave);
        let (spread, rest): (PerObject, PerObject) = choice.placements.iter().partition(|(_, placement)| is_spread(placement));
        if spread.is_empty() {
            return Ok(choice);
        }
        let (without, with) = (self.layout(&rest), self.layout(&choice.placements));
        let (time, remote) = self.outcome_of(&without)?;
        if choice.remote[1] <= remote + REMOTE {
            return Ok(choice);
        }
        let priced = self.price(&[without, with])?;
        if priced.adds_remote(0, 1) <= 0.0 {
            return Ok(choice);
        }
        let gain = priced.gain(0, 1, error()?);
        if gain.interval[0] > 1.0 || gain.gain > LITTLE {
            return Ok(choice);
        }
        let as_is = self.outcome_of(&AS_IS)?.0;
        choice.left.extend(spread.keys().map(|id| (*id, Left::NoGain(gain.gain))));
        (choice.placements, choice.time_ratio, choice.remote[1]) = (rest, time.0 / as_is.0, remote);
        Ok(choice)
    }

    /// Leaves the groups as they are (each the objects of one finding) whose chosen placements gain nothing by themselves, as long as all that
    /// is left so costs less than 1 % together.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn leave_what_gains_nothing(&self, groups: &[&[i64]], mut choice: Choice) -> Result<Choice, TeamError> {
        let as_is = self.outcome_of(&AS_IS)?.0;
        let time = |chosen: &PerObject| -> Result<f64, TeamError> { Ok(self.outcome_of(&self.layout(chosen))?.0.0 / as_is.0) };
        let mut gains = Vec::new();
        for group in groups {
            let own: PerObject = group.iter().filter_map(|id| Some((*id, *choice.placements.get(id)?))).collect();
            if !own.is_empty() {
                gains.push((1.0 / time(&own)?, own));
            }
        }
        gains.retain(|(gain, _)| *gain < LEAST_GAIN);
        gains.sort_by(|a, b| a.0.total_cmp(&b.0));
        let most = choice.time_ratio / BETTER;
        for (gain, own) in gains {
            let rest: PerObject = choice.placements.iter().filter(|(id, _)| !own.contains_key(id)).map(|(id, to)| (*id, *to)).collect();
            let ratio = time(&rest)?;
            if ratio < most {
                (choice.placements, choice.time_ratio) = (rest, ratio);
                choice.left.extend(own.keys().map(|id| (*id, Left::NoGain(gain))));
            }
        }
        choice.remote[1] = self.outcome_of(&self.layout(&choice.placements))?.1;
        Ok(choice)
    }

    /// Computes all combinations of placements: as it is, parallel first touch, interleaved, by weights, and on each node. As many of the
    /// objects with the most traffic are varied as `most` combinations allow; the others are placed as in `plan`.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn search(&self, plan: &PerObject, most: usize) -> Result<Found, TeamError> {
        let mut options = vec![Placement::AsIs, Placement::ParallelFirstTouch, Placement::Interleave, Placement::WeightedInterleave];
        options.extend(self.nodes.iter().map(|node| Placement::OneNode { node: *node }));
        let volume = |object: &firsttouch_model::traffic::ObjectTraffic| object.samples.iter().map(|sample| sample.volume()).sum::<f64>();
        let mut objects: Vec<(f64, i64)> = self.traffic.objects.iter().map(|object| (volume(object), object.id)).collect();
        objects.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut count, mut total) = (0, 1_usize);
        while count < objects.len() && total.saturating_mul(options.len()) <= most {
            (count, total) = (count + 1, total * options.len());
        }
        let known = Trial::new(self, self.layout(plan), 1.0)?;
        let mut best = (plan.clone(), known.ratio);
        for combination in 0..total {
            let mut rest = combination;
            let mut changes = Vec::with_capacity(count);
            for (_, object) in &objects[..count] {
                changes.push((*object, options[rest % options.len()]));
                rest /= options.len();
            }
            let time = known.with_all(&changes)?.ratio;
            if time < best.1 * (1.0 - 1e-9) {
                let mut placements = plan.clone();
                placements.extend(changes);
                best = (placements, time);
            }
        }
        best.0.retain(|_, placement| *placement != Placement::AsIs);
        Ok(Found { placements: best.0, objects: count, tried: total })
    }
}

/// A layout that others are compared with which differ in few objects.
pub struct Trial<'p, 'm> {
    program: &'p Program<'m>,
    layout: Placements,
    loads: Loads,
    sums: Sums,
    /// The time that all times are given in.
    unit: f64,
    pub(super) ratio: f64,
    pub(super) remote: f64,
}

/// A layout that was compared.
pub(super) struct Tried {
    pub(super) layout: Placements,
    pub(super) ratio: f64,
    pub(super) remote: f64,
}

impl<'p, 'm> Trial<'p, 'm> {
    fn new(program: &'p Program<'m>, layout: Placements, unit: f64) -> Result<Self, TeamError> {
        let loads = program.loads(&layout, None);
        let sums = program.sums(&program.bytes, &program.locate(&layout, &loads));
        let outcome = program.outcome_near((&layout, &loads, &sums), &layout)?;
        Ok(Self { program, layout, loads, sums, unit, ratio: outcome.time.0 / unit, remote: outcome.remote_fraction })
    }

    /// The outcome if these objects are placed so.
    pub(super) fn with_all(&self, changes: &[(i64, Placement)]) -> Result<Tried, TeamError> {
        let layout = self.program.changed_in(&self.layout, changes.iter().copied());
        let outcome = self.program.outcome_near((&self.layout, &self.loads, &self.sums), &layout)?;
        Ok(Tried { layout, ratio: outcome.time.0 / self.unit, remote: outcome.remote_fraction })
    }

    /// The time if these objects are placed so, in the unit of the trial.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn time_with(&self, changes: impl Iterator<Item = (i64, Placement)>) -> Result<f64, TeamError> {
        Ok(self.with_all(&changes.collect::<Vec<_>>())?.ratio)
    }

    /// Goes on from a layout that was tried.
    pub(super) fn accept(&mut self, tried: Tried) {
        let program = self.program;
        let loads = program.loads(&tried.layout, Some((&self.layout, &self.loads)));
        let (near, at) = (program.locate(&self.layout, &self.loads), program.locate(&tried.layout, &loads));
        program.update(&program.bytes, &mut self.sums, &program.change(&near, &at), &at);
        drop((near, at));
        (self.layout, self.loads, self.ratio, self.remote) = (tried.layout, loads, tried.ratio, tried.remote);
    }
}

/// Whether a layout (time, remote fraction) is so much faster than another one that it is chosen instead.
fn is_better((time, remote): (f64, f64), (known, known_remote): (f64, f64)) -> bool {
    let least = if remote > known_remote + REMOTE { LITTLE } else { 1.0 / BETTER };
    time * least < known
}

/// Changes one object after the other, as long as that makes the program faster.
fn improve(candidates: &[Candidate], kin: &Kin, chosen: &mut PerObject, now: &mut Trial<'_, '_>) -> Result<(), TeamError> {
    // Each pass gains at least 1 %, or is the last one.
    loop {
        let before = now.ratio;
        for candidate in candidates {
            let options = candidate.options.iter().map(|option| Some(*option)).chain([None]);
            for option in options {
                if option == chosen.get(&candidate.object).copied() {
                    continue;
                }
                let changed = now.with_all(&kin.placed(candidate.object, option.unwrap_or(Placement::AsIs)))?;
                if is_better((changed.ratio, changed.remote), (now.ratio, now.remote)) {
                    match option {
                        Some(option) => chosen.insert(candidate.object, option),
                        None => chosen.remove(&candidate.object),
                    };
                    now.accept(changed);
                }
            }
        }
        // Also stops where a figure is NaN.
        if !matches!(now.ratio.partial_cmp(&before), Some(std::cmp::Ordering::Less)) {
            return Ok(());
        }
    }
}
