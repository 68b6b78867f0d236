//! The live picture of the target: processes, threads, objects, first touches; and the rows that come of it.

pub mod objects;
pub mod policies;
pub mod processes;
pub mod sites;
pub mod touches;

use crate::agent::ring::{AgentEvent, AgentRecord};
use crate::perf::records::{PerfRecord, Sample};
use crate::sink::Sink;
use firsttouch_model::rows::{FirstTouch, Id, ObjectKind, Region, Window};
use firsttouch_system::calls::pages::nodes_of;
use firsttouch_system::proc;
use objects::NewObject;
use processes::{EndedThreads, Process, ThreadState};
use sites::Sites;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;

/// OpenMP regions written out one by one; the rest is counted.
const REGIONS_KEPT: u64 = 20_000;

/// How the tracker was asked to look.
pub struct Scope {
    pub root: PathBuf,
    /// The process firsttouch started or attached to.
    pub root_pid: i32,
    pub follow: bool,
    pub min_size: u64,
    pub page_bytes: u64,
    pub huge_page_bytes: u64,
    /// Node of each CPU, on a machine with several nodes; else empty.
    pub cpu_nodes: HashMap<u32, u32>,
    /// The kernel may mark pages to catch accesses to them.
    pub may_hint: bool,
    /// Processes whose objects come from /proc/PID/maps, because no agent is in them.
    pub by_mapping: bool,
}

/// Evidence counted as lost, by (source, reason).
pub type Lost = BTreeMap<(&'static str, &'static str), u64>;

pub struct Tracker {
    pub scope: Scope,
    pub sink: Sink,
    pub processes: HashMap<i32, Process>,
    pub threads: HashMap<i32, ThreadState>,
    ended_threads: EndedThreads,
    pub sites: Sites,
    pub lost: Lost,
    pub touch_samples: u64,
    pub touch_weight: f64,
    pub kernel_touches: u64,
    /// Faults on pages that were there, where the kernel may mark pages.
    pub hints: u64,
    /// Rows of faults whose page's node is still to be asked, by process.
    unasked: Vec<(i32, FirstTouch)>,
    pub(crate) releases: u64,
    pub(crate) looked_from: usize,
    /// The most memory seen in swap.
    pub swapped_bytes: u64,
    pub pages_queried: u64,
    /// Waits of all threads so far.
    pub waits: f64,
    pub regions: u64,
    /// Child processes that were left alone.
    pub children_left: u64,
    /// When watching started.
    pub watched_from_ns: u64,
    pub threads_seen: i64,
    processes_seen: i64,
    objects_seen: i64,
    windows_seen: i64,
    /// Modules whose static arrays are still to be read: pid, time, file, start, file offset.
    waiting_statics: VecDeque<(i32, u64, PathBuf, u64, u64)>,
    open_regions: HashMap<(i32, u64), Region>,
    /// Deaths of objects since the last turn, for windows that were on them.
    pub deaths: HashMap<Id, u64>,
    /// Every module mapped so far, and which file it was then.
    pub(crate) files: HashMap<String, Option<processes::FileIdentity>>,
    random: crate::watch::design::Random,
    load: unwind_store::Store,
}

/// Unwind tables, shared by all processes.
mod unwind_store {
    pub type Store = crate::unwind::TableStore;
}

impl Tracker {
    #[must_use]
    pub fn new(scope: Scope, sink: Sink, seed: u64) -> Self {
        Self {
            scope,
            sink,
            processes: HashMap::new(),
            threads: HashMap::new(),
            ended_threads: EndedThreads::default(),
            sites: Sites::default(),
            lost: Lost::new(),
            touch_samples: 0,
            touch_weight: 0.0,
            kernel_touches: 0,
            hints: 0,
            unasked: Vec::new(),
            releases: 0,
            looked_from: 0,
            swapped_bytes: 0,
            pages_queried: 0,
            waits: 0.0,
            children_left: 0,
            watched_from_ns: u64::MAX,
            regions: 0,
            threads_seen: 0,
            processes_seen: 0,
            objects_seen: 0,
            windows_seen: 0,
            waiting_statics: VecDeque::new(),
            open_regions: HashMap::new(),
            deaths: HashMap::new(),
            files: HashMap::new(),
            random: crate::watch::design::Random::new(seed),
            load: unwind_store::Store::default(),
        }
    }

    pub fn lose(&mut self, source: &'static str, reason: &'static str, count: u64) {
        if count > 0 {
            *self.lost.entry((source, reason)).or_default() += count;
        }
    }

    fn tracked(&self, pid: i32) -> bool {
        self.scope.follow || pid == self.scope.root_pid
    }

    pub fn next_window(&mut self) -> Id {
        self.windows_seen += 1;
        self.windows_seen
    }

    pub fn write_window(&mut self, window: &Window) {
        self.sink.write(|w| w.window(window));
    }

    /// Takes one record of the page-fault event; `weight`: faults a sample stands for.
    pub fn perf(&mut self, record: PerfRecord, weight: u64) {
        match record {
            PerfRecord::Sample(sample) => {
                if self.tracked(sample.pid) {
                    self.touch(&sample, weight);
                }
            }
            PerfRecord::Fork { time, pid, parent_pid, tid, parent_tid } => {
                if pid == parent_pid && self.tracked(pid) {
                    self.thread(pid, tid, Some(parent_tid), time);
                } else if pid != parent_pid && self.scope.follow {
                    self.forked(pid, parent_pid, parent_tid, time);
                } else if pid != parent_pid && self.tracked(parent_pid) {
                    self.children_left += 1;
                }
            }
            PerfRecord::Exit { time, pid, tid } => {
                if self.tracked(pid) {
                    self.thread_ended(tid, time);
                    if pid == tid {
                        self.process_ended(pid, time);
                    }
                }
            }
            PerfRecord::Comm { time, pid, tid, name, exec } => {
                if self.tracked(pid) {
                    if exec {
                        self.executed(pid, time);
                    }
                    self.thread(pid, tid, None, time);
                    if let Some(thread) = self.threads.get_mut(&tid).filter(|thread| thread.pid == pid) {
                        thread.name = Some(name);
                    }
                }
            }
            PerfRecord::Map { time, pid, start, length, file_offset, path } => {
                if self.tracked(pid) {
                    self.module(pid, time, start, length, file_offset, &path);
                }
            }
            PerfRecord::Lost { count } => self.lose("touch", "the kernel's ring was full", count),
            PerfRecord::Throttled => self.lose("touch", "throttled by the kernel (perf_event_max_sample_rate)", 1),
        }
    }

    /// A page fault: who touched which page first, from where; or who used a page that the kernel had marked.
    fn touch(&mut self, sample: &Sample, weight: u64) {
        let thread = self.thread(sample.pid, sample.tid, None, sample.time);
        let Some(process) = self.processes.get_mut(&sample.pid) else {
            self.lose("touch", "faults of processes that had ended", 1);
            return;
        };
        let stack = process.unwinder.stack(sample);
        // A fault in the kernel on the thread's behalf: the user part of the stack starts after the system call.
        let site = self.sites.intern(process, &stack, sample.in_kernel, &mut self.sink);
        let weight = weight as f64;
        let mapped_bytes = sample.page_bytes;
        process.page_sizes.learn(sample.address, mapped_bytes);
        if self.scope.may_hint && mapped_bytes.is_some_and(|bytes| bytes > 0) {
            self.hints += 1;
        } else {
            process.touches.insert(sample.address, thread, sample.time, &mut self.random);
        }
        self.touch_samples += 1;
        self.touch_weight += weight;
        self.kernel_touches += u64::from(sample.in_kernel);
        if let Some(state) = self.threads.get_mut(&sample.tid).filter(|state| state.pid == sample.pid) {
            if !sample.in_kernel {
                state.user_faults += weight;
            }
            state.cpus.entry(sample.cpu).or_default().samples += 1;
        }
        let row = FirstTouch {
            id: i64::try_from(self.touch_samples).unwrap_or(i64::MAX),
            process: process.id,
            time_ns: sample.time,
            thread,
            cpu: sample.cpu,
            address: sample.address,
            weight,
            by_kernel: sample.in_kernel,
            site: Some(site),
            mapped_bytes,
            node: None,
        };
        if self.scope.cpu_nodes.is_empty() {
            self.sink.write(|w| w.first_touch(&row));
        } else {
            self.unasked.push((sample.pid, row));
        }
    }

    /// Asks where the pages of the latest faults are, and writes these down. On a machine with several nodes the answer tells
    /// whether a page was placed at all (a read gets the zero page), and whether it is where its toucher ran.
    pub fn place_faults(&mut self) {
        let mut rows = std::mem::take(&mut self.unasked);
        rows.sort_by_key(|(pid, row)| (*pid, row.id));
        for of_process in rows.chunk_by_mut(|a, b| a.0 == b.0) {
            let addresses: Vec<u64> = of_process.iter().map(|(_, row)| row.address).collect();
            let nodes = nodes_of(of_process[0].0, &addresses).unwrap_or_default();
            for ((_, row), node) in of_process.iter_mut().zip(nodes) {
                row.node = Some(node);
            }
        }
        rows.sort_by_key(|(_, row)| row.id);
        self.sink.write(|w| rows.iter().try_for_each(|(_, row)| w.first_touch(row)));
    }

    /// Takes one record of the agent.
    pub fn agent(&mut self, record: AgentRecord) {
        let AgentRecord { pid, tid, time, event } = record;
        if !self.tracked(pid) {
            return;
        }
        if !self.processes.contains_key(&pid) {
            // Nobody told us of this process: its records may come too late, or from another PID namespace, whose numbers are others'.
            if !proc::maps::has_mapped(&self.scope.root, pid, firsttouch_system::preload::unpack::FILE) {
                self.lose("agent", "records of a process that had ended, or that lives in another PID namespace", 1);
                return;
            }
            self.process(pid, time);
        }
        match event {
            AgentEvent::Attach => self.agent_attached(pid, time),
            AgentEvent::Alloc { call, address, bytes, stack, python } => {
                let thread = self.thread(pid, tid, None, time);
                let site = self.agent_site(pid, stack, python);
                self.allocated(
                    pid,
                    NewObject { kind: ObjectKind::Heap, call: Some(call), name: None, address, bytes, site, thread: Some(thread) },
                    time,
                );
            }
            AgentEvent::Map { call, file, address, bytes, stack, python } => {
                let thread = self.thread(pid, tid, None, time);
                let kind = if file { ObjectKind::File } else { ObjectKind::Anonymous };
                let site = self.agent_site(pid, stack, python);
                self.allocated(pid, NewObject { kind, call: Some(call), name: None, address, bytes, site, thread: Some(thread) }, time);
            }
            AgentEvent::Free { address } => self.freed(pid, address, time),
            AgentEvent::Unmap { address, bytes, advise } => self.unmapped(pid, address, bytes, advise, time),
            AgentEvent::Stack { id, frames } => {
                if let Some(process) = self.processes.get_mut(&pid) {
                    self.sites.define_agent_stack(process, id, &frames, &mut self.sink);
                }
            }
            AgentEvent::PythonStack { id, frames } => {
                if let Some(process) = self.processes.get(&pid) {
                    self.sites.define_python_stack(process.id, id, frames);
                }
            }
            AgentEvent::Thread { creator } => {
                self.thread(pid, tid, Some(creator), time);
            }
            AgentEvent::ParallelBegin { code, id, team_size } => {
                self.regions += 1;
                if self.regions > REGIONS_KEPT {
                    self.lose("regions", "only the first 20,000 parallel regions are kept", 1);
                    return;
                }
                let thread = self.thread(pid, tid, None, time);
                let Some(process) = self.processes.get_mut(&pid) else { return };
                let site = self.sites.intern(process, &[code], true, &mut self.sink);
                let region = Region {
                    id: i64::try_from(self.regions).unwrap_or(i64::MAX),
                    process: process.id,
                    begin_ns: time,
                    end_ns: None,
                    site: Some(site),
                    team_size: u32::try_from(team_size).unwrap_or(u32::MAX),
                    thread: Some(thread),
                };
                self.sink.write(|w| w.region(&region));
                self.open_regions.insert((pid, id), region);
            }
            AgentEvent::ParallelEnd { id } => {
                if let Some(mut region) = self.open_regions.remove(&(pid, id)) {
                    region.end_ns = Some(time);
                    self.sink.write(|w| w.region(&region));
                }
            }
            AgentEvent::ImplicitTask { number, .. } => {
                self.thread(pid, tid, None, time);
                if let Some(state) = self.threads.get_mut(&tid).filter(|state| state.pid == pid) {
                    state.omp_number = u32::try_from(number).ok();
                }
            }
        }
    }

    fn agent_site(&mut self, pid: i32, stack: u64, python: u64) -> Option<Id> {
        let process = self.processes.get(&pid)?;
        self.sites.of_agent_stack(process, stack, python, &mut self.sink)
    }

    /// Writes what is still open, and the totals.
    pub fn finish(&mut self, now: u64) {
        self.place_faults();
        let pids: Vec<i32> = self.processes.keys().copied().collect();
        for pid in pids {
            self.write_live_objects(pid);
            self.process_ended_row(pid, None);
        }
        let tids: Vec<i32> = self.threads.keys().copied().collect();
        for tid in tids {
            self.write_thread(tid, None);
        }
        let _ = now;
        let folded = std::mem::take(&mut self.sites.folded);
        for row in folded.into_values() {
            self.sink.write(|w| w.folded_objects(&row));
        }
        let lost = std::mem::take(&mut self.lost);
        for ((source, reason), count) in &lost {
            self.sink.write(|w| w.lost(source, reason, *count));
        }
        self.lost = lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_profile::Writer;

    /// Check that a record which comes after its thread's end is that thread's, and that a tid used again is another thread's.
    #[test]
    fn late_records_of_ended_threads() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let writer = Writer::create(&directory.path().join("a.ftp")).expect("a profile");
        let scope = Scope {
            root: directory.path().to_owned(),
            root_pid: 10,
            follow: false,
            min_size: 1,
            page_bytes: 4096,
            huge_page_bytes: 0,
            cpu_nodes: HashMap::new(),
            may_hint: false,
            by_mapping: false,
        };
        let mut tracker = Tracker::new(scope, Sink::new(writer), 1);
        let born = |tid, time| PerfRecord::Fork { time, pid: 10, parent_pid: 10, tid, parent_tid: 10 };
        let allocated = |time| AgentRecord {
            pid: 10,
            tid: 11,
            time,
            event: AgentEvent::Alloc { call: "malloc", address: 0x1000, bytes: 64, stack: 0, python: 0 },
        };
        tracker.perf(born(10, 1), 1);
        tracker.perf(born(11, 2), 1);
        tracker.perf(PerfRecord::Exit { time: 5, pid: 10, tid: 11 }, 1);
        tracker.agent(allocated(4));
        assert_eq!((tracker.threads_seen, tracker.threads.len()), (2, 1));
        tracker.perf(born(11, 7), 1);
        tracker.agent(allocated(8));
        assert_eq!((tracker.threads_seen, tracker.threads.len()), (3, 2));
    }
}
