//! The cost of several layouts, as sampled and in resampled programs, which give the interval of a ratio of two costs. All layouts are
//! priced on the same draws, and equal layouts once.

use super::sums::{Change, Located, Sums};
use super::{AS_IS, Placements, Program};
use crate::model::{Simulation, TeamError};
use crate::program::interval::interval;
use crate::random::SplitMix;
use crate::units::Seconds;
use firsttouch_model::parallel;
use firsttouch_model::prediction::Gain;
use hashbrown::HashMap;

/// The number of draws: as many as the amount of work allows.
const DRAWS: std::ops::RangeInclusive<usize> = 20..=200;
const WORK: usize = 400_000;
/// Where threads end one by one, each end looks at all threads: with more than 500 threads this bounds the draws.
const ENDS: usize = 50_000_000;

/// Resampled programs that are in memory at once, and run on all CPUs.
const AT_ONCE: usize = 16;

/// Layouts with their costs.
pub struct Priced {
    /// By layout: its index in `outcomes` and in each draw.
    which: Vec<usize>,
    outcomes: Vec<Simulation>,
    /// By draw: the time of each different layout.
    draws: Vec<Vec<f64>>,
    /// By draw: the remote fraction of each different layout.
    remote: Vec<Vec<f64>>,
}

pub fn price(program: &Program<'_>, layouts: &[Placements]) -> Result<Priced, TeamError> {
    let mut known: HashMap<&Placements, usize> = HashMap::new();
    let mut different: Vec<&Placements> = Vec::new();
    let mut which = Vec::with_capacity(layouts.len());
    for layout in layouts {
        which.push(*known.entry(layout).or_insert_with(|| {
            different.push(layout);
            different.len() - 1
        }));
    }
    let as_is = program.locate(&AS_IS, &program.as_is_loads);
    let near = Some((&AS_IS, &program.as_is_loads));
    let located: Vec<Located<'_>> = different.iter().map(|layout| program.locate(layout, &program.loads(layout, near))).collect();
    let changes: Vec<Change> = located.iter().map(|at| program.change(&as_is, at)).collect();
    let run = |bytes: &[f64], sums: &Sums| -> Result<Vec<Simulation>, TeamError> {
        changes.iter().zip(&located).map(|(change, at)| program.run(bytes, sums, change, at)).collect()
    };
    let run_drawn = |(bytes, beside): &(Vec<f64>, Seconds)| Ok((run(bytes, &program.sums(bytes, &as_is))?, *beside));
    let outcomes = run(&program.bytes, &program.as_is)?;
    let outcomes = outcomes.into_iter().map(|outcome| outcome.with(program.aside.time())).collect();
    let size = program.seats.len() * program.machine.nodes.len();
    let ends = program.seats.len().pow(2);
    let count = (WORK / size.max(1)).min(ENDS / ends.max(1)).clamp(*DRAWS.start(), *DRAWS.end());
    // The draws are the same in every run.
    let mut random = SplitMix::new();
    let mut draws: Vec<Vec<f64>> = Vec::with_capacity(count);
    let mut remote: Vec<Vec<f64>> = Vec::with_capacity(count);
    while draws.len() < count {
        let mut draw = || (program.cells.drawn(&mut random), program.aside.drawn(&mut random));
        let drawn: Vec<(Vec<f64>, Seconds)> = (draws.len()..count).take(AT_ONCE).map(|_| draw()).collect();
        for outcomes in parallel::map(&drawn, run_drawn) {
            let (outcomes, beside) = outcomes?;
            remote.push(outcomes.iter().map(|outcome| outcome.remote_fraction).collect());
            draws.push(outcomes.iter().map(|outcome| outcome.time.0 + beside.0).collect());
        }
    }
    Ok(Priced { which, outcomes, draws, remote })
}

impl Priced {
    pub(super) fn outcome(&self, index: usize) -> &Simulation {
        &self.outcomes[self.which[index]]
    }

    /// The 95 % interval of `value`, the time of one placement over that of another.
    pub(super) fn interval(&self, one: usize, other: usize, value: f64, model_error: f64) -> [f64; 2] {
        let (one, other) = (self.which[one], self.which[other]);
        interval(self.draws.iter().map(|times| times[one] / times[other]), value, model_error)
    }

    /// What a placement adds at least to the remote fraction of another one: the lower end of the 95 % interval of the samples.
    pub(super) fn adds_remote(&self, before: usize, after: usize) -> f64 {
        let (before, after) = (self.which[before], self.which[after]);
        let mut added: Vec<f64> = self.remote.iter().map(|drawn| drawn[after] - drawn[before]).collect();
        added.sort_by(f64::total_cmp);
        added.get((0.025 * added.len().saturating_sub(1) as f64).round() as usize).copied().unwrap_or(0.0)
    }

    pub(super) fn gain(&self, before: usize, after: usize, model_error: f64) -> Gain {
        let gain = self.outcome(before).time.0 / self.outcome(after).time.0;
        Gain { gain, interval: self.interval(before, after, gain, model_error) }
    }
}
