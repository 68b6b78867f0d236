//! Estimates with their uncertainty.

use serde::{Deserialize, Serialize};

/// Normal quantile for a two-sided 95 % interval.
pub const Z95: f64 = 1.959_963_985;

/// A value estimated from samples, with its 95 % interval and the number of samples behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// Samples (watch hits, first touches) behind the value.
    pub samples: u64,
}

impl Estimate {
    /// A fraction in [0, 1] from its value and standard error.
    ///
    /// The interval is symmetric on the log-odds scale, so it never leaves [0, 1] and stays valid near the ends. With
    /// few samples the quantile is Student's (approximated through Cornish-Fisher) with `samples - 1` degrees of freedom.
    /// At exactly 0 or 1 the rule of three bounds the other side: 1 - 0.05^(1/n).
    #[must_use]
    pub fn fraction(value: f64, standard_error: f64, samples: u64) -> Self {
        let value = value.clamp(0.0, 1.0);
        if samples == 0 {
            return Self { value, low: 0.0, high: 1.0, samples };
        }
        let n = samples as f64;
        let rule_of_three = 1.0 - 0.05f64.powf(1.0 / n);
        if value <= f64::EPSILON {
            return Self { value: 0.0, low: 0.0, high: rule_of_three, samples };
        }
        if value >= 1.0 - f64::EPSILON {
            return Self { value: 1.0, low: 1.0 - rule_of_three, high: 1.0, samples };
        }
        let quantile = student_quantile(n - 1.0);
        let logit = (value / (1.0 - value)).ln();
        let spread = quantile * standard_error / (value * (1.0 - value));
        let inverse = |x: f64| 1.0 / (1.0 + (-x).exp());
        Self { value, low: inverse(logit - spread).min(value), high: inverse(logit + spread).max(value), samples }
    }

    /// Widens the interval by an independent uncertainty of `by` on either side: the two add in quadrature, within 0 and 1.
    #[must_use]
    pub fn widened(self, by: f64) -> Self {
        self.widened_by([by, by])
    }

    /// Widens the interval by errors that are independent of it, and other ones downwards than upwards.
    #[must_use]
    pub fn widened_by(self, [down, up]: [f64; 2]) -> Self {
        let low = (self.value - (self.value - self.low).hypot(down)).max(0.0);
        let high = (self.value + (self.high - self.value).hypot(up)).min(1.0);
        Self { low: low.min(self.value), high: high.max(self.value), ..self }
    }

    /// Widens the interval by errors that can have any size up to these, and add to its own.
    #[must_use]
    pub fn stretched_by(self, [down, up]: [f64; 2]) -> Self {
        Self { low: (self.low - down).max(0.0), high: (self.high + up).min(1.0), ..self }
    }

    /// Widens the interval so that it covers another one too, of a figure that disagrees for a cause that neither of them knows.
    #[must_use]
    pub fn covering(self, [low, high]: [f64; 2]) -> Self {
        Self { low: self.low.min(low), high: self.high.max(high), ..self }
    }

    /// Half the width of the interval.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Two-sided 95 % quantile of Student's t (Cornish-Fisher expansion; Abramowitz and Stegun 26.7.5).
#[must_use]
pub fn student_quantile(degrees: f64) -> f64 {
    let v = degrees.max(1.0);
    let z = Z95;
    z + (z.powi(3) + z) / (4.0 * v) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that intervals stay inside [0, 1] and contain the value.
    #[test]
    fn fractions_stay_in_bounds() {
        for value in [0.0, 0.001, 0.3, 0.999, 1.0] {
            for error in [0.0, 0.01, 0.5] {
                for samples in [0, 1, 5, 1000] {
                    let e = Estimate::fraction(value, error, samples);
                    assert!(0.0 <= e.low && e.low <= e.value && e.value <= e.high && e.high <= 1.0, "{e:?}");
                }
            }
        }
    }

    /// Check Student's quantile against tables: 2.228 at 10, 2.042 at 30 degrees of freedom.
    #[test]
    fn student_matches_tables() {
        assert!((student_quantile(10.0) - 2.228).abs() < 0.01);
        assert!((student_quantile(30.0) - 2.042).abs() < 0.002);
    }
}
