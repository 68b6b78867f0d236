//! What the agent reports: allocations and releases with their call stacks, threads, OpenMP regions.

use super::Tracker;
use super::live_objects::Memory;
use super::objects::NewObject;
use super::processes::LiveProcess;
use super::small_blocks::{HeapRegions, NewSmallBlock};
use crate::agent::records::{AgentEvent, AgentRecord};
use firsttouch_model::rows::{Id, ObjectKind, Population, Region};
use firsttouch_system::proc;

/// Calls in which the kernel touched memory.
const POPULATIONS_KEPT: u64 = 100_000;

impl Tracker {
    pub fn agent(&mut self, record: AgentRecord) {
        let AgentRecord { pid, tid, time, event } = record;
        if !self.scope.includes(pid) {
            return;
        }
        if !self.processes.live.contains_key(&pid) {
            // No event reported this process. Its records may come too late, or from another PID namespace, where this number is
            // another process.
            if !proc::maps::has_mapped(&self.scope.root, pid, firsttouch_system::preload::unpack::FILE) {
                self.sink.lose("agent", "records of a process that had ended, or that lives in another PID namespace", 1);
                return;
            }
            self.process(pid, time);
        }
        match event {
            AgentEvent::Attach => self.agent_attached(pid, time),
            AgentEvent::Alloc { call, address, bytes, stack, python } => {
                self.allocated((pid, tid), (ObjectKind::Heap, Memory::Own), call, (address, bytes), (stack, python), time);
            }
            AgentEvent::Map { call, file, shared, present, populated, address, bytes, stack, python } => {
                let memory = if shared { self.memory_at(pid, address, present) } else { Memory::Own };
                let is_file = file && !matches!(memory, Memory::Shared(_));
                let kind = if is_file { ObjectKind::File } else { ObjectKind::Anonymous };
                self.allocated((pid, tid), (kind, memory), call, (address, bytes), (stack, python), time);
                if populated {
                    self.populated((pid, tid), (call, None), (address, bytes), (stack, python), time);
                }
            }
            AgentEvent::Populate { call, address, bytes, future, stack, python } => {
                self.populated((pid, tid), (call, future), (address, bytes), (stack, python), time);
            }
            AgentEvent::Small { call, address, bytes, stack, python, mean } => {
                self.small_block((pid, tid), NewSmallBlock { call, address, bytes }, (stack, python), mean, time);
            }
            AgentEvent::Free { address } => {
                if let Some(process) = self.processes.live.get_mut(&pid) {
                    self.objects.end(process, address, time, &mut self.sink);
                }
            }
            AgentEvent::Unmap { address, bytes, advise } => {
                if let Some(process) = self.processes.live.get_mut(&pid) {
                    self.objects.unmapped(process, address, bytes, advise, time, &mut self.sink);
                }
            }
            AgentEvent::Stack { id, frames } => {
                self.find_modules_of(pid, &frames, time);
                if let Some(process) = self.processes.live.get(&pid) {
                    self.sites.define_agent_stack(process, id, &frames, &mut self.sink);
                }
            }
            AgentEvent::PythonStack { id, of_sample, frames } => {
                if let Some(process) = self.processes.live.get(&pid) {
                    if of_sample {
                        self.sites.define_sampled_line(process.id, id, &frames);
                    } else {
                        self.sites.define_python_stack(process.id, id, frames);
                    }
                }
            }
            // A source takes these.
            AgentEvent::Tick(_) => {}
            AgentEvent::NoTimer => {
                self.thread(pid, tid, None, time);
                if let Some(thread) = self.threads.get_mut(pid, tid) {
                    thread.has_no_timer = true;
                }
            }
            AgentEvent::ThreadEnd { cpu_ns } => {
                if let Some(thread) = self.threads.get_mut(pid, tid) {
                    thread.cpu_ns = Some(cpu_ns);
                }
            }
            AgentEvent::Thread { creator } => {
                self.thread(pid, tid, Some(creator), time);
                self.threads.began(pid, tid, time);
            }
            AgentEvent::ParallelBegin { code, id, team_size } => {
                let Some(region) = self.regions.count(&mut self.sink) else { return };
                let thread = self.thread(pid, tid, None, time);
                let Some(process) = self.processes.live.get(&pid) else { return };
                let region = Region {
                    id: region,
                    process: process.id,
                    begin_ns: time,
                    end_ns: None,
                    site: Some(self.sites.intern(process, &[code], true, &mut self.sink)),
                    team_size: u32::try_from(team_size).unwrap_or(u32::MAX),
                    thread: Some(thread),
                };
                self.regions.begin(pid, id, region, &mut self.sink);
            }
            AgentEvent::ParallelEnd { id } => self.regions.end(pid, id, time, &mut self.sink),
            AgentEvent::ImplicitTask { number, .. } => {
                self.thread(pid, tid, None, time);
                if let Some(thread) = self.threads.get_mut(pid, tid) {
                    thread.omp_number = u32::try_from(number).ok();
                }
            }
        }
    }

    /// `stacks`: the agent's ids of the native and the Python stack.
    fn allocated(
        &mut self,
        (pid, tid): (i32, i32),
        (kind, memory): (ObjectKind, Memory),
        call: &'static str,
        (address, bytes): (u64, u64),
        stacks: (u64, u64),
        time: u64,
    ) {
        let thread: Id = self.thread(pid, tid, None, time);
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        let site = self.sites.of_agent_stack(process, stacks.0, stacks.1, &mut self.sink);
        let new = NewObject { kind, memory, call: Some(call), name: None, address, bytes, site, thread: Some(thread) };
        self.objects.add(process, new, time, &mut self.sink);
    }

    /// The kernel touched the pages of a range for a thread. `stacks`: the agent's ids of the native and the Python stack.
    fn populated(
        &mut self,
        (pid, tid): (i32, i32),
        (call, future): (&'static str, Option<bool>),
        (address, bytes): (u64, u64),
        stacks: (u64, u64),
        time_ns: u64,
    ) {
        let thread: Id = self.thread(pid, tid, None, time_ns);
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        let site = self.sites.of_agent_stack(process, stacks.0, stacks.1, &mut self.sink);
        self.populations += 1;
        if self.populations > POPULATIONS_KEPT {
            self.sink.lose("agent", "only the first 100,000 calls that make the kernel touch memory (MAP_POPULATE, mlock) are kept", 1);
            return;
        }
        let row = Population { process: process.id, thread, time_ns, call: call.to_owned(), address, bytes, future, site };
        self.sink.write(|w| w.population(&row));
    }

    /// `stacks`: the agent's ids of the native and the Python stack.
    fn small_block(&mut self, (pid, tid): (i32, i32), block: NewSmallBlock, stacks: (u64, u64), mean_bytes: u64, time: u64) {
        let thread: Id = self.thread(pid, tid, None, time);
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        let site = self.sites.of_agent_stack(process, stacks.0, stacks.1, &mut self.sink);
        if process.small_blocks.add(block.address) && self.objects.follows_pages {
            let around = HeapRegions::around(block.address);
            let LiveProcess { unplaced, objects, executed_ns, .. } = process;
            unplaced.watch_heap(around, *executed_ns, objects);
        }
        self.small_blocks.add(block.row((process.id, thread), site, time), mean_bytes, &mut self.sink);
    }

    /// The agent is in this program: its heap objects start from nothing.
    fn agent_attached(&mut self, pid: i32, time: u64) {
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        self.objects.end_all(process, time, &mut self.sink, |o| {
            matches!(o.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::File | ObjectKind::Mapping)
        });
        process.has_agent = true;
        process.has_timers = self.activity.sampling.is_some();
        // It took long to load.
        self.activity.agentless.take_if(|known| known.pid == pid);
    }

    /// The agent's timer samples this thread. No thread may be sampled from outside as well.
    #[must_use]
    pub fn has_timer(&self, pid: i32, tid: i32) -> bool {
        let thread = self.threads.live.get(&tid).filter(|thread| thread.pid == pid);
        self.processes.live.get(&pid).is_some_and(|process| process.has_timers) && thread.is_none_or(|thread| !thread.has_no_timer)
    }

    /// The agent sent a sample of this thread.
    pub fn timer_seen(&mut self, pid: i32, tid: i32) {
        if let Some(process) = self.processes.live.get_mut(&pid) {
            process.has_timers = true;
        }
        if let Some(thread) = self.threads.get_mut(pid, tid) {
            thread.has_no_timer = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::records::TaskEvent;
    use crate::sink::Sink;
    use crate::track::activity::Sampling;
    use crate::track::scope::Scope;
    use firsttouch_profile::Writer;
    use firsttouch_system::calls::clock::monotonic_ns;

    /// Check that threads are numbered in the order of their births where the kernel reports none, whichever writes first, and that they have the
    /// creators that they name.
    #[test]
    fn births_that_nobody_reports() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let writer = Writer::create(&directory.path().join("a.ftp")).expect("a profile");
        let pid = i32::try_from(std::process::id()).expect("a process number");
        let mut tracker = Tracker::new(Scope::of_test("/".into(), pid), Sink::new(writer));
        tracker.process(pid, 1);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = std::sync::Mutex::new(ended);
        std::thread::scope(|scope| {
            let (said, tids) = std::sync::mpsc::channel();
            let born: Vec<i32> = (0..4)
                .map(|_| {
                    let (said, ended) = (said.clone(), &ended);
                    scope.spawn(move || {
                        // SAFETY: gettid takes nothing.
                        said.send(unsafe { libc::gettid() }).expect("the test waits");
                        let _ = ended.lock().expect("no panic").recv();
                    });
                    tids.recv().expect("the thread lives")
                })
                .collect();
            for &tid in born.iter().rev() {
                let time = monotonic_ns();
                tracker.agent(AgentRecord { pid, tid, time, event: AgentEvent::Thread { creator: born[0] } });
            }
            let ids: Vec<Id> = born.iter().map(|tid| tracker.threads.live[tid].id).collect();
            let parents: Vec<Option<Id>> = born[1..].iter().map(|tid| tracker.threads.live[tid].parent).collect();
            drop(end);
            assert!(ids.is_sorted(), "{ids:?}");
            assert_eq!(parents, [Some(ids[0]); 3]);
        });
    }

    /// Check which threads are sampled by the agent: all of a program with the agent, but for those that say that they got no timer, and
    /// those of the program that replaces it.
    #[test]
    fn timers_are_known() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let writer = Writer::create(&directory.path().join("a.ftp")).expect("a profile");
        let mut scope = Scope::of_test(directory.path().to_owned(), 10);
        scope.follow = true;
        let mut tracker = Tracker::new(scope, Sink::new(writer));
        tracker.activity.sampling = Some(Sampling::default());
        tracker.task(TaskEvent::Comm { time: 1, pid: 10, tid: 10, name: "a".to_owned(), exec: true });
        assert!(!tracker.has_timer(10, 10));
        let record = |tracker: &mut Tracker, tid, event| tracker.agent(AgentRecord { pid: 10, tid, time: 2, event });
        // The agent reports a missing timer before it reports itself.
        record(&mut tracker, 10, AgentEvent::NoTimer);
        record(&mut tracker, 10, AgentEvent::Attach);
        record(&mut tracker, 11, AgentEvent::Thread { creator: 10 });
        record(&mut tracker, 11, AgentEvent::ThreadEnd { cpu_ns: 7_100_000 });
        assert_eq!(tracker.threads.live.get(&11).and_then(|thread| thread.cpu_ns), Some(7_100_000));
        assert_eq!([10, 11, 12].map(|tid| tracker.has_timer(10, tid)), [false, true, true]);
        tracker.timer_seen(10, 10);
        assert!(tracker.has_timer(10, 10));
        // A forked child has its parent's agent, and timers of its own.
        tracker.task(TaskEvent::Fork { time: 3, pid: 20, parent_pid: 10, tid: 20, parent_tid: 10 });
        assert!(tracker.has_timer(20, 20));
        tracker.task(TaskEvent::Comm { time: 4, pid: 20, tid: 20, name: "b".to_owned(), exec: true });
        assert!(!tracker.has_timer(20, 20) && tracker.has_timer(10, 10));
    }

    fn here() {}

    /// Check that the code of the agent's first call stack is known where the kernel does not report what is mapped.
    #[test]
    fn modules_of_the_first_stack() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let pid = i32::try_from(std::process::id()).expect("a process number");
        let code = here as fn() as usize as u64 + 1;
        for is_reported in [false, true] {
            let writer = Writer::create(&directory.path().join("a.ftp")).expect("a profile");
            let mut tracker = Tracker::new(Scope::of_test("/".into(), pid), Sink::new(writer));
            tracker.activity.is_reported = is_reported;
            tracker.process(pid, 1);
            tracker.agent(AgentRecord { pid, tid: pid, time: 2, event: AgentEvent::Stack { id: 1, frames: vec![code] } });
            assert_eq!(tracker.processes.live[&pid].module_at(code).is_some(), !is_reported);
        }
    }

    /// Check that a record which comes after its thread's end belongs to that thread, and that a tid used again is another thread.
    #[test]
    fn late_records_of_ended_threads() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let writer = Writer::create(&directory.path().join("a.ftp")).expect("a profile");
        let scope = Scope::of_test(directory.path().to_owned(), 10);
        let mut tracker = Tracker::new(scope, Sink::new(writer));
        let born = |tid, time| TaskEvent::Fork { time, pid: 10, parent_pid: 10, tid, parent_tid: 10 };
        let allocated = |time| AgentRecord {
            pid: 10,
            tid: 11,
            time,
            event: AgentEvent::Alloc { call: "malloc", address: 0x1000, bytes: 64, stack: 0, python: 0 },
        };
        tracker.task(born(10, 1));
        tracker.task(born(11, 2));
        tracker.task(TaskEvent::Exit { time: 5, pid: 10, tid: 11 });
        tracker.agent(allocated(4));
        assert_eq!((tracker.threads.count(), tracker.threads.live.len()), (2, 1));
        tracker.task(born(11, 7));
        tracker.agent(allocated(8));
        assert_eq!((tracker.threads.count(), tracker.threads.live.len()), (3, 2));
    }
}
