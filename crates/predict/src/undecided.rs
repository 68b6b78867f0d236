//! What the assumed numbers of a machine do to a forecast: each is set to both ends of its range. Intervals grow by what changes; if another
//! placement becomes the best, the advice is undecided, and a measurement decides it.

use crate::forecast::{Forecast, ForecastError, ForecastMachine, ForecastOptions, placement};
use crate::machine::{MachineModel, Uncertain, UncertainNumber};
use crate::program::{Assumptions, Placement, Program};
use firsttouch_model::finding::Remedy;
use firsttouch_model::traffic::Traffic;
use serde::Serialize;
use std::ops::Range;

/// The best placement may take this much longer than another where a number is at the end of its range, before the advice is undecided.
const REGRET: f64 = 1.05;

/// The best placement depends on a number that nobody measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Undecided {
    /// The names of the placements that may be the best; the first is the best by the numbers as assumed.
    pub between: Vec<&'static str>,
    /// The assumed number in words.
    pub depends_on: String,
    /// The command that measures it on that machine.
    pub measure: &'static str,
}

/// The command that replaces assumed numbers by measured ones.
const MEASURE: &str = "firsttouch map --save";

/// The times of the compared placements, of the plan and of each remedy, with the program as it is first.
fn times(
    traffic: &Traffic,
    (model, memory_nodes): (&MachineModel, &[usize]),
    forecast: &Forecast,
    remedies: &[(Vec<i64>, Remedy)],
    options: ForecastOptions,
) -> Result<Vec<f64>, ForecastError> {
    let assumptions = Assumptions { write_share: options.write_share, caps: options.caps, model_error: 0.0 };
    let mut program = Program::new(model, traffic, memory_nodes.to_vec(), assumptions).map_err(ForecastError::NotPredictable)?;
    program.follow(forecast.decision.choice.placements.clone());
    if let Some(found) = &forecast.found {
        program.follow_found(found.placements.clone());
    }
    let compared = forecast.placements.iter().map(|one| program.everywhere(one.placement));
    let alone = remedies.iter().map(|(objects, remedy)| program.layout(&objects.iter().map(|id| (*id, placement(*remedy))).collect()));
    let layouts = [Placement::AsIs, Placement::Plan].map(|one| program.everywhere(one)).into_iter().chain(compared).chain(alone);
    layouts.map(|layout| Ok(program.outcome_of(&layout)?.0.0)).collect()
}

/// Widens the intervals of a forecast by the ranges of its machine's assumed numbers, and finds whether they decide the advice.
///
/// # Errors
/// When the model refuses the program.
pub fn widen(
    forecast: &mut Forecast,
    traffic: &Traffic,
    machine: &ForecastMachine,
    remedies: &[(Vec<i64>, Remedy)],
    options: ForecastOptions,
) -> Result<(), ForecastError> {
    let model = &machine.machine;
    // Without writes, it does not matter what writes cost.
    let matters = |one: &&Uncertain| options.write_share > 0.0 || one.number != UncertainNumber::Writes;
    let uncertain: Vec<&Uncertain> = model.uncertain.iter().filter(matters).collect();
    if uncertain.is_empty() {
        return Ok(());
    }
    let at = |model: &MachineModel, forecast: &Forecast| times(traffic, (model, &machine.memory_nodes), forecast, remedies, options);
    let base = at(model, forecast)?;
    let compared = 2..2 + forecast.placements.len();
    let best = fastest(&base[compared.clone()]);
    let mut spread = Spread { below: vec![0.0; base.len()], above: vec![0.0; base.len()], slower: vec![[0.0; 2]; base.len()] };
    for one in uncertain {
        let ends = [one.low, one.high].map(|factor| at(&model.with(one, factor), forecast));
        let [low, high] = [ends[0].clone()?, ends[1].clone()?];
        spread.add(&base, [&low, &high], compared.clone());
        for times in [low, high] {
            let compared = &times[compared.clone()];
            let other = fastest(compared);
            if forecast.undecided.is_none() && compared[best] > REGRET * compared[other] {
                let names = [best, other].map(|index| forecast.placements[index].placement.name());
                forecast.undecided = Some(Undecided { between: names.to_vec(), depends_on: one.what.clone(), measure: MEASURE });
            }
        }
    }
    spread.widen(forecast, remedies);
    Ok(())
}

fn fastest(times: &[f64]) -> usize {
    (0..times.len()).reduce(|best, next| if times[next] < times[best] * (1.0 - 1e-9) { next } else { best }).unwrap_or(0)
}

/// By layout: the squares of how far the logarithm of a ratio of times moves, numbers added.
struct Spread {
    /// Of the program as it is over the layout.
    below: Vec<f64>,
    above: Vec<f64>,
    /// Of the layout over the best of the compared placements, which may be another one at an end of a range, below and above.
    slower: Vec<[f64; 2]>,
}

impl Spread {
    fn add(&mut self, base: &[f64], ends: [&Vec<f64>; 2], compared: Range<usize>) {
        let least = |times: &[f64]| times[compared.clone()].iter().copied().fold(f64::INFINITY, f64::min);
        for (index, own) in base.iter().enumerate() {
            let gains = ends.map(|times| ((times[0] / times[index]) / (base[0] / own)).ln());
            self.below[index] += gains[0].min(gains[1]).min(0.0).powi(2);
            self.above[index] += gains[0].max(gains[1]).max(0.0).powi(2);
            let slower = ends.map(|times| ((times[index] / least(times)) / (own / least(base))).ln());
            self.slower[index][0] += slower[0].min(slower[1]).min(0.0).powi(2);
            self.slower[index][1] += slower[0].max(slower[1]).max(0.0).powi(2);
        }
    }

    fn widen(&self, forecast: &mut Forecast, remedies: &[(Vec<i64>, Remedy)]) {
        let gain = |index: usize, gain: f64, interval: &mut [f64; 2]| {
            widened(gain, interval, [self.below[index], self.above[index]]);
        };
        let compared = forecast.placements.len();
        for (index, one) in forecast.placements.iter_mut().enumerate() {
            widened(one.slowdown, &mut one.interval, self.slower[2 + index]);
            one.interval = one.interval.map(|end| end.max(1.0));
        }
        gain(1, forecast.plan_gain.gain, &mut forecast.plan_gain.interval);
        for (index, (objects, _)) in remedies.iter().enumerate() {
            let gains = objects.first().and_then(|first| forecast.decision.findings.get_mut(first));
            if let Some(remedy) = gains.map(|gains| &mut gains.remedy)
                && let Some(interval) = &mut remedy.interval
            {
                gain(2 + compared + index, remedy.gain, interval);
            }
        }
    }
}

/// Widens an interval around a value by squares of deviations of its logarithm.
fn widened(value: f64, interval: &mut [f64; 2], squares: [f64; 2]) {
    let [low, high] = interval.map(|end| (end / value).ln());
    *interval = [value * (-low.min(0.0).hypot(squares[0].sqrt())).exp(), value * high.max(0.0).hypot(squares[1].sqrt()).exp()];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that an interval grows by deviations in squares, stays without them, and contains its value.
    #[test]
    fn intervals_grow_in_squares() {
        let mut interval = [1.8, 2.4];
        widened(2.0, &mut interval, [0.0, 0.0]);
        assert!((interval[0] - 1.8).abs() < 1e-9 && (interval[1] - 2.4).abs() < 1e-9);
        widened(2.0, &mut interval, [0.04, 0.0]);
        assert!((interval[0] - 2.0 * (-(0.04 + (0.9f64).ln().powi(2)).sqrt()).exp()).abs() < 1e-9, "{interval:?}");
        assert!((interval[1] - 2.4).abs() < 1e-9);
    }

    /// Check that the first of equal times is the fastest.
    #[test]
    fn the_first_of_equals_is_the_fastest() {
        assert_eq!((fastest(&[2.0, 1.0, 1.0]), fastest(&[])), (1, 0));
    }
}
