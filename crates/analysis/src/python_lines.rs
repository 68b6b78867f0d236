//! The lines of Python code that touched memory first, and that used it.
//!
//! The kernel reports a page fault, a watched access and a sample of its own clock with the native stack of its thread, which ends in a library or the interpreter. The agent's samples
//! and its other ticks have the line of Python code and the native instruction; an allocation has its line. Calls may be shorter than samples are apart, so that the same line before and
//! after an event proves little. So the native instruction decides first:
//!
//! 1. Where samples of all threads (five or more) are at the instruction: if the samples of the thread before, during and after the event show one line that is among those of the
//!    instruction, and the thread stays in lines for longer than samples are apart at that time (`python_lines/samples.rs`), it is that line.
//! 2. Else, if all but rare ones of the instruction's samples show one line, it is that one, if the thread ran it shortly before or after (50 ms).
//! 3. With fewer samples: if the samples of the thread before, during and after the event show one line, it is that one. Else it is the line of those at the same native instruction, or
//!    the only one of which it is certain that the thread did something at the same place in native code.
//!
//! A thread in a system call has no samples of the agent: the one that came due is taken where the call returns. So it has the line of a call that touched
//! pages, in two cases: samples from outside the program show the thread in the call until then; or no sample is near, the kernel touched pages for the
//! thread without a pause until then, and the sample is at the instruction to which the call returns.

mod samples;

use crate::Sources;
use firsttouch_model::rows::{Access, FirstTouch, Frame, Id, Profile, SampledAccess, Site};
use hashbrown::{HashMap, HashSet};
use samples::{Callers, ENOUGH_THERE, Line, Samples, is_python, only};
use std::collections::BTreeMap;

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
    use crate::groups::PYTHON;
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
