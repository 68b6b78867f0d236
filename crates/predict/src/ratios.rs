//! Predictions of published placement ratios, with intervals: what users ask of `predict`.

use crate::experiments::Ratio;
use crate::machine::MachineModel;
use crate::model::TeamError;
use crate::model_error::{RatioError, Z90};
use crate::runs::{self, Predicted};
use crate::validate::ValidationRow;
use firsttouch_model::Z95;
use std::collections::{BTreeMap, BTreeSet};

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

/// Gives each ratio its 95 % interval, as `predict` has it: the range of its machine's assumed numbers, and the errors of ratios of its kind on all
/// other machines.
pub fn add_intervals(rows: &mut [ValidationRow]) {
    let kinds: BTreeSet<(String, bool)> =
        rows.iter().filter(|row| row.purpose.is_some()).map(|row| (row.machine.clone(), row.is_spread)).collect();
    let errors: BTreeMap<(String, bool), Option<RatioError>> =
        kinds.into_iter().map(|(name, is_spread)| ((name.clone(), is_spread), error_on_others(rows, &name, is_spread))).collect();
    for row in rows.iter_mut().filter(|row| row.purpose.is_some()) {
        let error = errors.get(&(row.machine.clone(), row.is_spread)).copied().flatten();
        row.interval = error.map(|error| widened(row.predicted, row.range, Z95 * error.percentile_90 / Z90));
    }
}

/// The errors (of the logarithm) of ratios on machines other than this one, of threads that are spread over nodes or of those of one node; `None` if
/// there are too few.
#[must_use]
pub fn error_on_others(rows: &[ValidationRow], machine: &str, is_spread: bool) -> Option<RatioError> {
    let error = |row: &ValidationRow| (row.predicted / row.published).ln().abs();
    let others = rows.iter().filter(|row| !row.fitted && row.purpose.is_some() && row.is_spread == is_spread && row.machine != machine);
    percentile_90(others.map(error).collect())
}

/// The 90th percentile of errors; `None` with too few of them to have one.
fn percentile_90(mut errors: Vec<f64>) -> Option<RatioError> {
    errors.sort_by(f64::total_cmp);
    let rank = (0.9 * errors.len() as f64).ceil() as usize;
    let rows = errors.len();
    (rows >= LEAST_RATIOS).then(|| errors.get(rank.saturating_sub(1)).map(|error| RatioError { rows, percentile_90: *error })).flatten()
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

    /// Check that few errors have no 90th percentile.
    #[test]
    fn few_errors_tell_nothing() {
        assert_eq!(percentile_90(vec![0.1; LEAST_RATIOS - 1]), None);
        let found = percentile_90((1..=10).map(|rank| 0.01 * f64::from(rank)).collect());
        assert_eq!(found, Some(RatioError { rows: 10, percentile_90: 0.09 }));
    }
}
