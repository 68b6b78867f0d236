//! Samples from outside the program: the kernel's own clock of each thread (a performance event), where the agent has no timer for it.
//!
//! Threads of programs without the agent (attached, static, set-user-ID) are sampled so, and threads that got no timer. Whether a thread has
//! a timer is asked again for each sample ([`Tracker::has_timer`]), so none is sampled twice.
//!
//! Threads with a timer are sampled in *bursts*: some samples shortly behind each other, now and then. The timer's ticks are some milliseconds
//! apart, and a thread that goes through its part of an array more often cannot be rated by them. A burst begins when its thread next uses the CPU,
//! so only threads that run get one: a sleeping thread's would always show the first loop after it wakes.
//!
//! Where threads wait for CPUs, the ticks of the scheduler, in which the kernel looks at timers, hit short phases too seldom: a thread that gets a
//! CPU between two ticks may have done with its phase before the next one. The kernel's own clock of a thread has no such ticks. There, threads with
//! a timer are sampled so too, and the samples of their timers do not count: unless they give up their CPU so often that starting and stopping that clock
//! takes too much of their time.

use crate::perf::ticks::{Drained, ThreadTick, TickEvent};
use crate::random::Random;
use crate::sink::Sink;
use crate::timeline::Timeline;
use crate::track::Tracker;
use firsttouch_model::rows::Id;
use firsttouch_system::proc::schedstat;
use firsttouch_system::proc::stat::{self, KeptStat};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::Path;

/// CPU time of a thread between two of its samples, at least, ns. An interrupt of the kernel's timer costs up to 31 us in a virtual machine:
/// 0.5 % of the thread's time.
const LEAST_NS: u64 = 6_300_000;
/// Samples of threads that have a timer: so many in a burst, with so much CPU time between two, drawn for each burst. Loops that begin anew after
/// 0.3 ms need short ones; long ones lose less of their time to the interrupt.
const BURST: u32 = 4;
const BURST_PERIODS_NS: [u64; 4] = [70_000, 110_000, 200_000, 300_000];
/// An event keeps its period for so many bursts, after so many with another one each: changing it interrupts the CPU of the thread.
const BURSTS_A_PERIOD: u32 = 4;
const BURSTS_OF_ONE_PERIOD_EACH: u32 = 16;
/// Time between bursts for each CPU that the program uses: they take 0.12 % of its time.
const BURSTS_NS: u64 = 100_000_000;
/// A longer time between two samples lies between bursts, or the thread waited.
const BURST_GAP_NS: u64 = 5_000_000;
const MOST_IN_BURSTS: usize = 128;
/// Threads that are asked in one turn whether they run and their last burst has ended.
const MOST_ASKED: usize = 16;
/// A period is drawn within this part of the mean, so that no program keeps in step with it, and drawn again after some samples.
const JITTER: f64 = 0.03;
const SAMPLES_A_PERIOD: u32 = 40;
/// The first sample of a thread comes no earlier: the kernel's own shortest period is 10 us.
const LEAST_FIRST_NS: u64 = 20_000;
/// More ticks than any thread has.
const ENDLESS: u32 = 1 << 30;
/// A program that shall have the agent may take so long to load it, ns.
const LOADING_NS: u64 = 100_000_000;
/// Threads sampled at once; each needs a descriptor and a ring.
const MOST_THREADS: usize = 1024;

/// Samples of threads that have no timer.
pub struct Outside {
    /// Mean CPU time between two samples of a thread, ns.
    period_ns: u64,
    /// The same in place of a timer: as long as between two samples of the timer, so that all samples of a thread count alike.
    of_timers_ns: u64,
    random: Random,
    cpus: usize,
    /// Threads with a timer, by number and tid, and when the next burst is due.
    in_bursts: BTreeMap<(Id, i32), BurstEvent>,
    last_burst: (Id, i32),
    next_burst_ns: u64,
    threads: HashMap<i32, SampledThread>,
    /// Threads whose event the kernel refused, by tid, and whether they have a timer.
    refused: HashMap<i32, (Id, bool)>,
    /// Threads whose timers do not count, from when on, and until when.
    replaced: HashMap<Id, (u64, u64)>,
    /// Threads whose timers go on to count: the kernel refused an event in place of them, or they give up their CPU too often for one.
    kept: HashSet<Id>,
    seen: HashSet<Id>,
}

struct SampledThread {
    id: Id,
    event: TickEvent,
    /// Samples with the current period.
    samples: u32,
    /// The first sample is still to come.
    is_new: bool,
    /// CPU time of the thread when the event was opened in place of a timer, ns.
    in_place_from_ns: Option<u64>,
    /// It takes no more samples.
    has_stopped: bool,
}

impl SampledThread {
    fn new(id: Id, event: TickEvent, in_place_from_ns: Option<u64>) -> Self {
        Self { id, event, samples: 0, is_new: true, in_place_from_ns, has_stopped: false }
    }
}

impl Outside {
    /// `a_second`: the most samples from all CPUs together.
    #[must_use]
    pub fn new(cpus: usize, a_second: u64, random: Random) -> Self {
        let period_ns = LEAST_NS.max(cpus as u64 * 1_000_000_000 / a_second.max(1));
        Self {
            period_ns,
            of_timers_ns: period_ns,
            random,
            cpus,
            in_bursts: BTreeMap::new(),
            last_burst: (0, 0),
            next_burst_ns: 0,
            threads: HashMap::new(),
            refused: HashMap::new(),
            replaced: HashMap::new(),
            kept: HashSet::new(),
            seen: HashSet::new(),
        }
    }

    /// Makes the mean CPU time between two samples of a thread at least this long, ns.
    pub fn lengthen(&mut self, period_ns: u64) {
        self.period_ns = self.period_ns.max(period_ns);
        self.of_timers_ns = self.of_timers_ns.max(period_ns);
    }

    /// Samples threads in place of their timers after this much CPU time each, ns.
    #[must_use]
    pub fn replacing_each(self, each_ns: u64) -> Self {
        Self { of_timers_ns: each_ns, ..self }
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
    pub fn period_ns(&self, replaces_timer: bool) -> u64 {
        if replaces_timer { self.of_timers_ns } else { self.period_ns }
    }

    /// Threads that were sampled.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Threads with a timer that were sampled from outside.
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.replaced.len() as u64
    }

    /// Whether samples of the thread's timer do not count at this time.
    #[must_use]
    pub fn replaces_timer(&self, thread: Id, time: u64) -> bool {
        self.replaced.get(&thread).is_some_and(|(since, until)| (*since..*until).contains(&time))
    }

    /// Opens events on threads, and closes those of threads that ended, or that got or lost their timer.
    pub fn follow(&mut self, now: u64, tracker: &mut Tracker) {
        let is_agent_expected = tracker.activity.sampling.is_some();
        // Whether the thread has a timer; `None` if it is not to be sampled now.
        let timed = |id: Id, tid: i32| {
            let thread = tracker.threads.live.get(&tid).filter(|thread| thread.id == id)?;
            let process = tracker.processes.live.get(&thread.pid)?;
            let may_load = is_agent_expected && !process.has_agent && now.saturating_sub(process.executed_ns) < LOADING_NS;
            (!may_load).then(|| tracker.has_timer(thread.pid, tid))
        };
        self.threads.retain(|&tid, thread| timed(thread.id, tid) == Some(thread.in_place_from_ns.is_some()));
        self.in_bursts.retain(|&(id, tid), _| timed(id, tid) == Some(true));
        self.refused.retain(|&tid, &mut (id, has_timer)| timed(id, tid) == Some(has_timer));
        let is_known = |id: Id, tid: i32| {
            let is_sampled = self.threads.get(&tid).is_some_and(|thread| thread.in_place_from_ns.is_none());
            is_sampled || self.refused.contains_key(&tid) || self.in_bursts.contains_key(&(id, tid))
        };
        let mut new: Vec<(bool, Id, i32)> = tracker
            .threads
            .live
            .values()
            .filter(|thread| !is_known(thread.id, thread.tid))
            .filter_map(|thread| Some((timed(thread.id, thread.tid)?, thread.id, thread.tid)))
            .collect();
        new.sort_unstable();
        for (has_timer, id, tid) in new {
            let opened = if has_timer {
                let pid = tracker.threads.live.get(&tid).map_or(0, |thread| thread.pid);
                self.open_burst(&tracker.scope.root, pid, tid).map(|event| drop(self.in_bursts.insert((id, tid), event)))
            } else {
                self.seen.insert(id);
                self.open(tid, None).map(|event| drop(self.threads.insert(tid, SampledThread::new(id, event, None))))
            };
            match opened {
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => drop(self.seen.remove(&id)),
                Err(error) => {
                    self.refused.insert(tid, (id, has_timer));
                    // The timer goes on: only the rates of short loops are less certain.
                    if !has_timer {
                        self.seen.remove(&id);
                        tracker.sink.lose("sample", reason(&error), 1);
                    }
                }
                Ok(()) => {}
            }
        }
        if tracker.waits_for_cpus() {
            self.replace(now, tracker);
        }
        self.burst(now, &tracker.scope.root);
    }

    /// Opens events on threads in place of their timers.
    fn replace(&mut self, now: u64, tracker: &Tracker) {
        // What is in its ring was read since the last look.
        self.threads.retain(|_, thread| !thread.has_stopped);
        for (&tid, thread) in &mut self.threads {
            if thread.in_place_from_ns.is_some() && tracker.has_short_turns(tid) {
                thread.event.stop();
                thread.has_stopped = true;
                self.kept.insert(thread.id);
                self.replaced.entry(thread.id).and_modify(|(_, until)| *until = now);
            }
        }
        let is_open = |id: Id, tid: i32| self.threads.contains_key(&tid) || self.kept.contains(&id) || tracker.has_short_turns(tid);
        let live = tracker.threads.live.values();
        let mut new: Vec<(Id, i32, i32)> = live
            .filter(|thread| !is_open(thread.id, thread.tid) && tracker.has_timer(thread.pid, thread.tid))
            .map(|thread| (thread.id, thread.pid, thread.tid))
            .collect();
        new.sort_unstable();
        for (id, pid, tid) in new {
            let ran_ns = schedstat::of_thread(&tracker.scope.root, pid, tid).map_or(0, |stat| stat.ran_ns);
            if let Ok(event) = self.open(tid, Some(ran_ns)) {
                self.threads.insert(tid, SampledThread::new(id, event, Some(ran_ns)));
                self.replaced.insert(id, (now, u64::MAX));
            } else {
                self.kept.insert(id);
            }
        }
    }

    /// Lets the threads that run have a burst, in turn.
    fn burst(&mut self, now: u64, root: &Path) {
        let at_once = self.in_bursts.len().min(self.cpus) as u64;
        if at_once == 0 || now < self.next_burst_ns {
            return;
        }
        let each_ns = BURSTS_NS / at_once;
        let (mut due, next_burst_ns) = due(self.next_burst_ns, now, each_ns, at_once);
        for _ in 0..self.in_bursts.len().min(MOST_ASKED) {
            let first = self.in_bursts.first_key_value().map(|(&thread, _)| thread);
            let next = self.in_bursts.range((Excluded(self.last_burst), Unbounded)).next().map(|(&thread, _)| thread).or(first);
            let Some((next, event)) = next.and_then(|thread| Some((thread, self.in_bursts.get_mut(&thread)?))) else { break };
            self.last_burst = next;
            if !event.runs(root) {
                continue;
            }
            due -= u64::from(event.begin(&mut self.random));
            if due == 0 {
                break;
            }
        }
        self.next_burst_ns = next_burst_ns;
    }

    fn open(&mut self, tid: i32, in_place_from_ns: Option<u64>) -> io::Result<TickEvent> {
        if self.threads.len() >= MOST_THREADS {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let period_ns = self.period_ns(in_place_from_ns.is_some());
        TickEvent::open_for_one(tid, first(period_ns, self.random.unit()), in_place_from_ns.is_some())
    }

    fn open_burst(&self, root: &Path, pid: i32, tid: i32) -> io::Result<BurstEvent> {
        if self.in_bursts.len() >= MOST_IN_BURSTS {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let event = TickEvent::open_disabled(tid, BURST_PERIODS_NS[0])?;
        Ok(BurstEvent {
            event,
            thread: (pid, tid),
            stat: KeptStat::open(root, pid, tid),
            begun: 0,
            last_time: 0,
            until_ns: None,
            offset: 0,
        })
    }

    /// Moves the samples in all rings to the timeline.
    pub fn drain(&mut self, sink: &mut Sink, timeline: &mut Timeline) {
        for event in self.in_bursts.values_mut() {
            let drained = event.drain(|tick| timeline.push_tick(Box::new(tick)));
            sink.lose("sample", "the kernel's ring was full", drained.lost);
            sink.lose("sample", "samples that could not be read", drained.malformed);
        }
        for thread in self.threads.values_mut() {
            let (samples, in_place_from_ns) = (&mut thread.samples, thread.in_place_from_ns);
            let drained = thread.event.drain(|mut tick: ThreadTick| {
                *samples += 1;
                if let Some(from_ns) = in_place_from_ns {
                    tick.replaces_timer = true;
                    tick.tick.cpu_ns = tick.tick.cpu_ns.saturating_add(from_ns);
                }
                timeline.push_tick(Box::new(tick));
            });
            sink.lose("sample", "the kernel's ring was full", drained.lost);
            sink.lose("sample", "samples that could not be read", drained.malformed);
            if thread.has_stopped {
                continue;
            }
            let is_first = thread.is_new && thread.samples > 0;
            if is_first {
                thread.is_new = false;
                thread.event.allow(ENDLESS);
            }
            // Only after some samples: a new period begins anew, and a thread that runs rarely would never reach its end.
            if is_first || thread.samples >= SAMPLES_A_PERIOD {
                thread.samples = 0;
                let period_ns = if in_place_from_ns.is_some() { self.of_timers_ns } else { self.period_ns };
                thread.event.set_period(drawn(period_ns, &mut self.random));
            }
        }
    }

    pub fn stop(&mut self) {
        self.threads
            .values()
            .map(|thread| &thread.event)
            .chain(self.in_bursts.values().map(|burst| &burst.event))
            .for_each(TickEvent::stop);
    }
}

/// The event of a thread that is sampled in bursts.
struct BurstEvent {
    event: TickEvent,
    /// The process and the thread, and its stat file; `None` if that could not stay open.
    thread: (i32, i32),
    stat: Option<KeptStat>,
    /// Bursts so far.
    begun: u32,
    /// Time of the last sample.
    last_time: u64,
    /// The event's clock at the end of the last burst, ns.
    until_ns: Option<u64>,
    /// From the event's clock, which stands still between bursts, to the clock of the samples.
    offset: u64,
}

impl BurstEvent {
    /// Begins a burst, if the thread has used the CPU time of its last one: ticks that are allowed add up while a thread sleeps. Returns whether
    /// it did.
    fn begin(&mut self, random: &mut Random) -> bool {
        let used_ns = self.event.counted_ns();
        let has_ended = self.until_ns.is_none_or(|until| used_ns >= until);
        if has_ended {
            if self.begun < BURSTS_OF_ONE_PERIOD_EACH || self.begun.is_multiple_of(BURSTS_A_PERIOD) {
                self.event.set_period(BURST_PERIODS_NS[(random.unit() * BURST_PERIODS_NS.len() as f64) as usize % BURST_PERIODS_NS.len()]);
            }
            self.begun = self.begun.saturating_add(1);
            self.event.allow(BURST);
            // The first tick may come early, so a burst takes less than its periods.
            self.until_ns = Some(used_ns + u64::from(BURST - 2) * self.event.period_ns());
        }
        has_ended
    }

    /// Whether the thread has a CPU, or waits for one.
    fn runs(&self, root: &Path) -> bool {
        let (pid, tid) = self.thread;
        let state = self.stat.as_ref().map_or_else(|| stat::of_thread(root, pid, tid).map(|stat| stat.state), KeptStat::state);
        state.is_none_or(|state| state == 'R')
    }

    /// Hands every sample in the ring to `consume`. Their CPU time is that of the event within a burst, and the time that passes between
    /// bursts.
    fn drain(&mut self, mut consume: impl FnMut(ThreadTick)) -> Drained {
        let Self { event, last_time, offset, .. } = self;
        event.drain(|mut sample| {
            if sample.time.saturating_sub(*last_time) > BURST_GAP_NS {
                *offset = sample.time.saturating_sub(sample.tick.cpu_ns);
            }
            *last_time = sample.time;
            sample.is_of_burst = true;
            sample.tick.cpu_ns = sample.tick.cpu_ns.saturating_add(*offset);
            consume(sample);
        })
    }
}

/// Bursts that are due, one each `each_ns` and at most so many at once, and when the next one is. Those that are late do not put off others.
fn due(first: u64, now: u64, each_ns: u64, most: u64) -> (u64, u64) {
    let due = now.saturating_sub(first) / each_ns + 1;
    if due > most { (most, now + each_ns) } else { (due, first + due * each_ns) }
}

/// The CPU time before a thread's first sample: drawn evenly from a period. So threads that end within one get samples by the CPU time that they
/// use, as all others do; with a whole period, none of them would ever get one.
fn first(period_ns: u64, unit: f64) -> u64 {
    ((period_ns as f64 * unit) as u64).max(LEAST_FIRST_NS)
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

    /// Check that threads that use a quarter of a period get a quarter of a sample.
    #[test]
    fn short_threads_have_their_share() {
        let mut random = Random::new(1);
        let early = (0..10_000).filter(|_| first(LEAST_NS, random.unit()) < LEAST_NS / 4).count();
        assert!((2_300..2_700).contains(&early), "{early}");
    }

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

    /// Check that as many bursts are begun at rare ticks as at frequent ones, and that those of a long pause are not made up for.
    #[test]
    fn late_bursts_come_together() {
        for tick in [10, 35, 40, 100] {
            let (mut next, mut begun) = (0, 0);
            for now in (0..10_000).step_by(tick) {
                if now >= next {
                    let (due, after) = due(next, now, 50, 2);
                    (next, begun) = (after, begun + due);
                }
            }
            assert!((190..=201).contains(&begun), "{begun} with a tick of {tick}");
        }
        assert_eq!(due(0, 10_000, 50, 2), (2, 10_050));
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
