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
//! A large object that may be on huge pages is filled by so few faults that one of 31 of them shows hardly any of it, and the base pages at its ends
//! are a burst of their own: several hundred faults. So while one is new, a burst begins later, and a tick without a burst brings period 1 back, also
//! if that is not affordable: a few times, and for a limited number of samples.
//!
//! An open event costs every fault some 60 ns, enabled or not: 3 % of a program that does nothing but fault (measured on a
//! virtual machine, docs/evidence.md). So in long bursts (storms) the events are closed, and opened in one of eight ticks only, at
//! random; a sample then stands for eight times as many faults.
//!
//! While large objects wait for their first touches in a storm ([`super::focus`]), an event with a period that suits them is on all the
//! time instead.

use crate::random::Random;

/// Sampling periods of bursts, and the number of samples after which the next one is used.
const PERIODS: [(u64, u64); 5] = [(31, 4_000), (251, 8_000), (2_039, 20_000), (16_381, 50_000), (131_071, u64::MAX)];
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

/// Ticks with at most so many faults each, on average, after which period 1 comes back even if it is not affordable: the first time, and at
/// most.
const CALM_TICKS: u32 = 16;
const MOST_CALM_TICKS: u32 = 256;
const CALM_FAULTS: u64 = 8;

/// How often a new large object may bring period 1 back: at once, and more a second. Each time costs [`BURST_SAMPLES`] at most, if it is filled by many
/// faults.
const RETURNS: f64 = 8.0;
const RETURNS_A_SECOND: f64 = 0.5;

/// Samples at period 1 between two ticks after which a burst begins while a large object is new: four threads fill as many arrays, each with up to 511 base
/// pages in front of its first huge page or behind its last one.
const NEW_BURST_SAMPLES: u64 = 5_000;
/// Samples at period 1 that new large objects may cost so: at once, and more a second. (Up to 5 us each: 50 ms, and 0.25 % of the time.)
const NEW_SAMPLES: u64 = 10_000;
const NEW_SAMPLES_A_SECOND: f64 = 500.0;

/// Further periods, for large objects in storms. The event is on all the time, so a sample stands for one period.
const FOCUS_PERIODS: [u64; 3] = [7, 127, 509];
/// Events that are open from the start where there are many CPUs: those of the first periods. The next one is needed after 30 GiB of first touches of 4 KiB pages.
pub const EARLY: usize = 1 + STORM;
/// Events of all periods but [`FOCUS_PERIODS`].
pub const EVENTS: usize = 1 + PERIODS.len();

/// All periods that are used, in the order of the events.
pub fn periods() -> impl Iterator<Item = u64> {
    std::iter::once(QUIET).chain(PERIODS.iter().map(|&(period, _)| period)).chain(FOCUS_PERIODS)
}

/// The event for objects that need this period at most: that of the longest period that is always on and no longer.
#[must_use]
pub fn focus_event(most: u64) -> usize {
    let fits = |&(index, period): &(usize, u64)| index != 0 && !is_storm(index) && period <= most;
    periods().enumerate().filter(fits).max_by_key(|event| event.1).map_or(EVENTS, |event| event.0)
}

/// The event with this index is used in storms: on only part of the time.
#[must_use]
pub fn is_storm(index: usize) -> bool {
    (STORM..EVENTS).contains(&index)
}

/// How long ago a large object was born.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// Since the last call.
    Newborn,
    New,
    Old,
}

/// Which event to switch off, and which one to switch on: indices of [`periods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    pub off: Option<usize>,
    pub on: Option<usize>,
}

/// The period in force.
pub struct Period {
    /// The event that the faults ask for, and the one that is on.
    current: usize,
    on: Option<usize>,
    is_focused: bool,
    random: Random,
    /// Samples taken in bursts, but for those of large objects.
    burst_samples: u64,
    /// Samples taken at period 1: all but those of [`Self::new_samples`], and all since the last tick.
    quiet_samples: u64,
    latest_samples: u64,
    /// Those by which bursts began later because a large object was new, and whether one is new now and has such samples left.
    new_samples: u64,
    has_time_for_new: bool,
    /// Faults since the last tick.
    faults: u64,
    quiet_ticks: u32,
    /// Quiet ticks in a row at the lowest period of bursts, their faults, and how many of them are needed.
    calm_ticks: u32,
    calm_faults: u64,
    calm_needed: u32,
    /// How often a new large object brought period 1 back.
    returns: u32,
}

impl Period {
    #[must_use]
    pub fn new(random: Random) -> Self {
        Self {
            current: 0,
            on: Some(0),
            is_focused: false,
            random,
            burst_samples: 0,
            quiet_samples: 0,
            latest_samples: 0,
            new_samples: 0,
            has_time_for_new: false,
            faults: 0,
            quiet_ticks: 0,
            calm_ticks: 0,
            calm_faults: 0,
            calm_needed: CALM_TICKS,
            returns: 0,
        }
    }

    /// An event is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on.is_some()
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

    /// An event for large objects is on.
    #[must_use]
    pub fn is_focused(&self) -> bool {
        self.is_focused
    }

    /// How many faults a sample stands for now.
    #[must_use]
    pub fn stands_for(&self) -> u64 {
        let index = self.on.filter(|_| self.is_focused).unwrap_or(self.current);
        let period = periods().nth(index).unwrap_or(QUIET);
        if is_storm(index) { period * STORM_TICKS } else { period }
    }

    /// Counts a sample of an event with this period. Returns the faults it stands for.
    pub fn count(&mut self, period: u64) -> u64 {
        let partly_on = PERIODS.iter().skip(STORM - 1).any(|p| p.0 == period);
        let weight = if partly_on { period * STORM_TICKS } else { period };
        self.faults += weight;
        if weight == QUIET {
            self.latest_samples += 1;
            let is_for_new = self.has_time_for_new && self.latest_samples > BURST_SAMPLES;
            *(if is_for_new { &mut self.new_samples } else { &mut self.quiet_samples }) += 1;
        } else if !self.is_focused {
            self.burst_samples += 1;
        }
        weight
    }

    /// Chooses the period for the next faults, `seconds` after the start. `is_tick`: quiet may end a burst now. `focus`: the event that large
    /// objects need, if the burst is a storm. `youngest`: the age of the youngest large object.
    pub fn adapt(&mut self, seconds: f64, is_tick: bool, focus: Option<usize>, youngest: Age) -> Option<Switch> {
        let quiet = self.is_on() && self.faults < QUIET_FAULTS;
        let is_new = youngest != Age::Old;
        self.has_time_for_new = is_new && (self.new_samples as f64) < NEW_SAMPLES as f64 + NEW_SAMPLES_A_SECOND * seconds;
        let may_return = is_new && (is_tick || youngest == Age::Newborn);
        let wanted = if may_return && self.may_return(seconds) { 0 } else { self.wanted(seconds, is_tick, quiet) };
        let was_drawn = self.in_storm() && !self.is_focused;
        self.is_focused = is_storm(wanted) && focus.is_some();
        let on = match focus {
            _ if !is_storm(wanted) => Some(wanted),
            Some(event) => Some(event),
            // Each tick of a storm is drawn for itself, and so is the rest of a tick in which it begins.
            None if is_tick || !was_drawn => self.random.word().is_multiple_of(STORM_TICKS).then_some(wanted),
            None => self.on.is_some().then_some(wanted),
        };
        if !quiet && self.is_on() {
            self.quiet_ticks = 0;
        }
        if is_tick {
            self.latest_samples = 0;
            self.faults = 0;
        }
        if wanted != self.current {
            self.latest_samples = 0;
        }
        self.current = wanted;
        let off = std::mem::replace(&mut self.on, on);
        (off != on).then_some(Switch { off, on })
    }

    /// The event that the faults ask for.
    fn wanted(&mut self, seconds: f64, is_tick: bool, quiet: bool) -> usize {
        if self.current == 0 {
            return if self.latest_samples > self.most_samples() { self.in_bursts() } else { 0 };
        }
        if !(is_tick && quiet) {
            return if quiet && self.current < STORM { self.current } else { self.in_bursts() };
        }
        self.quiet_ticks += 1;
        let affordable = (self.quiet_samples as f64) < QUIET_SAMPLES as f64 + QUIET_SAMPLES_A_SECOND * seconds;
        match () {
            () if affordable || self.is_calm() => 0,
            () if self.quiet_ticks >= QUIET_TICKS => self.in_bursts().min(STORM - 1),
            () => self.current,
        }
    }

    /// Samples at period 1 between two ticks after which a burst begins.
    fn most_samples(&self) -> u64 {
        if self.has_time_for_new { NEW_BURST_SAMPLES } else { BURST_SAMPLES }
    }

    /// Whether a large object may bring period 1 back: there was no burst in the last tick.
    fn may_return(&mut self, seconds: f64) -> bool {
        let may = self.current == STORM - 1
            && self.faults < self.most_samples()
            && f64::from(self.returns) < RETURNS + RETURNS_A_SECOND * seconds;
        self.returns += u32::from(may);
        may
    }

    /// A quiet tick has passed. Were there next to no faults for long enough?
    fn is_calm(&mut self) -> bool {
        if self.current >= STORM || self.quiet_ticks <= QUIET_TICKS {
            (self.calm_ticks, self.calm_faults) = (0, 0);
            return false;
        }
        self.calm_ticks += 1;
        self.calm_faults += self.faults;
        if self.calm_ticks < self.calm_needed {
            return false;
        }
        let calm = self.calm_faults <= CALM_FAULTS * u64::from(self.calm_ticks);
        (self.calm_ticks, self.calm_faults) = (0, 0);
        self.calm_needed = if calm { (2 * self.calm_needed).min(MOST_CALM_TICKS) } else { self.calm_needed };
        calm
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
        assert_eq!(period.adapt(0.1, false, None, Age::Old), None);
        period.count(1);
        assert_eq!(period.adapt(0.1, false, None, Age::Old), Some(Switch { off: Some(0), on: Some(1) }));
        assert!(period.in_burst() && !period.in_storm());
        assert_eq!(period.count(31), 31);
        period.adapt(0.2, true, None, Age::Old);
        assert!(period.in_burst(), "the tick that ends now saw the burst");
        assert_eq!(period.adapt(0.3, true, None, Age::Old), Some(Switch { off: Some(1), on: Some(0) }));
    }

    /// Check that in storms the event is on in one of eight ticks, and that its samples stand for the others.
    #[test]
    fn storms_are_sampled_part_of_the_time() {
        let mut period = Period::new(Random::new(5));
        for _ in 0..=BURST_SAMPLES {
            period.count(1);
        }
        period.adapt(0.0, false, None, Age::Old);
        for _ in 0..PERIODS[0].1 {
            assert_eq!(period.count(31), 31);
        }
        period.adapt(0.0, false, None, Age::Old);
        assert!(period.in_storm());
        let mut ticks_on = 0;
        for _ in 0..8_000 {
            period.faults = QUIET_FAULTS;
            period.adapt(0.0, true, None, Age::Old);
            ticks_on += u32::from(period.is_on());
        }
        assert!((800..1_200).contains(&ticks_on), "{ticks_on}");
        assert_eq!(period.count(251), 251 * STORM_TICKS);
    }

    /// A period in a storm.
    fn storm() -> Period {
        let mut period = Period::new(Random::new(5));
        for _ in 0..=BURST_SAMPLES {
            period.count(1);
        }
        period.adapt(0.0, false, None, Age::Old);
        for _ in 0..PERIODS[0].1 {
            period.count(31);
        }
        period.adapt(0.0, true, None, Age::Old);
        assert!(period.in_storm());
        period
    }

    /// Check that the tick in which a storm begins is drawn like the others: its samples stand for eight ticks, too.
    #[test]
    fn the_first_tick_of_a_storm_is_drawn() {
        let begins_on = |seed| {
            let mut period = Period::new(Random::new(seed));
            for _ in 0..=BURST_SAMPLES {
                period.count(1);
            }
            for _ in 0..PERIODS[0].1 {
                period.count(31);
            }
            period.adapt(0.0, false, None, Age::Old);
            assert!(period.in_storm());
            period.is_on()
        };
        let on = (0..800).filter(|&seed| begins_on(seed)).count();
        assert!((70..130).contains(&on), "{on}");
    }

    /// Check that objects that wait have an event of their own in each tick of a storm, whose samples stand for one period and do not
    /// raise that of the storm, and that the storm goes on, drawn anew, when they are done.
    #[test]
    fn a_focus_takes_the_place_of_a_storm() {
        let mut period = storm();
        let event = focus_event(200);
        assert_eq!(periods().nth(event), Some(127));
        let burst_samples = period.burst_samples;
        for _ in 0..100 {
            period.faults = QUIET_FAULTS;
            let switch = period.adapt(0.0, true, Some(event), Age::Old);
            assert!(switch.is_none_or(|switch| switch.on == Some(event)) && period.is_focused() && period.in_storm());
            assert_eq!(period.count(127), 127);
        }
        assert_eq!(period.burst_samples, burst_samples);
        // In the middle of a tick, too, the event of the storm is on by chance.
        let mut on = 0;
        for _ in 0..8_000 {
            period.adapt(0.0, false, Some(event), Age::Old);
            let switch = period.adapt(0.0, false, None, Age::Old).expect("a switch");
            assert!(switch.off == Some(event) && !period.is_focused());
            on += u32::from(switch.on == Some(STORM));
        }
        assert!((800..1_200).contains(&on), "{on}");
    }

    /// Check that the program's quiet ends a storm also while objects wait, and that there is no focus without a storm.
    #[test]
    fn quiet_ends_a_focus() {
        let mut period = storm();
        period.quiet_samples = 10 * QUIET_SAMPLES;
        let event = focus_event(200);
        period.faults = QUIET_FAULTS;
        period.adapt(0.0, true, Some(event), Age::Old);
        for _ in 1..QUIET_TICKS {
            assert_eq!(period.adapt(0.0, true, Some(event), Age::Old), None);
        }
        assert_eq!(period.adapt(0.0, true, Some(event), Age::Old), Some(Switch { off: Some(event), on: Some(STORM - 1) }));
        assert!(!period.is_focused() && !period.in_storm());
        assert_eq!(period.adapt(0.0, true, Some(event), Age::Old), None);
    }

    /// Check that period 1 comes back after a long calm even if it is not affordable, and later each time.
    #[test]
    fn a_calm_brings_period_1_back() {
        let mut period = storm();
        period.quiet_samples = 1_000_000;
        let mut calm = |faults: u64| {
            let mut ticks = 0;
            while period.in_burst() && ticks < 1_000 {
                // The event of a storm is on in some ticks only.
                if period.is_on() {
                    period.faults = faults;
                    ticks += 1;
                }
                period.adapt(0.0, true, None, Age::Old);
            }
            for _ in 0..=BURST_SAMPLES {
                period.count(1);
            }
            period.adapt(0.0, false, None, Age::Old);
            ticks
        };
        let needed = |ticks: u32| QUIET_TICKS + ticks;
        assert_eq!((calm(2), calm(2), calm(2)), (needed(16), needed(32), needed(64)));
        assert_eq!(calm(CALM_FAULTS + 1), 1_000);
        assert_eq!((calm(2), calm(2), calm(2)), (needed(128), needed(256), needed(256)));
    }

    /// Check which event suits an object.
    #[test]
    fn the_event_of_an_object() {
        let period = |most| periods().nth(focus_event(most)).unwrap_or(0);
        assert_eq!([1, 7, 30, 31, 126, 127, 508, 509, 1 << 40].map(period), [7, 7, 7, 31, 31, 127, 127, 509, 509]);
    }

    /// Check that a new large object brings period 1 back after a tick without a burst, but not in one, nor in a storm, and a few times only.
    #[test]
    fn a_new_large_object_brings_period_1_back() {
        let mut period = Period::new(Random::new(1));
        (period.quiet_samples, period.new_samples) = (1_000_000, 1_000_000);
        let mut returns = 0;
        for _ in 0..100 {
            (0..=BURST_SAMPLES).for_each(|_| _ = period.count(1));
            period.adapt(0.0, false, None, Age::New);
            assert!(period.in_burst());
            for faults in [BURST_SAMPLES, BURST_SAMPLES - 1] {
                period.faults = faults;
                period.adapt(0.0, true, None, Age::New);
                assert!(period.in_burst() || faults < BURST_SAMPLES);
            }
            if period.in_burst() {
                break;
            }
            returns += 1;
        }
        assert_eq!(returns, RETURNS as u32);
        period.adapt(2.0 / RETURNS_A_SECOND, true, None, Age::New);
        assert!(!period.in_burst(), "one more after a while");
        let mut storm = storm();
        storm.adapt(0.0, true, None, Age::New);
        assert!(storm.in_storm());
    }

    /// Check that a burst begins later while a large object is new, for so many samples that this may cost.
    #[test]
    fn bursts_of_new_objects_begin_later() {
        let mut period = Period::new(Random::new(1));
        let mut samples = 0;
        for tick in 0.. {
            period.adapt(0.0, true, None, Age::New);
            (0..NEW_BURST_SAMPLES).for_each(|_| _ = period.count(1));
            samples += NEW_BURST_SAMPLES;
            period.adapt(0.0, false, None, Age::New);
            assert!(tick < 10);
            if period.in_burst() {
                break;
            }
        }
        assert!((NEW_SAMPLES..NEW_SAMPLES + 2 * NEW_BURST_SAMPLES).contains(&samples), "{samples}");
        assert!(period.quiet_samples < 4 * BURST_SAMPLES, "only what goes beyond a usual burst is charged");
        // What it may cost grows with time, and only new objects have it.
        for (age, seconds) in [(Age::Old, 1e6), (Age::New, 0.0)] {
            let mut other = Period::new(Random::new(1));
            other.new_samples = NEW_SAMPLES;
            (0..=BURST_SAMPLES).for_each(|_| _ = other.count(1));
            other.adapt(seconds, false, None, age);
            assert!(other.in_burst());
        }
        let mut later = Period::new(Random::new(1));
        later.new_samples = NEW_SAMPLES;
        (0..=BURST_SAMPLES).for_each(|_| _ = later.count(1));
        later.adapt(1.0, false, None, Age::New);
        assert!(!later.in_burst());
    }
}
