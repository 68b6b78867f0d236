//! Measured memory bandwidth over time: of the whole system, from counters of memory controllers or of caches.

use firsttouch_model::rows::{Bandwidth, Id, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// A stretch of time is known if this part of it was measured.
const LEAST_KNOWN: f64 = 0.5;

/// Measured bandwidth in stretches of equal length. Other programs count too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredBandwidth {
    /// `uncore`: counted where the memory is. `resctrl`: counted where the CPUs are. Several if the hosts of a merged profile differ.
    pub sources: BTreeSet<String>,
    /// The nodes that have counters.
    pub nodes: Vec<u32>,
    pub stretches: Vec<Stretch>,
}

/// What was transferred in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    pub length_s: f64,
    /// As [`MeasuredBandwidth::nodes`].
    pub nodes: Vec<Transferred>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transferred {
    /// The time in which it was counted.
    pub known_s: f64,
    pub bytes: f64,
    /// Of memory controllers: the part that was read. Of resctrl: the part from the CPUs' own node.
    pub read_bytes: Option<f64>,
    pub local_bytes: Option<f64>,
}

impl Transferred {
    fn add(&mut self, other: &Self) {
        let is_first = self.known_s <= 0.0;
        let sum = |one: Option<f64>, other: Option<f64>| if is_first { other } else { one.zip(other).map(|(one, other)| one + other) };
        (self.read_bytes, self.local_bytes) = (sum(self.read_bytes, other.read_bytes), sum(self.local_bytes, other.local_bytes));
        (self.known_s, self.bytes) = (self.known_s + other.known_s, self.bytes + other.bytes);
    }
}

impl Stretch {
    /// GB/s of a node, by its index.
    #[must_use]
    pub fn gb_per_s(&self, node: usize) -> Option<f64> {
        let node = self.nodes.get(node).filter(|node| node.known_s > 0.0 && node.known_s >= LEAST_KNOWN * self.length_s)?;
        Some(node.bytes / node.known_s / 1e9)
    }

    /// GB/s of all nodes together; `None` if one of them is not known.
    #[must_use]
    pub fn total_gb_per_s(&self) -> Option<f64> {
        let known = (0..self.nodes.len()).map(|node| self.gb_per_s(node)).collect::<Option<Vec<f64>>>()?;
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// The part of the transfers that was read.
    #[must_use]
    pub fn reads(&self) -> Option<f64> {
        self.part(|node| node.read_bytes)
    }

    /// The part of the transfers that came from another node than that of the CPUs.
    #[must_use]
    pub fn remote(&self) -> Option<f64> {
        self.part(|node| node.local_bytes).map(|local| 1.0 - local)
    }

    fn part(&self, of: impl Fn(&Transferred) -> Option<f64>) -> Option<f64> {
        let counted = self.nodes.iter().filter(|node| node.known_s > 0.0);
        let (bytes, part) = counted.map(|node| Some((node.bytes, of(node)?))).try_fold((0.0, 0.0), |sum, one| {
            let (bytes, part) = one?;
            Some((sum.0 + bytes, sum.1 + part))
        })?;
        (bytes > 0.0).then(|| (part / bytes).clamp(0.0, 1.0))
    }

    /// Consecutive stretches as one.
    #[must_use]
    pub fn sum(stretches: &[Self]) -> Self {
        let mut sum = Self::default();
        for stretch in stretches {
            sum.length_s += stretch.length_s;
            sum.nodes.resize(sum.nodes.len().max(stretch.nodes.len()), Transferred::default());
            for (all, one) in sum.nodes.iter_mut().zip(&stretch.nodes).filter(|(_, one)| one.known_s > 0.0) {
                all.add(one);
            }
        }
        sum
    }
}

/// The bandwidth that a profile has measured from `start_ns` on, in `count` stretches of `stretch_ns`. `None` without counters.
#[must_use]
pub fn measured_bandwidth(profile: &Profile, start_ns: u64, stretch_ns: u64, count: usize) -> Option<MeasuredBandwidth> {
    let chosen = chosen(profile);
    let nodes: Vec<u32> = chosen.keys().copied().collect();
    let length_s = stretch_ns as f64 / 1e9;
    let mut stretches = vec![Stretch { length_s, nodes: vec![Transferred::default(); nodes.len()] }; count];
    for (index, rows) in chosen.values().enumerate() {
        for row in rows {
            let (from, to) = (row.from_ns.max(start_ns) - start_ns, row.to_ns.saturating_sub(start_ns));
            let first = usize::try_from(from / stretch_ns.max(1)).unwrap_or(count);
            for (at, stretch) in (first as u64..).zip(stretches.iter_mut().skip(first)) {
                let begin = from.max(at.saturating_mul(stretch_ns));
                let end = to.min(at.saturating_add(1).saturating_mul(stretch_ns));
                if begin >= end {
                    break;
                }
                let part = (end - begin) as f64 / (row.to_ns - row.from_ns) as f64;
                let scaled = |bytes: u64| bytes as f64 * part;
                stretch.nodes[index].add(&Transferred {
                    known_s: (end - begin) as f64 / 1e9,
                    bytes: scaled(row.bytes),
                    read_bytes: row.read_bytes.map(scaled),
                    local_bytes: row.local_bytes.map(scaled),
                });
            }
        }
    }
    let sources = chosen.values().flatten().map(|row| row.source.clone()).collect();
    (!nodes.is_empty()).then_some(MeasuredBandwidth { sources, nodes, stretches })
}

/// The rows of each node. Several ranks of a host have counted the same: those of the one that did it longest count.
fn chosen(profile: &Profile) -> BTreeMap<u32, Vec<&Bandwidth>> {
    /// The rows of one recorder.
    type Series<'p> = BTreeMap<(Option<Id>, &'p str), Vec<&'p Bandwidth>>;
    let mut series: BTreeMap<u32, Series<'_>> = BTreeMap::new();
    for row in profile.bandwidth.iter().filter(|row| row.from_ns < row.to_ns) {
        series.entry(row.node).or_default().entry((row.part, &row.source)).or_default().push(row);
    }
    let covered = |rows: &Vec<&Bandwidth>| rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.to_ns - row.from_ns));
    // The first of several that are equally long.
    series.into_iter().map(|(node, all)| (node, all.into_values().rev().max_by_key(covered).unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(node: u32, from_ns: u64, to_ns: u64, bytes: u64) -> Bandwidth {
        Bandwidth { source: "uncore".into(), node, from_ns, to_ns, bytes, read_bytes: Some(bytes / 4), local_bytes: None, part: None }
    }

    fn measured(rows: Vec<Bandwidth>) -> Option<MeasuredBandwidth> {
        measured_bandwidth(&Profile { bandwidth: rows, ..Profile::default() }, 1_000, 100, 4)
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-9)
    }

    /// Check that bytes go to the stretches that they were transferred in, and that stretches with a gap are not known.
    #[test]
    fn bytes_by_stretch() {
        // 2, then 6 bytes a ns on node 0; the first reading began before the run, and the last 120 ns have none.
        let found =
            measured(vec![row(0, 950, 1_050, 200), row(0, 1_050, 1_150, 600), row(0, 1_180, 1_280, 600), row(3, 1_000, 1_400, 400)])
                .unwrap();
        assert_eq!(found.nodes, [0, 3]);
        let speeds: Vec<Option<f64>> = found.stretches.iter().map(|stretch| stretch.gb_per_s(0)).collect();
        assert!(near(speeds[0], 4.0) && near(speeds[1], 6.0) && near(speeds[2], 6.0) && speeds[3].is_none(), "{speeds:?}");
        assert!(near(found.stretches[0].total_gb_per_s(), 5.0) && found.stretches[3].total_gb_per_s().is_none());
        assert!(near(found.stretches[0].reads(), 0.25) && found.stretches[0].remote().is_none());
        let whole = Stretch::sum(&found.stretches);
        assert!(near(whole.gb_per_s(0), 1_300.0 / 250.0) && near(whole.gb_per_s(1), 1.0), "{whole:?}");
        assert_eq!(measured(vec![row(0, 9, 9, 1), row(0, 9, 8, 1)]), None);
    }

    /// Check that what several ranks of a host have counted counts once, and that the remote part needs the local one everywhere.
    #[test]
    fn hosts_count_once() {
        let of = |part, to_ns, bytes| Bandwidth { part: Some(part), ..row(0, 1_000, to_ns, bytes) };
        let found = measured(vec![of(0, 1_200, 200), of(1, 1_400, 800), of(2, 1_400, 1_200)]).unwrap();
        assert!(near(found.stretches[0].total_gb_per_s(), 2.0), "{found:?}");
        let by_cache =
            |node, local_bytes| Bandwidth { source: "resctrl".into(), read_bytes: None, local_bytes, ..row(node, 1_000, 1_400, 400) };
        let found = measured(vec![by_cache(0, Some(100)), by_cache(1, Some(500))]).unwrap();
        assert!(near(found.stretches[0].remote(), 0.25) && found.stretches[0].reads().is_none());
        assert!(measured(vec![by_cache(0, Some(100)), by_cache(1, None)]).unwrap().stretches[0].remote().is_none());
    }

    /// Check that no values of rows, however damaged, end in a panic.
    #[test]
    fn damaged_rows() {
        for (from_ns, to_ns) in [(0, u64::MAX), (u64::MAX - 1, u64::MAX), (1_000, 1_001)] {
            let found = measured_bandwidth(
                &Profile { bandwidth: vec![row(1023, from_ns, to_ns, u64::MAX)], ..Profile::default() },
                1_000,
                u64::MAX / 3,
                4,
            );
            assert!(found.is_some_and(|found| found.stretches.len() == 4));
        }
    }
}
