//! What no event reports, from /proc: modules and threads of a process that was already running; and, without an agent, the mappings that
//! stand for its objects.

use super::Tracker;
use super::agentless::Agentless;
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

    /// Objects of processes without an agent that are so old (ns): their writable anonymous mappings.
    pub fn refresh_mappings(&mut self, time: u64, age_ns: u64) {
        let is_due = |process: &&mut LiveProcess| !process.has_agent && time >= process.executed_ns.saturating_add(age_ns);
        for process in self.processes.live.values_mut().filter(is_due) {
            let maps: Vec<proc::maps::Mapping> = proc::maps::read(&self.scope.root, process.pid)
                .into_iter()
                .filter(|m| m.writable && (m.is_anonymous() || m.is_shared_memory()) && m.end - m.start >= self.scope.min_size)
                .collect();
            let mut gone = Vec::new();
            for (&address, object) in process.objects.by_address.iter_mut().filter(|(_, o)| o.kind == ObjectKind::Mapping) {
                match maps.iter().find(|m| m.start == address) {
                    Some(m) if m.end - m.start != object.bytes => object.resize(m.end - m.start),
                    Some(_) => {}
                    None => gone.push((address, object.bytes)),
                }
            }
            for &(address, _) in &gone {
                self.objects.end(process, address, time, &mut self.sink);
            }
            let known = &mut self.activity.agentless;
            if !self.scope.by_mapping
                && !maps.is_empty()
                && known.as_ref().is_none_or(|known| !known.is_root && process.pid == self.scope.root_pid)
            {
                *known = Some(Agentless::new(&self.scope, process));
            }
            let looked_ns = std::mem::replace(&mut process.mappings_seen_ns, time);
            for m in maps {
                let (address, bytes) = (m.start, m.end - m.start);
                if process.objects.overlapping(address, bytes).is_empty() {
                    let memory = shared_memory(&m, address, None).map_or(Memory::Own, Memory::Shared);
                    let (kind, name) = (ObjectKind::Mapping, Some(m.name).filter(|name| !name.is_empty()));
                    let new = NewObject { kind, memory, call: None, name, address, bytes, site: None, thread: None };
                    let born_ns = birth(address, bytes, &gone, (looked_ns, time));
                    self.objects.add(process, new, born_ns, &mut self.sink);
                }
            }
        }
    }

    /// Shared memory that the agent did not see being mapped: a library that puts its own code in the place of `mmap` (UCX, which MPICH uses for
    /// its messages) hides the calls. Looks ever more rarely. The agent's record of a call may still be on its way: what a look finds becomes an object
    /// when the next one finds it again.
    pub fn find_hidden_mappings(&mut self, time: u64) {
        for process in self.processes.live.values_mut().filter(|process| process.has_agent && time >= process.hidden_looks.next()) {
            let is_large = |m: &proc::maps::Mapping| m.end - m.start >= self.scope.min_size;
            let found: Vec<proc::maps::Mapping> = proc::maps::read(&self.scope.root, process.pid)
                .into_iter()
                .filter(|m| m.writable && m.is_shared_memory() && is_large(m))
                .filter(|m| process.objects.overlapping(m.start, m.end - m.start).is_empty())
                .collect();
            for (m, since_ns) in process.hidden_looks.looked(found, time, process.executed_ns) {
                let (address, bytes) = (m.start, m.end - m.start);
                let memory = shared_memory(&m, address, None).map_or(Memory::Own, Memory::Shared);
                let (kind, name) = (ObjectKind::Mapping, Some(m.name));
                let new = NewObject { kind, memory, call: None, name, address, bytes, site: None, thread: None };
                self.objects.add(process, new, since_ns.min(time), &mut self.sink);
            }
        }
    }

    /// What a new mapping of the program is that processes can share. If that was asked shortly before, it is asked again later.
    pub(super) fn memory_at(&mut self, pid: i32, address: u64, present: Option<u32>) -> Memory {
        let now = monotonic_ns();
        if self.activity.looked_up_shared_ns.is_some_and(|last| now < last + BETWEEN_LOOKUPS_NS) {
            return Memory::Unknown { present };
        }
        self.activity.looked_up_shared_ns = Some(now);
        let mappings = proc::maps::read(&self.scope.root, pid);
        let Some(mapping) = mappings.iter().find(|m| (m.start..m.end).contains(&address)) else {
            return Memory::Unknown { present };
        };
        shared_memory(mapping, address, present).map_or(Memory::Own, Memory::Shared)
    }

    /// Finds out what the mappings of a process are that it can share.
    pub(super) fn find_shared_memory(&mut self, pid: i32) {
        let Some(process) = self.processes.live.get_mut(&pid) else { return };
        let mut unknown = process.objects.by_address.iter_mut().filter(|(_, object)| object.memory.is_unknown()).peekable();
        if unknown.peek().is_none() {
            return;
        }
        let mappings = proc::maps::read(&self.scope.root, pid);
        for (&address, object) in unknown {
            if let Some(mapping) = mappings.iter().find(|m| (m.start..m.end).contains(&address)) {
                let present = object.memory.present();
                object.found(shared_memory(mapping, address, present));
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

    /// Writes at most so many of them, of one process and from an address on. Returns the address to go on with, `None` at the end.
    pub fn write_some_live_objects(&mut self, pid: i32, address: u64, most: usize) -> Option<u64> {
        Objects::write_some(self.processes.live.get_mut(&pid)?, address, most, &mut self.sink)
    }
}

/// When a process was last searched for hidden mappings, and what was found once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HiddenLooks {
    last_ns: u64,
    next_ns: u64,
    /// Mappings that the last look found and none before, with the time of the look that did not find them.
    unconfirmed: Vec<(proc::maps::Mapping, u64)>,
}

impl HiddenLooks {
    const FIRST_NS: u64 = 100_000_000;
    const MOST_NS: u64 = 2_000_000_000;
    /// The agent writes its record of a call when the call returns.
    const CONFIRM_NS: u64 = 50_000_000;

    pub fn since(executed_ns: u64) -> Self {
        Self { last_ns: executed_ns, next_ns: executed_ns.saturating_add(Self::FIRST_NS), unconfirmed: Vec::new() }
    }

    fn next(&self) -> u64 {
        self.next_ns
    }

    /// Notes what a look found. Returns the mappings that the look before found too, with the time since which they may exist. The next look follows when
    /// the process is twice as old, or after two seconds; soon, if this one found some for the first time and was not itself such an early look: a program
    /// that maps memory all the time is not read all the time.
    fn looked(&mut self, found: Vec<proc::maps::Mapping>, time: u64, executed_ns: u64) -> Vec<(proc::maps::Mapping, u64)> {
        let before = std::mem::take(&mut self.unconfirmed);
        let last_ns = std::mem::replace(&mut self.last_ns, time);
        let (is_early, mut confirmed) = (!before.is_empty(), Vec::new());
        for mapping in found {
            // (Its file may have been removed meanwhile, which changes the name.)
            let of = |m: &proc::maps::Mapping| (m.start, m.end, m.inode);
            match before.iter().find(|(other, _)| of(other) == of(&mapping)) {
                Some((_, since_ns)) => confirmed.push((mapping, *since_ns)),
                None => self.unconfirmed.push((mapping, last_ns)),
            }
        }
        let age = time.saturating_sub(executed_ns).clamp(Self::FIRST_NS, Self::MOST_NS);
        self.next_ns = time.saturating_add(if self.unconfirmed.is_empty() || is_early { age } else { Self::CONFIRM_NS });
        confirmed
    }
}

/// When a mapping was made that this look found and the last one did not: any time between. The touches since the last look are its own, so
/// that is its birth. If a part of another mapping lay there (`gone`: addresses and sizes), some of these touches may be that one's, and its birth is now.
/// A mapping that the new one contains was not replaced: the kernel merges neighbours.
fn birth(address: u64, bytes: u64, gone: &[(u64, u64)], (last_look, now): (u64, u64)) -> u64 {
    let end = address.saturating_add(bytes);
    let replaces = |&(start, bytes): &(u64, u64)| {
        let other_end = start.saturating_add(bytes);
        start < end && address < other_end && (start < address || other_end > end)
    };
    if gone.iter().any(replaces) { now } else { last_look.min(now) }
}

/// The memory of a mapping from an address on, if it is shared memory.
fn shared_memory(mapping: &proc::maps::Mapping, address: u64, present: Option<u32>) -> Option<SharedMemory> {
    let offset = mapping.file_offset.saturating_add(address.saturating_sub(mapping.start));
    mapping.is_shared_memory().then(|| SharedMemory { memory: format!("{} {}", mapping.device, mapping.inode), offset, present })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::records::{AgentEvent, AgentRecord};
    use crate::perf::records::TaskEvent;
    use crate::sink::Sink;
    use crate::track::scope::Scope;
    use firsttouch_profile::{Writer, open};
    use std::fs;
    use std::path::Path;

    const MAPS: &str = "00010000-00014000 rw-s 00000000 00:01 4096 /dev/zero (deleted)\n\
                        00020000-00028000 rw-s 00002000 00:01 77 /memfd:a (deleted)\n\
                        00030000-00034000 rw-s 00000000 08:02 5 /var/lib/db\n\
                        00040000-00044000 rw-p 00000000 00:00 0 \n\
                        00050000-00054000 r-xs 00000000 00:01 4096 /dev/zero (deleted)\n";

    fn tracker(root: &Path) -> Tracker {
        for pid in [10, 20] {
            let folder = root.join(format!("proc/{pid}"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("maps"), MAPS).expect("a file");
        }
        let writer = Writer::create(&root.join("a.ftp")).expect("a profile");
        Tracker::new(Scope { follow: true, ..Scope::of_test(root.to_owned(), 10) }, Sink::new(writer))
    }

    /// Object id -> memory and offset.
    fn rows(tracker: &mut Tracker, root: &Path) -> Vec<(ObjectKind, u64, String, u64)> {
        tracker.finish();
        tracker.sink.flush();
        let profile = open(&root.join("a.ftp")).expect("a profile");
        let row = |object: &firsttouch_model::rows::Object| {
            let shared = profile.shared_memory.get(&object.id).cloned();
            let (memory, offset) = shared.map_or_else(Default::default, |shared| (shared.memory, shared.offset));
            (object.kind, object.address, memory, offset)
        };
        profile.objects.iter().map(row).collect()
    }

    /// Check that live objects are written some at a time, each once, and that policies are read for some objects at a time, with rows for all that
    /// have another policy than the default.
    #[test]
    fn many_objects_are_written_some_at_a_time() {
        const COUNT: u64 = 40_000;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut tracker = tracker(directory.path());
        fs::write(directory.path().join("proc/10/numa_maps"), "00100000 default anon=1 N0=1\n20000000 interleave:0-1 anon=1 N0=1\n")
            .expect("a file");
        tracker.process(10, 1);
        let addresses = (0..COUNT).map(|i| 0x10_0000 + i * 0x4000);
        for address in addresses {
            let event = AgentEvent::Map {
                call: "mmap",
                file: false,
                shared: false,
                present: None,
                populated: false,
                address,
                bytes: 0x4000,
                stack: 0,
                python: 0,
            };
            tracker.agent(AgentRecord { pid: 10, tid: 10, time: 2, event });
        }
        assert!(tracker.read_policies(u64::MAX / 2), "some are left");
        assert!(!tracker.read_policies(u64::MAX / 2));
        let (mut next, mut calls) = (Some(0), 0);
        while let Some(address) = next {
            next = tracker.write_some_live_objects(10, address, 15_000);
            calls += 1;
        }
        assert_eq!((calls, tracker.write_some_live_objects(10, 0, 0)), (3, None), "all are written");
        assert_eq!(rows(&mut tracker, directory.path()).len() as u64, COUNT);
        let profile = open(&directory.path().join("a.ftp")).expect("a profile");
        let interleaved = profile.objects.iter().filter(|object| object.address + object.bytes / 2 >= 0x2000_0000);
        assert!(interleaved.clone().count() > 5000);
        assert!(interleaved.clone().all(|object| profile.policies.get(&object.id).is_some_and(|policy| policy.is_interleaved())));
        assert_eq!(profile.policies.len(), interleaved.count() + 20_000, "the default has rows for the first objects only");
    }

    /// Check that a mapping which was found before the static array in it was known is no second object, also where the array begins later, and that
    /// shared memory there stays one.
    #[test]
    fn static_arrays_take_the_place_of_their_mapping() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut tracker = tracker(directory.path());
        tracker.process(10, 1);
        tracker.refresh_mappings(1_000_000_000, 0);
        let process = tracker.processes.live.get_mut(&10).expect("a process");
        for (address, time) in [(0x41000, 1), (0x11000, 2)] {
            let (kind, name) = (ObjectKind::Static, Some("field".to_owned()));
            tracker.objects.replaced_by_static(process, address, 0x2000, time);
            let new = NewObject { kind, memory: Memory::Own, call: None, name, address, bytes: 0x2000, site: None, thread: None };
            tracker.objects.add(process, new, time, &mut tracker.sink);
        }
        let mut found: Vec<(ObjectKind, u64)> =
            rows(&mut tracker, directory.path()).into_iter().map(|(kind, address, ..)| (kind, address)).collect();
        found.sort_by_key(|row| row.1);
        let (mapping, array) = (ObjectKind::Mapping, ObjectKind::Static);
        assert_eq!(found, [(mapping, 0x10000), (array, 0x11000), (mapping, 0x20000), (array, 0x41000)]);
    }

    /// Check that shared mappings of the program are identified, at once or later, that a memory file is memory and a file on a disk is not,
    /// and that a forked child has the same memory.
    #[test]
    fn shared_mappings_are_identified() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut tracker = tracker(directory.path());
        tracker.process(10, 1);
        for (file, shared, address) in [(false, true, 0x10000), (true, true, 0x21000), (true, true, 0x30000), (false, false, 0x40000)] {
            let event = AgentEvent::Map {
                call: "mmap",
                file,
                shared,
                present: shared.then_some(70),
                populated: false,
                address,
                bytes: 0x4000,
                stack: 0,
                python: 0,
            };
            tracker.agent(AgentRecord { pid: 10, tid: 10, time: 2, event });
        }
        tracker.task(TaskEvent::Fork { time: 3, pid: 20, parent_pid: 10, tid: 20, parent_tid: 10 });
        let own = [
            (ObjectKind::Anonymous, 0x10000, "00:01 4096".to_owned(), 0),
            (ObjectKind::Anonymous, 0x21000, "00:01 77".to_owned(), 0x3000),
            (ObjectKind::File, 0x30000, String::new(), 0),
            (ObjectKind::Anonymous, 0x40000, String::new(), 0),
        ];
        assert_eq!(rows(&mut tracker, directory.path()), [own.clone(), own].concat());
    }

    /// Check that writable shared memory of a program without the agent is an object, that a file is not, and that the rest of a shared mapping
    /// keeps its place in the memory when a part of it is unmapped.
    #[test]
    fn shared_mappings_without_an_agent() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut tracker = tracker(directory.path());
        tracker.process(10, 1);
        tracker.refresh_mappings(2, 0);
        let starts: Vec<u64> = tracker.processes.live[&10].objects.by_address.keys().copied().collect();
        assert_eq!(starts, [0x10000, 0x20000, 0x40000]);
        let memory = tracker.processes.live[&10].objects.by_address[&0x20000].memory.clone();
        let shared = |offset| Memory::Shared(SharedMemory { memory: "00:01 77".to_owned(), offset, present: None });
        assert_eq!((memory.from(0x1000), memory), (shared(0x3000), shared(0x2000)));
    }
    /// Check that shared memory is found that a program with the agent mapped unseen, once, and not again what the agent saw; looks become rarer.
    #[test]
    fn hidden_shared_mappings_are_found() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut tracker = tracker(directory.path());
        tracker.process(10, 1);
        tracker.agent(AgentRecord { pid: 10, tid: 10, time: 2, event: AgentEvent::Attach });
        let event = AgentEvent::Map {
            call: "mmap",
            file: true,
            shared: true,
            present: None,
            populated: false,
            address: 0x20000,
            bytes: 0x8000,
            stack: 0,
            python: 0,
        };
        let objects = |tracker: &Tracker| {
            tracker.processes.live[&10].objects.by_address.iter().map(|(at, o)| (*at, o.kind, o.born_ns)).collect::<Vec<_>>()
        };
        let next = |tracker: &Tracker| tracker.processes.live[&10].hidden_looks.next();
        tracker.find_hidden_mappings(50_000_000);
        assert_eq!(next(&tracker), 100_000_001, "too early");
        tracker.find_hidden_mappings(150_000_000);
        assert_eq!(objects(&tracker), [], "the record of a call may follow");
        tracker.agent(AgentRecord { pid: 10, tid: 10, time: 149_000_000, event });
        tracker.find_hidden_mappings(200_000_000);
        let found = [(0x10000, ObjectKind::Mapping, 1), (0x20000, ObjectKind::Anonymous, 149_000_000)];
        assert_eq!(objects(&tracker), found, "not files, private memory or code");
        tracker.find_hidden_mappings(400_000_000);
        assert_eq!(objects(&tracker), found);
        assert_eq!(next(&tracker), 800_000_000 - 1);
    }

    /// Check that a program with new mappings in every look is not read more often than twice between two regular looks.
    #[test]
    fn new_mappings_cause_one_early_look() {
        let mapping = |start: u64| proc::maps::Mapping {
            start,
            end: start + 0x1000,
            writable: true,
            executable: false,
            shared: true,
            file_offset: 0,
            device: String::new(),
            inode: start,
            name: String::new(),
        };
        let (mut looks, mut times) = (HiddenLooks::since(0), Vec::new());
        while times.len() < 6 {
            let time = looks.next();
            times.push(time / 1_000_000);
            assert_eq!(looks.looked(vec![mapping(time)], time, 0), []);
        }
        assert_eq!(times, [100, 150, 300, 600, 1200, 2400]);
    }

    /// Check that a mapping without an agent is born when it was last looked for in vain, and now if it took the place of a part of another.
    #[test]
    fn births_lie_between_two_looks() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut tracker = tracker(directory.path());
        tracker.process(10, 5);
        let maps = directory.path().join("proc/10/maps");
        let mut look = |time, text: &str| {
            fs::write(&maps, text).expect("a file");
            tracker.refresh_mappings(time, 0);
            let born = |(&address, object): (&u64, &crate::track::live_objects::LiveObject)| (address, object.born_ns);
            tracker.processes.live[&10].objects.by_address.iter().map(born).collect::<Vec<_>>()
        };
        let map = |from: u64, to: u64| format!("{from:08x}-{to:08x} rw-p 00000000 00:00 0 \n");
        assert_eq!(look(20, &map(0x40000, 0x44000)), [(0x40000, 5)], "since the program began");
        assert_eq!(look(30, &(map(0x40000, 0x44000) + &map(0x60000, 0x64000))), [(0x40000, 5), (0x60000, 20)]);
        assert_eq!(look(40, &map(0x3c000, 0x44000)), [(0x3c000, 30)], "neighbours that the kernel merged");
        assert_eq!(look(50, &map(0x40000, 0x48000)), [(0x40000, 50)], "in the place of another");
    }
}
