//! Pairs of successive samples of one thread in one loop: CPU time and rounds between them.

use super::entries::Ends;
use super::instructions::Instructions;
use super::loops::Loop;
use super::own_part::{OwnPart, own_parts};
use super::times::is_for_rates;
use firsttouch_model::rows::{Id, Profile, SampledAccess, SampledLoop, TimerSample};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Samples further apart than this many times the usual CPU time have others between them that were lost.
pub(super) const ADJACENT: f64 = 1.7;
/// Samples of a burst are 0.3 ms apart at most. In a longer time the thread may have waited.
pub(super) const LONGEST_BURST_NS: f64 = 1e6;
/// At least this part of the time between two samples of a burst is the loop's.
const LEAST_LEFT: f64 = 0.3;
/// Samples in one entry of a loop from which on their span is that of the entry.
const OF_ENTRY: u32 = 8;
/// As many pairs without first touches show the speed of a loop.
const ENOUGH: usize = 8;
/// A loop fills memory for the first time rarely if at most this part of its timer samples come after first touches of its thread.
const RARELY: f64 = 0.25;

/// CPU time and rounds between two samples.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub ns: f64,
    /// Below 0 if the loop began anew in between.
    pub rounds: f64,
    /// Rounds from the first to the last that was seen.
    pub lap: f64,
    /// Rounds from the first sample of the pair to the end of its lap.
    pub left: f64,
    /// Pairs right behind each other have this in common.
    pub run: u32,
    pub is_burst: bool,
    /// Its thread touched pages first in the meantime: the kernel took a part of the time.
    pub has_faults: bool,
}

/// The pairs of one loop, by thread.
#[derive(Debug, Default)]
pub struct OfLoop {
    /// Both samples are in one entry of the loop.
    pub entries: BTreeMap<Id, Vec<Pair>>,
    /// The samples are in different entries: an outer loop lies between them.
    pub crossings: BTreeMap<Id, Vec<Pair>>,
    /// Both samples are in one entry of a loop whose entries are known: pairs like those of different entries; between them the thread was in the loop, or in
    /// what it calls. By themselves they would be those of slow entries, in which two samples fit: a matrix that is read across its rows comes from memory in one of eight entries.
    inside: BTreeMap<Id, Vec<Pair>>,
    /// All pairs of timer samples, of one entry and of different ones, with all of the time between them.
    pub ticks: BTreeMap<Id, Vec<Pair>>,
    /// A comparison decides whether another round follows.
    pub is_counted: bool,
    /// The entries are known: ways through memory that other threads go are not counted.
    pub has_entries: bool,
    /// The part of the time of an entry that the loop's own code takes, if that is known.
    pub own_part: Option<OwnPart>,
    /// Timer samples, and those with first touches of their threads since the sample before.
    samples: u32,
    with_faults: u32,
    by_bursts: Between,
    by_timers: BTreeMap<Id, Between>,
}

/// Samples of a thread between two others of it that are in a loop, and those of them that are in it too.
#[derive(Clone, Copy, Debug, Default)]
struct Between {
    all: u32,
    inside: u32,
}

impl Between {
    /// The part of its thread's time that a loop takes between two samples in it; 1 if nothing is known.
    fn part(self) -> f64 {
        (f64::from(self.inside) + 1.0) / (f64::from(self.all) + 1.0)
    }
}

impl OfLoop {
    /// Leaves out the pairs with first touches where others show the speed: filled for the first time, memory takes several times as long as later. Not of a
    /// loop that fills new memory again and again: its samples have that time too.
    fn leave_out_faults(&mut self) {
        if f64::from(self.with_faults) > RARELY * f64::from(self.samples) {
            return;
        }
        for threads in [&mut self.entries, &mut self.crossings, &mut self.inside, &mut self.ticks] {
            let without = threads.values().flatten().filter(|pair| !pair.has_faults).count();
            if without >= ENOUGH {
                threads.values_mut().for_each(|pairs| pairs.retain(|pair| !pair.has_faults));
            }
        }
    }

    /// The part of its threads' time that the loop takes, from one sample in it to the next but one.
    pub fn part_of_time(&self) -> f64 {
        let sum = |all: Between, one: &Between| Between { all: all.all + one.all, inside: all.inside + one.inside };
        self.by_timers.values().fold(Between::default(), sum).part()
    }

    /// The same of one thread.
    pub fn part_of_time_of(&self, thread: Id) -> f64 {
        self.by_timers.get(&thread).map_or(1.0, |between| between.part())
    }

    /// The pairs of samples in different entries, whose time is the loop's only in part. Between timer samples that part may be less than between
    /// those of a burst, if another loop comes in each round of an outer one, or the same, if the other loop comes behind the whole sweep, which
    /// is longer than the time between the samples: both are returned.
    pub fn without_others(&self) -> [BTreeMap<Id, Vec<Pair>>; 2] {
        let [of_bursts, of_timers] = [self.by_bursts.part(), self.part_of_time()];
        let of_entry = self.own_part.map_or(1.0, |own| own.part);
        [of_timers, of_bursts].map(|of_timers| {
            let scaled = |pair: &Pair| Pair { ns: pair.ns * if pair.is_burst { of_bursts } else { of_timers }, ..*pair };
            let mut all: BTreeMap<Id, Vec<Pair>> =
                self.crossings.iter().map(|(thread, pairs)| (*thread, pairs.iter().map(scaled).collect())).collect();
            for (thread, pairs) in &self.inside {
                let own = all.entry(*thread).or_default();
                own.extend(pairs.iter().map(|pair| Pair { ns: pair.ns * of_entry, ..*pair }));
                own.sort_by_key(|pair| pair.run);
            }
            all
        })
    }
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
    seen: u32,
}

impl Span {
    fn of(value: u64) -> Self {
        Self { low: value, high: value, seen: 0 }
    }

    fn widen(&mut self, value: u64) {
        (self.low, self.high, self.seen) = (self.low.min(value), self.high.max(value), self.seen + 1);
    }

    fn rounds(self, step: i64) -> f64 {
        (self.high - self.low) as f64 / step.unsigned_abs().max(1) as f64 + 1.0
    }

    /// Rounds from here to the end.
    fn left(self, value: u64, step: i64) -> f64 {
        let way = if step > 0 { self.high.saturating_sub(value) } else { value.saturating_sub(self.low) };
        way as f64 / step.unsigned_abs().max(1) as f64
    }
}

type OperandKey = (Loop, Id, Option<Id>, Id, i64);

/// The spans that loops go through: of the register in an entry and in all of them, and of the operands.
#[derive(Debug, Default)]
struct Spans {
    of_entry: HashMap<(Loop, Id, u64), Span>,
    of_all: HashMap<(Loop, Id), Span>,
    of_operand: HashMap<OperandKey, Span>,
}

impl Spans {
    fn see(&mut self, key: Loop, sample: &TimerSample, accesses: &[SampledAccess], instructions: &Instructions) {
        if let Some((around, progress)) = sample.around.and_then(|around| Some((around, around.progress?))) {
            let value = progress.value;
            self.of_entry.entry((key, sample.thread, around.entry)).or_insert(Span::of(value)).widen(value);
            self.of_all.entry((key, sample.thread)).or_insert(Span::of(value)).widen(value);
        }
        for access in accesses {
            if let Some(stride) = access.stride {
                let key = (key, sample.thread, instructions.of(access), access.object, stride);
                self.of_operand.entry(key).or_insert(Span::of(access.address)).widen(access.address);
            }
        }
    }

    /// That of the entry, if it was seen often enough.
    fn of(&self, key: Loop, thread: Id, around: &SampledLoop) -> Option<Span> {
        let own = self.of_entry.get(&(key, thread, around.entry)).filter(|span| span.seen >= OF_ENTRY);
        own.or_else(|| self.of_all.get(&(key, thread))).copied()
    }
}

/// Rounds between two samples, in a lap, and from the first sample to the end of its lap.
pub type Moved = (f64, f64, f64);

/// The pairs of all loops. `accesses`: those of each sample, in the order of the samples. `usual_ns`: CPU time between two timer samples.
pub fn pairs(
    profile: &Profile,
    accesses: &[&[SampledAccess]],
    usual_ns: f64,
    key_of: impl Fn(&TimerSample) -> Option<Loop>,
) -> HashMap<Loop, OfLoop> {
    let tick_ns = profile.meta.tick_ns.unwrap_or(0.0);
    let mut loops: HashMap<Loop, OfLoop> = HashMap::new();
    let instructions = Instructions::new(profile);
    let (mut runs, mut spans, mut ends) = (Runs::default(), Spans::default(), Ends::default());
    for (sample, own) in profile.samples.iter().zip(accesses) {
        if let Some(key) = key_of(sample) {
            spans.see(key, sample, own, &instructions);
            ends.see(key, sample, own, &instructions);
        }
    }
    let with_gaps = ends.entries();
    let mut touches: HashMap<Id, Vec<u64>> = HashMap::new();
    for touch in &profile.first_touches {
        touches.entry(touch.thread).or_default().push(touch.time_ns);
    }
    touches.values_mut().for_each(|times| times.sort_unstable());
    let mut before_last: HashMap<(Id, bool), usize> = HashMap::new();
    for (before, at) in successive(profile) {
        let (previous, sample) = (&profile.samples[before], &profile.samples[at]);
        let is_burst = is_for_rates(sample);
        let first = before_last.insert((sample.thread, is_burst), before);
        let between = sample.cpu_ns.saturating_sub(previous.cpu_ns) as f64;
        if between > if is_burst { LONGEST_BURST_NS } else { ADJACENT * usual_ns } {
            before_last.remove(&(sample.thread, is_burst));
            continue;
        }
        let run = runs.of(before, at, sample);
        let Some(key) = key_of(sample) else { continue };
        let own = loops.entry(key).or_default();
        let has_faults = touches.get(&sample.thread).is_some_and(|times| {
            times.get(times.partition_point(|time| *time <= previous.time_ns)).is_some_and(|time| *time <= sample.time_ns)
        });
        own.samples += u32::from(!is_burst);
        own.with_faults += u32::from(!is_burst && has_faults);
        own.is_counted |= sample.around.is_some_and(|around| around.left.is_some());
        if let Some(first) = first.map(|first| &profile.samples[first]).filter(|first| key_of(first) == Some(key)) {
            let is_counted = !is_burst || first.around.zip(sample.around).is_some_and(|(then, now)| then.entry != now.entry);
            let counts = if is_burst { &mut own.by_bursts } else { own.by_timers.entry(sample.thread).or_default() };
            counts.all += u32::from(is_counted);
            counts.inside += u32::from(is_counted && key_of(previous) == Some(key));
        }
        let Some((around, then)) = sample.around.zip(previous.around).filter(|(now, then)| now.end == then.end) else { continue };
        let in_entry = (around.entry == then.entry).then(|| progress(&around, &then, spans.of(key, sample.thread, &around))).flatten();
        let (pairs, moved) = if let Some(entries) = with_gaps.get(&(key, sample.thread)) {
            own.has_entries = true;
            let moved = entries.advance((sample, accesses[at]), (previous, accesses[before]), &instructions);
            (if in_entry.is_some() { &mut own.inside } else { &mut own.crossings }, moved)
        } else if in_entry.is_some() {
            (&mut own.entries, in_entry)
        } else {
            let span = |access: &SampledAccess, stride| {
                let key = (key, sample.thread, instructions.of(access), access.object, stride);
                spans.of_operand.get(&key).copied()
            };
            (&mut own.crossings, advance(accesses[at], accesses[before], &instructions, span))
        };
        // The sample from outside interrupted the loop.
        let ns = if is_burst { (between - tick_ns).max(LEAST_LEFT * between) } else { between };
        let pair = moved.map(|(rounds, lap, left)| Pair { ns, rounds, lap, left, run, is_burst, has_faults });
        pairs.entry(sample.thread).or_default().extend(pair);
        if !is_burst {
            own.ticks.entry(sample.thread).or_default().extend(pair);
        }
    }
    loops.values_mut().for_each(OfLoop::leave_out_faults);
    for (key, part) in own_parts(profile, usual_ns, &key_of) {
        if let Some(own) = loops.get_mut(&key) {
            own.own_part = Some(part);
        }
    }
    loops
}

/// Indices of successive samples of one thread. Those for rates have a clock of their own.
fn successive(profile: &Profile) -> Vec<(usize, usize)> {
    let mut last: HashMap<(Id, bool), usize> = HashMap::new();
    let with_last = |(at, sample): (usize, &TimerSample)| last.insert((sample.thread, is_for_rates(sample)), at).map(|before| (before, at));
    profile.samples.iter().enumerate().filter_map(with_last).collect()
}

/// Rounds by the register that grows by a constant step.
fn progress(now: &SampledLoop, then: &SampledLoop, span: Option<Span>) -> Option<Moved> {
    let (now, then) = now.progress.zip(then.progress).filter(|(now, then)| now.step == then.step && now.step != 0)?;
    let moved = now.value.wrapping_sub(then.value).cast_signed();
    let span = span?;
    Some((moved as f64 / now.step as f64, span.rounds(now.step), span.left(then.value, now.step)))
}

/// Rounds by the address of an operand with a constant stride that both samples have: of those, the one with the longest lap. (In
/// `sum += a[i * n + j] * b[j]` each row begins anew in `b`, and each sweep in `a`.)
fn advance(
    now: &[SampledAccess],
    then: &[SampledAccess],
    instructions: &Instructions,
    span: impl Fn(&SampledAccess, i64) -> Option<Span>,
) -> Option<Moved> {
    let is_same = |one: &SampledAccess, other: &SampledAccess| {
        one.stride == other.stride && one.object == other.object && instructions.of(one) == instructions.of(other)
    };
    let moved = |access: &SampledAccess| {
        let stride = access.stride.filter(|stride| *stride != 0)?;
        let before = then.iter().find(|one| is_same(one, access))?;
        let rounds = access.address.wrapping_sub(before.address).cast_signed() as f64 / stride as f64;
        let span = span(access, stride)?;
        Some((rounds, span.rounds(stride), span.left(before.address, stride)))
    };
    now.iter().filter_map(moved).max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{FirstTouch, Progress, SampleState};

    const TICK: u64 = 4_000_000;
    const LOOP: Loop = Loop::InProcess(1, 0x10);

    /// Ticks of a thread in one entry of a loop: for `filling` ones it touches pages first, and takes ten times as long a round.
    fn profile(filling: u64, ticks: u64) -> Profile {
        let mut profile = Profile::default();
        let mut value = 0;
        for tick in 0..ticks {
            let time = tick * TICK;
            profile.samples.push(TimerSample {
                id: 0,
                thread: 3,
                time_ns: time,
                cpu: 0,
                cpu_ns: time,
                weight: 1.0,
                site: None,
                state: SampleState::Computing,
                around: Some(SampledLoop { end: 0x10, entry: 1, progress: Some(Progress { value, step: 1 }), left: None }),
                unknown: 0,
                elsewhere: 0.0,
            });
            value += TICK / if tick < filling { 20 } else { 2 };
            profile.first_touches.extend((tick < filling).then_some(FirstTouch {
                id: 0,
                process: 1,
                time_ns: time + TICK / 2,
                thread: 3,
                cpu: 0,
                address: 0,
                weight: 1.0,
                by_kernel: false,
                site: None,
                mapped_bytes: None,
                node: None,
            }));
        }
        profile
    }

    /// The number of pairs in entries, and the time of a round by all of them, ns.
    fn seen(profile: &Profile) -> (usize, f64) {
        let accesses = vec![&[][..]; profile.samples.len()];
        let found = pairs(profile, &accesses, TICK as f64, |_| Some(LOOP));
        let own = &found[&LOOP].entries[&3];
        let (ns, rounds) = own.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.ns, sum.1 + pair.rounds));
        (own.len(), ns / rounds)
    }

    /// Check that the time of a round is that of memory which is filled already, where enough pairs show it, and else that of all.
    #[test]
    fn filling_for_the_first_time_is_left_out() {
        let (count, ns) = seen(&profile(20, 100));
        assert!(count == 79 && (ns - 2.0).abs() < 1e-6, "{count} pairs, {ns} ns");
        // It fills memory for half of its time, or few pairs are left.
        let (count, ns) = seen(&profile(50, 100));
        assert!(count == 99 && ns > 3.0, "{count} pairs, {ns} ns");
        let (count, ns) = seen(&profile(2, 10));
        assert!(count == 9 && ns > 2.1, "{count} pairs, {ns} ns");
    }
}
