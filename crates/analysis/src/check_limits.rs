//! Limits that a user sets on the figures of an analysis, and whether a program stays within them.
//!
//! A limit is exceeded if the whole 95 % interval lies above it, so that chance rarely fails a build: of programs exactly at a limit, one
//! in forty fails. If only the value is above it, the result is unsure. A program is within a limit only if nothing stands against an all-clear
//! (`verdict.rs`): without evidence, it is not judged. A program that the report does not judge exceeds no limit either.
//!
//! What is misplaced is the rules' question (`findings/rules.rs`), how much of it is known the verdict's (`verdict.rs`), and what is worth a
//! repair the recommendation's (firsttouch-plan). The limit counts all remote accesses, also where no repair is worth it: whether one is follows from
//! predicted gains near 1, which differ from run to run, and a check must not. An exceeded limit says so (`not_worth`).

use crate::between_runs::{self, RUNS_WITH_SPREAD, Seen, USUAL_TOLERANCE};
use crate::{Analysis, Assessed, Finding, Interval, ObjectView, Verdict};
use firsttouch_model::finding::FindingKind;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The limits. `None`: no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    pub max_remote: Option<f64>,
    /// The findings that are not worth a repair on the machine, by their index.
    pub not_worth: &'a [usize],
    pub max_slowdown: Option<f64>,
    /// Earlier runs, judged on the same machine.
    pub baselines: &'a [Assessed<'a>],
    /// By how much runs may differ: points of the remote share, part of the slow-down. `None`: as several baselines do, else by
    /// [`USUAL_TOLERANCE`].
    pub tolerance: Option<f64>,
}

impl Limits<'_> {
    /// Whether all that is misplaced had better be left as it is.
    fn leaves_all(&self, analysis: &Analysis) -> bool {
        let is_left = |finding: usize| self.not_worth.contains(&finding);
        !analysis.findings.is_empty() && (0..analysis.findings.len()).all(is_left)
    }

    /// `None`: the spread of the baselines tells.
    fn between_runs(&self) -> Option<f64> {
        self.tolerance.or((self.baselines.len() < RUNS_WITH_SPREAD).then_some(USUAL_TOLERANCE))
    }
}

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    MaxRemote,
    MaxSlowdown,
    BaselineRemote,
    BaselineSlowdown,
    BaselineFindings,
}

impl LimitKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxRemote => "max-remote",
            Self::MaxSlowdown => "max-slowdown",
            Self::BaselineRemote => "baseline-remote",
            Self::BaselineSlowdown => "baseline-slowdown",
            Self::BaselineFindings => "baseline-findings",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The result for one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitStatus {
    Within,
    /// The value is above the limit, but not the whole interval.
    Unsure,
    Exceeded,
    /// The figure is not known, or not known well enough to be within the limit.
    Unknown,
}

/// One limit, and the figure that it was compared with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitCheck {
    #[serde(rename = "name")]
    pub kind: LimitKind,
    pub limit: f64,
    pub value: Option<f64>,
    pub interval: Option<Interval>,
    #[serde(rename = "verdict")]
    pub status: LimitStatus,
    /// Findings that the baseline does not have: kind and object.
    pub new_findings: Vec<String>,
    /// What the limit allows runs to differ by: of one or two baselines, or if the user says so.
    pub tolerance: Option<f64>,
    /// The number of earlier runs behind the limit.
    pub baselines: usize,
    /// The value is above the limit, but no repair is worth it on the machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_worth: bool,
}

impl LimitCheck {
    /// The same, with the remark that no repair is worth it, if `is_left`.
    fn marked(self, is_left: bool) -> Self {
        let is_above = matches!(self.status, LimitStatus::Exceeded | LimitStatus::Unsure);
        Self { not_worth: is_left && is_above, ..self }
    }

    /// The figure is no evidence for or against the limit.
    pub fn forget(&mut self) {
        self.status = LimitStatus::Unknown;
    }
}

/// What the limits say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Passed,
    /// A limit was exceeded.
    Failed,
    /// A limit could not be checked, and none was exceeded.
    NotJudged,
}

impl Outcome {
    #[must_use]
    pub fn of(checked: &[LimitCheck]) -> Self {
        let any = |status: LimitStatus| checked.iter().any(|limit| limit.status == status);
        match () {
            () if any(LimitStatus::Exceeded) => Self::Failed,
            () if any(LimitStatus::Unknown) || checked.is_empty() => Self::NotJudged,
            () => Self::Passed,
        }
    }
}

/// Compares an analysis, and the prediction for it, with limits. `is_whole`: the profile holds all that was recorded.
#[must_use]
pub fn check(assessed: Assessed<'_>, limits: &Limits<'_>, is_whole: bool) -> Vec<LimitCheck> {
    let analysis = assessed.analysis;
    let mut checked = Vec::new();
    // Where no memory can be remote, there is no figure.
    let is_judged = is_whole && analysis.doubts().is_empty();
    let is_well_placed = is_judged && analysis.findings.is_empty();
    let remote = (analysis.remote_fraction.or(is_well_placed.then_some(0.0)), analysis.remote_interval);
    let slowdown = assessed.prediction.map(|prediction| (prediction.slowdown, prediction.interval));
    let slowdown = (slowdown.map(|one| one.0), slowdown.map(|one| one.1));
    if let Some(limit) = limits.max_remote {
        checked.push(compare(LimitKind::MaxRemote, limit, remote).marked(limits.leaves_all(analysis)));
    }
    if let Some(limit) = limits.max_slowdown {
        checked.push(compare(LimitKind::MaxSlowdown, limit, slowdown));
    }
    checked.extend(against_baselines(analysis, limits, remote, slowdown));
    let has_verdict = !matches!(analysis.verdict(), Verdict::NotJudged(_));
    for limit in checked.iter_mut().filter(|limit| !(is_judged || has_verdict && limit.status == LimitStatus::Exceeded)) {
        limit.status = LimitStatus::Unknown;
    }
    checked
}

type Figure = (Option<f64>, Option<Interval>);

/// What earlier runs may have reached by chance does not count against this run, nor what runs differ by.
fn against_baselines(analysis: &Analysis, limits: &Limits<'_>, remote: Figure, slowdown: Figure) -> Vec<LimitCheck> {
    let tolerance = limits.between_runs();
    let shares: Vec<Seen> = limits
        .baselines
        .iter()
        .map(|one| {
            let value = one.analysis.remote_fraction.unwrap_or(0.0);
            Seen { value, high: one.analysis.remote_interval.map_or(value, |interval| interval[1]) }
        })
        .collect();
    let Some(most) = between_runs::bound(&shares, tolerance) else { return Vec::new() };
    let mut checked = vec![compare(LimitKind::BaselineRemote, most, remote)];
    let slow: Vec<Seen> = limits
        .baselines
        .iter()
        .filter_map(|one| one.prediction)
        .map(|prediction| Seen { value: prediction.slowdown, high: prediction.interval[1] })
        .collect();
    // Figures of one machine: either all baselines have a prediction, or none.
    let part = tolerance.zip(slow.first()).map(|(part, first)| part * first.value);
    if let Some(most) = between_runs::bound(&slow, part) {
        checked.push(compare(LimitKind::BaselineSlowdown, most, slowdown));
    }
    let before: Vec<&Analysis> = limits.baselines.iter().map(|one| one.analysis).collect();
    checked.push(new_findings(analysis, &before, limits.not_worth));
    for limit in &mut checked {
        limit.baselines = limits.baselines.len();
        limit.tolerance = tolerance.filter(|_| limit.kind != LimitKind::BaselineFindings);
    }
    checked
}

fn compare(kind: LimitKind, limit: f64, (value, interval): Figure) -> LimitCheck {
    let low = interval.map(|interval| interval[0]).or(value);
    let status = match (value, low) {
        (Some(_), Some(low)) if low > limit => LimitStatus::Exceeded,
        (Some(value), _) if value > limit => LimitStatus::Unsure,
        (Some(_), _) => LimitStatus::Within,
        (None, _) => LimitStatus::Unknown,
    };
    LimitCheck { kind, limit, value, interval, status, new_findings: Vec::new(), tolerance: None, baselines: 0, not_worth: false }
}

/// What is wrong with an object. The first five kinds say who touched and who uses it; runs of a few samples differ in the kind of one object, so
/// they are one defect here, and how much of it is remote is compared by the shares.
fn defect(kind: FindingKind) -> Option<FindingKind> {
    use FindingKind as K;
    let is_by_threads =
        matches!(kind, K::SerialFirstTouch | K::MismatchedPartition | K::NoStablePartition | K::SharedRead | K::IoFirstTouch);
    (!is_by_threads).then_some(kind)
}

/// Two findings are the same if the defect and the name of an object are equal: ids differ from run to run, and so do the objects that are
/// judged together. A finding on an object that is in no baseline's findings is new only if more of the object is remote than may have been in any
/// baseline.
fn new_findings(analysis: &Analysis, before: &[&Analysis], not_worth: &[usize]) -> LimitCheck {
    let names = |analysis: &Analysis, finding: &Finding| -> BTreeSet<String> {
        let ids: BTreeSet<i64> = finding.objects().collect();
        let of_objects = analysis.objects.iter().filter(|object| ids.contains(&object.id)).map(|object| object.name.clone());
        of_objects.chain([finding.object_name.clone()]).collect()
    };
    let known: Vec<(Option<FindingKind>, BTreeSet<String>)> =
        before.iter().flat_map(|before| before.findings.iter().map(|one| (defect(one.kind), names(before, one)))).collect();
    // How much of the object is remote may be as much in a baseline: by chance, one run has a finding near the bar and another one none.
    let may_be_as_much = |finding: &Finding, own: &BTreeSet<String>| {
        let reaches = |object: &ObjectView| object.judged && object.remote_interval.is_some_and(|[_, high]| high >= finding.interval[0]);
        let objects = before.iter().flat_map(|before| &before.objects);
        defect(finding.kind).is_none() && objects.filter(|object| own.contains(&object.name)).any(reaches)
    };
    let is_known = |finding: &Finding| {
        let own = names(analysis, finding);
        may_be_as_much(finding, &own) || known.iter().any(|(kind, names)| *kind == defect(finding.kind) && !names.is_disjoint(&own))
    };
    let new: Vec<String> = analysis
        .findings
        .iter()
        .enumerate()
        .filter(|(index, finding)| !not_worth.contains(index) && !is_known(finding))
        .map(|(_, finding)| format!("{} {}", finding.kind, finding.object_name))
        .collect();
    let status = if new.is_empty() { LimitStatus::Within } else { LimitStatus::Exceeded };
    let count = new.len() as f64;
    LimitCheck { new_findings: new, status, ..compare(LimitKind::BaselineFindings, 0.0, (Some(count), None)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which kinds are one defect: those that say who touched and who uses an object, which a few samples confuse. All others are defects of
    /// their own.
    #[test]
    fn kinds_that_runs_confuse_are_one_defect() {
        use FindingKind as K;
        let by_threads = [K::SerialFirstTouch, K::MismatchedPartition, K::NoStablePartition, K::SharedRead, K::IoFirstTouch];
        let others =
            [K::HugePageSharing, K::RecycledMemory, K::UnpinnedThreads, K::BalancingChurn, K::NodeFull, K::PolicyMismatch, K::SlowTier];
        for (index, one) in by_threads.iter().chain(&others).enumerate() {
            for (other_index, other) in by_threads.iter().chain(&others).enumerate() {
                let is_one = index == other_index || (index < by_threads.len() && other_index < by_threads.len());
                assert_eq!(defect(*one) == defect(*other), is_one, "{one} {other}");
            }
        }
    }

    /// Check that a limit is exceeded also where no repair is worth it, and says so.
    #[test]
    fn what_is_not_worth_a_repair_counts() {
        let above = |is_left| compare(LimitKind::MaxRemote, 0.2, (Some(0.5), Some([0.49, 0.51]))).marked(is_left);
        assert_eq!((above(true).status, above(true).not_worth), (LimitStatus::Exceeded, true));
        assert_eq!((above(false).status, above(false).not_worth), (LimitStatus::Exceeded, false));
        let below = compare(LimitKind::MaxRemote, 0.2, (Some(0.1), Some([0.05, 0.15]))).marked(true);
        assert_eq!((below.status, below.not_worth), (LimitStatus::Within, false));
        let unknown = compare(LimitKind::MaxRemote, 0.2, (None, None)).marked(true);
        assert_eq!((unknown.status, unknown.not_worth), (LimitStatus::Unknown, false));
    }

    /// Check that only a whole interval above a limit exceeds it, and that an unknown figure is not within the limit.
    #[test]
    fn chance_exceeds_nothing() {
        for (value, interval, status) in [
            (Some(0.1), Some([0.05, 0.15]), LimitStatus::Within),
            (Some(0.1), Some([0.05, 0.4]), LimitStatus::Within),
            (Some(0.3), Some([0.1, 0.5]), LimitStatus::Unsure),
            (Some(0.3), Some([0.2, 0.5]), LimitStatus::Unsure),
            (Some(0.3), Some([0.25, 0.35]), LimitStatus::Exceeded),
            (Some(0.3), None, LimitStatus::Exceeded),
            (None, None, LimitStatus::Unknown),
        ] {
            assert_eq!(compare(LimitKind::MaxRemote, 0.2, (value, interval)).status, status, "{value:?} {interval:?}");
        }
    }
}
