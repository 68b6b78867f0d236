//! Teams of short threads that are created anew for every step, by `std::thread::scope`, `std::async` or pthread_create in a loop.
//!
//! Where the threads of a step live for a millisecond, some have ended before the others are born, and the lowest free slot says nothing of
//! what a thread does: its place in the code does. That is its rank among the threads that its creator makes in one step. Births are known
//! exactly, so the rank is the number of the birth modulo the number of threads a step. That number is the one by which the ranks tell most of
//! the parts that the threads were seen to use: the mutual information of rank and part, less what chance alone would give.

use crate::slots::{Lifetime, lowest_free_slots, slots_by_creator};
use firsttouch_model::rows::{Id, Profile, Thread};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Steps that must be seen, of as many threads as a step has.
const LEAST_STEPS: usize = 8;
/// The most threads a step, and the parts that an object is divided into.
const MOST_THREADS: usize = 64;
const PARTS: u64 = 32;
/// Sightings for each rank.
const LEAST_SEEN: usize = 6;
/// Ranks tell at least this part of what they could, and this many bits more than the slots do.
const LEAST_TOLD: f64 = 0.5;
const LEAST_BETTER: f64 = 0.2;
const NEARLY_ALL: f64 = 0.85;

/// A thread was seen to use a part of an object.
type Part = (Id, u64);

/// The slots of the threads of one process: those of a team that is created anew for every step by their rank, others by lifetime.
pub(crate) fn slots<'a>(seen: impl Fn() -> &'a Sightings, threads: &[&Thread], lifetime: impl Fn(&Thread) -> Lifetime) -> Vec<usize> {
    let lifetimes: Vec<Lifetime> = threads.iter().map(|thread| lifetime(thread)).collect();
    let creators: Vec<Option<Id>> = threads.iter().map(|thread| thread.parent).collect();
    let (slots, count) = slots_by_creator(&lifetimes, &creators);
    let mut of_parent: BTreeMap<Id, Vec<usize>> = BTreeMap::new();
    for (index, thread) in threads.iter().enumerate() {
        if let Some(parent) = thread.parent {
            of_parent.entry(parent).or_default().push(index);
        }
    }
    let mut ranks: HashMap<usize, (usize, usize)> = HashMap::new();
    for (team, mut siblings) in of_parent.into_values().enumerate() {
        siblings.sort_by_key(|&index| (threads[index].born_ns, threads[index].id));
        if siblings.len() < LEAST_STEPS * 2 || siblings.len() < count * 2 {
            continue;
        }
        if let Some(step) = threads_a_step(seen(), threads, &siblings, &slots) {
            ranks.extend(siblings.iter().enumerate().map(|(birth, &index)| (index, (team, birth % step))));
        }
    }
    if ranks.is_empty() {
        return slots;
    }
    let others: Vec<usize> = (0..threads.len()).filter(|index| !ranks.contains_key(index)).collect();
    let lives: Vec<Lifetime> = others.iter().map(|&index| lifetimes[index]).collect();
    let (others_slots, mut next) = lowest_free_slots(&lives);
    let mut result = vec![0; threads.len()];
    others.iter().zip(others_slots).for_each(|(&index, slot)| result[index] = slot);
    let mut first: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for rank in ranks.values().collect::<BTreeSet<_>>() {
        first.insert(*rank, next);
        next += 1;
    }
    ranks.iter().for_each(|(&index, rank)| result[index] = first[rank]);
    result
}

/// What the threads were seen to use.
pub(crate) struct Sightings(HashMap<Id, Vec<Part>>);

impl Sightings {
    pub(crate) fn new(profile: &Profile) -> Self {
        let objects: HashMap<Id, (u64, u64)> = profile.objects.iter().map(|object| (object.id, (object.address, object.bytes))).collect();
        let part = |id: Id, address: u64| {
            let (start, bytes) = objects.get(&id)?;
            let offset = address.checked_sub(*start).filter(|offset| offset < bytes)?;
            Some((id, (u128::from(offset) * u128::from(PARTS) / u128::from(*bytes)) as u64))
        };
        let thread_of: HashMap<Id, Id> = profile.samples.iter().map(|sample| (sample.id, sample.thread)).collect();
        // The operands of one loop are one sighting of each part.
        let sampled: BTreeSet<(Id, Part)> =
            profile.sampled_accesses.iter().filter_map(|access| Some((access.sample, part(access.object, access.address)?))).collect();
        let windows: HashMap<Id, Part> =
            profile.windows.iter().filter_map(|window| Some((window.id, part(window.object, window.address)?))).collect();
        let sampled = sampled.into_iter().filter_map(|(sample, part)| Some((*thread_of.get(&sample)?, part)));
        let watched = profile.accesses.iter().filter(|access| access.hits > 0);
        let watched = watched.filter_map(|access| Some((access.thread, *windows.get(&access.window)?)));
        let mut parts: HashMap<Id, Vec<Part>> = HashMap::new();
        sampled.chain(watched).for_each(|(thread, part)| parts.entry(thread).or_default().push(part));
        Self(parts)
    }
}

/// The number of threads that the creator of `siblings`, in order of birth, makes a step; `None` if it shows in no use of memory, or the
/// slots tell as much.
fn threads_a_step(seen: &Sightings, threads: &[&Thread], siblings: &[usize], slots: &[usize]) -> Option<usize> {
    let uses = |number: &dyn Fn(usize) -> usize| -> Vec<(usize, Part)> {
        let parts = |birth: usize| seen.0.get(&threads[siblings[birth]].id).into_iter().flatten();
        (0..siblings.len())
            .flat_map(|birth| parts(birth).map(move |part| (birth, *part)))
            .map(|(birth, part)| (number(birth), part))
            .collect()
    };
    let by_birth = uses(&|birth| birth);
    let told_by = |step: usize| told(by_birth.iter().map(|&(birth, part)| (birth % step, part)));
    let most = MOST_THREADS.min(by_birth.len() / LEAST_SEEN).min(siblings.len() / LEAST_STEPS);
    let told_by_step: Vec<(usize, f64)> = (2..=most).map(|step| (step, told_by(step))).collect();
    let best = told_by_step.iter().map(|(_, bits)| *bits).fold(0.0, f64::max);
    // A multiple of the step tells as much, and a little more by chance.
    let (step, bits) = told_by_step.into_iter().find(|(_, bits)| *bits >= NEARLY_ALL * best)?;
    let by_slot = told(uses(&|birth| slots[siblings[birth]]).into_iter());
    (bits >= LEAST_TOLD * (step as f64).log2() && bits >= by_slot + LEAST_BETTER).then_some(step)
}

/// The mutual information of a thread's number and the part that it uses, bits, less its mean where they are independent.
fn told(uses: impl Iterator<Item = (usize, Part)>) -> f64 {
    let (mut both, mut numbers, mut parts) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut all = 0.0;
    for (number, part) in uses {
        *both.entry((number, part)).or_insert(0.0) += 1.0;
        *numbers.entry(number).or_insert(0.0) += 1.0;
        *parts.entry(part).or_insert(0.0) += 1.0;
        all += 1.0;
    }
    if all == 0.0 {
        return 0.0;
    }
    let bits: f64 =
        both.iter().map(|((number, part), n): (&(usize, Part), &f64)| n / all * (n * all / (numbers[number] * parts[part])).log2()).sum();
    // Miller and Madow's correction.
    bits - (numbers.len() as f64 - 1.0) * (parts.len() as f64 - 1.0) / (2.0 * all * std::f64::consts::LN_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn thread(id: Id, parent: Option<Id>, born_ns: u64, died_ns: Option<u64>) -> Thread {
        Thread { id, process: 1, tid: 100 + id as i32, parent, born_ns, died_ns, ..Thread::default() }
    }

    fn life(thread: &Thread) -> Lifetime {
        Lifetime { born: thread.born_ns, released: thread.died_ns.unwrap_or(u64::MAX) }
    }

    /// Steps of `size` threads of 1 ms, born a ms after each other: at most two live at once. Every fifth thread is seen in the part that
    /// `part` gives its birth.
    fn world(size: usize, part: impl Fn(usize) -> u64) -> (Vec<Thread>, Sightings) {
        let births = 100 * size;
        let main = thread(0, None, 0, None);
        let others = (0..births).map(|birth| {
            let born = 10 * MS + birth as u64 * MS;
            thread(1 + birth as Id, Some(0), born, Some(born + MS + MS / 2))
        });
        let seen = (0..births).step_by(5).map(|birth| (1 + birth as Id, vec![(7, part(birth))]));
        (std::iter::once(main).chain(others).collect(), Sightings(seen.collect()))
    }

    fn slots_of((threads, seen): &(Vec<Thread>, Sightings)) -> Vec<usize> {
        slots(|| seen, &threads.iter().collect::<Vec<_>>(), life)
    }

    /// Check that threads of a step have their rank as slot although their lifetimes allow two slots only, and that the creator keeps its own.
    #[test]
    fn short_threads_have_their_rank() {
        let slots = slots_of(&world(4, |birth| (birth % 4) as u64 * 8 + ((birth as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61)));
        let expected: Vec<usize> = std::iter::once(0).chain((0..400).map(|birth| 1 + birth % 4)).collect();
        assert_eq!(slots, expected);
    }

    /// Check that threads that take any part keep the slots of their lifetimes, as do threads that hardly were seen.
    #[test]
    fn without_ranks_lifetimes_decide() {
        let any = world(4, |birth| (birth as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58);
        let by_lifetime = |(threads, _): &(Vec<Thread>, Sightings)| lowest_free_slots(&threads.iter().map(life).collect::<Vec<_>>()).0;
        assert_eq!(slots_of(&any), by_lifetime(&any));
        let (threads, seen) = world(4, |birth| (birth % 4) as u64);
        let few = (threads, Sightings(seen.0.into_iter().filter(|(thread, _)| *thread < 40).collect()));
        assert_eq!(slots_of(&few), by_lifetime(&few));
    }

    /// Check that a team whose lifetimes show the rank keeps its slots: they hold where the number of threads a step varies.
    #[test]
    fn overlapping_teams_keep_their_slots() {
        let mut threads = vec![thread(0, None, 0, None)];
        let mut seen = HashMap::new();
        for step in 0..100 {
            let born = (1 + step) * 10 * MS;
            for rank in 0..(3 + step % 3) {
                let id = threads.len() as Id;
                threads.push(thread(id, Some(0), born + rank, Some(born + 9 * MS + rank)));
                seen.insert(id, vec![(7, rank * 10)]);
            }
        }
        let world = (threads, Sightings(seen));
        let slots = slots_of(&world);
        assert_eq!(&slots[1..8], [1, 2, 3, 1, 2, 3, 4]);
    }
}
