//! The remote fraction of all accesses. One source may show best how much of each object is remote, and another one how many accesses each object receives.
//!
//! Samples of registers compare loops by their rounds a ns. Where these are hardly known, as of a loop whose parts go to whichever thread is free, the
//! fraction over all objects is not known either, though that of each object is. Watchpoints count the accesses to a word whatever code makes them. So the
//! fraction is the mean of those of the objects, by the shares that watchpoints show: what the rows of a report add up to.

use crate::evidence::{Evidence, SourceRef};
use crate::judge::{JudgeOf, Subject};
use firsttouch_model::Estimate;

/// An object's share of the accesses, and its remote fraction: with all of its uncertainty, and with that of chance alone.
#[derive(Clone, Copy, Debug)]
struct Part {
    share: Estimate,
    remote: [Estimate; 2],
    home_error: f64,
}

/// A remote fraction over all objects that count.
#[derive(Clone, Copy, Debug)]
pub struct RemoteOfAll {
    /// With all uncertainty but that of the homes.
    pub all: Estimate,
    /// With that of chance alone.
    pub chance: Estimate,
    /// The part of the accesses whose home may be guessed wrong.
    pub guessed: f64,
}

impl RemoteOfAll {
    /// The figure, with all of its uncertainty.
    pub fn figure(&self) -> Estimate {
        self.all.widened(self.guessed)
    }

    /// By a source, with the shares of the source that shows them best.
    pub fn of(judge: &JudgeOf<'_, '_>, uses: &Evidence, subjects: &[Subject], source: SourceRef) -> Option<Self> {
        Self::by_shares(judge, uses, subjects, source).or_else(|| Self::alone(judge, uses, subjects, source))
    }

    /// By what one source saw.
    pub fn alone(judge: &JudgeOf<'_, '_>, uses: &Evidence, subjects: &[Subject], source: SourceRef) -> Option<Self> {
        let counted = || subjects.iter().filter(|subject| subject.counts);
        let sampled = uses.of(source);
        let (all, chance) = judge(source).remote_and_chance(counted().flat_map(|subject| &sampled.hits[subject.group]))?;
        let weights = counted().map(|subject| (sampled.design.accesses(subject.group), subject.home_error));
        Some(Self { all, chance, guessed: weighed(weights) })
    }

    /// `None` unless a source that is less trusted shows the shares better.
    fn by_shares(judge: &JudgeOf<'_, '_>, uses: &Evidence, subjects: &[Subject], source: SourceRef) -> Option<Self> {
        let volumes = uses.volumes().filter(|volumes| volumes.index() > source.index())?;
        let part = |subject: &Subject| {
            let (all, chance) = judge(source).remote_and_chance(uses.of(source).hits[subject.group].iter())?;
            let share = uses.of(volumes).design.share(&[subject.group])?;
            Some(Part { share, remote: [all, chance], home_error: subject.home_error })
        };
        let parts: Vec<Part> = subjects.iter().filter(|subject| subject.counts).filter_map(part).collect();
        let [all, chance] = [0, 1].map(|kind| mean(parts.iter().map(|part| (part.share, part.remote[kind]))));
        Some(Self { all: all?, chance: chance?, guessed: weighed(parts.iter().map(|part| (part.share.value, part.home_error))) })
    }
}

/// The mean of values by weights; 0 without weight.
fn weighed(parts: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, all) = parts.fold((0.0, 0.0), |(sum, all), (weight, value)| (sum + weight * value, all + weight));
    sum / f64::max(all, f64::MIN_POSITIVE)
}

/// The mean of fractions by shares. The errors of the fractions are independent; those of the shares are not, since the shares have a sum.
fn mean(parts: impl Iterator<Item = (Estimate, Estimate)> + Clone) -> Option<Estimate> {
    let all: f64 = parts.clone().map(|(share, _)| share.value).sum();
    if all <= 0.0 {
        return None;
    }
    let value = (parts.clone().map(|(share, remote)| share.value * remote.value).sum::<f64>() / all).clamp(0.0, 1.0);
    let by_shares: f64 = parts.clone().map(|(share, remote)| (remote.value - value).abs() * share.half_width() / all).sum();
    let [down, up] = parts.clone().fold([0.0, 0.0], |[down, up]: [f64; 2], (share, remote)| {
        let part = share.value / all;
        [down.hypot(part * (remote.value - remote.low)), up.hypot(part * (remote.high - remote.value))]
    });
    let samples = parts.map(|(_, remote)| remote.samples).sum();
    Some(Estimate { value, low: value, high: value, samples }.widened_by([down.hypot(by_shares), up.hypot(by_shares)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, half: f64) -> Estimate {
        Estimate { value, low: (value - half).max(0.0), high: (value + half).min(1.0), samples: 50 }
    }

    /// Check that the fraction is that of the rows, and that what is unknown of the shares counts as far as the objects differ.
    #[test]
    fn the_rows_add_up() {
        let rows = [(estimate(0.5, 0.1), estimate(0.5, 0.0)), (estimate(0.5, 0.1), estimate(0.0, 0.0))];
        let found = mean(rows.into_iter()).expect("a figure");
        assert!((found.value - 0.25).abs() < 1e-12 && (found.half_width() - 0.05).abs() < 1e-12, "{found:?}");
        assert_eq!(found.samples, 100);
        let alike = [(estimate(0.5, 0.3), estimate(0.5, 0.03)), (estimate(0.5, 0.3), estimate(0.5, 0.04))];
        let found = mean(alike.into_iter()).expect("a figure");
        assert!((found.value - 0.5).abs() < 1e-12 && (found.half_width() - 0.025).abs() < 1e-12, "{found:?}");
        let part = [(estimate(0.2, 0.0), estimate(1.0, 0.0)), (estimate(0.2, 0.0), estimate(0.0, 0.0))];
        assert!((mean(part.into_iter()).expect("a figure").value - 0.5).abs() < 1e-12, "of the judged objects");
        assert_eq!(mean([].into_iter()), None);
    }
}
