//! The cost of several placements, as sampled and in resampled programs, which give the interval of a ratio of two costs. All placements are
//! priced on the same draws, and equal placements once.

use super::{Placement, Program};
use crate::model::{Simulation, TeamError};
use crate::program::interval::interval;
use crate::random::SplitMix;
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

/// Placements with their costs.
pub struct Priced {
    /// By placement: its index in `outcomes` and in each draw.
    which: Vec<usize>,
    outcomes: Vec<Simulation>,
    /// By draw: the time of each different placement.
    draws: Vec<Vec<f64>>,
}

pub fn price(program: &Program<'_>, placements: &[&dyn Fn(i64) -> Placement]) -> Result<Priced, TeamError> {
    let ids = || program.cells.objects.iter().map(|object| object.id);
    let mut known: HashMap<Vec<Placement>, usize> = HashMap::new();
    let mut different: Vec<HashMap<i64, Placement>> = Vec::new();
    let mut which = Vec::with_capacity(placements.len());
    for placement in placements {
        let next = different.len();
        let resolved: Vec<Placement> = ids().map(|id| program.resolved(id, placement(id))).collect();
        let by_object = || ids().zip(resolved.iter().copied()).collect();
        let index = known.get(&resolved).copied().unwrap_or_else(|| {
            different.push(by_object());
            next
        });
        known.entry(resolved).or_insert(index);
        which.push(index);
    }
    let run = |bytes: &Vec<f64>| -> Result<Vec<Simulation>, TeamError> {
        let of = |placement: &HashMap<i64, Placement>| program.run(bytes, &|id| placement.get(&id).copied().unwrap_or(Placement::AsIs));
        different.iter().map(of).collect()
    };
    let outcomes = run(&program.bytes)?;
    let size = program.seats.len() * program.machine.nodes.len();
    let ends = program.seats.len().pow(2);
    let count = (WORK / size.max(1)).min(ENDS / ends.max(1)).clamp(*DRAWS.start(), *DRAWS.end());
    // The draws are the same in every run.
    let mut random = SplitMix::new();
    let mut draws: Vec<Vec<f64>> = Vec::with_capacity(count);
    while draws.len() < count {
        let drawn: Vec<Vec<f64>> = (draws.len()..count).take(AT_ONCE).map(|_| program.cells.drawn(&mut random)).collect();
        for outcomes in parallel::map(&drawn, run) {
            draws.push(outcomes?.iter().map(|outcome| outcome.time.0).collect());
        }
    }
    Ok(Priced { which, outcomes, draws })
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

    pub(super) fn gain(&self, before: usize, after: usize, model_error: f64) -> Gain {
        let gain = self.outcome(before).time.0 / self.outcome(after).time.0;
        Gain { gain, interval: self.interval(before, after, gain, model_error) }
    }
}
