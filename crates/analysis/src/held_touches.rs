//! How many first touches are held of each object. One touch is held for each object that has its address, so where many objects overlap (their ends were
//! not recorded, say), all of them together would have many times as many as were recorded. Then the objects with the most hold a part each, which
//! stands for all of theirs.

use crate::touch_index::TouchIndex;
use crate::touch_record::Placed;
use firsttouch_model::rows::Profile;

/// All objects together hold at most so many touches for each that was recorded, and for each object.
const A_TOUCH: usize = 8;
const AN_OBJECT: usize = 32;

/// The number of touches that an object may hold; `None` if all objects may hold all of theirs.
#[must_use]
pub fn most_of_an_object(profile: &Profile, index: &TouchIndex) -> Option<usize> {
    let recorded: usize = index.by_process.values().map(|touches| touches.list.len()).sum();
    let all = recorded.saturating_mul(A_TOUCH).saturating_add(profile.objects.len().saturating_mul(AN_OBJECT));
    // Of addresses that are used again, each object has those of its own time. That takes longer to count.
    let sum = |counts: &mut dyn Iterator<Item = usize>| counts.fold(0_usize, usize::saturating_add);
    let there = &mut profile.objects.iter().map(|object| index.within(object.process, object.address, object.bytes).len());
    if sum(there) <= all {
        return None;
    }
    let own = |object: &firsttouch_model::rows::Object| {
        let died = object.died_ns.unwrap_or(u64::MAX).max(object.born_ns);
        index.during(object.process, object.address, object.bytes, (object.born_ns, died)).len()
    };
    let mut counts: Vec<usize> = profile.objects.iter().map(own).collect();
    counts.sort_unstable();
    most_of_each(&counts, all)
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
    use crate::touch_record::Touch;

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
        let touch = |address: u64| Touch {
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
        };
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
}
