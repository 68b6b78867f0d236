//! The memory of a process whose pages nobody had touched yet when it was last looked at.
//!
//! Where the kernel reports no page faults, looks at which pages are present show when a page was touched first: between the last look
//! that found it missing and the first one that found it there.

use super::live_objects::LiveObjects;
use firsttouch_model::rows::{Appeared, Id};
use firsttouch_system::calls::page_sizes::Present;
use std::collections::BTreeMap;

const PAGE: u64 = 4096;
/// Gaps that are followed at once. A process with more of them has many small objects.
const MOST_GAPS: usize = 8192;
/// Gaps so close to each other are looked at together: a call costs as much as looking at a hundred pages.
const TOGETHER: u64 = 64 * PAGE;

/// Where in its page a block begins that glibc maps on its own.
const OWN_MAPPING: u64 = 16;

/// Memory without pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    end: u64,
    /// No page was there at this time, ns.
    since_ns: u64,
}

/// Memory whose first touches have not been seen yet.
#[derive(Debug, Default)]
pub struct Unplaced {
    /// By start.
    gaps: BTreeMap<u64, Gap>,
    /// Of freed objects: nobody looks at them.
    freed: BTreeMap<u64, Gap>,
    /// Heaps of small blocks that are or were followed: start -> end.
    heaps: BTreeMap<u64, u64>,
    /// There is new memory since the last look.
    pub is_new: bool,
}

impl Unplaced {
    /// New memory, or memory whose pages were given back: whole pages of it are followed.
    pub fn watch(&mut self, address: u64, bytes: u64, since_ns: u64) {
        let (start, end) = (address.next_multiple_of(PAGE), address.saturating_add(bytes) / PAGE * PAGE);
        self.forget(address, bytes);
        if start < end && self.gaps.len() < MOST_GAPS {
            self.gaps.insert(start, Gap { end, since_ns });
            self.is_new = true;
        }
    }

    /// A new object. The allocator may give it memory that a former object had since the last look: the pages there may be that one's.
    pub fn watch_object(&mut self, address: u64, bytes: u64, since_ns: u64) {
        let (start, end) = (address.next_multiple_of(PAGE), address.saturating_add(bytes) / PAGE * PAGE);
        let older = cut(&mut self.freed, start, end.max(start));
        self.watch(address, bytes, since_ns);
        for (from, gap) in older {
            if self.gaps.len() < MOST_GAPS {
                cut(&mut self.gaps, from, gap.end);
                self.gaps.insert(from, gap);
            }
        }
    }

    /// An object was freed. Pages that appeared in it since the last look stay there, unless the allocator unmapped them: glibc maps large blocks on
    /// their own, 16 bytes behind a page's begin.
    pub fn freed(&mut self, address: u64, bytes: u64) {
        let (from, to) = (address / PAGE * PAGE, address.saturating_add(bytes).next_multiple_of(PAGE));
        let gaps = cut(&mut self.gaps, from, to);
        cut(&mut self.freed, from, to);
        if address % PAGE != OWN_MAPPING && self.freed.len() < MOST_GAPS {
            self.freed.extend(gaps);
        }
    }

    /// Heap memory around a small block, as far as it was not followed before. The objects in it are followed on their own.
    pub fn watch_heap(&mut self, (address, bytes): (u64, u64), since_ns: u64, objects: &LiveObjects) {
        let end = address.saturating_add(bytes);
        let mut from = address.max(self.heaps.range(..=address).next_back().map_or(0, |(_, &end)| end));
        let next = self.heaps.range(from..end).next().map_or(end, |(&start, _)| start);
        if from >= next {
            return;
        }
        self.heaps.insert(from, next);
        let held =
            objects.overlapping(from, next - from).into_iter().filter_map(|start| Some((start, objects.by_address.get(&start)?.bytes)));
        let mut held: Vec<(u64, u64)> = held.map(|(start, bytes)| (start, start.saturating_add(bytes))).collect();
        held.sort_unstable();
        for (start, end) in held.into_iter().chain([(next, next)]) {
            if from < start {
                self.watch(from, start - from, since_ns);
            }
            from = from.max(end);
        }
    }

    /// Memory was released.
    pub fn forget(&mut self, address: u64, bytes: u64) {
        let (from, to) = (address / PAGE * PAGE, address.saturating_add(bytes).next_multiple_of(PAGE));
        cut(&mut self.gaps, from, to);
        cut(&mut self.freed, from, to);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The ranges to look at.
    #[must_use]
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (&start, gap) in &self.gaps {
            match ranges.last_mut() {
                Some(last) if start - last.1 <= TOGETHER => last.1 = gap.end,
                _ => ranges.push((start, gap.end)),
            }
        }
        ranges
    }

    /// What a look at the ranges found, which began at `from_ns` and ended at `to_ns`: `present` in the order of addresses. Returns the memory whose pages
    /// appeared since the last look.
    pub fn looked(&mut self, process: Id, (from_ns, to_ns): (u64, u64), present: &[Present]) -> Vec<Appeared> {
        self.is_new = false;
        let mut appeared = Vec::new();
        let mut left = BTreeMap::new();
        let mut next = 0;
        for (&start, gap) in &self.gaps {
            while present.get(next).is_some_and(|one| one.end <= start) {
                next += 1;
            }
            let mut from = start;
            for one in present[next..].iter().take_while(|one| one.start < gap.end) {
                let (begin, end) = (one.start.max(from), one.end.min(gap.end));
                if begin >= end {
                    continue;
                }
                if begin > from {
                    left.insert(from, Gap { end: begin, since_ns: from_ns });
                }
                let (address, bytes, page_bytes) = (begin, end - begin, one.page_bytes);
                appeared.push(Appeared { process, from_ns: gap.since_ns, to_ns, address, bytes, page_bytes });
                from = end;
            }
            if from < gap.end {
                left.insert(from, Gap { end: gap.end, since_ns: from_ns });
            }
        }
        self.gaps = left;
        appeared
    }
}

/// Takes the parts between two addresses out of the gaps.
fn cut(gaps: &mut BTreeMap<u64, Gap>, from: u64, to: u64) -> Vec<(u64, Gap)> {
    let before = gaps.range(..from).next_back().filter(|(_, gap)| gap.end > from).map(|(&start, _)| start);
    let inside: Vec<u64> = before.into_iter().chain(gaps.range(from..to).map(|(&start, _)| start)).collect();
    let mut taken = Vec::new();
    for start in inside {
        let Some(gap) = gaps.remove(&start) else { continue };
        if start < from {
            gaps.insert(start, Gap { end: from, ..gap });
        }
        if gap.end > to {
            gaps.insert(to, gap);
        }
        taken.push((start.max(from), Gap { end: gap.end.min(to), ..gap }));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(list: &[(u64, u64)]) -> Vec<Present> {
        list.iter().map(|&(start, end)| Present { start: start * PAGE, end: end * PAGE, page_bytes: PAGE }).collect()
    }

    fn pages(appeared: &[Appeared]) -> Vec<(u64, u64, u64)> {
        appeared.iter().map(|one| (one.address / PAGE, one.bytes / PAGE, one.from_ns)).collect()
    }

    /// Check that each page appears once, with the time of the last look that found it missing.
    #[test]
    fn pages_appear_once() {
        let mut unplaced = Unplaced::default();
        unplaced.watch(100 * PAGE + 16, 20 * PAGE, 5);
        assert!(unplaced.is_new && unplaced.ranges() == [(101 * PAGE, 120 * PAGE)]);
        let found = unplaced.looked(1, (10, 11), &present(&[(90, 103), (110, 112)]));
        assert_eq!(pages(&found), [(101, 2, 5), (110, 2, 5)]);
        assert!(!unplaced.is_new && found.iter().all(|one| one.to_ns == 11 && one.process == 1));
        let found = unplaced.looked(1, (20, 21), &present(&[(90, 105), (110, 112), (119, 130)]));
        assert_eq!(pages(&found), [(103, 2, 10), (119, 1, 10)]);
        assert_eq!(pages(&unplaced.looked(1, (30, 31), &present(&[(90, 130)]))), [(105, 5, 20), (112, 7, 20)]);
        assert!(unplaced.is_empty());
    }

    /// Check that the pages of a new object in heap memory that a former one had since the last look are dated since that look, and those of a new
    /// mapping are not.
    #[test]
    fn reused_memory_keeps_its_time() {
        for (offset, since_ns) in [(48, 5), (OWN_MAPPING, 8)] {
            let mut unplaced = Unplaced::default();
            unplaced.watch_object(99 * PAGE + offset, 21 * PAGE, 5);
            unplaced.freed(99 * PAGE + offset, 21 * PAGE);
            assert!(unplaced.is_empty());
            unplaced.watch_object(110 * PAGE, 20 * PAGE, 8);
            let found = pages(&unplaced.looked(1, (10, 11), &present(&[(100, 130)])));
            let of_page = |page: u64| found.iter().find(|one| (one.0..one.0 + one.1).contains(&page)).map(|one| one.2);
            assert_eq!([109, 110, 119, 120, 129, 130].map(of_page), [None, Some(since_ns), Some(since_ns), Some(8), Some(8), None]);
            unplaced.watch_object(110 * PAGE, 10 * PAGE, 20);
            assert_eq!(pages(&unplaced.looked(1, (30, 31), &present(&[(100, 130)]))), [(110, 10, 20)], "the former look saw all pages");
        }
    }

    /// Check that released memory is not followed, and that memory which was given back is followed anew.
    #[test]
    fn released_memory_is_forgotten() {
        let mut unplaced = Unplaced::default();
        unplaced.watch(100 * PAGE, 20 * PAGE, 5);
        unplaced.forget(105 * PAGE, 5 * PAGE);
        assert_eq!(unplaced.gaps.iter().map(|(start, gap)| (start / PAGE, gap.end / PAGE)).collect::<Vec<_>>(), [(100, 105), (110, 120)]);
        assert_eq!(unplaced.ranges(), [(100 * PAGE, 120 * PAGE)], "neighbours are looked at together");
        assert_eq!(pages(&unplaced.looked(1, (10, 11), &present(&[(100, 120)]))), [(100, 5, 5), (110, 10, 5)]);
        unplaced.watch(112 * PAGE, 2 * PAGE, 20);
        assert_eq!(pages(&unplaced.looked(1, (30, 31), &present(&[(100, 120)]))), [(112, 2, 20)]);
        unplaced.watch(0, 100, 0);
        assert!(unplaced.is_empty(), "no whole page");
    }
}
