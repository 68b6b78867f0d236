//! Accesses, from the registers of running threads at ticks of their CPU clocks: the innermost loop around each sample is decoded and
//! walked, which gives every memory operand of it an exact address (`firsttouch_decode`).
//!
//! The agent takes the samples (native/agent/sample.c). `code.rs` finds and keeps the decoded code, `memory.rs` reads the memory that the
//! code needs, and this file turns each sample into rows.

mod code;
mod memory;
mod thinning;

use crate::agent::records::{AgentEvent, AgentRecord, Tick};
use crate::agent::ring::SampleInterval;
use crate::perf::records::Sample as PerfSample;
use crate::source::{Account, Source, Target, Unavailable};
use crate::timeline::Record;
use crate::track::Tracker;
use crate::track::processes::LiveProcess;
use code::Codes;
use firsttouch_decode::{Access, Operand, Registers, Walk, Walker, X86};
use firsttouch_model::rows::{AccessKind, Id, Progress, SampleState, SampledAccess, SampledLoop, TimerSample};
use firsttouch_system::calls::clock::{monotonic_ns, tick_ns};
use firsttouch_system::calls::cpu_timers_spare_system_calls;
use memory::SampledMemory;
use thinning::Thinning;

/// CPU time of a thread between two of its samples, at least, ns.
const LEAST_NS: u64 = 3_500_000;
/// Samples that firsttouch takes a second at most, from all CPUs together.
const MOST_A_SECOND: u64 = 4_000;
const NO_AGENT: &str = "the agent is not in the program, so no registers were sampled";
const OLD_KERNEL: &str =
    "this kernel is older than Linux 5.9, where timers could interrupt the program's system calls: continuing without samples of registers";
const OTHER_PROCESSOR: &str = "firsttouch decodes the code of x86-64 only: continuing without samples of registers";

/// How often threads are sampled on a machine with this many CPUs, or why they are not.
///
/// The kernel looks at CPU-time timers in the ticks of the scheduler. An interval is a whole number of ticks, less a quarter of one: the
/// timer of a thread that runs without a pause then fires in each of these ticks.
pub fn interval(cpus: usize) -> Result<SampleInterval, Unavailable> {
    if !cfg!(target_arch = "x86_64") {
        return Err(OTHER_PROCESSOR.into());
    }
    if !cpu_timers_spare_system_calls() {
        return Err(OLD_KERNEL.into());
    }
    let tick_ns = tick_ns().clamp(100_000, 100_000_000);
    let wanted_ns = LEAST_NS.max(cpus as u64 * 1_000_000_000 / MOST_A_SECOND);
    let ticks = wanted_ns.div_ceil(tick_ns);
    let us = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
    Ok(SampleInterval { each_us: us(ticks * tick_ns - tick_ns / 4), first_us: us((ticks - 1) * tick_ns) })
}

/// The source. `Sample` alone is a record of a performance event.
pub struct TimerSamples {
    allowed: Result<SampleInterval, Unavailable>,
    codes: Codes,
    thinning: Thinning,
    samples: Id,
}

impl TimerSamples {
    /// `allowed`: what [`interval`] returned.
    #[must_use]
    pub fn new(allowed: Result<SampleInterval, Unavailable>) -> Self {
        Self { allowed, codes: Codes::default(), thinning: Thinning::default(), samples: 0 }
    }

    fn tick(&mut self, pid: i32, tid: i32, time: u64, tick: &Tick, tracker: &mut Tracker) {
        let thread = tracker.thread(pid, tid, None, time);
        let Some(weight) = self.thinning.weight(time) else { return };
        let Some(process) = tracker.processes.live.get_mut(&pid) else { return };
        self.samples += 1;
        let id = self.samples;
        let registers = Registers { instruction_pointer: tick.instruction_pointer, general: tick.registers };
        let (state, walk) = {
            let memory = SampledMemory::new(process, tick);
            let code = self.codes.at(process, &memory, tick.instruction_pointer);
            match &code.plan {
                _ if code.follows_system_call => (SampleState::InKernel, Walk::default()),
                None => (SampleState::Undecoded, Walk::default()),
                Some(plan) => {
                    let walk = X86.walk(plan, &registers, &memory);
                    let is_waiting = walk.around.is_some_and(|around| around.is_waiting);
                    (if is_waiting { SampleState::Waiting } else { SampleState::Computing }, walk)
                }
            }
        };
        let mut stack = stack(process, tick);
        let site = Some(tracker.sites.intern(process, &stack, false, &mut tracker.sink));
        let mut elsewhere = 0.0;
        if state == SampleState::Computing {
            for operand in &walk.operands {
                let Some(object) = object_at(process, operand.address) else {
                    elsewhere += if operand.is_stack { 0.0 } else { words(operand) };
                    continue;
                };
                stack[0] = operand.instruction;
                let site = Some(tracker.sites.intern(process, &stack, false, &mut tracker.sink));
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
                tracker.sink.write(|w| w.sampled_access(&row));
            }
        }
        let around = walk.around.map(|around| SampledLoop {
            end: around.end,
            entry: around.entry,
            progress: around.induction.map(|induction| Progress { value: induction.value, step: induction.step }),
        });
        let unknown = walk.unknown;
        let row =
            TimerSample { id, thread, time_ns: time, cpu: tick.cpu, cpu_ns: tick.cpu_ns, weight, site, state, around, unknown, elsewhere };
        tracker.sink.write(|w| w.sample(&row));
    }
}

impl Source for TimerSamples {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn probe(&mut self) -> Result<(), Unavailable> {
        self.allowed.clone().map(drop)
    }

    fn start(&mut self, _target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable> {
        if tracker.activity.sampling.is_none() {
            return Err(NO_AGENT.into());
        }
        Ok(())
    }

    fn take(&mut self, record: &Record, tracker: &mut Tracker) -> bool {
        let Record::Agent(AgentRecord { pid, tid, time, event: AgentEvent::Tick(tick) }) = record else { return false };
        if tracker.scope.includes(*pid) && tracker.processes.live.contains_key(pid) {
            let began = monotonic_ns();
            self.tick(*pid, *tid, *time, tick, tracker);
            self.thinning.spend(monotonic_ns().saturating_sub(began));
        } else {
            tracker.sink.lose("sample", "samples of a process that had ended, or that lives in another PID namespace", 1);
        }
        true
    }

    fn account(&self, tracker: &Tracker) -> Option<Account> {
        let account = Account::available(self.samples.unsigned_abs());
        let unsampled = tracker.activity.sampling.as_ref().map_or(0, |sampling| sampling.unsampled_threads);
        if unsampled == 0 {
            return Some(account);
        }
        let detail = format!(
            "{unsampled} threads got no timer, so their registers were not sampled: raise the limit on pending signals (ulimit -i)"
        );
        Some(Account { detail, is_warning: true, ..account })
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

/// The recorded object at an address.
fn object_at(process: &mut LiveProcess, address: u64) -> Option<Id> {
    let (start, object) = process.objects.by_address.range_mut(..=address).next_back()?;
    let is_inside = address - start < object.bytes;
    if !is_inside || !object.is_sampled() {
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

    /// Check that an interval is a whole number of ticks less a quarter, that the first sample comes within it, and that many CPUs together
    /// do not give more samples than firsttouch takes.
    #[test]
    fn intervals_are_whole_ticks() {
        let tick_us = tick_ns() as f64 / 1e3;
        for cpus in [1, 2, 64, 1024] {
            let interval = interval(cpus).expect("x86-64 and a recent kernel");
            let ticks = f64::from(interval.each_us) / tick_us + 0.25;
            assert!((ticks - ticks.round()).abs() < 0.01 && ticks > 0.9, "{cpus}: {interval:?}");
            assert!(cpus as f64 * 1e6 / (ticks * tick_us) <= MOST_A_SECOND as f64 * 1.01, "{cpus}: {interval:?}");
            assert!(f64::from(interval.first_us) <= (ticks - 1.0) * tick_us + 1.0, "{cpus}: {interval:?}");
        }
    }
}
