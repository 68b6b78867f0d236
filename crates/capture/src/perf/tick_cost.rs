//! What a tick of the kernel's clock costs the thread, measured on firsttouch itself.

use super::ticks::TickEvent;
use firsttouch_system::calls::clock::monotonic_ns;

const PERIOD_NS: u64 = 200_000;
const TICKS: u32 = 12;
/// Reading the clock takes less; an interruption takes longer, ns.
const LEAST_NS: u64 = 500;
/// The measurement ends after this time, ns.
const MOST_NS: u64 = 20_000_000;

/// Time that one tick takes from the thread, ns: the median of the gaps that ticks make in the time of a thread that reads the clock without
/// a pause. `None` if the kernel allows no such event.
#[must_use]
pub fn tick_cost_ns() -> Option<f64> {
    let event = TickEvent::open_disabled(0, PERIOD_NS).ok()?;
    event.allow(TICKS);
    let began = monotonic_ns();
    let (mut last, mut gaps) = (began, Vec::new());
    while last < began + u64::from(TICKS + 2) * (PERIOD_NS + PERIOD_NS / 4) && last < began + MOST_NS {
        let now = monotonic_ns();
        if now - last >= LEAST_NS {
            gaps.push(now - last);
        }
        last = now;
    }
    median_of_highest(gaps, TICKS as usize)
}

/// The median of the highest gaps: there are shorter ones that are not the event's.
fn median_of_highest(mut gaps: Vec<u64>, ticks: usize) -> Option<f64> {
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    gaps.truncate(ticks);
    gaps.get(gaps.len() / 2).map(|ns| *ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the median, and that a tick costs less than its period where events are allowed.
    #[test]
    fn cost_of_a_tick() {
        assert_eq!(median_of_highest(vec![600, 20_000, 700, 21_000, 22_000, 650], 3), Some(21_000.0));
        assert_eq!(median_of_highest(Vec::new(), 3), None);
        if let Some(ns) = tick_cost_ns() {
            assert!((500.0..PERIOD_NS as f64).contains(&ns), "{ns}");
        }
    }
}
