//! How often a loop goes round: what makes time at loops comparable as accesses.
//!
//! The loop's progress between two successive samples of one thread shows how many rounds lie between them:
//! - in one entry of the loop, the register that grows by a constant step in each round;
//! - in different entries (an outer loop lies between them), the address of an operand with a constant stride, if the loop goes through
//!   memory without gaps; else, if its entries have one length, the place where they end (`entries.rs`).
//!
//! Neither is certain: a loop that is entered again with the same registers looks like one entry, and a sweep may have begun anew, with other loops
//! in between. `speed.rs` chooses the pairs in which the loop went straight on: samples that stand for no time are taken between the others for
//! this, close together. Without such pairs, and without ticks that show the number of laps between them (`laps.rs`), the loop is not rated.
//!
//! Short loops that are entered anew with the same registers, such as searches, seem to be one entry that moves at random: a loop is rated only if its
//! pairs show about the same speed (`steady.rs`).
//!
//! CPU time of all pairs of a loop / rounds of all pairs is the time of a round. Its error is common to all samples of the loop. Threads with
//! enough pairs have a rate of their own, because the same loop is slower on remote memory. Loops without such pairs (short ones, gathers, straight
//! code) are taken to access as many words a ns as rated loops of their kind do on average: loops that go through memory word by word are one kind, those
//! that access a cache line of its own in each round are another. Without such rated loops, they have a speed that is usual for their kind. All of that is
//! uncertain, and their draws are marked. More is known of loops that follow pointers, as in trees and lists: they have no counter, so each round waits for what the one before loaded or computed, and takes at
//! least a load from the first cache, at most one from memory.

use super::dealt::dealt;
use super::hidden::Hidden;
use super::laps::{self, Laps};
use super::loops::{Loop, Loops};
use super::pace::Paces;
use super::pairs::{OfLoop, Pair, pairs};
use super::times::Times;
use super::{repeats, speed, steady, whole_laps};
use crate::contention::{by_ticks, waiting};
use crate::estimator::Doubt;
use crate::threads::Threads;
use firsttouch_model::rows::{Id, Profile, SampleState, SampledAccess, TimerSample};
use hashbrown::{HashMap, HashSet};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

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
/// The same of loops whose end a comparison decides: one round a cycle.
const MOST_COMPARED_ROUNDS_A_NS: f64 = 8.0;
/// The relative error of the rates of code outside of loops.
const UNRATED_ERROR: f64 = 2.0;
/// The same of loops without progress, as the upper end of a 95 % interval: words a ns of loops in cache and of loops that wait for memory (a matrix
/// that is written by columns and read by rows) differ by a factor of ten.
const UNRATED_LOOP_ERROR: f64 = 9.0;
/// Words a ns of loops that go through memory word by word, and of those that access a cache line of its own in each round, where no loop of their kind
/// is rated. Measured with one and two threads on the development machine, twice: 0.95 to 9.2 (sums of 1 to 64 MiB, with and without vector instructions),
/// and 0.025 to 0.41 (random reads of 1 to 64 MiB).
const USUAL_WORDS_A_NS: [f64; 2] = [2.0, 0.1];
/// The longest step between two rounds that leads into the same cache line or the next one, bytes.
const LINE_BYTES: u64 = 64;
/// CPU time of a round that waits for the one before, ns, and its relative error as the upper end of a 95 % interval: 1 ns (four to five cycles from load
/// to use in the first cache) to 144 ns (memory, and a miss in the TLB). Seen with searches in `std::set`: 5.7, 11 and 90 ns a round with 500, 20,000 and
/// 2,000,000 nodes.
const CHAIN_NS: f64 = 12.0;
const CHAIN_ERROR: f64 = 11.0;
/// The relative error of the rate of one thread in a loop, if only the loop has a rate or none: threads share a processor, or come when others
/// are at work. Half a 95 % interval.
const THREAD_ERROR: f64 = 0.3;
/// The relative error that the rates of a loop's threads have in common, if they come from bursts: an interruption costs more than the time
/// that it takes, because the caches are colder after it. Seen: 5 to 20 %. Half a 95 % interval.
const BURST_ERROR: f64 = 0.2;
/// So many pairs of bursts, of threads that ticks show as well, show how much longer rounds take in bursts; what is longer than by this factor has another
/// cause than interruptions.
const ENOUGH_BURSTS: f64 = 24.0;
const MOST_INTERRUPTED: f64 = 1.2;
/// The relative error of the rate of one thread by bursts: an interrupted thread is alone with the memory while others wait for it. Seen: 3 to 13 % between
/// two threads with equal work, in eight runs. Half a 95 % interval.
const BURST_THREAD_ERROR: f64 = 0.1;
/// The relative error of the times of loops whose entries last no longer than a few ticks, where threads wait for CPUs: a thread that was waked up, or that a barrier stops soon,
/// is seen too seldom by ticks; samples of the kernel's own clocks have no such error. Seen with four threads on two CPUs: of loops of 3 and 5 ms, the shorter one 0.9 to 1.7 times too seldom (seven runs, median 1.4).
const CROWDED_ERROR: f64 = 0.5;
/// How far the interval of the rate of a loop reaches beyond both what all and what one of its threads would have passed.
const BEYOND: f64 = 1.1;
/// The relative error of the rates of loops whose parts go to whichever thread is free, as the source says: while a burst stops a thread, the others go on,
/// and the caches are colder after it. Seen in eight runs with `schedule(dynamic, 4096)`: 0.8 to 1.7 times the time of a round.
const IN_TURN_ERROR: f64 = 0.5;
/// Entries of this time are short, ns.
const SHORT_ENTRY_NS: f64 = 20e6;
/// So many threads, or fewer, do not show how much their rates spread.
const SHOW_NO_SPREAD: usize = 3;
/// Half a 95 % interval in standard errors.
pub(super) const NORMAL: f64 = 1.96;

/// CPU time of a round, and its relative error as half a 95 % interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub ns: f64,
    pub error: f64,
}

/// The rates of all loops, and the time that each sample stands for.
#[derive(Debug)]
pub struct Rates {
    /// CPU time of a round, ns.
    of_loop: HashMap<Loop, Rate>,
    /// The same of one thread: threads on remote memory, or on a busy CPU, are slower.
    of_thread: HashMap<(Loop, Id), Rate>,
    /// Loops whose rates come from bursts, and how much of the evidence for them.
    by_bursts: HashMap<Loop, f64>,
    /// Loops whose way through memory may be that of several threads, and the error of their rates.
    dealt: HashMap<Loop, f64>,
    /// Loops with short entries, where threads wait for CPUs, and the error of their times.
    crowded: HashSet<Loop>,
    crowded_error: f64,
    /// Numbers of all that have an error in common: a loop of a thread, a loop, or code outside of loops (of a thread).
    number: HashMap<(Option<Loop>, Option<Id>), NonZeroU32>,
    /// Loops in which each round waits for the one before.
    chains: HashSet<Loop>,
    loops: Loops,
    times: Times,
    paces: Paces,
    /// Words a ns of the rated loops, of all together and by their kind.
    usual: f64,
    usual_of: [f64; 2],
    /// Loops that access a cache line of its own in each round.
    scattered: HashSet<Loop>,
    hidden: Hidden,
}

impl Rates {
    /// How many accesses of its instruction a seen one stands for: 1 or more.
    pub fn factor(&self, access: &SampledAccess) -> f64 {
        self.hidden.factor(access)
    }

    /// 8-byte words that one round of the code around a sample accesses, inside and outside of recorded objects.
    pub fn in_round(&self, sample: &TimerSample, accesses: &[SampledAccess]) -> f64 {
        self.hidden.words(self.loops.of(sample), sample, accesses)
    }

    /// The accesses of a round of the sample's loop whose addresses too few samples show.
    pub fn missing(&self, sample: &TimerSample) -> f64 {
        self.hidden.missing(self.loops.of(sample))
    }

    /// CPU time that a sample stands for, ns.
    pub fn time(&self, sample: &TimerSample) -> f64 {
        self.times.of(sample)
    }

    /// `accesses`: those of each sample, in the order of the samples. `goes_to_any_thread`: whether the source says that the work at a place in the code
    /// goes to whichever thread is free.
    pub fn new(profile: &Profile, accesses: &[&[SampledAccess]], threads: &Threads, goes_to_any_thread: &dyn Fn(Id) -> bool) -> Self {
        let mut team_of: HashMap<Id, Id> = profile.threads.iter().map(|thread| (thread.id, thread.process)).collect();
        team_of.extend(threads.list.iter().map(|thread| (thread.id, thread.team)));
        let loops = Loops::new(profile, team_of);
        let times = Times::new(profile, |sample| loops.of(sample));
        let paces = Paces::new(profile, |sample| loops.of(sample), |sample| times.of(sample));
        let mut rates = Self {
            of_loop: HashMap::new(),
            of_thread: HashMap::new(),
            by_bursts: HashMap::new(),
            dealt: HashMap::new(),
            crowded: HashSet::new(),
            crowded_error: CROWDED_ERROR * by_ticks(profile),
            number: HashMap::new(),
            chains: chains(profile, &loops),
            loops,
            times,
            paces,
            usual: 1.0,
            usual_of: USUAL_WORDS_A_NS,
            scattered: HashSet::new(),
            hidden: Hidden::default(),
        };
        rates.hidden = Hidden::new(profile, accesses, |sample| rates.loops.of(sample));
        rates.scattered = rates.scattered(profile, accesses);
        let dealt = dealt(profile, accesses, rates.times.usual, |sample| rates.loops.of(sample));
        let in_turn = in_turn(profile, &rates.loops, &dealt, goes_to_any_thread);
        for (key, pairs) in pairs(profile, accesses, rates.times.usual, |sample| rates.loops.of(sample)) {
            // Progress within an entry is the better evidence.
            let (crossings, is_counted) = (pairs.without_others(), pairs.is_counted);
            // Entries that are known are a thread's own, unless the source says that they go to whichever thread is free.
            let at_once = dealt.get(&key).copied().filter(|_| !pairs.has_entries || in_turn.contains(&key));
            let by_entries = rated_loop(std::slice::from_ref(&pairs.entries), &pairs);
            let rated = by_entries.or_else(|| {
                let moved = rated_loop(&crossings, &pairs)?;
                // Between two ticks, all threads together pass the memory, maybe several times.
                let by_bursts = at_once.and_then(|_| rated_loop(&crossings.clone().map(only_bursts), &pairs));
                let moved = by_bursts.unwrap_or(moved);
                if repeats::contradict(&pairs, moved.all.ns) {
                    return straight_in_entries(&pairs.entries);
                }
                let Some(at_once) = at_once else { return Some(moved) };
                if in_turn.contains(&key) {
                    rates.dealt.insert(key, IN_TURN_ERROR);
                    return Some(moved.slower_by(at_once));
                }
                // From its own rounds to those of all threads at once: the middle of both.
                let slower = at_once.sqrt();
                rates.dealt.insert(key, BEYOND * slower - 1.0);
                Some(moved.slower_by(slower))
            });
            let is_possible = |rated: &Rated| !is_counted || rated.all.ns * MOST_COMPARED_ROUNDS_A_NS >= 1.0;
            let Some(rated) = rated.filter(is_possible) else { continue };
            rates.of_thread.extend(rated.threads.into_iter().map(|(thread, rate)| ((key, thread), rate)));
            rates.of_loop.insert(key, rated.all);
            rates.by_bursts.extend((rated.part_of_bursts > 0.0).then_some((key, rated.part_of_bursts)));
        }
        if waiting(profile).is_some() {
            rates.crowded = rates.with_short_entries(profile);
        }
        for sample in &profile.samples {
            let next = rates.next_number();
            rates.number.entry(rates.class(sample)).or_insert(next);
            let next = rates.next_number();
            rates.number.entry((rates.loops.of(sample), None)).or_insert(next);
            let next = rates.next_number();
            rates.number.entry((rates.loops.of(sample), Some(sample.thread))).or_insert(next);
        }
        rates.usual = rates.words_a_ns(profile, accesses, None).unwrap_or(1.0);
        for (kind, usual) in USUAL_WORDS_A_NS.into_iter().enumerate() {
            rates.usual_of[kind] = rates.words_a_ns(profile, accesses, Some(kind)).unwrap_or(usual);
        }
        rates
    }

    /// The rated loops of which most entries are short, as far as they show it.
    fn with_short_entries(&self, profile: &Profile) -> HashSet<Loop> {
        let mut entries: HashMap<Loop, [usize; 2]> = HashMap::new();
        for sample in profile.samples.iter().filter(|sample| sample.weight > 0.0) {
            let Some(around) = &sample.around else { continue };
            let (Some(left), Some(key)) = (around.left, self.loops.of(sample)) else { continue };
            let Some(rate) = self.of_loop.get(&key) else { continue };
            // On average, half of an entry is left.
            let is_long = 2.0 * left as f64 * rate.ns > SHORT_ENTRY_NS;
            entries.entry(key).or_default()[usize::from(is_long)] += 1;
        }
        entries.into_iter().filter(|(_, [short, long])| short > long).map(|(key, _)| key).collect()
    }

    /// The rate of the loop that a sample is in, of its own thread if that is known.
    fn rate(&self, sample: &TimerSample) -> Option<Rate> {
        let key = self.loops.of(sample)?;
        self.of_thread.get(&(key, sample.thread)).or_else(|| self.of_loop.get(&key)).copied()
    }

    /// What shares the error of its rate with this sample.
    fn class(&self, sample: &TimerSample) -> (Option<Loop>, Option<Id>) {
        let key = self.loops.of(sample);
        let is_own = key.is_some_and(|key| self.of_thread.contains_key(&(key, sample.thread)));
        (key, is_own.then_some(sample.thread))
    }

    /// The loops of which most words have no step from round to round, or one into another cache line.
    fn scattered(&self, profile: &Profile, accesses: &[&[SampledAccess]]) -> HashSet<Loop> {
        let mut words: HashMap<Loop, [f64; 2]> = HashMap::new();
        for (sample, own) in profile.samples.iter().zip(accesses) {
            let Some(key) = self.loops.of(sample) else { continue };
            for access in *own {
                let is_scattered = access.stride.is_none_or(|stride| stride.unsigned_abs() > LINE_BYTES);
                words.entry(key).or_default()[usize::from(is_scattered)] += access.words;
            }
        }
        words.into_iter().filter(|(_, [near, far])| far > near).map(|(key, _)| key).collect()
    }

    fn kind(&self, key: Loop) -> usize {
        usize::from(self.scattered.contains(&key))
    }

    /// Words a ns of the rated loops, of one kind or of all.
    fn words_a_ns(&self, profile: &Profile, accesses: &[&[SampledAccess]], kind: Option<usize>) -> Option<f64> {
        let (mut all, mut time) = (0.0, 0.0);
        for (sample, own) in profile.samples.iter().zip(accesses).filter(|(sample, _)| sample.state == SampleState::Computing) {
            let is_of_kind = kind.is_none_or(|kind| self.loops.of(sample).is_some_and(|key| self.kind(key) == kind));
            if let Some(rate) = self.rate(sample).filter(|_| is_of_kind) {
                let own_time = self.time(sample);
                all += own_time / rate.ns * self.in_round(sample, own);
                time += own_time;
            }
        }
        (all > 0.0 && time > 0.0).then(|| all / time)
    }

    /// How many rounds of its loop may have come right before a sample.
    pub fn reach(&self, sample: &TimerSample, accesses: &[SampledAccess]) -> f64 {
        self.rounds_in(self.times.before(sample), sample, accesses)
    }

    fn rounds_in(&self, time: f64, sample: &TimerSample, accesses: &[SampledAccess]) -> f64 {
        match self.rate(sample) {
            Some(rate) => time / rate.ns,
            None if self.is_chain(self.loops.of(sample)) => time / CHAIN_NS,
            None => {
                let usual = self.loops.of(sample).map_or(self.usual, |key| self.usual_of[self.kind(key)]);
                time * usual / self.in_round(sample, accesses).max(f64::MIN_POSITIVE)
            }
        }
    }

    fn is_chain(&self, key: Option<Loop>) -> bool {
        key.is_some_and(|key| self.chains.contains(&key))
    }

    /// The number of the next class of errors.
    fn next_number(&self) -> NonZeroU32 {
        u32::try_from(self.number.len()).map_or(NonZeroU32::MAX, |known| NonZeroU32::MIN.saturating_add(known))
    }

    /// How many rounds of its loop a sample stands for, and the errors of this number that it has in common with all samples of the loop, or of
    /// the thread in it.
    pub fn rounds(&self, sample: &TimerSample, accesses: &[SampledAccess]) -> (f64, [Option<Doubt>; 2]) {
        let rate = self.rate(sample);
        let rounds = self.rounds_in(self.time(sample), sample, accesses) * self.paces.of(sample);
        let class = self.class(sample);
        let doubt = |class, error: f64, lasting: f64| {
            let doubt = |&class| Doubt { class, error: error as f32, lasting: lasting as f32 };
            self.number.get(&class).map(doubt)
        };
        let by_bursts = class.0.and_then(|key| self.by_bursts.get(&key));
        let is_crowded = class.0.is_some_and(|key| self.crowded.contains(&key));
        // The errors that all samples of a loop have in common, whichever thread's they are.
        let of_dealt = class.0.and_then(|key| self.dealt.get(&key)).copied().unwrap_or(0.0);
        let common =
            by_bursts.map_or(0.0, |part| BURST_ERROR * part).hypot(if is_crowded { self.crowded_error } else { 0.0 }).hypot(of_dealt);
        let common = (common > 0.0).then_some(common);
        // More samples make estimated rates more certain, and nothing else.
        let (error, lasting) = match (rate, class.1, common) {
            (None, ..) if self.is_chain(class.0) => (CHAIN_ERROR, CHAIN_ERROR),
            (None, ..) if class.0.is_some() => (UNRATED_LOOP_ERROR, UNRATED_LOOP_ERROR),
            (None, ..) => (UNRATED_ERROR, UNRATED_ERROR),
            (Some(rate), None, Some(common)) => (rate.error.hypot(common), common),
            (Some(rate), ..) => (rate.error, 0.0),
        };
        let other = match (class.1, common) {
            (None, _) => doubt((class.0, Some(sample.thread)), THREAD_ERROR, THREAD_ERROR),
            (Some(_), Some(common)) => doubt((class.0, None), common, common),
            (Some(_), None) => None,
        };
        (rounds, [doubt(class, error, lasting), other])
    }
}

/// The loops without a counter: no step is known in most of their samples, or the steps differ, as those from one node of a list to the next do.
fn chains(profile: &Profile, loops: &Loops) -> HashSet<Loop> {
    let mut steps: HashMap<Loop, (u32, HashMap<i64, u32>)> = HashMap::new();
    for sample in profile.samples.iter().filter(|sample| sample.state == SampleState::Computing) {
        let Some((key, around)) = loops.of(sample).zip(sample.around) else { continue };
        let (all, by_step) = steps.entry(key).or_default();
        *all += 1;
        if let Some(progress) = around.progress {
            *by_step.entry(progress.step).or_default() += 1;
        }
    }
    let is_chain = |(all, by_step): &(u32, HashMap<i64, u32>)| 2 * by_step.values().max().copied().unwrap_or(0) < *all;
    steps.into_iter().filter(|(_, seen)| is_chain(seen)).map(|(key, _)| key).collect()
}

/// Those of the loops whose work goes to whichever thread is free, as the source says of most samples.
fn in_turn(profile: &Profile, loops: &Loops, dealt: &HashMap<Loop, f64>, goes_to_any_thread: &dyn Fn(Id) -> bool) -> HashSet<Loop> {
    let mut counts: HashMap<Loop, [usize; 2]> = HashMap::new();
    for sample in profile.samples.iter().filter(|_| !dealt.is_empty()) {
        if let Some((key, site)) = loops.of(sample).filter(|key| dealt.contains_key(key)).zip(sample.site) {
            counts.entry(key).or_default()[usize::from(goes_to_any_thread(site))] += 1;
        }
    }
    counts.into_iter().filter(|(_, [own, in_turn])| in_turn > own).map(|(key, _)| key).collect()
}

/// The rate of a loop, and of its threads that have enough pairs.
struct Rated {
    all: Rate,
    threads: Vec<(Id, Rate)>,
    /// How much of the evidence comes from bursts.
    part_of_bursts: f64,
}

fn only_bursts(mut of_threads: BTreeMap<Id, Vec<Pair>>) -> BTreeMap<Id, Vec<Pair>> {
    of_threads.values_mut().for_each(|pairs| pairs.retain(|pair| pair.is_burst));
    of_threads
}

impl Rated {
    fn slower_by(self, factor: f64) -> Self {
        let slower = |rate: Rate| Rate { ns: rate.ns * factor, ..rate };
        Self { all: slower(self.all), threads: self.threads.into_iter().map(|(thread, rate)| (thread, slower(rate))).collect(), ..self }
    }
}

/// The rates of a loop by these of its pairs. `times`: the pairs with their times as they may be, the likelier ones first; those count in which samples
/// of bursts and of timers show the same speed.
fn rated_loop(times: &[BTreeMap<Id, Vec<Pair>>], of_loop: &OfLoop) -> Option<Rated> {
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
fn straight_in_entries(entries: &BTreeMap<Id, Vec<Pair>>) -> Option<Rated> {
    let bursts = |pairs: &Vec<Pair>| pairs.iter().filter(|pair| pair.is_burst).copied().collect();
    let threads: Vec<(Id, Vec<Pair>)> = entries.iter().map(|(thread, pairs)| (*thread, bursts(pairs))).collect();
    let goes_on = threads.iter().flat_map(|(_, pairs)| pairs).all(|pair| pair.rounds > 0.0);
    if goes_on && steady::is_steady(&threads) { rated_by(&threads) } else { None }
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
            let pair = move |run| Pair { ns: ns * 1000.0, rounds: 1000.0, lap: 1e6, left: 1e6, run, is_burst };
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
