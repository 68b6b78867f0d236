//! The node of an address: the node of the thread that first touched its page.
//!
//! `home(address, time)`, pages of the object's page size:
//! 1. The latest record of the same page at or before `time`. If all its records are later, the page is not yet touched.
//! 2. Without a record of the page, it is not yet touched in two cases. The nearest record below or above is later than `time`: the page
//!    between them was touched at about that time. Or the thread that is seen there reaches its own nearest records after `time`, with the
//!    code that made the first touches: several threads initialise at the same time, each its own parts ([`comes_later`]).
//! 3. Else the 8 nearest records in address decide: their thread if they agree, else that of the nearest one, marked as uncertain; where threads alternate ([`MIXED`]), of one that is drawn. It is
//!    uncertain too if the nearest one is much further away than records are from each other, and those on both sides differ: then the place
//!    belongs to the thread that was on its way there, if that shows ([`on_its_way`]). (If the
//!    touches follow a rule, such as a period or one worker per row, and the threads change from record to record, the rule decides instead of an
//!    uncertain neighbour: `evidence/sample_home.rs`.) Records that stand for their own page alone do not count where near ones stand for more: the
//!    pages of a thread whose touches were all recorded have records, so a page without one belongs to another thread.
//! 4. Without any record: the thread for which the kernel touched the pages, if that was derived; else unknown.
//!
//! On the recorded machine, the kernel's answer for a page nearby replaces the node. Without one, the object's memory policy does, if it is not
//! first touch ([`by_policy`]).

use crate::residents::Residents;
use crate::touch_record::Placed;
use crate::touches::ObjectTouches;
use firsttouch_model::rows::{Object, Placing};
use std::cmp::Reverse;

/// The number of nearest records that must agree if the page itself has none.
const NEIGHBOURS: usize = 8;
/// The kernel's answers apply to pages at most this fraction (1 / `REACH`) of the object away.
const REACH: u64 = 8;
/// A record shows the home of places at most so many times as far away as what it stands for, if those on both sides of them differ.
const CLOSE: f64 = 4.0;
/// The number of records that are searched for a thread's own next record, or for one that counts.
const OWN: usize = 1024;
/// Threads alternate where at least so many pairs of neighbours among the nearest records differ. At a border of two parts, there is one change, and around a part that
/// is smaller than the records are apart, there are two.
const MIXED: usize = 3;
/// The golden ratio less one, in 64 bits: its multiples are spread evenly, and never in step with a period of the memory.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// A record with this weight stands for more than its own page.
const REPRESENTS: f64 = 1.5;

/// The node of an address at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Home {
    /// Not touched yet: an access at this time initialises it.
    Untouched,
    Unknown,
    Known {
        /// Thread index of the first toucher, if known.
        thread: Option<usize>,
        node: u32,
        /// The node that first touch alone would give: where the first toucher ran, regardless of memory policy, full nodes and
        /// migration. None if unknown.
        first: Option<u32>,
        /// Whether it comes from a record of the page itself or from neighbours that agree.
        sure: bool,
    },
}

/// The home of `offset` into an object at `time`.
#[must_use]
pub fn home(touches: &ObjectTouches, kernel_node: impl Fn(usize) -> u32, offset: u64, time: u64) -> Home {
    home_among(&touches.placed, touches, kernel_node, offset, time)
}

/// The home of `offset` from `time` to `end`, in memory that may be initialised several times.
#[must_use]
pub fn home_between(touches: &ObjectTouches, kernel_node: impl Fn(usize) -> u32, offset: u64, (time, end): (u64, u64)) -> Home {
    let Some((this, next)) = touches.history.as_ref().and_then(|history| history.at(offset, time)) else {
        return home(touches, kernel_node, offset, time);
    };
    let above = next.partition_point(|p| p.offset <= offset);
    let around = above.checked_sub(1).and_then(|i| next.get(i)).into_iter().chain(next.get(above));
    if around.into_iter().any(|p| p.touch.time <= end) {
        return Home::Untouched;
    }
    home_among(this, touches, kernel_node, offset, time)
}

/// Whether `thread` was still initialising at `offset` at `time`: its own nearest record below or above is later than `time` and from
/// the code that `same` accepts, and it has no earlier record of the page itself. Other threads may have touched the pages around it
/// or their part of this page before, because each thread initialises its own parts.
#[must_use]
pub fn comes_later(touches: &ObjectTouches, offset: u64, time: u64, thread: usize, same: impl Fn(&Placed) -> bool) -> bool {
    let list = &touches.placed;
    let page = |offset: u64| touches.address.wrapping_add(offset) / touches.page_bytes.max(1);
    let (low, high) = (list.partition_point(|p| page(p.offset) < page(offset)), list.partition_point(|p| page(p.offset) <= page(offset)));
    if list[low..high.max(low)].iter().any(|p| p.touch.time <= time && p.touch.thread == thread) {
        return false;
    }
    let own = |p: &&Placed| p.touch.thread == thread;
    let below = list[..low].iter().rev().take(OWN).find(own);
    let above = list[high.max(low)..].iter().take(OWN).find(own);
    [below, above].into_iter().flatten().any(|p| p.touch.time > time && same(p))
}

fn home_among(list: &[Placed], touches: &ObjectTouches, kernel_node: impl Fn(usize) -> u32, offset: u64, time: u64) -> Home {
    let page = |offset: u64| touches.address.wrapping_add(offset) / touches.page_bytes.max(1);
    let here = page(offset);
    let known =
        |p: &Placed, sure: bool| Home::Known { thread: Some(p.touch.thread), node: p.touch.node, first: Some(p.touch.cpu_node), sure };
    let low = list.partition_point(|p| page(p.offset) < here);
    let high = list.partition_point(|p| page(p.offset) <= here).max(low);
    let exact = &list[low..high];
    if !exact.is_empty() {
        let latest = exact.iter().filter(|p| p.touch.time <= time).max_by_key(|p| p.touch.time);
        return latest.map_or(Home::Untouched, |p| known(p, true));
    }
    if let Some(thread) = touches.kernel {
        return thread.map_or(Home::Unknown, |t| Home::Known {
            thread: Some(t),
            node: kernel_node(t),
            first: Some(kernel_node(t)),
            sure: true,
        });
    }
    if list.is_empty() {
        return Home::Unknown;
    }
    let late = |p: Option<&Placed>| p.is_some_and(|p| p.touch.time > time);
    if late(low.checked_sub(1).and_then(|i| list.get(i))) || late(list.get(low)) {
        return Home::Untouched;
    }
    let near = nearest(list, low, offset, time);
    let Some(first) = near.first() else { return Home::Untouched };
    if is_close(&near, offset) {
        return known(one_of_mixed(&near, here).unwrap_or(first), near.iter().all(|p| is_same(p, first)));
    }
    let is_sure = near.iter().all(|p| is_same(p, first)) && is_between(list, low, first);
    known(on_its_way(list, low).filter(|_| !is_sure).unwrap_or(first), is_sure)
}

/// Of the records on both sides of a long range without records, the one whose thread went towards it, if the other one's went away from it:
/// records are missing for some time in which all threads went on. `place`: the index of the first record above.
fn on_its_way(list: &[Placed], place: usize) -> Option<&Placed> {
    let (below, above) = (list.get(place.checked_sub(1)?)?, list.get(place)?);
    let before = list[..place - 1].iter().rev().take(OWN).find(|p| is_same(p, below));
    let behind = list[place + 1..].iter().take(OWN).find(|p| is_same(p, above));
    let (before, behind) = (before?.touch.time, behind?.touch.time);
    match (before < below.touch.time, behind < above.touch.time, before > below.touch.time, behind > above.touch.time) {
        (true, _, _, true) => Some(below),
        (_, true, true, _) => Some(above),
        _ => None,
    }
}

fn is_same(one: &Placed, other: &Placed) -> bool {
    (one.touch.thread, one.touch.node) == (other.touch.thread, other.touch.node)
}

/// One of the records around a page, drawn by what they stand for, if threads alternate there. The nearest one would be of the thread with more records,
/// or of the one whose records come just before the others' in each period. The same page has the same one each time.
fn one_of_mixed<'p>(near: &[&'p Placed], page: u64) -> Option<&'p Placed> {
    let mut list = near.to_vec();
    list.sort_by_key(|p| p.offset);
    let changes = list.windows(2).filter(|pair| !is_same(pair[0], pair[1])).count();
    if changes < MIXED {
        return None;
    }
    let all: f64 = list.iter().map(|p| p.covers()).sum();
    let mut left = page.wrapping_mul(GOLDEN) as f64 / u64::MAX as f64 * all;
    list.into_iter().find(|p| {
        left -= p.covers();
        left <= 0.0
    })
}

/// Whether the nearest record is as near as records should be, by what those around it stand for.
fn is_close(near: &[&Placed], offset: u64) -> bool {
    let covers = near.iter().map(|p| p.covers()).fold(0.0, f64::max);
    near.first().is_some_and(|first| first.offset.abs_diff(offset) as f64 <= CLOSE * covers)
}

/// Whether the records on both sides of a place are like this one. Another thread's records may be missing between two that differ, or behind
/// the last one.
fn is_between(list: &[Placed], place: usize, one: &Placed) -> bool {
    let below = place.checked_sub(1).and_then(|i| list.get(i)).or(list.last());
    let above = list.get(place).or(list.first());
    below.into_iter().chain(above).all(|p| is_same(p, one))
}

/// Up to `most` records on each side of a place, in the order of their offsets; `place` is the index at which `offset` would be inserted. Only those that
/// stand for more than their own pages, if there are such near it.
#[must_use]
pub fn around(list: &[Placed], place: usize, offset: u64, most: usize) -> Vec<&Placed> {
    around_if(list, place, offset, most, |_| true)
}

/// The same of the records that count.
fn around_if(list: &[Placed], place: usize, offset: u64, most: usize, counts: impl Fn(&Placed) -> bool) -> Vec<&Placed> {
    let of = |least_weight: f64| {
        let is_one = |p: &&Placed| p.touch.weight >= least_weight && counts(p);
        let below: Vec<&Placed> = list[..place].iter().rev().take(OWN).filter(is_one).take(most).collect();
        below.into_iter().rev().chain(list[place..].iter().take(OWN).filter(is_one).take(most)).collect::<Vec<&Placed>>()
    };
    let representing = of(REPRESENTS);
    let is_near = representing.iter().any(|p| p.offset.abs_diff(offset) as f64 <= CLOSE * p.covers());
    if is_near { representing } else { of(0.0) }
}

/// Up to eight records at or before `time`, nearest in offset first; `place` is the index at which `offset` would be inserted.
fn nearest(list: &[Placed], place: usize, offset: u64, time: u64) -> Vec<&Placed> {
    let mut near = around_if(list, place, offset, NEIGHBOURS, |p| p.touch.time <= time);
    // Of those at the same distance, the ones below come first, and of one page the latest.
    near.sort_by_key(|p| (p.offset.abs_diff(offset), p.offset > offset, Reverse(p.touch.time)));
    near.truncate(NEIGHBOURS);
    near
}

/// Replaces the derived node by the kernel's answer, on the recorded machine. `None` without one.
#[must_use]
pub fn observed(
    derived: Home,
    residents: &Residents,
    object: &Object,
    address: u64,
    time: u64,
    page_bytes: u64,
    nodes: usize,
) -> Option<Home> {
    if derived == Home::Untouched {
        return Some(derived);
    }
    // The first touch is better evidence than a few distant answers.
    let reach = if matches!(derived, Home::Known { .. }) { object.bytes / REACH } else { u64::MAX };
    let node = residents.node(object, address, time, page_bytes, reach).filter(|&node| (node as usize) < nodes)?;
    let (thread, first) = if let Home::Known { thread, first, .. } = derived { (thread, first) } else { (None, None) };
    Some(Home::Known { thread, node, first, sure: true })
}

/// Replaces the derived node by the one where the object's memory policy puts the page, on the recorded machine and where the kernel has not said
/// where it is: first touch did not place it.
#[must_use]
pub fn by_policy(derived: Home, placing: Placing, nodes: usize) -> Home {
    let (Home::Unknown | Home::Known { .. }) = derived else { return derived };
    let (thread, first) = if let Home::Known { thread, first, .. } = derived { (thread, first) } else { (None, None) };
    match placing {
        Placing::FirstTouch => derived,
        Placing::Node(node) if (node as usize) < nodes => Home::Known { thread, node, first, sure: true },
        Placing::Node(_) | Placing::Several => Home::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::touch_record::Touch;

    /// Check that a policy decides where pages are, and first touch only where the policy is first touch.
    #[test]
    fn policies_decide() {
        let touched = Home::Known { thread: Some(3), node: 0, first: Some(0), sure: false };
        let placed = Home::Known { thread: Some(3), node: 1, first: Some(0), sure: true };
        assert_eq!(by_policy(touched, Placing::FirstTouch, 2), touched);
        assert_eq!(by_policy(touched, Placing::Node(1), 2), placed);
        assert_eq!(by_policy(Home::Unknown, Placing::Node(1), 2), Home::Known { thread: None, node: 1, first: None, sure: true });
        assert_eq!((by_policy(touched, Placing::Several, 2), by_policy(touched, Placing::Node(2), 2)), (Home::Unknown, Home::Unknown));
        assert_eq!(by_policy(Home::Untouched, Placing::Node(1), 2), Home::Untouched);
    }

    fn touches(list: &[(u64, u64, usize)]) -> ObjectTouches {
        let placed = list.iter().map(|&(offset, time, thread)| {
            let touch = Touch {
                time,
                thread,
                node: thread as u32,
                address: offset,
                weight: 1.0,
                by_kernel: false,
                site: None,
                cpu_node: thread as u32,
                mapped: None,
                found: None,
                populated: None,
            };
            Placed { offset, touch, recycled: false, page_bytes: 4096 }
        });
        ObjectTouches {
            address: 0,
            bytes: 1 << 20,
            page_bytes: 4096,
            placed: placed.collect(),
            hints: Vec::new(),
            history: None,
            kernel: None,
            kernel_pages: 0.0,
            incomplete: false,
            is_full: false,
        }
    }

    fn ask(touches: &ObjectTouches, offset: u64, time: u64) -> Home {
        home(touches, |t| t as u32, offset, time)
    }

    /// Check that a thread which reaches its own parts later, with the initialising code, counts as initialising, and no other thread does.
    #[test]
    fn threads_initialise_together() {
        let t = touches(&[(0, 5, 0), (4096, 30, 1), (8192, 5, 0), (16384, 5, 0), (20480, 40, 1)]);
        let later = |offset: u64, time: u64, thread: usize| comes_later(&t, offset, time, thread, |_| true);
        assert_eq!(ask(&t, 12288, 20), Home::Known { thread: Some(0), node: 0, first: Some(0), sure: true });
        assert!(later(12288, 20, 1) && !later(12288, 20, 0) && !later(12288, 50, 1) && !later(12288, 20, 2));
        assert!(later(8192, 20, 1) && !later(8192, 20, 0), "a page may hold parts of two threads");
        assert!(!later(4096, 35, 1), "it has touched this page");
        assert!(!comes_later(&t, 12288, 20, 1, |_| false), "other code uses it");
    }

    /// Check that the page's own latest record counts, and that it is untouched before the first.
    #[test]
    fn own_page_first() {
        let t = touches(&[(0, 5, 0), (4100, 5, 1), (4200, 9, 2), (8192, 5, 3)]);
        assert_eq!(ask(&t, 4096, 9), Home::Known { thread: Some(2), node: 2, first: Some(2), sure: true });
        assert_eq!(ask(&t, 4096, 7), Home::Known { thread: Some(1), node: 1, first: Some(1), sure: true });
        assert_eq!(ask(&t, 4096, 4), Home::Untouched);
    }

    /// Check that records of one thread do not decide about a long range without records that another thread's records end.
    #[test]
    fn gaps_are_uncertain() {
        let first = (0..8).map(|page| (page * 4096, 5, 0));
        let gap = |next: usize| touches(&first.clone().chain((0..8).map(|page| ((100 + page) * 4096, 5, next))).collect::<Vec<_>>());
        let sure =
            |touches: &ObjectTouches, page: u64| matches!(ask(touches, page * 4096, 6), Home::Known { sure: true, thread: Some(0), .. });
        assert!(sure(&gap(2), 10) && !sure(&gap(2), 30), "thread 1 may be between 0 and 2");
        assert!(sure(&gap(0), 30) && sure(&gap(0), 200), "all are of one thread");
        assert!(!sure(&touches(&[(0, 5, 1), (4096, 5, 0), (8192, 5, 0)]), 60), "another thread may be behind the last record");
    }

    /// Check that a range without records belongs to the thread that went towards it, and to the nearest one if neither did, or both.
    #[test]
    fn threads_go_on_where_records_are_missing() {
        let of = |up: [bool; 2]| {
            let sweep = |first: u64, thread: usize, up: bool| {
                (0..8u64).map(move |page| ((first + page) * 4096, 10 + if up { page } else { 7 - page }, thread))
            };
            let all: Vec<(u64, u64, usize)> = sweep(0, 0, up[0]).chain(sweep(100, 1, up[1])).collect();
            let at = |page: u64| match ask(&touches(&all), page * 4096, 30) {
                Home::Known { thread, sure: false, .. } => thread,
                home => panic!("{home:?}"),
            };
            [at(20), at(90)]
        };
        assert_eq!(of([true, true]), [Some(0), Some(0)]);
        assert_eq!(of([false, false]), [Some(1), Some(1)]);
        assert_eq!(of([true, false]), [Some(0), Some(1)], "both went there");
        assert_eq!(of([false, true]), [Some(0), Some(1)], "neither went there");
    }

    /// Check that a page without a record is never of a thread whose touches all have one, and that threads which alternate share such pages evenly, though
    /// each one's records come at the same distance from the others'.
    #[test]
    fn pages_without_records_are_of_thinned_threads() {
        const ROWS: u64 = 2048;
        let recorded = |row: u64, thread: u64| thread == 2 || (row + [0, 1, 0, 20][thread as usize]).is_multiple_of(31);
        let places = || (0..ROWS).flat_map(|row| (0..4_u64).map(move |thread| (row, thread)));
        let mut all = touches(
            &places()
                .filter(|(row, thread)| recorded(*row, *thread))
                .map(|(row, t)| ((row * 4 + t) * 4096, 5, t as usize))
                .collect::<Vec<_>>(),
        );
        all.bytes = ROWS * 4 * 4096;
        all.placed.iter_mut().filter(|placed| placed.touch.thread != 2).for_each(|placed| placed.touch.weight = 31.0);
        let mut found = [0_u64; 4];
        for (row, thread) in places().filter(|(row, thread)| !recorded(*row, *thread)) {
            let Home::Known { thread: Some(home), sure: false, .. } = ask(&all, (row * 4 + thread) * 4096 + 8, 9) else {
                panic!("{row} {thread}")
            };
            found[home] += 1;
        }
        let whole: u64 = found.iter().sum();
        assert!(found[2] == 0 && [0, 1, 3].iter().all(|t| (found[*t] * 100 / whole).abs_diff(33) <= 6), "{found:?}");
        // Around one border, the nearest record decides.
        let blocks: Vec<_> = (0..64).map(|i| (i * 8 * 4096, 5, usize::from(i >= 32))).collect();
        let mut blocks = touches(&blocks);
        blocks.placed.iter_mut().for_each(|placed| placed.touch.weight = 8.0);
        let at = |page: u64| matches!(ask(&blocks, page * 4096, 9), Home::Known { thread: Some(1), .. });
        assert_eq!([200, 251, 253, 300].map(at), [false, false, true, true]);
    }

    /// Check that neighbours that agree give a certain home, that others give an uncertain one, and that later neighbours mean untouched.
    #[test]
    fn neighbours_decide() {
        let agree = touches(&[(0, 5, 1), (40_960, 5, 1)]);
        assert_eq!(ask(&agree, 20_000, 6), Home::Known { thread: Some(1), node: 1, first: Some(1), sure: true });
        assert_eq!(ask(&agree, 20_000, 4), Home::Untouched);
        let differ = touches(&[(0, 5, 1), (40_960, 5, 2)]);
        assert_eq!(ask(&differ, 30_000, 6), Home::Known { thread: Some(2), node: 2, first: Some(2), sure: false });
        let later = touches(&[(0, 5, 1), (40_960, 50, 1)]);
        assert_eq!(ask(&later, 20_000, 6), Home::Untouched);
        assert_eq!(ask(&touches(&[]), 20_000, 6), Home::Unknown);
    }
}
