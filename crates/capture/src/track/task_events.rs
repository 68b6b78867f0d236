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
                } else if pid != parent_pid {
                    self.family.born(pid, parent_pid, self.scope.includes(parent_pid));
                }
            }
            TaskEvent::Exit { time, pid, tid } => {
                if self.scope.includes(pid) {
                    self.threads.end(tid, time, &mut self.sink);
                    if pid == tid {
                        self.process_ended(pid, time);
                    }
                } else if pid == tid {
                    self.family.ended(pid);
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

    fn process_ended(&mut self, pid: i32, time: u64) {
        if let Some(process) = self.processes.live.get_mut(&pid) {
            Objects::write_live(process, &mut self.sink);
            self.generated_code.ended(&self.scope.root, process.id);
        }
        self.processes.end(pid, time, &mut self.sink);
    }
}
