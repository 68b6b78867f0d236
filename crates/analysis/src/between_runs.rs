//! What runs of one program differ by. The interval of a figure is that of one run: it says how well the run was seen, and nothing about the
//! next run. A figure from exact counts has an interval of width 0, and the next run another figure.

use firsttouch_model::student_quantile;

/// Two runs of a program that works by time differed by 5 points. If these are one draw from differences with mean 0, their standard deviation is
/// 5 points, and 95 % of the differences are below 10.
pub const USUAL_TOLERANCE: f64 = 0.1;
/// From so many runs on, their spread is a better estimate than [`USUAL_TOLERANCE`]. Of two runs, Student's quantile is 12.7.
pub const RUNS_WITH_SPREAD: usize = 3;

/// A figure of one run, and the upper end of its interval.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub value: f64,
    pub high: f64,
}

/// The value that the next run exceeds by chance in one of forty cases. `tolerance`: by how much two runs may differ; `None` if their spread is
/// taken from the runs. `None` without runs.
pub fn bound(runs: &[Seen], tolerance: Option<f64>) -> Option<f64> {
    let count = runs.len() as f64;
    let mean = runs.iter().map(|run| run.value).sum::<f64>() / count;
    let highest = runs.iter().copied().max_by(|a, b| a.high.total_cmp(&b.high))?;
    let by_spread = || {
        let variance = runs.iter().map(|run| (run.value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // The prediction interval of one more value.
        mean + student_quantile(count - 1.0) * (variance * (1.0 + 1.0 / count)).sqrt()
    };
    // How well a run was seen, and what runs differ by, are independent.
    let by_tolerance = |tolerance: f64| highest.value + (highest.high - highest.value).max(0.0).hypot(tolerance);
    Some(tolerance.map_or_else(by_spread, by_tolerance).max(highest.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Seen {
        Seen { value, high: value }
    }

    /// Check that exact figures are allowed what runs differ by, that the interval of a run counts as well, and that the spread of several runs
    /// takes the place of the tolerance.
    #[test]
    fn runs_may_differ() {
        let near = |runs: &[Seen], tolerance, expected: f64| {
            let bound = bound(runs, tolerance).unwrap();
            assert!((bound - expected).abs() < 5e-3, "{bound} {expected}");
        };
        near(&[exact(0.5)], Some(0.1), 0.6);
        near(&[exact(0.5)], Some(0.0), 0.5);
        near(&[Seen { value: 0.5, high: 0.53 }], Some(0.04), 0.55);
        // Student's 2.776 with 4 degrees of freedom, standard deviation 0.0158, of one more run.
        near(&[0.48, 0.49, 0.50, 0.51, 0.52].map(exact), None, 0.5 + 2.776 * 0.0158 * 1.2_f64.sqrt());
        near(&[exact(0.3), exact(0.3), exact(0.3)], None, 0.3);
        near(&[exact(0.5), exact(0.55)], Some(0.1), 0.65);
        assert!(bound(&[], None).is_none());
    }
}
