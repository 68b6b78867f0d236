//! What the kernel reports of threads: births, deaths, names, programs replaced, executable mappings.

use super::Tracker;
use super::objects::Objects;
use crate::perf::records::TaskEvent;

impl Tracker {
    pub fn task(&mut self, event: TaskEvent) {
        match event {
            TaskEvent::Fork { time, pid, parent_pid, tid, parent_tid } => {
                if pid == parent_pid && self.scope.includes(pid) {
                    self.thread(pid, tid, Some(parent_tid), time);
                } else if pid != parent_pid && self.scope.follow {
                    self.forked(pid, parent_pid, parent_tid, time);
                } else if pid != parent_pid && self.scope.includes(parent_pid) {
                    self.children_left += 1;
                }
            }
            TaskEvent::Exit { time, pid, tid } => {
                if self.scope.includes(pid) {
                    self.threads.end(tid, time, &mut self.sink);
                    if pid == tid {
                        self.process_ended(pid, time);
                    }
                }
            }
            TaskEvent::Comm { time, pid, tid, name, exec } => {
                if self.scope.includes(pid) {
                    if exec {
                        self.executed(pid, time);
                    }
                    self.thread(pid, tid, None, time);
                    if let Some(thread) = self.threads.get_mut(pid, tid) {
                        thread.name = Some(name);
                    }
                }
            }
            TaskEvent::Map { time, pid, start, length, file_offset, path } => {
                if self.scope.includes(pid) {
                    self.module(pid, time, start, length, file_offset, &path);
                }
            }
        }
    }

    /// A child process: it starts with its parent's objects and pages (copy on write).
    fn forked(&mut self, pid: i32, parent_pid: i32, parent_tid: i32, time: u64) {
        let parent = self.process(parent_pid, time);
        self.processes.add(pid, Some(parent), time, &self.scope, &mut self.sink);
        self.thread(pid, pid, Some(parent_tid), time);
        self.processes.inherit_modules(parent_pid, pid);
        let Some(from) = self.processes.live.get(&parent_pid) else { return };
        let objects = self.objects.inherit(&from.objects, time);
        if let Some(child) = self.processes.live.get_mut(&pid) {
            child.objects = objects;
        }
    }

    fn process_ended(&mut self, pid: i32, time: u64) {
        if let Some(process) = self.processes.live.get_mut(&pid) {
            Objects::write_live(process, &mut self.sink);
        }
        self.processes.end(pid, time, &mut self.sink);
    }

    /// The process replaced its program: memory, modules and all other threads are gone.
    fn executed(&mut self, pid: i32, time: u64) {
        self.process(pid, time);
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        self.objects.end_all(process, time, &mut self.sink, |_| true);
        self.threads.end_others(pid, time, &mut self.sink);
        self.modules.forget_unread(pid);
        process.replace_program(time, &self.scope);
        self.sites.forget_agent_stacks(process.id);
    }
}
