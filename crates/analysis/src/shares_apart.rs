//! The remote fraction of all accesses where one source shows best how much of each object is remote, and another one how many accesses each object
//! receives.
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

/// A remote fraction: with all uncertainty, with that of chance, and the part of the accesses whose home is a guess.
pub struct ByShares {
    pub all: Estimate,
    pub chance: Estimate,
    pub guessed: f64,
}

/// The remote fraction by a source. `None` unless a source that is less trusted shows the shares better.
pub fn remote_by_shares(judge: &JudgeOf<'_, '_>, uses: &Evidence, subjects: &[Subject], source: SourceRef) -> Option<ByShares> {
    let volumes = uses.volumes().filter(|volumes| volumes.index() > source.index())?;
    let part = |subject: &Subject| {
        let (all, chance) = judge(source).remote_and_chance(uses.of(source).hits[subject.group].iter())?;
        Some(Part { share: uses.of(volumes).design.share(&[subject.group])?, remote: [all, chance], home_error: subject.home_error })
    };
    let parts: Vec<Part> = subjects.iter().filter(|subject| subject.counts).filter_map(part).collect();
    let [all, chance] = [0, 1].map(|kind| mean(parts.iter().map(|part| (part.share, part.remote[kind]))));
    let sum: f64 = parts.iter().map(|part| part.share.value).sum();
    let guessed = parts.iter().map(|part| part.share.value * part.home_error).sum::<f64>() / sum.max(f64::MIN_POSITIVE);
    Some(ByShares { all: all?, chance: chance?, guessed })
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
