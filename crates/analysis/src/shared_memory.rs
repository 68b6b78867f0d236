//! Memory that processes share: the objects of all processes that mapped the same memory become one.
//!
//! Each process has an object of its own in the profile, at an address of its own, and sees only its own faults and accesses. Here the objects
//! of one memory become one object with an address range of its own, in which an address is an offset in that memory. Accesses, windows and
//! first touches of all processes get addresses in that range, so that the rest of the analysis sees one array that the threads of several
//! processes use. Private mappings are left alone: after a fork, a page that is written is one of the writer's own.
//!
//! - Each process takes a fault on each page that it uses, although the page is placed once: `touches.rs` keeps the first.
//! - When firsttouch attached, older memory may have been touched by anyone, and so may memory of which pages were present before the program
//!   mapped it: its faults place nothing, and are left out.
//! - Whether pages are present is asked by process, and the answer is whether *that process* has used them: the answers of the process with most
//!   pages stay.
//! - `madvise` of one process drops its own use of the pages, not the pages.
//! - The workers of processes that share memory have numbers of their own (`teams`).

use crate::groups::Group;
use crate::inherited;
use firsttouch_model::rows::{FirstTouch, Id, Object, ObjectKind, Page, Profile, SharedMemory, Window};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The address range of the first memory: no program has memory there, and no pool of small blocks.
const FIRST_ADDRESS: u64 = 1 << 59;
/// Distance from one memory's range to the next.
const RANGE: u64 = 1 << 48;
const MOST_MEMORIES: usize = 1024;
/// Memory of which more than this part was present before the program mapped it was filled by someone else, or by `write`: 5 %.
const FILLED: u32 = SharedMemory::ALL_PRESENT / 20;
/// Objects that firsttouch finds this soon after it attached were there before, ns.
const FOUND_NS: u64 = 500_000_000;

/// One mapping of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub bytes: u64,
    pub born_ns: u64,
    pub died_ns: Option<u64>,
}

/// How processes share an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Where the first process that mapped it has it.
    pub address: u64,
    /// The processes that mapped it.
    pub processes: BTreeSet<Id>,
    pub mappings: Vec<Mapping>,
    /// What part of it was present before the program mapped it, of [`SharedMemory::ALL_PRESENT`], if that is more than a margin: its page faults
    /// place nothing.
    pub filled_before: Option<u32>,
}

/// A profile in which the objects of one memory are one.
#[derive(Debug)]
pub struct Shared {
    pub profile: Profile,
    /// By object id.
    pub sharing: HashMap<Id, Sharing>,
    /// Of each process that shares memory with others: the first of all that are connected in this way.
    pub teams: HashMap<Id, Id>,
}

/// An object that becomes part of another one.
struct Part {
    object: Id,
    process: Id,
    start: u64,
    end: u64,
    born_ns: u64,
    died_ns: u64,
    into: Place,
}

/// Where it goes.
#[derive(Clone, Copy)]
struct Place {
    object: Id,
    process: Id,
    /// The address of the part's first byte.
    address: u64,
    /// The part's fraction of the whole.
    fraction: f64,
    /// Its faults place nothing.
    is_older: bool,
    /// The answers of this part's process about pages stay.
    is_asked: bool,
}

impl Part {
    fn translate(&self, address: u64) -> Option<u64> {
        (self.start <= address && address < self.end).then(|| self.into.address + (address - self.start))
    }

    fn lived_at(&self, time: u64) -> bool {
        self.born_ns <= time && time <= self.died_ns
    }
}

impl Shared {
    /// `None` if no object is in memory that processes can share.
    #[must_use]
    pub fn new(profile: &Profile) -> Option<Self> {
        let sets = sets(profile);
        if sets.is_empty() {
            return None;
        }
        let mut shared = Self { profile: profile.clone(), sharing: HashMap::new(), teams: HashMap::new() };
        let present = present_pages(profile);
        let mut parts = Vec::new();
        for (number, set) in sets.iter().enumerate() {
            shared.join(set, FIRST_ADDRESS + RANGE * number as u64, &present, &mut parts);
        }
        let gone: BTreeSet<Id> = parts.iter().map(|part| part.object).filter(|object| !shared.sharing.contains_key(object)).collect();
        shared.profile.objects.retain(|object| !gone.contains(&object.id));
        shared.translate(&parts);
        Some(shared)
    }

    /// Tells the groups which of their members are shared.
    pub fn mark(&self, groups: &mut [Group]) {
        for group in groups {
            let own = group.members.iter().filter_map(|&i| Some((i, self.sharing.get(&self.profile.objects[i].id)?.clone())));
            group.shared = own.collect();
        }
    }

    /// Makes one object of a set, in the range that begins at `base`.
    fn join(&mut self, set: &[(&Object, u64)], base: u64, present: &HashMap<Id, usize>, parts: &mut Vec<Part>) {
        let start = set.iter().map(|(_, offset)| *offset).min().unwrap_or(0);
        let bytes = set.iter().map(|(object, offset)| offset - start + object.bytes).max().unwrap_or(0);
        let Some((oldest, _)) = set.iter().min_by_key(|(object, _)| (object.born_ns, object.id)) else { return };
        // The call that mapped it says what it is: a process whose call was not seen knows no more than the name of the file.
        let Some((first, _)) = set.iter().min_by_key(|(object, _)| (object.kind == ObjectKind::Mapping, object.born_ns, object.id)) else {
            return;
        };
        let asked = set.iter().map(|(object, _)| object.id).max_by_key(|id| (present.get(id), std::cmp::Reverse(*id)));
        let found_until = self.profile.meta.start_ns.unwrap_or(0).saturating_add(FOUND_NS);
        let known = self.profile.shared_memory.get(&oldest.id);
        let filled_before = known.and_then(|memory| memory.present).filter(|&present| present > FILLED);
        let is_older = filled_before.is_some() || self.profile.meta.is_attached() && oldest.born_ns <= found_until;
        // Huge pages begin at multiples of their size in the memory.
        let base = base + start % (1 << 30);
        for &(object, offset) in set {
            parts.push(Part {
                object: object.id,
                process: object.process,
                start: object.address,
                end: object.address.saturating_add(object.bytes),
                born_ns: object.born_ns,
                died_ns: object.died_ns.unwrap_or(u64::MAX),
                into: Place {
                    object: first.id,
                    process: first.process,
                    address: base + (offset - start),
                    fraction: object.bytes.max(1) as f64 / bytes.max(1) as f64,
                    is_older,
                    is_asked: Some(object.id) == asked,
                },
            });
        }
        let processes: BTreeSet<Id> = set.iter().map(|(object, _)| object.process).collect();
        self.connect(&processes);
        let mapping = |(object, _): &(&Object, u64)| Mapping { bytes: object.bytes, born_ns: object.born_ns, died_ns: object.died_ns };
        let mappings: Vec<Mapping> = set.iter().map(mapping).collect();
        let address = first.address;
        if let Some(joined) = self.profile.objects.iter_mut().find(|object| object.id == first.id) {
            joined.address = base;
            joined.bytes = bytes;
            joined.born_ns = oldest.born_ns;
            joined.died_ns = mappings.iter().try_fold(0, |last, mapping| Some(mapping.died_ns?.max(last)));
        }
        self.sharing.insert(first.id, Sharing { address, processes, mappings, filled_before });
    }

    /// Notes that these processes share memory.
    fn connect(&mut self, processes: &BTreeSet<Id>) {
        if processes.len() < 2 {
            return;
        }
        let teams: BTreeSet<Id> = processes.iter().map(|process| self.teams.get(process).copied().unwrap_or(*process)).collect();
        let Some(&first) = teams.first() else { return };
        self.teams.values_mut().filter(|team| teams.contains(team)).for_each(|team| *team = first);
        self.teams.extend(processes.iter().map(|process| (*process, first)));
    }

    fn translate(&mut self, parts: &[Part]) {
        let Self { profile, .. } = self;
        let mut by_process: HashMap<Id, Vec<&Part>> = HashMap::new();
        parts.iter().for_each(|part| by_process.entry(part.process).or_default().push(part));
        by_process.values_mut().for_each(|own| own.sort_by_key(|part| part.start));
        let longest = parts.iter().map(|part| part.end - part.start).max().unwrap_or(0);
        let by_object: HashMap<Id, &Part> = parts.iter().map(|part| (part.object, part)).collect();
        profile.first_touches.retain_mut(|touch: &mut FirstTouch| {
            let Some(own) = by_process.get(&touch.process) else { return true };
            let below = &own[..own.partition_point(|part| part.start <= touch.address)];
            let mut near = below.iter().rev().take_while(|part| touch.address - part.start < longest);
            let found = near.find_map(|part| Some((part, part.translate(touch.address).filter(|_| part.lived_at(touch.time_ns))?)));
            let Some((part, address)) = found else { return true };
            (touch.process, touch.address) = (part.into.process, address);
            !part.into.is_older
        });
        profile.windows.iter_mut().for_each(|window: &mut Window| {
            let Some(part) = by_object.get(&window.object) else { return };
            window.object = part.into.object;
            // The number of words that a window was drawn from counts.
            window.inclusion /= part.into.fraction;
            window.address = part.translate(window.address).unwrap_or(0);
        });
        for access in &mut profile.sampled_accesses {
            if let Some(part) = by_object.get(&access.object) {
                (access.object, access.address) = (part.into.object, part.translate(access.address).unwrap_or(0));
            }
        }
        profile.pages.retain_mut(|page: &mut Page| {
            let Some(part) = page.object.and_then(|object| by_object.get(&object)) else { return true };
            page.address = part.translate(page.address).unwrap_or(0);
            (page.process, page.object) = (part.into.process, Some(part.into.object));
            part.into.is_asked
        });
    }
}

/// The objects of each memory that the profile knows, with their offsets in it.
fn sets(profile: &Profile) -> Vec<Vec<(&Object, u64)>> {
    let mut by_memory: BTreeMap<&str, Vec<(&Object, u64)>> = BTreeMap::new();
    for object in &profile.objects {
        if let Some(shared) = profile.shared_memory.get(&object.id)
            && shared.offset < RANGE / 4
            && object.bytes < RANGE / 4
        {
            by_memory.entry(&shared.memory).or_default().push((object, shared.offset));
        }
    }
    let mut sets: Vec<_> = by_memory.into_values().flat_map(connected).chain(inherited::sets(profile)).collect();
    sets.sort_by_key(|set| set.iter().map(|(object, _)| (object.born_ns, object.id)).min());
    sets.truncate(MOST_MEMORIES);
    sets
}

/// Objects of one memory whose ranges overlap. Other parts of the same memory are objects of their own, as the program mapped them.
fn connected(mut objects: Vec<(&Object, u64)>) -> Vec<Vec<(&Object, u64)>> {
    objects.sort_by_key(|(object, offset)| (*offset, object.id));
    let (mut sets, mut end): (Vec<Vec<(&Object, u64)>>, u64) = (Vec::new(), 0);
    for (object, offset) in objects {
        match sets.last_mut() {
            Some(set) if offset < end => set.push((object, offset)),
            _ => sets.push(vec![(object, offset)]),
        }
        end = end.max(offset + object.bytes);
    }
    sets
}

/// The number of answers by object that a page was present.
fn present_pages(profile: &Profile) -> HashMap<Id, usize> {
    let mut present = HashMap::new();
    for page in profile.pages.iter().filter(|page| page.node >= 0) {
        *present.entry(page.object.unwrap_or_default()).or_default() += 1;
    }
    present
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(id: Id, process: Id, address: u64, bytes: u64, born_ns: u64, died_ns: Option<u64>) -> Object {
        let (kind, call, name, site, thread) = (ObjectKind::Anonymous, None, None, None, None);
        Object { id, process, kind, call, name, address, bytes, born_ns, died_ns, site, thread }
    }

    fn profile(objects: Vec<(Object, &str, u64)>) -> Profile {
        let mut profile = Profile::default();
        for (object, memory, offset) in objects {
            if !memory.is_empty() {
                profile.shared_memory.insert(object.id, SharedMemory { memory: memory.to_owned(), offset, present: None });
            }
            profile.objects.push(object);
        }
        profile
    }

    fn touch(process: Id, address: u64, time_ns: u64) -> FirstTouch {
        FirstTouch {
            id: 0,
            process,
            time_ns,
            thread: process,
            cpu: 0,
            address,
            weight: 1.0,
            by_kernel: false,
            site: None,
            mapped_bytes: None,
            node: None,
        }
    }

    /// Check that the object has the call of a process whose call was seen, also if another process's mapping, found without one, is older.
    #[test]
    fn the_call_that_was_seen_says_what_it_is() {
        let mut found = object(1, 1, 0x10000, 0x8000, 5, Some(10));
        found.kind = ObjectKind::Mapping;
        let mut called = object(2, 1, 0x10000, 0x8000, 10, None);
        called.call = Some("mmap".to_owned());
        let mut profile = profile(vec![(found, "m", 0), (called, "m", 0), (object(3, 2, 0x70000, 0x8000, 20, None), "m", 0)]);
        profile.first_touches = vec![touch(1, 0x11000, 7), touch(1, 0x12000, 11)];
        let shared = Shared::new(&profile).expect("shared memory");
        let [joined] = &shared.profile.objects[..] else { panic!("{:?}", shared.profile.objects) };
        assert_eq!((joined.id, joined.kind, joined.call.as_deref(), joined.born_ns), (2, ObjectKind::Anonymous, Some("mmap"), 5));
        let offsets: Vec<u64> = shared.profile.first_touches.iter().map(|touch| touch.address.wrapping_sub(joined.address)).collect();
        assert_eq!(offsets, [0x1000, 0x2000]);
    }

    /// Check that an address is an offset in the memory wherever a process maps it, that a part may be mapped alone, and that faults before and
    /// after the mapping, and in private memory, stay where they are.
    #[test]
    fn addresses_become_offsets() {
        let mut profile = profile(vec![
            (object(1, 1, 0x10000, 0x8000, 10, None), "m", 0x1000),
            (object(2, 2, 0x70000, 0x4000, 20, Some(90)), "m", 0x5000),
            (object(3, 2, 0x10000, 0x8000, 20, None), "", 0),
            (object(4, 3, 0x10000, 0x8000, 20, None), "n", 0),
        ]);
        profile.first_touches =
            vec![touch(1, 0x14010, 11), touch(2, 0x70010, 21), touch(2, 0x70010, 91), touch(2, 0x10000, 30), touch(1, 0x14010, 9)];
        let window = Window { id: 1, round: 1, object: 2, address: 0x70010, start_ns: 30, held_ns: 1, round_ns: 2, inclusion: 0.1 };
        profile.windows = vec![window];
        let shared = Shared::new(&profile).expect("shared memory");
        let ids: Vec<Id> = shared.profile.objects.iter().map(|object| object.id).collect();
        assert_eq!(ids, [1, 3, 4]);
        let joined = &shared.profile.objects[0];
        assert_eq!((joined.bytes, joined.died_ns, joined.born_ns, joined.address % 0x10000), (0x8000, None, 10, 0x1000));
        let seen: Vec<(Id, u64)> =
            shared.profile.first_touches.iter().map(|touch| (touch.process, touch.address.wrapping_sub(joined.address))).collect();
        assert_eq!(seen[..2], [(1, 0x4010), (1, 0x4010)]);
        assert_eq!(shared.profile.first_touches[2..], profile.first_touches[2..]);
        let window = &shared.profile.windows[0];
        assert_eq!((window.object, window.address - joined.address, window.inclusion), (1, 0x4010, 0.2));
        assert_eq!(shared.teams, HashMap::from([(1, 1), (2, 1)]));
        assert_eq!((shared.sharing[&1].mappings.len(), shared.sharing[&1].address), (2, 0x10000));
    }

    /// Check that parts of one memory that no process maps together are objects of their own.
    #[test]
    fn other_parts_are_other_objects() {
        let profile = profile(vec![
            (object(1, 1, 0x10000, 0x4000, 10, None), "m", 0),
            (object(2, 2, 0x10000, 0x4000, 10, None), "m", 0x4000),
            (object(3, 2, 0x20000, 0x1000, 10, None), "m", 0x5000),
        ]);
        let shared = Shared::new(&profile).expect("shared memory");
        let ids: Vec<Id> = shared.profile.objects.iter().map(|object| object.id).collect();
        assert_eq!(ids, [1, 2]);
        assert_eq!(shared.teams, HashMap::new());
        assert!(Shared::new(&self::profile(vec![(object(1, 1, 0, 8, 0, None), "", 0)])).is_none());
    }

    /// Check that faults place nothing in memory that was filled before, whoever maps it later, and that those in memory that was empty do.
    #[test]
    fn filled_before() {
        for (present, expected) in
            [([Some(10_000), Some(0)], (0, Some(10_000))), ([Some(500), Some(10_000)], (1, None)), ([None, None], (1, None))]
        {
            let objects = [(1, 10), (2, 20)].map(|(id, born)| (object(id, id, 0x10000, 0x4000, born, None), "m", 0));
            let mut profile = profile(objects.into());
            for (id, present) in [1, 2].into_iter().zip(present) {
                profile.shared_memory.get_mut(&id).expect("the memory").present = present;
            }
            profile.first_touches = vec![touch(1, 0x10000, 15)];
            let shared = Shared::new(&profile).expect("shared memory");
            assert_eq!((shared.profile.first_touches.len(), shared.sharing[&1].filled_before), expected, "{present:?}");
        }
    }

    /// Check that faults on memory that is older than the attachment place nothing, and that teams are joined through a third process.
    #[test]
    fn attached_and_connected() {
        let mut profile = profile(vec![
            (object(1, 1, 0x10000, 0x4000, 1_000, None), "a", 0),
            (object(2, 2, 0x10000, 0x4000, 2_000_000_000, None), "a", 0),
            (object(3, 3, 0x10000, 0x4000, 2_000_000_000, None), "b", 0),
            (object(4, 4, 0x10000, 0x4000, 2_000_000_000, None), "b", 0),
            (object(5, 2, 0x50000, 0x4000, 2_000_000_000, None), "c", 0),
            (object(6, 4, 0x50000, 0x4000, 2_000_000_000, None), "c", 0),
        ]);
        profile.first_touches = vec![touch(2, 0x10000, 3_000_000_000), touch(4, 0x10000, 3_000_000_000)];
        profile.meta.set("mode", "attach");
        profile.meta.set("start_ns", "0");
        let shared = Shared::new(&profile).expect("shared memory");
        assert_eq!(shared.profile.first_touches.len(), 1);
        assert_eq!(shared.profile.first_touches[0].process, 3);
        assert_eq!(shared.teams, (1..=4).map(|process| (process, 1)).collect());
    }
}
