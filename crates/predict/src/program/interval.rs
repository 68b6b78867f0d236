//! The interval of a figure: the spread of resampled figures, widened by the model's own error.

use firsttouch_model::Z95;

/// The 95 % interval around `value`, a ratio of two predictions: percentiles of the drawn figures, widened by the relative error of each
/// prediction. The errors count as independent.
pub fn interval(drawn: impl Iterator<Item = f64>, value: f64, model_error: f64) -> [f64; 2] {
    let mut logs: Vec<f64> = drawn.map(|figure| (figure / value).ln()).collect();
    logs.retain(|log| log.is_finite());
    logs.sort_by(f64::total_cmp);
    let at = |part: f64| logs.get((part * logs.len().saturating_sub(1) as f64).round() as usize).copied().unwrap_or(0.0);
    let model = Z95 * model_error * std::f64::consts::SQRT_2;
    let wide = |log: f64| (log * log + model * model).sqrt();
    [value * (-wide(at(0.025).min(0.0))).exp(), value * wide(at(0.975).max(0.0)).exp()]
}
