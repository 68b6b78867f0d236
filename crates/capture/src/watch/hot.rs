//! Addresses that are hit so often that the hit limit cuts their windows short, and what a trap costs there.
//!
//! Where the accesses come every few microseconds, the traps take a good part of the thread's time, and the estimate depends on
//! what one costs. In place (the exit to a hypervisor, cold caches after it) it costs more than in a loop of our own. So it is
//! measured in the target: now and then two words of a hot object are watched at once. A thread that passes both once a cycle
//! then takes two traps a cycle instead of one, and the cycle's growth is the cost of one. Cut windows wait for that knowledge:
//! their estimates are written when the run ends.

use super::rate::{Watched, accesses};
use super::slots::SlotResult;
use firsttouch_profile::{Access, Id};
use std::collections::HashMap;

/// Cycles measured with one and with two traps, kept for an object.
const KEPT: usize = 64;
/// Of each kind, before their difference counts.
const ENOUGH: usize = 4;
/// Traps of one pass, at most: a word has eight bytes.
const MOST_TRAPS: f64 = 8.0;
/// Windows kept back until the end of the run; beyond it the oldest are settled with what is known.
const WAITING: usize = 4_000;

/// How a thread hit an address, from the times of its hits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pattern {
    /// Mean gap between hits, ns, without those in which the thread did not run.
    pub gap_ns: f64,
    /// Traps the thread took, on all watched words, for each hit on this one.
    pub traps_a_hit: f64,
    /// From the first hit to the last, ns.
    pub span_ns: f64,
    /// The gaps are nearly equal: their quartiles differ by less than a third of their median.
    pub regular: bool,
}

/// Finds the pattern of a slot; `others` are the times of the thread's hits on all slots, sorted.
#[must_use]
pub fn pattern(result: &SlotResult, all_times: &[u64]) -> Option<Pattern> {
    let (first, last) = (result.samples.first()?.time, result.samples.last()?.time);
    let mut gaps: Vec<f64> = result.samples.windows(2).map(|w| w[1].time.saturating_sub(w[0].time) as f64).collect();
    if gaps.len() < 3 {
        return None;
    }
    gaps.sort_by(f64::total_cmp);
    let median = gaps[gaps.len() / 2];
    let regular = gaps[gaps.len() * 3 / 4] - gaps[gaps.len() / 4] < median / 3.0;
    gaps.retain(|g| *g <= 8.0 * median);
    let traps = all_times.iter().filter(|t| **t > first && **t <= last).count();
    Some(Pattern {
        gap_ns: gaps.iter().sum::<f64>() / gaps.len() as f64,
        traps_a_hit: traps as f64 / (result.samples.len() - 1) as f64,
        span_ns: last.saturating_sub(first) as f64,
        regular,
    })
}

impl Pattern {
    /// The hits came at an even pace from the moment of arming (which takes a few traps' time), in `passed` ns of CPU time: the
    /// thread was in the middle of them, not at the start of a burst.
    #[must_use]
    pub fn steady(&self, passed: f64, trap_ns: f64) -> bool {
        self.regular && passed - self.span_ns <= 5.0 * trap_ns + 3.0 * self.gap_ns
    }
}

/// One thread's part of a window that was cut.
pub struct CutPart {
    /// The object's kin: what is made at one place in the code is treated alike.
    pub kin: Id,
    /// A row for each place in the code, their estimates summing to one until settled.
    pub rows: Vec<Access>,
    pub watched: Watched,
    pub pattern: Option<Pattern>,
}

#[derive(Default)]
struct History {
    windows: u64,
    cut: u64,
    cycles_one: Vec<f64>,
    cycles_two: Vec<f64>,
    /// Mean traps a hit takes, where it is more than one (`passes.rs`).
    traps_a_hit: f64,
}

/// What is known of hot objects.
#[derive(Default)]
pub struct Hot {
    kin: HashMap<Id, History>,
    waiting: Vec<CutPart>,
}

impl Hot {
    /// A window on an object of `kin` closed.
    pub fn window(&mut self, kin: Id, cut: bool) {
        let o = self.kin.entry(kin).or_default();
        o.windows += 1;
        o.cut += u64::from(cut);
    }

    /// A thread took `traps` traps for `hits` hits.
    pub fn passed(&mut self, kin: Id, hits: u64, traps: u64) {
        let o = self.kin.entry(kin).or_default();
        let now = traps as f64 / hits.max(1) as f64;
        o.traps_a_hit = if o.traps_a_hit == 0.0 { now } else { 0.9 * o.traps_a_hit + 0.1 * now };
    }

    /// The hit limit that lets about as many passes through as `limit` says.
    #[must_use]
    pub fn limit(&self, kin: Id, limit: u32) -> u32 {
        let most = self.kin.get(&kin).map_or(1.0, |o| o.traps_a_hit.clamp(1.0, MOST_TRAPS));
        (f64::from(limit) * most).round() as u32
    }

    pub fn forget(&mut self, kin: Id) {
        if self.waiting.iter().all(|p| p.kin != kin) {
            self.kin.remove(&kin);
        }
    }

    /// At least half of the object's windows are cut.
    #[must_use]
    pub fn is_hot(&self, kin: Id) -> bool {
        self.kin.get(&kin).is_some_and(|o| o.cut >= 2 && 2 * o.cut >= o.windows)
    }

    /// Learns the length of a cycle with one trap, or with two.
    pub fn learn(&mut self, kin: Id, pattern: &Pattern) {
        let o = self.kin.entry(kin).or_default();
        let list = match pattern.traps_a_hit {
            x if (0.9..1.15).contains(&x) => &mut o.cycles_one,
            x if (1.85..2.15).contains(&x) => &mut o.cycles_two,
            _ => return,
        };
        if list.len() >= KEPT {
            list.remove(0);
        }
        list.push(pattern.gap_ns);
    }

    /// Cost of a trap on this object's accesses, ns: measured in place, else `elsewhere`. Never less than half of that.
    #[must_use]
    pub fn trap_ns(&self, kin: Id, elsewhere: f64) -> f64 {
        let measured = self.kin.get(&kin).and_then(|o| {
            (o.cycles_one.len() >= ENOUGH && o.cycles_two.len() >= ENOUGH).then(|| median(&o.cycles_two) - median(&o.cycles_one))
        });
        measured.map_or(elsewhere, |m| m.max(elsewhere / 2.0))
    }

    /// Keeps a cut window's part back. Returns parts that can wait no longer.
    pub fn wait(&mut self, part: CutPart) -> Vec<CutPart> {
        self.waiting.push(part);
        if self.waiting.len() > WAITING { self.waiting.drain(..WAITING / 2).collect() } else { Vec::new() }
    }

    pub fn take_waiting(&mut self) -> Vec<CutPart> {
        std::mem::take(&mut self.waiting)
    }

    /// Accesses in the window, by what is known now.
    #[must_use]
    pub fn settle(&self, part: &CutPart, elsewhere: f64) -> f64 {
        // One thread's few gaps are noisy, and their difference to the cost of a trap more so: the object's median cycle is not.
        let cycle = self.kin.get(&part.kin).filter(|o| o.cycles_one.len() >= ENOUGH).map(|o| median(&o.cycles_one));
        let trap = self.trap_ns(part.kin, elsewhere);
        let pattern = part.pattern.map(|p| match cycle {
            Some(cycle) if p.steady(part.watched.exposed_ns as f64, trap) => Pattern { gap_ns: cycle, traps_a_hit: 1.0, ..p },
            _ => p,
        });
        accesses(&part.watched, pattern.as_ref(), trap)
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the cost of a trap comes from pairs of words, and that nothing is learnt from other patterns.
    #[test]
    fn pairs_of_words_tell_what_a_trap_costs() {
        let mut hot = Hot::default();
        for _ in 0..40 {
            hot.window(1, true);
            hot.learn(1, &Pattern { gap_ns: 24_000.0, traps_a_hit: 1.0, span_ns: 0.0, regular: true });
            hot.learn(1, &Pattern { gap_ns: 99_000.0, traps_a_hit: 1.5, span_ns: 0.0, regular: true });
        }
        assert!(hot.is_hot(1));
        assert_eq!(hot.trap_ns(1, 9_000.0), 9_000.0);
        for _ in 0..40 {
            hot.learn(1, &Pattern { gap_ns: 38_000.0, traps_a_hit: 2.0, span_ns: 0.0, regular: true });
        }
        assert_eq!(hot.trap_ns(1, 9_000.0), 14_000.0);
        // 20 hits of a thread whose cycle is 10 us: one CPU second is 100,000 accesses.
        let watched = Watched { hits: 20, watched_ns: 0, cpu_ns: 1_000_000_000, exposed_ns: 19 * 24_000, limit: 20 };
        let part = CutPart { kin: 1, rows: Vec::new(), watched, pattern: None };
        assert!((hot.settle(&part, 9_000.0) - 100_000.0).abs() < 1.0);
    }
}
