//! Whether memory is written while it is used: a table that is only read may be copied, and what threads pass on may not.

use crate::estimator::Design;
use crate::evidence::Hit;
use crate::groups::Group;
use crate::partition::MIN_UNITS;

/// Memory counts as written if at least one of so many samples writes it. A table of threads may be sorted or filled in parts before they only
/// read it. Processes that write a hundredth of the time into memory that they share exchange data through it (locks, pins, queues).
const WRITTEN: usize = 10;
const WRITTEN_BY_PROCESSES: usize = 50;

/// What a sample tells of reading and writing.
#[derive(Clone, Copy)]
pub struct Told {
    writes: bool,
    time: u64,
    /// The accesses that it stands for.
    pub accesses: f64,
}

impl Told {
    pub fn of(hit: &Hit, design: &Design) -> Option<Self> {
        Some(Self { writes: hit.writes?, time: hit.start, accesses: hit.rate() * design.weight(hit.draw) })
    }

    /// The same, standing for so many times the accesses.
    pub fn scaled(self, factor: f64) -> Self {
        Self { accesses: self.accesses * factor, ..self }
    }
}

/// Writes before this part of the reads are a first filling.
const FILLED: f64 = 0.05;

/// Whether memory is written while it is used; `None` with too few samples that tell, or if as many as the limit asks for may be chance: another run
/// would say the opposite.
pub fn is_written(told: &[Told], group: &Group) -> Option<bool> {
    are_written(told, if group.processes() > 1 { WRITTEN_BY_PROCESSES } else { WRITTEN })
}

/// By the samples, which count time, and by the accesses that they stand for: a fast loop that fills a buffer again and again has few samples, and a slow one
/// that reads it has many.
fn are_written(told: &[Told], one_of: usize) -> Option<bool> {
    let by_time = is_above_limit(told.len(), told.iter().filter(|one| one.writes).count(), one_of);
    let mut reads: Vec<u64> = told.iter().filter(|one| !one.writes).map(|one| one.time).collect();
    reads.sort_unstable();
    let filled = reads.get((FILLED * reads.len() as f64) as usize).copied().unwrap_or(0);
    let sum = |value: fn(&Told) -> f64| told.iter().filter(|one| !one.writes || one.time >= filled).map(value).sum::<f64>();
    let (accesses, squares) = (sum(|one| one.accesses), sum(|one| one.accesses * one.accesses));
    let written = sum(|one| if one.writes { one.accesses } else { 0.0 });
    // Kish's effective number: one sample that stands for many accesses is no evidence of many writes.
    let effective = accesses * accesses / squares;
    if !effective.is_finite() || effective < MIN_UNITS as f64 {
        return by_time;
    }
    let by_accesses = is_above_limit(effective.round() as usize, (written / accesses * effective).round() as usize, one_of);
    match (by_time, by_accesses) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

/// Whether at least one of `one_of` samples writes, if that is beyond one standard error of that limit.
fn is_above_limit(samples: usize, written: usize, one_of: usize) -> Option<bool> {
    let limit = 1.0 / one_of as f64;
    let (expected, error) = (samples as f64 * limit, (samples as f64 * limit * (1.0 - limit)).sqrt());
    let is_clear = (written as f64 - expected).abs() >= error;
    (samples >= MIN_UNITS && is_clear).then_some(written as f64 > expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that memory near the limit is neither written nor only read, and that few samples tell what is clear.
    #[test]
    fn the_limit_of_written_memory_is_open() {
        assert_eq!([0, 3, 5, 7, 8].map(|written| is_above_limit(50, written, WRITTEN)), [Some(false), None, None, None, Some(true)]);
        assert_eq!([0, 1, 2, 4].map(|written| is_above_limit(16, written, WRITTEN)), [Some(false), None, None, Some(true)]);
        assert_eq!(is_above_limit(8, 8, WRITTEN), None);
        // Of 100 samples, 8 write: as many accesses each as the others, ten times as many, and one of them a thousand times as many.
        let told = |writes, time, accesses| Told { writes, time, accesses };
        let of = |accesses: [f64; 8], every: u64| {
            let reads = (1000..1092).map(|time| told(false, time, 1.0));
            let writes = accesses.iter().zip(0..).map(|(one, i)| told(true, i * every, *one));
            are_written(&reads.chain(writes).collect::<Vec<_>>(), WRITTEN)
        };
        assert_eq!(of([10.0; 8], 300), Some(true));
        assert_eq!(of([10.0; 8], 1), None, "written before it is read");
        assert_eq!(of([0.1; 8], 300), None, "8 of 100 may be 10");
        assert_eq!(of([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1000.0], 300), None);
        let few = || (0..198).map(|time| told(false, time, 1.0)).chain([told(true, 90, 1.0), told(true, 150, 3.0)]);
        assert_eq!(are_written(&few().collect::<Vec<_>>(), WRITTEN), Some(false));
        let with_none = few().chain([told(true, 160, f64::NAN)]).collect::<Vec<_>>();
        assert_eq!(are_written(&with_none, WRITTEN), Some(false), "accesses that are no number");
        assert_eq!([0, 50].map(|written| is_above_limit(200, written, WRITTEN_BY_PROCESSES)), [Some(false), Some(true)]);
    }
}
