//! How many laps of a loop lie between two ticks, where threads are sampled in their ticks only.
//!
//! The ticks of a CPU are the same time apart. A loop whose laps take just as long, or half as long, seems to stand still, and one that is a
//! little slower seems to go slowly. Ticks that come earlier or later than usual in a thread's CPU time show its speed: the progress, in parts
//! of a lap, changes with the time. So the circular mean of the progress, turned back by `laps` x the time that each pair is longer than
//! usual, is longest for the true number of laps in a usual time (a periodogram). Where perf is forbidden, the recorder makes such ticks
//! (`shift_us` in native/include/firsttouch_ring.h); else the scheduler makes some.

use super::pairs::Pair;
use super::rated::{NORMAL, Rate};
use std::f64::consts::TAU;

/// Pairs that are used, of each kind: between ticks that come early or late, and others.
const MOST_PAIRS: usize = 256;
/// Pairs that are needed, and those of them whose ticks came early or late: a single one may have been disturbed.
const LEAST_PAIRS: usize = 16;
const LEAST_DIFFERENT: usize = 4;
/// Times that differ from the usual one by less than this part of it show no speed.
const DIFFERENT: f64 = 0.01;
/// Times further from the usual one than this part of it have room for many laps.
const FAR: f64 = 1.0;
/// Numbers of laps between two ticks that are looked at: up to this many, in steps of this.
const MOST_LAPS: f64 = 16.0;
const STEP: f64 = 0.05;
const FINE_STEP: f64 = 0.002;
/// Numbers of laps that differ by more than this are different answers.
const OTHER: f64 = 0.5;
/// The logarithm of how much likelier than any other an answer must be.
const LIKELIER: f64 = 8.0;
/// The spread of progress is at least this: pairs of equal progress do not make an answer certain.
const LEAST_SPREAD: f64 = 1e-4;
/// Laps that differ from the usual one by more than this part of it are left out.
const SIMILAR: f64 = 0.1;

/// The answer.
#[derive(Clone, Copy, Debug)]
pub enum Laps {
    /// Less than half a lap: what the samples show is the progress.
    Within,
    /// Several laps, or about one: the time of a round.
    Several(Rate),
    Unknown,
}

/// How many laps lie between the samples of these pairs.
pub fn between(pairs: &[Pair]) -> Laps {
    let (usual_ns, lap) = (median(pairs, |pair| pair.ns), median(pairs, |pair| pair.lap));
    let points = points(pairs, usual_ns, lap);
    let different = points.iter().filter(|point| point.longer.abs() >= DIFFERENT).count();
    if points.len() < LEAST_PAIRS || different < LEAST_DIFFERENT {
        return Laps::Unknown;
    }
    let steps = (MOST_LAPS / STEP) as usize;
    let all: Vec<(f64, f64)> = (0..=steps).map(|step| step as f64 * STEP).map(|laps| (laps, concentration(&points, laps))).collect();
    let Some(&(coarse, best)) = all.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Laps::Unknown };
    let other = all.iter().filter(|(laps, _)| (laps - coarse).abs() > OTHER).map(|(_, other)| *other).fold(0.0, f64::max);
    let spread = |concentration: f64| (1.0 - concentration).max(LEAST_SPREAD);
    if points.len() as f64 / 2.0 * (spread(other) / spread(best)).ln() < LIKELIER {
        return Laps::Unknown;
    }
    let around = (STEP / FINE_STEP) as usize;
    let fine = (0..=2 * around).map(|step| (coarse - STEP + step as f64 * FINE_STEP).max(0.0));
    let laps = fine.max_by(|a, b| concentration(&points, *a).total_cmp(&concentration(&points, *b))).unwrap_or(coarse);
    if laps < OTHER {
        return Laps::Within;
    }
    let mean = points.iter().map(|point| point.longer).sum::<f64>() / points.len() as f64;
    let squares: f64 = points.iter().map(|point| (point.longer - mean).powi(2)).sum();
    let error = (-2.0 * best.max(LEAST_SPREAD).ln()).max(LEAST_SPREAD).sqrt() / TAU / squares.sqrt();
    Laps::Several(Rate { ns: usual_ns / (laps * lap), error: NORMAL * error / laps })
}

/// A pair: how much longer than usual its time is, in usual times, and its progress, in laps.
struct Point {
    longer: f64,
    progress: f64,
}

fn points(pairs: &[Pair], usual_ns: f64, lap: f64) -> Vec<Point> {
    let is_similar = |pair: &&Pair| (pair.lap - lap).abs() <= SIMILAR * lap;
    let point = |pair: &Pair| Point { longer: (pair.ns - usual_ns) / usual_ns, progress: pair.rounds / pair.lap };
    let near = pairs.iter().filter(is_similar).map(point).filter(|point| point.longer.abs() <= FAR);
    let (different, usual): (Vec<Point>, Vec<Point>) = near.partition(|point| point.longer.abs() >= DIFFERENT);
    let some = |points: Vec<Point>| {
        let each = points.len().div_ceil(MOST_PAIRS).max(1);
        points.into_iter().step_by(each)
    };
    some(different).chain(some(usual)).collect()
}

/// The length of the mean of all progress on a circle of one lap, each turned back by `laps` x the time that it had more than usual: 1 if
/// that explains all of it.
fn concentration(points: &[Point], laps: f64) -> f64 {
    let (sine, cosine) = points.iter().fold((0.0, 0.0), |sum: (f64, f64), point| {
        let (sine, cosine) = (TAU * (point.progress - laps * point.longer)).sin_cos();
        (sum.0 + sine, sum.1 + cosine)
    });
    sine.hypot(cosine) / points.len().max(1) as f64
}

fn median(pairs: &[Pair], value: impl Fn(&Pair) -> f64) -> f64 {
    let mut values: Vec<f64> = pairs.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: f64 = 4e6;
    const LAP: f64 = 10_000.0;

    /// Pairs of a loop that makes so many laps in a tick, with a speed that varies by 3 %; one in `each` comes up to 1.4 ms early.
    fn pairs(laps: f64, each: usize) -> Vec<Pair> {
        // A linear congruential generator (Knuth's constants).
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut pair = |at: usize| {
            let early = if at % each == each - 1 { 1.4e6 * random() } else { 0.0 };
            let ns = TICK_NS - early + 2_000.0 * random();
            let progress = (laps * ns / TICK_NS * (1.0 + 0.06 * (random() - 0.5))).fract();
            // The first sample is anywhere in the lap.
            let begins_anew = random() < progress;
            Pair {
                ns,
                rounds: LAP * (progress - f64::from(u8::from(begins_anew))),
                lap: LAP,
                left: LAP,
                run: 0,
                is_burst: false,
                has_faults: false,
            }
        };
        (0..1000).map(&mut pair).collect()
    }

    /// Check that early ticks tell a loop in step with the ticks from one that moves slowly, and give the speed of the first.
    #[test]
    fn early_ticks_show_the_speed() {
        for laps in [0.9, 1.02, 2.1, 3.04, 4.5] {
            let Laps::Several(rate) = between(&pairs(laps, 50)) else { panic!("{laps} laps: {:?}", between(&pairs(laps, 50))) };
            let truth = TICK_NS / (laps * LAP);
            assert!((rate.ns / truth - 1.0).abs() < rate.error && rate.error < 0.15, "{laps} laps: {rate:?}, not {truth}");
        }
        for laps in [0.001, 0.04, 0.2] {
            assert!(matches!(between(&pairs(laps, 50)), Laps::Within), "{laps} laps");
        }
    }

    /// Check that ticks which are all the same time apart show nothing.
    #[test]
    fn ticks_alone_show_nothing() {
        for laps in [0.1, 1.1, 3.04] {
            assert!(matches!(between(&pairs(laps, usize::MAX)), Laps::Unknown), "{laps} laps");
        }
        assert!(matches!(between(&[]), Laps::Unknown));
    }
}
