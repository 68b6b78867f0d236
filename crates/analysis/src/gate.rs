//! Whether a placement is good enough: limits on what an analysis says.
//!
//! A limit is exceeded when the whole 95 % interval lies above it, so that chance does not fail a build: of programs right at a limit, one in
//! forty does. Where only the value is above it, that is told.

use crate::judge::CACHED;
use crate::{Analysis, Interval, ObjectView};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::FindingKind;
use serde::Serialize;

/// What is allowed; nothing asked is nothing exceeded.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub max_remote: Option<f64>,
    pub max_slowdown: Option<f64>,
    /// An earlier analysis on the same machine.
    pub baseline: Option<Box<Analysis>>,
}

/// How a limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Within,
    /// The value is above the limit, but not the whole interval.
    Unsure,
    Exceeded,
    /// There is nothing to hold against it.
    Unknown,
}

/// One limit, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// `max-remote`, `max-slowdown`, `baseline-remote`, `baseline-slowdown`, `baseline-findings`.
    pub name: &'static str,
    pub limit: f64,
    pub value: Option<f64>,
    pub interval: Option<Interval>,
    pub verdict: Verdict,
    /// Findings that the baseline does not have: kind and object.
    pub new_findings: Vec<String>,
}

/// Holds an analysis against limits.
#[must_use]
pub fn check(analysis: &Analysis, limits: &Limits) -> Vec<Checked> {
    let mut checked = Vec::new();
    let remote = (remote(analysis), analysis.remote_interval);
    let slowdown = analysis.prediction.as_ref().map(|prediction| (prediction.slowdown, prediction.interval));
    let slowdown = (slowdown.map(|one| one.0), slowdown.map(|one| one.1));
    if let Some(limit) = limits.max_remote {
        checked.push(held("max-remote", limit, remote));
    }
    if let Some(limit) = limits.max_slowdown {
        checked.push(held("max-slowdown", limit, slowdown));
    }
    if let Some(before) = &limits.baseline {
        // What the baseline may have been by chance is no limit to be held against.
        let high = before.remote_interval.map(|interval| interval[1]).or(before.remote_fraction).unwrap_or(0.0);
        checked.push(held("baseline-remote", high, remote));
        if let (Some(prediction), (Some(_), _)) = (&before.prediction, slowdown) {
            checked.push(held("baseline-slowdown", prediction.interval[1], slowdown));
        }
        checked.push(new_findings(analysis, before));
    }
    checked
}

/// A program with one thread has no remote accesses; of one without evidence nothing is known, nor of one that has memory larger than a
/// cache of which nothing could be judged.
fn remote(analysis: &Analysis) -> Option<f64> {
    let is_open = |object: &ObjectView| !object.judged && !object.reason.as_deref().is_some_and(|reason| reason.starts_with(CACHED));
    let objects = &analysis.objects;
    if analysis.threads.len() > 1 && objects.iter().any(is_open) && !objects.iter().any(|object| object.judged) {
        return None;
    }
    let blind = analysis
        .evidence
        .iter()
        .any(|evidence| !evidence.available && matches!(evidence.source, EvidenceSource::Touch | EvidenceSource::Watch));
    analysis.remote_fraction.or((!blind || analysis.threads.len() == 1).then_some(0.0))
}

fn held(name: &'static str, limit: f64, (value, interval): (Option<f64>, Option<Interval>)) -> Checked {
    let low = interval.map(|interval| interval[0]).or(value);
    let verdict = match (value, low) {
        (Some(_), Some(low)) if low > limit => Verdict::Exceeded,
        (Some(value), _) if value > limit => Verdict::Unsure,
        (Some(_), _) => Verdict::Within,
        (None, _) => Verdict::Unknown,
    };
    Checked { name, limit, value, interval, verdict, new_findings: Vec::new() }
}

/// Findings are told apart by kind and object's name: ids differ from run to run.
fn new_findings(analysis: &Analysis, before: &Analysis) -> Checked {
    let known = |kind: FindingKind, name: &str| before.findings.iter().any(|finding| finding.kind == kind && finding.object_name == name);
    let new: Vec<String> = analysis
        .findings
        .iter()
        .filter(|finding| !known(finding.kind, &finding.object_name))
        .map(|finding| format!("{} {}", finding.kind, finding.object_name))
        .collect();
    let verdict = if new.is_empty() { Verdict::Within } else { Verdict::Exceeded };
    Checked { name: "baseline-findings", limit: 0.0, value: Some(new.len() as f64), interval: None, verdict, new_findings: new }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that only a whole interval above a limit exceeds it, and that nothing known is not within.
    #[test]
    fn chance_exceeds_nothing() {
        for (value, interval, verdict) in [
            (Some(0.1), Some([0.05, 0.15]), Verdict::Within),
            (Some(0.1), Some([0.05, 0.4]), Verdict::Within),
            (Some(0.3), Some([0.1, 0.5]), Verdict::Unsure),
            (Some(0.3), Some([0.2, 0.5]), Verdict::Unsure),
            (Some(0.3), Some([0.25, 0.35]), Verdict::Exceeded),
            (Some(0.3), None, Verdict::Exceeded),
            (None, None, Verdict::Unknown),
        ] {
            assert_eq!(held("max-remote", 0.2, (value, interval)).verdict, verdict, "{value:?} {interval:?}");
        }
    }
}
