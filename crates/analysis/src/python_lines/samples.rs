//! What samples, ticks and allocations show of the Python code that each thread ran.

use crate::groups::PYTHON;
use firsttouch_model::rows::{Frame, Id, Profile};
use hashbrown::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};

/// A sample tells nothing about what its thread did longer before or after.
const NEAR_NS: u64 = 50_000_000;

/// So many samples at an instruction show the lines that call it: of a second one that makes a third of them, one in 8 shows nothing.
pub(super) const ENOUGH_THERE: usize = 5;
/// A line with a smaller part of the samples at an instruction is no caller: one in so many.
const RARE: usize = 50;
/// The samples before and after an event that show how long its thread stays in a line.
const WHILE: usize = 6;
/// It stays for longer than samples are apart if at most one of so many pairs of samples shows a change of line. (Two lines in turn: every other pair.)
const WITH_CHANGES: usize = 4;

/// A line that a thread ran: its number among all that samples show.
pub(super) type Line = usize;

/// A sample in Python code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) time: u64,
    pub(super) line: Line,
    /// The native instruction, if it is known.
    pub(super) address: Option<u64>,
}

/// The lines of the samples at a native instruction.
#[derive(Default)]
pub(super) struct Callers {
    pub(super) samples: usize,
    pub(super) lines: BTreeMap<Line, usize>,
    /// The only line that is not rare, if there is one.
    pub(super) main: Option<Line>,
}

impl Callers {
    fn find_main(&mut self) {
        self.main = only(self.lines.iter().filter(|(_, count)| **count * RARE >= self.samples).map(|(line, _)| *line));
    }
}

/// What the samples show of the Python code of each thread.
#[derive(Default)]
pub(super) struct Samples<'p> {
    pub(super) lines: Vec<&'p Frame>,
    /// By thread, in the order of time.
    by_thread: HashMap<Id, Vec<Seen>>,
    /// By thread: for each of its samples, since when the kernel touched pages for the thread without a pause until the sample.
    touched_since: HashMap<Id, Vec<u64>>,
    /// By thread: its samples of any code.
    native: HashMap<Id, Stays>,
    /// Native code of threads that run Python code, by file.
    pub(super) libraries: HashSet<&'p str>,
    /// By process and native instruction: the lines of the samples there, and their numbers.
    pub(super) callers: HashMap<(Id, u64), Callers>,
    /// By thread and line: the times at which it ran the line.
    times: HashMap<(Id, Line), Vec<u64>>,
}

impl<'p> Samples<'p> {
    pub(super) fn new(profile: &'p Profile) -> Self {
        let mut this = Self::default();
        let mut numbers: HashMap<(&str, u32), Line> = HashMap::new();
        let of_samples = profile.samples.iter().filter_map(|sample| Some((sample.thread, sample.time_ns, sample.site?)));
        let of_ticks = profile.python_lines.iter().map(|tick| (tick.thread, tick.time_ns, tick.site));
        // The instructions of a loop that accessed memory, each once a sample: the sample itself is at another one, or counts already.
        let site_of: HashMap<Id, Option<Id>> = profile.samples.iter().map(|sample| (sample.id, sample.site)).collect();
        let operands: BTreeSet<(Id, Id)> =
            profile.sampled_accesses.iter().filter_map(|access| Some((access.sample, access.site?))).collect();
        let of_operands = operands.into_iter().filter(|(sample, site)| site_of.get(sample) != Some(&Some(*site))).map(|(_, site)| site);
        for (thread_and_time, site) in
            of_samples.chain(of_ticks).map(|(thread, time, site)| (Some((thread, time)), site)).chain(of_operands.map(|site| (None, site)))
        {
            let Some(site) = profile.sites.get(&site) else { continue };
            let Some((frame, native)) = site.frames.split_last().filter(|(last, _)| is_python(last)) else { continue };
            let (Some(file), Some(number)) = (frame.file.as_deref(), frame.line) else { continue };
            let line = *numbers.entry((file, number)).or_insert_with(|| {
                this.lines.push(frame);
                this.lines.len() - 1
            });
            let address = native.first().map(|frame| frame.address);
            if let Some(address) = address {
                let callers = this.callers.entry((site.process, address)).or_default();
                callers.samples += 1;
                *callers.lines.entry(line).or_default() += 1;
            }
            if let Some((thread, time)) = thread_and_time {
                this.by_thread.entry(thread).or_default().push(Seen { time, line, address });
            }
        }
        let files: HashSet<&str> = numbers.keys().map(|(file, _)| *file).collect();
        // An allocation shows its line too, just before the first touches of what it allocates.
        for object in &profile.objects {
            let Some((thread, site)) = object.thread.zip(object.site.and_then(|site| profile.sites.get(&site))) else { continue };
            // The innermost line of the program's own code: samples show which files are its own.
            let is_own = |frame: &&Frame| is_python(frame) && frame.file.as_deref().is_some_and(|file| files.contains(file));
            let own = |frame: &Frame| numbers.get(&(frame.file.as_deref()?, frame.line?)).copied();
            let Some(line) = site.frames.iter().find(is_own).and_then(own) else { continue };
            if let Some(seen) = this.by_thread.get_mut(&thread) {
                seen.push(Seen { time: object.born_ns, line, address: None });
            }
        }
        this.by_thread.values_mut().for_each(|own| own.sort_unstable());
        for (thread, own) in &this.by_thread {
            for seen in own {
                this.times.entry((*thread, seen.line)).or_default().push(seen.time);
            }
        }
        this.callers.values_mut().for_each(Callers::find_main);
        let of_python = profile.samples.iter().filter(|sample| this.by_thread.contains_key(&sample.thread));
        let sites: HashSet<Id> = of_python.filter_map(|sample| sample.site).collect();
        let frames = sites.iter().filter_map(|site| profile.sites.get(site)).flat_map(|site| &site.frames);
        this.libraries = frames.filter_map(|frame| frame.module.as_deref()).filter(|module| *module != PYTHON).collect();
        let mut by_kernel: HashMap<Id, Vec<u64>> = HashMap::new();
        for touch in profile.first_touches.iter().filter(|touch| touch.by_kernel) {
            by_kernel.entry(touch.thread).or_default().push(touch.time_ns);
        }
        by_kernel.values_mut().for_each(|times| times.sort_unstable());
        let since = |(thread, times): (&Id, &Vec<u64>)| Some((*thread, touched_since(this.by_thread.get(thread)?, times)));
        this.touched_since = by_kernel.iter().filter_map(since).collect();
        let mut native: HashMap<Id, Vec<(u64, u64)>> = by_kernel.keys().map(|thread| (*thread, Vec::new())).collect();
        for sample in &profile.samples {
            let address = || profile.sites.get(&sample.site?)?.frames.first().map(|frame| frame.address);
            if let Some(own) = native.get_mut(&sample.thread) {
                own.extend(address().map(|address| (sample.time_ns, address)));
            }
        }
        this.native = native.into_iter().map(|(thread, samples)| (thread, Stays::new(samples))).collect();
        this
    }

    /// The line of the thread's next sample from a time at which the kernel touched a page for it, in a call that returns to this instruction, if the
    /// thread is taken to have been in the call until then. `is_alone`: no sample is near.
    pub(super) fn after_call(&self, thread: Id, time: u64, address: u64, is_alone: bool) -> Option<Line> {
        let own = self.by_thread.get(&thread)?;
        let next = own.partition_point(|seen| seen.time < time);
        let seen = own.get(next).filter(|seen| seen.address.is_none_or(|own| own == address))?;
        let was_there = match self.native.get(&thread)?.between(time, seen.time) {
            Some(place) => place == Some(address),
            None => is_alone && seen.address.is_some() && *self.touched_since.get(&thread)?.get(next)? <= time,
        };
        was_there.then_some(seen.line)
    }

    /// Whether the samples around a stretch of time show that the thread stays in lines for longer than samples are apart.
    pub(super) fn stays(&self, thread: Id, (from, to): (u64, u64)) -> bool {
        let own = self.by_thread.get(&thread).map_or(&[][..], Vec::as_slice);
        let (first, last) = (own.partition_point(|seen| seen.time < from), own.partition_point(|seen| seen.time < to));
        let pairs = own[first.saturating_sub(WHILE)..(last + WHILE).min(own.len())].windows(2);
        let (all, changes) = pairs.fold((0, 0), |(all, changes), pair| (all + 1, changes + usize::from(pair[0].line != pair[1].line)));
        changes * WITH_CHANGES <= all
    }

    /// Whether the thread ran a line not long before or after a stretch of time.
    pub(super) fn is_near(&self, thread: Id, (from, to): (u64, u64), line: Line) -> bool {
        let times = self.times.get(&(thread, line)).map_or(&[][..], Vec::as_slice);
        let next = times.partition_point(|time| time.saturating_add(NEAR_NS) < from);
        times.get(next).is_some_and(|time| *time <= to.saturating_add(NEAR_NS))
    }

    /// The samples of the thread in this stretch of time, and those just before and after it. Empty if its lines are not known from before the stretch until
    /// after it.
    pub(super) fn around(&self, thread: Id, (from, to): (u64, u64)) -> &[Seen] {
        let own = self.by_thread.get(&thread).map_or(&[][..], Vec::as_slice);
        let (first, last) = (own.partition_point(|seen| seen.time < from), own.partition_point(|seen| seen.time < to));
        let stretch = first.checked_sub(1).and_then(|first| own.get(first..=last)).unwrap_or_default();
        let (Some(before), Some(after)) = (stretch.first(), stretch.last()) else { return &[] };
        let has_gap = stretch.windows(2).any(|pair| pair[1].time - pair[0].time > 2 * NEAR_NS);
        let is_near = !has_gap && from.saturating_sub(before.time) <= NEAR_NS && after.time.saturating_sub(to) <= NEAR_NS;
        if is_near { stretch } else { &[] }
    }
}

/// The samples of a thread: where it was, and how long it stayed there.
#[derive(Default)]
pub(super) struct Stays {
    /// Time and instruction of each sample, in the order of time.
    samples: Vec<(u64, u64)>,
    /// The first sample of each one's stay: at one instruction, without a long time between two samples.
    begin: Vec<usize>,
}

impl Stays {
    pub(super) fn new(mut samples: Vec<(u64, u64)>) -> Self {
        samples.sort_unstable();
        let mut begin: Vec<usize> = Vec::with_capacity(samples.len());
        for (at, (time, address)) in samples.iter().enumerate() {
            let is_same = |(earlier, other): (u64, u64)| other == *address && time - earlier <= 2 * NEAR_NS;
            let before = at.checked_sub(1).filter(|before| is_same(samples[*before]));
            begin.push(before.map_or(at, |before| begin[before]));
        }
        Self { samples, begin }
    }

    /// The instruction of all samples between two times, `Some(None)` if they show several, or none for a long time; `None` without samples.
    fn between(&self, from: u64, to: u64) -> Option<Option<u64>> {
        let [first, end] = [from, to].map(|bound| self.samples.partition_point(|(time, _)| *time < bound));
        let last = end.checked_sub(1).filter(|last| *last >= first)?;
        let is_near = self.samples[first].0 - from <= 2 * NEAR_NS && to - self.samples[last].0 <= 2 * NEAR_NS;
        Some((self.begin[last] <= first && is_near).then_some(self.samples[last].1))
    }
}

/// For each of a thread's samples, since when the kernel touched pages for the thread without a pause until the sample. Both are in the order of time.
pub(super) fn touched_since(samples: &[Seen], touches: &[u64]) -> Vec<u64> {
    let mut since = Vec::with_capacity(samples.len());
    let mut seen = 0;
    for sample in samples {
        let past = seen + touches[seen..].partition_point(|time| *time <= sample.time);
        let without_pause = |later: u64, time: &u64| (later - time <= NEAR_NS).then_some(*time);
        let first = touches[seen..past].iter().rev().try_fold(sample.time, |later, time| without_pause(later, time).ok_or(later));
        since.push(first.unwrap_or_else(|first| first));
        seen = past;
    }
    since
}

/// The only line of these samples; `None` if they show none, or several.
pub(super) fn only(seen: impl Iterator<Item = Line>) -> Option<Line> {
    let mut seen = seen;
    let first = seen.next()?;
    seen.all(|line| line == first).then_some(first)
}

pub(super) fn is_python(frame: &Frame) -> bool {
    frame.module.as_deref() == Some(PYTHON)
}
