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
//! CPU time of all pairs of a loop / rounds of all pairs is the time of a round. If the loop calls functions, or has loops inside it, only a part of that is
//! its own code's, which is all that its samples stand for (`own_part.rs`). Its error is common to all samples of the loop. Threads with
//! enough pairs have a rate of their own, because the same loop is slower on remote memory. Loops without such pairs (short ones, gathers, straight
//! code) are taken to access as many words a ns as rated loops of their kind do on average: loops that go through memory word by word are one kind, those
//! that access a cache line of its own in each round are another. Without such rated loops, they have a speed that is usual for their kind. All of that is
//! uncertain, and their draws are marked. More is known of loops that follow pointers, as in trees and lists: they have no counter, so each round waits for what the one before loaded or computed, and takes at
//! least a load from the first cache, at most one from memory.

use super::dealt::{Dealt, dealt};
use super::hidden::Hidden;
use super::loops::{Loop, Loops};
use super::own_part::OwnPart;
use super::pace::Paces;
use super::pairs::pairs;
use super::rated::{BURST_ERROR, Rate, Rated, by_few, only_bursts, rated_loop, straight_in_entries};
use super::repeats;
use super::times::Times;
use crate::contention::{by_ticks, waiting};
use crate::estimator::Doubt;
use crate::threads::Threads;
use firsttouch_model::rows::{Id, Profile, SampleState, SampledAccess, TimerSample};
use hashbrown::{HashMap, HashSet};
use std::num::NonZeroU32;

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

/// The rates of all loops, and the time that each sample stands for.
#[derive(Debug)]
pub struct Rates {
    /// CPU time of a round, ns.
    of_loop: HashMap<Loop, Rate>,
    /// The same of one thread: threads on remote memory, or on a busy CPU, are slower.
    of_thread: HashMap<(Loop, Id), Rate>,
    /// Loops with calls, or with loops inside them: the part of a round that their own code takes.
    own_part: HashMap<Loop, OwnPart>,
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
        let place_of = |thread: Id| threads.index(thread).map(|index| (threads.list[index].team, threads.list[index].worker));
        let times = Times::new(profile, |sample| loops.of(sample), place_of);
        let paces = Paces::new(profile, |sample| loops.of(sample), |sample| times.of(sample));
        let mut rates = Self {
            of_loop: HashMap::new(),
            of_thread: HashMap::new(),
            own_part: HashMap::new(),
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
        let dealt = dealt(profile, accesses, rates.times.usual, |sample| rates.loops.of(sample), goes_to_any_thread);
        for (key, pairs) in pairs(profile, accesses, rates.times.usual, |sample| rates.loops.of(sample)) {
            // Progress within an entry is the better evidence.
            let (crossings, is_counted) = (pairs.without_others(), pairs.is_counted);
            // Entries that are known are a thread's own, unless the source says that they go to whichever thread is free.
            let dealt = dealt.get(&key).copied().filter(|dealt| !pairs.has_entries || dealt.by_source);
            let by_entries = rated_loop(std::slice::from_ref(&pairs.entries), &pairs);
            let mut is_of_entries = by_entries.is_some();
            let rated = by_entries.or_else(|| {
                let Some(moved) = rated_loop(&crossings, &pairs) else {
                    let few = by_few(&pairs.entries);
                    is_of_entries = few.is_some();
                    return few;
                };
                // Between two ticks, all threads together pass the memory, maybe several times.
                let by_bursts = dealt.and_then(|_| rated_loop(&crossings.clone().map(only_bursts), &pairs));
                let moved = by_bursts.unwrap_or(moved);
                if repeats::contradict(&pairs, moved.all.ns) {
                    is_of_entries = true;
                    return straight_in_entries(&pairs.entries);
                }
                let Some(Dealt { at_once, by_source }) = dealt else { return Some(moved) };
                // Unless the source says so, from its own rounds to those of all threads at once: the middle of both.
                let slower = if by_source { at_once } else { at_once.sqrt() };
                rates.dealt.insert(key, if by_source { IN_TURN_ERROR } else { BEYOND * slower - 1.0 });
                Some(moved.slower_by(slower))
            });
            let is_possible = |rated: &Rated| !is_counted || rated.all.ns * MOST_COMPARED_ROUNDS_A_NS >= 1.0;
            let Some(rated) = rated.filter(is_possible) else { continue };
            rates.of_thread.extend(rated.threads.into_iter().map(|(thread, rate)| ((key, thread), rate)));
            rates.of_loop.insert(key, rated.all);
            // Times of different entries are without the others already, as far as the part is known.
            let own_part = pairs.own_part.map(|own| OwnPart { part: if is_of_entries { own.part } else { 1.0 }, ..own });
            rates.own_part.extend(own_part.map(|own| (key, own)));
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

    /// The part of a round of its loop that a sample stands for: that of the loop's own code.
    fn own_part(&self, sample: &TimerSample) -> OwnPart {
        let known = self.loops.of(sample).and_then(|key| self.own_part.get(&key));
        known.copied().unwrap_or(OwnPart { part: 1.0, error: 0.0 })
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
                all += own_time / (rate.ns * self.own_part(sample).part) * self.in_round(sample, own);
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
        let own = self.own_part(sample);
        let rounds = self.rounds_in(self.time(sample), sample, accesses) * self.paces.of(sample) / own.part;
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
        let common = common.hypot(own.error);
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
