//! Which objects stay in a core's cache. An object that would fit there by itself does not stay if the others push it out between two sweeps over
//! it: the vectors of a class, of which each step uses all.
//!
//! By the approximation of Che, Tung and Wang (2002) for a cache that replaces what was not used for longest: an object whose words are used
//! at a rate r stays in the cache with probability 1 - exp(-r T), where the time T is such that the expected bytes of all objects in the
//! cache, the sum of b (1 - exp(-r T)), are its size. A core's part of an object has b = bytes / threads that use it, and r = accesses to a
//! word. The sum is over the average core: an object counts by the part of the cores that use it. Memory of no recorded object is not counted, so more objects may leave the cache than are found here.

use crate::Target;
use crate::evidence::Evidence;
use crate::groups::Group;
use crate::threads::Threads;
use firsttouch_model::rows::Id;
use std::collections::BTreeSet;

const WORD: f64 = 8.0;
/// Objects below this part of the cache (1 / `LEAST_PART`) are taken to stay in it.
const LEAST_PART: u64 = 8;
/// An object does not stay if its words are in the cache with less than this probability.
const STAYS: f64 = 0.5;
/// The least number of samples that say how often an object is used.
const LEAST_SAMPLES: usize = 3;
const STEPS: usize = 200;

/// A core's part of an object: bytes, accesses to a word, and the part of the cores that use it.
#[derive(Clone, Copy, Debug)]
struct Part {
    bytes: f64,
    rate: f64,
    cores: f64,
}

impl Part {
    /// The probability that a word of it is in the cache.
    fn kept(self, time: f64) -> f64 {
        1.0 - (-self.rate * time).exp()
    }
}

/// By group: whether it would fit in a core's cache by itself, but does not stay there.
#[must_use]
pub fn pushed_out(uses: &Evidence, groups: &[Group], threads: &Threads, target: &Target) -> Vec<bool> {
    let Some(source) = uses.volumes() else { return vec![false; groups.len()] };
    let sampled = uses.of(source);
    let users = |g: usize| -> BTreeSet<(Id, usize)> {
        let threads = sampled.hits[g].iter().flat_map(|hit| &hit.by_thread).map(|by| &threads.list[by.thread]);
        threads.map(|thread| (thread.team, thread.worker)).collect()
    };
    let all = (0..groups.len()).flat_map(users).collect::<BTreeSet<_>>().len() as f64;
    let parts: Vec<Option<Part>> = groups
        .iter()
        .enumerate()
        .map(|(g, group)| {
            let users = users(g);
            let bytes = group.extent() as f64;
            let rate = sampled.design.accesses(g) * WORD / bytes;
            let is_used = !users.is_empty() && rate.is_finite() && rate > 0.0;
            is_used.then(|| Part { bytes: bytes / users.len() as f64, rate, cores: users.len() as f64 / all })
        })
        .collect();
    let time = time(parts.iter().flatten().copied(), target.private_cache_bytes as f64);
    let is_pushed_out = |(g, part): (usize, &Option<Part>)| {
        let (Some(time), Some(part)) = (time, part) else { return false };
        let is_small = groups[g].extent() <= target.private_cache_bytes && groups[g].extent() >= target.private_cache_bytes / LEAST_PART;
        is_small && sampled.hits[g].len() >= LEAST_SAMPLES && part.kept(time) < STAYS
    };
    parts.iter().enumerate().map(is_pushed_out).collect()
}

/// T; `None` if everything fits.
fn time(parts: impl Iterator<Item = Part> + Clone, cache: f64) -> Option<f64> {
    let all: f64 = parts.clone().map(|part| part.cores * part.bytes).sum();
    let fastest = parts.clone().map(|part| part.rate).fold(0.0, f64::max);
    if all <= cache || fastest <= 0.0 || !all.is_finite() || !fastest.is_finite() {
        return None;
    }
    let held = |time: f64| parts.clone().map(|part| part.cores * part.bytes * part.kept(time)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0 / fastest);
    for _ in 0..STEPS {
        if held(high) >= cache {
            break;
        }
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if held(middle) < cache { low = middle } else { high = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    fn kept(parts: &[Part], cache: f64) -> Vec<f64> {
        let time = time(parts.iter().copied(), cache);
        parts.iter().map(|part| time.map_or(1.0, |time| part.kept(time))).collect()
    }

    /// Check that vectors which are swept in turn push each other out, that a table which is used more often stays, and that all stay if
    /// they fit together.
    #[test]
    fn what_stays() {
        let vectors = [Part { bytes: 0.5 * MIB, rate: 100.0, cores: 1.0 }; 40];
        assert!(kept(&vectors, 2.0 * MIB).iter().all(|kept| (kept - 0.1).abs() < 0.01));
        let with_table: Vec<Part> = vectors.into_iter().chain([Part { bytes: 0.25 * MIB, rate: 100_000.0, cores: 1.0 }]).collect();
        assert!(*kept(&with_table, 2.0 * MIB).last().unwrap() > 0.99);
        assert!(kept(&vectors[..4], 2.0 * MIB).iter().all(|kept| *kept == 1.0));
        assert!(kept(&[], 1.0).is_empty() && kept(&[Part { bytes: MIB, rate: 0.0, cores: 1.0 }], 1.0) == [1.0]);
    }

    /// Check that what other cores use alone pushes nothing out.
    #[test]
    fn private_memory_of_others_counts_there() {
        let own = [Part { bytes: MIB, rate: 100.0, cores: 1.0 / 8.0 }; 8];
        assert!(kept(&own, 2.0 * MIB).iter().all(|kept| *kept == 1.0));
    }

    /// Check that the matrix of a matrix-vector product does not push its vector out.
    #[test]
    fn vector_of_a_product_stays() {
        let product = [Part { bytes: 128.0 * MIB, rate: 100.0, cores: 1.0 }, Part { bytes: 64e3, rate: 800_000.0, cores: 1.0 }];
        assert!(kept(&product, MIB)[1] > 0.99);
    }
}
