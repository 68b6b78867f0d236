//! Static arrays: objects that no event reports. They are looked up in the ELF files that are mapped.

use super::Tracker;
use super::live_objects::Memory;
use super::modules::UnreadModule;
use super::objects::NewObject;
use super::symbol_reader::read_statics;
use firsttouch_model::rows::ObjectKind;
use firsttouch_symbols::StaticObjects;
use firsttouch_system::proc;
use std::path::Path;

impl Tracker {
    /// Makes objects of the static arrays of a module that was read meanwhile, and begins to read the next one.
    pub fn add_read_statics(&mut self) {
        if !self.modules.reader.is_ready() {
            return;
        }
        if let Some((module, statics)) = self.modules.reader.take() {
            self.add_statics(&module, &statics);
        }
        if let Some(module) = self.next_unread()
            && let Some((module, statics)) = self.modules.reader.begin(module, self.scope.min_size)
        {
            self.add_statics(&module, &statics);
        }
    }

    /// Makes objects of the static arrays of all modules that were mapped meanwhile.
    pub fn add_all_statics(&mut self) {
        if let Some((module, statics)) = self.modules.reader.take() {
            self.add_statics(&module, &statics);
        }
        while let Some(module) = self.next_unread() {
            if let Some(statics) = read_statics(&module.path, self.scope.min_size) {
                self.add_statics(&module, &statics);
            }
        }
    }

    #[must_use]
    pub fn has_waiting_statics(&self) -> bool {
        self.modules.has_unread() || self.modules.reader.is_busy()
    }

    /// The next module of a process that lives. The agent's own library has nothing of the program's.
    fn next_unread(&mut self) -> Option<UnreadModule> {
        let is_wanted = |module: &UnreadModule| {
            let is_agent = module.path.file_name().is_some_and(|name| name == firsttouch_system::preload::unpack::FILE);
            !is_agent && self.processes.live.contains_key(&module.pid)
        };
        std::iter::from_fn(|| self.modules.next_unread()).find(is_wanted)
    }

    fn add_statics(&mut self, module: &UnreadModule, statics: &StaticObjects) {
        let path = module.path.as_path();
        let Some(process) = self.processes.live.get_mut(&module.pid) else { return };
        if statics.objects.is_empty() {
            return;
        }
        // The lowest mapping of the file gives the load address for certain; a record of the executable one nearly always does.
        let lowest = proc::maps::read(&self.scope.root, module.pid)
            .into_iter()
            .filter(|m| Path::new(&m.name) == path)
            .map(|m| (m.start, m.file_offset))
            .min();
        let (start, file_offset) = lowest.unwrap_or((module.start, module.file_offset));
        let Some(bias) = statics.bias(start, file_offset) else { return };
        for object in &statics.objects {
            let base = object.address.wrapping_add(bias);
            let large = |m: &&(String, u64, u64)| m.2 >= self.scope.min_size;
            let parts: Vec<(&str, u64, u64)> = if object.members.iter().any(|m| large(&m)) {
                let members = object.members.iter().filter(large);
                members.map(|(name, offset, bytes)| (name.as_str(), base.wrapping_add(*offset), *bytes)).collect()
            } else {
                vec![(object.name.as_str(), base, object.bytes)]
            };
            for (name, address, bytes) in parts {
                // A mapping that begins with the array was found first: the array takes its place.
                if process.objects.by_address.get(&address).is_some_and(|object| object.kind != ObjectKind::Mapping) {
                    continue;
                }
                let declared = statics.declared_at(address.wrapping_sub(bias));
                let site = declared.map(|(file, line)| self.sites.of_declaration(process, address, file, *line, &mut self.sink));
                let (kind, name) = (ObjectKind::Static, Some(name.to_owned()));
                let new = NewObject { kind, memory: Memory::Own, call: None, name, address, bytes, site, thread: None };
                self.objects.add(process, new, module.time, &mut self.sink);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Sink;
    use crate::track::scope::Scope;
    use firsttouch_profile::Writer;
    use std::hint::black_box;
    use std::sync::atomic::AtomicU8;
    use std::thread::sleep;
    use std::time::Duration;

    static ARRAY: [AtomicU8; 1 << 18] = [const { AtomicU8::new(0) }; 1 << 18];

    fn tracker_of_this_process(directory: &Path) -> (Tracker, i32) {
        let pid = std::process::id().cast_signed();
        let writer = Writer::create(&directory.join("a.ftp")).expect("a profile");
        let mut scope = Scope::of_test("/".into(), pid);
        scope.min_size = 1 << 18;
        let mut tracker = Tracker::new(scope, Sink::new(writer));
        let program = std::env::current_exe().expect("a path");
        let code = proc::maps::read(Path::new("/"), pid).into_iter().find(|m| Path::new(&m.name) == program && m.file_offset > 0);
        let code = code.expect("this program is mapped");
        tracker.module(pid, 1, code.start, code.end - code.start, code.file_offset, &code.name);
        (tracker, pid)
    }

    fn array_is_known(tracker: &Tracker, pid: i32) -> bool {
        let address = black_box(&ARRAY).as_ptr() as u64;
        tracker.processes.live[&pid].objects.by_address.get(&address).is_some_and(|object| object.kind == ObjectKind::Static)
    }

    /// Check that arrays are found while the program runs, and what waits at its end too.
    #[test]
    fn arrays_are_found_meanwhile_and_at_the_end() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (mut tracker, pid) = tracker_of_this_process(directory.path());
        while tracker.has_waiting_statics() {
            tracker.add_read_statics();
            sleep(Duration::from_millis(1));
        }
        assert!(array_is_known(&tracker, pid));
        for begun in [false, true] {
            let (mut tracker, pid) = tracker_of_this_process(directory.path());
            if begun {
                tracker.add_read_statics();
            }
            tracker.add_all_statics();
            assert!(array_is_known(&tracker, pid) && !tracker.has_waiting_statics(), "{begun}");
        }
    }

    /// Check that a program which was replaced while its file was read has no arrays of it.
    #[test]
    fn replaced_programs_have_no_arrays() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (mut tracker, pid) = tracker_of_this_process(directory.path());
        tracker.add_read_statics();
        tracker.modules.forget_unread(pid);
        tracker.add_all_statics();
        assert!(!array_is_known(&tracker, pid));
    }
}
