//! Births and deaths of objects, and the rows they become.

use super::live_objects::{LiveObject, LiveObjects, Memory};
use super::processes::LiveProcess;
use crate::sink::Sink;
use firsttouch_model::rows::{FoldedObjects, Id, ObjectKind, Release};
use hashbrown::HashMap;

/// Releases (madvise) written one by one.
const RELEASES_KEPT: u64 = 100_000;

/// Births of large objects that are kept until they are asked for, and the least size of these.
const BIRTHS_KEPT: usize = 1_000;
pub const LARGE_BYTES: u64 = 1 << 20;

/// Where to find a new object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    pub pid: i32,
    pub address: u64,
    pub object: Id,
}

/// An object at its birth.
pub(super) struct NewObject {
    pub kind: ObjectKind,
    pub memory: Memory,
    pub call: Option<&'static str>,
    pub name: Option<String>,
    pub address: u64,
    pub bytes: u64,
    pub site: Option<Id>,
    pub thread: Option<Id>,
}

/// The objects of all processes, as far as they are not of one process: ids, deaths, and the rows they become.
pub struct Objects {
    min_size: u64,
    seen: i64,
    releases: u64,
    /// When the sampling of accesses started.
    pub sampled_from_ns: u64,
    /// The first touches of new memory are found by looks at which pages are present.
    pub follows_pages: bool,
    /// The large objects of memory that may be new, born since somebody asked.
    births: Vec<Birth>,
    /// Deaths since the windows on objects were last closed: object -> time.
    pub deaths: HashMap<Id, u64>,
    /// Objects without evidence, by (site, call, bytes).
    folded: HashMap<(Id, &'static str, u64), FoldedObjects>,
}

impl Objects {
    pub(super) fn new(min_size: u64) -> Self {
        Self {
            min_size,
            seen: 0,
            releases: 0,
            sampled_from_ns: u64::MAX,
            follows_pages: false,
            births: Vec::new(),
            deaths: HashMap::new(),
            folded: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, process: &mut LiveProcess, new: NewObject, time: u64, sink: &mut Sink) {
        if new.bytes == 0 {
            return;
        }
        // An allocation inside a mapping of the program's own: the mapping is an allocator's arena, the block is the object.
        // Any other object in this range was released without a record.
        for start in process.objects.overlapping(new.address, new.bytes) {
            self.end(process, start, time, sink);
        }
        self.seen += 1;
        let object = LiveObject {
            id: self.seen,
            kind: new.kind,
            memory: new.memory,
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
        if new.bytes >= LARGE_BYTES
            && matches!(new.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::Static)
            && self.births.len() < BIRTHS_KEPT
        {
            self.births.push(Birth { pid: process.pid, address: new.address, object: object.id });
        }
        let is_new = matches!(new.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::Static) && object.memory == Memory::Own;
        if self.follows_pages && is_new {
            process.unplaced.watch_object(new.address, new.bytes, time);
        }
        process.objects.by_address.insert(new.address, object);
    }

    /// The large objects that were born since the last call.
    pub fn take_births(&mut self) -> Vec<Birth> {
        std::mem::take(&mut self.births)
    }

    /// Copies of a parent's objects for a forked child, with their own ids.
    pub(super) fn inherit(&mut self, parent: &LiveObjects, time: u64) -> LiveObjects {
        let copy = |(&address, object): (&u64, &LiveObject)| {
            self.seen += 1;
            let copy = LiveObject {
                id: self.seen,
                born_ns: time,
                has_evidence: false,
                page_sweeps: 0,
                revisit: None,
                policy: None,
                written: false,
                ..object.clone()
            };
            (address, copy)
        };
        LiveObjects { by_address: parent.by_address.iter().map(copy).collect() }
    }

    /// A range was unmapped, or (`advise`) its pages were given back.
    pub(super) fn unmapped(&mut self, process: &mut LiveProcess, address: u64, bytes: u64, advise: bool, time: u64, sink: &mut Sink) {
        process.touched.remove(address, bytes);
        if advise {
            // The object lives on, its pages are fresh.
            let row = Release { process: process.id, time_ns: time, address, bytes };
            let is_of_objects = !process.objects.overlapping(address, bytes).is_empty();
            self.releases += u64::from(is_of_objects);
            if self.follows_pages && is_of_objects {
                process.unplaced.watch(address, bytes, time);
            }
            if self.releases > RELEASES_KEPT {
                sink.lose("agent", "only the first 100,000 releases of memory (madvise) are kept", 1);
            } else {
                sink.write(|w| w.release(&row));
            }
            return;
        }
        process.unplaced.forget(address, bytes);
        for start in process.objects.overlapping(address, bytes) {
            self.cut(process, start, (address, address.saturating_add(bytes)), time, sink);
        }
    }

    /// A range of an object was unmapped. The rest of a mapping lives on: programs give back both ends of a mapping to align it.
    fn cut(&mut self, process: &mut LiveProcess, start: u64, (from, to): (u64, u64), time: u64, sink: &mut Sink) {
        let Some(object) = process.objects.by_address.get(&start) else { return };
        let end = start.saturating_add(object.bytes);
        let mut left = [(start, from.saturating_sub(start)), (to, end.saturating_sub(to))];
        left.sort_by_key(|piece| std::cmp::Reverse(piece.1));
        let [(address, bytes), (other, other_bytes)] = left;
        if object.kind != ObjectKind::Anonymous || bytes < self.min_size.max(1) {
            return self.end(process, start, time, sink);
        }
        let Some(mut object) = process.objects.by_address.remove(&start) else { return };
        object.resize(bytes);
        let (kind, call, name, site, thread) = (object.kind, object.call, object.name.clone(), object.site, object.thread);
        let memory = object.memory.from(other.saturating_sub(start));
        object.memory = object.memory.from(address - start);
        process.objects.by_address.insert(address, object);
        if other_bytes >= self.min_size.max(1) {
            self.add(process, NewObject { kind, memory, call, name, address: other, bytes: other_bytes, site, thread }, time, sink);
        }
    }

    /// Ends all objects of a process that `which` picks.
    pub(super) fn end_all(&mut self, process: &mut LiveProcess, time: u64, sink: &mut Sink, which: impl Fn(&LiveObject) -> bool) {
        let starts: Vec<u64> = process.objects.by_address.iter().filter(|(_, o)| which(o)).map(|(&a, _)| a).collect();
        for start in starts {
            self.end(process, start, time, sink);
        }
    }

    /// An object dies. It becomes a row if there is evidence of it, and else is added to the totals of its site.
    pub(super) fn end(&mut self, process: &mut LiveProcess, address: u64, time: u64, sink: &mut Sink) {
        let Some(object) = process.objects.by_address.remove(&address) else { return };
        match object.kind {
            ObjectKind::Heap => process.unplaced.freed(address, object.bytes),
            _ => process.unplaced.forget(address, object.bytes),
        }
        let evidence = object.has_evidence || object.written || process.touched.any_in(address, object.bytes);
        self.deaths.insert(object.id, time);
        match (evidence, object.site) {
            // A static object's site is its declaration, and not shared.
            (false, Some(site)) if object.kind != ObjectKind::Static => {
                let call = object.call.unwrap_or("unknown");
                let row = self.folded.entry((site, call, object.bytes)).or_insert_with(|| FoldedObjects {
                    site,
                    call: call.to_owned(),
                    bytes: object.bytes,
                    count: 0,
                    word_ns: 0.0,
                });
                row.count += 1;
                row.word_ns += (object.bytes / 8) as f64 * time.saturating_sub(object.born_ns.max(self.sampled_from_ns)) as f64;
            }
            _ => object.write(process.id, address, Some(time), sink),
        }
    }

    /// Forgets the mappings that were found before the static arrays in them were known: one memory is one object. Those that a row refers to end when the
    /// arrays are added.
    pub(super) fn replaced_by_static(&mut self, process: &mut LiveProcess, address: u64, bytes: u64, time: u64) {
        for start in process.objects.overlapping(address, bytes) {
            let is_stand_in = |object: &LiveObject| {
                object.kind == ObjectKind::Mapping && object.memory == Memory::Own && !object.has_evidence && !object.written
            };
            if process.objects.by_address.get(&start).is_some_and(is_stand_in)
                && let Some(mapping) = process.objects.by_address.remove(&start)
            {
                process.unplaced.forget(start, mapping.bytes);
                self.deaths.insert(mapping.id, time);
            }
        }
    }

    /// Writes the live objects that have no row yet, so that a profile cut short knows them.
    pub(super) fn write_live(process: &mut LiveProcess, sink: &mut Sink) {
        let _ = Self::write_some(process, 0, usize::MAX, sink);
    }

    /// Writes at most so many of them, from an address on. Returns the address to go on with, if it did not come to the end.
    pub(super) fn write_some(process: &mut LiveProcess, from: u64, most: usize, sink: &mut Sink) -> Option<u64> {
        let unwritten = process.objects.by_address.range_mut(from..).filter(|(_, object)| !object.written);
        for (count, (&address, object)) in unwritten.enumerate() {
            if count == most {
                return Some(address);
            }
            object.written = true;
            object.write(process.id, address, None, sink);
        }
        None
    }

    pub(super) fn write_folded(&mut self, sink: &mut Sink) {
        for row in std::mem::take(&mut self.folded).into_values() {
            sink.write(|w| w.folded_objects(&row));
        }
    }
}
