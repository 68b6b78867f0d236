//! The live picture of the target: each file tracks one kind of thing, and the [`Tracker`] joins them.

pub mod activity;
mod agent_events;
pub mod agentless;
mod child_processes;
mod delays;
mod elsewhere;
pub mod family;
pub mod generated_code;
pub mod live_objects;
mod mappings;
pub mod modules;
pub mod objects;
pub mod parallel_regions;
pub mod policies;
pub mod policy_schedule;
pub mod processes;
pub mod residency;
pub mod scope;
pub mod sites;
pub mod small_blocks;
mod static_arrays;
mod task_events;
pub mod threads;
pub mod touched;
pub mod unplaced;

use crate::sink::Sink;
use activity::Activity;
use delays::Delays;
use family::Family;
use firsttouch_model::generated_code::is_generated;
use firsttouch_model::rows::metadata::Entry;
use firsttouch_model::rows::{Id, Window};
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::proc::{self, schedstat::SchedStat};
use generated_code::GeneratedCode;
use modules::Modules;
use objects::Objects;
use parallel_regions::Regions;
use processes::Processes;
use residency::Residency;
use scope::Scope;
use sites::Sites;
use small_blocks::SmallBlocks;
use threads::Threads;

pub struct Tracker {
    pub scope: Scope,
    pub sink: Sink,
    pub processes: Processes,
    pub threads: Threads,
    pub objects: Objects,
    small_blocks: SmallBlocks,
    pub sites: Sites,
    pub modules: Modules,
    pub residency: Residency,
    pub activity: Activity,
    generated_code: GeneratedCode,
    regions: Regions,
    /// Windows of all sources so far.
    windows: Id,
    /// Processes that were not followed.
    pub family: Family,
    /// Calls in which the kernel touched memory.
    populations: u64,
    /// The most memory seen in swap.
    swapped_bytes: u64,
    delays: Delays,
}

impl Tracker {
    #[must_use]
    pub fn new(scope: Scope, sink: Sink) -> Self {
        Self {
            objects: Objects::new(scope.min_size),
            small_blocks: SmallBlocks::default(),
            populations: 0,
            scope,
            sink,
            processes: Processes::default(),
            threads: Threads::default(),
            sites: Sites::default(),
            modules: Modules::default(),
            residency: Residency::default(),
            activity: Activity::default(),
            generated_code: GeneratedCode::default(),
            regions: Regions::default(),
            windows: 0,
            family: Family::default(),
            swapped_bytes: 0,
            delays: Delays::default(),
        }
    }

    /// The process of this pid, new if it was not known.
    pub fn process(&mut self, pid: i32, time: u64) -> Id {
        match self.processes.live.get(&pid) {
            Some(process) => process.id,
            None => self.processes.add(pid, None, time, &self.scope, &mut self.sink),
        }
    }

    /// The live thread of this tid, or the one that had it until after this time; new if neither is known.
    pub fn thread(&mut self, pid: i32, tid: i32, parent_tid: Option<i32>, time: u64) -> Id {
        if let Some(id) = self.threads.find(pid, tid, parent_tid, time) {
            return id;
        }
        let process = self.process(pid, time);
        self.add_siblings(pid, process, time);
        if let Some(id) = self.threads.find(pid, tid, parent_tid, time) {
            return id;
        }
        self.threads.add(pid, tid, parent_tid, process, time, &mut self.sink)
    }

    /// Adds the other threads that the process has, in the order of their births. Where the kernel does not report births, a thread is known by
    /// its first record, and the last of a team may be the first that writes one.
    fn add_siblings(&mut self, pid: i32, process: Id, time: u64) {
        if self.activity.is_reported {
            return;
        }
        let Some(listed_ns) = self.processes.live.get_mut(&pid).map(|known| &mut known.threads_listed_ns) else { return };
        if time <= *listed_ns {
            return;
        }
        // All threads that wrote a record before now, and live, are in this list.
        *listed_ns = monotonic_ns();
        for tid in proc::thread_ids(&self.scope.root, pid) {
            if self.threads.find(pid, tid, None, time).is_none() {
                self.threads.add(pid, tid, None, process, time, &mut self.sink);
            }
        }
    }

    /// An executable mapping: code to unwind and to name, and a module whose static arrays become objects.
    fn module(&mut self, pid: i32, time: u64, start: u64, length: u64, file_offset: u64, path: &str) {
        let process = self.process(pid, time);
        // A program that was started here ends before its names are read, and with it this path.
        let readable = (self.scope.is_attached && path.starts_with('/') && !is_generated(path))
            .then(|| elsewhere::readable(&self.scope.root, pid, (start, start.saturating_add(length)), path))
            .flatten();
        let path = readable.as_deref().unwrap_or(path);
        self.processes.add_module(pid, start, length, file_offset, path);
        self.generated_code.mapped(&self.scope.root, (process, pid), path);
        if path.starts_with('/') && !is_generated(path) {
            self.modules.add(pid, time, start, file_offset, path);
        }
    }

    /// The id of a window that is being closed.
    pub fn next_window(&mut self) -> Id {
        self.windows += 1;
        self.windows
    }

    pub fn write_window(&mut self, window: &Window) {
        self.sink.write(|w| w.window(window));
    }

    /// Reads names, CPU times and fault counts of the live threads.
    pub fn read_threads(&mut self) {
        self.threads.read_stats(&self.scope, &mut self.sink);
    }

    /// Counts waits.
    pub fn count_waits(&mut self) {
        self.activity.waits += self.threads.read_waits(&self.scope);
    }

    /// Looks up where threads run.
    pub fn look_up_cpus(&mut self) {
        self.threads.look_up_cpus(&self.scope);
    }

    /// Looks up how long threads waited for a CPU.
    pub fn look_up_delays(&mut self) {
        let live = self.threads.live.iter().map(|(&tid, thread)| (thread.pid, tid)).collect();
        self.delays.look_up(&self.scope.root, live);
    }

    /// Whether threads waited for CPUs so long that the kernel's ticks hit their short phases too seldom.
    pub fn waits_for_cpus(&self) -> bool {
        self.delays.waits_much()
    }

    /// Whether a thread gave up its CPU so often that a clock of its own, which starts and stops each time, takes too much of its time.
    pub fn has_short_turns(&self, tid: i32) -> bool {
        self.delays.has_short_turns(tid)
    }

    /// Reads the memory policies that are due, of some objects. Returns whether others are left.
    pub fn read_policies(&mut self, now: u64) -> bool {
        policies::read(&mut self.processes, &self.scope, &mut self.sink, now)
    }

    /// Notes how much of the profiled memory is in swap: a page that comes back is placed again.
    pub fn read_swap(&mut self) {
        let swapped = self.processes.swapped_bytes(&self.scope);
        if swapped > self.swapped_bytes {
            self.swapped_bytes = swapped;
            self.sink.write(|w| w.meta(Entry::SwappedBytes(swapped)));
        }
    }

    /// The files that name the code that processes generated: to be read after the run.
    pub fn take_generated_code(&mut self) -> GeneratedCode {
        self.generated_code.take(&self.scope.root)
    }

    /// CPU time of the threads that were looked at, ns.
    pub fn threads_ran_ns(&self) -> u64 {
        self.delays.total().ran_ns
    }

    /// Writes the live objects, processes and threads, and the totals.
    pub fn finish(&mut self) {
        self.write_live_objects();
        self.processes.write_live(&mut self.sink);
        self.threads.write_live(&mut self.sink);
        self.objects.write_folded(&mut self.sink);
        let SchedStat { ran_ns, delayed_ns, .. } = self.delays.total();
        if ran_ns > 0 {
            self.sink.write(|w| w.meta(Entry::ThreadsRanNs(ran_ns)));
            self.sink.write(|w| w.meta(Entry::ThreadsDelayedNs(delayed_ns)));
        }
    }
}
