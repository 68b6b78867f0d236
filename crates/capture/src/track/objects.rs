//! Live objects by address, and what becomes of them.

use super::Tracker;
use firsttouch_model::rows::{FoldedObjects, Id, Object, ObjectKind, Release};
use firsttouch_system::proc;
use std::collections::BTreeMap;
use std::path::Path;

/// Releases (madvise) written out one by one.
const RELEASES_KEPT: u64 = 100_000;

/// An object that exists now.
#[derive(Clone, Debug)]
pub struct LiveObject {
    pub id: Id,
    pub kind: ObjectKind,
    pub call: Option<&'static str>,
    pub name: Option<String>,
    pub bytes: u64,
    pub born_ns: u64,
    pub site: Option<Id>,
    pub thread: Option<Id>,
    /// A window was held on it, or pages of it were queried.
    pub has_evidence: bool,
    /// Sweeps of page queries made so far.
    pub page_sweeps: u32,
    /// When the same pages of it are asked about again, and how long after that the next time.
    pub revisit: Option<(u64, u64)>,
    /// Its memory policy as last read.
    pub policy: Option<String>,
    pub(super) written: bool,
}

impl LiveObject {
    /// What objects have in common that a program treats alike: the place that makes them. One without a place is alone.
    #[must_use]
    pub fn kin(&self) -> Id {
        self.site.unwrap_or(-1 - self.id)
    }

    /// Memory whose accesses matter here: files and stacks are named, but not watched.
    #[must_use]
    pub fn watchable(&self) -> bool {
        matches!(self.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::Static | ObjectKind::Mapping)
    }
}

/// What is known of an object at its birth.
pub(super) struct NewObject {
    pub kind: ObjectKind,
    pub call: Option<&'static str>,
    pub name: Option<String>,
    pub address: u64,
    pub bytes: u64,
    pub site: Option<Id>,
    pub thread: Option<Id>,
}

/// The live objects of one process, by address, not overlapping.
#[derive(Default)]
pub struct LiveObjects {
    pub by_address: BTreeMap<u64, LiveObject>,
}

impl LiveObjects {
    /// Starts of the objects that overlap a range.
    pub(super) fn overlapping(&self, address: u64, bytes: u64) -> Vec<u64> {
        let end = address.saturating_add(bytes);
        let mut starts: Vec<u64> = self.by_address.range(address..end).map(|(&a, _)| a).collect();
        if let Some((&before, object)) = self.by_address.range(..address).next_back()
            && before.saturating_add(object.bytes) > address
        {
            starts.push(before);
        }
        starts
    }

    /// Copies for a forked child, with identities of their own.
    pub(super) fn inherit(&self, next_id: &mut i64, time: u64) -> Self {
        let by_address = self
            .by_address
            .iter()
            .map(|(&address, object)| {
                *next_id += 1;
                let copy = LiveObject {
                    id: *next_id,
                    born_ns: time,
                    has_evidence: false,
                    page_sweeps: 0,
                    revisit: None,
                    policy: None,
                    written: false,
                    ..object.clone()
                };
                (address, copy)
            })
            .collect();
        Self { by_address }
    }
}

impl Tracker {
    pub(super) fn allocated(&mut self, pid: i32, new: NewObject, time: u64) {
        let Some(process) = self.processes.get(&pid) else { return };
        if new.bytes == 0 {
            return;
        }
        // An allocation inside a mapping of the program's own: the mapping is an allocator's arena, the block is the object.
        // Anything else in the way was released without our seeing it.
        for start in process.objects.overlapping(new.address, new.bytes) {
            self.end_object(pid, start, time);
        }
        self.objects_seen += 1;
        let object = LiveObject {
            id: self.objects_seen,
            kind: new.kind,
            call: new.call,
            name: new.name,
            bytes: new.bytes,
            born_ns: time,
            site: new.site,
            thread: new.thread,
            has_evidence: false,
            page_sweeps: 0,
            revisit: None,
            policy: None,
            written: false,
        };
        if let Some(process) = self.processes.get_mut(&pid) {
            process.objects.by_address.insert(new.address, object);
        }
    }

    pub(super) fn freed(&mut self, pid: i32, address: u64, time: u64) {
        self.end_object(pid, address, time);
    }

    pub(super) fn unmapped(&mut self, pid: i32, address: u64, bytes: u64, advise: bool, time: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.touches.remove(address, bytes);
        if advise {
            // The object lives on, its pages are fresh.
            let row = Release { process: process.id, time_ns: time, address, bytes };
            self.releases += u64::from(!process.objects.overlapping(address, bytes).is_empty());
            if self.releases > RELEASES_KEPT {
                self.lose("agent", "only the first 100,000 releases of memory (madvise) are kept", 1);
            } else {
                self.sink.write(|w| w.release(&row));
            }
            return;
        }
        for start in process.objects.overlapping(address, bytes) {
            self.cut(pid, start, (address, address.saturating_add(bytes)), time);
        }
    }

    /// A range of an object is gone. What is left of a mapping lives on: programs give back the ends of one that they align.
    fn cut(&mut self, pid: i32, start: u64, (from, to): (u64, u64), time: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let Some(object) = process.objects.by_address.get(&start) else { return };
        let end = start.saturating_add(object.bytes);
        let mut left = [(start, from.saturating_sub(start)), (to, end.saturating_sub(to))];
        left.sort_by_key(|piece| std::cmp::Reverse(piece.1));
        let [(address, bytes), (other, other_bytes)] = left;
        if object.kind != ObjectKind::Anonymous || bytes < self.scope.min_size.max(1) {
            return self.end_object(pid, start, time);
        }
        let Some(mut object) = process.objects.by_address.remove(&start) else { return };
        object.bytes = bytes;
        object.written = false;
        let (kind, call, name, site, thread) = (object.kind, object.call, object.name.clone(), object.site, object.thread);
        process.objects.by_address.insert(address, object);
        if other_bytes >= self.scope.min_size.max(1) {
            self.allocated(pid, NewObject { kind, call, name, address: other, bytes: other_bytes, site, thread }, time);
        }
    }

    /// Ends all objects of a process that `which` picks.
    pub(super) fn end_objects(&mut self, pid: i32, time: u64, which: impl Fn(&LiveObject) -> bool) {
        let Some(process) = self.processes.get(&pid) else { return };
        let starts: Vec<u64> = process.objects.by_address.iter().filter(|(_, o)| which(o)).map(|(&a, _)| a).collect();
        for start in starts {
            self.end_object(pid, start, time);
        }
    }

    /// An object dies: with evidence it becomes a row, without it is folded into its site's totals.
    fn end_object(&mut self, pid: i32, address: u64, time: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let Some(object) = process.objects.by_address.remove(&address) else { return };
        let process_id = process.id;
        let evidence = object.has_evidence || object.written || process.touches.any_in(address, object.bytes);
        self.deaths.insert(object.id, time);
        match (evidence, object.site) {
            // A static object's site is its declaration, and not shared.
            (false, Some(site)) if object.kind != ObjectKind::Static => {
                let call = object.call.unwrap_or("unknown");
                let row = self.sites.folded.entry((site, call, object.bytes)).or_insert_with(|| FoldedObjects {
                    site,
                    call: call.to_owned(),
                    bytes: object.bytes,
                    count: 0,
                    word_ns: 0.0,
                });
                row.count += 1;
                row.word_ns += (object.bytes / 8) as f64 * time.saturating_sub(object.born_ns.max(self.watched_from_ns)) as f64;
            }
            _ => self.write_object(process_id, address, &object, Some(time)),
        }
    }

    fn write_object(&mut self, process: Id, address: u64, object: &LiveObject, died_ns: Option<u64>) {
        let row = Object {
            id: object.id,
            process,
            kind: object.kind,
            call: object.call.map(str::to_owned),
            name: object.name.clone(),
            address,
            bytes: object.bytes,
            born_ns: object.born_ns,
            died_ns,
            site: object.site,
            thread: object.thread,
        };
        self.sink.write(|w| w.object(&row));
    }

    /// Writes the live objects (again), so that a profile cut short knows them.
    pub fn write_live_objects(&mut self, pid: i32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let id = process.id;
        let mut rows = Vec::new();
        for (&address, object) in &mut process.objects.by_address {
            if !object.written {
                object.written = true;
                rows.push((address, object.clone()));
            }
        }
        for (address, object) in rows {
            self.write_object(id, address, &object, None);
        }
    }

    /// The agent is in this program: its heap objects start from nothing.
    pub(super) fn agent_attached(&mut self, pid: i32, time: u64) {
        self.end_objects(pid, time, |o| {
            matches!(o.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::File | ObjectKind::Mapping)
        });
        if let Some(process) = self.processes.get_mut(&pid) {
            process.has_agent = true;
        }
    }

    /// The static arrays of a module that was just mapped.
    pub(super) fn add_statics(&mut self, pid: i32, time: u64, path: &Path, start: u64, file_offset: u64) {
        if path.file_name().is_some_and(|name| name == firsttouch_system::preload::unpack::FILE) {
            return;
        }
        let Ok(statics) = firsttouch_symbols::static_objects(path, self.scope.min_size) else { return };
        if statics.objects.is_empty() {
            return;
        }
        // The lowest mapping of the file tells the load address without doubt; a record of the executable one nearly always does.
        let lowest = proc::maps::read(&self.scope.root, pid)
            .into_iter()
            .filter(|m| Path::new(&m.name) == path)
            .map(|m| (m.start, m.file_offset))
            .min();
        let (start, file_offset) = lowest.unwrap_or((start, file_offset));
        let Some(bias) = statics.bias(start, file_offset) else { return };
        for object in &statics.objects {
            let base = object.address.wrapping_add(bias);
            let large = |m: &&(String, u64, u64)| m.2 >= self.scope.min_size;
            let parts: Vec<(String, u64, u64)> = if object.members.iter().any(|m| large(&m)) {
                object
                    .members
                    .iter()
                    .filter(large)
                    .map(|(name, offset, bytes)| (name.clone(), base.wrapping_add(*offset), *bytes))
                    .collect()
            } else {
                vec![(object.name.clone(), base, object.bytes)]
            };
            for (name, address, bytes) in parts {
                let known = self.processes.get(&pid).is_some_and(|p| p.objects.by_address.contains_key(&address));
                if !known {
                    let site = self.processes.get(&pid).and_then(|process| {
                        let (file, line) = statics.declared_at(address.wrapping_sub(bias))?;
                        Some(self.sites.of_declaration(process, address, file, *line, &mut self.sink))
                    });
                    let new = NewObject { kind: ObjectKind::Static, call: None, name: Some(name), address, bytes, site, thread: None };
                    self.allocated(pid, new, time);
                }
            }
        }
    }

    /// Objects of a process without an agent: its writable anonymous mappings.
    pub fn refresh_mappings(&mut self, pid: i32, time: u64) {
        let maps: Vec<proc::maps::Mapping> = proc::maps::read(&self.scope.root, pid)
            .into_iter()
            .filter(|m| m.writable && m.is_anonymous() && m.end - m.start >= self.scope.min_size)
            .collect();
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let mut gone = Vec::new();
        for (&address, object) in process.objects.by_address.iter_mut().filter(|(_, o)| o.kind == ObjectKind::Mapping) {
            match maps.iter().find(|m| m.start == address) {
                Some(m) if m.end - m.start != object.bytes => {
                    object.bytes = m.end - m.start;
                    object.written = false;
                }
                Some(_) => {}
                None => gone.push(address),
            }
        }
        for address in gone {
            self.end_object(pid, address, time);
        }
        for m in maps {
            let known = self.processes.get(&pid).is_some_and(|p| !p.objects.overlapping(m.start, m.end - m.start).is_empty());
            if !known {
                let name = if m.name.is_empty() { None } else { Some(m.name) };
                let new = NewObject {
                    kind: ObjectKind::Mapping,
                    call: None,
                    name,
                    address: m.start,
                    bytes: m.end - m.start,
                    site: None,
                    thread: None,
                };
                self.allocated(pid, new, time);
            }
        }
    }
}
