//! Long runs: samples are taken only part of the time, so that the profile grows with the logarithm of the run's length.

/// Samples taken without thinning; after each further so many, half of the time is left out.
const FULL: u64 = 100_000;
const HALVED: u64 = 50_000;
/// Samples are taken or left out for this long. Pairs of successive samples remain.
const WINDOW_NS: u64 = 2_000_000_000;

#[derive(Debug, Default)]
pub struct Thinning {
    taken: u64,
}

impl Thinning {
    /// The number of samples that one at this time stands for; `None` if it is left out.
    pub fn weight(&mut self, time_ns: u64) -> Option<f64> {
        let halvings = if self.taken < FULL { 0 } else { 1 + (self.taken - FULL) / HALVED };
        let one_of = 1u64 << halvings.min(20);
        if !(time_ns / WINDOW_NS).is_multiple_of(one_of) {
            return None;
        }
        self.taken += 1;
        Some(one_of as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that weights add up to all samples, within the windows that a change falls into, while few of them are taken.
    #[test]
    fn weights_stand_for_all() {
        let mut thinning = Thinning::default();
        let all = 4_000_000u64;
        let taken: Vec<f64> = (0..all).filter_map(|i| thinning.weight(i * 2_000_000)).collect();
        assert!(taken.len() < 400_000, "{}", taken.len());
        let sum: f64 = taken.iter().sum();
        assert!((sum / all as f64 - 1.0).abs() < 0.05, "{sum}");
    }
}
