//! First-touch evidence: the page-fault event, with address, thread, CPU and call stack. Its rings also report births, deaths and
//! modules, which the tracker needs.

mod events;
mod faults;
mod focus;
mod period;
mod runs;

use crate::options::Options;
use crate::perf::records::{PerfRecord, TaskEvent};
use crate::random::Random;
use crate::source::{Account, Drain, NEVER, Occasion, Source, Target, Unavailable};
use crate::timeline::{Fault, Record, Timeline};
use crate::track::Tracker;
use crate::track::objects::{Birth, LARGE_BYTES};
use events::TouchEvents;
use faults::Faults;
use firsttouch_model::rows::{FaultPeriod, Id};
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::pages::nodes_of;
use focus::{Focus, Memory};
use period::{Age, Period, focus_event};
use runs::Runs;
use std::ops::Range;

const KERNEL_UNSEEN: &str = "faults in system calls are not seen at this privilege (perf_event_paranoid > 1): memory filled by read() is inferred from pages without a record; set perf_event_paranoid to 1 or run with CAP_PERFMON to see them";

/// Objects of this size may be on huge pages, and few faults fill them, mostly within so long after they were born or first touched, s.
const HUGE_BYTES: u64 = 8 << 20;
const FILLED_S: f64 = 1.0;
/// So many of them are remembered until their first fault.
const MOST_UNFILLED: usize = 64;

/// How often large allocations may wake firsttouch between two ticks.
const WAKES_A_TICK: u32 = 4;
/// When the rings are read after the start of a focus, ns: threads that the program starts right after an allocation have no event yet.
const LOOKS_NS: [u64; 5] = [300_000, 700_000, 1_500_000, 3_000_000, 6_000_000];

/// Ends of threads each millisecond from which on the rings are not polled.
const ENDS_A_MS: u64 = 2;
/// For how long they are counted, ns.
const ENDS_NS: u64 = 5_000_000;

pub struct Touch {
    cpus: Vec<u32>,
    follow: bool,
    events: Option<TouchEvents>,
    period: Period,
    focus: Focus,
    /// The event that the large objects need.
    focus_event: Option<usize>,
    /// When the focus began, and how often the rings were read since.
    focus_ns: u64,
    looks: usize,
    /// The number of faults that a sample stands for, as it was last written.
    written_period: u64,
    elapsed_s: f64,
    base_page_bytes: u64,
    /// Whether there are huge pages, and until when an object that may be on them is new.
    has_huge_pages: bool,
    new_until_s: f64,
    /// Whether such an object was born since the period was chosen.
    is_newborn: bool,
    unfilled: Unfilled,
    runs: Runs,
    faults: Faults,
    ends: Ends,
}

/// Large objects that nobody has touched yet, as far as faults show: a just-in-time compiler may work for seconds between the allocation of an array and
/// the loop that fills it.
#[derive(Default)]
struct Unfilled(Vec<(i32, Range<u64>)>);

impl Unfilled {
    fn born(&mut self, pid: i32, addresses: Range<u64>) {
        if self.0.len() == MOST_UNFILLED {
            self.0.remove(0);
        }
        self.0.push((pid, addresses));
    }

    /// Whether this is the first fault in one of them.
    fn is_first(&mut self, pid: i32, address: u64) -> bool {
        let found = self.0.iter().position(|(of, addresses)| *of == pid && addresses.contains(&address));
        found.map(|at| self.0.swap_remove(at)).is_some()
    }
}

/// How often threads end. The kernel wakes whoever polls a ring at each end of a thread, for each event that the thread inherited, although
/// there is nothing to read. That costs the thread 5 us, and takes a CPU from the program.
#[derive(Default)]
struct Ends {
    count: u64,
    since_ns: u64,
    are_many: bool,
}

impl Ends {
    /// So many more threads ended until now.
    fn add(&mut self, ends: u64, now: u64) {
        self.count += ends;
        let ns = now.saturating_sub(self.since_ns);
        if ns >= ENDS_NS {
            self.are_many = u128::from(self.count) * 1_000_000 > u128::from(ENDS_A_MS) * u128::from(ns);
            (self.count, self.since_ns) = (0, now);
        }
    }
}

impl Touch {
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let now = monotonic_ns();
        let machine = &options.machine;
        let page_bytes = if machine.transparent_huge_pages == "always" { machine.huge_page_bytes } else { machine.page_bytes.max(4096) };
        Self {
            cpus: options.cpus(),
            follow: options.follow,
            events: None,
            period: Period::new(Random::new(now)),
            focus: Focus::new(page_bytes),
            focus_event: None,
            focus_ns: 0,
            looks: LOOKS_NS.len(),
            written_period: 0,
            elapsed_s: 0.0,
            base_page_bytes: machine.page_bytes.max(4096),
            has_huge_pages: !matches!(machine.transparent_huge_pages.as_str(), "never" | ""),
            new_until_s: 0.0,
            is_newborn: false,
            unfilled: Unfilled::default(),
            runs: Runs::new(machine.huge_page_bytes / machine.page_bytes.max(4096)),
            faults: Faults::new(Random::new(!now)),
            ends: Ends::default(),
        }
    }
}

impl Touch {
    /// Chooses the period for the next faults. It adapts at once: handling the records may take longer than the next burst.
    fn adapt(&mut self, is_tick: bool, tracker: &mut Tracker) {
        let Some(events) = &mut self.events else { return };
        let youngest = match () {
            () if std::mem::take(&mut self.is_newborn) => Age::Newborn,
            () if self.elapsed_s < self.new_until_s => Age::New,
            () => Age::Old,
        };
        if let Some(switch) = self.period.adapt(self.elapsed_s, is_tick, self.focus_event, youngest) {
            let tids: Vec<i32> = tracker.threads.live.keys().copied().collect();
            events.switch(switch, &tids);
            if self.period.is_focused() {
                (self.focus_ns, self.looks) = (monotonic_ns(), 0);
            }
        }
        let faults = self.period.stands_for();
        if std::mem::replace(&mut self.written_period, faults) != faults {
            let row = FaultPeriod { time_ns: monotonic_ns(), faults, part: None };
            tracker.sink.write(|w| w.fault_period(row));
        }
        let activity = &mut tracker.activity;
        (activity.in_burst, activity.in_storm) = (self.period.in_burst(), self.period.in_storm());
        if is_tick {
            activity.wakes_left = WAKES_A_TICK;
        }
        activity.wake_bytes = if activity.in_storm && !self.focus.is_exhausted(self.elapsed_s) { LARGE_BYTES } else { 0 };
        tracker.sink.lose("touch", "page-fault events could not be opened again after a storm", std::mem::take(&mut events.unopened));
    }

    /// Looks which large objects wait for their first touches, and which threads were born.
    fn refocus(&mut self, tracker: &mut Tracker) {
        let Some(events) = &mut self.events else { return };
        for birth in tracker.objects.take_births() {
            let alive = if self.has_huge_pages { tracker.alive(birth) } else { None };
            if let Some((bytes, _)) = alive.filter(|(bytes, _)| *bytes >= HUGE_BYTES) {
                self.new_until_s = self.elapsed_s + FILLED_S;
                self.is_newborn = true;
                self.unfilled.born(birth.pid, birth.address..birth.address.saturating_add(bytes));
            }
            self.focus.born(birth, self.elapsed_s, &*tracker);
        }
        if !self.period.in_storm() {
            self.focus_event = None;
            if self.is_newborn {
                self.adapt(false, tracker);
            }
            return;
        }
        let threads = tracker.threads.live.len();
        let period = self.focus.period(self.elapsed_s, threads, &*tracker);
        // Events that are never closed are those of the usual periods.
        self.focus_event = period.map(|period| focus_event(if events.are_reopened(threads) { period } else { 31 }));
        events.add_threads(tracker.threads.live.values().map(|thread| (thread.tid, thread.born_ns)));
        self.adapt(false, tracker);
    }

    /// When the rings are to be read next, because a focus began.
    fn next_look(&mut self) -> u64 {
        if !self.period.is_focused() {
            return NEVER;
        }
        let now = monotonic_ns();
        while LOOKS_NS.get(self.looks).is_some_and(|after| self.focus_ns + after <= now) {
            self.looks += 1;
        }
        LOOKS_NS.get(self.looks).map_or(NEVER, |after| self.focus_ns + after)
    }
}

impl Memory for Tracker {
    fn alive(&self, birth: Birth) -> Option<(u64, Id)> {
        let object = self.processes.live.get(&birth.pid)?.objects.by_address.get(&birth.address)?;
        (object.id == birth.object).then(|| (object.bytes, object.group()))
    }

    fn present(&self, pid: i32, addresses: &[u64]) -> Option<f64> {
        let nodes = nodes_of(pid, addresses).ok()?;
        Some(nodes.iter().filter(|node| **node >= 0).count() as f64 / nodes.len().max(1) as f64)
    }
}

impl Source for Touch {
    fn name(&self) -> &'static str {
        "touch"
    }

    fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable> {
        let events = TouchEvents::open(&tracker.scope.root, target.tids, &self.cpus, target.is_launched, self.follow);
        self.events = Some(events.map_err(|reason| format!("{reason}; continuing without first-touch evidence"))?);
        tracker.activity.is_reported = true;
        Ok(())
    }

    fn drain(&mut self, drain: &Drain, tracker: &mut Tracker, timeline: &mut Timeline) {
        let Some(events) = &mut self.events else { return };
        if drain.is_tick {
            tracker.activity.faults_counted = self.period.is_on();
        }
        let (period, focus, sink) = (&mut self.period, &mut self.focus, &mut tracker.sink);
        let (unfilled, mut ends, mut is_first) = (&mut self.unfilled, 0, false);
        events.drain(|events, record| match record {
            PerfRecord::Sample(sample) => {
                let weight = period.count(events.period_of(sample.event));
                if period.is_focused() {
                    focus.charge(weight);
                }
                is_first |= unfilled.is_first(sample.pid, sample.address);
                timeline.push_fault(Fault { sample, weight });
            }
            PerfRecord::Task(event) => {
                ends += u64::from(matches!(event, TaskEvent::Exit { .. }));
                timeline.push_task(event);
            }
            PerfRecord::Lost { count } => sink.lose("touch", "the kernel's ring was full", count),
            PerfRecord::Throttled => sink.lose("touch", "throttled by the kernel (perf_event_max_sample_rate)", 1),
        });
        self.ends.add(ends, monotonic_ns());
        self.elapsed_s = drain.elapsed_s;
        if is_first {
            (self.new_until_s, self.is_newborn) = (self.elapsed_s + FILLED_S, true);
        }
        self.adapt(drain.is_tick, tracker);
    }

    fn take(&mut self, record: &Record, tracker: &mut Tracker) -> bool {
        let Record::Fault(fault) = record else { return false };
        if tracker.scope.includes(fault.sample.pid) {
            self.focus.sampled(fault.sample.pid, fault.sample.address, fault.weight);
            // A new object that is filled page by page is not on huge pages: its faults need no more than the usual attention.
            let is_followed = fault.weight == 1 && self.elapsed_s < self.new_until_s;
            if is_followed && self.runs.are_base_pages(fault.sample.tid, fault.sample.address / self.base_page_bytes) {
                self.new_until_s = self.elapsed_s;
            }
            self.faults.take(fault, tracker);
        }
        true
    }

    fn act(&mut self, occasion: Occasion, _now: u64, tracker: &mut Tracker) -> u64 {
        if occasion == Occasion::Drained {
            self.faults.place(tracker);
            self.refocus(tracker);
        }
        self.next_look()
    }

    fn account(&self, _tracker: &Tracker) -> Option<Account> {
        let events = self.events.as_ref()?;
        let account = Account::available(self.faults.samples);
        Some(if events.sees_kernel() { account } else { Account { detail: KERNEL_UNSEEN.to_owned(), ..account } })
    }

    fn stop(&mut self) {
        if let Some(events) = &self.events {
            events.stop();
        }
    }

    fn descriptors(&self) -> Vec<i32> {
        self.events.as_ref().filter(|_| self.is_polled()).map_or_else(Vec::new, TouchEvents::descriptors)
    }

    fn is_polled(&self) -> bool {
        !self.ends.are_many
    }

    fn fills(&self) -> bool {
        self.events.as_ref().is_some_and(TouchEvents::fill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the first fault in a large object is found once, in its own process, and that the oldest objects are forgotten.
    #[test]
    fn the_first_fault_of_a_large_object() {
        let mut unfilled = Unfilled::default();
        for object in 0..=MOST_UNFILLED as u64 {
            unfilled.born(1, object * 100..object * 100 + 50);
        }
        let found = [(1, 10), (1, 150), (1, 150), (2, 250), (1, 260), (1, 249)].map(|(pid, address)| unfilled.is_first(pid, address));
        assert_eq!(found, [false, false, false, false, false, true]);
        assert!(unfilled.is_first(1, 149) && !unfilled.is_first(1, 149));
    }

    /// Check that rings are not polled while threads end often, whatever the pauses between two looks, and are polled again afterwards.
    #[test]
    fn rings_are_not_polled_while_threads_end_often() {
        let mut ends = Ends { since_ns: 1_000_000_000, ..Ends::default() };
        ends.add(200, 1_001_000_000);
        assert!(!ends.are_many, "too early to say");
        ends.add(200, 1_010_000_000);
        assert!(ends.are_many);
        ends.add(0, 1_010_100_000);
        assert!(ends.are_many, "a look right after the last one");
        ends.add(20, 1_110_000_000);
        assert!(!ends.are_many);
    }
}
