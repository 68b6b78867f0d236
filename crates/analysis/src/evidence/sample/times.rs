//! The CPU time that each sample stands for.
//!
//! A sample stands for the CPU time since its thread's sample before, so all samples of a thread stand for all of its CPU time. If threads share
//! processors, a tick hits a thread now and then: the times between the samples of one thread spread like those of a random process (half of them
//! are below 0.7 of the mean, and one in twenty is above 3). How long the time before one sample was says nothing about what the sample saw then.
//! Therefore some successive samples of a thread share their time equally: this halves the variance, and their sum stays as it is.
//!
//! Only times that no random process would leave are cut: the thread was not sampled then on purpose, or samples were lost. (Cutting at 4 times the
//! median lost 5 to 28 % of the time of each thread of `tests/programs/truth/copies` on a machine with four threads a processor, and with it the
//! threads' shares.)

use firsttouch_model::rows::{Id, Profile, SampleState, TimerSample};
use std::collections::HashMap;

/// A sample stands for at most this many times the usual time, which is the median: in a random process, one time in 4,000 is longer.
const LONGEST: f64 = 12.0;
/// The same of samples that stand for others that were left out: those make longer times.
const LONGEST_THINNED: f64 = 4.0;
/// Successive samples that share their time.
const SHARING: usize = 8;
/// Recorders do not thin out more than this.
const MOST_WEIGHT: f64 = 1e6;

/// Was the sample taken to show how fast a loop is, at a time that has nothing to do with the other samples? It stands for no time.
pub fn is_for_rates(sample: &TimerSample) -> bool {
    sample.weight == 0.0
}

/// The times of all samples, by number, ns.
#[derive(Debug, Default)]
pub struct Times {
    shared: HashMap<Id, f64>,
    before: HashMap<Id, f64>,
    /// The median time between two samples of a thread.
    pub usual: f64,
}

impl Times {
    pub fn new(profile: &Profile) -> Self {
        let (mut last, mut gaps): (HashMap<Id, u64>, HashMap<Id, f64>) = (HashMap::new(), HashMap::new());
        let all = || profile.samples.iter().filter(|sample| !is_for_rates(sample));
        for sample in all() {
            if let Some(before) = last.insert(sample.thread, sample.cpu_ns) {
                gaps.insert(sample.id, sample.cpu_ns.saturating_sub(before) as f64);
            }
        }
        let usual = median(gaps.values().copied().collect()).filter(|ns| *ns > 0.0).unwrap_or(1.0);
        let mut times = Self { usual, ..Self::default() };
        let mut sharing: HashMap<Id, Vec<(Id, f64)>> = HashMap::new();
        for sample in all() {
            // The first samples of threads stand for the usual time.
            let gap = gaps.get(&sample.id).copied().unwrap_or(usual);
            let limited = |longest: f64| if gap > longest * usual { usual } else { gap.max(1.0) };
            let is_thinned = sample.weight > 1.0 || !sample.weight.is_finite();
            let weight = if sample.weight.is_finite() { sample.weight.clamp(1.0, MOST_WEIGHT) } else { 1.0 };
            times.before.insert(sample.id, limited(LONGEST_THINNED) * weight);
            let longest = if is_thinned { LONGEST_THINNED } else { LONGEST };
            times.shared.insert(sample.id, limited(longest) * weight);
            if !is_thinned && may_share(sample) {
                sharing.entry(sample.thread).or_default().push((sample.id, limited(longest)));
            }
        }
        for block in sharing.values().flat_map(|own| own.chunks(SHARING)) {
            let mean = block.iter().map(|(_, ns)| ns).sum::<f64>() / block.len() as f64;
            times.shared.extend(block.iter().map(|(id, _)| (*id, mean)));
        }
        times
    }

    /// What the sample stands for.
    pub fn of(&self, sample: &TimerSample) -> f64 {
        self.shared.get(&sample.id).copied().unwrap_or(0.0)
    }

    /// The time right before the sample in which its loop may have run, times its weight.
    pub fn before(&self, sample: &TimerSample) -> f64 {
        self.before.get(&sample.id).copied().unwrap_or(0.0)
    }
}

/// The time before a sample in the kernel is the kernel's.
fn may_share(sample: &TimerSample) -> bool {
    sample.state != SampleState::InKernel
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::SampledLoop;

    fn sample(id: Id, thread: Id, cpu_ns: u64, weight: f64, state: SampleState) -> TimerSample {
        let around: Option<SampledLoop> = None;
        TimerSample { id, thread, time_ns: cpu_ns, cpu: 0, cpu_ns, weight, site: None, state, around, unknown: 0, elsewhere: 0.0 }
    }

    /// Times between samples, 4 ms on average, as a random process has them.
    fn random_gaps(count: usize) -> Vec<u64> {
        let mut state = 5_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..count).map(|_| (-4e6 * (1.0 - unit()).ln()) as u64 + 1).collect()
    }

    /// Check that the samples of each thread stand for all of its CPU time, if they come at random, and for equal times nearly.
    #[test]
    fn no_time_is_lost() {
        let mut profile = Profile::default();
        let mut cpu = [0_u64; 4];
        for (number, gap) in random_gaps(2000).into_iter().enumerate() {
            let thread = number % 4;
            cpu[thread] += gap;
            profile.samples.push(sample(number as Id + 1, thread as Id, cpu[thread], 1.0, SampleState::Computing));
        }
        let times = Times::new(&profile);
        for (thread, all) in cpu.iter().enumerate() {
            let own: Vec<f64> = profile.samples.iter().filter(|one| one.thread == thread as Id).map(|one| times.of(one)).collect();
            let sum: f64 = own.iter().sum();
            assert!((sum / *all as f64 - 1.0).abs() < 0.02, "thread {thread}: {sum} of {all}");
            let mean = sum / own.len() as f64;
            let variance = own.iter().map(|ns| (ns / mean - 1.0).powi(2)).sum::<f64>() / own.len() as f64;
            assert!(variance < 0.25, "{variance}: 1 without sharing");
        }
    }

    /// Check that a second without samples belongs to no sample, that samples which stand for others do not stand for the time of those twice,
    /// and that time in the kernel stays with the sample there.
    #[test]
    fn times_that_belong_to_others() {
        let mut profile = Profile::default();
        let mut cpu = 0;
        for id in 1..=40 {
            cpu += if id == 20 { 1_000_000_000 } else { 4_000_000 };
            profile.samples.push(sample(id, 0, cpu, 1.0, SampleState::Computing));
        }
        cpu += 30_000_000;
        profile.samples.push(sample(41, 0, cpu, 8.0, SampleState::Computing));
        cpu += 40_000_000;
        profile.samples.push(sample(42, 0, cpu, 1.0, SampleState::InKernel));
        let times = Times::new(&profile);
        let of = |id: usize| times.of(&profile.samples[id - 1]);
        assert!((1..=40).all(|id| (of(id) - 4e6).abs() < 1.0), "{times:?}");
        assert!((of(41) - 8.0 * 4e6).abs() < 1.0 && (of(42) - 40e6).abs() < 1.0, "{} {}", of(41), of(42));
    }
}
