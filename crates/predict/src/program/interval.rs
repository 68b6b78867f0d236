//! The interval of a figure: resampling (Efron's bootstrap with Poisson weights) by rounds, because the samples of one round see the same
//! phase of the program; widened by the model's own error.

use super::volumes::Weights;
use crate::model::TeamError;
use crate::random::SplitMix;
use firsttouch_model::Z95;
use firsttouch_model::traffic::Traffic;
use std::collections::BTreeMap;

/// With fewer rounds, resample single samples, because the spread of so few rounds is unreliable.
const LEAST_ROUNDS: usize = 20;

/// The figures of each draw.
pub struct Resampled {
    draws: Vec<Vec<f64>>,
}

impl Resampled {
    /// Computes the figures `count` times. The draws are the same in every run.
    pub fn new(traffic: &Traffic, count: usize, figures: impl Fn(&Weights) -> Result<Vec<f64>, TeamError>) -> Result<Self, TeamError> {
        let mut units: BTreeMap<u64, usize> = BTreeMap::new();
        for sample in traffic.objects.iter().flat_map(|object| &object.samples) {
            let next = units.len();
            units.entry(sample.round).or_insert(next);
        }
        let by_round = units.len() >= LEAST_ROUNDS;
        let mut random = SplitMix::new();
        let draws = (0..count).map(|_| {
            let rounds: Vec<f64> = units.iter().map(|_| random.poisson()).collect();
            let mut weights = Vec::with_capacity(traffic.objects.len());
            for object in &traffic.objects {
                let weight = |round: u64| units.get(&round).map_or(1.0, |unit| rounds[*unit]);
                let own = object.samples.iter().map(|sample| if by_round { weight(sample.round) } else { random.poisson() });
                weights.push(own.collect());
            }
            figures(&Weights::Drawn(weights))
        });
        Ok(Self { draws: draws.collect::<Result<_, _>>()? })
    }

    /// The 95 % interval of figure `index`, a ratio of two predictions, around `value`: percentiles of the draws, widened by the relative
    /// error of each prediction. The errors count as independent.
    pub fn interval(&self, index: usize, value: f64, model_error: f64) -> [f64; 2] {
        let mut logs: Vec<f64> = self.draws.iter().filter_map(|draw| draw.get(index)).map(|figure| (figure / value).ln()).collect();
        logs.retain(|log| log.is_finite());
        logs.sort_by(f64::total_cmp);
        let at = |part: f64| logs.get((part * logs.len().saturating_sub(1) as f64).round() as usize).copied().unwrap_or(0.0);
        let model = Z95 * model_error * std::f64::consts::SQRT_2;
        let wide = |log: f64| (log * log + model * model).sqrt();
        [value * (-wide(at(0.025).min(0.0))).exp(), value * wide(at(0.975).max(0.0)).exp()]
    }
}
