//! Statistics over the repetitions of a run, or over runs.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    pub min: f64,
    /// For an even number of values, the mean of the middle two.
    pub median: f64,
    pub max: f64,
    /// Of the sample; `None` for a single value.
    pub standard_deviation: Option<f64>,
}

impl Statistics {
    /// `None` without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let standard_deviation = (sorted.len() > 1).then(|| (squares / (sorted.len() - 1) as f64).sqrt());
        Some(Self { min, median, max, standard_deviation })
    }

    /// Statistics of the rate at which `amount` was done in each of these times.
    #[must_use]
    pub fn rate(amount: f64, seconds: &[f64]) -> Option<Self> {
        Self::of(&seconds.iter().map(|s| amount / s).collect::<Vec<f64>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the statistics of samples whose answers are known.
    #[test]
    fn statistics() {
        assert_eq!(Statistics::of(&[]), None);
        assert_eq!(Statistics::of(&[2.0]), Some(Statistics { min: 2.0, median: 2.0, max: 2.0, standard_deviation: None }));
        let of_eight = Statistics::of(&[4.0, 2.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((of_eight.min, of_eight.median, of_eight.max), (2.0, 4.5, 9.0));
        assert!((of_eight.standard_deviation.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        let rate = Statistics::rate(10.0, &[1.0, 2.0, 5.0]).unwrap();
        assert_eq!((rate.min, rate.median, rate.max), (2.0, 5.0, 10.0));
    }
}
