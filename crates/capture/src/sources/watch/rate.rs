//! From the hits of one thread in one window to the accesses it stands for.

use super::pattern::Pattern;

/// What one thread did at one watched address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watched {
    pub hits: u64,
    /// From arming to disarming this thread's watchpoint, ns.
    pub watched_ns: u64,
    /// CPU time the thread had in the window, ns.
    pub cpu_ns: u64,
    /// CPU time the thread had while the watchpoint was on: to the end of the window, or to the limiting hit, ns.
    pub exposed_ns: u64,
    /// The hit limit: the kernel switches the watchpoint off at this hit.
    pub limit: u64,
}

impl Watched {
    /// The hit limit ended the window early.
    #[must_use]
    pub fn cut(&self) -> bool {
        self.hits >= self.limit
    }
}

/// Accesses the thread would have made in its CPU time of the window.
///
/// Time is the thread's own CPU time, so that it does not matter when the scheduler let it run. A trap costs the thread
/// `trap_ns`, time in which it makes no progress, which is subtracted from the exposure. Without the limit the estimate is
/// hits * cpu / exposure, where exposure and CPU time differ by the traps only. With the limit r reached after the exposure t it
/// is (r - 1) * cpu / t, the unbiased estimator for a sample of independent hits stopped at its r-th (Girshick, Mosteller and
/// Savage 1946). If a cut window's hits come at an even pace from its start, the pace itself is the better measure, because it
/// does not contain the time that arming took: cpu / (gap - traps). The exposure is at least a tenth of the time that passed: hotter
/// addresses are beyond what traps can measure.
#[must_use]
pub fn accesses(watched: &Watched, pattern: Option<&Pattern>, trap_ns: f64) -> f64 {
    if watched.hits == 0 {
        return 0.0;
    }
    let passed = watched.exposed_ns as f64;
    let cpu = watched.cpu_ns.max(watched.exposed_ns) as f64;
    if let Some(p) = pattern.filter(|p| watched.cut() && p.steady(passed, trap_ns)) {
        let natural = (p.gap_ns - p.traps_a_hit.max(1.0) * trap_ns).max(0.1 * p.gap_ns).max(1.0);
        return (cpu / natural).max(watched.hits as f64);
    }
    let counted = if watched.cut() && watched.limit > 1 { (watched.limit - 1) as f64 } else { watched.hits as f64 };
    let traps = counted * pattern.map_or(1.0, |p| p.traps_a_hit.max(1.0));
    let exposure = (passed - traps * trap_ns).max(0.1 * passed).max(1.0);
    (counted * cpu / exposure).max(watched.hits as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn exponential(random: &mut Random, mean: f64) -> f64 {
        -mean * (1.0 - random.unit()).ln()
    }

    /// Check against a simulated thread whose accesses are known: the mean estimate is the true number of accesses, for cold,
    /// warm and hot addresses, although hot ones are cut off, every trap takes time, and the thread runs only now and then.
    #[test]
    fn estimates_are_unbiased() {
        let (limit, trap) = (24u64, 9_000.0);
        for rate_per_second in [5.0, 200.0, 1_000.0, 20_000.0, 100_000.0] {
            let mean_gap = 1e9 / rate_per_second;
            let mut random = Random::new(11);
            let repetitions = 20_000;
            let (mut sum, mut squares, mut cpu_sum) = (0.0, 0.0, 0.0);
            for _ in 0..repetitions {
                let cpu = 20e6 * random.unit();
                let (mut now, mut hits, mut exposed) = (0.0, 0u64, cpu);
                loop {
                    now += exponential(&mut random, mean_gap);
                    if now > cpu {
                        break;
                    }
                    hits += 1;
                    if hits == limit {
                        exposed = now;
                        break;
                    }
                    now += trap;
                }
                let w = Watched { hits, watched_ns: 20_000_000, cpu_ns: cpu as u64, exposed_ns: exposed as u64, limit };
                let estimate = accesses(&w, None, trap);
                sum += estimate;
                squares += estimate * estimate;
                cpu_sum += cpu;
            }
            let n = f64::from(repetitions);
            let (mean, truth) = (sum / n, rate_per_second * cpu_sum / n / 1e9);
            let error = ((squares / n - mean * mean) / n).sqrt();
            assert!((mean - truth).abs() < 4.0 * error + 0.02 * truth, "{rate_per_second}/s: {mean} +- {error}, truth {truth}");
        }
    }
}
