//! Accesses, from the registers of running threads at ticks of their CPU clocks: the innermost loop around each sample is decoded and
//! walked, which gives every memory operand of it an exact address (`firsttouch_decode`).
//!
//! The agent takes the samples (native/agent/sample.c), or the kernel where the agent does not (`outside.rs`). `code.rs` finds and keeps the decoded code, `memory.rs` reads the memory that the
//! code needs, and this file turns each sample into rows.

mod code;
mod memory;
mod outside;
mod roads;
mod thinning;

use crate::agent::records::{AgentEvent, AgentRecord, Tick};
use crate::agent::ring::SampleInterval;
use crate::options::LiveEffort;
use crate::perf::records::Sample as PerfSample;
use crate::perf::refusal::explain;
use crate::perf::ticks::{ThreadTick, TickMode};
use crate::random::Random;
use crate::source::{Account, Drain, NEVER, Occasion, Source, Target, Unavailable};
use crate::timeline::{Record, Timeline};
use crate::track::Tracker;
use crate::track::live_objects::LiveObjects;
use crate::track::processes::LiveProcess;
use code::Codes;
use firsttouch_decode::{Access, Operand, Registers, Walk, Walker, X86};
use firsttouch_model::rows::metadata::Entry;
use firsttouch_model::rows::{
    AccessKind, FaultCount, Id, NO_OBJECT, OperandCount, Progress, PythonLine, SampleState, SampledAccess, SampledLoop, TimerSample,
};
use firsttouch_system::calls::clock::{monotonic_ns, thread_cpu_ns, tick_ns};
use firsttouch_system::calls::cpu_timers_spare_system_calls;
use hashbrown::{HashMap, HashSet};
use memory::SampledMemory;
use outside::Outside;
use roads::Roads;
use thinning::Thinning;

/// CPU time of a thread between two of its samples, at least, ns.
const LEAST_NS: u64 = 3_500_000;
/// Samples that firsttouch takes a second at most, from all CPUs together.
const MOST_A_SECOND: u64 = 4_000;
/// A thread that still runs the same line of Python code says so again after this time, ns.
const SAME_LINE_NS: u64 = 25_000_000;
/// Instructions whose samples are counted, at most.
const MOST_OPERANDS: usize = 500_000;
/// Lines of ticks that are no samples, at most: 40 MB of a profile. A view that goes on deletes old ones.
const MOST_LINES: u64 = 1_000_000;
const NO_AGENT: &str = "the agent is not in the program";
const OLD_KERNEL: &str = "this kernel is older than Linux 5.9, where timers could interrupt the program's system calls";
const OTHER_PROCESSOR: &str = "firsttouch decodes the code of x86-64 only: continuing without samples of registers";

/// How often threads are sampled on a machine with this many CPUs, with at least this much CPU time between two samples, or why they are not.
///
/// The kernel looks at CPU-time timers in the ticks of the scheduler. An interval is a whole number of ticks, less a quarter of one: the
/// timer of a thread that runs without a pause then fires in each of these ticks.
pub fn interval(cpus: usize, least_ns: u64) -> Result<SampleInterval, Unavailable> {
    if !cfg!(target_arch = "x86_64") {
        return Err(OTHER_PROCESSOR.into());
    }
    if !cpu_timers_spare_system_calls() {
        return Err(OLD_KERNEL.into());
    }
    let (tick_ns, ticks) = ticks_between(cpus, least_ns);
    let us = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
    Ok(SampleInterval { each_us: us(ticks * tick_ns - tick_ns / 4), first_us: us((ticks - 1) * tick_ns) })
}

/// The time between two ticks of the scheduler, ns, and how many of them a timer's interval has.
fn ticks_between(cpus: usize, least_ns: u64) -> (u64, u64) {
    let tick_ns = tick_ns().clamp(100_000, 100_000_000);
    let wanted_ns = LEAST_NS.max(least_ns).max(cpus as u64 * 1_000_000_000 / MOST_A_SECOND);
    (tick_ns, wanted_ns.div_ceil(tick_ns))
}

/// The weight of a sample that shows how fast a loop is, and stands for no time.
const FOR_RATES: f64 = 0.0;
/// Rows for ticks that hit the kernel unreported, at most, before one that was reported.
const MOST_UNREPORTED: u32 = 8;

/// The source. `Sample` alone is a record of a performance event.
pub struct TimerSamples {
    cpus: usize,
    tick_ns: Option<f64>,
    outside: Outside,
    /// Why no thread can be sampled from outside, if so.
    refused: Option<String>,
    codes: Codes,
    thinning: Thinning,
    samples: Id,
    samples_outside: u64,
    /// Page-fault counts of threads, as last written.
    faults: HashMap<Id, u32>,
    /// The number of the line of Python code of each thread, as last written, and when.
    lines: HashMap<Id, (usize, u64)>,
    lines_left: u64,
    /// How often samples showed the address of each instruction of a process: with it, and without it.
    operands: HashMap<(Id, u64), [u64; 2]>,
    /// Those that have changed since they were last written.
    changed: HashSet<(Id, u64)>,
    /// firsttouch's CPU time after the samples before, and the time that passed with those since, ns.
    used_ns: u64,
    spent_ns: u64,
}

impl TimerSamples {
    /// `cpus`: those of the machine. `tick_ns`: what a tick from outside takes from a thread, if there can be any.
    #[must_use]
    pub fn new(cpus: usize, tick_ns: Option<f64>) -> Self {
        let (scheduler_ns, ticks) = ticks_between(cpus, 0);
        Self {
            cpus,
            tick_ns,
            outside: Outside::new(cpus, MOST_A_SECOND, Random::new(monotonic_ns())).replacing_each(ticks * scheduler_ns),
            refused: None,
            codes: Codes::default(),
            thinning: Thinning::default(),
            samples: 0,
            samples_outside: 0,
            faults: HashMap::new(),
            lines: HashMap::new(),
            lines_left: MOST_LINES,
            operands: HashMap::new(),
            changed: HashSet::new(),
            used_ns: 0,
            spent_ns: 0,
        }
    }

    /// Takes at least this much CPU time of a thread between two samples from outside, and never leaves samples out for their number.
    #[must_use]
    pub fn unthinned(mut self, period_ns: u64, effort: LiveEffort) -> Self {
        self.outside.lengthen(period_ns);
        self.thinning.unlimited(effort);
        self.lines_left = u64::MAX;
        self
    }

    fn next_sample(&mut self) -> Id {
        self.samples += 1;
        self.samples
    }

    /// A sample of the kernel's clock, and the ticks before it that hit the kernel.
    fn outside_tick(&mut self, sample: &ThreadTick, tracker: &mut Tracker) {
        let ThreadTick { pid, tid, time, mode, tick, unreported, .. } = sample;
        let before = self.samples;
        let Some(weight) = self.thinning.weight(*time) else { return };
        let thread = tracker.thread(*pid, *tid, None, *time);
        let rows = (*unreported).min(MOST_UNREPORTED);
        for row in (1..=rows).rev() {
            let row = TimerSample {
                id: self.next_sample(),
                thread,
                time_ns: *time,
                cpu: tick.cpu,
                cpu_ns: tick.cpu_ns.saturating_sub(u64::from(row) * self.outside.period_ns(sample.replaces_timer)),
                weight: weight * f64::from(*unreported) / f64::from(rows),
                site: None,
                state: SampleState::InKernel,
                around: None,
                unknown: 0,
                elsewhere: 0.0,
            };
            tracker.sink.write(|w| w.sample(row));
        }
        self.tick((*pid, thread), *time, weight, *mode, tick, tracker);
        self.samples_outside += (self.samples - before).unsigned_abs();
    }

    /// A sample of a burst.
    fn burst_tick(&mut self, sample: &ThreadTick, tracker: &mut Tracker) {
        if sample.mode == TickMode::User && self.thinning.weight(sample.time).is_some() {
            let thread = tracker.thread(sample.pid, sample.tid, None, sample.time);
            self.tick((sample.pid, thread), sample.time, FOR_RATES, sample.mode, &sample.tick, tracker);
        }
    }

    /// Writes the number of page faults of a thread, if it has changed.
    fn faults(&mut self, pid: i32, thread: Id, time: u64, tick: &Tick, tracker: &mut Tracker) {
        let Some(process) = tracker.processes.live.get(&pid).map(|process| process.id) else { return };
        if let Some(faults) = tick.faults.filter(|_| tracker.objects.follows_pages)
            && self.faults.insert(thread, faults) != Some(faults)
        {
            let row = FaultCount { process, thread: Some(thread), time_ns: time, faults: u64::from(faults) };
            tracker.sink.write(|w| w.fault_count(&row));
        }
    }

    /// Writes the line of Python code that a thread runs, and the native instruction where it is, if the line has changed or was written a while ago.
    fn python_line(&mut self, (pid, thread): (i32, Id), time: u64, tick: &Tick, tracker: &mut Tracker) {
        let Some(process) = tracker.processes.live.get(&pid).filter(|_| tick.python != 0) else { return };
        let Some(line) = tracker.sites.sampled_line(process.id, tick.python) else { return };
        let last = self.lines.get(&thread);
        if self.lines_left > 0 && last.is_none_or(|&(known, at)| known != line || time.saturating_sub(at) >= SAME_LINE_NS) {
            self.lines.insert(thread, (line, time));
            self.lines_left -= 1;
            let site = tracker.sites.of_python_line(process, tick.instruction_pointer, line, &mut tracker.sink);
            let row = PythonLine { thread, time_ns: time, site };
            tracker.sink.write(|w| w.python_line(&row));
        }
    }

    fn tick(&mut self, (pid, thread): (i32, Id), time: u64, weight: f64, mode: TickMode, tick: &Tick, tracker: &mut Tracker) {
        let id = self.next_sample();
        self.faults(pid, thread, time, tick, tracker);
        let Some(process) = tracker.processes.live.get_mut(&pid) else { return };
        let registers = Registers { instruction_pointer: tick.instruction_pointer, general: tick.registers };
        let (state, walk) = {
            let memory = SampledMemory::new(process, tick);
            match mode {
                TickMode::Kernel => (SampleState::InKernel, Walk::default()),
                TickMode::Unreadable => (SampleState::Undecoded, Walk::default()),
                TickMode::User => walked(&mut self.codes, process, &memory, &registers),
            }
        };
        let mut stack = stack(process, tick);
        let site = Some(tracker.sites.of_sample(process, &stack, tick.python, &mut tracker.sink));
        let mut elsewhere = 0.0;
        if state == SampleState::Computing {
            let is_rated = walk.unknown == 0 && walk.around.is_some_and(|around| around.induction.is_some());
            tracker.activity.computing_samples += u64::from(weight > 0.0);
            tracker.activity.rated_samples += u64::from(weight > 0.0 && is_rated);
            if weight > 0.0 {
                self.changed.extend(count_operands(&mut self.operands, process.id, &walk));
            }
            for operand in &walk.operands {
                // What each round reads at one place is a constant, or in a cache. Of other places, the analysis finds out whether small blocks lie
                // there.
                let is_near = is_near(operand);
                let small = || (!is_near && process.small_blocks.may_hold(operand.address)).then_some(NO_OBJECT);
                let Some(object) = object_at(&mut process.objects, operand.address).or_else(small) else {
                    elsewhere += if is_near { 0.0 } else { words(operand) };
                    continue;
                };
                stack[0] = operand.instruction;
                let site = Some(tracker.sites.of_sample(process, &stack, tick.python, &mut tracker.sink));
                let row = SampledAccess {
                    sample: id,
                    object,
                    address: operand.address,
                    bytes: operand.bytes,
                    words: words(operand),
                    kind: kind(operand.access),
                    site,
                    stride: operand.stride,
                };
                tracker.sink.write(|w| w.sampled_access(row));
            }
        }
        let around = walk.around.map(|around| SampledLoop {
            end: around.end,
            entry: around.entry,
            progress: around.induction.map(|induction| Progress { value: induction.value, step: induction.step }),
            left: around.left,
        });
        let unknown = walk.unknown;
        let row =
            TimerSample { id, thread, time_ns: time, cpu: tick.cpu, cpu_ns: tick.cpu_ns, weight, site, state, around, unknown, elsewhere };
        tracker.sink.write(|w| w.sample(row));
    }
}

impl Source for TimerSamples {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn probe(&mut self) -> Result<(), Unavailable> {
        if cfg!(target_arch = "x86_64") { Ok(()) } else { Err(OTHER_PROCESSOR.into()) }
    }

    fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable> {
        let error = target.tids.first().and_then(|&tid| self.outside.probe(tid).err());
        self.refused = error.map(|error| explain(&tracker.scope.root, &error));
        tracker.activity.has_ticks_only = self.refused.is_some();
        if let Some(ns) = self.tick_ns {
            tracker.sink.write(|w| w.meta(Entry::TickNs(ns)));
        }
        match &self.refused {
            Some(refused) if tracker.activity.sampling.is_none() => {
                let inside = interval(self.cpus, 0).err().map_or_else(|| NO_AGENT.to_owned(), |reason| reason.to_string());
                Err(format!("{inside}, and its registers cannot be sampled from outside: {refused}").into())
            }
            _ => Ok(()),
        }
    }

    fn drain(&mut self, drain: &Drain, tracker: &mut Tracker, timeline: &mut Timeline) {
        if drain.is_first {
            self.outside.drain(&mut tracker.sink, timeline);
        }
    }

    fn take(&mut self, record: &Record, tracker: &mut Tracker) -> bool {
        let (pid, tid) = match record {
            Record::Agent(AgentRecord { pid, tid, event: AgentEvent::Tick(_), .. }) => (*pid, *tid),
            Record::Tick(sample) => (sample.pid, sample.tid),
            _ => return false,
        };
        if !tracker.scope.includes(pid) || !tracker.processes.live.contains_key(&pid) {
            tracker.sink.lose("sample", "samples of a process that had ended, or that lives in another PID namespace", 1);
            return true;
        }
        let began = monotonic_ns();
        match record {
            // The event outlives the timer if the program is replaced by another one.
            Record::Tick(sample) if sample.is_of_burst || !sample.replaces_timer && tracker.has_timer(pid, tid) => {
                self.burst_tick(sample, tracker);
            }
            Record::Tick(sample) => self.outside_tick(sample, tracker),
            Record::Agent(AgentRecord { time, event: AgentEvent::Tick(tick), .. }) => {
                tracker.timer_seen(pid, tid);
                let thread = tracker.thread(pid, tid, None, *time);
                if self.outside.replaces_timer(thread, *time) {
                    // It is not a sample, and yet its number of page faults counts, and so does its line of Python code.
                    self.faults(pid, thread, *time, tick, tracker);
                    self.python_line((pid, thread), *time, tick, tracker);
                } else if let Some(weight) = self.thinning.weight(*time) {
                    self.tick((pid, thread), *time, weight, TickMode::User, tick, tracker);
                }
            }
            _ => {}
        }
        self.spent_ns += monotonic_ns().saturating_sub(began);
        true
    }

    fn act(&mut self, occasion: Occasion, now: u64, tracker: &mut Tracker) -> u64 {
        match occasion {
            Occasion::Drained if self.spent_ns > 0 => {
                // A busy program takes the CPU from firsttouch, so not all of the time that passed was spent.
                let now_ns = thread_cpu_ns();
                let used_ns = now_ns.saturating_sub(std::mem::replace(&mut self.used_ns, now_ns));
                self.thinning.spend(std::mem::take(&mut self.spent_ns).min(used_ns));
            }
            Occasion::Tick if self.refused.is_none() => self.outside.follow(now, tracker),
            Occasion::Flush | Occasion::End => {
                if self.samples_outside > 0 {
                    tracker.sink.write(|w| w.meta(Entry::SamplesOutside(self.samples_outside)));
                }
                for (process, instruction) in self.changed.drain() {
                    let [known, unknown] = self.operands[&(process, instruction)];
                    let row = OperandCount { process, instruction, known, unknown };
                    tracker.sink.write(|w| w.operand_count(&row));
                }
            }
            _ => {}
        }
        NEVER
    }

    fn account(&self, tracker: &Tracker) -> Option<Account> {
        let agent = tracker.activity.sampling.as_ref();
        let without_timer = agent.map_or(0, |sampling| sampling.unsampled_threads);
        let (outside, waiting, refused) = (self.outside.threads(), self.outside.replaced(), self.refused.as_deref());
        let (roads, is_warning) = Roads { has_agent: agent.is_some(), without_timer, outside, waiting, refused }.sentence();
        let sentences = Some(roads).filter(|roads| !roads.is_empty()).into_iter().chain(self.thinning.sentence());
        let detail = sentences.collect::<Vec<_>>().join(". ");
        Some(Account { detail, is_warning, ..Account::available(self.samples.unsigned_abs()) })
    }

    fn stop(&mut self) {
        self.outside.stop();
    }
}

/// What the code around a sample does.
fn walked(codes: &mut Codes, process: &LiveProcess, memory: &SampledMemory<'_>, registers: &Registers) -> (SampleState, Walk) {
    let code = codes.at(process, memory, registers.instruction_pointer);
    match &code.plan {
        _ if code.follows_system_call => (SampleState::InKernel, Walk::default()),
        None => (SampleState::Undecoded, Walk::default()),
        Some(plan) => {
            let walk = X86.walk(plan, registers, memory);
            let is_waiting = walk.around.is_some_and(|around| around.is_waiting);
            (if is_waiting { SampleState::Waiting } else { SampleState::Computing }, walk)
        }
    }
}

/// Code addresses, the sampled instruction first, then its callers as far as the copied stack reaches.
fn stack(process: &mut LiveProcess, tick: &Tick) -> Vec<u64> {
    let (stack_pointer, base_pointer) = (tick.registers[4], tick.registers[5]);
    let from = usize::try_from(stack_pointer.saturating_sub(tick.stack_address)).unwrap_or(usize::MAX);
    process.unwinder.stack(&PerfSample {
        ip: tick.instruction_pointer,
        registers: vec![0, 0, 0, base_pointer, stack_pointer, tick.instruction_pointer],
        stack: tick.stack.get(from..).unwrap_or_default().to_vec(),
        ..PerfSample::default()
    })
}

/// On the stack, or at one place that each round reads: a constant, or in a cache.
fn is_near(operand: &Operand) -> bool {
    operand.is_stack || operand.is_fixed || operand.stride == Some(0)
}

/// Counts each instruction of a sample's code once, by whether its address is known. Returns those whose counts matter: the address was not always known.
fn count_operands(counts: &mut HashMap<(Id, u64), [u64; 2]>, process: Id, walk: &Walk) -> Vec<(Id, u64)> {
    let mut changed = Vec::new();
    let mut count = |instruction: u64, kind: usize| {
        if counts.len() >= MOST_OPERANDS && !counts.contains_key(&(process, instruction)) {
            return;
        }
        let own = counts.entry((process, instruction)).or_default();
        own[kind] += 1;
        changed.extend((own[1] > 0).then_some((process, instruction)));
    };
    let mut known: Vec<u64> = walk.operands.iter().filter(|operand| !is_near(operand)).map(|operand| operand.instruction).collect();
    known.sort_unstable();
    known.dedup();
    known.iter().for_each(|instruction| count(*instruction, 0));
    let mut unknown: Vec<u64> = walk.unknown_at.iter().copied().filter(|instruction| known.binary_search(instruction).is_err()).collect();
    unknown.sort_unstable();
    unknown.dedup();
    unknown.into_iter().for_each(|instruction| count(instruction, 1));
    changed
}

/// The recorded object at an address.
fn object_at(objects: &mut LiveObjects, address: u64) -> Option<Id> {
    let (start, object) = objects.by_address.range_mut(..=address).next_back()?;
    let is_inside = address - start < object.bytes;
    if !is_inside || !object.is_named_in_samples() {
        return None;
    }
    object.has_evidence = true;
    Some(object.id)
}

/// 8-byte words that one execution accesses, the unit in which watchpoints count.
fn words(operand: &Operand) -> f64 {
    if operand.is_repeated { f64::from(operand.bytes) / 8.0 } else { f64::from(operand.bytes.div_ceil(8).max(1)) }
}

fn kind(access: Access) -> AccessKind {
    match access {
        Access::Read => AccessKind::Read,
        Access::Write => AccessKind::Write,
        Access::Update => AccessKind::Update,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Sink;
    use crate::track::scope::Scope;
    use firsttouch_profile::Writer;

    /// Check that a tick of a burst stands for no time, also if the thread has no timer by then: the program was replaced by another one. Its
    /// clock would give the thread the CPU time since the machine's start.
    #[test]
    fn bursts_stand_for_no_time() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a.ftp");
        let pid = i32::try_from(std::process::id()).expect("a process number");
        let mut tracker = Tracker::new(Scope::of_test("/".into(), pid), Sink::new(Writer::create(&path).expect("a profile")));
        tracker.process(pid, 1);
        assert!(!tracker.has_timer(pid, pid));
        let tick = |is_of_burst| ThreadTick {
            pid,
            tid: pid,
            time: 10,
            mode: TickMode::Kernel,
            is_of_burst,
            replaces_timer: false,
            tick: Tick { cpu_ns: 9, ..Tick::default() },
            unreported: 0,
        };
        let mut source = TimerSamples::new(1, None);
        assert!([true, false].iter().all(|&burst| source.take(&Record::Tick(Box::new(tick(burst))), &mut tracker)));
        tracker.finish();
        tracker.sink.finish();
        let samples = firsttouch_profile::open(&path).expect("the profile").samples;
        assert_eq!(samples.iter().map(|sample| sample.weight).collect::<Vec<_>>(), [1.0]);
    }

    /// Check that an interval is a whole number of ticks less a quarter, that the first sample comes within it, and that many CPUs together
    /// do not give more samples than firsttouch takes.
    #[test]
    fn intervals_are_whole_ticks() {
        let tick_us = tick_ns() as f64 / 1e3;
        for cpus in [1, 2, 64, 1024] {
            let interval = interval(cpus, 0).expect("x86-64 and a recent kernel");
            let ticks = f64::from(interval.each_us) / tick_us + 0.25;
            assert!((ticks - ticks.round()).abs() < 0.01 && ticks > 0.9, "{cpus}: {interval:?}");
            assert!(cpus as f64 * 1e6 / (ticks * tick_us) <= MOST_A_SECOND as f64 * 1.01, "{cpus}: {interval:?}");
            assert!(f64::from(interval.first_us) <= (ticks - 1.0) * tick_us + 1.0, "{cpus}: {interval:?}");
        }
    }
}
