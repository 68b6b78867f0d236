//! How many first touches are held of each object. One touch is held for each object that has its address, so where many objects overlap (their ends were
//! not recorded, say), all of them together would have many times as many as were recorded. Then those that overlap most hold a part each, which
//! stands for all of theirs.

use crate::touch_index::{TouchIndex, range};
use crate::touch_record::Placed;
use firsttouch_model::rows::{Id, Object, Profile};
use hashbrown::HashMap;

/// All objects together hold at most so many touches for each that was recorded, and for each object.
const A_TOUCH: usize = 8;
const AN_OBJECT: usize = 32;
/// Touches before an object's birth that all objects together may hold, if that is more.
const OLDER: usize = 1 << 18;

/// How many touches objects hold where not all may hold all of theirs.
#[derive(Debug)]
pub struct Held {
    /// Of those that overlap much.
    most: usize,
    /// By object: whether its touches are those of few others, so that it holds all of them. Empty if all objects do.
    holds_all: Vec<bool>,
    /// Of those before its birth, each object: memory that is used again and again has them each time.
    older: usize,
}

impl Held {
    /// `None` if all objects may hold all of their touches.
    #[must_use]
    pub fn new(profile: &Profile, index: &TouchIndex) -> Option<Self> {
        let recorded: usize = index.by_process.values().map(|touches| touches.list.len()).sum();
        let of_objects = profile.objects.len().saturating_mul(AN_OBJECT);
        let all = recorded.saturating_mul(A_TOUCH).saturating_add(of_objects);
        // Of addresses that are used again, each object has those of its own time. That takes longer to count.
        let sum = |counts: &mut dyn Iterator<Item = usize>| counts.fold(0_usize, usize::saturating_add);
        let there = &mut profile.objects.iter().map(|object| index.within(object.process, object.address, object.bytes).len());
        if sum(there) <= all {
            return None;
        }
        let counts_from = |first: &dyn Fn(&Object) -> u64| -> Vec<usize> {
            let count = |object: &Object| {
                let died = object.died_ns.unwrap_or(u64::MAX).max(object.born_ns);
                index.count_during(object.process, object.address, object.bytes, (first(object), died))
            };
            profile.objects.iter().map(count).collect()
        };
        let mut until_end = counts_from(&|_| 0);
        until_end.sort_unstable();
        let older = most_of_each(&until_end, all.max(OLDER)).unwrap_or(usize::MAX);
        let counts = counts_from(&|object| object.born_ns);
        if sum(&mut counts.iter().copied()) <= all {
            return (older < usize::MAX).then_some(Self { most: usize::MAX, holds_all: Vec::new(), older });
        }
        // If each touch counted as a part of 1 in each of its objects, all parts would sum up to the touches. Where a touch has as many objects as is
        // allowed on average, or fewer, the objects have that many times as many at most (Jensen's inequality).
        let holds_all: Vec<bool> = owners_a_touch(profile, index).into_iter().map(|owners| owners <= A_TOUCH as f64).collect();
        let mut others: Vec<usize> = counts.iter().zip(&holds_all).filter(|(_, holds_all)| !**holds_all).map(|(count, _)| *count).collect();
        others.sort_unstable();
        Some(Self { most: most_of_each(&others, of_objects)?, holds_all, older })
    }

    /// The number of touches that an object, of this index, may hold.
    #[must_use]
    pub fn most_of(&self, object: usize) -> usize {
        if self.holds_all.get(object).copied().unwrap_or(true) { usize::MAX } else { self.most }
    }

    /// The number of those before its birth that it may hold.
    #[must_use]
    pub fn older(&self) -> usize {
        self.older
    }

    /// The fewest that an object with more of them holds.
    #[must_use]
    pub fn fewest(&self) -> usize {
        self.most.min(self.older)
    }
}

/// For each object, how many objects have the addresses of one of its touches on average.
fn owners_a_touch(profile: &Profile, index: &TouchIndex) -> Vec<f64> {
    // By process: for each touch, by address, the number of objects that begin at it less that of those that end before it; then sums.
    let mut sums: HashMap<Id, Vec<i64>> = index.by_process.iter().map(|(id, touches)| (*id, vec![0; touches.list.len() + 1])).collect();
    let range_of = |object: &Object| {
        let touches = index.by_process.get(&object.process)?;
        Some(range(&touches.list, object.address, object.bytes))
    };
    for object in &profile.objects {
        if let (Some(range), Some(changes)) = (range_of(object), sums.get_mut(&object.process)) {
            changes[range.start] += 1;
            changes[range.end] -= 1;
        }
    }
    for sums in sums.values_mut() {
        let (mut owners, mut sum) = (0, 0);
        for at in sums {
            owners += std::mem::replace(at, sum);
            sum += owners;
        }
    }
    let mean = |object: &Object| {
        let (range, sums) = (range_of(object)?, sums.get(&object.process)?);
        Some((sums[range.end] - sums[range.start]) as f64 / range.len().max(1) as f64)
    };
    profile.objects.iter().map(|object| mean(object).unwrap_or(0.0)).collect()
}

/// The largest number of which each may take at most so many, and all together no more than `all`; `None` if they have no more. `counts`: what each
/// has, ascending.
fn most_of_each(counts: &[usize], all: usize) -> Option<usize> {
    let mut left = all;
    for (at, &count) in counts.iter().enumerate() {
        let each = left / (counts.len() - at);
        if count > each {
            return Some(each);
        }
        left -= count;
    }
    None
}

/// Leaves so many of an object's touches, evenly over its range: each stands for as many more. They are sorted by offset.
pub fn thin(placed: &mut Vec<Placed>, most: usize) {
    let count = placed.len();
    if count <= most || most == 0 {
        return;
    }
    let factor = count as f64 / most as f64;
    for at in 0..most {
        // The middle one of each stretch.
        placed.swap(at, (2 * at + 1) * count / (2 * most));
    }
    placed.truncate(most);
    placed.iter_mut().for_each(|one| one.touch.weight *= factor);
    placed.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;
    use crate::faults::Faults;
    use crate::groups::groups;
    use crate::residents::Residents;
    use crate::threads::Threads;
    use crate::touch_index::ProcessTouches;
    use crate::touch_record::{BASE_PAGE, Touch};
    use crate::touches::{ObjectTouches, TouchReader};
    use crate::turns::Turns;
    use crate::work;
    use firsttouch_model::Pin;
    use firsttouch_model::rows::{FirstTouch, Frame, ObjectKind, Site, Thread};

    fn touch(address: u64) -> Touch {
        Touch {
            time: address,
            thread: 0,
            node: 0,
            cpu_node: 0,
            address,
            weight: 3.0,
            by_kernel: false,
            site: None,
            mapped: None,
            found: None,
            populated: None,
        }
    }

    /// Check that objects which overlap few others hold all of their touches beside many that overlap, and all of them together no more than allowed.
    #[test]
    fn those_that_overlap_much_give() {
        let object = |number: u64, address: u64, pages: u64| Object {
            id: number as Id + 1,
            process: 0,
            kind: ObjectKind::Heap,
            call: None,
            name: None,
            address,
            bytes: pages * 4096,
            born_ns: 0,
            died_ns: None,
            site: None,
            thread: None,
        };
        let index_of = |addresses: &mut dyn Iterator<Item = u64>| {
            let mut index = TouchIndex::default();
            index.by_process.entry(0).or_default().list = addresses.map(touch).collect();
            index.by_process.values_mut().for_each(ProcessTouches::index);
            index
        };
        // Two alone, each of 400 pages, and 300 in one place of 300 pages.
        let alone = (0..2).map(|number| object(number, number * 400 * 4096, 400));
        let profile =
            Profile { objects: alone.chain((0..300).map(|number| object(2 + number, 1 << 30, 300))).collect(), ..Profile::default() };
        let touches = || (0..800).map(|page| page * 4096).chain((0..300).map(|page| (1 << 30) + page * 4096));
        let held = Held::new(&profile, &index_of(&mut touches())).unwrap();
        assert_eq!(
            (held.most_of(0), held.most_of(1), held.most_of(2), held.most_of(301)),
            (usize::MAX, usize::MAX, held.fewest(), held.fewest())
        );
        assert_eq!(held.fewest(), 302 * AN_OBJECT / 300);
        let few = Profile { objects: profile.objects[..10].to_vec(), ..Profile::default() };
        assert!(Held::new(&few, &index_of(&mut touches())).is_none(), "eight objects in one place");
    }

    /// Check that each may take as many as the others leave, that all together keep to the sum, and that nothing is left out without need.
    #[test]
    fn the_largest_give() {
        for (counts, all, most) in [
            (&[][..], 0, None),
            (&[1, 2, 3], 6, None),
            (&[1, 2, 3], 5, Some(2)),
            (&[0, 0, 900], 100, Some(100)),
            (&[10, 500, 500, 500], 310, Some(100)),
            (&[7, 7], 0, Some(0)),
        ] {
            let found = most_of_each(counts, all);
            assert_eq!(found, most, "{counts:?} {all}");
            assert!(counts.iter().map(|count| found.map_or(*count, |most| most.min(*count))).sum::<usize>() <= all);
        }
    }

    /// Check that the touches that stay lie evenly over the object, are sorted, and stand for all.
    #[test]
    fn a_part_stands_for_all() {
        let all: Vec<Placed> =
            (0..1000).map(|at| Placed { offset: at * 4096, touch: touch(at * 4096), recycled: false, page_bytes: 4096 }).collect();
        for most in [1, 7, 32, 333, 999, 1000, 2000] {
            let mut placed = all.clone();
            thin(&mut placed, most);
            assert_eq!(placed.len(), most.min(1000));
            let weight: f64 = placed.iter().map(|one| one.touch.weight).sum();
            assert!((weight - 3000.0).abs() < 1e-6, "{weight}");
            let step = 1000 * 4096 / placed.len() as u64;
            assert!(placed.windows(2).all(|pair| (step - 4096..=step + 8192).contains(&(pair[1].offset - pair[0].offset))), "{most}");
        }
    }

    /// Objects that all have as many pages as there are objects, each `step` pages behind the one before; one thread; and a first touch of each page.
    fn profile_of(count: u64, step: u64, life: impl Fn(u64) -> (u64, Option<u64>), touched: impl Fn(u64) -> u64) -> Profile {
        let object = |number: u64| {
            let (born_ns, died_ns) = life(number);
            Object {
                id: number as Id + 1,
                process: 0,
                kind: ObjectKind::Heap,
                call: None,
                name: None,
                address: number * step * BASE_PAGE,
                bytes: count * BASE_PAGE,
                born_ns,
                died_ns,
                site: Some(1),
                thread: Some(1),
            }
        };
        let touch = |number: u64| FirstTouch {
            id: number as Id + 1,
            process: 0,
            time_ns: touched(number),
            thread: 1,
            cpu: 0,
            address: number * BASE_PAGE,
            weight: 1.0,
            by_kernel: false,
            site: None,
            mapped_bytes: Some(0),
            node: None,
        };
        let thread = Thread { id: 1, process: 0, tid: 1, born_ns: 0, ..Thread::default() };
        let site = Site { id: 1, process: 0, frames: vec![Frame { address: 7, ..Frame::default() }] };
        Profile {
            objects: (0..count).map(object).collect(),
            first_touches: (0..count).map(touch).collect(),
            threads: vec![thread],
            sites: [(1, site)].into(),
            ..Profile::default()
        }
    }

    /// What `read` makes of the touches of all objects.
    fn read_all<R>(profile: &Profile, read: impl Fn(ObjectTouches) -> R) -> Vec<R> {
        let target = Target {
            name: "virtual:2".into(),
            nodes: 2,
            virtual_machine: true,
            pin: Pin::Spread,
            place_all_threads: false,
            cores_per_node: 2,
            cpu_nodes: vec![],
            slow_nodes: vec![],
            private_cache_bytes: 0,
            ranks: Default::default(),
        };
        let threads = Threads::new(profile, &target, &HashMap::new(), &Turns::default());
        let index = TouchIndex::new(profile, &[], &[], &threads);
        let (residents, faults) = (Residents::new(profile), Faults::new(profile));
        let mut reader = TouchReader::new(profile, &threads, &index, &residents, &faults);
        let groups = groups(profile, None, &Turns::default());
        groups
            .iter()
            .flat_map(|group| group.members.iter().map(|&object| (group, object)).collect::<Vec<_>>())
            .map(|(group, object)| read(reader.read(group, object)))
            .collect()
    }

    /// Check that the touches of all objects are found in steps that grow with touches and objects, also where all objects have all addresses: at one
    /// time, one after another, or after all touches.
    #[test]
    fn steps_grow_with_touches_and_objects() {
        let steps_of = |profile: Profile| {
            work::steps(|| {
                let records = read_all(&profile, |own| own.placed.len());
                assert!(records.len() == profile.objects.len() && records.iter().all(|records| *records > 0));
            })
        };
        type Case = (&'static str, u64, fn(u64) -> (u64, Option<u64>), fn(u64) -> u64);
        let cases: [Case; 5] = [
            ("in one place", 0, |number| (number, None), |number| 1_000_000 + number),
            ("overlapping", 1, |number| (number, None), |number| 1_000_000 + number),
            ("one after another", 0, |number| (10 * number, Some(10 * number + 9)), |number| 10 * number + 1),
            ("after all touches", 0, |number| (1_000_000 + 10 * number, Some(1_000_009 + 10 * number)), |number| number),
            ("after all touches, for ever", 0, |number| (1_000_000 + number, None), |number| number),
        ];
        for (what, step, life, touched) in cases {
            work::assert_growth(what, work::LINEAR, |count| steps_of(profile_of(count as u64, step, life, touched)), 3000);
        }
    }

    /// Check that a part of the touches before the births of objects stands for all of them.
    #[test]
    fn older_touches_stand_for_all() {
        for count in [100_u64, 1500] {
            let profile = profile_of(count, 0, |number| (1_000_000 + 10 * number, Some(1_000_009 + 10 * number)), |number| number);
            for (records, pages) in read_all(&profile, |own| (own.placed.len(), own.placed.iter().map(Placed::pages).sum::<f64>())) {
                assert_eq!(records < count as usize, count > 1000, "{records} of {count}");
                assert!((pages / count as f64 - 1.0).abs() < 0.01, "{pages} of {count}");
            }
        }
    }
}
