//! How many page faults a sample stands for, and when: adapts to the program.
//!
//! While the program is quiet every fault is a sample, because a few faults can place much memory if pages are huge. A burst of
//! faults wakes firsttouch through the ring's watermark. Until the burst is over only every 31st fault is a sample, or rarer the
//! more samples there are, so that a program which touches terabytes pays next to nothing. The periods are primes, so that they do not
//! resonate with blocked loops.
//!
//! A burst is over with the first quiet tick, as long as few samples were taken at period 1. Else it is over with the fourth, and then
//! every 31st fault is a sample: returning to period 1 would open and close events, which stops every CPU for a moment.
//!
//! An open event costs every fault some 60 ns, enabled or not: 3 % of a program that does nothing but fault (measured on a
//! virtual machine, docs/evidence.md). So in long bursts (storms) the events are closed, and opened in one of eight ticks only, at
//! random; a sample then stands for eight times as many faults.

use crate::random::Random;

/// Sampling periods of bursts, and the number of samples after which the next one is used.
const PERIODS: [(u64, u64); 5] = [(31, 1_500), (251, 6_000), (2_039, 20_000), (16_381, 50_000), (131_071, u64::MAX)];
/// The period while the program is quiet.
const QUIET: u64 = 1;
/// From this event on (the one with period 1 comes first), the event is on in one of so many ticks.
const STORM: usize = 2;
const STORM_TICKS: u64 = 8;
/// Samples at period 1 after which a burst begins, and faults a tick below which the program is quiet.
const BURST_SAMPLES: u64 = 300;
const QUIET_FAULTS: u64 = 100;
/// Quiet ticks, among those in which the event was on, after which a storm is over if period 1 is not affordable: a program that
/// frees 1 GiB before it touches the next pauses for one or two.
const QUIET_TICKS: u32 = 4;
/// Samples that a run may take at period 1: at once, and more a second.
const QUIET_SAMPLES: u64 = 800;
const QUIET_SAMPLES_A_SECOND: f64 = 50.0;

/// All periods that are used, in the order of the events.
pub fn periods() -> impl Iterator<Item = u64> {
    std::iter::once(QUIET).chain(PERIODS.iter().map(|&(period, _)| period))
}

/// The event with this index is used in storms: on only part of the time.
#[must_use]
pub fn is_storm(index: usize) -> bool {
    index >= STORM
}

/// Which event to switch off, and which one to switch on: indices of [`periods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    pub off: Option<usize>,
    pub on: Option<usize>,
}

/// The period in force.
pub struct Period {
    current: usize,
    is_on: bool,
    random: Random,
    /// Samples taken in bursts.
    burst_samples: u64,
    /// Samples taken at period 1: all of them, and those since the last tick.
    quiet_samples: u64,
    latest_samples: u64,
    /// Faults since the last tick.
    faults: u64,
    quiet_ticks: u32,
}

impl Period {
    #[must_use]
    pub fn new(random: Random) -> Self {
        Self { current: 0, is_on: true, random, burst_samples: 0, quiet_samples: 0, latest_samples: 0, faults: 0, quiet_ticks: 0 }
    }

    /// The current event is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    #[must_use]
    pub fn in_burst(&self) -> bool {
        self.current != 0
    }

    /// A burst has lasted long: the events are on only part of the time.
    #[must_use]
    pub fn in_storm(&self) -> bool {
        is_storm(self.current)
    }

    /// Counts a sample of an event with this period. Returns the faults it stands for.
    pub fn count(&mut self, period: u64) -> u64 {
        let partly_on = PERIODS.iter().skip(STORM - 1).any(|p| p.0 == period);
        let weight = if partly_on { period * STORM_TICKS } else { period };
        self.faults += weight;
        if weight == QUIET {
            self.quiet_samples += 1;
            self.latest_samples += 1;
        } else {
            self.burst_samples += 1;
        }
        weight
    }

    /// Chooses the period for the next faults, `seconds` after the start. `is_tick`: quiet may end a burst now.
    pub fn adapt(&mut self, seconds: f64, is_tick: bool) -> Option<Switch> {
        let quiet = self.is_on && self.faults < QUIET_FAULTS;
        let wanted = if self.current == 0 {
            if self.latest_samples > BURST_SAMPLES { self.in_bursts() } else { 0 }
        } else if is_tick && quiet {
            self.quiet_ticks += 1;
            let affordable = (self.quiet_samples as f64) < QUIET_SAMPLES as f64 + QUIET_SAMPLES_A_SECOND * seconds;
            match () {
                () if affordable => 0,
                () if self.quiet_ticks >= QUIET_TICKS => self.in_bursts().min(STORM - 1),
                () => self.current,
            }
        } else if quiet && self.current < STORM {
            self.current
        } else {
            self.in_bursts()
        };
        let on = match () {
            () if wanted < STORM => true,
            () if is_tick => self.random.word().is_multiple_of(STORM_TICKS),
            () => self.is_on,
        };
        if !quiet && self.is_on {
            self.quiet_ticks = 0;
        }
        if is_tick {
            self.latest_samples = 0;
            self.faults = 0;
        }
        if wanted == self.current && on == self.is_on {
            return None;
        }
        let switch = Switch { off: self.is_on.then_some(self.current), on: on.then_some(wanted) };
        self.latest_samples = if wanted == self.current { self.latest_samples } else { 0 };
        (self.current, self.is_on) = (wanted, on);
        Some(switch)
    }

    /// The period in a burst, by the samples taken in bursts so far.
    fn in_bursts(&self) -> usize {
        1 + PERIODS.iter().position(|&(_, until)| self.burst_samples < until).unwrap_or(PERIODS.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a burst raises the period at once, and that a quiet tick brings period 1 back while that is affordable.
    #[test]
    fn a_burst_raises_the_period_until_it_is_over() {
        let mut period = Period::new(Random::new(1));
        assert_eq!((0..BURST_SAMPLES).map(|_| period.count(1)).sum::<u64>(), BURST_SAMPLES);
        assert_eq!(period.adapt(0.1, false), None);
        period.count(1);
        assert_eq!(period.adapt(0.1, false), Some(Switch { off: Some(0), on: Some(1) }));
        assert!(period.in_burst() && !period.in_storm());
        assert_eq!(period.count(31), 31);
        period.adapt(0.2, true);
        assert!(period.in_burst(), "the tick that ends now saw the burst");
        assert_eq!(period.adapt(0.3, true), Some(Switch { off: Some(1), on: Some(0) }));
    }

    /// Check that in storms the event is on in one of eight ticks, and that its samples stand for the others.
    #[test]
    fn storms_are_sampled_part_of_the_time() {
        let mut period = Period::new(Random::new(5));
        for _ in 0..=BURST_SAMPLES {
            period.count(1);
        }
        period.adapt(0.0, false);
        for _ in 0..PERIODS[0].1 {
            assert_eq!(period.count(31), 31);
        }
        period.adapt(0.0, false);
        assert!(period.in_storm() && period.is_on());
        let mut ticks_on = 0;
        for _ in 0..8_000 {
            period.faults = QUIET_FAULTS;
            period.adapt(0.0, true);
            ticks_on += u32::from(period.is_on());
        }
        assert!((800..1_200).contains(&ticks_on), "{ticks_on}");
        assert_eq!(period.count(251), 251 * STORM_TICKS);
    }
}
