//! From the hits of one thread in one window to the accesses it stands for.

/// What one thread did at one watched address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watched {
    pub hits: u64,
    /// From arming to disarming this thread's watchpoint, ns.
    pub watched_ns: u64,
    /// The hit limit in force; the kernel switches the watchpoint off at this hit.
    pub limit: u64,
    /// From arming to the limiting hit, ns; none if the limit was not reached (or its record was lost).
    pub cut_after_ns: Option<u64>,
}

impl Watched {
    #[must_use]
    pub fn cut(&self) -> bool {
        self.hits >= self.limit
    }
}

/// Accesses the thread would have made in `held_ns`.
///
/// A trap costs the thread `trap_ns`, time in which it makes no progress; it is taken out of the exposure. Without the limit
/// the estimate is hits * held / exposure. With the limit r reached after the exposure t it is (r - 1) * held / t, the unbiased
/// estimator for a sample stopped at its r-th hit (Girshick, Mosteller and Savage 1946). The exposure is never taken to be
/// less than a tenth of the time that passed: hotter addresses than that are beyond what traps can measure.
#[must_use]
pub fn accesses(watched: &Watched, held_ns: u64, trap_ns: f64) -> f64 {
    if watched.hits == 0 {
        return 0.0;
    }
    let held = held_ns as f64;
    let exposure = |passed: f64, traps: f64| (passed - traps * trap_ns).max(passed * 0.1).max(1.0);
    match (watched.cut(), watched.cut_after_ns) {
        (true, Some(after)) if watched.limit > 1 => {
            let traps = (watched.limit - 1) as f64;
            traps * held / exposure(after as f64, traps)
        }
        _ => {
            let hits = watched.hits as f64;
            hits * held / exposure(watched.watched_ns as f64, hits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::design::Random;

    fn exponential(random: &mut Random, mean: f64) -> f64 {
        -mean * (1.0 - random.unit()).ln()
    }

    /// Check against a simulated thread whose accesses are known: the mean estimate is the true number of accesses, for cold,
    /// warm and hot addresses, although hot ones are cut off and every trap takes time.
    #[test]
    fn estimates_are_unbiased() {
        let (held, limit, trap) = (20e6, 24u64, 9_000.0);
        for rate_per_second in [5.0, 200.0, 1_000.0, 20_000.0] {
            let mean_gap = 1e9 / rate_per_second;
            let mut random = Random::new(11);
            let repetitions = 20_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..repetitions {
                let (mut now, mut hits, mut cut_after) = (0.0, 0u64, None);
                loop {
                    now += exponential(&mut random, mean_gap);
                    if now > held {
                        break;
                    }
                    hits += 1;
                    if hits == limit {
                        cut_after = Some(now as u64);
                        break;
                    }
                    now += trap;
                }
                let w = Watched { hits, watched_ns: held as u64, limit, cut_after_ns: cut_after };
                let estimate = accesses(&w, held as u64, trap);
                sum += estimate;
                squares += estimate * estimate;
            }
            let n = f64::from(repetitions);
            let (mean, truth) = (sum / n, rate_per_second * held / 1e9);
            let error = ((squares / n - mean * mean) / n).sqrt();
            assert!((mean - truth).abs() < 4.0 * error + 0.01 * truth, "{rate_per_second}/s: {mean} +- {error}, truth {truth}");
        }
    }
}
