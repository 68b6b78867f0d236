//! Samples from outside the program: the kernel's own clock of each thread (a performance event), where the agent has no timer for it.
//!
//! Threads of programs without the agent (attached, static, set-user-ID) are sampled so, and threads that got no timer. Whether a thread has
//! a timer is asked again for each sample ([`Tracker::has_timer`]), so none is sampled twice.

use crate::perf::ticks::{ThreadTick, TickEvent};
use crate::random::Random;
use crate::sink::Sink;
use crate::timeline::Timeline;
use crate::track::Tracker;
use firsttouch_model::rows::Id;
use std::collections::{HashMap, HashSet};
use std::io;

/// CPU time of a thread between two of its samples, at least, ns. An interrupt of the kernel's timer costs up to 31 us in a virtual machine:
/// 0.5 % of the thread's time.
const LEAST_NS: u64 = 6_300_000;
/// A period is drawn within this part of the mean, so that no program keeps in step with it, and drawn again after some samples.
const JITTER: f64 = 0.03;
const SAMPLES_A_PERIOD: u32 = 40;
/// A program that shall have the agent may take so long to load it, ns.
const LOADING_NS: u64 = 100_000_000;
/// Threads sampled at once; each needs a descriptor and a ring.
const MOST_THREADS: usize = 1024;

/// Samples of threads that have no timer.
pub struct Outside {
    /// Mean CPU time between two samples of a thread, ns.
    period_ns: u64,
    random: Random,
    threads: HashMap<i32, SampledThread>,
    /// Threads whose event the kernel refused, by tid.
    refused: HashMap<i32, Id>,
    seen: HashSet<Id>,
}

struct SampledThread {
    id: Id,
    event: TickEvent,
    /// Samples with the current period.
    samples: u32,
}

impl Outside {
    /// `a_second`: the most samples from all CPUs together.
    #[must_use]
    pub fn new(cpus: usize, a_second: u64, random: Random) -> Self {
        let period_ns = LEAST_NS.max(cpus as u64 * 1_000_000_000 / a_second.max(1));
        Self { period_ns, random, threads: HashMap::new(), refused: HashMap::new(), seen: HashSet::new() }
    }

    /// Finds out whether a thread can be sampled.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn probe(&self, tid: i32) -> io::Result<()> {
        TickEvent::open(tid, self.period_ns).map(drop)
    }

    /// Mean CPU time between two samples of a thread, ns.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Threads that were sampled.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Opens events on threads that have no timer, and closes those of threads that ended or got one.
    pub fn follow(&mut self, now: u64, tracker: &mut Tracker) {
        let is_agent_expected = tracker.activity.sampling.is_some();
        let is_wanted = |id: Id, tid: i32| {
            let Some(thread) = tracker.threads.live.get(&tid).filter(|thread| thread.id == id) else { return false };
            let Some(process) = tracker.processes.live.get(&thread.pid) else { return false };
            let may_load = is_agent_expected && !process.has_agent && now.saturating_sub(process.executed_ns) < LOADING_NS;
            !may_load && !tracker.has_timer(thread.pid, tid)
        };
        self.threads.retain(|&tid, thread| is_wanted(thread.id, tid));
        self.refused.retain(|&tid, &mut id| is_wanted(id, tid));
        let known = |tid: i32| self.threads.contains_key(&tid) || self.refused.contains_key(&tid);
        let mut new: Vec<(Id, i32)> = tracker
            .threads
            .live
            .values()
            .filter(|thread| !known(thread.tid) && is_wanted(thread.id, thread.tid))
            .map(|thread| (thread.id, thread.tid))
            .collect();
        new.sort_unstable();
        for (id, tid) in new {
            match self.open(tid) {
                Ok(event) => {
                    self.seen.insert(id);
                    self.threads.insert(tid, SampledThread { id, event, samples: 0 });
                }
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    self.refused.insert(tid, id);
                    tracker.sink.lose("sample", reason(&error), 1);
                }
            }
        }
    }

    fn open(&mut self, tid: i32) -> io::Result<TickEvent> {
        if self.threads.len() >= MOST_THREADS {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        TickEvent::open(tid, drawn(self.period_ns, &mut self.random))
    }

    /// Moves the samples in all rings to the timeline.
    pub fn drain(&mut self, sink: &mut Sink, timeline: &mut Timeline) {
        for thread in self.threads.values_mut() {
            let samples = &mut thread.samples;
            let drained = thread.event.drain(|tick: ThreadTick| {
                *samples += 1;
                timeline.push_tick(Box::new(tick));
            });
            sink.lose("sample", "the kernel's ring was full", drained.lost);
            sink.lose("sample", "samples that could not be read", drained.malformed);
            // Only after some samples: a new period begins anew, and a thread that runs rarely would never reach its end.
            if thread.samples >= SAMPLES_A_PERIOD {
                thread.samples = 0;
                thread.event.set_period(drawn(self.period_ns, &mut self.random));
            }
        }
    }

    pub fn stop(&mut self) {
        self.threads.values().for_each(|thread| thread.event.stop());
    }
}

fn drawn(period_ns: u64, random: &mut Random) -> u64 {
    (period_ns as f64 * (1.0 + JITTER * (2.0 * random.unit() - 1.0))) as u64
}

fn reason(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "threads that were not sampled from outside: too many open files, or more than 1,024 threads",
        Some(libc::ENOMEM) => "threads that were not sampled from outside: no locked memory is left for the kernel's ring (ulimit -l)",
        _ => "threads that the kernel did not let firsttouch sample from outside",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that periods vary around the mean, and that many CPUs together do not give more samples than firsttouch takes.
    #[test]
    fn periods_vary() {
        let mut random = Random::new(1);
        let periods: Vec<u64> = (0..10_000).map(|_| drawn(LEAST_NS, &mut random)).collect();
        let mean = periods.iter().sum::<u64>() as f64 / periods.len() as f64;
        assert!((mean / LEAST_NS as f64 - 1.0).abs() < 0.001, "{mean}");
        assert!(periods.iter().all(|period| (6_111_000..=6_489_000).contains(period)));
        let mut different = periods;
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 9_000, "{}", different.len());
        for (cpus, period_ns) in [(1, LEAST_NS), (16, LEAST_NS), (64, 16_000_000), (1024, 256_000_000)] {
            assert_eq!(Outside::new(cpus, 4_000, Random::new(1)).period_ns, period_ns);
        }
    }

    /// Check on this process, where performance events are allowed, that a computing thread is sampled about once a period, with its own
    /// number and growing CPU time, and that a thread that does not exist is refused.
    #[test]
    fn threads_are_sampled() {
        let outside = Outside::new(1, 4_000, Random::new(1));
        let own = std::fs::read_link("/proc/thread-self").expect("a thread");
        let tid = own.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).expect("its number");
        let Ok(mut event) = TickEvent::open(tid, outside.period_ns) else { return };
        assert_eq!(outside.probe(i32::MAX).map_err(|error| error.raw_os_error()), Err(Some(libc::ESRCH)));
        let mut ticks: Vec<ThreadTick> = Vec::new();
        while ticks.last().is_none_or(|tick| tick.tick.cpu_ns < 400_000_000) {
            event.drain(|tick| ticks.push(tick));
        }
        let periods: u64 = ticks.iter().map(|tick| 1 + u64::from(tick.unreported)).sum();
        assert!((50..=70).contains(&periods), "{periods} periods in 400 ms, {} samples", ticks.len());
        assert!(
            ticks.iter().all(|tick| tick.tid == tid && tick.tick.registers[4] == tick.tick.stack_address && !tick.tick.stack.is_empty())
        );
        assert!(ticks.windows(2).all(|pair| pair[0].tick.cpu_ns < pair[1].tick.cpu_ns && pair[0].time < pair[1].time));
    }
}
