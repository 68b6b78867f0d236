//! Looks up what no event reports: static arrays in ELF files; mappings, modules and threads in /proc.

use super::Tracker;
use super::modules::UnreadModule;
use super::objects::{NewObject, Objects};
use firsttouch_model::rows::ObjectKind;
use firsttouch_system::procfs;
use std::path::Path;

impl Tracker {
    /// Makes objects of the static arrays of up to `modules` modules that were mapped meanwhile.
    pub fn add_waiting_statics(&mut self, modules: usize) {
        for _ in 0..modules {
            let Some(module) = self.modules.next_unread() else { return };
            self.add_statics(&module);
        }
    }

    #[must_use]
    pub fn has_waiting_statics(&self) -> bool {
        self.modules.has_unread()
    }

    fn add_statics(&mut self, module: &UnreadModule) {
        let path = module.path.as_path();
        let Some(process) = self.processes.live.get_mut(&module.pid) else { return };
        if path.file_name().is_some_and(|name| name == firsttouch_system::preload::unpack::FILE) {
            return;
        }
        let Ok(statics) = firsttouch_symbols::static_objects(path, self.scope.min_size) else { return };
        if statics.objects.is_empty() {
            return;
        }
        // The lowest mapping of the file gives the load address for certain; a record of the executable one nearly always does.
        let lowest = procfs::mappings(&self.scope.root, module.pid)
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
                if process.objects.by_address.contains_key(&address) {
                    continue;
                }
                let declared = statics.declared_at(address.wrapping_sub(bias));
                let site = declared.map(|(file, line)| self.sites.of_declaration(process, address, file, *line, &mut self.sink));
                let (kind, name) = (ObjectKind::Static, Some(name.to_owned()));
                let new = NewObject { kind, call: None, name, address, bytes, site, thread: None };
                self.objects.add(process, new, module.time, &mut self.sink);
            }
        }
    }

    /// Modules and threads of a process that ran before the profile started, or whose events are not reported.
    pub fn scan_process(&mut self, pid: i32, time: u64) {
        for m in procfs::mappings(&self.scope.root, pid) {
            let known = self.processes.live.get(&pid).is_some_and(|p| p.modules.contains_key(&m.start));
            if m.executable && !known && m.name.starts_with('/') {
                self.module(pid, time, m.start, m.end - m.start, m.file_offset, &m.name);
            }
        }
        for tid in procfs::threads(&self.scope.root, pid) {
            self.thread(pid, tid, Some(pid), time);
        }
    }

    /// Objects of processes without an agent: their writable anonymous mappings.
    pub fn refresh_mappings(&mut self, time: u64) {
        for process in self.processes.live.values_mut().filter(|process| !process.has_agent) {
            let maps: Vec<procfs::Mapping> = procfs::mappings(&self.scope.root, process.pid)
                .into_iter()
                .filter(|m| m.writable && m.is_anonymous() && m.end - m.start >= self.scope.min_size)
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
                    let (kind, name) = (ObjectKind::Mapping, Some(m.name).filter(|name| !name.is_empty()));
                    let new = NewObject { kind, call: None, name, address, bytes, site: None, thread: None };
                    self.objects.add(process, new, time, &mut self.sink);
                }
            }
        }
    }

    /// Writes the live objects that have no row yet.
    pub fn write_live_objects(&mut self) {
        for process in self.processes.live.values_mut() {
            Objects::write_live(process, &mut self.sink);
        }
    }
}
