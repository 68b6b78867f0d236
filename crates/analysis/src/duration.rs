//! What an uncertain remote share lacks: samples, which a longer run would give, or something that more samples would not replace.

use crate::findings::{REMOTE_BAR, WIDEST};
use crate::report::{Interval, ObjectView};
use crate::verdict::SUBSTANTIAL;

/// Nobody profiles for longer than this, seconds.
const LONGEST_S: f64 = 3600.0;

/// A remote share, with its 95 % interval.
#[derive(Clone, Copy, Debug)]
pub struct RemoteShare {
    pub value: f64,
    pub interval: Interval,
    /// What the interval would be if nothing but chance made it wide.
    pub by_samples: Interval,
    /// How much of the share may be wrong because the nodes of some pages are guessed: few of their first touches are known.
    pub guessed: f64,
    /// The same because it is not known how fast loops go.
    pub speeds: f64,
    /// The same because the addresses of some accesses are not known, and because threads that follow each other may run on any node.
    pub addresses: f64,
    pub turns: f64,
    /// A wider interval gives no verdict.
    pub widest: f64,
}

/// What would make it certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// More samples; a run that is so many seconds longer would have enough of them, if it is known and not too long to try.
    Samples { more_s: Option<u64> },
    /// First touches: each page has one, however long the program runs.
    FirstTouches,
    /// Sources of evidence that agree.
    Agreement,
    /// How fast the loops go that make most of the accesses: without it, two loops cannot be compared, however many samples there are.
    Speeds,
    /// The addresses of loads whose registers are overwritten before the sample comes.
    Addresses,
    /// Threads that stay: on which node each of those that follow each other runs is chance.
    LastingThreads,
}

impl RemoteShare {
    /// That of an object; `None` if nothing is known.
    #[must_use]
    pub fn of(object: &ObjectView) -> Option<Self> {
        let (value, interval) = object.remote_fraction.zip(object.remote_interval)?;
        let by_samples = object.remote_interval_by_samples.unwrap_or(interval);
        Some(Self {
            value,
            interval,
            by_samples,
            guessed: object.guessed_homes,
            speeds: object.speed_error,
            addresses: 0.0,
            turns: 0.0,
            widest: WIDEST,
        })
    }

    /// What it lacks; `None` if it is certain enough for a verdict.
    #[must_use]
    pub fn lack(&self, wall_s: f64) -> Option<Lack> {
        if self.is_decided(self.interval) {
            return None;
        }
        let [low, high] = self.others();
        let is_open = |error: f64| !self.is_decided([self.value - error, self.value + error]);
        Some(match () {
            () if self.is_decided([self.value - low, self.value + high]) => Lack::Samples { more_s: self.more_s(wall_s) },
            () if is_open(self.turns) => Lack::LastingThreads,
            () if is_open(self.addresses) && self.addresses >= self.guessed.hypot(self.speeds) => Lack::Addresses,
            () if is_open(self.guessed) && self.guessed >= self.speeds => Lack::FirstTouches,
            () if is_open(self.speeds.hypot(self.guessed)) => Lack::Speeds,
            () => Lack::Agreement,
        })
    }

    /// The seconds that a run of `wall_s` would have to be longer to tell the value from the bar of findings.
    #[must_use]
    pub fn seconds_above_bar(&self, wall_s: f64) -> Option<u64> {
        let [rest, _] = self.others();
        let (chance, room) = (self.value - self.by_samples[0], self.value - REMOTE_BAR);
        let left = room * room - rest * rest;
        let more = wall_s * (chance * chance / left - 1.0);
        (room > 0.0 && left > 0.0 && more > 0.0 && more <= LONGEST_S).then(|| more.ceil() as u64)
    }

    /// Whether any longer run would tell the value from the bar of findings.
    #[must_use]
    pub fn is_helped_by_time(&self) -> bool {
        self.value - self.others()[0] > REMOTE_BAR
    }

    /// Whether an interval is narrow, and excludes either well placed or misplaced.
    fn is_decided(&self, [low, high]: Interval) -> bool {
        high - low <= self.widest && (low > REMOTE_BAR || high <= SUBSTANTIAL)
    }

    /// How far the interval would reach down and up with any number of samples: what chance adds, adds in quadrature.
    fn others(&self) -> [f64; 2] {
        // Intervals end at 0 and 1.
        let rest = |all: f64, chance: f64| (all * all - chance * chance).max(0.0).sqrt().max(self.guessed.hypot(self.speeds));
        let ([low, high], [chance_low, chance_high]) = (self.interval, self.by_samples);
        [rest(self.value - low, self.value - chance_low), rest(high - self.value, chance_high - self.value)]
    }

    /// The seconds that a run of `wall_s` would have to be longer: what chance adds shrinks with the square root of the time. `None` if that is
    /// too long to try, or unknown.
    fn more_s(&self, wall_s: f64) -> Option<u64> {
        let wanted = |chance: f64, rest: f64, room: f64| match room * room - rest * rest {
            left if room > 0.0 && left > 0.0 => chance * chance / left,
            _ => f64::INFINITY,
        };
        let (value, [low, high], [rest_low, rest_high]) = (self.value, self.by_samples, self.others());
        let narrow = wanted((high - low) / 2.0, rest_low.midpoint(rest_high), self.widest / 2.0);
        let below = || wanted(high - value, rest_high, SUBSTANTIAL - value);
        let above = || wanted(value - low, rest_low, value - REMOTE_BAR);
        let more = wall_s * (narrow.max(below().min(above())) - 1.0);
        (more > 0.0 && more <= LONGEST_S).then(|| more.ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_chance(value: f64, interval: Interval) -> RemoteShare {
        RemoteShare { value, interval, by_samples: interval, guessed: 0.0, speeds: 0.0, addresses: 0.0, turns: 0.0, widest: WIDEST }
    }

    /// Check how much longer a run would have to be: not at all, until the interval is narrow, until it excludes a bar, or forever.
    #[test]
    fn how_long_a_run_would_decide() {
        let samples = |more_s| Some(Lack::Samples { more_s });
        for (value, interval, wall_s, lack) in [
            (0.5, [0.11, 0.96], 2.0, samples(Some(1))),
            (0.5, [0.4, 0.6], 2.0, None),
            (0.15, [0.0, 0.3], 10.0, samples(Some(13))),
            (0.02, [0.0, 0.4], 10.0, samples(Some(35))),
            (0.05, [0.0, 0.2], 10.0, None),
            (0.0501, [0.0, 0.9], 10.0, samples(Some(312))),
            (0.2, [0.0, 0.4], 1e9, samples(None)),
        ] {
            assert_eq!(by_chance(value, interval).lack(wall_s), lack, "{value} {interval:?} {wall_s}");
        }
    }

    /// Check how much longer a run would have to be to find 8 % misplaced, and that none is asked for where it cannot.
    #[test]
    fn how_long_until_the_bar_is_excluded() {
        assert_eq!(by_chance(0.08, [0.04, 0.12]).seconds_above_bar(10.0), Some(8));
        assert_eq!(by_chance(0.08, [0.06, 0.1]).seconds_above_bar(9.0), None, "it is excluded");
        assert_eq!(by_chance(0.0501, [0.01, 0.1]).seconds_above_bar(9.0), None, "too long");
        let guessed = RemoteShare { guessed: 0.04, ..by_chance(0.08, [0.04, 0.12]) };
        assert_eq!(guessed.seconds_above_bar(9.0), None, "first touches are missing");
    }

    /// Check that no longer run is asked for where first touches are missing or sources disagree, and that a run must be longer than chance alone
    /// would ask for where they make the interval a little wider.
    #[test]
    fn samples_do_not_replace_first_touches() {
        let of = |interval, by_samples, guessed| RemoteShare {
            value: 0.45,
            interval,
            by_samples,
            guessed,
            speeds: 0.0,
            addresses: 0.0,
            turns: 0.0,
            widest: WIDEST,
        };
        assert_eq!(of([0.0, 1.0], [0.43, 0.47], 0.6).lack(50.0), Some(Lack::FirstTouches));
        assert_eq!(of([0.0, 1.0], [0.1, 0.8], 0.6).lack(50.0), Some(Lack::FirstTouches));
        assert_eq!(of([0.01, 0.5], [0.4, 0.5], 0.02).lack(3.0), Some(Lack::Agreement));
        let alone = by_chance(0.45, [0.0, 0.9]).lack(10.0);
        let with_guesses =
            RemoteShare { interval: [0.0, 0.95], by_samples: [0.0, 0.9], guessed: 0.2, ..by_chance(0.45, [0.0, 0.9]) }.lack(10.0);
        let seconds = |lack| if let Some(Lack::Samples { more_s: Some(more_s) }) = lack { more_s } else { panic!("{lack:?}") };
        assert!(seconds(with_guesses) > seconds(alone), "{with_guesses:?} {alone:?}");
    }

    /// Check that no seconds are promised where the width comes from the speeds of loops, which more samples do not show; and that more are asked for
    /// where these only add to chance. The first row is of a loop over linked lists: runs of 6.6 s asked for 6 s more, and one of 23 s for 20 s more.
    #[test]
    fn samples_do_not_show_speeds() {
        let of = |interval, by_samples, speeds| RemoteShare {
            value: 0.2,
            interval,
            by_samples,
            guessed: 0.0,
            speeds,
            addresses: 0.0,
            turns: 0.0,
            widest: WIDEST,
        };
        assert_eq!(of([0.04, 0.6], [0.18, 0.22], 0.4).lack(23.0), Some(Lack::Speeds));
        assert_eq!(of([0.04, 0.6], [0.1, 0.5], 0.4).lack(6.6), Some(Lack::Speeds));
        let seconds = |speeds| match of([0.0, 0.5], [0.02, 0.45], speeds).lack(10.0) {
            Some(Lack::Samples { more_s: Some(more_s) }) => more_s,
            other => panic!("{other:?}"),
        };
        assert!(seconds(0.13) > seconds(0.0));
        let [wide, narrow] = [0.4, 0.1].map(|speeds| of([0.04, 0.6], [0.18, 0.22], speeds));
        assert_eq!((wide.seconds_above_bar(23.0), wide.is_helped_by_time()), (None, false));
        assert!(of([0.04, 0.3], [0.05, 0.3], narrow.speeds).is_helped_by_time());
    }
}
