//! Addresses that are hit so often that the hit limit cuts their windows short, and what a trap costs there.
//!
//! If accesses come every few microseconds, traps take a good part of the thread's time, and the estimate depends on the cost of a
//! trap. In the target (the exit to a hypervisor, cold caches after it) a trap costs more than in a loop of firsttouch itself, and
//! the cost varies: another guest on the host may raise it for a while. So it is measured in the target: now and then two words of
//! a hot object are watched at once, one of them for half as many hits. A thread that passes both once a cycle first takes two traps a
//! cycle, and then, a fraction of a millisecond later, one. The difference is the cost of a trap, and the shorter cycle minus that
//! cost is the cycle without traps. Estimates of cut windows wait for these figures and are written when the run ends.

use super::pattern::{Pair, Pattern, median};
use super::rate::{Watched, accesses};
use firsttouch_model::rows::{Access, Id};
use hashbrown::HashMap;

/// Cycles, and pairs of cycles with one and with two traps, kept for a group.
const KEPT: usize = 256;
/// Cycles or pairs that a median needs.
const ENOUGH: usize = 4;
/// Relative error of the cost of a trap that was measured in the target, and (`TRAP_ERROR_ELSEWHERE`) of the one from the
/// calibration at start.
const TRAP_ERROR: f64 = 0.12;
/// Relative cost of a trap beyond what a second trap in the same cycle adds: caches are refilled once. 0.10 on Zen 4 in a virtual
/// machine (18 runs of tests/programs/truth/dgemv), less elsewhere. `TRAP_ERROR` covers 0 and twice this value.
const INDIRECT: f64 = 0.08;
const TRAP_ERROR_ELSEWHERE: f64 = 0.3;
/// Traps of one pass, at most: a word has eight bytes.
const MOST_TRAPS: f64 = 8.0;
/// Windows kept back until the end of the run. If there are more, the oldest are settled with the figures so far.
const WAITING: usize = 4_000;

/// One thread's part of a window that was cut.
pub struct CutPart {
    /// The group of the object (the site that allocated it).
    pub group: Id,
    /// A row for each site. Until settled, their estimates are fractions that sum to one.
    pub rows: Vec<Access>,
    pub watched: Watched,
    pub pattern: Option<Pattern>,
}

#[derive(Default)]
struct History {
    windows: u64,
    cut: u64,
    /// Lengths of a cycle with one trap.
    cycles: Vec<f64>,
    pairs: Vec<Pair>,
    /// Mean traps a hit takes, where it is more than one (`string_instructions.rs`).
    traps_a_hit: f64,
}

/// History of the windows on each group, and the cut windows that wait.
#[derive(Default)]
pub struct HotGroups {
    groups: HashMap<Id, History>,
    waiting: Vec<CutPart>,
}

impl HotGroups {
    /// A window on an object of `group` closed.
    pub fn window(&mut self, group: Id, cut: bool) {
        let o = self.groups.entry(group).or_default();
        o.windows += 1;
        o.cut += u64::from(cut);
    }

    /// A thread took `traps` traps for `hits` hits.
    pub fn passed(&mut self, group: Id, hits: u64, traps: u64) {
        let o = self.groups.entry(group).or_default();
        let now = traps as f64 / hits.max(1) as f64;
        o.traps_a_hit = if o.traps_a_hit == 0.0 { now } else { 0.9 * o.traps_a_hit + 0.1 * now };
    }

    /// The hit limit that allows about `limit` passes.
    #[must_use]
    pub fn limit(&self, group: Id, limit: u32) -> u32 {
        let most = self.groups.get(&group).map_or(1.0, |o| o.traps_a_hit.clamp(1.0, MOST_TRAPS));
        (f64::from(limit) * most).round() as u32
    }

    pub fn forget(&mut self, group: Id) {
        if self.waiting.iter().all(|p| p.group != group) {
            self.groups.remove(&group);
        }
    }

    /// At least half of the group's windows are cut.
    #[must_use]
    pub fn is_hot(&self, group: Id) -> bool {
        self.groups.get(&group).is_some_and(|o| o.cut >= 2 && 2 * o.cut >= o.windows)
    }

    /// Learns the length of a cycle with one trap.
    pub fn learn(&mut self, group: Id, pattern: &Pattern) {
        if (0.9..1.15).contains(&pattern.traps_a_hit) {
            keep(&mut self.groups.entry(group).or_default().cycles, pattern.gap_ns);
        }
    }

    /// Learns a pair of cycles.
    pub fn learn_pair(&mut self, group: Id, pair: Pair) {
        keep(&mut self.groups.entry(group).or_default().pairs, pair);
    }

    /// The median of a figure over the pairs of this group, once there are enough.
    fn of_pairs(&self, group: Id, figure: impl Fn(&Pair) -> f64) -> Option<f64> {
        let pairs = &self.groups.get(&group)?.pairs;
        (pairs.len() >= ENOUGH).then(|| median(&pairs.iter().map(figure).collect::<Vec<f64>>()))
    }

    /// Cost of a trap on this group's accesses, ns: as measured in the target, else `elsewhere`. At least half of `elsewhere`.
    #[must_use]
    pub fn trap_ns(&self, group: Id, elsewhere: f64) -> f64 {
        self.of_pairs(group, |pair| (1.0 + INDIRECT) * (pair.two - pair.one)).map_or(elsewhere, |measured| measured.max(elsewhere / 2.0))
    }

    /// The group's cycle with one trap, ns. One thread's few gaps are noisy, and their difference to the cost of a trap even more.
    fn cycle(&self, group: Id, trap_ns: f64) -> Option<f64> {
        let natural = self.of_pairs(group, Pair::natural).map(|natural| natural + trap_ns / (1.0 + INDIRECT));
        natural.or_else(|| self.groups.get(&group).filter(|o| o.cycles.len() >= ENOUGH).map(|o| median(&o.cycles)))
    }

    /// The largest relative error of a hot object's rate that comes from the uncertain cost of a trap, over all groups whose cycle
    /// is known.
    ///
    /// A trap costs more than its own time, because evicted cache lines are fetched again. Pairs do not show the part that is paid
    /// once for two traps a cycle.
    #[must_use]
    pub fn error(&self, elsewhere: f64) -> f64 {
        let of = |group: &Id| {
            let part = if self.of_pairs(*group, Pair::natural).is_some() { TRAP_ERROR } else { TRAP_ERROR_ELSEWHERE };
            let trap = self.trap_ns(*group, elsewhere);
            let cycle = self.cycle(*group, trap)?;
            Some((part * trap / (cycle - trap).max(0.1 * cycle)).min(1.0))
        };
        self.groups.keys().filter(|group| self.is_hot(**group)).filter_map(of).fold(0.0, f64::max)
    }

    /// Keeps a cut window's part back. Returns the parts that must be settled now.
    pub fn wait(&mut self, part: CutPart) -> Vec<CutPart> {
        self.waiting.push(part);
        if self.waiting.len() > WAITING { self.waiting.drain(..WAITING / 2).collect() } else { Vec::new() }
    }

    pub fn take_waiting(&mut self) -> Vec<CutPart> {
        std::mem::take(&mut self.waiting)
    }

    /// Accesses in the window, by the figures so far.
    #[must_use]
    pub fn settle(&self, part: &CutPart, elsewhere: f64) -> f64 {
        let trap = self.trap_ns(part.group, elsewhere);
        let pattern = part.pattern.map(|p| match self.cycle(part.group, trap) {
            Some(cycle) if p.steady(part.watched.exposed_ns as f64, trap) => Pattern { gap_ns: cycle, traps_a_hit: 1.0, ..p },
            _ => p,
        });
        accesses(&part.watched, pattern.as_ref(), trap)
    }
}

/// Adds to a list that keeps the newest.
fn keep<T>(list: &mut Vec<T>, value: T) {
    if list.len() >= KEPT {
        list.remove(0);
    }
    list.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the cost of a trap and the cycle without traps come from pairs, whatever the gaps of other windows were.
    #[test]
    fn pairs_of_words_show_the_cost_of_a_trap() {
        let mut hot = HotGroups::default();
        for _ in 0..40 {
            hot.window(1, true);
            hot.learn(1, &Pattern { gap_ns: 30_000.0, traps_a_hit: 1.0, gaps: 19, regular: true });
            hot.learn(1, &Pattern { gap_ns: 99_000.0, traps_a_hit: 1.5, gaps: 19, regular: true });
        }
        assert!(hot.is_hot(1));
        assert_eq!((hot.trap_ns(1, 9_000.0), hot.cycle(1, 9_000.0)), (9_000.0, Some(30_000.0)));
        for trap in [14_000.0, 13_000.0, 15_000.0, 14_000.0, 90_000.0] {
            let once = INDIRECT * trap;
            hot.learn_pair(1, Pair { one: 10_000.0 + once + trap, two: 10_000.0 + once + 2.0 * trap, regular: true });
        }
        let (trap, cycle) = (hot.trap_ns(1, 9_000.0), 25_120);
        assert!((trap - 15_120.0).abs() < 1e-6 && (hot.cycle(1, trap).unwrap() - f64::from(cycle)).abs() < 1e-6);
        // 20 hits of a thread whose cycle is 10 us: one CPU second is 100,000 accesses.
        let watched = Watched { hits: 20, watched_ns: 0, cpu_ns: 1_000_000_000, exposed_ns: 19 * cycle as u64, limit: 20 };
        let part = CutPart { group: 1, rows: Vec::new(), watched, pattern: None };
        assert!((hot.settle(&part, 9_000.0) - 100_000.0).abs() < 1.0);
        assert!((hot.error(9_000.0) - TRAP_ERROR * 1.512).abs() < 1e-9);
        // At an even pace the cycle of the pairs is used.
        let steady = Pattern { gap_ns: 31_000.0, traps_a_hit: 1.0, gaps: 19, regular: true };
        let part = CutPart { pattern: Some(steady), ..part };
        assert!((hot.settle(&part, 9_000.0) - 100_000.0).abs() < 1.0);
    }
}
