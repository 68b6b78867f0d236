//! The lines of Python code that touched memory first, and that used it.
//!
//! The kernel reports a page fault, a watched access and a sample of its own clock with the native stack of its thread, which ends in a library or the interpreter. The agent's samples
//! and its other ticks have the line of Python code and the native instruction; an allocation has its line. Calls may be shorter than samples are apart, so that the same line before and
//! after an event proves little. So the native instruction decides first:
//!
//! 1. Where samples of all threads (five or more) are at the instruction: if the samples of the thread before, during and after the event show one line that is among those of the
//!    instruction, and the thread stays in lines for longer than samples are apart at that time ([`WITH_CHANGES`]), it is that line.
//! 2. Else, if all but rare ones of the instruction's samples show one line, it is that one, if the thread ran it shortly before or after (50 ms).
//! 3. With fewer samples: if the samples of the thread before, during and after the event show one line, it is that one. Else it is the line of those at the same native instruction, or
//!    the only one of which it is certain that the thread did something at the same place in native code.
//!
//! A thread in a system call has no samples of the agent: the one that came due is taken where the call returns. So it has the line of a call that touched
//! pages, in two cases: samples from outside the program show the thread in the call until then; or no sample is near, the kernel touched pages for the
//! thread without a pause until then, and the sample is at the instruction to which the call returns.

use crate::Sources;
use crate::groups::PYTHON;
use firsttouch_model::rows::{Access, FirstTouch, Frame, Id, Profile, SampledAccess, Site};
use hashbrown::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};

/// A sample tells nothing about what its thread did longer before or after.
const NEAR_NS: u64 = 50_000_000;

/// So many samples at an instruction show the lines that call it: of a second one that makes a third of them, one in 8 shows nothing.
const ENOUGH_THERE: usize = 5;
/// A line with a smaller part of the samples at an instruction is no caller: one in so many.
const RARE: usize = 50;
/// The samples before and after an event that show how long its thread stays in a line.
const WHILE: usize = 6;
/// It stays for longer than samples are apart if at most one of so many pairs of samples shows a change of line. (Two lines in turn: every other pair.)
const WITH_CHANGES: usize = 4;

/// A line that a thread ran: its number among all that samples show.
type Line = usize;

/// A sample in Python code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    time: u64,
    line: Line,
    /// The native instruction, if it is known.
    address: Option<u64>,
}

/// The lines of the samples at a native instruction.
#[derive(Default)]
struct Callers {
    samples: usize,
    lines: BTreeMap<Line, usize>,
    /// The only line that is not rare, if there is one.
    main: Option<Line>,
}

impl Callers {
    fn find_main(&mut self) {
        self.main = only(self.lines.iter().filter(|(_, count)| **count * RARE >= self.samples).map(|(line, _)| *line));
    }
}

/// What the samples show of the Python code of each thread.
#[derive(Default)]
struct Samples<'p> {
    lines: Vec<&'p Frame>,
    /// By thread, in the order of time.
    by_thread: HashMap<Id, Vec<Seen>>,
    /// By thread: for each of its samples, since when the kernel touched pages for the thread without a pause until the sample.
    touched_since: HashMap<Id, Vec<u64>>,
    /// By thread: its samples of any code.
    native: HashMap<Id, Stays>,
    /// Native code of threads that run Python code, by file.
    libraries: HashSet<&'p str>,
    /// By process and native instruction: the lines of the samples there, and their numbers.
    callers: HashMap<(Id, u64), Callers>,
    /// By thread and line: the times at which it ran the line.
    times: HashMap<(Id, Line), Vec<u64>>,
}

impl<'p> Samples<'p> {
    fn new(profile: &'p Profile) -> Self {
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
    fn after_call(&self, thread: Id, time: u64, address: u64, is_alone: bool) -> Option<Line> {
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
    fn stays(&self, thread: Id, (from, to): (u64, u64)) -> bool {
        let own = self.by_thread.get(&thread).map_or(&[][..], Vec::as_slice);
        let (first, last) = (own.partition_point(|seen| seen.time < from), own.partition_point(|seen| seen.time < to));
        let pairs = own[first.saturating_sub(WHILE)..(last + WHILE).min(own.len())].windows(2);
        let (all, changes) = pairs.fold((0, 0), |(all, changes), pair| (all + 1, changes + usize::from(pair[0].line != pair[1].line)));
        changes * WITH_CHANGES <= all
    }

    /// Whether the thread ran a line not long before or after a stretch of time.
    fn is_near(&self, thread: Id, (from, to): (u64, u64), line: Line) -> bool {
        let times = self.times.get(&(thread, line)).map_or(&[][..], Vec::as_slice);
        let next = times.partition_point(|time| time.saturating_add(NEAR_NS) < from);
        times.get(next).is_some_and(|time| *time <= to.saturating_add(NEAR_NS))
    }

    /// The samples of the thread in this stretch of time, and those just before and after it. Empty if its lines are not known from before the stretch until
    /// after it.
    fn around(&self, thread: Id, (from, to): (u64, u64)) -> &[Seen] {
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
struct Stays {
    /// Time and instruction of each sample, in the order of time.
    samples: Vec<(u64, u64)>,
    /// The first sample of each one's stay: at one instruction, without a long time between two samples.
    begin: Vec<usize>,
}

impl Stays {
    fn new(mut samples: Vec<(u64, u64)>) -> Self {
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
fn touched_since(samples: &[Seen], touches: &[u64]) -> Vec<u64> {
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
fn only(seen: impl Iterator<Item = Line>) -> Option<Line> {
    let mut seen = seen;
    let first = seen.next()?;
    seen.all(|line| line == first).then_some(first)
}

fn is_python(frame: &Frame) -> bool {
    frame.module.as_deref() == Some(PYTHON)
}

/// What a thread did at a place in native code, and when.
#[derive(Clone, Copy)]
struct Event {
    thread: Id,
    site: Option<Id>,
    times: (u64, u64),
    /// The kernel did it for the thread, in a system call.
    by_kernel: bool,
    /// The site of the sample that shows it: another instruction of the same loop.
    of_sample: Option<Id>,
}

/// Appends Python lines to native stacks.
struct Lines<'p> {
    profile: &'p Profile,
    sources: &'p dyn Sources,
    samples: Samples<'p>,
    /// By thread and place: the lines of which it is certain that they did something there.
    certain: HashMap<(Id, Id), HashSet<Line>>,
    /// New sites, by native site and line.
    sites: BTreeMap<(Id, Line), Site>,
    next: Id,
}

impl<'p> Lines<'p> {
    /// `events`: all that happened. `None` if no line of any of them can be known.
    fn new(profile: &'p Profile, sources: &'p dyn Sources, events: impl Iterator<Item = Event>) -> Option<Self> {
        let samples = Samples::new(profile);
        if samples.lines.is_empty() {
            return None;
        }
        let next = profile.sites.keys().next_back().map_or(1, |last| last.saturating_add(1));
        let mut this = Self { profile, sources, samples, certain: HashMap::new(), sites: BTreeMap::new(), next };
        for event in events {
            if let Some(site) = this.native(event.site)
                && let Some(line) = this.certain_line(site, event)
            {
                this.certain.entry((event.thread, site.id)).or_default().insert(line);
            }
        }
        let has_callers = || this.samples.callers.values().any(|callers| callers.samples >= ENOUGH_THERE);
        (!this.certain.is_empty() || has_callers()).then_some(this)
    }

    /// The site, if it is in native code that Python code calls.
    fn native(&self, site: Option<Id>) -> Option<&'p Site> {
        let site = self.profile.sites.get(&site?)?;
        let is_of_library = site.frames.first()?.module.as_deref().is_some_and(|module| self.samples.libraries.contains(module));
        let is_own = |frame: &Frame| frame.module.as_deref().is_none_or(|module| self.sources.is_own_module(module));
        (is_of_library && !site.frames.iter().any(|frame| is_python(frame) || is_own(frame))).then_some(site)
    }

    /// The lines that call the instruction of an event, if enough samples show them. `None` if they are too few.
    fn callers(&self, site: &Site, event: Event) -> Option<&Callers> {
        let of_sample = event.of_sample.and_then(|sample| self.profile.sites.get(&sample));
        let seen = |site: &Site| self.samples.callers.get(&(site.process, site.frames.first()?.address));
        [Some(site), of_sample].into_iter().flatten().filter_map(seen).find(|callers| callers.samples >= ENOUGH_THERE)
    }

    /// Of the lines that call an instruction, the one that the thread ran.
    fn caller(&self, callers: &Callers, Event { thread, times, .. }: Event) -> Option<Line> {
        let around = || only(self.samples.around(thread, times).iter().map(|seen| seen.line));
        let lasting = || around().filter(|line| callers.lines.contains_key(line) && self.samples.stays(thread, times));
        let main = callers.main.filter(|line| self.samples.is_near(thread, times, *line));
        // A line that ran once, such as one that fills an array, makes few of the samples at an instruction.
        lasting().or(main)
    }

    /// The line that ran all the time, or the one of the samples at the same native instruction: a system call that touches pages for its caller ends with
    /// the sample that came due in it.
    fn certain_line(&self, site: &Site, Event { thread, times, by_kernel, .. }: Event) -> Option<Line> {
        let around = self.samples.around(thread, times);
        let address = site.frames.first()?.address;
        let there = around.iter().filter(|seen| seen.address == Some(address));
        let after_call = || self.samples.after_call(thread, times.0, address, around.is_empty()).filter(|_| by_kernel);
        only(around.iter().map(|seen| seen.line)).or_else(|| only(there.map(|seen| seen.line))).or_else(after_call)
    }

    /// The site with the line that ran; `None` if that is not known.
    fn with_line(&mut self, event: Event) -> Option<Id> {
        let site = self.native(event.site)?;
        let line = match self.callers(site, event) {
            Some(callers) => self.caller(callers, event).or_else(|| {
                let address = site.frames.first()?.address;
                let is_alone = self.samples.around(event.thread, event.times).is_empty();
                self.samples.after_call(event.thread, event.times.0, address, is_alone).filter(|_| event.by_kernel)
            }),
            None => self.certain_line(site, event).or_else(|| {
                let certain = self.certain.get(&(event.thread, site.id))?;
                let around = self.samples.around(event.thread, event.times);
                only(around.iter().map(|seen| seen.line).filter(|line| certain.contains(line)))
            }),
        }?;
        if let Some(known) = self.sites.get(&(site.id, line)) {
            return Some(known.id);
        }
        let id = self.next;
        self.next = id.checked_add(1)?;
        let frames = site.frames.iter().chain([self.samples.lines[line]]).cloned().collect();
        self.sites.insert((site.id, line), Site { id, process: site.process, frames });
        Some(id)
    }
}

/// The profile with the Python lines of first touches, watched accesses and sampled ones in libraries and the interpreter, as far as they are known; `None`
/// if none is.
#[must_use]
pub fn with_python_lines(profile: &Profile, sources: &dyn Sources) -> Option<Profile> {
    let windows: HashMap<Id, (u64, u64)> =
        profile.windows.iter().map(|window| (window.id, (window.start_ns, window.start_ns.saturating_add(window.held_ns)))).collect();
    let of_touch = |touch: &FirstTouch| {
        let times = (touch.time_ns, touch.time_ns);
        Event { thread: touch.thread, site: touch.site, times, by_kernel: touch.by_kernel, of_sample: None }
    };
    let of_access = |access: &Access| {
        let times = *windows.get(&access.window)?;
        Some(Event { thread: access.thread, site: access.site, times, by_kernel: false, of_sample: None })
    };
    let samples: HashMap<Id, (Id, u64, Option<Id>)> =
        profile.samples.iter().map(|sample| (sample.id, (sample.thread, sample.time_ns, sample.site))).collect();
    let of_sample = |access: &SampledAccess| {
        let &(thread, time, of_sample) = samples.get(&access.sample)?;
        Some(Event { thread, site: access.site, times: (time, time), by_kernel: false, of_sample })
    };
    let watched = profile.accesses.iter().filter_map(of_access);
    let sampled = profile.sampled_accesses.iter().filter_map(of_sample);
    let mut lines = Lines::new(profile, sources, profile.first_touches.iter().map(of_touch).chain(watched).chain(sampled))?;
    let mut known = profile.clone();
    for touch in &mut known.first_touches {
        touch.site = lines.with_line(of_touch(touch)).or(touch.site);
    }
    for access in &mut known.accesses {
        access.site = of_access(access).and_then(|event| lines.with_line(event)).or(access.site);
    }
    for access in &mut known.sampled_accesses {
        access.site = of_sample(access).and_then(|event| lines.with_line(event)).or(access.site);
    }
    if lines.sites.is_empty() {
        return None;
    }
    known.sites.extend(lines.sites.into_values().map(|site| (site.id, site)));
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::OwnHome;
    use firsttouch_model::rows::{PythonLine, SampleState, TimerSample};

    fn native(module: &str, address: u64) -> Frame {
        Frame { address, module: Some(module.into()), ..Frame::default() }
    }

    fn python(line: u32) -> Frame {
        Frame { module: Some(PYTHON.into()), file: Some("/home/me/a.py".into()), line: Some(line), ..Frame::default() }
    }

    fn site(id: Id, frames: Vec<Frame>) -> (Id, Site) {
        (id, Site { id, process: 1, frames })
    }

    /// A sample of a thread that runs a line of Python code; its site is the line's number.
    fn sample(thread: Id, ms: u64, line: Id) -> TimerSample {
        TimerSample {
            id: 0,
            thread,
            time_ns: ms * 1_000_000,
            cpu: 0,
            cpu_ns: 0,
            weight: 1.0,
            site: Some(line),
            state: SampleState::Computing,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        }
    }

    fn touch(thread: Id, ms: u64, site: Id) -> FirstTouch {
        FirstTouch {
            id: 0,
            process: 1,
            time_ns: ms * 1_000_000,
            thread,
            cpu: 0,
            address: 0x1000,
            weight: 1.0,
            by_kernel: false,
            site: Some(site),
            mapped_bytes: None,
            node: None,
        }
    }

    const FILL: Id = 100;
    const OTHER: Id = 101;
    const OWN: Id = 102;
    const OF_LINE_5: Id = 103;

    /// The line of each touch, where thread 1 runs line 4 until 20 ms and line 5 after it.
    fn lines(touches: &[FirstTouch]) -> Vec<Option<u32>> {
        let lines = [4, 5].map(|line| site(line, vec![native("/usr/lib/numpy.so", line as u64), python(line as u32)]));
        let places = [
            site(FILL, vec![native("/usr/lib/numpy.so", 0x20)]),
            site(OTHER, vec![native("/usr/lib/numpy.so", 0x30)]),
            site(OWN, vec![native("/usr/lib/numpy.so", 0x50), native("/home/me/fast.so", 0x40)]),
            site(OF_LINE_5, vec![native("/usr/lib/numpy.so", 5)]),
        ];
        let samples = (0..=10).map(|i| sample(1, 4 * i, if i <= 5 { 4 } else { 5 })).collect();
        let profile =
            Profile { sites: lines.into_iter().chain(places).collect(), samples, first_touches: touches.to_vec(), ..Profile::default() };
        let known = with_python_lines(&profile, &OwnHome);
        let profile = known.as_ref().unwrap_or(&profile);
        let own = |touch: &FirstTouch| profile.sites[&touch.site.unwrap()].frames.last().filter(|frame| is_python(frame))?.line;
        profile.first_touches.iter().map(own).collect()
    }

    /// Check that the line between two samples of it is found, and that code of the program's own keeps its place.
    #[test]
    fn faults_have_the_line_that_runs() {
        assert_eq!(lines(&[touch(1, 5, FILL), touch(1, 30, OTHER), touch(1, 6, OWN)]), [Some(4), Some(5), None]);
    }

    /// Check that a fault between two lines belongs to the one whose code made others, and to no line if both or neither did.
    #[test]
    fn between_two_lines_the_code_decides() {
        assert_eq!(lines(&[touch(1, 22, FILL)]), [None]);
        assert_eq!(lines(&[touch(1, 5, FILL), touch(1, 22, FILL), touch(1, 22, OTHER)]), [Some(4), Some(4), None]);
        assert_eq!(lines(&[touch(1, 5, FILL), touch(1, 22, FILL), touch(1, 30, FILL)]), [Some(4), None, Some(5)]);
    }

    /// Check that the sample at the native instruction of a fault tells its line.
    #[test]
    fn the_same_instruction_tells() {
        assert_eq!(lines(&[touch(1, 22, OF_LINE_5)]), [Some(5)]);
    }

    /// Check that a system call that took longer than samples tell has the line of the sample at its end, and that user code, other calls and calls whose
    /// touches ended long before the sample have none.
    #[test]
    fn a_long_call_ends_with_its_line() {
        let by_kernel = |ms, site| FirstTouch { by_kernel: true, ..touch(1, ms, site) };
        let samples = vec![sample(1, 4, 4), sample(1, 200, 5), sample(1, 500, 5)];
        let lines = [4, 5].map(|line| site(line, vec![native("/usr/lib/numpy.so", line as u64), python(line as u32)]));
        let places = [site(OTHER, vec![native("/usr/lib/numpy.so", 0x30)]), site(OF_LINE_5, vec![native("/usr/lib/numpy.so", 5)])];
        let first_touches = vec![
            by_kernel(6, OF_LINE_5),
            by_kernel(90, OF_LINE_5),
            by_kernel(130, OF_LINE_5),
            by_kernel(160, OTHER),
            touch(1, 170, OF_LINE_5),
            by_kernel(400, OF_LINE_5),
        ];
        let profile = Profile { sites: lines.into_iter().chain(places).collect(), samples, first_touches, ..Profile::default() };
        let known = with_python_lines(&profile, &OwnHome).unwrap();
        let own = |touch: &FirstTouch| known.sites[&touch.site.unwrap()].frames.last().filter(|frame| is_python(frame))?.line;
        assert_eq!(known.first_touches.iter().map(own).collect::<Vec<_>>(), [None, Some(5), Some(5), None, None, None]);
    }

    /// Check that the agent's next line is that of a call, if samples from outside the program show the thread in the call all the time, and none if they show
    /// it elsewhere.
    #[test]
    fn samples_from_outside_show_a_call() {
        let lines = |elsewhere: Option<u64>, next_ms: u64| {
            let by_kernel = |ms| FirstTouch { by_kernel: true, ..touch(1, ms, OTHER) };
            let mut samples: Vec<TimerSample> = [70, 140, 210].map(|ms| sample(1, ms, OTHER)).into();
            samples.extend(elsewhere.map(|ms| sample(1, ms, FILL)));
            let site_of_line = site(5, vec![python(5)]);
            let places = [site(FILL, vec![native("/usr/lib/libc.so", 0x20)]), site(OTHER, vec![native("/usr/lib/libc.so", 0x30)])];
            let python_lines = vec![PythonLine { thread: 1, time_ns: next_ms * 1_000_000, site: 5 }];
            let first_touches = vec![by_kernel(10), by_kernel(100), by_kernel(200)];
            let sites = [site_of_line].into_iter().chain(places).collect();
            let profile = Profile { sites, samples, python_lines, first_touches, ..Profile::default() };
            let known = with_python_lines(&profile, &OwnHome);
            let profile = known.as_ref().unwrap_or(&profile);
            let own = |touch: &FirstTouch| profile.sites[&touch.site.unwrap()].frames.last().filter(|frame| is_python(frame))?.line;
            profile.first_touches.iter().map(own).collect::<Vec<_>>()
        };
        assert_eq!(lines(None, 250), [Some(5); 3]);
        assert_eq!(lines(Some(150), 250), [None, None, Some(5)]);
        assert_eq!(lines(Some(240), 250), [None; 3]);
        assert_eq!(lines(None, 900), [None; 3], "it left the call long before");
    }

    /// Check that touches of short calls are of no line, if samples near them show several: the next one may be of another call.
    #[test]
    fn short_calls_may_be_of_other_lines() {
        let by_kernel = |ms| FirstTouch { by_kernel: true, ..touch(1, ms, FILL) };
        let lines = [4, 5].map(|line| site(line, vec![native("/usr/lib/libc.so", 0x20), python(line as u32)]));
        let samples = [0, 4, 8, 12].map(|ms| sample(1, ms, if ms % 8 == 0 { 4 } else { 5 })).into();
        let fill = site(FILL, vec![native("/usr/lib/libc.so", 0x20)]);
        let first_touches = vec![by_kernel(2), by_kernel(6), by_kernel(10)];
        let profile = Profile { sites: lines.into_iter().chain([fill]).collect(), samples, first_touches, ..Profile::default() };
        assert!(with_python_lines(&profile, &OwnHome).is_none());
    }

    /// Check that where calls are shorter than samples are apart, the only line that samples show at an instruction is its line, if they are not few, and if
    /// the thread runs that line at the time.
    #[test]
    fn the_only_caller_of_an_instruction() {
        let in_line = |address: u64, line: Id| site(line, vec![native("/usr/lib/numpy.so", address), python(line as u32)]);
        let places = [0x20, 0x30, 0x40].map(|address| site(address as Id, vec![native("/usr/lib/numpy.so", address)]));
        // Line 4 calls 0x20, line 5 calls 0x30; lines 6 and 7 both call 0x40.
        let lines = [in_line(0x20, 4), in_line(0x30, 5), in_line(0x40, 6), in_line(0x40, 7)];
        let found = |repeats: u64, thread: Id, at: u64| {
            let mut samples: Vec<TimerSample> = (0..4 * repeats).map(|i| sample(1, i, 4 + (i % 4) as Id)).collect();
            // Ticks of another thread, which show lines without an instruction.
            let ticks = (0..10).map(|i| PythonLine { thread: 2, time_ns: i * 4_000_000, site: 200 + (i % 2) as Id }).collect();
            let of_ticks = [(200, 4), (201, 5)].map(|(id, line)| site(id, vec![python(line)]));
            samples.sort_by_key(|sample| sample.time_ns);
            let first_touches = vec![touch(thread, 9, at as Id)];
            let sites = lines.clone().into_iter().chain(places.clone()).chain(of_ticks).collect();
            let profile = Profile { sites, samples, python_lines: ticks, first_touches, ..Profile::default() };
            let known = with_python_lines(&profile, &OwnHome).unwrap_or(profile);
            let frames = &known.sites[&known.first_touches[0].site.unwrap()].frames;
            frames.last().filter(|frame| is_python(frame)).and_then(|frame| frame.line)
        };
        assert_eq!([0x20, 0x30, 0x40].map(|at| found(5, 2, at)), [Some(4), Some(5), None], "thread 2 runs lines 4 and 5");
        assert_eq!(found(4, 2, 0x20), None, "four samples are few");
        assert_eq!(found(5, 3, 0x20), None, "nothing is known of thread 3");
    }

    /// Check that a line which fills an array has its first touches, though another one makes nearly all samples at the same instruction, and that lines in
    /// turn do not get what happens between two samples of one of them.
    #[test]
    fn lines_that_share_an_instruction() {
        let lines = [4, 5].map(|line| site(line, vec![native("/usr/lib/numpy.so", 0x20), python(line as u32)]));
        let fill = site(FILL, vec![native("/usr/lib/numpy.so", 0x20)]);
        let line_at = |line_of: &dyn Fn(u64) -> Id, ms: u64| {
            let samples = (0..300).map(|i| sample(1, 4 * i, line_of(i))).collect();
            let sites = lines.clone().into_iter().chain([fill.clone()]).collect();
            let profile = Profile { sites, samples, first_touches: vec![touch(1, ms, FILL)], ..Profile::default() };
            let known = with_python_lines(&profile, &OwnHome).unwrap_or(profile);
            let frames = &known.sites[&known.first_touches[0].site.unwrap()].frames;
            frames.last().filter(|frame| is_python(frame)).and_then(|frame| frame.line)
        };
        let once = |i: u64| if i < 4 { 4 } else { 5 };
        assert_eq!([5, 10, 100].map(|ms| line_at(&once, ms)), [Some(4), Some(4), Some(5)]);
        let in_turn = |i: u64| if [0, 3].contains(&(i % 4)) { 4 } else { 5 };
        assert_eq!([401, 405, 409].map(|ms| line_at(&in_turn, ms)), [None; 3]);
    }

    /// Check that samples of another thread, or long before or after, tell nothing.
    #[test]
    fn only_near_samples_of_the_thread_tell() {
        assert_eq!(lines(&[touch(2, 5, FILL), touch(1, 41, FILL), touch(1, 5, FILL)]), [None, None, Some(4)]);
    }
}
