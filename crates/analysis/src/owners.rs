//! Which memory had an object before another one: asked for each object, so it is found for all of them at once, in the order of their births.

use crate::work;
use firsttouch_model::rows::{Id, Object, Profile};
use hashbrown::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::Excluded;

/// The objects of which earlier ones had some of the addresses.
pub struct Owners(HashSet<Key>);

/// What the answer depends on: process, address, bytes and birth.
type Key = (Id, u64, u64, u64);

fn key(object: &Object) -> Key {
    (object.process, object.address, object.bytes, object.born_ns)
}

/// The addresses that objects of one process have had so far.
#[derive(Default)]
struct Had {
    /// Disjoint ranges: address and end. Ranges that only meet are not joined.
    ranges: BTreeMap<u64, u64>,
    /// Addresses of objects without bytes.
    points: BTreeSet<u64>,
}

impl Had {
    /// Whether some of these addresses are among them.
    fn overlap(&self, address: u64, end: u64) -> bool {
        self.ranges.range(..end).next_back().is_some_and(|(_, last)| *last > address)
            || (address < end && self.points.range((Excluded(address), Excluded(end))).next().is_some())
    }

    fn add(&mut self, address: u64, end: u64) {
        if address >= end {
            self.points.insert(address);
            return;
        }
        let (mut first, mut last) = (address, end);
        // Each range is taken out once.
        while let Some((&start, &until)) = self.ranges.range(..last).next_back().filter(|(_, until)| **until > first) {
            work::step();
            self.ranges.remove(&start);
            (first, last) = (first.min(start), last.max(until));
        }
        self.ranges.insert(first, last);
    }
}

impl Owners {
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let mut by_birth: Vec<&Object> = profile.objects.iter().collect();
        by_birth.sort_by_key(|object| object.born_ns);
        let (mut had, mut owned): (HashMap<Id, Had>, HashSet<Key>) = (HashMap::new(), HashSet::new());
        let range = |object: &Object| (object.address, object.address.saturating_add(object.bytes));
        for born_together in by_birth.chunk_by(|a, b| a.born_ns == b.born_ns) {
            for object in born_together {
                work::step();
                let (address, end) = range(object);
                if had.get(&object.process).is_some_and(|had| had.overlap(address, end)) {
                    owned.insert(key(object));
                }
            }
            for object in born_together {
                let (address, end) = range(object);
                had.entry(object.process).or_default().add(address, end);
            }
        }
        Self(owned)
    }

    /// Whether an object that was born earlier had some of the addresses of this one, which is of the profile.
    #[must_use]
    pub fn was_there_before(&self, object: &Object) -> bool {
        self.0.contains(&key(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;
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
        let mut draws = Draws::new(1);
        let mut below = |end: u64| draws.below(end);
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

    /// Check that all answers take steps in proportion to the objects: within one that was there before them, beside each other; each overlapping
    /// many; and all in one place.
    #[test]
    fn steps_grow_with_objects() {
        let steps_of = |range: &dyn Fn(u64) -> (u64, u64), count: usize| {
            let small = (0..count as u64).map(|number| {
                let (address, bytes) = range(number);
                object(0, 4096 + address, bytes, 1 + number)
            });
            let objects = [object(0, 0, 1 << 40, 0)].into_iter().chain(small).collect();
            let profile = Profile { objects, ..Profile::default() };
            work::steps(|| {
                let owners = Owners::new(&profile);
                assert!(profile.objects.iter().skip(1).all(|object| owners.was_there_before(object)));
            })
        };
        work::assert_growth("beside each other", work::LINEAR, |count| steps_of(&|number| (number * 64, 32), count), 2000);
        work::assert_growth("overlapping", work::LINEAR, |count| steps_of(&|number| (number * 64, 64 * 500), count), 2000);
        work::assert_growth("in one place", work::LINEAR, |count| steps_of(&|_| (0, 64), count), 2000);
    }
}
