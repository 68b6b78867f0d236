//! Threads with different code: producers and consumers, the stages of a pipeline. Nothing in memory says so, but the lines that make the accesses do.

use crate::evidence::Hit;
use crate::loops_apart::Line;
use crate::threads::Threads;
use firsttouch_model::rows::Profile;
use std::collections::BTreeMap;

/// Threads have the same code if at least this part of their accesses comes from the same lines.
const SAME: f64 = 0.1;
/// A thread with fewer accesses seen may not have been seen at the lines that it shares with others.
const ENOUGH: f64 = 8.0;
/// Threads with the same code count if they make at least this part of the accesses.
const PART: f64 = 0.1;

/// Whether threads that make a good part of the accesses have code that no other of them has, and others as well.
pub fn have_roles<'h>(profile: &Profile, threads: &Threads, hits: impl Iterator<Item = &'h Hit>) -> bool {
    let mut lines: BTreeMap<usize, BTreeMap<Line<'_>, f64>> = BTreeMap::new();
    for hit in hits {
        let ([by], [(site, _)]) = (&hit.by_thread[..], &hit.sites[..]) else { continue };
        *lines.entry(threads.list[by.thread].worker).or_default().entry(Line::of(profile, *site)).or_default() += 1.0;
    }
    are_apart(lines.into_values().collect())
}

/// By thread: the accesses by line.
fn are_apart<L: Ord + Clone>(threads: Vec<BTreeMap<L, f64>>) -> bool {
    let sum = |lines: &BTreeMap<L, f64>| lines.values().sum::<f64>();
    let all: f64 = threads.iter().map(sum).sum();
    // Threads with the same code, one after the other joins those that it shares lines with.
    let mut groups: Vec<BTreeMap<L, f64>> = Vec::new();
    for lines in threads.into_iter().filter(|lines| sum(lines) >= ENOUGH) {
        let (same, other): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| common(group, &lines) >= SAME);
        groups = other;
        let joined = same.into_iter().fold(lines, |mut all, one| {
            one.into_iter().for_each(|(line, count)| *all.entry(line).or_default() += count);
            all
        });
        groups.push(joined);
    }
    groups.iter().filter(|lines| sum(lines) >= PART * all).count() > 1
}

/// The part of the accesses of each that the lines of both have in common.
fn common<L: Ord>(one: &BTreeMap<L, f64>, other: &BTreeMap<L, f64>) -> f64 {
    let sums = [one, other].map(|lines| lines.values().sum::<f64>().max(f64::MIN_POSITIVE));
    one.iter().filter_map(|(line, count)| Some(f64::min(count / sums[0], other.get(line)? / sums[1]))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(list: &[(u32, f64)]) -> BTreeMap<u32, f64> {
        list.iter().copied().collect()
    }

    /// Check that producers and consumers are told from threads that share loops, directly or by way of others, and that few samples say nothing.
    #[test]
    fn threads_with_code_of_their_own() {
        let (producer, consumer) = (lines(&[(16, 10.0)]), lines(&[(25, 20.0), (26, 20.0)]));
        assert!(are_apart(vec![producer.clone(), consumer.clone(), producer.clone(), consumer.clone()]));
        assert!(!are_apart(vec![producer.clone(), lines(&[(16, 2.0), (25, 9.0)]), consumer.clone()]), "the second has both");
        assert!(!are_apart(vec![lines(&[(16, 7.0)]), consumer.clone()]), "too few");
        assert!(!are_apart(vec![producer, lines(&[(25, 200.0)])]), "nearly all are by one");
        assert!(!are_apart::<u32>(Vec::new()) && !are_apart(vec![consumer]));
    }
}
