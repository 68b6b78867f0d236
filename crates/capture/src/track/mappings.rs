//! What no event reports, from /proc: modules and threads of a process that was already running; and, without an agent, the mappings that
//! stand for its objects.

use super::Tracker;
use super::live_objects::Memory;
use super::objects::{NewObject, Objects};
use super::processes::LiveProcess;
use firsttouch_model::generated_code::{MODULE, is_generated};
use firsttouch_model::rows::{ObjectKind, SharedMemory};
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::proc;

/// Code that no event reports is looked up at most so often.
const BETWEEN_LOOKUPS_NS: u64 = 20_000_000;

impl Tracker {
    /// Where the kernel does not report what is mapped (perf is forbidden): looks up the modules of a call stack that is in none of the
    /// known ones, because a stack is stored with the modules that are known when it comes.
    pub fn find_modules_of(&mut self, pid: i32, stack: &[u64], time: u64) {
        let is_due = !self.activity.is_reported && self.activity.scanned_ns.is_none_or(|last| monotonic_ns() >= last + BETWEEN_LOOKUPS_NS);
        let is_unknown = |process: &LiveProcess| stack.iter().any(|&address| process.module_at(address.wrapping_sub(1)).is_none());
        if is_due && self.processes.live.get(&pid).is_some_and(is_unknown) {
            self.scan_process(pid, time);
            self.activity.scanned_ns = Some(monotonic_ns());
        }
    }

    /// Modules and threads of a process that ran before the profile started, or whose events are not reported.
    pub fn scan_process(&mut self, pid: i32, time: u64) {
        for m in proc::maps::read(&self.scope.root, pid) {
            let known = self.processes.live.get(&pid).is_some_and(|p| p.modules.contains_key(&m.start));
            if m.executable && !known && (m.name.starts_with('/') || is_generated(&m.name)) {
                let name = if m.name.is_empty() { MODULE } else { &m.name };
                self.module(pid, time, m.start, m.end - m.start, m.file_offset, name);
            }
        }
        for tid in proc::thread_ids(&self.scope.root, pid) {
            self.thread(pid, tid, Some(pid), time);
        }
    }

    /// Objects of processes without an agent: their writable anonymous mappings.
    pub fn refresh_mappings(&mut self, time: u64) {
        for process in self.processes.live.values_mut().filter(|process| !process.has_agent) {
            let maps: Vec<proc::maps::Mapping> = proc::maps::read(&self.scope.root, process.pid)
                .into_iter()
                .filter(|m| m.writable && (m.is_anonymous() || m.is_shared_memory()) && m.end - m.start >= self.scope.min_size)
                .collect();
            let mut gone = Vec::new();
            for (&address, object) in process.objects.by_address.iter_mut().filter(|(_, o)| o.kind == ObjectKind::Mapping) {
                match maps.iter().find(|m| m.start == address) {
                    Some(m) if m.end - m.start != object.bytes => object.resize(m.end - m.start),
                    Some(_) => {}
                    None => gone.push(address),
                }
            }
            for address in gone {
                self.objects.end(process, address, time, &mut self.sink);
            }
            for m in maps {
                let (address, bytes) = (m.start, m.end - m.start);
                if process.objects.overlapping(address, bytes).is_empty() {
                    let memory = shared_memory(&m, address).map_or(Memory::Own, Memory::Shared);
                    let (kind, name) = (ObjectKind::Mapping, Some(m.name).filter(|name| !name.is_empty()));
                    let new = NewObject { kind, memory, call: None, name, address, bytes, site: None, thread: None };
                    self.objects.add(process, new, time, &mut self.sink);
                }
            }
        }
    }

    /// What a new mapping of the program is that processes can share. If that was asked shortly before, it is asked again later.
    pub(super) fn memory_at(&mut self, pid: i32, address: u64) -> Memory {
        let now = monotonic_ns();
        if self.activity.looked_up_shared_ns.is_some_and(|last| now < last + BETWEEN_LOOKUPS_NS) {
            return Memory::Unknown;
        }
        self.activity.looked_up_shared_ns = Some(now);
        let mappings = proc::maps::read(&self.scope.root, pid);
        let Some(mapping) = mappings.iter().find(|m| (m.start..m.end).contains(&address)) else { return Memory::Unknown };
        shared_memory(mapping, address).map_or(Memory::Own, Memory::Shared)
    }

    /// Finds out what the mappings of a process are that it can share.
    pub(super) fn find_shared_memory(&mut self, pid: i32) {
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        let mut unknown = process.objects.by_address.iter_mut().filter(|(_, object)| object.memory == Memory::Unknown).peekable();
        if unknown.peek().is_none() {
            return;
        }
        let mappings = proc::maps::read(&self.scope.root, pid);
        for (&address, object) in unknown {
            if let Some(mapping) = mappings.iter().find(|m| (m.start..m.end).contains(&address)) {
                object.found(shared_memory(mapping, address));
            }
        }
    }

    /// As [`Tracker::find_shared_memory`], of all processes.
    pub fn find_all_shared_memory(&mut self) {
        let pids: Vec<i32> = self.processes.live.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.find_shared_memory(pid));
    }

    /// Writes the live objects that have no row yet.
    pub fn write_live_objects(&mut self) {
        for process in self.processes.live.values_mut() {
            Objects::write_live(process, &mut self.sink);
        }
    }
}

/// The memory of a mapping from an address on, if it is shared memory.
fn shared_memory(mapping: &proc::maps::Mapping, address: u64) -> Option<SharedMemory> {
    let offset = mapping.file_offset.saturating_add(address.saturating_sub(mapping.start));
    mapping.is_shared_memory().then(|| SharedMemory { memory: format!("{} {}", mapping.device, mapping.inode), offset })
}
