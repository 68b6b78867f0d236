//! First touches where the kernel reports no page faults: looks at which pages of the program's objects are present, each between two
//! readings of its threads' page-fault counts. The analysis finds out from both which thread touched which pages.
//!
//! Looks are frequent while pages appear, and rare while none do. They take CPU time from the program, so they have a budget.

use crate::source::{NEVER, Occasion};
use crate::track::Tracker;
use crate::track::objects::LARGE_BYTES;
use firsttouch_model::rows::{FaultCount, Id};
use firsttouch_system::calls::clock::{monotonic_ns, thread_cpu_ns};
use firsttouch_system::calls::page_sizes::{Present, PresentPages};
use firsttouch_system::proc::stat;
use hashbrown::HashMap;

/// The least time between two looks, and so many times what the last one cost.
const LEAST_PAUSE_NS: u64 = 1_000_000;
const PAUSE_PER_COST: u64 = 12;
/// While nothing appears, the pause grows. Longer ones end with the session's own ticks.
const PAUSE_GROWTH: f64 = 1.4;
const LONGEST_PAUSE_NS: u64 = 40_000_000;
/// A look after the birth of a large object comes this soon.
const BIRTH_PAUSE_NS: u64 = 200_000;
/// firsttouch's CPU time for looks: at once, and for each ns of the run.
const BUDGET_NS: f64 = 30e6;
const BUDGET_PART: f64 = 0.005;
/// So few faults of all threads need no look.
const FEW_FAULTS: u64 = 4;
/// How often large allocations may wake firsttouch between two ticks.
const WAKES_A_TICK: u32 = 4;
/// Rows of pages that appeared.
const MOST_ROWS: u64 = 200_000;
/// Threads whose counts are read.
const MOST_THREADS: usize = 512;

#[derive(Default)]
pub struct Appearing {
    is_on: bool,
    next_ns: u64,
    pause_ns: u64,
    spent_ns: u64,
    began_ns: u64,
    rows: u64,
    processes: HashMap<i32, Followed>,
}

/// A process whose pages are looked at.
struct Followed {
    id: Id,
    pages: PresentPages,
    /// Of all threads, when it was last looked at.
    faults: u64,
    /// By thread, as last written.
    counts: HashMap<Option<Id>, u64>,
}

impl Appearing {
    /// Whether the kernel refuses to report page faults is known now.
    pub fn start(&mut self, tracker: &mut Tracker) {
        self.began_ns = monotonic_ns();
        self.is_on = !tracker.activity.is_reported && tracker.activity.sampling.is_some();
        tracker.objects.follows_pages = self.is_on;
        self.next_ns = if self.is_on { self.began_ns } else { NEVER };
    }

    /// Looks, if it is time. Returns when to look again.
    pub fn act(&mut self, occasion: Occasion, now: u64, tracker: &mut Tracker) -> u64 {
        if !self.is_on {
            return NEVER;
        }
        if occasion == Occasion::Tick {
            tracker.activity.wakes_left = WAKES_A_TICK;
            tracker.activity.wake_bytes = if self.is_rich(now) { LARGE_BYTES } else { 0 };
        }
        let has_births = !tracker.objects.take_births().is_empty();
        if has_births && self.is_rich(now) {
            self.pause_ns = LEAST_PAUSE_NS;
            self.next_ns = self.next_ns.min(now + BIRTH_PAUSE_NS);
        }
        let is_due = now >= self.next_ns || (occasion == Occasion::Tick && self.pause_ns >= LONGEST_PAUSE_NS);
        if is_due && !matches!(occasion, Occasion::Drained | Occasion::End) {
            self.look(tracker);
        }
        if self.pause_ns >= LONGEST_PAUSE_NS { NEVER } else { self.next_ns }
    }

    /// The budget is not spent.
    fn is_rich(&self, now: u64) -> bool {
        (self.spent_ns as f64) < BUDGET_NS + BUDGET_PART * now.saturating_sub(self.began_ns) as f64
    }

    fn look(&mut self, tracker: &mut Tracker) {
        let (began, cpu) = (monotonic_ns(), thread_cpu_ns());
        let pids: Vec<i32> = tracker.processes.live.keys().copied().collect();
        self.processes.retain(|pid, followed| tracker.processes.live.get(pid).is_some_and(|process| process.id == followed.id));
        let mut has_grown = false;
        for pid in pids {
            has_grown |= self.look_at(pid, tracker);
        }
        let cost = thread_cpu_ns().saturating_sub(cpu);
        self.spent_ns += cost;
        let now = monotonic_ns();
        self.pause_ns = match () {
            () if !self.is_rich(now) => LONGEST_PAUSE_NS,
            () if has_grown => LEAST_PAUSE_NS.max(PAUSE_PER_COST * cost),
            () => ((self.pause_ns.max(LEAST_PAUSE_NS) as f64 * PAUSE_GROWTH) as u64).min(LONGEST_PAUSE_NS),
        };
        self.next_ns = began.max(now) + self.pause_ns;
        if self.rows >= MOST_ROWS {
            self.is_on = false;
            tracker.objects.follows_pages = false;
            tracker.sink.lose("resident", "pages that appeared after the first 200,000 ranges of them", 1);
        }
    }

    /// Returns whether the process had page faults since the last look.
    fn look_at(&mut self, pid: i32, tracker: &mut Tracker) -> bool {
        let Tracker { processes, threads, scope, sink, .. } = tracker;
        let Some(process) = processes.live.get_mut(&pid).filter(|process| process.has_agent && !process.unplaced.is_empty()) else {
            return false;
        };
        let Some(total) = stat::of_process(&scope.root, pid).map(|stat| stat.minor_faults) else { return false };
        let followed = match self.processes.entry(pid) {
            hashbrown::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            hashbrown::hash_map::Entry::Vacant(entry) => {
                let Ok(pages) = PresentPages::open(pid, scope.page_bytes, scope.huge_page_bytes) else { return false };
                entry.insert(Followed { id: process.id, pages, faults: 0, counts: HashMap::new() })
            }
        };
        let faults = total.saturating_sub(std::mem::replace(&mut followed.faults, total));
        if faults < FEW_FAULTS {
            followed.faults -= faults;
            return false;
        }
        let tids: Vec<(Id, i32)> =
            threads.live.values().filter(|thread| thread.pid == pid).map(|thread| (thread.id, thread.tid)).take(MOST_THREADS).collect();
        let counts = || -> Vec<(Id, u64)> {
            tids.iter().filter_map(|&(id, tid)| Some((id, stat::of_thread(&scope.root, pid, tid)?.minor_faults))).collect()
        };
        let rest = |total: u64, counts: &[(Id, u64)]| total.saturating_sub(counts.iter().map(|(_, faults)| faults).sum());
        // A count that is read too early before the look, and one that is read too late behind it, are bounds of what was touched in between.
        let before = counts();
        let from = monotonic_ns();
        followed.write(rest(total, &before), &before, from, sink);
        let mut present: Vec<Present> = Vec::new();
        for (start, end) in process.unplaced.ranges() {
            if followed.pages.find(start, end, &mut present).is_err() {
                return false;
            }
        }
        let to = monotonic_ns();
        let after = counts();
        let total = stat::of_process(&scope.root, pid).map_or(total, |stat| stat.minor_faults);
        followed.write(rest(total, &after), &after, to, sink);
        for row in process.unplaced.looked(process.id, (from, to), &present) {
            self.rows += 1;
            if let Some((start, object)) = process.objects.by_address.range_mut(..row.address + row.bytes).next_back() {
                object.has_evidence |= start.saturating_add(object.bytes) > row.address;
            }
            sink.write(|w| w.appeared(&row));
        }
        true
    }
}

impl Followed {
    /// Writes the counts that changed, and always one, which shows that all were read.
    fn write(&mut self, rest: u64, counts: &[(Id, u64)], time_ns: u64, sink: &mut crate::sink::Sink) {
        let rest = rest.max(self.counts.get(&None).copied().unwrap_or(0));
        let all = counts.iter().map(|&(thread, faults)| (Some(thread), faults)).chain([(None, rest)]);
        for (thread, faults) in all {
            let before = self.counts.insert(thread, faults);
            if thread.is_none() || before != Some(faults) {
                let row = FaultCount { process: self.id, thread, time_ns, faults };
                sink.write(|w| w.fault_count(&row));
            }
        }
    }
}
