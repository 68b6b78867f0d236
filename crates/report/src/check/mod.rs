//! The result of `firsttouch check`: whether the limits were kept, for people and for build systems.

mod github;
mod junit;
mod sarif;
mod text;

pub use github::check_github;
pub use junit::check_junit;
pub use sarif::check_sarif;
pub use text::check_text;

use crate::report_json::FindingJson;
use crate::text::layout::GLUE;
use crate::text::words::{capital, percent, times};
use firsttouch_analysis::check_limits::{LimitCheck, LimitKind, LimitStatus, Outcome};
use firsttouch_analysis::{Analysis, CodeLocation, MachineView, ObjectView};
use firsttouch_model::finding::FindingKind;
use firsttouch_plan::Recommendations;
use serde::Serialize;
use std::path::Path;

/// The JSON of `firsttouch check`.
#[derive(Serialize)]
pub struct CheckJson<'a> {
    pub schema: &'static str,
    pub command: &'a [String],
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub machine: &'a MachineView,
    /// Whether all limits could be checked, and none was exceeded.
    pub passed: bool,
    pub outcome: Outcome,
    /// Why a limit could not be checked.
    pub causes: Vec<String>,
    pub limits: &'a [LimitCheck],
    pub findings: Vec<FindingJson<'a>>,
    #[serde(skip)]
    analysis: &'a Analysis,
    /// The directory of the project; paths below it are shown relative to it.
    #[serde(skip)]
    folder: String,
}

impl<'a> CheckJson<'a> {
    /// `incomplete`: why the profile does not hold all of the run, if so.
    #[must_use]
    pub fn new(
        analysis: &'a Analysis,
        recommendations: &'a Recommendations,
        limits: &'a [LimitCheck],
        folder: &Path,
        incomplete: Option<&str>,
    ) -> Self {
        let outcome = Outcome::of(limits);
        let mut causes: Vec<String> = incomplete.into_iter().map(str::to_owned).collect();
        causes.extend(analysis.doubts().iter().map(ToString::to_string));
        if causes.is_empty() && limits.iter().any(|limit| limit.status == LimitStatus::Unknown) {
            causes.push("no traffic was seen that a slow-down could be predicted from; profile a longer run".to_owned());
        }
        Self {
            schema: "firsttouch.check/1",
            command: &analysis.command,
            exit_code: analysis.exit_code,
            signal: analysis.signal,
            machine: &analysis.machine,
            passed: outcome == Outcome::Passed,
            outcome,
            causes,
            limits,
            findings: FindingJson::all(analysis, recommendations),
            analysis,
            folder: folder.display().to_string(),
        }
    }

    /// The causes that stand against the result: a figure above a limit for certain is so however wide its interval is.
    fn standing_causes(&self) -> impl Iterator<Item = &str> {
        let is_open = self.limits.iter().any(|limit| limit.status == LimitStatus::Unknown);
        let of_width: Vec<String> =
            self.analysis.doubts().iter().filter(|cause| !is_open && cause.lacking().is_some()).map(ToString::to_string).collect();
        self.causes.iter().map(String::as_str).filter(move |cause| !of_width.iter().any(|one| one == cause))
    }

    /// What to do about a finding: the fix, and what a plan does instead of it; or why it is not worth repairing on this machine.
    fn advice(finding: &FindingJson<'_>) -> String {
        let recommendation = finding.recommendation.as_ref();
        if let Some(why_not) = recommendation.and_then(|one| one.why_not.as_deref()) {
            return capital(&format!("{why_not}."));
        }
        let fix = if recommendation.is_none_or(|one| one.fix.worth) { finding.fix.clone().into_owned() } else { String::new() };
        match recommendation.and_then(|one| one.difference.as_deref()) {
            Some(difference) if fix.is_empty() => capital(&format!("{difference}.")),
            Some(difference) => format!("{fix}\n{}", capital(&format!("{difference}."))),
            None => fix,
        }
    }

    /// The line to show for a finding.
    fn place(&self, finding: &FindingJson<'a>) -> Option<(&'a CodeLocation, &'a str, u32)> {
        let object = self.object(finding.object)?;
        // What changes hands is repaired where it is used.
        let used = object.used_at.first().filter(|_| finding.id == FindingKind::NoStablePartition);
        let at_line = |place: &'a CodeLocation| Some((place, place.file.as_deref()?, place.line?));
        used.or(finding.misplaced_at).and_then(at_line).or_else(|| place_of(object))
    }

    fn object(&self, id: Option<i64>) -> Option<&'a ObjectView> {
        self.analysis.objects.iter().find(|object| Some(object.id) == id)
    }

    /// The path relative to the project's directory, if it is below it.
    fn relative<'p>(&self, file: &'p str) -> &'p str {
        file.strip_prefix(&self.folder).map_or(file, |rest| rest.strip_prefix('/').unwrap_or(file))
    }
}

/// The line to show for an object: where it was first touched, else allocated, else used. Only places with a line count.
fn place_of(object: &ObjectView) -> Option<(&CodeLocation, &str, u32)> {
    let places = object.first_touch.at.first().into_iter().chain(&object.allocated_at).chain(object.used_at.first());
    places.filter_map(|place| Some((place, place.file.as_deref()?, place.line?))).next()
}

/// Whether a finding should be repaired on this machine.
fn is_worth(finding: &FindingJson<'_>) -> bool {
    finding.recommendation.as_ref().is_none_or(|one| one.why_not.is_none())
}

/// `up to 60 % by the baseline, as runs differ by up to 10 points (--tolerance)`
fn allowed(limit: &LimitCheck, most: &str) -> String {
    match (limit.tolerance, limit.baselines) {
        (None, runs) => format!("up to {most} by the spread of {runs} baselines"),
        (Some(0.0), _) => format!("the baseline has up to {most}"),
        (Some(tolerance), runs) => {
            let whose = if runs > 1 { "baselines" } else { "baseline" };
            let (figure, unit) =
                (percent(tolerance), if limit.kind == LimitKind::BaselineRemote { "of the accesses" } else { "of the time" });
            format!("up to {most} by the {whose}, as two runs may differ by {figure} {unit} (--tolerance)")
        }
    }
}

/// A share and its limit, in percent, with as many digits as the limit was given with.
fn as_fine_as(value: f64, limit: f64) -> (String, String) {
    let is_exact =
        |digits: &usize| format!("{:.1$}", limit * 100.0, digits).parse::<f64>().is_ok_and(|shown| (shown - limit * 100.0).abs() < 1e-9);
    match (0..3).find(is_exact).unwrap_or(3) {
        0 => (percent(value), percent(limit)),
        digits => (format!("{:.digits$}{GLUE}%", value * 100.0), format!("{:.digits$}{GLUE}%", limit * 100.0)),
    }
}

/// `49 % of accesses would be remote [47, 52]; 20 % are allowed`
fn sentence(limit: &LimitCheck, machine: &MachineView) -> String {
    words(limit, machine).replace(GLUE, " ")
}

/// The same, with figures that are not broken across lines.
fn words(limit: &LimitCheck, machine: &MachineView) -> String {
    let part = percent;
    let range = |words: &dyn Fn([f64; 2]) -> String| limit.interval.map_or(String::new(), |range| format!(" {}", words(range)));
    let percents = |[low, high]: [f64; 2]| crate::text::words::interval([low, high]);
    let verb = if machine.virtual_machine { "would be" } else { "are" };
    let unknown = || "not judged".to_owned();
    let unsure = match limit.status {
        LimitStatus::Unsure => ", but that may be chance",
        _ if limit.not_worth => " (no repair is predicted to be worth it on this machine: --max-remote allows more)",
        _ => "",
    };
    match (limit.kind, limit.value.filter(|_| limit.status != LimitStatus::Unknown)) {
        (LimitKind::MaxRemote | LimitKind::BaselineRemote, None) => format!("remote accesses: {}", unknown()),
        (LimitKind::MaxSlowdown | LimitKind::BaselineSlowdown, None) => format!("slow-down: {}", unknown()),
        (LimitKind::MaxRemote, Some(value)) => {
            let (value, most) = as_fine_as(value, limit.limit);
            format!("{value} of accesses {verb} remote{}; {most} are allowed{unsure}", range(&percents))
        }
        (LimitKind::BaselineRemote, Some(value)) => {
            let allowed = allowed(limit, &part(limit.limit));
            format!("{} of accesses {verb} remote{}; {allowed}{unsure}", part(value), range(&percents))
        }
        (LimitKind::MaxSlowdown, Some(value)) => {
            format!("{value:.2} times as long as with the best placement{}; {} times are allowed{unsure}", range(&times), limit.limit)
        }
        (LimitKind::BaselineSlowdown, Some(value)) => format!(
            "{value:.2} times as long as with the best placement{}; {}{unsure}",
            range(&times),
            allowed(limit, &format!("{:.2}", limit.limit))
        ),
        (LimitKind::BaselineFindings, None) => format!("findings that the baseline does not have: {}", unknown()),
        (LimitKind::BaselineFindings, _) if limit.new_findings.is_empty() => "no finding that the baseline does not have".to_owned(),
        (LimitKind::BaselineFindings, _) => format!("findings that the baseline does not have: {}", limit.new_findings.join(", ")),
    }
}
