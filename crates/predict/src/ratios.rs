//! Predictions of published placement ratios, with intervals: what users ask of `predict`.

use crate::experiments::Ratio;
use crate::machine::MachineModel;
use crate::model::TeamError;
use crate::model_error::Z90;
use crate::runs::{self, Predicted};
use crate::validate::ValidationRow;
use firsttouch_model::Z95;

/// A ratio, and the range that the machine's assumed numbers leave it: each number at each end of its own range, the deviations added in
/// squares, as if the numbers erred independently.
///
/// # Errors
/// When this machine lacks the seats or the memory.
pub fn predict(machine: &MachineModel, run: &Ratio) -> Result<Predicted, TeamError> {
    let value = runs::ratio(machine, run)?;
    let (mut below, mut above) = (0.0, 0.0);
    for uncertain in &machine.uncertain {
        let at = |factor: f64| runs::ratio(&machine.with(uncertain, factor), run).map(|other| (other / value).ln());
        let (low, high) = (at(uncertain.low)?, at(uncertain.high)?);
        below += low.min(high).min(0.0).powi(2);
        above += low.max(high).max(0.0).powi(2);
    }
    let range = (below + above > 0.0).then(|| [value * (-f64::sqrt(below)).exp(), value * f64::sqrt(above).exp()]);
    Ok(Predicted { value, range })
}

/// Gives each ratio two 95 % intervals, which both hold the range of its machine's assumed numbers: one with the errors of times and
/// bandwidths, as `predict` has it, and one with the errors of ratios on all other machines.
pub fn add_intervals(rows: &mut [ValidationRow]) {
    let error = |row: &ValidationRow| (row.predicted / row.published).ln().abs();
    let (ratios, levels): (Vec<&ValidationRow>, Vec<&ValidationRow>) =
        rows.iter().filter(|row| !row.fitted).partition(|row| row.purpose.is_some());
    // Two figures that err independently make a ratio.
    let level = standard(levels.into_iter().map(error).collect()).map(|standard| standard * std::f64::consts::SQRT_2);
    let ratios: Vec<(String, f64)> = ratios.into_iter().map(|row| (row.machine.clone(), error(row))).collect();
    for row in rows.iter_mut().filter(|row| row.purpose.is_some()) {
        let elsewhere = ratios.iter().filter(|(machine, _)| *machine != row.machine).map(|(_, error)| *error).collect();
        row.interval = standard(elsewhere).map(|standard| widened(row.predicted, row.range, Z95 * standard));
        row.interval_of_predict = level.map(|standard| widened(row.predicted, row.range, Z95 * standard));
    }
}

/// The standard error of the logarithm of a ratio, from the 90th percentile of absolute errors as of a normal distribution; `None` with
/// too few errors to have one.
fn standard(mut errors: Vec<f64>) -> Option<f64> {
    errors.sort_by(f64::total_cmp);
    let rank = (0.9 * errors.len() as f64).ceil() as usize;
    (errors.len() >= LEAST_RATIOS).then(|| errors.get(rank.saturating_sub(1)).map(|error| error / Z90)).flatten()
}

/// With fewer ratios on other machines, a 90th percentile says nothing.
const LEAST_RATIOS: usize = 8;

/// A range widened by an error of the logarithm, in squares.
fn widened(value: f64, range: Option<[f64; 2]>, error: f64) -> [f64; 2] {
    let [low, high] = range.unwrap_or([value; 2]).map(|end| (end / value).ln());
    let wide = |log: f64| log.hypot(error);
    [value * (-wide(low)).exp(), value * wide(high).exp()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that an interval contains the range it starts from and the error alone, and is the range if there is no error.
    #[test]
    fn intervals_hold_ranges_and_errors() {
        let [low, high] = widened(2.0, Some([1.5, 2.2]), 0.1);
        assert!(low < 1.5 && high > 2.2 && low > 1.3 && high < 2.5, "{low} {high}");
        let [low, high] = widened(2.0, None, 0.1);
        assert!((low * high - 4.0).abs() < 1e-9 && (high / 2.0).ln() - 0.1 < 1e-9);
        let [low, high] = widened(2.0, Some([1.5, 2.2]), 0.0);
        assert!((low - 1.5).abs() < 1e-9 && (high - 2.2).abs() < 1e-9);
    }

    /// Check that the standard error follows the 90th percentile, and that few errors give none.
    #[test]
    fn few_errors_tell_nothing() {
        assert_eq!(standard(vec![0.1; LEAST_RATIOS - 1]), None);
        let found = standard((1..=10).map(|rank| 0.01 * f64::from(rank)).collect()).unwrap();
        assert!((found - 0.09 / Z90).abs() < 1e-12, "{found}");
    }
}
