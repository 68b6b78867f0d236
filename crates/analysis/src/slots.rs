//! Slots shared by successive lifetimes: each lifetime takes the lowest free slot at its birth.
//!
//! Threads get the number of their worker in this way: 1,000 short threads with successive lifetimes share one worker, as they would share
//! one CPU. Objects of one allocation site get their row: rows that are alive at the same time lie side by side in order of birth, and
//! temporary objects with successive lifetimes share one row.

use firsttouch_model::rows::Id;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A creator of so many threads has slots for them.
const LEAST_CREATED: usize = 8;
/// A thread's exit may be recorded late, by at most this part of its life, when its creator has made its successor.
const LATE: u64 = 4;
/// So many threads of a creator usually live at once, if that is so after at least this part of the births after which the most frequent number live.
const USUAL: f64 = 0.4;

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

/// So many objects for each slot show that threads allocate one after the other.
const IN_TURN: usize = 4;

/// The slots of objects, and their number: as [`lowest_free_slots`], but where several threads each allocate many objects in turn (temporary arrays), the
/// objects of a thread share slots of their own. Which thread's array is next to take the lowest free slot is chance, and the slot would look as if
/// several threads used it. `makers`: the thread that allocates each, by any number.
#[must_use]
pub fn slots_by_maker(lifetimes: &[Lifetime], makers: &[Option<Id>]) -> (Vec<usize>, usize) {
    let mut made_by: BTreeMap<Option<Id>, Vec<usize>> = BTreeMap::new();
    for (index, maker) in makers.iter().enumerate() {
        made_by.entry(*maker).or_default().push(index);
    }
    if made_by.len() < 2 || lifetimes.len() < IN_TURN * made_by.len() || made_by.contains_key(&None) {
        return lowest_free_slots(lifetimes);
    }
    let (mut slots, mut rows) = (vec![0; lifetimes.len()], 0);
    for own in made_by.values() {
        let (of_own, count) = lowest_free_slots(&own.iter().map(|&index| lifetimes[index]).collect::<Vec<Lifetime>>());
        own.iter().zip(of_own).for_each(|(&index, slot)| slots[index] = rows + slot);
        rows += count;
    }
    if lifetimes.len() < IN_TURN * rows { lowest_free_slots(lifetimes) } else { (slots, rows) }
}

/// The slots of threads, and their number. While several creators make many threads at the same time (nested parallel regions, whose inner teams
/// are made anew for each region), each has slots of its own: else its threads would take those of the others' by turns. `creators`: of each
/// thread, by any number.
#[must_use]
pub fn slots_by_creator(lifetimes: &[Lifetime], creators: &[Option<Id>]) -> (Vec<usize>, usize) {
    let making = makers(lifetimes, creators);
    if making.is_empty() {
        return lowest_free_slots(lifetimes);
    }
    let usual: HashMap<Id, Usual> = making.keys().map(|creator| (*creator, Usual::new(lifetimes, creators, *creator))).collect();
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&i| (lifetimes[i].born, i));
    let mut slots = vec![0; lifetimes.len()];
    let mut held: Vec<Slot> = Vec::new();
    for i in order {
        let life = lifetimes[i];
        let own = creators[i].and_then(|creator| Some((creator, *making.get(&creator)?)));
        let is_own = |slot: &Slot| own.is_some_and(|(creator, _)| slot.is_of(creator, life.born));
        let usual = own.map(|(creator, _)| &usual[&creator]);
        let is_left = |slot: &Slot| usual.is_some_and(|usual| slot.is_left(life.born, usual.life));
        let slot = held.iter().position(|slot| is_own(slot) && is_left(slot)).or_else(|| {
            // All of its usual slots are held: the exit of the thread that leaves next was late.
            let all = || held.iter().enumerate().filter(|(_, slot)| is_own(slot));
            let is_full = usual.is_some_and(|usual| all().count() >= usual.at_once);
            all().filter(|_| is_full).min_by_key(|(_, slot)| slot.released).map(|(index, _)| index)
        });
        let slot = slot.or_else(|| held.iter().position(|slot| slot.released <= life.born && slot.is_open(life.born)));
        let slot = slot.unwrap_or(held.len());
        let new = Slot { born: life.born, released: life.released, creator: own };
        if slot == held.len() {
            held.push(new)
        } else {
            held[slot] = new
        }
        slots[i] = slot;
    }
    (slots, held.len())
}

/// The creators that make many threads at the same time as another of them does, and until when (ns).
pub(crate) fn makers(lifetimes: &[Lifetime], creators: &[Option<Id>]) -> HashMap<Id, u64> {
    let mut making: HashMap<Id, (usize, u64, u64)> = HashMap::new();
    for (life, creator) in lifetimes.iter().zip(creators) {
        let Some(creator) = creator else { continue };
        let (count, first, last) = making.entry(*creator).or_insert((0, life.born, life.born));
        (*count, *first, *last) = (*count + 1, (*first).min(life.born), (*last).max(life.born));
    }
    making.retain(|_, (count, ..)| *count >= LEAST_CREATED);
    let mut times: Vec<(u64, u64)> = making.values().map(|(_, first, last)| (*first, *last)).collect();
    times.sort_unstable();
    if !times.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return HashMap::new();
    }
    making.into_iter().map(|(creator, (_, _, last))| (creator, last)).collect()
}

/// The threads of a creator as they usually are.
struct Usual {
    /// How many live at once. Exits may be recorded late, so that one more is alive at some births.
    at_once: usize,
    /// How long one lives (ns): the median.
    life: u64,
}

impl Usual {
    fn new(lifetimes: &[Lifetime], creators: &[Option<Id>], creator: Id) -> Self {
        let mut own: Vec<Lifetime> =
            lifetimes.iter().zip(creators).filter(|(_, by)| **by == Some(creator)).map(|(life, _)| *life).collect();
        own.sort_by_key(|life| life.born);
        let mut alive = BinaryHeap::<Reverse<u64>>::new();
        // By the number of threads that live after a birth: how many births.
        let mut births: BTreeMap<usize, usize> = BTreeMap::new();
        for life in &own {
            while alive.peek().is_some_and(|Reverse(released)| *released <= life.born) {
                alive.pop();
            }
            alive.push(Reverse(life.released));
            *births.entry(alive.len()).or_default() += 1;
        }
        // Each number up to that of a team is reached once in each round, more than that only beside late exits.
        let most = births.values().copied().max().unwrap_or(0);
        let at_once = births.iter().rev().find(|(_, births)| **births as f64 >= USUAL * most as f64).map_or(1, |(alive, _)| *alive);
        let mut lives: Vec<u64> = own.iter().map(|life| life.released.saturating_sub(life.born)).collect();
        lives.sort_unstable();
        Self { at_once, life: lives.get(lives.len() / 2).copied().unwrap_or(0) }
    }
}

/// A slot, with the last thread that took it.
struct Slot {
    born: u64,
    released: u64,
    /// The creator whose slot it is, and until when.
    creator: Option<(Id, u64)>,
}

impl Slot {
    fn is_of(&self, creator: Id, time: u64) -> bool {
        self.creator.is_some_and(|(own, until)| own == creator && time <= until)
    }

    fn is_open(&self, time: u64) -> bool {
        self.creator.is_none_or(|(_, until)| until < time)
    }

    /// Whether its thread has ended, or is about to: by its own life, and by the usual one, since beside short threads one may live long.
    fn is_left(&self, time: u64, usual_life: u64) -> bool {
        self.released.saturating_sub(time) <= self.released.saturating_sub(self.born).min(usual_life) / LATE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the inner teams of two nested parallel regions, made anew for each region, keep their slots, also where one begins later or an
    /// exit is recorded late; and that one creator's threads have the slots of their lifetimes.
    #[test]
    fn nested_teams_have_slots_of_their_own() {
        let inner = |creator: Id, from: u64, count: u64| {
            // The exit of each fifth thread is recorded after the birth of the next.
            (0..count)
                .map(move |i| (Lifetime { born: from + i * 10, released: from + i * 10 + if i % 5 == 0 { 11 } else { 9 } }, Some(creator)))
        };
        let outer = [Lifetime { born: 0, released: 2000 }; 2].map(|life| (life, None));
        let all: Vec<(Lifetime, Option<Id>)> = outer.into_iter().chain(inner(0, 100, 100)).chain(inner(1, 305, 80)).collect();
        let (lifetimes, creators): (Vec<Lifetime>, Vec<Option<Id>>) = all.iter().copied().unzip();
        let (slots, count) = slots_by_creator(&lifetimes, &creators);
        let expected: Vec<usize> = [0, 1].into_iter().chain([2; 100]).chain([3; 80]).collect();
        assert_eq!((slots, count), (expected, 4));
        let by_one = vec![Some(0); all.len()];
        assert_eq!(slots_by_creator(&lifetimes, &by_one), lowest_free_slots(&lifetimes));
    }

    /// Check that temporary arrays of two threads do not take each other's slots, and that arrays which threads make once keep the slots of their lifetimes.
    #[test]
    fn temporaries_stay_with_their_thread() {
        // By turns, so that each lowest free slot is the other thread's last.
        let turn = |i: u64| Lifetime { born: 10 * i, released: 10 * i + 9 };
        let lifetimes: Vec<Lifetime> = (0..16).map(turn).collect();
        let makers: Vec<Option<Id>> = (0..16).map(|i| Some(Id::from(i % 2))).collect();
        assert_eq!(slots_by_maker(&lifetimes, &makers), ((0..16).map(|i| i % 2).collect(), 2));
        let once: Vec<Option<Id>> = (0..16).map(Some).collect();
        for others in [once, vec![Some(0); 16], vec![None; 16]] {
            assert_eq!(slots_by_maker(&lifetimes, &others), lowest_free_slots(&lifetimes));
        }
        let kept: Vec<Lifetime> = (0..16).map(|i| Lifetime { born: i, released: u64::MAX }).collect();
        assert_eq!(slots_by_maker(&kept, &makers), lowest_free_slots(&kept), "all are alive");
    }

    /// Check that a few very late exits give no slots of their own, and that teams of two keep two.
    #[test]
    fn late_exits_take_no_slots() {
        let one = |creator: Id, from: u64| {
            (0..100)
                .map(move |i| (Lifetime { born: from + i * 10, released: from + i * 10 + if i % 20 == 0 { 18 } else { 9 } }, Some(creator)))
        };
        let two = |creator: Id, from: u64| {
            (0..100).map(move |i| (Lifetime { born: from + i / 2 * 10 + i % 2, released: from + i / 2 * 10 + 9 }, Some(creator)))
        };
        let all: Vec<(Lifetime, Option<Id>)> = one(0, 0).chain(two(1, 1)).collect();
        let (lifetimes, creators): (Vec<Lifetime>, Vec<Option<Id>>) = all.iter().copied().unzip();
        let (slots, count) = slots_by_creator(&lifetimes, &creators);
        assert_eq!((&slots[..100], count), (&[0; 100][..], 3));
        assert!(slots[100..].chunks(2).all(|pair| pair == [1, 2]), "{slots:?}");
    }

    /// Check that an outer thread keeps its slot to its end beside the short threads of its creator, and that exits that are late by nearly
    /// their life, for a quarter of the threads (a busy machine), give no slots.
    #[test]
    fn outer_threads_keep_their_slots() {
        let outer = [(Lifetime { born: 0, released: 4000 }, None), (Lifetime { born: 1, released: 4000 }, Some(0))];
        let inner = |creator: Id, from: u64| {
            (0..380)
                .map(move |i| (Lifetime { born: from + i * 10, released: from + i * 10 + if i % 4 == 0 { 18 } else { 9 } }, Some(creator)))
        };
        let all: Vec<(Lifetime, Option<Id>)> = outer.into_iter().chain(inner(0, 100)).chain(inner(1, 103)).collect();
        let (lifetimes, creators): (Vec<Lifetime>, Vec<Option<Id>>) = all.iter().copied().unzip();
        let (slots, count) = slots_by_creator(&lifetimes, &creators);
        let expected: Vec<usize> = [0, 1].into_iter().chain([2; 380]).chain([3; 380]).collect();
        assert_eq!((slots, count), (expected, 4));
    }

    /// Check that a creator that ends leaves its slots to others.
    #[test]
    fn slots_are_left_to_others() {
        let made =
            |creator: Id, from: u64| (0..10).map(move |i| (Lifetime { born: from + i * 10, released: from + i * 10 + 9 }, Some(creator)));
        let all: Vec<(Lifetime, Option<Id>)> = made(0, 0).chain(made(1, 5)).chain(made(2, 200)).chain(made(3, 205)).collect();
        let (lifetimes, creators): (Vec<Lifetime>, Vec<Option<Id>>) = all.iter().copied().unzip();
        let (slots, count) = slots_by_creator(&lifetimes, &creators);
        let expected: Vec<usize> = [0, 1, 0, 1].into_iter().flat_map(|slot| [slot; 10]).collect();
        assert_eq!((slots, count), (expected, 2));
    }

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
