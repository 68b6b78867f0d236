//! Whether a published effect appears on this machine: only the runs of both cases decide.

use crate::Statistics;
use firsttouch_model::system::are_apart;
use serde::Serialize;

/// A published claim: one case is faster than another.
pub struct Claim<'a> {
    /// The cases, as the subject of a sentence.
    pub faster: &'a str,
    pub slower: &'a str,
    /// Speeds of the runs, in any unit.
    pub faster_runs: &'a [f64],
    pub slower_runs: &'a [f64],
    /// The published ratio of speeds.
    pub published: Option<f64>,
    /// Why the effect cannot appear on this machine; `None` if it can.
    pub impossible: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    pub verdict: EffectVerdict,
    /// Speed of the faster case / speed of the slower case.
    pub ratio: Option<Ratio>,
    pub published_ratio: Option<f64>,
    pub sentence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectVerdict {
    /// Every run of the faster case is faster than every run of the other case.
    Appears,
    /// The runs overlap, or are too few.
    NotShown,
    /// Every run of the faster case is slower.
    Opposite,
    /// This machine cannot show the effect.
    Impossible,
}

/// The ratio of the medians; the least and largest ratio of any two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    pub value: f64,
    pub min: f64,
    pub max: f64,
}

impl Ratio {
    fn of(above: &Statistics, below: &Statistics) -> Option<Self> {
        let ratio = Self { value: above.median / below.median, min: above.min / below.max, max: above.max / below.min };
        [ratio.value, ratio.min, ratio.max].iter().all(|value| value.is_finite() && *value > 0.0).then_some(ratio)
    }
}

impl Claim<'_> {
    /// Decides the claim from the runs.
    #[must_use]
    pub fn judged(&self) -> Effect {
        let figures = Statistics::of(self.faster_runs).zip(Statistics::of(self.slower_runs));
        let ratio = figures.and_then(|(faster, slower)| Ratio::of(&faster, &slower));
        let are_apart = are_apart(self.faster_runs, self.slower_runs);
        let verdict = match (&self.impossible, ratio) {
            (Some(_), _) => EffectVerdict::Impossible,
            (None, Some(ratio)) if are_apart && ratio.value > 1.0 => EffectVerdict::Appears,
            (None, Some(_)) if are_apart => EffectVerdict::Opposite,
            (None, _) => EffectVerdict::NotShown,
        };
        let sentence = self.sentence(verdict, ratio, are_apart);
        Effect { verdict, ratio, published_ratio: self.published, sentence }
    }

    fn sentence(&self, verdict: EffectVerdict, ratio: Option<Ratio>, are_apart: bool) -> String {
        let opening = match verdict {
            EffectVerdict::Appears => "The effect appears here",
            EffectVerdict::NotShown => "The effect does not show here",
            EffectVerdict::Opposite => "Here the effect is reversed",
            EffectVerdict::Impossible => "The effect cannot appear here",
        };
        let why = self.impossible.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let published = self.published.map_or_else(String::new, |ratio| format!(" Published: {ratio:.2}x."));
        let Some(ratio) = ratio else {
            return format!("{opening}{why}.{}{published}", if why.is_empty() { " There is nothing to compare." } else { "" });
        };
        let said = format!("{} is {:.2}x [{:.2}, {:.2}] as fast as {}", self.faster, ratio.value, ratio.min, ratio.max, self.slower);
        let runs = self.counts();
        match verdict {
            EffectVerdict::Impossible if are_apart => {
                let by = 100.0 * (ratio.value - 1.0).abs();
                format!(
                    "{opening}{why}. Measured all the same, {said}; the runs do not overlap ({runs}), so something other than placement causes these {by:.0} %.{published}"
                )
            }
            EffectVerdict::Impossible => {
                format!("{opening}{why}. Measured all the same, {said}, and the runs overlap ({runs}).{published}")
            }
            EffectVerdict::NotShown => {
                let more =
                    if ratio.min <= 1.0 && ratio.max >= 1.0 { "the runs overlap" } else { "there are too few runs for a verdict (--runs)" };
                format!("{opening}: {said}; {more} ({runs}).{published}")
            }
            EffectVerdict::Appears | EffectVerdict::Opposite => {
                format!("{opening}: {said}, and the runs do not overlap ({runs}).{published}")
            }
        }
    }

    /// `5 runs each`
    fn counts(&self) -> String {
        match (self.faster_runs.len(), self.slower_runs.len()) {
            (1, 1) => "one run each".to_owned(),
            (one, other) if one == other => format!("{one} runs each"),
            (one, other) => format!("{one} and {other} runs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(faster_runs: &[f64], slower_runs: &[f64], impossible: Option<&str>) -> Effect {
        let impossible = impossible.map(str::to_owned);
        Claim { faster: "near memory", slower: "far memory", faster_runs, slower_runs, published: Some(1.5), impossible }.judged()
    }

    /// Check each verdict on runs whose answer is known.
    #[test]
    fn runs_decide() {
        let (high, low) = ([2.0, 2.1, 2.2, 2.3], [1.0, 1.1, 1.2, 1.3]);
        for (faster, slower, impossible, verdict, words) in [
            (&high[..], &low[..], None, EffectVerdict::Appears, "appears here: near memory is 1.87x [1.54, 2.30] as fast as far memory"),
            (&low, &high, None, EffectVerdict::Opposite, "Here the effect is reversed: near memory is 0.53x"),
            (
                &high,
                &high,
                None,
                EffectVerdict::NotShown,
                "does not show here: near memory is 1.00x [0.87, 1.15] as fast as far memory; the runs overlap",
            ),
            (&high[..3], &low[..3], None, EffectVerdict::NotShown, "too few runs for a verdict (--runs) (3 runs each)"),
            (
                &high,
                &high,
                Some("one node"),
                EffectVerdict::Impossible,
                "cannot appear here: one node. Measured all the same, near memory is 1.00x",
            ),
            (&high, &low, Some("one node"), EffectVerdict::Impossible, "something other than placement causes these 87 %"),
            (&[], &low, Some("one node"), EffectVerdict::Impossible, "cannot appear here: one node. Published: 1.50x."),
            (&[], &low, None, EffectVerdict::NotShown, "There is nothing to compare."),
            (&[0.0], &[0.0], None, EffectVerdict::NotShown, "There is nothing to compare."),
        ] {
            let effect = judged(faster, slower, impossible);
            assert_eq!(effect.verdict, verdict, "{effect:?}");
            assert!(effect.sentence.contains(words), "{words}: {}", effect.sentence);
            assert!(effect.sentence.ends_with("Published: 1.50x."), "{}", effect.sentence);
        }
    }
}
