//! Since when an object is used as it is now, and how long earlier ways lasted.

use crate::segments::{Segment, Target};
use crate::uses::Use;

/// Accesses that are compared with the partition known so far, and those that must contradict it: their number, and their part.
const LEAST_FRESH: usize = 8;
const LEAST_CONTRADICTING: usize = 5;
const CONTRADICTING: f64 = 0.25;
/// A moment: accesses are read in batches.
const LEAST_LIFE_S: f64 = 0.5;

/// The way in which an object is used.
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    since_ns: Option<u64>,
    /// Accesses up to this time are in `parts`.
    read_ns: u64,
    parts: Vec<Segment>,
    /// How long earlier ways lasted, seconds.
    lives_s: Vec<f64>,
    /// Moves that a change undid.
    pub undone: u32,
    has_moved: bool,
}

impl Pattern {
    /// Takes note of newer accesses. Returns true if they contradict the partition known so far: the program changed its partition.
    pub fn changed(&mut self, uses: &[Use]) -> bool {
        let Some(newest) = uses.iter().map(|one| one.time_ns).max() else { return false };
        let since = *self.since_ns.get_or_insert_with(|| uses.iter().map(|one| one.time_ns).min().unwrap_or(newest));
        let fresh: Vec<&Use> = uses.iter().filter(|one| one.time_ns > self.read_ns).collect();
        if self.read_ns > 0 && fresh.len() < LEAST_FRESH {
            return false;
        }
        let (mut known, mut contradicting) = (0usize, 0usize);
        for one in &fresh {
            let at = self.parts.partition_point(|part| part.end <= one.address);
            match self.parts.get(at).filter(|part| part.start <= one.address).map(|part| &part.target) {
                Some(Target::Node(node)) => {
                    known += 1;
                    contradicting += usize::from(*node != one.node);
                }
                Some(Target::Several(nodes)) if !nodes.contains(&one.node) => {
                    known += 1;
                    contradicting += 1;
                }
                _ => {}
            }
        }
        let before = std::mem::replace(&mut self.read_ns, newest);
        if contradicting < LEAST_CONTRADICTING || (contradicting as f64) < CONTRADICTING * known as f64 {
            return false;
        }
        let life_s = before.saturating_sub(since) as f64 / 1e9;
        if life_s >= LEAST_LIFE_S {
            self.lives_s.push(life_s);
        }
        self.since_ns = Some(before + 1);
        self.undone += u32::from(std::mem::take(&mut self.has_moved));
        self.parts.clear();
        true
    }

    /// What is known since this time only: before, one thread initialised the object for others. No earlier way of use is counted.
    pub fn begin_at(&mut self, time_ns: u64) {
        self.since_ns = self.since_ns.max(Some(time_ns));
    }

    /// The accesses that belong to the present way.
    #[must_use]
    pub fn is_present(&self, one: &Use) -> bool {
        self.since_ns.is_none_or(|since| one.time_ns >= since)
    }

    pub fn set_parts(&mut self, parts: Vec<Segment>) {
        self.parts = parts;
    }

    pub fn moved(&mut self) {
        self.has_moved = true;
    }

    #[must_use]
    pub fn age_s(&self, now_ns: u64) -> f64 {
        self.since_ns.map_or(0.0, |since| now_ns.saturating_sub(since) as f64 / 1e9)
    }

    /// How long earlier ways lasted: the median.
    #[must_use]
    pub fn usual_s(&self) -> Option<f64> {
        let mut lives = self.lives_s.clone();
        lives.sort_by(f64::total_cmp);
        lives.get(lives.len() / 2).copied()
    }

    /// The number of changes so far.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.lives_s.len()
    }
}
