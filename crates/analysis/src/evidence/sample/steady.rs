//! Whether the progress between samples is that of one loop which goes on.
//!
//! A search or another short loop is entered anew thousands of times between two samples, often with the same registers. The difference of its
//! register between two samples is then the difference of two random places: it says nothing about the loop's speed, and does not grow with the time
//! between the samples. A loop that goes on shows about the same speed in each pair.

use super::pairs::Pair;
use firsttouch_model::rows::Id;

/// The middle half of the speeds lies within this part of the median. Differences of two places drawn at random spread 1.3 times the median.
const SPREAD: f64 = 0.8;
/// Progress is counted in whole rounds.
const ROUNDING: f64 = 1.0;
/// Speeds of a thread are compared with its own median from this many pairs on: threads on remote memory are slower.
const OWN_MEDIAN: usize = 4;
/// Fewer pairs show no spread.
const LEAST_PAIRS: usize = 6;

/// Whether the pairs of a loop's threads show speeds of one kind. Pairs in which the loop began anew have no speed.
pub fn is_steady(threads: &[(Id, Vec<Pair>)]) -> bool {
    let going_on = |pairs: &[Pair]| pairs.iter().filter(|pair| pair.rounds >= 0.0 && pair.ns > 0.0).copied().collect::<Vec<Pair>>();
    let threads: Vec<Vec<Pair>> = threads.iter().map(|(_, pairs)| going_on(pairs)).collect();
    let speed = |pair: &Pair| pair.rounds / pair.ns;
    let all = quartiles(threads.iter().flatten().map(speed).collect());
    let usual_ns = quartiles(threads.iter().flatten().map(|pair| pair.ns).collect());
    let (Some([_, all, _]), Some([_, usual_ns, _])) = (all, usual_ns) else { return true };
    // Speeds relative to the thread's own median.
    let relative = |pairs: &Vec<Pair>| {
        let own = if pairs.len() >= OWN_MEDIAN { quartiles(pairs.iter().map(speed).collect()).map_or(all, |[_, own, _]| own) } else { all };
        let scale = if own > 0.0 { all / own } else { 1.0 };
        pairs.iter().map(|pair| speed(pair) * scale).collect::<Vec<f64>>()
    };
    let speeds: Vec<f64> = threads.iter().flat_map(relative).collect();
    if speeds.len() < LEAST_PAIRS {
        return true;
    }
    quartiles(speeds).is_none_or(|[low, median, high]| (high - low) * usual_ns <= SPREAD * median * usual_ns + ROUNDING)
}

/// The lower quartile, the median and the upper quartile.
pub(super) fn quartiles(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values.get((values.len().saturating_sub(1) as f64 * part).round() as usize).copied();
    Some([at(0.25)?, at(0.5)?, at(0.75)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    fn pair(ns: f64, rounds: f64) -> Pair {
        Pair { ns, rounds: rounds.trunc(), lap: 32.0, left: 32.0, run: 0, is_burst: true, has_faults: false }
    }

    /// Check that a loop which goes on is steady, with noise, at different distances, and with threads of different speeds.
    #[test]
    fn loops_that_go_on_are_steady() {
        let mut state = 1;
        for rounds_a_ns in [1e-5, 1e-3, 1.0] {
            let threads: Vec<(Id, Vec<Pair>)> = (0..4)
                .map(|thread| {
                    let slower = 1.0 + thread as f64;
                    let one = |i: usize| {
                        let ns = [7e4, 1.1e5, 2e5, 3e5][i % 4];
                        pair(ns, ns * rounds_a_ns / slower * (0.8 + 0.4 * unit(&mut state)))
                    };
                    (thread, (0..20).map(one).collect())
                })
                .collect();
            assert!(is_steady(&threads), "{rounds_a_ns}");
        }
    }

    /// Check that differences of random places, as those of a search that is entered anew all the time, are not: in 97 of 100 cases.
    #[test]
    fn random_places_are_not_steady() {
        let mut state = 2;
        let mut steady = 0;
        for _ in 0..100 {
            let one = |i: usize| pair([7e4, 1.1e5, 2e5, 3e5][i % 4], 32.0 * unit(&mut state) - 32.0 * unit(&mut state));
            steady += usize::from(is_steady(&[(0, (0..60).map(one).collect())]));
        }
        assert!(steady <= 3, "{steady}");
    }

    /// Check that few pairs decide nothing.
    #[test]
    fn few_pairs_are_steady() {
        assert!(is_steady(&[]) && is_steady(&[(0, vec![pair(1e5, 3.0), pair(1e5, 90.0)])]));
    }
}
