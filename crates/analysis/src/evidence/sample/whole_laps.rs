//! The time of a round by ticks between which whole laps lie.
//!
//! A loop that makes 1.4 laps between two ticks shows the 0.4 of them exactly, and not how many laps come to it. The samples of bursts, which are
//! closer together than a lap takes, show that roughly. Their speeds say little of how the threads differ: a burst interrupts its
//! thread, and a thread that others wait for is alone with the memory for the end of its lap. (Of triad with two threads, which have equal work, bursts
//! show speeds that differ by 3 to 13 %, these ticks by 0.4 to 1.1 %, in eight runs each.)
//!
//! In a mean, the parts of laps are those within half a lap of their circular mean.

use super::pairs::Pair;
use super::rated::{NORMAL, Rate};
use super::times::median;
use firsttouch_model::rows::Id;
use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// Pairs of a thread that are needed.
const PAIRS: usize = 16;
/// Pairs whose time, or whose lap, differs from the usual one by more than this part of it are left out.
const USUAL_NS: f64 = 0.01;
const USUAL_LAP: f64 = 0.1;
/// Fewer laps leave ticks in one lap.
pub const LEAST_LAPS: f64 = 0.9;
/// The number of whole laps is sure if the rough number of laps is within this of the true one, with its error and in fact.
const SURE: f64 = 0.4;
/// Parts of laps whose circular mean is shorter than this have no mean. (Normal errors of 0.2 laps: 0.45.)
const LEAST_CONCENTRATION: f64 = 0.4;

/// The rate of a loop and those of its threads.
pub struct Known {
    pub all: Rate,
    pub threads: Vec<(Id, Rate)>,
}

/// What the ticks of one thread show.
struct Seen {
    thread: Id,
    rate: Rate,
    /// CPU time of the loop, and rounds, between all of the ticks.
    ns: f64,
    rounds: f64,
}

/// The rates by ticks. `ticks`: pairs, by thread, with all of the time between them. `rough`: CPU time of a round, of all threads, with its error. `part_of`:
/// the part of a thread's time that the loop takes. `None` if the ticks of one thread do not show it.
pub fn rates(ticks: &BTreeMap<Id, Vec<Pair>>, rough: Rate, part_of: impl Fn(Id) -> f64) -> Option<Known> {
    let threads = ticks.iter().filter(|(_, pairs)| pairs.len() >= PAIRS);
    let seen = threads.map(|(thread, pairs)| of_thread(*thread, pairs, rough, part_of(*thread))).collect::<Option<Vec<Seen>>>()?;
    let (ns, rounds) = seen.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.ns, sum.1 + one.rounds));
    if rounds <= 0.0 {
        return None;
    }
    let error = seen.iter().map(|one| (one.rate.error * one.rounds).powi(2)).sum::<f64>().sqrt() / rounds;
    Some(Known { all: Rate { ns: ns / rounds, error }, threads: seen.iter().map(|one| (one.thread, one.rate)).collect() })
}

/// How many laps lie between two ticks at this rate.
pub fn laps<'a>(ticks: impl Iterator<Item = &'a Pair>, rough: Rate) -> Option<f64> {
    let (ns, laps): (Vec<f64>, Vec<f64>) = ticks.map(|pair| (pair.ns, pair.lap)).unzip();
    Some(median(ns)? / rough.ns / median(laps)?)
}

fn of_thread(thread: Id, pairs: &[Pair], rough: Rate, part: f64) -> Option<Seen> {
    let usual = |value: fn(&Pair) -> f64| median(pairs.iter().map(value).collect());
    let (usual_ns, usual_lap) = (usual(|pair| pair.ns)?, usual(|pair| pair.lap)?);
    let is_usual =
        |pair: &&Pair| (pair.ns - usual_ns).abs() <= USUAL_NS * usual_ns && (pair.lap - usual_lap).abs() <= USUAL_LAP * usual_lap;
    let parts: Vec<f64> = pairs.iter().filter(is_usual).map(|pair| pair.rounds / pair.lap).collect();
    let roughly = part * usual_ns / rough.ns / usual_lap;
    if parts.len() < PAIRS || roughly * rough.error > SURE {
        return None;
    }
    let count = parts.len() as f64;
    let (sine, cosine) = parts.iter().map(|part| (TAU * part).sin_cos()).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if sine.hypot(cosine) < LEAST_CONCENTRATION * count {
        return None;
    }
    let middle = sine.atan2(cosine) / TAU;
    let near = |part: f64| middle + (part - middle + 0.5).rem_euclid(1.0) - 0.5;
    let mean = parts.iter().map(|part| near(*part)).sum::<f64>() / count;
    let variance = parts.iter().map(|part| (near(*part) - mean).powi(2)).sum::<f64>() / count;
    let laps = mean + (roughly - mean).round();
    if laps < LEAST_LAPS || (laps - roughly).abs() > SURE {
        return None;
    }
    let of_part = ((1.0 - part) / (part * count)).max(0.0);
    let error = NORMAL * (variance / count / laps.powi(2) + of_part).sqrt();
    let (ns, rounds) = (part * usual_ns, laps * usual_lap);
    Some(Seen { thread, rate: Rate { ns: ns / rounds, error }, ns: count * ns, rounds: count * rounds })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: f64 = 4e6;
    const LAP: f64 = 1_000_000.0;

    /// Ticks of a loop that takes a part of its thread's time and makes so many laps in a tick, with normal errors of this many laps.
    fn ticks(laps: f64, spread: f64, count: usize, state: &mut u64) -> Vec<Pair> {
        let mut unit = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let pair = |_| {
            let from = unit();
            let error = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
            let to = (from + laps + spread * error).rem_euclid(1.0);
            Pair {
                ns: TICK_NS * (1.0 + 0.002 * unit()),
                rounds: LAP * (to - from),
                lap: LAP,
                left: LAP * (1.0 - from),
                run: 0,
                is_burst: false,
                has_faults: false,
            }
        };
        (0..count).map(pair).collect()
    }

    fn rough(laps: f64, part: f64) -> Rate {
        Rate { ns: part * TICK_NS / LAP / laps, error: 0.2 }
    }

    /// Check that `rates` gives each of two threads, which differ by 3 %, its own rate where the rough rate is 15 % off: at least 93 of 100 intervals contain the truth.
    #[test]
    fn rough_rates_become_exact() {
        let mut state = 11;
        let (mut inside, mut all) = (0, 0);
        for laps in [1.0, 1.3, 1.47, 1.62, 1.7] {
            for wrong in [0.87, 1.0, 1.15] {
                for _ in 0..20 {
                    let truth = [(1, laps, 0.97), (2, laps * 1.03, 0.94)];
                    let of = truth.iter().map(|(thread, laps, _)| (*thread, ticks(*laps, 0.17, 400, &mut state))).collect();
                    let part_of = |thread| if thread == 1 { 0.97 } else { 0.94 };
                    let Some(known) = rates(&of, rough(laps * wrong, 0.955), part_of) else { panic!("{laps}, {wrong}") };
                    for ((_, rate), (_, laps, part)) in known.threads.iter().zip(truth) {
                        let truth = part * TICK_NS / LAP / laps;
                        inside += u32::from((rate.ns / truth - 1.0).abs() <= rate.error);
                        all += 1;
                        assert!(rate.error < 0.05, "{rate:?}");
                    }
                }
            }
        }
        assert!(f64::from(inside) >= 0.93 * f64::from(all), "{inside} of {all}");
    }

    /// Check that `rates` refuses too many laps for the error of the rough rate, parts of laps without a mean, laps longer than a tick, few pairs, and a rough rate that contradicts the ticks.
    #[test]
    fn unsure_numbers_are_refused() {
        let mut state = 5;
        for (laps, roughly, spread, count) in
            [(2.4, 2.4, 0.1, 400), (1.5, 1.5, 0.4, 400), (0.5, 0.5, 0.1, 400), (1.5, 1.5, 0.1, 10), (1.5, 2.0, 0.1, 400)]
        {
            let of: BTreeMap<Id, Vec<Pair>> = [(1, ticks(laps, spread, count, &mut state))].into();
            assert!(rates(&of, rough(roughly, 1.0), |_| 1.0).is_none(), "{laps}, {roughly}, {spread}, {count}");
        }
        assert!(rates(&BTreeMap::new(), rough(1.5, 1.0), |_| 1.0).is_none());
    }
}
