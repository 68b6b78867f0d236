//! How evenly a loop goes through its entries.
//!
//! Samples come by time. Where a loop waits at the beginning of each entry, because what it needs there was not yet prefetched, more samples are there
//! than accesses: the first of eight pages had 25 to 31 % of the samples. All rounds of a loop have the same accesses, so how many samples each part of an
//! entry should have is known, as far as all entries have that part.
//!
//! `SampledLoop::left` counts the rounds that follow a sample in its entry. An entry of `n` rounds has each number below `n` once. So whatever lengths the
//! entries have, at an even pace fewer samples have many rounds left than have few: the density never grows with the rounds left. What grows is slow
//! rounds. The estimate that fits best among all densities that do not grow is that of Grenander (1956); the weight of a sample is that density over the
//! one seen. Slow rounds at the end of entries cannot be told from short entries, and stay as they are.

use super::loops::Loop;
use super::times::is_for_rates;
use firsttouch_model::rows::{Id, Profile, SampleState, TimerSample};
use hashbrown::HashMap;

/// Samples that show the density at one place. Fewer show chance.
const IN_BIN: usize = 12;
/// Samples of a loop that are needed.
const SAMPLES: usize = 4 * IN_BIN;

/// Weights of samples, by number: those of one thread in one loop have the mean 1, by time.
#[derive(Debug, Default)]
pub struct Paces(HashMap<Id, f64>);

impl Paces {
    /// `loop_of`: the loop that a sample is in. `time_of`: the time that it stands for.
    pub fn new(profile: &Profile, loop_of: impl Fn(&TimerSample) -> Option<Loop>, time_of: impl Fn(&TimerSample) -> f64) -> Self {
        let mut by_loop: HashMap<Loop, Vec<(u64, &TimerSample)>> = HashMap::new();
        for sample in profile.samples.iter().filter(|one| one.state == SampleState::Computing && !is_for_rates(one)) {
            if let Some((key, left)) = loop_of(sample).zip(sample.around.and_then(|around| around.left)) {
                by_loop.entry(key).or_default().push((left, sample));
            }
        }
        let mut paces = HashMap::new();
        for mut seen in by_loop.into_values().filter(|seen| seen.len() >= SAMPLES) {
            seen.sort_by_key(|(left, sample)| (*left, sample.id));
            let lefts: Vec<u64> = seen.iter().map(|(left, _)| *left).collect();
            let weights = weights(&lefts);
            let mut of_thread: HashMap<Id, (f64, f64)> = HashMap::new();
            for ((_, sample), weight) in seen.iter().zip(&weights) {
                let (plain, weighed) = of_thread.entry(sample.thread).or_default();
                *plain += time_of(sample);
                *weighed += time_of(sample) * weight;
            }
            for ((_, sample), weight) in seen.iter().zip(&weights) {
                let (plain, weighed) = of_thread[&sample.thread];
                if plain > 0.0 && weighed > 0.0 {
                    paces.insert(sample.id, weight * plain / weighed);
                }
            }
        }
        Self(paces)
    }

    /// By how much more accesses a sample stands for than its time says.
    pub fn of(&self, sample: &TimerSample) -> f64 {
        self.0.get(&sample.id).copied().unwrap_or(1.0)
    }
}

/// Samples next to each other in an entry.
#[derive(Clone, Copy)]
struct Bin {
    count: f64,
    /// Rounds that it spans.
    rounds: f64,
}

impl Bin {
    fn density(self) -> f64 {
        self.count / self.rounds
    }
}

/// The weight of each of these samples, by the rounds left, which ascend.
fn weights(left: &[u64]) -> Vec<f64> {
    let mut bins: Vec<Bin> = Vec::new();
    let (mut count, mut from) = (0, 0.0);
    let mut rest = left.len();
    for same in left.chunk_by(|one, next| one == next) {
        count += same.len();
        rest -= same.len();
        let is_many = same.len() >= IN_BIN && count > same.len();
        if is_many {
            // One round with many samples is a bin of its own.
            bins.push(Bin { count: (count - same.len()) as f64, rounds: same[0] as f64 - from });
            (count, from) = (same.len(), same[0] as f64);
        }
        let is_last = rest == 0;
        if (count >= IN_BIN && (rest >= IN_BIN || same.len() >= IN_BIN)) || is_last {
            bins.push(Bin { count: count as f64, rounds: same[0] as f64 + 1.0 - from });
            (count, from) = (0, same[0] as f64 + 1.0);
        }
    }
    // Pools bins whose density is above that of the one before, from the least rounds left on.
    let mut pools: Vec<(Bin, usize)> = Vec::new();
    for bin in &bins {
        let mut last = (*bin, 1);
        while let Some((before, members)) = pools.pop_if(|(before, _)| before.density() <= last.0.density()) {
            last = (Bin { count: before.count + last.0.count, rounds: before.rounds + last.0.rounds }, members + last.1);
        }
        pools.push(last);
    }
    let fitted = pools.iter().flat_map(|(pool, members)| std::iter::repeat_n(pool.density(), *members));
    let of_bins = bins.iter().zip(fitted).flat_map(|(bin, fitted)| std::iter::repeat_n(fitted / bin.density(), bin.count as usize));
    of_bins.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::SampledLoop;

    fn unit(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The part of the weight on samples with at least `from` rounds left, of `count` samples drawn by time. `pace`: the time of a round by the rounds
    /// gone in the entry. `lengths`: of the entries in turn.
    fn part_from(count: usize, from: u64, lengths: &[u64], pace: impl Fn(u64) -> f64, seed: u64) -> f64 {
        let mut state = seed;
        let mut times = Vec::new();
        for &length in lengths {
            times.extend((0..length).rev().map(|left| (left, pace(length - 1 - left))));
        }
        let all: f64 = times.iter().map(|(_, time)| time).sum();
        let mut drawn: Vec<f64> = (0..count).map(|_| all * unit(&mut state)).collect();
        drawn.sort_by(f64::total_cmp);
        let (mut left, mut sum, mut round) = (Vec::new(), 0.0, times.iter());
        let mut now = round.next().expect("a round");
        for at in drawn {
            while sum + now.1 < at {
                sum += now.1;
                now = round.next().unwrap_or(now);
            }
            left.push(now.0);
        }
        left.sort_unstable();
        let weights = weights(&left);
        assert_eq!(weights.len(), count);
        let all: f64 = weights.iter().sum();
        left.iter().zip(&weights).filter(|(left, _)| **left >= from).map(|(_, weight)| weight).sum::<f64>() / all
    }

    /// Check the weight of the first eighth of entries against the accesses there: at an even pace, where it takes three times as long, and where one
    /// round takes as long as a third of all; few and many samples.
    #[test]
    fn the_beginning_has_its_part() {
        let first_eighth = |round: u64| if round < 512 { 3.0 } else { 1.0 };
        let first_round = |round: u64| if round == 0 { 2000.0 } else { 1.0 };
        let paces: [(&str, &dyn Fn(u64) -> f64); 3] =
            [("even", &|_| 1.0), ("the first eighth is slow", &first_eighth), ("the first round is slow", &first_round)];
        for (name, pace) in paces {
            for (count, within) in [(100, 0.035), (1000, 0.012), (4000, 0.008)] {
                let parts: Vec<f64> = (1..=40).map(|seed| part_from(count, 4096 * 7 / 8, &[4096], pace, seed)).collect();
                let mean = parts.iter().sum::<f64>() / parts.len() as f64;
                assert!((mean - 0.125).abs() < within, "{name}, {count} samples: {mean}");
                let spread = (parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / parts.len() as f64).sqrt();
                let by_chance = (0.125 * 0.875 / count as f64).sqrt();
                assert!(spread < 1.2 * by_chance, "{name}, {count} samples: {spread}, where unweighted samples have {by_chance}");
            }
        }
    }

    /// Check that entries of several lengths keep their parts: short ones have no rounds with many left.
    #[test]
    fn short_entries_are_no_slow_ones() {
        let lengths = [4096, 1024, 1024];
        for seed in 1..=10 {
            let part = part_from(4000, 1024, &lengths, |_| 1.0, seed);
            assert!((part - 0.5).abs() < 0.03, "{part}");
        }
    }

    /// Check that the weights of a thread in a loop have the mean 1 by time, and that samples without rounds left have the weight 1.
    #[test]
    fn threads_keep_their_time() {
        let mut state = 9;
        let sample = |id: Id, left: Option<u64>| {
            let around = Some(SampledLoop { end: 5, entry: 0, progress: None, left });
            let state = SampleState::Computing;
            TimerSample {
                id,
                thread: id % 3,
                time_ns: 0,
                cpu: 0,
                cpu_ns: 0,
                weight: 1.0,
                site: None,
                state,
                around,
                unknown: 0,
                elsewhere: 0.0,
            }
        };
        // The first thread is in the first rounds only.
        let left = |id: Id, unit: f64| if id % 3 == 0 { 900 + (100.0 * unit) as u64 } else { (1000.0 * unit) as u64 };
        let mut samples: Vec<TimerSample> = (1..=600).map(|id| sample(id, Some(left(id, unit(&mut state))))).collect();
        samples.extend((601..=700).map(|id| sample(id, None)));
        let profile = Profile { samples, ..Profile::default() };
        let time = |sample: &TimerSample| 1.0 + (sample.id % 5) as f64;
        let paces = Paces::new(&profile, |sample| Some(Loop::InProcess(1, sample.around?.end)), time);
        for thread in 0..3 {
            let own = || {
                profile.samples.iter().filter(|sample| sample.thread == thread && sample.around.is_some_and(|around| around.left.is_some()))
            };
            let (weighed, plain): (f64, f64) = (own().map(|one| time(one) * paces.of(one)).sum(), own().map(time).sum());
            assert!((weighed / plain - 1.0).abs() < 1e-9, "thread {thread}: {weighed} of {plain}");
        }
        assert!(profile.samples[600..].iter().all(|sample| paces.of(sample) == 1.0));
        let spread = profile.samples[..600].iter().filter(|one| one.thread != 0).map(|one| (paces.of(one) - 1.0).abs()).fold(0.0, f64::max);
        assert!(spread > 0.1, "{spread}");
    }
}
