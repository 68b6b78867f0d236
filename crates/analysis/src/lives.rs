//! Where the members of a group were, and when: asked for each touch before an object's birth, so without a look at all members.

use crate::groups::Group;
use crate::spans::Spans;
use crate::work;
use firsttouch_model::rows::Object;

/// A member.
#[derive(Clone, Copy, Debug)]
struct Life {
    born: u64,
    died: u64,
    address: u64,
    bytes: u64,
}

impl Life {
    fn of(object: &Object) -> Self {
        Self { born: object.born_ns, died: object.died_ns.unwrap_or(u64::MAX), address: object.address, bytes: object.bytes }
    }

    fn has(&self, address: u64, time: u64) -> bool {
        work::step();
        let alive = self.born <= time && time < self.died;
        alive && address.checked_sub(self.address).is_some_and(|offset| offset < self.bytes)
    }
}

/// The members of a group.
pub(crate) struct Lives {
    first_born: u64,
    index: Index,
}

/// By slot where few live at a time, else by address.
enum Index {
    /// In order of birth. Of a slot, one lives at a time, or the last two while a growing one is copied.
    BySlot(Vec<Vec<Life>>),
    ByAddress(Spans<Life>),
}

/// So many of a slot may live at a time.
const TOGETHER: usize = 2;

impl Lives {
    pub fn new(group: &Group, objects: &[Object]) -> Self {
        let members = group.members.iter().map(|&member| (member, Life::of(&objects[member])));
        let first_born = members.clone().map(|(_, life)| life.born).min().unwrap_or(u64::MAX);
        if group.parts() == 0 && group.rows.saturating_mul(group.rows) <= group.members.len() {
            let mut slots = vec![Vec::new(); group.rows];
            members.for_each(|(member, life)| slots[group.slot(member)].push(life));
            return Self { first_born, index: Index::BySlot(slots) };
        }
        let mut spans = Spans::default();
        for (_, life) in members {
            spans.insert((life.address, life.address.saturating_add(life.bytes)), life);
        }
        Self { first_born, index: Index::ByAddress(spans) }
    }

    /// Whether a member was at the address at this time.
    pub fn any_at(&self, address: u64, time: u64) -> bool {
        if time < self.first_born {
            return false;
        }
        match &self.index {
            Index::BySlot(slots) => slots.iter().any(|lives| {
                let born = lives.partition_point(|life| life.born <= time);
                lives[..born].iter().rev().take(TOGETHER).any(|life| life.has(address, time))
            }),
            Index::ByAddress(spans) => spans.overlapping((address, address.saturating_add(1))).any(|(_, life)| life.has(address, time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;
    use crate::groups::groups;
    use crate::turns::Turns;
    use firsttouch_model::rows::{Frame, Id, ObjectKind, Profile, Site};

    /// One group for each size, of objects from one call: (address, bytes, born, died).
    fn profile(objects: impl Iterator<Item = (u64, u64, u64, u64)>) -> Profile {
        let object = |(at, (address, bytes, born_ns, died_ns)): (usize, (u64, u64, u64, u64))| Object {
            id: at as Id + 1,
            process: 0,
            kind: ObjectKind::Heap,
            call: None,
            name: None,
            address,
            bytes,
            born_ns,
            died_ns: Some(died_ns),
            site: Some(1),
            thread: None,
        };
        let site = Site { id: 1, process: 0, frames: vec![Frame { address: 7, ..Frame::default() }] };
        Profile { objects: objects.enumerate().map(object).collect(), sites: [(1, site)].into(), ..Profile::default() }
    }

    /// Check that the answer is that of a look at all members: of groups of many at a time, of few, and of one that grows.
    #[test]
    fn answers_are_those_of_a_search() {
        let mut draws = Draws::new(5);
        let (mut by_slot, mut yes) = (0, 0);
        for span in [2, 20, 400] {
            let profiles = [
                profile((0..150).map(|_| {
                    let born = draws.below(400);
                    (draws.below(300), [8, 50][draws.below(2) as usize], born, born + draws.below(span))
                })),
                profile((0..40).map(|at| (at % 2 * 500, 100 + 10 * at, 10 * at, 10 * at + 12))),
            ];
            for (profile, group) in
                profiles.iter().flat_map(|profile| groups(profile, None, &Turns::default()).into_iter().map(move |group| (profile, group)))
            {
                let lives = Lives::new(&group, &profile.objects);
                by_slot += usize::from(matches!(lives.index, Index::BySlot(_)));
                for (address, time) in (0..500).map(|_| (draws.below(700), draws.below(450))) {
                    let mut members = group.members.iter().map(|&member| Life::of(&profile.objects[member]));
                    let expected = members.any(|life| life.has(address, time));
                    yes += usize::from(expected);
                    assert_eq!(lives.any_at(address, time), expected, "{address} {time} {group:?}");
                }
            }
        }
        assert!(by_slot > 3 && yes > 300, "{by_slot} {yes}");
    }

    /// Check that looking for all touches takes steps in proportion to them: of memory that is used again and again, and of objects that all live.
    #[test]
    fn steps_grow_with_touches() {
        let steps_of = |object: &dyn Fn(u64) -> (u64, u64, u64, u64), count: usize| {
            let profile = profile((0..count as u64).map(object));
            let groups = groups(&profile, None, &Turns::default());
            let lives = Lives::new(&groups[0], &profile.objects);
            work::steps(|| assert!(profile.objects.iter().all(|object| lives.any_at(object.address, object.born_ns))))
        };
        work::assert_growth("one after another", work::LINEAR, |count| steps_of(&|at| (0, 64, at, at + 1), count), 1000);
        work::assert_growth("all at once", work::LINEAR, |count| steps_of(&|at| (at * 64, 64, at, u64::MAX), count), 1000);
    }
}
