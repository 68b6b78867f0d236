//! The rate of one loop, from the pairs of its samples: which of them say how fast it goes round, and how fast each of its threads does.

use super::pairs::{OfLoop, Pair};
use super::{laps, speed, steady, whole_laps};
use firsttouch_model::rows::Id;
use laps::Laps;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Pairs that are needed to rate a loop.
const PAIRS: usize = 6;
/// The mean progress between two samples must be less than this part of a lap, if a lap is added where the loop began anew.
const PART_OF_A_LAP: f64 = 1.0 / 3.0;
/// The same, if nothing shows whether whole laps lie between two samples as well. Laps whose length has nothing to do with the ticks are
/// taken for progress so often.
const PART_OF_A_LAP_UNCHECKED: f64 = 0.05;
/// A loop that takes at least this part of its threads' time is alone: what lies between two of its samples is its own laps.
const ALONE: f64 = 0.8;
/// Progress beyond this is no loop's: rounds a ns. (A string instruction moves up to 64 elements of one byte a cycle.)
const MOST_ROUNDS_A_NS: f64 = 400.0;
/// So many pairs of bursts, of threads that ticks show as well, show how much longer rounds take in bursts; what is longer than by this factor has another
/// cause than interruptions.
const ENOUGH_BURSTS: f64 = 24.0;
const MOST_INTERRUPTED: f64 = 1.2;
/// The relative error of the rate of one thread by bursts: an interrupted thread is alone with the memory while others wait for it. Seen: 3 to 13 % between
/// two threads with equal work, in eight runs. Half a 95 % interval.
const BURST_THREAD_ERROR: f64 = 0.1;
/// So many threads, or fewer, do not show how much their rates spread.
const SHOW_NO_SPREAD: usize = 3;
/// A loop without another rate is rated by at least [`FEW`] and at most [`MOST_FEW`] pairs of bursts, each of which moves on by at most [`PART_OF_FEW`] of an entry,
/// if the quartiles of their speeds differ by less than a factor of [`FEW_DIFFER`]. [`FEW_ERROR`] is the relative error, half a 95 % interval. Seen in
/// bursts of one loop: 50 to 290 ns a round, the first pair of each burst the slowest.
const FEW: usize = 4;
const MOST_FEW: usize = 16;
const PART_OF_FEW: f64 = 0.25;
const FEW_DIFFER: f64 = 2.5;
const FEW_ERROR: f64 = 0.6;
/// Half a 95 % interval in standard errors.
pub(super) const NORMAL: f64 = 1.96;
/// The relative error that the rates of a loop's threads have in common, if they come from bursts: an interruption costs more than the time
/// that it takes, because the caches are colder after it. Seen: 5 to 20 %. Half a 95 % interval.
pub(super) const BURST_ERROR: f64 = 0.2;

/// CPU time of a round, and its relative error as half a 95 % interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub ns: f64,
    pub error: f64,
}

/// The rate of a loop, and of its threads that have enough pairs.
pub(super) struct Rated {
    pub all: Rate,
    pub threads: Vec<(Id, Rate)>,
    /// How much of the evidence comes from bursts.
    pub part_of_bursts: f64,
}

pub(super) fn only_bursts(mut of_threads: BTreeMap<Id, Vec<Pair>>) -> BTreeMap<Id, Vec<Pair>> {
    of_threads.values_mut().for_each(|pairs| pairs.retain(|pair| pair.is_burst));
    of_threads
}

impl Rated {
    pub fn slower_by(self, factor: f64) -> Self {
        let slower = |rate: Rate| Rate { ns: rate.ns * factor, ..rate };
        Self { all: slower(self.all), threads: self.threads.into_iter().map(|(thread, rate)| (thread, slower(rate))).collect(), ..self }
    }
}

/// The rates of a loop by these of its pairs. `times`: the pairs with their times as they may be, the likelier ones first; those count in which samples
/// of bursts and of timers show the same speed.
pub(super) fn rated_loop(times: &[BTreeMap<Id, Vec<Pair>>], of_loop: &OfLoop) -> Option<Rated> {
    let part_of_time = of_loop.part_of_time();
    let times: Vec<Vec<(Id, Vec<Pair>)>> = times.iter().map(|pairs| pairs.clone().into_iter().collect()).collect();
    if let Some(rated) = times.first().and_then(|all| between_laps(all, of_loop)) {
        return Some(rated);
    }
    let straight =
        times.iter().filter_map(|all| speed::straight_on(all).filter(|straight| steady::is_steady(straight))).map(without_few_timers);
    let straight = straight.min_by(|a, b| disagreement(a).total_cmp(&disagreement(b)));
    if let Some(rated) = straight.and_then(|straight| rated_by(&straight)) {
        return Some(rated);
    }
    let all = times.first()?;
    let timers: Vec<(Id, Vec<Pair>)> =
        all.iter().map(|(thread, pairs)| (*thread, pairs.iter().filter(|pair| !pair.is_burst).copied().collect())).collect();
    let of_timers: Vec<Pair> = timers.iter().flat_map(|(_, pairs)| pairs).copied().collect();
    let laps = if part_of_time >= ALONE { laps::between(&of_timers) } else { Laps::Unknown };
    if let Laps::Several(rate) = laps {
        let all = Rate { ns: rate.ns * part_of_time, ..rate };
        return Some(Rated { all, threads: Vec::new(), part_of_bursts: 0.0 });
    }
    let least = if matches!(laps, Laps::Within) { PART_OF_A_LAP } else { PART_OF_A_LAP_UNCHECKED };
    let is_within = mean_progress(&of_timers) < least && steady::is_steady(&timers);
    let whole: Vec<(Id, Vec<Pair>)> = timers.iter().map(|(thread, pairs)| (*thread, whole(pairs))).collect();
    if is_within { rated_by(&whole) } else { None }
}

/// The rates of a loop whose laps are shorter than the time between two ticks, if bursts show its speed: ticks that skip laps would pass for a slow loop.
fn between_laps(all: &[(Id, Vec<Pair>)], of_loop: &OfLoop) -> Option<Rated> {
    let bursts = |pairs: &Vec<Pair>| pairs.iter().filter(|pair| pair.is_burst).copied().collect();
    let bursts: Vec<(Id, Vec<Pair>)> = all.iter().map(|(thread, pairs)| (*thread, bursts(pairs))).collect();
    let straight = speed::straight_on(&bursts).filter(|straight| steady::is_steady(straight))?;
    let rated = rated_by(&straight)?;
    if whole_laps::laps(of_loop.ticks.values().flatten(), rated.all)? < whole_laps::LEAST_LAPS {
        return None;
    }
    if of_loop.part_of_time() < ALONE {
        return Some(rated);
    }
    let rough = Rate { error: rated.all.error.hypot(BURST_ERROR), ..rated.all };
    let known = whole_laps::rates(&of_loop.ticks, rough, |thread| of_loop.part_of_time_of(thread));
    Some(known.map_or(rated, |known| Rated { threads: towards(known.all, known.threads), all: known.all, part_of_bursts: 0.0 }))
}

/// The rate by the bursts in single entries, if they show a speed of one kind: whether laps lie between their samples is not checked, so this is for
/// loops whose way through memory says something else.
pub(super) fn straight_in_entries(entries: &BTreeMap<Id, Vec<Pair>>) -> Option<Rated> {
    let bursts = |pairs: &Vec<Pair>| pairs.iter().filter(|pair| pair.is_burst).copied().collect();
    let threads: Vec<(Id, Vec<Pair>)> = entries.iter().map(|(thread, pairs)| (*thread, bursts(pairs))).collect();
    let goes_on = threads.iter().flat_map(|(_, pairs)| pairs).all(|pair| pair.rounds > 0.0);
    if goes_on && steady::is_steady(&threads) { rated_by(&threads) } else { None }
}

/// The rate by the few pairs of bursts in single entries that there are, if each goes on by a small part of the entry, and at about one speed. Places drawn
/// at random, as those of a loop that is entered anew with the same registers, look like that in one of 500 cases.
pub(super) fn by_few(entries: &BTreeMap<Id, Vec<Pair>>) -> Option<Rated> {
    let pairs: Vec<Pair> = entries.values().flatten().filter(|pair| pair.is_burst && !pair.has_faults && pair.ns > 0.0).copied().collect();
    let goes_on = pairs.iter().all(|pair| pair.rounds > 0.0 && pair.rounds <= PART_OF_FEW * pair.lap);
    let [low, _, high] = steady::quartiles(pairs.iter().map(|pair| pair.rounds / pair.ns).collect())?;
    if !(FEW..=MOST_FEW).contains(&pairs.len()) || !goes_on || high > FEW_DIFFER * low {
        return None;
    }
    let (ns, rounds) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.ns, sum.1 + pair.rounds));
    (rounds / ns <= MOST_ROUNDS_A_NS).then(|| Rated {
        all: Rate { ns: ns / rounds, error: FEW_ERROR },
        threads: Vec::new(),
        part_of_bursts: 1.0,
    })
}

/// A few pairs of timer samples are a tenth of all time between bursts' samples, and show nothing of whether their part of that time is right.
fn without_few_timers(mut threads: Vec<(Id, Vec<Pair>)>) -> Vec<(Id, Vec<Pair>)> {
    let count = |is_burst: bool| threads.iter().flat_map(|(_, pairs)| pairs).filter(|pair| pair.is_burst == is_burst).count();
    if count(false) < PAIRS && count(true) >= PAIRS {
        threads.iter_mut().for_each(|(_, pairs)| pairs.retain(|pair| pair.is_burst));
    }
    threads
}

/// How much the speeds by bursts and by timers differ, as the logarithm of their ratio. 0 if one of them is not known.
fn disagreement(threads: &[(Id, Vec<Pair>)]) -> f64 {
    let speed = |is_burst: bool| {
        let pairs: Vec<Pair> = threads.iter().flat_map(|(_, pairs)| pairs).filter(|pair| pair.is_burst == is_burst).copied().collect();
        ratio(&pairs)
    };
    speed(true).zip(speed(false)).map_or(0.0, |(bursts, timers)| (bursts.ns / timers.ns).ln().abs())
}

/// The pairs, those of bursts with the time that they would have taken without interruptions, where threads with pairs of both kinds show it: else a
/// thread that only bursts show would seem slower than one that ticks show.
fn without_interruptions(threads: &[(Id, Vec<Pair>)]) -> Cow<'_, [(Id, Vec<Pair>)]> {
    let (mut all, mut sum) = (0.0, 0.0);
    for (_, pairs) in threads {
        let of_kind = |is_burst: bool| pairs.iter().filter(|pair| pair.is_burst == is_burst).copied().collect::<Vec<Pair>>();
        let [ticks, bursts] = [of_kind(false), of_kind(true)];
        if let Some((by_ticks, by_bursts)) = ratio(&ticks).zip(ratio(&bursts)) {
            all += bursts.len() as f64;
            sum += bursts.len() as f64 * by_ticks.ns / by_bursts.ns;
        }
    }
    if all < ENOUGH_BURSTS {
        return Cow::Borrowed(threads);
    }
    let factor = sum / all;
    if !(1.0 / MOST_INTERRUPTED..=1.0).contains(&factor) {
        return Cow::Borrowed(threads);
    }
    let scaled = |pair: &Pair| Pair { ns: pair.ns * if pair.is_burst { factor } else { 1.0 }, ..*pair };
    threads.iter().map(|(thread, pairs)| (*thread, pairs.iter().map(scaled).collect())).collect()
}

/// The rates by pairs in which the loop went straight on.
fn rated_by(threads: &[(Id, Vec<Pair>)]) -> Option<Rated> {
    let threads = &*without_interruptions(threads);
    let pairs: Vec<Pair> = threads.iter().flat_map(|(_, pairs)| pairs).copied().collect();
    let all = ratio(&pairs)?;
    let ns = |pairs: &mut dyn Iterator<Item = &Pair>| pairs.map(|pair| pair.ns).sum::<f64>();
    let of_bursts = ns(&mut pairs.iter().filter(|pair| pair.is_burst));
    let part_of_bursts = of_bursts / ns(&mut pairs.iter());
    let with_bursts = |rate: Rate| Rate { error: rate.error.hypot(BURST_THREAD_ERROR * part_of_bursts), ..rate };
    // Threads of one loop are compared with each other, so all of them have rates of their own, or none.
    let own = threads.iter().filter(|(_, pairs)| pairs.len() >= PAIRS).map(|(thread, pairs)| Some((*thread, with_bursts(ratio(pairs)?))));
    let threads = own.collect::<Option<Vec<(Id, Rate)>>>().map(|own| towards(all, own)).unwrap_or_default();
    Some(Rated { all, threads, part_of_bursts })
}

/// CPU time of a round: a ratio of sums, with its error by linearisation.
fn ratio(pairs: &[Pair]) -> Option<Rate> {
    if pairs.len() < PAIRS {
        return None;
    }
    let (ns, rounds) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.ns, sum.1 + pair.rounds));
    if rounds <= 0.0 || ns <= 0.0 || rounds / ns > MOST_ROUNDS_A_NS {
        return None;
    }
    let residual = |pairs: &[Pair]| pairs.iter().map(|pair| pair.ns - ns / rounds * pair.rounds).sum::<f64>();
    let residuals: f64 = pairs.chunk_by(|one, next| one.run == next.run).map(|run| residual(run).powi(2)).sum();
    Some(Rate { ns: ns / rounds, error: NORMAL * residuals.sqrt() / ns })
}

/// The rates of threads, moved towards the rate of their loop as far as their errors explain the differences between them: few pairs of a thread
/// do not make it faster than the others. An empirical Bayes estimate with its variance (Morris 1983, Parametric Empirical Bayes Inference, 1.16 to
/// 1.18), which takes into account that the spread of the threads' true rates is estimated as well; fewer than four threads do not show that.
fn towards(of_loop: Rate, own: Vec<(Id, Rate)>) -> Vec<(Id, Rate)> {
    let count = own.len().max(1) as f64;
    let differs = |rate: &Rate| (rate.ns / of_loop.ns).ln();
    let noise = |rate: &Rate| (rate.error / NORMAL).powi(2);
    let between = (own.iter().map(|(_, rate)| differs(rate).powi(2) - noise(rate)).sum::<f64>() / count).max(0.0);
    let shows_spread = own.len() > SHOW_NO_SPREAD;
    let degrees = if shows_spread { (count - 3.0) / (count - 1.0) } else { 1.0 };
    let moved = |(thread, rate): (Id, Rate)| {
        let by_noise = degrees * noise(&rate) / (between + noise(&rate)).max(f64::MIN_POSITIVE);
        let variance = noise(&rate) * (1.0 - by_noise * (count - 1.0) / count) + 2.0 / (count - 3.0) * (by_noise * differs(&rate)).powi(2);
        let error = if shows_spread { NORMAL * variance.sqrt() } else { rate.error };
        (thread, Rate { ns: of_loop.ns * ((1.0 - by_noise) * differs(&rate)).exp(), error })
    };
    own.into_iter().map(moved).collect()
}

/// The pairs, with a lap added where the loop began anew in between.
fn whole(pairs: &[Pair]) -> Vec<Pair> {
    pairs.iter().map(|pair| Pair { rounds: if pair.rounds < 0.0 { pair.rounds + pair.lap } else { pair.rounds }, ..*pair }).collect()
}

/// Mean progress between two samples, in laps.
fn mean_progress(pairs: &[Pair]) -> f64 {
    let (rounds, laps) = whole(pairs).iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.rounds, sum.1 + pair.lap));
    rounds / f64::max(laps, f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A standard normal variable (Box and Muller).
    fn normal(state: &mut u64) -> f64 {
        let mut unit = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (-2.0 * (1.0 - unit()).ln()).sqrt() * (std::f64::consts::TAU * unit()).cos()
    }

    /// Check that a thread which only bursts show is as fast as one that ticks show too, if its bursts are; that a slower one stays slower; and that few
    /// bursts, or bursts that take twice as long, say nothing of interruptions.
    #[test]
    fn bursts_are_as_fast_as_ticks() {
        let pairs = |count: u32, ns: f64, is_burst: bool| {
            let pair = move |run| Pair { ns: ns * 1000.0, rounds: 1000.0, lap: 1e6, left: 1e6, run, is_burst, has_faults: false };
            (0..count).map(pair).collect::<Vec<Pair>>()
        };
        let rates = |bursts: u32, of_one: f64, of_other: f64| {
            let one = [pairs(100, 1.0, false), pairs(bursts, of_one, true)].concat();
            let rated = rated_by(&[(1, one), (2, pairs(30, of_other, true))]).expect("a rate");
            rated.threads[1].1.ns / rated.threads[0].1.ns
        };
        assert!((rates(100, 1.1, 1.1) - 1.0).abs() < 0.01);
        assert!((rates(100, 1.1, 1.32) - 1.2).abs() < 0.02);
        assert!(rates(10, 1.1, 1.1) > 1.08);
        let plain = rates(100, 2.0, 1.2);
        assert!((plain - 1.2 / 1.5).abs() < 0.03, "{plain}");
    }

    /// Check that a few bursts which go on in one entry rate a loop, and random places do not.
    #[test]
    fn few_bursts_rate_a_loop() {
        let of = |rounds: &[f64]| {
            let pair = |&rounds: &f64| Pair { ns: 7e4, rounds, lap: 30_000.0, left: 20_000.0, run: 0, is_burst: true, has_faults: false };
            let tick = Pair { ns: 4e6, rounds: -5000.0, lap: 30_000.0, left: 1000.0, run: 1, is_burst: false, has_faults: false };
            let bursts = rounds.iter().map(pair);
            by_few(&BTreeMap::from([(1, bursts.chain([tick]).collect::<Vec<Pair>>())])).map(|rated| rated.all)
        };
        let rate = of(&[500.0, 1300.0, 1400.0, 700.0, 1500.0, 1600.0]).expect("a rate");
        assert!((rate.ns - 60.0).abs() < 1.0 && rate.error > 0.5, "{rate:?}");
        assert!(of(&[1400.0, 1300.0, 1200.0]).is_none(), "too few");
        assert!(of(&[1400.0, -1300.0, 1200.0, 1300.0, 1500.0]).is_none(), "one goes back");
        assert!(of(&[200.0, 6000.0, 300.0, 5000.0, 2500.0]).is_none(), "speeds of all kinds");
        assert!(of(&[12_000.0, 11_000.0, 13_000.0, 12_500.0]).is_none(), "large parts of the entry");
    }

    /// Check that at least 93 of 100 intervals of threads' rates contain the truth, for equal and for different threads, and that those of equal
    /// threads are narrower than by their own pairs alone.
    #[test]
    fn rates_of_threads_are_covered() {
        let mut state = 3;
        for (spread, narrower) in [(0.0, 0.85), (0.03, 0.95), (0.2, 1.01)] {
            for threads in [2, 4, 8, 44] {
                let (mut inside, mut all, mut width) = (0, 0, 0.0);
                for _ in 0..2000 / threads {
                    let noise = |thread: usize| 0.02 + 0.01 * (thread % 2) as f64;
                    let truth: Vec<f64> = (0..threads).map(|_| spread * normal(&mut state)).collect();
                    let seen = |(at, truth): (usize, &f64)| {
                        let rate = Rate { ns: (truth + noise(at) * normal(&mut state)).exp(), error: NORMAL * noise(at) };
                        (at as Id, rate)
                    };
                    let own: Vec<(Id, Rate)> = truth.iter().enumerate().map(seen).collect();
                    let mean = own.iter().map(|(_, rate)| rate.ns.ln()).sum::<f64>() / threads as f64;
                    for ((at, rate), truth) in towards(Rate { ns: mean.exp(), error: 0.01 }, own).iter().zip(truth) {
                        inside += u32::from((rate.ns.ln() - truth).abs() <= rate.error);
                        all += 1;
                        width += rate.error / (NORMAL * noise(*at as usize));
                    }
                }
                assert!(f64::from(inside) >= 0.93 * f64::from(all), "{threads} threads, spread {spread}: {inside} of {all}");
                let relative = width / f64::from(all);
                assert!(threads < 8 || relative < narrower, "{threads} threads, spread {spread}: {relative}");
            }
        }
    }
}
