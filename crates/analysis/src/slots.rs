//! Slots shared by successive lifetimes: each lifetime takes the lowest free slot at its birth.
//!
//! Threads get the number of their worker in this way: 1,000 short threads with successive lifetimes share one worker, as they would share
//! one CPU. Objects of one allocation site get their row: rows that are alive at the same time lie side by side in order of birth, and
//! temporary objects with successive lifetimes share one row.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A lifetime in ns, `born` inclusive; `released` is when its slot may be taken again.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    pub born: u64,
    pub released: u64,
}

/// The slot of each lifetime, and the number of slots.
///
/// Births are processed in order of time, then of index. A lifetime that ends before it begins occupies its slot for no time.
#[must_use]
pub fn lowest_free_slots(lifetimes: &[Lifetime]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&i| (lifetimes[i].born, i));
    let mut slots = vec![0; lifetimes.len()];
    let (mut free, mut busy) = (BinaryHeap::<Reverse<usize>>::new(), BinaryHeap::<Reverse<(u64, usize)>>::new());
    let mut count = 0;
    for i in order {
        while let Some(&Reverse((released, slot))) = busy.peek()
            && released <= lifetimes[i].born
        {
            busy.pop();
            free.push(Reverse(slot));
        }
        let slot = free.pop().map_or(count, |Reverse(slot)| slot);
        count = count.max(slot + 1);
        slots[i] = slot;
        busy.push(Reverse((lifetimes[i].released, slot)));
    }
    (slots, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(lifetimes: &[(u64, u64)]) -> (Vec<usize>, usize) {
        let list: Vec<Lifetime> = lifetimes.iter().map(|&(born, released)| Lifetime { born, released }).collect();
        lowest_free_slots(&list)
    }

    /// Check that successive lifetimes share a slot and that the lowest free one is taken.
    #[test]
    fn lowest_free_slot_is_taken() {
        assert_eq!(slots(&[(0, 100), (1, 10), (2, 20), (10, 30), (21, 30)]), (vec![0, 1, 2, 1, 2], 3));
        assert_eq!(slots(&[]), (vec![], 0));
    }

    /// Check that a lifetime that ends before it begins counts as empty.
    #[test]
    fn reversed_lifetimes_are_empty() {
        assert_eq!(slots(&[(10, 5), (11, 20), (12, 20)]), (vec![0, 0, 1], 2));
    }
}
