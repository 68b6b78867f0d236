//! Describes where each worker's part of an object is, as a rule that a plan can apply.
//!
//! A partition is recognised from samples, so its borders are known only to within the distance of two samples. Programs divide by rules,
//! mostly into equal parts in the order of their threads. So equal parts are tried first, over all workers that use any object, and over
//! the workers found here. They are accepted if they explain the samples as well as the borders found, except for chance.

use super::{MOST_TURNS, Owners, Partition, cyclic};
use std::collections::{BTreeMap, BTreeSet};

/// A rule with more parts than this is not reported.
const MOST_PARTS: usize = 256;
/// If no equal parts fit, a period is divided into this many stretches, and the majority decides the worker of each.
const STRETCHES: usize = 64;
/// Equal parts may explain this much less of the samples than fitted borders do, plus one sample.
const WORSE: f64 = 0.01;
/// A period may be rounded to whole pages, cache lines or elements if that shifts its last repetition by less than this fraction of it.
const SHIFT: f64 = 0.01;
const UNITS: [f64; 6] = [4096.0, 64.0, 16.0, 8.0, 4.0, 1.0];

/// The parts of an object, each with its worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerParts {
    pub period_bytes: Option<f64>,
    /// Where each part ends, as a fraction of the period or of the whole range; ascending, the last is 1.
    pub ends: Vec<f64>,
    pub workers: Vec<usize>,
}

impl WorkerParts {
    fn equal(period_bytes: Option<f64>, workers: Vec<usize>) -> Self {
        let count = workers.len().max(1) as f64;
        Self { period_bytes, ends: (1..=workers.len()).map(|part| part as f64 / count).collect(), workers }
    }

    /// Makes parts from (start, worker), sorted by start, which is in [0, 1).
    fn from_starts(period_bytes: Option<f64>, starts: impl IntoIterator<Item = (f64, usize)>) -> Self {
        let mut parts = Self { period_bytes, ends: Vec::new(), workers: Vec::new() };
        for (start, worker) in starts {
            if parts.workers.last() == Some(&worker) {
                continue;
            }
            if !parts.workers.is_empty() {
                parts.ends.push(start.clamp(0.0, 1.0));
            }
            parts.workers.push(worker);
        }
        if !parts.workers.is_empty() {
            parts.ends.push(1.0);
        }
        parts
    }

    /// The worker that owns a position in a range of `extent` bytes.
    fn worker(&self, position: u64, extent: u64) -> Option<usize> {
        let place = match self.period_bytes {
            Some(period) => (position as f64 / period).fract(),
            None => position as f64 / extent.max(1) as f64,
        };
        self.workers.get(self.ends.partition_point(|end| *end <= place)).or(self.workers.last()).copied()
    }
}

/// The object that is divided, and the samples on it.
pub struct Divided<'a> {
    pub extent: u64,
    pub rows: usize,
    /// (position, worker) of each sample.
    pub seen: &'a [(u64, usize)],
    /// All workers that use any object.
    pub team: &'a BTreeSet<usize>,
}

impl Divided<'_> {
    /// The fraction of the samples that the parts explain.
    fn explained(&self, parts: &WorkerParts) -> f64 {
        let right = self.seen.iter().filter(|(position, worker)| parts.worker(*position, self.extent) == Some(*worker)).count();
        right as f64 / self.seen.len().max(1) as f64
    }

    /// Equal parts if they explain the samples as well as the parts found; else the parts found.
    fn plainest(&self, found: WorkerParts) -> WorkerParts {
        let least = self.explained(&found) - WORSE - 1.0 / self.seen.len().max(1) as f64;
        let mut own = found.workers.clone();
        own.sort_unstable();
        own.dedup();
        let in_order = WorkerParts::equal(found.period_bytes, found.workers.clone());
        let candidates = [self.team.iter().copied().collect(), own].map(|workers| WorkerParts::equal(found.period_bytes, workers));
        let candidates = candidates.into_iter().chain([in_order]).filter(|parts| (2..=MOST_PARTS).contains(&parts.workers.len()));
        candidates.into_iter().find(|parts| self.explained(parts) >= least).unwrap_or(found)
    }

    /// Equal parts that repeat a whole number of times, if they explain the samples as well as the parts found: the samples show a period of few turns
    /// to within a few per cent only.
    fn whole_turns(&self, found: &WorkerParts) -> Option<WorkerParts> {
        let turns = (self.extent as f64 / found.period_bytes?).round();
        if !(2.0..=MOST_TURNS as f64).contains(&turns) {
            return None;
        }
        let repeated = WorkerParts { period_bytes: Some(self.extent as f64 / turns), ..found.clone() };
        let plain = self.plainest(repeated);
        let is_equal = plain.ends.iter().enumerate().all(|(at, end)| (end - (at + 1) as f64 / plain.ends.len() as f64).abs() < 1e-9);
        let least = self.explained(found) - WORSE - 1.0 / self.seen.len().max(1) as f64;
        (is_equal && self.explained(&plain) >= least).then_some(plain)
    }

    fn period(&self, period: f64) -> f64 {
        let shift = |whole: f64| (whole - period).abs() / period * (self.extent as f64 / period);
        let rounded = UNITS.iter().map(|unit| (period / unit).round() * unit);
        rounded.into_iter().find(|whole| *whole > 0.0 && shift(*whole) < SHIFT).unwrap_or(period)
    }

    /// The parts of a period: the majority decides the worker of each stretch.
    fn periodic(&self, period: f64, phases: &[(f64, usize)]) -> WorkerParts {
        let stretch = |index: usize| {
            let middle = (index as f64 + 0.5) / STRETCHES as f64 * period;
            let within = |phase: f64| (phase * STRETCHES as f64) as usize == index;
            let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
            phases.iter().filter(|(phase, _)| within(*phase)).for_each(|(_, worker)| *votes.entry(*worker).or_default() += 1);
            let most = votes.into_iter().max_by_key(|(_, count)| *count).map(|(worker, _)| worker);
            most.or_else(|| cyclic::owner(period, phases, middle as u64)).map(|worker| (index as f64 / STRETCHES as f64, worker))
        };
        WorkerParts::from_starts(Some(self.period(period)), (0..STRETCHES).filter_map(stretch))
    }

    fn by_row(&self, stride: u64, owners: &BTreeMap<u64, usize>) -> WorkerParts {
        let team: Vec<usize> = self.team.iter().copied().collect();
        let in_turn = WorkerParts::equal(Some((stride as f64) * team.len() as f64), team);
        let near = |row: u64| {
            let below = owners.range(..=row).next_back();
            below.into_iter().chain(owners.range(row..).next()).min_by_key(|(other, _)| other.abs_diff(row)).map(|(_, worker)| *worker)
        };
        let rows = self.rows.max(1) as u64;
        let whole = stride.saturating_mul(rows).max(1) as f64;
        let found = WorkerParts::from_starts(None, (0..rows).filter_map(|row| Some(((row * stride) as f64 / whole, near(row)?))));
        let least = self.explained(&found) - WORSE - 1.0 / self.seen.len().max(1) as f64;
        if in_turn.workers.len() >= 2 && self.explained(&in_turn) >= least { in_turn } else { self.plainest(found) }
    }
}

impl Partition {
    /// The rule, if the partition is stable and has few enough parts.
    #[must_use]
    pub fn parts(&self, divided: &Divided<'_>) -> Option<WorkerParts> {
        let extent = divided.extent.max(1) as f64;
        let starts = |list: &[(u64, usize)]| WorkerParts::from_starts(None, list.iter().map(|(at, worker)| (*at as f64 / extent, *worker)));
        let parts = match &self.owners {
            Owners::Nobody => return None,
            Owners::One(worker) => WorkerParts::equal(None, vec![*worker]),
            Owners::Blocks(list) => divided.plainest(starts(list)),
            Owners::Rows(stride, rows) => divided.by_row(*stride, rows),
            Owners::Periodic(period, phases) => {
                let found = divided.plainest(divided.periodic(*period, phases));
                divided.whole_turns(&found).unwrap_or(found)
            }
            Owners::Nearest(list, _) => {
                let mut middles = Vec::with_capacity(list.len());
                let mut last: Option<u64> = None;
                for &(position, worker) in list {
                    middles.push((last.map_or(0, |last| last + position.saturating_sub(last) / 2), worker));
                    last = Some(position);
                }
                starts(&middles)
            }
        };
        (1..=MOST_PARTS).contains(&parts.workers.len()).then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::PartitionKind;
    use super::*;

    fn parts(owners: Owners, kind: PartitionKind, seen: &[(u64, usize)], rows: usize, stride: u64) -> WorkerParts {
        let team = (0..4).collect();
        let divided = Divided { extent: stride * rows as u64, rows, seen, team: &team };
        Partition::new(kind, owners).parts(&divided).unwrap()
    }

    /// Check that borders found from samples become the equal parts of the program, and that unequal parts stay unequal.
    #[test]
    fn equal_parts_are_recognised() {
        let seen: Vec<(u64, usize)> = (0..100).map(|i| (i * 10_000, (i / 25) as usize)).collect();
        let found =
            parts(Owners::Blocks(vec![(0, 0), (245_000, 1), (505_000, 2), (745_000, 3)]), PartitionKind::Block, &seen, 1, 1_000_000);
        assert_eq!((found.ends, found.workers), (vec![0.25, 0.5, 0.75, 1.0], vec![0, 1, 2, 3]));
        let seen: Vec<(u64, usize)> = (0..100).map(|i| (i * 10_000, if i < 70 { 0 } else { (i / 10 - 6) as usize })).collect();
        let unequal = vec![(0, 0), (695_000, 1), (795_000, 2), (895_000, 3)];
        let found = parts(Owners::Blocks(unequal), PartitionKind::Block, &seen, 1, 1_000_000);
        assert_eq!(found.ends, [0.695, 0.795, 0.895, 1.0]);
    }

    /// Check periods, and rows that are dealt out in turn.
    #[test]
    fn turns_are_recognised() {
        let period = 4.0 * 65536.0;
        let seen: Vec<(u64, usize)> = (0..400).map(|i| (i * 10_007, (i * 10_007 / 65536 % 4) as usize)).collect();
        let mut phases: Vec<(f64, usize)> = seen.iter().map(|(at, worker)| ((*at as f64 / period).fract(), *worker)).collect();
        phases.sort_by(|a, b| a.0.total_cmp(&b.0));
        let found = parts(Owners::Periodic(period + 0.3, phases), PartitionKind::BlockCyclic, &seen, 1, 4_002_800);
        assert_eq!((found.period_bytes, found.ends, found.workers), (Some(period), vec![0.25, 0.5, 0.75, 1.0], vec![0, 1, 2, 3]));

        // A period of 260 cache lines and half of one, seen not quite exactly.
        let team = (0..4).collect();
        let divided = Divided { extent: 4_000_000, rows: 1, seen: &seen, team: &team };
        assert_eq!([20_800.003_4, 20_808.001, 20_801.3].map(|period| divided.period(period)), [20_800.0, 20_808.0, 20_801.0]);

        let seen: Vec<(u64, usize)> = (0..40).map(|row| (row * 65536 + 100, (row % 4) as usize)).collect();
        let rows = (0..40).filter(|row| row % 7 != 3).map(|row| (row, (row % 4) as usize)).collect();
        let found = parts(Owners::Rows(65536, rows), PartitionKind::BlockCyclic, &seen, 40, 65536);
        assert_eq!((found.period_bytes, found.workers), (Some(period), vec![0, 1, 2, 3]));
    }
}
