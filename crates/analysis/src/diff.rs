//! Two profiles of the same work, compared: what changed, and whether chance alone could have done it.
//!
//! Each figure has a 95 % interval of its own. That of a difference follows from the two (Zou and Donner 2008, "MOVER"): with d = b - a,
//! from d - sqrt((b - b.low)^2 + (a.high - a)^2) to d + sqrt((b.high - b)^2 + (a - a.low)^2). A difference is significant when 0 lies outside.

use crate::{Analysis, Assessed, Finding, Interval, ObjectView};
use firsttouch_model::finding::FindingKind;
use serde::Serialize;

/// Name and version of the JSON.
pub const DIFF_SCHEMA: &str = "firsttouch.diff/1";

/// A figure before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    pub before: Option<f64>,
    pub before_interval: Option<Interval>,
    pub after: Option<f64>,
    pub after_interval: Option<Interval>,
    pub difference: Option<f64>,
    pub difference_interval: Option<Interval>,
    /// Null where one of the figures, or its interval, is not known.
    pub significant: Option<bool>,
}

/// The profiles that an object is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    Both,
    Before,
    After,
}

/// What two objects were matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchedBy {
    /// Name and allocation's line are the same.
    Line,
    /// The name alone, as the line moved or is not known.
    Name,
}

/// An object of one or both profiles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectChange {
    pub name: String,
    /// Where it is allocated, in the later profile that has it.
    pub file: Option<String>,
    pub line: Option<u32>,
    pub in_profiles: Presence,
    pub matched_by: Option<MatchedBy>,
    pub bytes_before: Option<u64>,
    pub bytes_after: Option<u64>,
    pub access_share: Change,
    pub remote_fraction: Change,
}

/// A finding of one of the profiles, or of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingChange {
    #[serde(rename = "id")]
    pub kind: FindingKind,
    pub object_name: String,
    pub message: String,
    /// Its object is in the other profile as well, and was judged there: else the finding's absence says nothing.
    pub object_in_both: bool,
    pub remote_fraction: Change,
}

/// One of the two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    pub command: Vec<String>,
    pub exit_code: Option<i32>,
    pub threads: usize,
    pub samples: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    pub schema: &'static str,
    pub machine: String,
    pub before: Run,
    pub after: Run,
    /// Each is one run: without repetition there is no interval, and no word on significance.
    pub wall_s: Change,
    pub remote_fraction: Change,
    /// Null where there is no description of the machine.
    pub slowdown: Option<Change>,
    /// By share of accesses, the larger of the two, largest first.
    pub objects: Vec<ObjectChange>,
    pub findings_gone: Vec<FindingChange>,
    pub findings_new: Vec<FindingChange>,
    pub findings_kept: Vec<FindingChange>,
    /// Whether the remote part differs beyond chance; null where that cannot be told.
    pub significant: Option<bool>,
    pub doubts: Vec<String>,
}

impl Change {
    #[must_use]
    pub fn new(before: Option<(f64, Option<Interval>)>, after: Option<(f64, Option<Interval>)>) -> Self {
        let (a, b) = (before.map(|one| one.0), after.map(|one| one.0));
        let (of_a, of_b) = (before.and_then(|one| one.1), after.and_then(|one| one.1));
        let difference = a.zip(b).map(|(a, b)| b - a);
        let interval = a.zip(b).zip(of_a.zip(of_b)).map(|((a, b), ([a_low, a_high], [b_low, b_high]))| {
            [b - a - (b - b_low).hypot(a_high - a), b - a + (b_high - b).hypot(a - a_low)]
        });
        Self {
            before: a,
            before_interval: of_a,
            after: b,
            after_interval: of_b,
            difference,
            difference_interval: interval,
            significant: interval.map(|[low, high]| low > 0.0 || high < 0.0),
        }
    }
}

/// Compares two programs, judged on the same machine.
#[must_use]
pub fn diff(before: Assessed<'_>, after: Assessed<'_>) -> Diff {
    let slowdown = |assessed: Assessed<'_>| assessed.prediction.map(|one| (one.slowdown, Some(one.interval)));
    let slowdown = slowdown(before).zip(slowdown(after)).map(|(before, after)| Change::new(Some(before), Some(after)));
    let (before, after) = (before.analysis, after.analysis);
    let pairs = pairs(&before.objects, &after.objects);
    let mut objects: Vec<ObjectChange> = pairs.iter().map(object).collect();
    let share = |object: &ObjectChange| object.access_share.before.unwrap_or(0.0).max(object.access_share.after.unwrap_or(0.0));
    objects.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let remote_fraction = Change::new(remote(before), remote(after));
    let (mut gone, mut new, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for finding in &before.findings {
        match after.findings.iter().find(|other| same(finding, other, &pairs)) {
            Some(other) => kept.push(change(finding, Some(finding), Some(other), true)),
            None => gone.push(change(finding, Some(finding), None, judged_in(finding, &pairs, after, false))),
        }
    }
    for finding in after.findings.iter().filter(|one| !before.findings.iter().any(|other| same(other, one, &pairs))) {
        new.push(change(finding, None, Some(finding), judged_in(finding, &pairs, before, true)));
    }
    Diff {
        schema: DIFF_SCHEMA,
        machine: after.machine.name.clone(),
        before: run(before),
        after: run(after),
        wall_s: Change::new(Some((before.wall_s, None)), Some((after.wall_s, None))),
        significant: remote_fraction.significant,
        remote_fraction,
        slowdown,
        objects,
        findings_gone: gone,
        findings_new: new,
        findings_kept: kept,
        doubts: doubts(before, after),
    }
}

fn run(analysis: &Analysis) -> Run {
    Run {
        command: analysis.command.clone(),
        exit_code: analysis.exit_code,
        threads: analysis.threads.len(),
        samples: analysis.remote_samples,
    }
}

fn remote(analysis: &Analysis) -> Option<(f64, Option<Interval>)> {
    analysis.remote_fraction.map(|value| (value, analysis.remote_interval))
}

type Pair<'a> = (Option<&'a ObjectView>, Option<&'a ObjectView>, Option<MatchedBy>);

/// Objects of the same name, allocated at the same line; then those of the same name where it is unique on both sides, as lines move when
/// a program is fixed.
fn pairs<'a>(before: &'a [ObjectView], after: &'a [ObjectView]) -> Vec<Pair<'a>> {
    let line = |object: &ObjectView| object.allocated_at.as_ref().map(|place| (place.file.clone(), place.line));
    let mut left: Vec<&ObjectView> = after.iter().collect();
    let mut list: Vec<Pair<'a>> = Vec::new();
    let mut alone = Vec::new();
    for object in before {
        let is_same = |other: &&ObjectView| other.name == object.name && other.ordinal == object.ordinal && line(other) == line(object);
        match left.iter().position(is_same) {
            Some(place) => list.push((Some(object), Some(left.remove(place)), Some(MatchedBy::Line))),
            None => alone.push(object),
        }
    }
    for object in &alone {
        let named: Vec<usize> = (0..left.len()).filter(|place| left[*place].name == object.name).collect();
        let unique = alone.iter().filter(|other| other.name == object.name).count() == 1;
        match named[..] {
            [place] if unique => list.push((Some(object), Some(left.remove(place)), Some(MatchedBy::Name))),
            _ => list.push((Some(object), None, None)),
        }
    }
    list.extend(left.into_iter().map(|object| (None, Some(object), None)));
    list
}

fn object((before, after, matched_by): &Pair<'_>) -> ObjectChange {
    let either = after.or(*before);
    let place = either.and_then(|object| object.allocated_at.as_ref());
    let share = |object: &ObjectView| object.access_share.map(|share| (share, object.access_share_interval));
    let remote = |object: &ObjectView| object.remote_fraction.map(|part| (part, object.remote_interval));
    ObjectChange {
        name: either.map(|object| object.name.clone()).unwrap_or_default(),
        file: place.and_then(|place| place.file.clone()),
        line: place.and_then(|place| place.line),
        in_profiles: match (before, after) {
            (Some(_), Some(_)) => Presence::Both,
            (Some(_), None) => Presence::Before,
            _ => Presence::After,
        },
        matched_by: *matched_by,
        bytes_before: before.map(|object| object.total_bytes),
        bytes_after: after.map(|object| object.total_bytes),
        access_share: Change::new(before.and_then(share), after.and_then(share)),
        remote_fraction: Change::new(before.and_then(remote), after.and_then(remote)),
    }
}

/// Whether two findings are one: of the same kind, on objects that are one.
fn same(before: &Finding, after: &Finding, pairs: &[Pair<'_>]) -> bool {
    let (Some(of_before), Some(of_after)) = (before.object, after.object) else {
        return before.kind == after.kind && before.object == after.object && before.object_name == after.object_name;
    };
    let is_pair = |(a, b, _): &Pair<'_>| a.is_some_and(|a| a.id == of_before) && b.is_some_and(|b| b.id == of_after);
    before.kind == after.kind && pairs.iter().any(is_pair)
}

/// Whether the finding's object was judged in the other analysis too: its counterpart there, or for a finding on the whole program, any evidence.
fn judged_in(finding: &Finding, pairs: &[Pair<'_>], other: &Analysis, other_is_before: bool) -> bool {
    let Some(id) = finding.object else { return other.remote_fraction.is_some() };
    let own = |pair: &Pair<'_>| {
        if other_is_before {
            (pair.1.map(|o| o.id), pair.0.is_some_and(|o| o.judged))
        } else {
            (pair.0.map(|o| o.id), pair.1.is_some_and(|o| o.judged))
        }
    };
    pairs.iter().map(own).any(|(own, judged)| own == Some(id) && judged)
}

fn change(finding: &Finding, before: Option<&Finding>, after: Option<&Finding>, object_in_both: bool) -> FindingChange {
    let remote = |finding: &Finding| (finding.remote_fraction, Some(finding.interval));
    FindingChange {
        kind: finding.kind,
        object_name: finding.object_name.clone(),
        message: finding.message.clone(),
        object_in_both,
        remote_fraction: Change::new(before.map(remote), after.map(remote)),
    }
}

/// What speaks against comparing the two.
fn doubts(before: &Analysis, after: &Analysis) -> Vec<String> {
    let mut list = Vec::new();
    let shown =
        |analysis: &Analysis| if analysis.command.is_empty() { "an unknown command".to_owned() } else { analysis.command.join(" ") };
    if before.command != after.command {
        list.push(format!(
            "The commands differ: '{}' and '{}'. What they did may differ as well; only profiles of the same work can be compared.",
            shown(before),
            shown(after)
        ));
    }
    if before.threads.len() != after.threads.len() {
        list.push(format!("The runs had {} and {} threads.", before.threads.len(), after.threads.len()));
    }
    for (analysis, which) in [(before, "first"), (after, "second")] {
        if analysis.exit_code.is_some_and(|code| code != 0) {
            list.push(format!(
                "The {which} run ended with exit status {}: it may not have done all of its work.",
                analysis.exit_code.unwrap_or(0)
            ));
        }
        if analysis.remote_fraction.is_none() && analysis.threads.len() > 1 {
            list.push(format!("The {which} has no evidence of accesses: 'firsttouch report' says why."));
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check differences against the equation, and what is significant; without an interval nothing is said.
    #[test]
    fn differences_have_intervals() {
        let change = Change::new(Some((0.5, Some([0.45, 0.55]))), Some((0.1, Some([0.07, 0.15]))));
        let [low, high] = change.difference_interval.unwrap();
        assert!((low - (-0.4 - 0.05f64.hypot(0.03))).abs() < 1e-12 && (high - (-0.4 + 0.05f64.hypot(0.05))).abs() < 1e-12);
        assert_eq!(change.significant, Some(true));
        assert_eq!(Change::new(Some((0.5, Some([0.45, 0.55]))), Some((0.52, Some([0.46, 0.57])))).significant, Some(false));
        assert_eq!(Change::new(Some((6.0, None)), Some((3.0, None))).significant, None);
        assert_eq!(Change::new(None, Some((0.1, Some([0.0, 0.2])))).difference, None);
    }
}
