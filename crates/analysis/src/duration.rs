//! How much longer a run must be for a verdict.

use crate::Interval;
use crate::findings::{REMOTE_BAR, WIDEST};
use crate::verdict::SUBSTANTIAL;

/// Nobody profiles for longer than this, seconds.
const LONGEST_S: f64 = 3600.0;

/// The seconds that a run of `wall_s` would have to be longer, so that the interval of a remote fraction is narrow enough for a verdict, and
/// excludes either well placed or misplaced: its width shrinks with the square root of the time. `None` if that is too long to try, or it is
/// enough already.
#[must_use]
pub fn more_seconds(value: f64, [low, high]: Interval, wall_s: f64) -> Option<u64> {
    let wanted = |half: f64, room: f64| if room > 0.0 { (half / room).powi(2) } else { f64::INFINITY };
    let narrow = wanted(high - low, WIDEST);
    let decided = match () {
        () if low > REMOTE_BAR => 1.0,
        () if value > REMOTE_BAR => wanted(value - low, value - REMOTE_BAR).min(wanted(high - value, SUBSTANTIAL - value)),
        () => wanted(high - value, SUBSTANTIAL - value),
    };
    let more = wall_s * (narrow.max(decided) - 1.0);
    (more > 0.0 && more <= LONGEST_S).then(|| more.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check how much longer a run would have to be: not at all, until the interval is narrow, until it excludes a bar, or forever.
    #[test]
    fn how_long_a_run_would_decide() {
        for (value, interval, wall_s, more) in [
            (0.5, [0.11, 0.96], 2.0, Some(1)),
            (0.5, [0.4, 0.6], 2.0, None),
            (0.15, [0.0, 0.3], 10.0, Some(13)),
            (0.02, [0.0, 0.4], 10.0, Some(35)),
            (0.05, [0.0, 0.2], 10.0, None),
            (0.0501, [0.0, 0.9], 10.0, Some(312)),
            (0.2, [0.0, 0.4], 1e9, None),
            (f64::NAN, [0.0, 0.9], 10.0, None),
        ] {
            assert_eq!(more_seconds(value, interval, wall_s), more, "{value} {interval:?} {wall_s}");
        }
    }
}
