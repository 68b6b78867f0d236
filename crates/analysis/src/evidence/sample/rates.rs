//! How often a loop goes round: what makes time at loops comparable as accesses.
//!
//! The loop's progress between two successive samples of one thread shows how many rounds lie between them:
//! - in one entry of the loop, the register that grows by a constant step in each round;
//! - in different entries (an outer loop lies between them), the address of an operand with a constant stride, if the loop goes through
//!   memory without gaps.
//!
//! Neither is certain: a loop that is entered again with the same registers looks like one entry, and a sweep may have begun anew. The
//! progress of all samples spans a *lap*. Progress below 0 means that the loop began anew once, so a lap is added. If the mean is more than
//! a third of a lap, loops begin anew too often between two samples. Then only pairs that lie close together count, as close as the closest of
//! them say: samples that stand for no time are taken between the others for this. Without such pairs the loop is not rated.
//!
//! Short loops that are entered anew with the same registers, such as searches, seem to be one entry that moves at random: a loop is rated only if its
//! pairs show about the same speed (`steady.rs`).
//!
//! CPU time of all pairs of a loop / rounds of all pairs is the time of a round. Its error is common to all samples of the loop. Threads with
//! enough pairs have a rate of their own, because the same loop is slower on remote memory. Loops without such pairs (short ones, gathers, straight
//! code) are taken to access as many words a ns as the rated loops do on average; that is uncertain, and their draws are marked.

use super::laps::{self, Laps};
use super::steady;
use crate::estimator::Doubt;
use crate::threads::Threads;
use firsttouch_model::rows::{Id, Profile, SampleState, SampledAccess, SampledLoop, TimerSample};
use std::collections::{HashMap, HashSet};

/// Pairs that are needed to rate a loop.
const PAIRS: usize = 6;
/// The mean progress between two samples must be less than this part of a lap.
const PART_OF_A_LAP: f64 = 1.0 / 3.0;
/// The same, if nothing shows whether whole laps lie between two samples as well. Laps whose length has nothing to do with the ticks are
/// taken for progress so often.
const PART_OF_A_LAP_UNCHECKED: f64 = 0.05;
/// The closest pairs, whose progress says how close others must be.
const CLOSEST: usize = 12;
/// Close pairs are at most this part of a lap apart, by the mean speed of the loop.
const CLOSE: f64 = 0.5;
/// Samples further apart than this many times the usual CPU time have others between them that were lost.
const ADJACENT: f64 = 1.7;
/// Samples of a burst are 0.2 ms apart. In a longer time the thread may have waited.
const LONGEST_BURST_NS: f64 = 1e6;
/// At least this part of the time between two samples of a burst is the loop's.
const LEAST_LEFT: f64 = 0.3;
/// Progress beyond this is no loop's: rounds a ns. (A string instruction moves up to 64 elements of one byte a cycle.)
const MOST_ROUNDS_A_NS: f64 = 400.0;
/// The relative error of the rates of loops without progress, as half a 95 % interval. Words a ns of loops in cache and of loops that wait
/// for memory differ by more than a factor of ten.
const UNRATED_ERROR: f64 = 2.0;
/// The relative error of the rate of one thread in a loop, if only the loop has a rate or none: threads share a processor, or come when others
/// are at work. Half a 95 % interval.
const THREAD_ERROR: f64 = 0.3;
/// The relative error that the rates of a loop's threads have in common, if they come from bursts: an interruption costs more than the time
/// that it takes, because the caches are colder after it. Seen: 5 to 20 %. Half a 95 % interval.
const BURST_ERROR: f64 = 0.2;
/// Half a 95 % interval in standard errors.
pub(super) const NORMAL: f64 = 1.96;
/// A sample stands for at most this many times the usual CPU time between two samples, times its weight.
const LONGEST: f64 = 4.0;
/// Recorders do not thin out more than this.
const MOST_WEIGHT: f64 = 1e6;

/// A loop of one process, or of those that share memory: forked processes run the same code at the same address.
type Loop = (Id, u64);

/// CPU time of a round, and its relative error as half a 95 % interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub ns: f64,
    pub error: f64,
}

/// CPU time and rounds between two samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub ns: f64,
    /// Below 0 if the loop began anew in between.
    pub rounds: f64,
    /// Rounds from the first to the last that was seen.
    pub lap: f64,
    /// Pairs right behind each other have this in common.
    pub run: u32,
    pub is_burst: bool,
}

/// Numbers runs of pairs: of the samples of one burst.
#[derive(Debug, Default)]
struct Runs {
    last: HashMap<Id, (usize, u32)>,
    runs: u32,
}

impl Runs {
    fn of(&mut self, before: usize, at: usize, sample: &TimerSample) -> u32 {
        let goes_on = self.last.get(&sample.thread).filter(|(end, _)| *end == before && is_for_rates(sample)).map(|(_, run)| *run);
        let run = goes_on.unwrap_or_else(|| {
            self.runs += 1;
            self.runs
        });
        if is_for_rates(sample) {
            self.last.insert(sample.thread, (at, run));
        }
        run
    }
}

/// Lowest and highest values seen.
#[derive(Clone, Copy, Debug)]
struct Span {
    low: u64,
    high: u64,
}

impl Span {
    fn rounds(self, step: i64) -> f64 {
        (self.high - self.low) as f64 / step.unsigned_abs().max(1) as f64 + 1.0
    }
}

/// The spans that loops go through: of the register in an entry, and of the operands.
#[derive(Debug, Default)]
struct Spans {
    of_entry: HashMap<(Loop, Id, u64), Span>,
    of_operand: HashMap<(Loop, Id, Option<Id>, i64), Span>,
}

impl Spans {
    fn see(&mut self, key: Loop, sample: &TimerSample, accesses: &[SampledAccess]) {
        let widen = |span: &mut Span, value: u64| (span.low, span.high) = (span.low.min(value), span.high.max(value));
        if let Some((around, progress)) = sample.around.and_then(|around| Some((around, around.progress?))) {
            let first = Span { low: progress.value, high: progress.value };
            widen(self.of_entry.entry((key, sample.thread, around.entry)).or_insert(first), progress.value);
        }
        for access in accesses {
            if let Some(stride) = access.stride {
                let first = Span { low: access.address, high: access.address };
                widen(self.of_operand.entry((key, sample.thread, access.site, stride)).or_insert(first), access.address);
            }
        }
    }
}

/// The rates of all loops, and the time that each sample stands for.
#[derive(Debug)]
pub struct Rates {
    /// CPU time of a round, ns.
    of_loop: HashMap<Loop, Rate>,
    /// The same of one thread: threads on remote memory, or on a busy CPU, are slower.
    of_thread: HashMap<(Loop, Id), Rate>,
    /// Loops whose rates come from bursts.
    by_bursts: HashSet<Loop>,
    /// Numbers of all that have an error in common: a loop of a thread, a loop, or code outside of loops (of a thread).
    number: HashMap<(Option<Loop>, Option<Id>), u32>,
    team_of: HashMap<Id, Id>,
    /// CPU time that a sample stands for, ns.
    time: HashMap<Id, f64>,
    /// Words a ns of the rated loops.
    usual: f64,
}

impl Rates {
    /// CPU time that a sample stands for, ns.
    pub fn time(&self, sample: &TimerSample) -> f64 {
        self.time.get(&sample.id).copied().unwrap_or(0.0)
    }

    /// `accesses`: those of each sample, in the order of the samples.
    pub fn new(profile: &Profile, accesses: &[&[SampledAccess]], threads: &Threads) -> Self {
        let mut team_of: HashMap<Id, Id> = profile.threads.iter().map(|thread| (thread.id, thread.process)).collect();
        team_of.extend(threads.list.iter().map(|thread| (thread.id, thread.team)));
        let mut rates = Self {
            of_loop: HashMap::new(),
            of_thread: HashMap::new(),
            by_bursts: HashSet::new(),
            number: HashMap::new(),
            team_of,
            time: HashMap::new(),
            usual: 1.0,
        };
        let mut entries: HashMap<Loop, HashMap<Id, Vec<Pair>>> = HashMap::new();
        let mut crossings: HashMap<Loop, HashMap<Id, Vec<Pair>>> = HashMap::new();
        let successive = successive(profile);
        let usual = rates.limit_times(profile);
        let tick_ns = profile.meta.tick_ns.unwrap_or(0.0);
        let mut runs = Runs::default();
        let mut spans = Spans::default();
        for (sample, own) in profile.samples.iter().zip(accesses) {
            if let Some(key) = rates.key(sample) {
                spans.see(key, sample, own);
            }
        }
        for &(before, at) in &successive {
            let (previous, sample) = (&profile.samples[before], &profile.samples[at]);
            let between = sample.cpu_ns.saturating_sub(previous.cpu_ns) as f64;
            // The sample from outside interrupted the loop.
            let ns = if is_for_rates(sample) { (between - tick_ns).max(LEAST_LEFT * between) } else { between };
            if between > if is_for_rates(sample) { LONGEST_BURST_NS } else { ADJACENT * usual } {
                continue;
            }
            let run = runs.of(before, at, sample);
            let Some((around, then)) = sample.around.zip(previous.around).filter(|(now, then)| now.end == then.end) else { continue };
            let Some(key) = rates.key(sample) else { continue };
            let in_entry = if around.entry == then.entry {
                progress(&around, &then, spans.of_entry.get(&(key, sample.thread, around.entry)))
            } else {
                None
            };
            let (pairs, moved) = if in_entry.is_some() {
                (&mut entries, in_entry)
            } else {
                let span = |access: &SampledAccess, stride| spans.of_operand.get(&(key, sample.thread, access.site, stride)).copied();
                (&mut crossings, advance(accesses[at], accesses[before], span))
            };
            let own = pairs.entry(key).or_default().entry(sample.thread).or_default();
            own.extend(moved.map(|(rounds, lap)| Pair { ns, rounds, lap, run, is_burst: is_for_rates(sample) }));
        }
        // Progress within an entry is the better evidence.
        for (key, threads) in crossings.into_iter().chain(entries) {
            let mut all: Vec<(Id, Vec<Pair>)> = threads.into_iter().collect();
            all.sort_unstable_by_key(|(thread, _)| *thread);
            // Threads of one loop are compared with each other, so all of them have rates of their own, or none.
            let mut of_all: Vec<Pair> = all.iter().flat_map(|(_, pairs)| pairs).copied().collect();
            let is_of_timers = |pair: &Pair| !pair.is_burst;
            let of_timers: Vec<Pair> = of_all.iter().copied().filter(is_of_timers).collect();
            let most_ns = closeness(&of_all);
            let laps = if most_ns.is_none() { laps::between(&of_timers) } else { Laps::Unknown };
            if let Laps::Several(rate) = laps {
                rates.of_loop.insert(key, rate);
                continue;
            }
            let is_within = match most_ns {
                Some(most_ns) => are_within(&of_timers, most_ns),
                None => matches!(laps, Laps::Within) || mean_progress(&of_timers) < PART_OF_A_LAP_UNCHECKED,
            };
            if is_within && rated(&of_timers).is_some() {
                of_all = of_timers;
                all.iter_mut().for_each(|(_, pairs)| pairs.retain(is_of_timers));
                if !steady::is_steady(&all) {
                    continue;
                }
            } else {
                let Some(most_ns) = most_ns else { continue };
                // Where the loop began anew, time outside of it may lie between the samples.
                let is_close = |pair: &Pair| pair.ns <= most_ns && pair.rounds >= 0.0;
                of_all.retain(is_close);
                all.iter_mut().for_each(|(_, pairs)| pairs.retain(is_close));
                if !steady::is_steady(&all) {
                    continue;
                }
                rates.by_bursts.insert(key);
            }
            let own: Option<Vec<(Id, Rate)>> =
                all.iter().filter(|(_, pairs)| pairs.len() >= PAIRS).map(|(thread, pairs)| Some((*thread, rated(pairs)?))).collect();
            let of_loop = rated(&of_all);
            let own = own.map(|own| if let Some(of_loop) = of_loop { towards(of_loop, own) } else { own });
            rates.of_thread.extend(own.into_iter().flatten().map(|(thread, rate)| ((key, thread), rate)));
            rates.of_loop.extend(of_loop.map(|rate| (key, rate)));
        }
        for sample in &profile.samples {
            let next = u32::try_from(rates.number.len()).unwrap_or(u32::MAX);
            rates.number.entry(rates.class(sample)).or_insert(next);
            let next = u32::try_from(rates.number.len()).unwrap_or(u32::MAX);
            rates.number.entry((rates.key(sample), None)).or_insert(next);
            let next = u32::try_from(rates.number.len()).unwrap_or(u32::MAX);
            rates.number.entry((rates.key(sample), Some(sample.thread))).or_insert(next);
        }
        rates.usual = rates.words_a_ns(profile, accesses).unwrap_or(1.0);
        rates
    }

    fn key(&self, sample: &TimerSample) -> Option<Loop> {
        Some((*self.team_of.get(&sample.thread)?, sample.around?.end))
    }

    /// The rate of the loop that a sample is in, of its own thread if that is known.
    fn rate(&self, sample: &TimerSample) -> Option<Rate> {
        let key = self.key(sample)?;
        self.of_thread.get(&(key, sample.thread)).or_else(|| self.of_loop.get(&key)).copied()
    }

    /// What shares the error of its rate with this sample.
    fn class(&self, sample: &TimerSample) -> (Option<Loop>, Option<Id>) {
        let key = self.key(sample);
        let is_own = key.is_some_and(|key| self.of_thread.contains_key(&(key, sample.thread)));
        (key, is_own.then_some(sample.thread))
    }

    /// The time that each sample stands for: first samples of threads stand for the usual time, and no sample for much more. Returns the
    /// usual time.
    fn limit_times(&mut self, profile: &Profile) -> f64 {
        let mut gaps = Vec::with_capacity(profile.samples.len());
        let mut last: HashMap<Id, u64> = HashMap::new();
        for sample in profile.samples.iter().filter(|sample| !is_for_rates(sample)) {
            if let Some(before) = last.insert(sample.thread, sample.cpu_ns) {
                let ns = sample.cpu_ns.saturating_sub(before) as f64;
                gaps.push(ns);
                self.time.insert(sample.id, ns);
            }
        }
        gaps.sort_by(f64::total_cmp);
        let usual = gaps.get(gaps.len() / 2).copied().filter(|ns| *ns > 0.0).unwrap_or(1.0);
        for sample in profile.samples.iter().filter(|sample| !is_for_rates(sample)) {
            let time = self.time.entry(sample.id).or_insert(usual);
            // In a longer gap the thread was not sampled on purpose, or samples were lost.
            *time = if *time > LONGEST * usual { usual } else { time.max(1.0) };
            *time *= if sample.weight.is_finite() { sample.weight.clamp(1.0, MOST_WEIGHT) } else { 1.0 };
        }
        usual
    }

    /// Words a ns of the rated loops.
    fn words_a_ns(&self, profile: &Profile, accesses: &[&[SampledAccess]]) -> Option<f64> {
        let (mut all, mut time) = (0.0, 0.0);
        for (sample, own) in profile.samples.iter().zip(accesses).filter(|(sample, _)| sample.state == SampleState::Computing) {
            if let Some(rate) = self.rate(sample) {
                let own_time = self.time(sample);
                all += own_time / rate.ns * in_round(sample, own);
                time += own_time;
            }
        }
        (all > 0.0 && time > 0.0).then(|| all / time)
    }

    /// How many rounds of its loop a sample stands for, and the errors of this number that it has in common with all samples of the loop, or of
    /// the thread in it.
    pub fn rounds(&self, sample: &TimerSample, accesses: &[SampledAccess]) -> (f64, [Option<Doubt>; 2]) {
        let time = self.time.get(&sample.id).copied().unwrap_or(1.0);
        let rate = self.rate(sample);
        let rounds = match rate {
            Some(rate) => time / rate.ns,
            None => time * self.usual / in_round(sample, accesses).max(f64::MIN_POSITIVE),
        };
        let error = rate.map_or(UNRATED_ERROR, |rate| rate.error);
        let class = self.class(sample);
        let doubt = |class, error| self.number.get(&class).map(|&class| Doubt { class, error });
        let is_by_bursts = || class.0.is_some_and(|key| self.by_bursts.contains(&key));
        let other = match class.1 {
            None => doubt((class.0, Some(sample.thread)), THREAD_ERROR),
            Some(_) if is_by_bursts() => doubt((class.0, None), BURST_ERROR),
            Some(_) => None,
        };
        (rounds, [doubt(class, error), other])
    }
}

/// Was the sample taken to show how fast a loop is, at a time that has nothing to do with the other samples? It stands for no time.
pub fn is_for_rates(sample: &TimerSample) -> bool {
    sample.weight == 0.0
}

/// Indices of successive samples of one thread. Those for rates have a clock of their own.
fn successive(profile: &Profile) -> Vec<(usize, usize)> {
    let mut last: HashMap<(Id, bool), usize> = HashMap::new();
    let with_last = |(at, sample): (usize, &TimerSample)| last.insert((sample.thread, is_for_rates(sample)), at).map(|before| (before, at));
    profile.samples.iter().enumerate().filter_map(with_last).collect()
}

/// Words that one round accesses, inside and outside of recorded objects.
fn in_round(sample: &TimerSample, accesses: &[SampledAccess]) -> f64 {
    sample.elsewhere + accesses.iter().map(|access| access.words).sum::<f64>()
}

/// Rounds between two samples in one entry of a loop, and in a lap.
fn progress(now: &SampledLoop, then: &SampledLoop, span: Option<&Span>) -> Option<(f64, f64)> {
    let (now, then) = now.progress.zip(then.progress).filter(|(now, then)| now.step == then.step && now.step != 0)?;
    let moved = now.value.wrapping_sub(then.value).cast_signed();
    Some((moved as f64 / now.step as f64, span?.rounds(now.step)))
}

/// Rounds, and those in a lap, by the address of an operand with a constant stride that both samples have: of those, the one with the longest
/// lap. (In `sum += a[i * n + j] * b[j]` each row begins anew in `b`, and each sweep in `a`.)
fn advance(now: &[SampledAccess], then: &[SampledAccess], span: impl Fn(&SampledAccess, i64) -> Option<Span>) -> Option<(f64, f64)> {
    let moved = |access: &SampledAccess| {
        let stride = access.stride.filter(|stride| *stride != 0)?;
        let before = then.iter().find(|one| one.site == access.site && one.stride == access.stride && one.object == access.object)?;
        let rounds = access.address.wrapping_sub(before.address).cast_signed() as f64 / stride as f64;
        Some((rounds, span(access, stride)?.rounds(stride)))
    };
    now.iter().filter_map(moved).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// CPU time of a round: a ratio of sums, with its error by linearisation.
fn ratio(pairs: &[Pair]) -> Option<Rate> {
    let (ns, rounds) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.ns, sum.1 + pair.rounds));
    if rounds <= 0.0 || ns <= 0.0 || rounds / ns > MOST_ROUNDS_A_NS {
        return None;
    }
    let residual = |pairs: &[Pair]| pairs.iter().map(|pair| pair.ns - ns / rounds * pair.rounds).sum::<f64>();
    let residuals: f64 = pairs.chunk_by(|one, next| one.run == next.run).map(|run| residual(run).powi(2)).sum();
    Some(Rate { ns: ns / rounds, error: NORMAL * residuals.sqrt() / ns })
}

/// The rates of threads, moved towards the rate of their loop as far as their errors explain the differences between them (an empirical Bayes
/// estimate, Efron and Morris 1975): few pairs of a thread do not make it faster than the others. The errors remain those of the threads' own pairs.
fn towards(of_loop: Rate, own: Vec<(Id, Rate)>) -> Vec<(Id, Rate)> {
    let count = own.len().max(1) as f64;
    let differs = |rate: &Rate| (rate.ns / of_loop.ns).ln();
    let noise = |rate: &Rate| (rate.error / NORMAL).powi(2);
    let between = own.iter().map(|(_, rate)| differs(rate).powi(2) - noise(rate)).sum::<f64>() / count;
    let moved = |(thread, rate): (Id, Rate)| {
        let kept = if between > 0.0 { between / (between + noise(&rate)) } else { 0.0 };
        (thread, Rate { ns: of_loop.ns * (kept * differs(&rate)).exp(), ..rate })
    };
    own.into_iter().map(moved).collect()
}

/// The pairs, with a lap added where the loop began anew in between.
fn whole(pairs: &[Pair]) -> Vec<Pair> {
    pairs.iter().map(|pair| Pair { rounds: if pair.rounds < 0.0 { pair.rounds + pair.lap } else { pair.rounds }, ..*pair }).collect()
}

/// How far apart two samples may be, CPU ns, so that a loop seldom begins anew in between: by the pairs that are closest. `None` if not even
/// these are close enough, and without bursts: ticks that come early on a loaded machine are few, and a loop that waits before it begins anew seems
/// slow between them.
fn closeness(pairs: &[Pair]) -> Option<f64> {
    if !pairs.iter().any(|pair| pair.is_burst) {
        return None;
    }
    let mut closest = whole(pairs);
    closest.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    closest.truncate(CLOSEST);
    let farthest = closest.last().filter(|_| closest.len() == CLOSEST)?.ns;
    let (ns, rounds, laps) = closest.iter().fold((0.0, 0.0, 0.0), |sum, pair| (sum.0 + pair.ns, sum.1 + pair.rounds, sum.2 + pair.lap));
    let limit = CLOSE * (laps / CLOSEST as f64) * ns / rounds.max(f64::MIN_POSITIVE);
    (rounds < PART_OF_A_LAP * laps && limit >= farthest).then_some(limit)
}

/// Whether the pairs are less than a third of a lap apart on average, by the speed of the closest ones, for which half a lap takes `most_ns`. A loop
/// whose laps take just half a tick, or a third, seems not to move from tick to tick.
fn are_within(pairs: &[Pair], most_ns: f64) -> bool {
    let mean = pairs.iter().map(|pair| pair.ns).sum::<f64>() / pairs.len().max(1) as f64;
    mean < PART_OF_A_LAP / CLOSE * most_ns
}

/// Mean progress between two samples, in laps.
fn mean_progress(pairs: &[Pair]) -> f64 {
    let (rounds, laps) = whole(pairs).iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.rounds, sum.1 + pair.lap));
    rounds / f64::max(laps, f64::MIN_POSITIVE)
}

/// CPU time of a round, if the loop seldom begins anew between two samples.
fn rated(pairs: &[Pair]) -> Option<Rate> {
    if pairs.len() < PAIRS {
        return None;
    }
    if mean_progress(pairs) < PART_OF_A_LAP { ratio(&whole(pairs)) } else { None }
}
