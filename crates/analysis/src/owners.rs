//! Which memory had an object before another one: asked for each object, so all of them are sorted once.

use firsttouch_model::rows::{Id, Object, Profile};
use hashbrown::HashMap;

/// The objects of each process, by address.
pub struct Owners(HashMap<Id, Sorted>);

#[derive(Default)]
struct Sorted {
    list: Vec<Range>,
    /// For each, the furthest end of it and of those before it.
    reach: Vec<u64>,
}

struct Range {
    address: u64,
    end: u64,
    born_ns: u64,
}

impl Owners {
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let mut all: HashMap<Id, Sorted> = HashMap::new();
        for object in &profile.objects {
            let range = Range { address: object.address, end: object.address.saturating_add(object.bytes), born_ns: object.born_ns };
            all.entry(object.process).or_default().list.push(range);
        }
        for sorted in all.values_mut() {
            sorted.list.sort_by_key(|range| (range.address, range.born_ns));
            let furthest = sorted.list.iter().scan(0, |furthest, range| {
                *furthest = range.end.max(*furthest);
                Some(*furthest)
            });
            sorted.reach = furthest.collect();
        }
        Self(all)
    }

    /// Whether an object that was born earlier had some of its addresses.
    #[must_use]
    pub fn was_there_before(&self, object: &Object) -> bool {
        let Some(Sorted { list, reach }) = self.0.get(&object.process) else { return false };
        let end = object.address.saturating_add(object.bytes);
        let below = list.partition_point(|range| range.address < end);
        // None before one that nothing reaches over overlaps.
        let near = (0..below).rev().take_while(|&at| reach[at] > object.address);
        near.into_iter().any(|at| list[at].end > object.address && list[at].born_ns < object.born_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::ObjectKind;

    fn object(process: Id, address: u64, bytes: u64, born_ns: u64) -> Object {
        Object {
            id: 0,
            process,
            kind: ObjectKind::Heap,
            call: None,
            name: None,
            address,
            bytes,
            born_ns,
            died_ns: None,
            site: None,
            thread: None,
        }
    }

    /// Check that the answer is that of looking at all objects, for objects within, around, across and beside each other.
    #[test]
    fn finds_earlier_owners() {
        let mut state = 1_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        for range in [50, 400, 3000] {
            let objects: Vec<Object> =
                (0..120).map(|_| object(below(2) as Id, below(range), [0, 1, 5, 40][below(4) as usize], below(30))).collect();
            let owners = Owners::new(&Profile { objects: objects.clone(), ..Profile::default() });
            for one in &objects {
                let end = one.address + one.bytes;
                let overlaps = |other: &&Object| other.address < end && one.address < other.address + other.bytes;
                let earlier = objects.iter().filter(|other| other.process == one.process && other.born_ns < one.born_ns);
                assert_eq!(owners.was_there_before(one), earlier.filter(overlaps).count() > 0, "{one:?}");
            }
        }
        assert!(!Owners::new(&Profile::default()).was_there_before(&object(0, 0, 8, 9)));
    }
}
