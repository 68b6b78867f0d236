//! Follows fork and exec (`--follow`, which `scope.rs` checks): what a child process inherits, and what is left when a process replaces its program.

use super::Tracker;

impl Tracker {
    /// A child process: it starts with its parent's objects and pages (copy on write).
    pub(super) fn forked(&mut self, pid: i32, parent_pid: i32, parent_tid: i32, time: u64) {
        let parent = self.process(parent_pid, time);
        self.find_shared_memory(parent_pid);
        let child = self.processes.add(pid, Some(parent), time, &self.scope, &mut self.sink);
        self.generated_code.forked(&self.scope.root, parent, child, pid);
        self.thread(pid, pid, Some(parent_tid), time);
        self.processes.inherit_modules(parent_pid, pid);
        let Some(from) = self.processes.live.get(&parent_pid) else { return };
        let objects = self.objects.inherit(&from.objects, time);
        let (has_agent, has_timers) = (from.has_agent, from.has_timers);
        if let Some(child) = self.processes.live.get_mut(&pid) {
            child.objects = objects;
            child.has_agent = has_agent;
            child.has_timers = has_timers;
        }
    }

    /// A child process that was running already.
    pub fn found_child(&mut self, pid: i32, parent_pid: i32, time: u64) {
        if !self.processes.live.contains_key(&pid) {
            let parent = self.process(parent_pid, time);
            self.processes.add(pid, Some(parent), time, &self.scope, &mut self.sink);
        }
        self.scan_process(pid, time);
    }

    /// The process replaced its program: memory, modules and all other threads are gone.
    pub(super) fn executed(&mut self, pid: i32, time: u64) {
        self.process(pid, time);
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        self.objects.end_all(process, time, &mut self.sink, |_| true);
        self.threads.end_others(pid, time, &mut self.sink);
        self.modules.forget_unread(pid);
        process.replace_program(time, &self.scope);
        self.sites.forget_agent_stacks(process.id);
        self.generated_code.executed(process.id);
    }
}
