//! How much of an object went to another node than its toucher ran on.
//!
//! A record counts by the space around it, not by the faults that it stands for. Two threads that fill their parts at the same time fault in
//! the same ticks, but firsttouch misses some of them: it opens the events in one tick of eight in a storm, the ring overflows, a thread waits
//! for a CPU. The faults that remain may then be one thread's three times as often as the other's, while both have filled all of their parts.
//! What happens to a page depends on its place (whose part it is, when that thread's node became full), so the records nearest to a page
//! say what happened to it.
//!
//! The variance has two parts: that of a fraction of so many records (by Kish's effective number), and, between two records that differ, the
//! unknown place where one ends and the other begins, uniform in the gap: gap^2 / 12.

use firsttouch_model::Estimate;

/// Where pages may not have been touched at all, a record says nothing about those farther away than so many times what it stands for.
pub(crate) const CLOSE: f64 = 4.0;

/// A first touch whose page was found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Logical position in the group, bytes.
    pub position: u64,
    /// The bytes of the faults that the record stands for.
    pub covers: f64,
    /// All pages around it are known to be touched.
    pub all_touched: bool,
    /// The page is on another node than the CPU of the thread.
    pub is_displaced: bool,
}

/// The fraction of the touched memory that went to another node than its toucher's. `None` without records.
#[must_use]
pub fn displaced(mut records: Vec<Found>) -> Option<Estimate> {
    records.sort_unstable_by_key(|record| record.position);
    let mut space: Vec<f64> = records.iter().map(|_| 0.0).collect();
    let mut boundaries = 0.0;
    for (i, pair) in records.windows(2).enumerate() {
        let gap = (pair[1].position - pair[0].position) as f64;
        let near = |record: &Found| if record.all_touched { gap / 2.0 } else { (gap / 2.0).min(CLOSE * record.covers) };
        space[i] += near(&pair[0]);
        space[i + 1] += near(&pair[1]);
        if pair[0].is_displaced != pair[1].is_displaced {
            boundaries += (near(&pair[0]) + near(&pair[1])).powi(2) / 12.0;
        }
    }
    // Nothing limits the first and the last one outwards: as much as inwards, and no more than they stand for.
    for (record, space) in records.iter().zip(&mut space).filter(|(record, space)| **space < record.covers / 2.0) {
        *space = record.covers / 2.0;
    }
    let all: f64 = space.iter().sum();
    let squares: f64 = space.iter().map(|space| space * space).sum();
    if all <= 0.0 {
        return None;
    }
    let away: f64 = records.iter().zip(&space).filter(|(record, _)| record.is_displaced).map(|(_, space)| space).sum();
    let (value, effective) = (away / all, all * all / squares);
    let error = (value * (1.0 - value) / effective + boundaries / (all * all)).sqrt();
    Some(Estimate::fraction(value, error, effective as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    /// The records of a thread that filled `pages` pages from page `first` on. Its faults were recorded while `on` said so, each `step`-th.
    fn filled(
        all_touched: bool,
        first: u64,
        pages: u64,
        step: u64,
        weight: f64,
        is_displaced: bool,
        on: impl Fn(u64) -> bool,
    ) -> Vec<Found> {
        let recorded = (0..pages).step_by(step as usize).filter(|page| on(*page));
        recorded.map(|page| Found { position: (first + page) * PAGE, covers: weight * PAGE as f64, all_touched, is_displaced }).collect()
    }

    /// Check that the fraction follows the space that was filled, though three quarters of one thread's faults were missed.
    #[test]
    fn missed_faults_of_one_thread() {
        for missed in [false, true] {
            let mut records = filled(true, 0, 16_384, 31, 31.0, false, |page| !missed || page / 512 % 4 == 1);
            records.extend(filled(true, 16_384, 16_384, 31, 31.0, true, |_| true));
            let found = displaced(records).unwrap();
            assert!((found.value - 0.5).abs() < 0.03 && found.low < 0.5 && found.high > 0.5, "{missed}: {found:?}");
        }
    }

    /// Check that a part of which nothing was recorded is not taken for a neighbour's, and pages that nobody touched for nobody's.
    #[test]
    fn untouched_memory_counts_for_nobody() {
        let mut records = filled(false, 0, 100, 1, 1.0, false, |_| true);
        records.extend(filled(false, 100_000, 100, 1, 1.0, true, |_| true));
        let found = displaced(records).unwrap();
        assert!((found.value - 0.5).abs() < 0.05, "{found:?}");
    }

    /// Check that one node's filling up part of the way shows, and that the interval knows the gap in which it happened.
    #[test]
    fn a_boundary_between_records() {
        let mut records = filled(false, 0, 8192, 2008, 2008.0, false, |_| true);
        records.extend(filled(false, 8192, 8192, 2008, 2008.0, true, |_| true));
        let found = displaced(records).unwrap();
        assert!(found.low < 0.5 && found.high > 0.5 && found.high - found.low > 0.2, "{found:?}");
        assert!(displaced(Vec::new()).is_none());
        let one = displaced(filled(false, 0, 1, 1, 1.0, true, |_| true)).unwrap();
        assert!(one.value == 1.0 && one.low < 0.5, "{one:?}");
    }
}
