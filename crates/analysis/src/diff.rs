//! Compares two profiles of the same work: what changed, and whether the change is significant.
//!
//! Each figure has a 95 % interval of its own. The interval of a difference d = b - a follows from the two (Zou and Donner 2008, "MOVER"):
//! from d - sqrt((b - b.low)^2 + (a.high - a)^2) to d + sqrt((b.high - b)^2 + (a - a.low)^2). A difference is significant when 0 lies
//! outside.

use crate::cause::Cause;
use crate::names::{base, in_code};
use crate::{Analysis, Assessed, Finding, Interval, ObjectView, Verdict};
use firsttouch_model::finding::FindingKind;
use hashbrown::HashMap;
use serde::Serialize;
use std::fmt;

/// The schema of the JSON.
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
    /// Null if one of the figures or its interval is unknown.
    pub significant: Option<bool>,
}

/// The profiles that contain an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    Both,
    Before,
    After,
}

/// The criterion that matched two objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchedBy {
    /// The name and the line of the allocation are equal.
    Line,
    /// Only the name is equal: the line has moved or is unknown.
    Name,
    /// The variable and the source file are equal, and the size where several are: another call path, as after a change of the allocator.
    Variable,
}

/// An object of one or both profiles. Figures of a profile that lacks it are null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectChange {
    pub name: String,
    /// Where it is allocated, according to the later of the profiles that contain it.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The line in the first profile, if that is another one.
    pub line_before: Option<u32>,
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
    /// Whether the other profile contains the object and judges it. If not, the absence of the finding there says nothing.
    pub object_in_both: bool,
    /// The number of objects of the same variable and source file that the other profile judges, if it is not known which of them is this one.
    pub alike_in_other: usize,
    pub remote_fraction: Change,
}

/// The circumstances of the two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffRun {
    pub command: Vec<String>,
    pub exit_code: Option<i32>,
    pub threads: usize,
    pub samples: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    pub schema: &'static str,
    pub machine: String,
    pub before: DiffRun,
    pub after: DiffRun,
    /// One run each: without repetition there is no interval, so the significance is unknown.
    pub wall_s: Change,
    pub remote_fraction: Change,
    /// Null without a description of the machine.
    pub slowdown: Option<Change>,
    /// Sorted by access share, the larger of the two, descending.
    pub objects: Vec<ObjectChange>,
    pub findings_gone: Vec<FindingChange>,
    pub findings_new: Vec<FindingChange>,
    pub findings_kept: Vec<FindingChange>,
    /// Whether the remote part differs significantly; null if unknown.
    pub significant: Option<bool>,
    pub doubts: Vec<DiffDoubt>,
}

/// One of the two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    First,
    Second,
}

/// Why two runs may not be comparable. JSON holds the sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum DiffDoubt {
    Commands {
        before: Vec<String>,
        after: Vec<String>,
    },
    Threads {
        before: usize,
        after: usize,
    },
    Failed {
        which: Which,
        exit_code: i32,
    },
    /// The profile holds a part of the run: firsttouch was killed, still records, or could not write.
    Part {
        which: Which,
    },
    /// The profile has no evidence of accesses.
    NoEvidence {
        which: Which,
    },
    /// The profile gives no verdict: its figures are those that were seen. Where they are of too little, the remote parts are not compared.
    NotJudged {
        which: Which,
        is_compared: bool,
    },
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Second => "second",
        })
    }
}

impl fmt::Display for DiffDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |command: &[String]| if command.is_empty() { "an unknown command".to_owned() } else { command.join(" ") };
        match self {
            Self::Commands { before, after } => write!(
                f,
                "The commands differ: '{}' and '{}'. What they did may differ as well; only profiles of the same work can be compared.",
                shown(before),
                shown(after)
            ),
            Self::Threads { before, after } => write!(f, "The runs had {before} and {after} threads."),
            Self::Failed { which, exit_code } => {
                write!(f, "The {which} run ended with exit status {exit_code}: it may not have done all of its work.")
            }
            Self::Part { which } => write!(f, "The {which} profile is not whole: 'firsttouch report' says why."),
            Self::NotJudged { which, is_compared } => write!(
                f,
                "The {which} profile is NOT JUDGED ('firsttouch report' says why): its remote part is that of what was seen{}.",
                if *is_compared { "" } else { ", and is not compared" }
            ),
            Self::NoEvidence { which } => write!(f, "The {which} has no evidence of accesses: 'firsttouch report' says why."),
        }
    }
}

impl From<DiffDoubt> for String {
    fn from(doubt: DiffDoubt) -> Self {
        doubt.to_string()
    }
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

/// Compares two analyses of a program for the same machine.
#[must_use]
pub fn diff(before: Assessed<'_>, after: Assessed<'_>) -> Diff {
    let slowdown = |assessed: Assessed<'_>| assessed.prediction.map(|one| (one.slowdown, Some(one.interval)));
    let slowdown = slowdown(before).zip(slowdown(after)).map(|(before, after)| Change::new(Some(before), Some(after)));
    let (before, after) = (before.analysis, after.analysis);
    let pairs = pairs(before, after);
    let mut objects: Vec<ObjectChange> = pairs.iter().map(object).collect();
    let share = |object: &ObjectChange| object.access_share.before.unwrap_or(0.0).max(object.access_share.after.unwrap_or(0.0));
    objects.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let mut remote_fraction = Change::new(remote(before), remote(after));
    if is_uncovered(before) || is_uncovered(after) {
        remote_fraction.significant = None;
    }
    let (mut gone, mut new, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for finding in &before.findings {
        match after.findings.iter().find(|other| same(finding, other, &pairs)) {
            Some(other) => kept.push(change(finding, Some(finding), Some(other), (true, 0))),
            None => gone.push(change(finding, Some(finding), None, judged_in(finding, &pairs, (before, after), false))),
        }
    }
    for finding in after.findings.iter().filter(|one| !before.findings.iter().any(|other| same(other, one, &pairs))) {
        new.push(change(finding, None, Some(finding), judged_in(finding, &pairs, (after, before), true)));
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

fn run(analysis: &Analysis) -> DiffRun {
    DiffRun {
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

/// Whether two objects of two profiles are the same one.
type Same<'a> = dyn Fn(&ObjectView, &ObjectView) -> bool + 'a;

/// Pairs objects with the same name and the same line of allocation; then objects whose name is unique on both sides (of a job: in their rank), because
/// lines move when a program is fixed; then those of one variable in one source file, as far as they are unique, or of one size, on both sides.
fn pairs<'a>(first: &'a Analysis, second: &'a Analysis) -> Vec<Pair<'a>> {
    let (before, after) = (&first.objects[..], &second.objects[..]);
    // By address: which of the profiles an object is of does not matter then.
    let place = |analysis: &'a Analysis| {
        let rank = |object: &ObjectView| analysis.rank_of(object.process)?.rank;
        analysis.objects.iter().filter_map(move |object| Some((std::ptr::from_ref(object), rank(object)?)))
    };
    let ranks: HashMap<*const ObjectView, u32> = place(first).chain(place(second)).collect();
    let rank = |object: &ObjectView| ranks.get(&std::ptr::from_ref(object));
    let line = |object: &ObjectView| object.allocated_at.as_ref().map(|place| (place.file.clone(), place.line));
    let mut left: Vec<&ObjectView> = after.iter().collect();
    let mut list: Vec<Pair<'a>> = Vec::new();
    let mut alone = Vec::new();
    for object in before {
        let is_same = |other: &&ObjectView| {
            let is_named = other.name == object.name && other.ordinal == object.ordinal && line(other) == line(object);
            is_named && rank(other) == rank(object)
        };
        match left.iter().position(is_same) {
            Some(place) => list.push((Some(object), Some(left.remove(place)), Some(MatchedBy::Line))),
            None => alone.push(object),
        }
    }
    let is_named = |one: &ObjectView, other: &ObjectView| one.name == other.name;
    let is_of_rank = |one: &ObjectView, other: &ObjectView| is_named(one, other) && rank(one).is_some() && rank(one) == rank(other);
    let is_sized = |one: &ObjectView, other: &ObjectView| is_alike(one, other) && one.total_bytes == other.total_bytes;
    let ways: [(&Same, MatchedBy); 4] =
        [(&is_of_rank, MatchedBy::Name), (&is_named, MatchedBy::Name), (&is_alike, MatchedBy::Variable), (&is_sized, MatchedBy::Variable)];
    for (is_same, matched_by) in ways {
        let mut open = Vec::new();
        for object in &alone {
            let same: Vec<usize> = (0..left.len()).filter(|place| is_same(object, left[*place])).collect();
            let is_unique = alone.iter().filter(|other| is_same(object, other)).count() == 1;
            match same[..] {
                [place] if is_unique => list.push((Some(object), Some(left.remove(place)), Some(matched_by))),
                _ => open.push(*object),
            }
        }
        alone = open;
    }
    list.extend(alone.into_iter().map(|object| (Some(object), None, None)));
    list.extend(left.into_iter().map(|object| (None, Some(object), None)));
    list
}

/// Whether two objects are of one variable in one source file.
fn is_alike(one: &ObjectView, other: &ObjectView) -> bool {
    let file = |object: &ObjectView| object.allocated_at.as_ref().and_then(|place| place.file.as_deref()).map(|file| base(file).to_owned());
    let is_variable = !in_code(&one.name).contains(" object of ");
    is_variable && in_code(&one.name) == in_code(&other.name) && file(one).is_some() && file(one) == file(other)
}

fn object((before, after, matched_by): &Pair<'_>) -> ObjectChange {
    let either = after.or(*before);
    let place = either.and_then(|object| object.allocated_at.as_ref());
    let share = |object: &ObjectView| object.access_share.map(|share| (share, object.access_share_interval));
    let remote = |object: &ObjectView| object.remote_fraction.map(|part| (part, object.remote_interval));
    let line = |object: &ObjectView| object.allocated_at.as_ref().and_then(|place| place.line);
    ObjectChange {
        name: either.map(|object| object.name.clone()).unwrap_or_default(),
        file: place.and_then(|place| place.file.clone()),
        line: place.and_then(|place| place.line),
        line_before: before.and_then(line).filter(|old| after.and_then(line).is_some_and(|new| new != *old)),
        in_profiles: match (before, after) {
            (Some(_), Some(_)) => Presence::Both,
            (Some(_), None) => Presence::Before,
            _ => Presence::After,
        },
        matched_by: *matched_by,
        bytes_before: before.map(|object| object.total_bytes),
        bytes_after: after.map(|object| object.total_bytes),
        access_share: Change::new(before.and_then(share), after.and_then(share)),
        remote_fraction: {
            let change = Change::new(before.and_then(remote), after.and_then(remote));
            let is_judged = before.is_none_or(|one| one.judged) && after.is_none_or(|one| one.judged);
            Change { significant: change.significant.filter(|_| is_judged), ..change }
        },
    }
}

/// Whether two findings are the same: of one kind, on paired objects.
fn same(before: &Finding, after: &Finding, pairs: &[Pair<'_>]) -> bool {
    let (Some(_), Some(_)) = (before.object, after.object) else {
        return before.kind == after.kind && before.object == after.object && before.object_name == after.object_name;
    };
    let is_about = |finding: &Finding, object: Option<&ObjectView>| object.is_some_and(|one| finding.objects().any(|id| id == one.id));
    let is_pair = |(a, b, _): &Pair<'_>| is_about(before, *a) && is_about(after, *b);
    before.kind == after.kind && pairs.iter().any(is_pair)
}

/// Whether the other analysis judged the object of the finding as well (for a finding on the whole program, whether it has any evidence); if it
/// is not known which object that is, the number of those that it may be.
fn judged_in(finding: &Finding, pairs: &[Pair<'_>], (own, other): (&Analysis, &Analysis), other_is_before: bool) -> (bool, usize) {
    if finding.object.is_none() {
        return (other.remote_fraction.is_some(), 0);
    }
    let objects: Vec<&ObjectView> = own.objects.iter().filter(|one| finding.objects().any(|id| id == one.id)).collect();
    let own = |pair: &Pair<'_>| {
        if other_is_before {
            (pair.1.map(|o| o.id), pair.0.is_some_and(|o| o.judged))
        } else {
            (pair.0.map(|o| o.id), pair.1.is_some_and(|o| o.judged))
        }
    };
    if pairs.iter().map(own).any(|(own, judged)| judged && finding.objects().any(|id| own == Some(id))) {
        return (true, 0);
    }
    let is_open = |one: &ObjectView| {
        pairs.iter().any(|(a, b, by)| by.is_none() && [a, b].iter().any(|side| side.is_some_and(|o| std::ptr::eq(o, one))))
    };
    let may_be_it = |one: &&ObjectView| one.judged && is_open(one) && objects.iter().any(|own| is_alike(own, one));
    (false, other.objects.iter().filter(may_be_it).count())
}

fn change(
    finding: &Finding,
    before: Option<&Finding>,
    after: Option<&Finding>,
    (object_in_both, alike_in_other): (bool, usize),
) -> FindingChange {
    let remote = |finding: &Finding| (finding.remote_fraction, Some(finding.interval));
    FindingChange {
        kind: finding.kind,
        object_name: finding.object_name.clone(),
        message: finding.message.clone(),
        object_in_both,
        alike_in_other,
        remote_fraction: Change::new(before.map(remote), after.map(remote)),
    }
}

/// Whether what was judged is too little for the remote part to be that of the program.
fn is_uncovered(analysis: &Analysis) -> bool {
    matches!(analysis.verdict(), Verdict::NotJudged(causes) if causes.iter().any(|cause| matches!(cause, Cause::Uncovered { .. })))
}

/// Reasons why the two runs may not be comparable.
fn doubts(before: &Analysis, after: &Analysis) -> Vec<DiffDoubt> {
    let mut list = Vec::new();
    if before.command != after.command {
        list.push(DiffDoubt::Commands { before: before.command.clone(), after: after.command.clone() });
    }
    if before.threads.len() != after.threads.len() {
        list.push(DiffDoubt::Threads { before: before.threads.len(), after: after.threads.len() });
    }
    for (analysis, which) in [(before, Which::First), (after, Which::Second)] {
        if let Some(exit_code) = analysis.exit_code.filter(|code| *code != 0) {
            list.push(DiffDoubt::Failed { which, exit_code });
        }
        if analysis.unfinished || analysis.write_failure.is_some() {
            list.push(DiffDoubt::Part { which });
        }
        if analysis.remote_fraction.is_none() && analysis.coverage.is_none() && analysis.threads.len() > 1 {
            list.push(DiffDoubt::NoEvidence { which });
        } else if matches!(analysis.verdict(), Verdict::NotJudged(_)) && !analysis.unfinished {
            let is_compared = analysis.remote_fraction.is_some() && !is_uncovered(analysis);
            list.push(DiffDoubt::NotJudged { which, is_compared });
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the interval of a difference against the formula, and which differences are significant; without intervals, significance is
    /// unknown.
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
