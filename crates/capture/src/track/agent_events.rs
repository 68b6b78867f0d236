//! What the agent reports: allocations and releases with their call stacks, threads, OpenMP regions.

use super::Tracker;
use super::objects::NewObject;
use crate::agent::records::{AgentEvent, AgentRecord};
use firsttouch_model::rows::{Id, ObjectKind, Region};
use firsttouch_system::proc;

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
                self.allocated((pid, tid), ObjectKind::Heap, call, (address, bytes), (stack, python), time);
            }
            AgentEvent::Map { call, file, address, bytes, stack, python } => {
                let kind = if file { ObjectKind::File } else { ObjectKind::Anonymous };
                self.allocated((pid, tid), kind, call, (address, bytes), (stack, python), time);
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
                if let Some(process) = self.processes.live.get(&pid) {
                    self.sites.define_agent_stack(process, id, &frames, &mut self.sink);
                }
            }
            AgentEvent::PythonStack { id, frames } => {
                if let Some(process) = self.processes.live.get(&pid) {
                    self.sites.define_python_stack(process.id, id, frames);
                }
            }
            // A source takes these.
            AgentEvent::Tick(_) => {}
            AgentEvent::Thread { creator } => {
                self.thread(pid, tid, Some(creator), time);
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
        kind: ObjectKind,
        call: &'static str,
        (address, bytes): (u64, u64),
        stacks: (u64, u64),
        time: u64,
    ) {
        let thread: Id = self.thread(pid, tid, None, time);
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        let site = self.sites.of_agent_stack(process, stacks.0, stacks.1, &mut self.sink);
        let new = NewObject { kind, call: Some(call), name: None, address, bytes, site, thread: Some(thread) };
        self.objects.add(process, new, time, &mut self.sink);
    }

    /// The agent is in this program: its heap objects start from nothing.
    fn agent_attached(&mut self, pid: i32, time: u64) {
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        self.objects.end_all(process, time, &mut self.sink, |o| {
            matches!(o.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::File | ObjectKind::Mapping)
        });
        process.has_agent = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::records::TaskEvent;
    use crate::sink::Sink;
    use crate::track::scope::Scope;
    use firsttouch_profile::Writer;

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
