//! `firsttouch diff` as text.

use crate::system::{Lines, row};
use crate::text::Style;
use crate::text::layout::{GLUE, clean, cut};
use crate::text::place::file_name;
use crate::text::words::{count, interval, percent, thousands, times};
use crate::topology::table::Align::{Left, Right};
use firsttouch_analysis::diff::{Change, Diff, FindingChange, ObjectChange, Presence};
use firsttouch_model::format_bytes;
use serde::Serialize;

/// The number of objects shown; the others are counted.
const SHOWN: usize = 16;
/// Objects with less than this share of the accesses in both profiles are listed only if their difference is known.
const LISTED: f64 = 0.01;
const LONGEST_NAME: usize = 40;

/// The comparison as text. `before` and `after` are the names that the user gave the two.
#[must_use]
pub fn diff_text(diff: &Diff, before: &str, after: &str, style: Style) -> String {
    let mut out = Lines::new(style);
    out.heading(&clean(&format!("{before} -> {after}, judged on {}", diff.machine)));
    let mut rows = vec![row(["", "before", "after", "difference"])];
    let seconds = |value: f64| format!("{value:.2}{GLUE}s");
    let ratio = diff.wall_s.before.zip(diff.wall_s.after).filter(|(before, _)| *before > 0.0).map(|(before, after)| after / before);
    rows.push(vec![
        "wall time".to_owned(),
        known(diff.wall_s.before, seconds),
        known(diff.wall_s.after, seconds),
        ratio.map_or("?".to_owned(), |ratio| format!("{ratio:.2} times as long; one run each, so chance is not ruled out")),
    ]);
    rows.push(vec![
        "remote".to_owned(),
        figure(&diff.remote_fraction, true),
        figure(&diff.remote_fraction, false),
        points(&diff.remote_fraction),
    ]);
    if let Some(slowdown) = &diff.slowdown {
        let one = |value: Option<f64>, range: Option<[f64; 2]>| match (value, range) {
            (Some(value), Some(range)) => format!("{value:.2} {}", times(range)),
            _ => "?".to_owned(),
        };
        rows.push(vec![
            "slow-down".to_owned(),
            one(slowdown.before, slowdown.before_interval),
            one(slowdown.after, slowdown.after_interval),
            format!("{}: over the best placement, predicted", verdict(slowdown)),
        ]);
    }
    out.table(&rows, &[Left, Left, Left, Left]);
    out.gap();
    out.sentence(&sentence(diff));
    if let Some(advice) = advice(diff) {
        out.sentence(&advice);
    }
    for doubt in &diff.doubts {
        out.sentence(&doubt.to_string());
    }
    findings(&mut out, "Findings gone", &diff.findings_gone);
    findings(&mut out, "Findings that are new", &diff.findings_new);
    findings(&mut out, "Findings in both", &diff.findings_kept);
    objects(&mut out, &diff.objects);
    out.text()
}

/// The largest factor by which runs are advised to be longer.
const LONGEST: f64 = 1000.0;
/// The longest run that is advised, seconds.
const LONGEST_RUN_S: f64 = 4.0 * 3600.0;

/// The JSON of `firsttouch diff`.
#[derive(Serialize)]
pub struct DiffJson<'a> {
    #[serde(flatten)]
    pub diff: &'a Diff,
    /// How much longer both runs must be to show a difference that may be chance now; null if the difference is significant or
    /// unknown, or too small for any practical run.
    pub longer: Option<Longer>,
}

impl<'a> DiffJson<'a> {
    #[must_use]
    pub fn new(diff: &'a Diff) -> Self {
        Self { diff, longer: longer(diff) }
    }
}

/// Longer runs that would show a difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Longer {
    /// The time of each run over its time now.
    pub factor: f64,
    /// Seconds more for each run, if its time is known.
    pub before_s: Option<f64>,
    pub after_s: Option<f64>,
}

/// How much longer both runs must be: intervals shrink with the square root of the time, and a difference is significant when its
/// interval no longer reaches 0. `None` if it is significant or unknown, or too small for any practical run.
#[must_use]
pub fn longer(diff: &Diff) -> Option<Longer> {
    let change = &diff.remote_fraction;
    if diff.significant != Some(false) {
        return None;
    }
    let factor = factor(change.difference?, change.difference_interval?)?;
    if [diff.wall_s.before, diff.wall_s.after].into_iter().any(|wall_s| !is_practical(wall_s, factor)) {
        return None;
    }
    let more = |wall_s: Option<f64>| wall_s.map(|wall_s| wall_s * (factor - 1.0));
    Some(Longer { factor, before_s: more(diff.wall_s.before), after_s: more(diff.wall_s.after) })
}

/// Whether a run that is longer by a factor ends on the same day. If its time is not known, the factor alone counts.
fn is_practical(wall_s: Option<f64>, factor: f64) -> bool {
    wall_s.is_none_or(|wall_s| wall_s * factor <= LONGEST_RUN_S)
}

/// The factor on the time at which an interval around a difference no longer reaches 0; `None` if it is below 1 or impractical.
fn factor(difference: f64, [low, high]: [f64; 2]) -> Option<f64> {
    let reach = if difference > 0.0 { difference - low } else { high - difference };
    let factor = (reach / difference).powi(2);
    (factor.is_finite() && factor > 1.0 && factor <= LONGEST).then_some(factor)
}

/// What would decide whether a difference is chance, as one sentence.
pub fn advice(diff: &Diff) -> Option<String> {
    if diff.significant != Some(false) {
        return None;
    }
    let Some(Longer { factor, before_s, after_s }) = longer(diff) else {
        return Some(
            "The figures hardly differ: no practical run would show whether they differ at all. Four times the time halves the interval."
                .to_owned(),
        );
    };
    let seconds = |value: f64| format!("{}{GLUE}s", thousands(value.ceil() as u64));
    Some(match (before_s, after_s) {
        (Some(before), Some(after)) => format!(
            "If the difference is real, about {} more of the first and {} more of the second run would show it ({factor:.1} times as long).",
            seconds(before),
            seconds(after)
        ),
        _ => format!("If the difference is real, runs about {factor:.1} times as long would show it."),
    })
}

/// The verdict on the remote part, as one sentence.
#[must_use]
pub fn sentence(diff: &Diff) -> String {
    let change = &diff.remote_fraction;
    let samples = format!("{} and {} samples", thousands(diff.before.samples), thousands(diff.after.samples));
    match (diff.significant, change.difference) {
        (Some(true), Some(difference)) => format!(
            "{} accesses are remote in the second: the difference is significant (95 %, {samples}).",
            if difference < 0.0 { "Fewer" } else { "More" }
        ),
        (Some(false), _) => format!("The remote parts do not differ significantly: the difference may be chance (95 %, {samples})."),
        (None, Some(_)) => "Whether the remote part changed is not known: one of the two does not say how much of it was seen.".to_owned(),
        _ => "Whether the remote part changed is not known: one of the two has no evidence of it.".to_owned(),
    }
}

fn known(value: Option<f64>, word: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "?".to_owned(), word)
}

/// `49 % [47, 52]`.
fn figure(change: &Change, before: bool) -> String {
    let (value, range) = if before { (change.before, change.before_interval) } else { (change.after, change.after_interval) };
    match (value, range) {
        (Some(value), Some(range)) => format!("{} {}", percent(value), interval(range)),
        (Some(value), None) => percent(value),
        (None, _) => "?".to_owned(),
    }
}

/// `-48 points [-51, -45], significant`.
fn points(change: &Change) -> String {
    let points = |fraction: f64| {
        let value = (1000.0 * fraction).round() / 10.0;
        if value == 0.0 {
            return "0".to_owned();
        }
        if value.abs() < 9.95 && value.fract() != 0.0 { format!("{value:+.1}") } else { format!("{value:+.0}") }
    };
    match (change.difference, change.difference_interval) {
        (Some(difference), Some([low, high])) => {
            format!("{} points [{},{GLUE}{}], {}", points(difference), points(low), points(high), verdict(change))
        }
        (Some(difference), None) => format!("{} points", points(difference)),
        (None, _) => "not known".to_owned(),
    }
}

fn verdict(change: &Change) -> &'static str {
    match change.significant {
        Some(true) => "significant",
        Some(false) => "may be chance",
        None => "not known",
    }
}

fn findings(out: &mut Lines, title: &str, list: &[FindingChange]) {
    if list.is_empty() {
        return;
    }
    out.heading(title);
    let rows: Vec<Vec<String>> = list
        .iter()
        .map(|finding| {
            let remote = match (finding.remote_fraction.before.is_some(), finding.remote_fraction.after.is_some()) {
                (true, true) => points(&finding.remote_fraction),
                (before, _) => figure(&finding.remote_fraction, before),
            };
            let unseen = match (finding.object_in_both, finding.alike_in_other) {
                (true, _) => String::new(),
                (false, 0) => "; the other profile judges no object of this name or place".to_owned(),
                (false, 1) => "; perhaps the one of this name in the other profile".to_owned(),
                (false, several) => format!("; one of {several} of this name in the other profile, which is not known"),
            };
            vec![format!("  {}", finding.kind), cut(&clean(&finding.object_name), LONGEST_NAME), format!("remote {remote}{unseen}")]
        })
        .collect();
    out.table(&rows, &[Left, Left, Left]);
}

fn objects(out: &mut Lines, list: &[ObjectChange]) {
    if list.is_empty() {
        return;
    }
    out.heading("Objects");
    let mut rows = vec![row(["  name", "allocated", "size", "remote before", "after", "difference"])];
    let shown: Vec<&ObjectChange> = list.iter().filter(|object| matters(object)).take(SHOWN).collect();
    for object in &shown {
        let place = match (&object.file, object.line) {
            (Some(file), Some(line)) => match object.line_before {
                Some(before) => format!("{}:{line} (before: {before})", file_name(file)),
                None => format!("{}:{line}", file_name(file)),
            },
            _ => String::new(),
        };
        let difference = match object.in_profiles {
            Presence::Before => "not in the second".to_owned(),
            Presence::After => "not in the first".to_owned(),
            Presence::Both => points(&object.remote_fraction),
        };
        rows.push(vec![
            format!("  {}", cut(&clean(&object.name), LONGEST_NAME)),
            cut(&clean(&place), LONGEST_NAME),
            object.bytes_after.or(object.bytes_before).map_or(String::new(), format_bytes),
            figure(&object.remote_fraction, true),
            figure(&object.remote_fraction, false),
            difference,
        ]);
    }
    if !shown.is_empty() {
        out.headed_table(&rows, &[Left, Left, Right, Left, Left, Left]);
    }
    if list.len() > shown.len() {
        out.sentence(&format!("and {} with fewer accesses (--json has all)", count(list.len() - shown.len(), "object")));
    }
}

/// Whether an object has enough accesses in one of the profiles to be listed, as far as that is known, or something is known of its difference.
fn matters(object: &ObjectChange) -> bool {
    let shares = || [object.access_share.before, object.access_share.after].into_iter().flatten();
    shares().count() == 0 || shares().any(|share| share >= LISTED) || object.remote_fraction.significant.is_some()
}

#[cfg(test)]
mod tests {
    use super::{factor, is_practical};

    /// Check how much longer runs must be: an interval that reaches twice as far as the difference needs four times the time.
    #[test]
    fn longer_runs_decide() {
        let near = |found: Option<f64>, expected: f64| found.is_some_and(|found| (found - expected).abs() < 1e-9);
        assert!(near(factor(0.05, [-0.05, 0.15]), 4.0));
        assert!(near(factor(-0.05, [-0.2, 0.1]), 9.0));
        for (difference, interval) in [(0.0, [-0.1, 0.1]), (0.0001, [-0.1, 0.1]), (0.1, [0.05, 0.15]), (f64::NAN, [0.0, 1.0])] {
            assert_eq!(factor(difference, interval), None, "{difference}");
        }
    }

    /// Check that no run of a day is advised.
    #[test]
    fn runs_of_a_day_are_no_advice() {
        assert!(is_practical(Some(90.0), 60.0) && is_practical(None, 900.0));
        assert!(!is_practical(Some(90.0), 967.0));
    }
}
