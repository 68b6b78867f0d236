//! Threads with different code: producers and consumers, the stages of a pipeline. Nothing in memory says so, but the functions that make the accesses do.

use crate::evidence::Hit;
use crate::partition::thinned;
use crate::threads::Threads;
use firsttouch_model::rows::{Id, Profile};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Threads are of one kind if one function makes at least this part of the accesses of each.
const SAME: f64 = 0.1;
/// A thread with fewer accesses seen may not have been seen in a function that it has in common with others.
const ENOUGH: f64 = 8.0;
/// With so many, it is a member of the kind that it has its function from.
const MEMBER: f64 = 2.0;
/// The threads of a kind count if they make at least this part of the accesses seen. (Of a loop that writes, samples show fewer accesses than of one that reads.)
const PART: f64 = 0.03;

/// Whether threads of at least two kinds, which have no function in common, make a good part of the accesses each. A first thread that is of a kind of its
/// own does not count: it may work while the others wait. The accesses of code without a name say nothing.
pub fn are_of_several_kinds<'h>(profile: &Profile, threads: &Threads, hits: impl Iterator<Item = &'h Hit> + Clone) -> bool {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut by_site: HashMap<Id, Option<usize>> = HashMap::new();
    let mut accesses: BTreeMap<usize, BTreeMap<usize, f64>> = BTreeMap::new();
    let count = hits.clone().count();
    for hit in thinned(hits, count) {
        let ([by], [(Some(site), _)]) = (&hit.by_thread[..], &hit.sites[..]) else { continue };
        let function = *by_site.entry(*site).or_insert_with(|| {
            let name = profile.sites.get(site)?.frames.first()?.function.as_deref()?;
            let next = numbers.len();
            Some(*numbers.entry(name).or_insert(next))
        });
        if let Some(function) = function {
            *accesses.entry(threads.list[by.thread].worker).or_default().entry(function).or_default() += 1.0;
        }
    }
    kinds(&accesses) > 1
}

/// The number of kinds that count. `accesses`: by worker and function.
fn kinds(accesses: &BTreeMap<usize, BTreeMap<usize, f64>>) -> usize {
    let sum = |functions: &BTreeMap<usize, f64>| functions.values().sum::<f64>();
    let all: f64 = accesses.values().map(sum).sum();
    let mut joined = Joined::default();
    for functions in accesses.values().filter(|functions| sum(functions) >= ENOUGH) {
        let least = SAME * sum(functions);
        let mut own = functions.iter().filter(|(_, count)| **count >= least).map(|(function, _)| *function);
        if let Some(first) = own.next() {
            own.for_each(|other| joined.join(first, other));
        }
    }
    // By a function of the kind: the number of threads, whether the first one is among them, and their accesses.
    let mut found: BTreeMap<usize, (usize, bool, f64)> = BTreeMap::new();
    let (many, few): (Vec<_>, Vec<_>) = accesses.iter().partition(|(_, functions)| sum(functions) >= ENOUGH);
    for (is_enough, (worker, functions)) in many.into_iter().map(|one| (true, one)).chain(few.into_iter().map(|one| (false, one))) {
        let main = functions.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(function, _)| *function);
        let kind = joined.root(main.unwrap_or_default());
        // Of a thread with few accesses seen, they tell only whether it is one more of a kind.
        if is_enough || (found.contains_key(&kind) && sum(functions) >= MEMBER) {
            let kind = found.entry(kind).or_default();
            *kind = (kind.0 + 1, kind.1 || *worker == 0, kind.2 + sum(functions));
        }
    }
    found.values().filter(|(threads, has_first, accesses)| (*threads > 1 || !has_first) && *accesses >= PART * all).count()
}

/// Functions that threads have in common, as a forest of union-find.
#[derive(Default)]
struct Joined {
    /// By function; a missing one is its own.
    above: HashMap<usize, usize>,
}

impl Joined {
    fn root(&mut self, function: usize) -> usize {
        let mut at = function;
        while let Some(&above) = self.above.get(&at) {
            // Halves the path for the next question.
            if let Some(&two_above) = self.above.get(&above) {
                self.above.insert(at, two_above);
            }
            at = above;
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.above.insert(one.max(other), one.min(other));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds_of(threads: &[&[(usize, f64)]]) -> usize {
        let of = |functions: &&[(usize, f64)]| functions.iter().copied().collect::<BTreeMap<usize, f64>>();
        let list: Vec<BTreeMap<usize, f64>> = threads.iter().map(of).collect();
        let forwards = kinds(&list.iter().cloned().enumerate().collect());
        let workers = list.len();
        // The first thread stays the first, and the others change places.
        let back = list.into_iter().enumerate().map(|(worker, own)| (if worker == 0 { 0 } else { workers - worker }, own));
        assert_eq!(kinds(&back.collect()), forwards, "in another order");
        forwards
    }

    /// Check that producers and consumers are told from threads that have functions in common, directly or by way of others, and that few samples say nothing.
    #[test]
    fn threads_with_code_of_their_own() {
        let producer: &[(usize, f64)] = &[(1, 10.0)];
        let consumer: &[(usize, f64)] = &[(2, 20.0), (3, 20.0)];
        assert_eq!(kinds_of(&[producer, consumer, producer, consumer]), 2);
        assert_eq!(kinds_of(&[producer, &[(1, 2.0), (2, 9.0)], consumer]), 1, "the second has both");
        assert_eq!(kinds_of(&[consumer, &[(1, 7.0)]]), 0, "too few, and the other is the first thread");
        assert_eq!(kinds_of(&[&[(9, 400.0)], producer, &[(2, 400.0)]]), 1, "nearly all are by one");
        assert_eq!(kinds_of(&[&[(9, 50.0)], consumer, consumer]), 1, "the first thread may work alone");
        assert_eq!(kinds_of(&[&[(9, 50.0)], producer, consumer]), 2);
        assert_eq!(kinds_of(&[&[(9, 50.0)], &[(9, 2.0)], consumer]), 2, "two accesses make it a second one of the first's kind");
        assert_eq!(kinds_of(&[&[(9, 50.0)], &[(7, 2.0)], consumer]), 1);
        // A common function of a small part joins whatever threads came before.
        assert_eq!(kinds_of(&[&[(1, 100.0)], &[(1, 88.0), (2, 12.0)], &[(3, 88.0), (2, 12.0)]]), 1);
        assert_eq!(kinds_of(&[]), 0);
    }

    /// Check that very many threads with functions of their own take no long time.
    #[test]
    fn many_threads() {
        let threads = 100_000;
        let of = |worker: usize| (worker, [(worker, 10.0), (worker + 1, 10.0)].into_iter().collect());
        assert_eq!(kinds(&(0..threads).map(of).collect()), 1, "a chain");
        let apart = |worker: usize| (worker, [(worker, 10.0)].into_iter().collect());
        assert_eq!(kinds(&(0..threads).map(apart).collect()), 0, "none makes enough");
    }
}
