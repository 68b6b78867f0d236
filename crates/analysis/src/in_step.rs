//! Which objects the threads use in step: the arrays of one statement, `y[i] += x[i]`. A sample of registers shows all operands of a loop at one
//! time, and where each of them is in its object.
//!
//! Such objects are used in one way, so one partition holds for all of them, whichever of them shows it best.

use crate::evidence::Hit;
use crate::partition::{MIN_UNITS, Partition, PartitionKind};
use std::collections::BTreeMap;

/// Two positions are in step if they differ by at most this fraction of their objects.
const NEAR: f64 = 1.0 / 64.0;
/// Of the samples of each object, at least this fraction must show the other one in step.
const MOSTLY: f64 = 0.8;
/// A sample with more objects than this is not of one statement: the decoder did not tell its loop from others.
const MOST_OPERANDS: usize = 16;

/// Sets of groups that are used in step, each of two groups or more. `hits`: those of a source whose rounds are the operands of one loop at one time,
/// by group; `extents`: the bytes of each group.
pub fn in_step(hits: &[Vec<Hit>], extents: &[u64]) -> Vec<Vec<usize>> {
    let mut seen: Vec<(u64, usize, f64)> = Vec::new();
    for (group, own) in hits.iter().enumerate() {
        seen.extend(own.iter().map(|hit| (hit.round, group, hit.position as f64 / extents[group].max(1) as f64)));
    }
    // Of several operands in one object, the first stands for all.
    seen.sort_by_key(|one| (one.0, one.1));
    seen.dedup_by_key(|one| (one.0, one.1));
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for round in seen.chunk_by(|one, next| one.0 == next.0) {
        round.iter().for_each(|one| *counts.entry(one.1).or_default() += 1);
        if round.len() > MOST_OPERANDS {
            continue;
        }
        for (index, one) in round.iter().enumerate() {
            for other in round[index + 1..].iter().filter(|other| (one.2 - other.2).abs() <= NEAR) {
                *pairs.entry((one.1, other.1)).or_default() += 1;
            }
        }
    }
    let mut set_of: BTreeMap<usize, usize> = BTreeMap::new();
    let is_set = |((one, other), count): &(&(usize, usize), &usize)| {
        let most = counts[one].max(counts[other]);
        **count >= MIN_UNITS && **count as f64 >= MOSTLY * most as f64
    };
    for ((one, other), _) in pairs.iter().filter(is_set) {
        let (low, high) = (set_of.get(one).copied().unwrap_or(*one), set_of.get(other).copied().unwrap_or(*other));
        set_of.values_mut().filter(|set| **set == high).for_each(|set| *set = low);
        set_of.extend([(*one, low), (*other, low)]);
    }
    let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    set_of.iter().for_each(|(group, set)| sets.entry(*set).or_default().push(*group));
    sets.into_values().collect()
}

/// The partition of objects that are used in step: of each, its own partition and the number of its samples. If none has owners, one may show alone that
/// parts are dealt out (the one that is written). Else the one with the most samples decides. `None` if they have one kind already, or none is known.
pub fn common<'p>(own: &[(&'p Partition, usize)]) -> Option<&'p Partition> {
    use PartitionKind::{Irregular, Shared, Unknown};
    let known = || own.iter().filter(|(partition, _)| partition.kind != Unknown);
    let is_one = own.windows(2).all(|two| (two[0].0.kind, two[0].0.dealt_out) == (two[1].0.kind, two[1].0.dealt_out));
    if is_one {
        return None;
    }
    let has_owners = known().any(|(partition, _)| !matches!(partition.kind, Shared | Irregular));
    let dealt = known().find(|(partition, _)| partition.dealt_out && !has_owners);
    dealt.or_else(|| known().max_by_key(|(_, samples)| *samples)).map(|(partition, _)| *partition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::ByThread;
    use crate::few::Few;
    use crate::homes::Home;
    use crate::partition::{Sample, classify};

    fn hit(round: u64, position: u64) -> Hit {
        Hit {
            draw: 0,
            object: 0,
            offset: position,
            position,
            start: 0,
            end: 0,
            round,
            by_thread: Few::One(ByThread { thread: 0, rate: 1.0, hits: 1, cut: false, cpu_ns: None, node: 0 }),
            writes: None,
            strided: None,
            sites: Vec::new().into(),
            home: Home::Unknown,
        }
    }

    /// Check that x and y of `y[i] += a[i][k] * x[i]` are in step, also if their elements have other sizes, and that a table that is looked up in the same
    /// loop is not, nor an array that mostly another loop uses.
    #[test]
    fn operands_of_one_statement() {
        let of = |position: &dyn Fn(u64) -> u64| (0..40).map(|round| hit(round, position(round))).collect::<Vec<Hit>>();
        let mut elsewhere = of(&|round| round * 1000);
        elsewhere.extend((40..80).map(|round| hit(round, round % 7 * 5000)));
        let hits = [of(&|round| round * 1000), of(&|round| round * 500 + 100), of(&|round| round * 17 % 40 * 1000), elsewhere, Vec::new()];
        assert_eq!(in_step(&hits, &[40_000, 20_000, 40_000, 40_000, 40_000]), [vec![0, 1]]);
        let few: Vec<Vec<Hit>> = hits.iter().map(|hits| hits.iter().take(15).cloned().collect()).collect();
        assert!(in_step(&few, &[40_000, 20_000, 40_000, 40_000, 40_000]).is_empty());
    }

    /// Check that what one object shows for certain holds for all of them, and that nothing changes where they agree.
    #[test]
    fn one_partition_for_all() {
        let (shared, dealt, unknown) = (Partition::shared(), Partition::dealt_out_anew(), Partition::unknown());
        assert_eq!(common(&[(&shared, 500), (&dealt, 20)]), Some(&dealt));
        assert_eq!(common(&[(&unknown, 500), (&shared, 20)]), Some(&shared));
        let single = classify(&Sample { weights: [(3, 1.0)].into(), ..Sample::default() });
        assert_eq!(single.kind, PartitionKind::Single);
        assert_eq!(common(&[(&single, 500), (&dealt, 20)]), Some(&single));
        assert_eq!(common(&[(&dealt, 500), (&dealt, 20)]), None);
        assert_eq!(common(&[(&unknown, 1)]), None);
    }
}
