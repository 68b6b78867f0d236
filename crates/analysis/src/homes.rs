//! Where an address is: the node of the thread that first touched its page.
//!
//! `home(address, time)`, pages of the object's page size:
//! 1. records of the same page: the latest at or before `time` (none that early: not yet touched);
//! 2. else, not yet touched when the nearest record below or above came after `time` (the page between them was touched
//!    about then);
//! 3. else the 8 nearest records in address: all by one thread, that one; of several, the nearest, marked as doubtful;
//!    (where the touches follow a rule, a period or one thread a row, that rule then decides: `uses.rs`);
//! 4. without any record: the thread the kernel touched for, where that was derived; else unknown.
//!
//! On a real machine the kernel's answer replaces the node where there is one near.

use crate::residents::Residents;
use crate::touches::{ObjectTouches, Placed};
use firsttouch_profile::Object;

/// Records that must agree where the page itself has none.
const NEIGHBOURS: usize = 8;

/// Where an address was at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Home {
    /// Not touched yet: an access now is an initialisation.
    Untouched,
    Unknown,
    Known {
        /// First toucher (index), where known.
        thread: Option<usize>,
        node: u32,
        /// From a record of the page itself, or from neighbours that agree.
        sure: bool,
    },
}

/// The home of `offset` into an object at `time`.
#[must_use]
pub fn home(touches: &ObjectTouches, kernel_node: impl Fn(usize) -> u32, offset: u64, time: u64) -> Home {
    let list = &touches.placed;
    let page = |offset: u64| touches.address.wrapping_add(offset) / touches.page_bytes.max(1);
    let here = page(offset);
    let known = |p: &Placed, sure: bool| Home::Known { thread: Some(p.touch.thread), node: p.touch.node, sure };
    let low = list.partition_point(|p| page(p.offset) < here);
    let high = list.partition_point(|p| page(p.offset) <= here).max(low);
    let exact = &list[low..high];
    if !exact.is_empty() {
        let latest = exact.iter().filter(|p| p.touch.time <= time).max_by_key(|p| p.touch.time);
        return latest.map_or(Home::Untouched, |p| known(p, true));
    }
    if let Some(thread) = touches.kernel {
        return thread.map_or(Home::Unknown, |t| Home::Known { thread: Some(t), node: kernel_node(t), sure: true });
    }
    if list.is_empty() {
        return Home::Unknown;
    }
    let late = |p: Option<&Placed>| p.is_some_and(|p| p.touch.time > time);
    if late(low.checked_sub(1).and_then(|i| list.get(i))) || late(list.get(low)) {
        return Home::Untouched;
    }
    let near = nearest(list, low, offset, time);
    match near.first() {
        Some(first) => known(first, near.iter().all(|p| p.touch.thread == first.touch.thread)),
        None => Home::Untouched,
    }
}

/// Up to eight records at or before `time`, nearest in offset first; `place` is where `offset` belongs in the list.
fn nearest(list: &[Placed], place: usize, offset: u64, time: u64) -> Vec<&Placed> {
    let early = |p: &&Placed| p.touch.time <= time;
    let mut below = list[..place].iter().rev().filter(early).peekable();
    let mut above = list[place..].iter().filter(early).peekable();
    let mut near = Vec::with_capacity(NEIGHBOURS);
    while near.len() < NEIGHBOURS {
        let next = match (below.peek(), above.peek()) {
            (Some(b), Some(a)) if b.offset.abs_diff(offset) <= a.offset.abs_diff(offset) => below.next(),
            (_, Some(_)) => above.next(),
            (Some(_), None) => below.next(),
            (None, None) => break,
        };
        near.extend(next);
    }
    near
}

/// Replaces the node of a derived home by the kernel's answer on a real machine.
#[must_use]
pub fn observed(derived: Home, residents: &Residents, object: &Object, address: u64, time: u64, page_bytes: u64, nodes: usize) -> Home {
    if derived == Home::Untouched {
        return derived;
    }
    match residents.node(object, address, time, page_bytes).filter(|&node| (node as usize) < nodes) {
        Some(node) => {
            let thread = if let Home::Known { thread, .. } = derived { thread } else { None };
            Home::Known { thread, node, sure: true }
        }
        None => derived,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::touches::Touch;

    fn touches(list: &[(u64, u64, usize)]) -> ObjectTouches {
        let placed = list.iter().map(|&(offset, time, thread)| {
            let touch = Touch { time, thread, node: thread as u32, address: offset, weight: 1.0, by_kernel: false, site: None };
            Placed { offset, touch, recycled: false, page_bytes: 4096 }
        });
        ObjectTouches {
            address: 0,
            bytes: 1 << 20,
            page_bytes: 4096,
            placed: placed.collect(),
            kernel: None,
            kernel_pages: 0.0,
            incomplete: false,
        }
    }

    fn ask(touches: &ObjectTouches, offset: u64, time: u64) -> Home {
        home(touches, |t| t as u32, offset, time)
    }

    /// Check that the page's own latest record counts, and that it is untouched before the first.
    #[test]
    fn own_page_first() {
        let t = touches(&[(0, 5, 0), (4100, 5, 1), (4200, 9, 2), (8192, 5, 3)]);
        assert_eq!(ask(&t, 4096, 9), Home::Known { thread: Some(2), node: 2, sure: true });
        assert_eq!(ask(&t, 4096, 7), Home::Known { thread: Some(1), node: 1, sure: true });
        assert_eq!(ask(&t, 4096, 4), Home::Untouched);
    }

    /// Check that agreeing neighbours are sure, others doubtful, and later neighbours mean untouched.
    #[test]
    fn neighbours_decide() {
        let agree = touches(&[(0, 5, 1), (40_960, 5, 1)]);
        assert_eq!(ask(&agree, 20_000, 6), Home::Known { thread: Some(1), node: 1, sure: true });
        assert_eq!(ask(&agree, 20_000, 4), Home::Untouched);
        let differ = touches(&[(0, 5, 1), (40_960, 5, 2)]);
        assert_eq!(ask(&differ, 30_000, 6), Home::Known { thread: Some(2), node: 2, sure: false });
        let later = touches(&[(0, 5, 1), (40_960, 50, 1)]);
        assert_eq!(ask(&later, 20_000, 6), Home::Untouched);
        assert_eq!(ask(&touches(&[]), 20_000, 6), Home::Unknown);
    }
}
