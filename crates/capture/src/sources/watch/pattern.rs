//! The times of a thread's hits: how fast and how evenly they follow each other.

/// Gaps of a kind that a pair needs.
const GAPS: usize = 3;
/// Hits at an even pace take at most so many times their number times the usual gap: some gaps are a little longer.
const PAUSES: f64 = 1.25;

/// The pattern in time of a thread's hits on an address.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pattern {
    /// Mean gap between hits, ns, without those in which the thread did not run.
    pub gap_ns: f64,
    /// Traps the thread took, on all watched words, for each hit on this one.
    pub traps_a_hit: f64,
    /// Gaps between hits.
    pub gaps: usize,
    /// The gaps are nearly equal: their quartiles differ by less than a third of their median.
    pub regular: bool,
}

/// Finds the pattern of a thread's hits on one word. `all_times`: of its hits on all watched words, in any order.
#[must_use]
pub fn pattern(times: &[u64], all_times: &[u64]) -> Option<Pattern> {
    let (first, last) = (*times.first()?, *times.last()?);
    let count = times.len() - 1;
    let mut gaps: Vec<f64> = times.windows(2).map(|gap| gap[1].saturating_sub(gap[0]) as f64).collect();
    if gaps.len() < 3 {
        return None;
    }
    let regular = is_regular(&mut gaps);
    let median = gaps[gaps.len() / 2];
    gaps.retain(|g| *g <= 8.0 * median);
    let traps = all_times.iter().filter(|t| **t > first && **t <= last).count();
    Some(Pattern { gap_ns: gaps.iter().sum::<f64>() / gaps.len() as f64, traps_a_hit: traps as f64 / count as f64, gaps: count, regular })
}

/// Cycles of one thread with one and with two traps, one right after the other, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub one: f64,
    pub two: f64,
    /// Each kind by itself is at an even pace.
    pub regular: bool,
}

impl Pair {
    /// The cycle without a trap.
    pub fn natural(&self) -> f64 {
        2.0 * self.one - self.two
    }
}

/// Finds the cycles of a word's hits while another word was hit once a cycle too, and after the last hit of that word, which
/// switched its watchpoint off.
#[must_use]
pub fn pair(times: &[u64], other: &[u64]) -> Option<Pair> {
    let last = *other.last()?;
    let (mut one, mut two) = (Vec::new(), Vec::new());
    // The first gap contains the time of moving watchpoints.
    for gap in times.windows(2).skip(1) {
        let length = gap[1].saturating_sub(gap[0]) as f64;
        if gap[0] >= last {
            one.push(length);
        } else if gap[1] <= last && other.iter().filter(|time| gap[0] < **time && **time <= gap[1]).count() == 1 {
            two.push(length);
        }
    }
    if one.len() < GAPS || two.len() < GAPS {
        return None;
    }
    let regular = is_regular(&mut one) && is_regular(&mut two);
    Some(Pair { one: median(&one), two: median(&two), regular })
}

/// The quartiles differ by less than a third of the median. Sorts.
fn is_regular(gaps: &mut [f64]) -> bool {
    gaps.sort_by(f64::total_cmp);
    gaps[gaps.len() * 3 / 4] - gaps[gaps.len() / 4] < gaps[gaps.len() / 2] / 3.0
}

impl Pattern {
    /// The hits came at an even pace from the moment of arming (which takes as long as a few traps) to the last one: they take as much CPU time as
    /// passed. So the window did not begin with the start of a burst, and the hits are no bursts with pauses between them.
    #[must_use]
    pub fn steady(&self, passed: f64, trap_ns: f64) -> bool {
        self.regular && passed <= PAUSES * self.gaps as f64 * self.gap_ns + 5.0 * trap_ns + 3.0 * self.gap_ns
    }
}

/// The middle value, the upper of two; 0 for an empty list.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that hits at one distance are at an even pace, also if the thread does not run now and then, and hits in bursts of five are not.
    #[test]
    fn bursts_are_at_no_even_pace() {
        let trap = 9_000.0;
        let times = |pause: u64| (0..32u64).map(|hit| 30_000 * hit + hit / 5 * pause).collect::<Vec<u64>>();
        let steady = |times: &[u64], cpu_ns: f64| pattern(times, times).expect("a pattern").steady(cpu_ns, trap);
        let runs_ns = 31.0 * 30e3 + 10e3;
        assert!(steady(&times(0), runs_ns) && steady(&times(10_000_000), runs_ns));
        assert!(!steady(&times(10_000_000), runs_ns + 6.0 * 10e6));
        assert!(!steady(&times(0), runs_ns + 1e6), "they began late");
    }

    /// Check that the hits of two words make a pair, unless one of them is not hit once a cycle.
    #[test]
    fn two_words_are_a_pair() {
        let (mut now, mut long, mut short) = (0, Vec::new(), Vec::new());
        for cycle in 0..12u64 {
            long.push(now + 7_000);
            if cycle < 6 {
                short.push(now + 23_000);
            }
            now += 10_000 + if cycle < 6 { 28_000 } else { 14_000 };
        }
        let found = pair(&long, &short).unwrap();
        assert_eq!((found.one, found.two, found.regular), (24_000.0, 38_000.0, true));
        assert_eq!(found.natural(), 10_000.0);
        assert_eq!(pair(&short, &long), None);
        assert_eq!(pair(&long, &[]), None);
        let twice: Vec<u64> = short.iter().flat_map(|time| [*time, time + 3_000]).collect();
        assert_eq!(pair(&long, &twice), None);
    }
}
