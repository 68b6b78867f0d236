//! Static arrays: objects that no event reports. They are looked up in the ELF files that are mapped.

use super::Tracker;
use super::live_objects::Memory;
use super::modules::UnreadModule;
use super::objects::NewObject;
use firsttouch_model::rows::ObjectKind;
use firsttouch_system::proc;
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
                self.objects.replaced_by_static(process, address, bytes, module.time);
                let declared = statics.declared_at(address.wrapping_sub(bias));
                let site = declared.map(|(file, line)| self.sites.of_declaration(process, address, file, *line, &mut self.sink));
                let (kind, name) = (ObjectKind::Static, Some(name.to_owned()));
                let new = NewObject { kind, memory: Memory::Own, call: None, name, address, bytes, site, thread: None };
                self.objects.add(process, new, module.time, &mut self.sink);
            }
        }
    }
}
