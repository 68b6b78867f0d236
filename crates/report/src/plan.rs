//! The decisions of `firsttouch plan` as text and JSON. The plan itself is TOML.

use crate::predict::{left_out, not_judged};
use crate::recommendation_json::FindingRecommendationJson;
use crate::text::layout::GLUE;
use crate::text::remote;
use firsttouch_analysis::{Analysis, Finding, Verdict};
use firsttouch_model::finding::FindingKind;
use firsttouch_model::shown::one_line;
use firsttouch_plan::{Gain, Planned, Policy, Recommendations};
use serde::Serialize;
use std::path::Path;

/// The same in the source: for each finding, the change by the program's own means, and by calls of libfirsttouch where the source shows how.
#[must_use]
pub fn plan_in_source_text(analysis: &Analysis, recommendations: &Recommendations) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (finding, recommendation) in recommendations.in_order(&analysis.findings) {
        let place =
            analysis.objects.iter().find(|object| Some(object.id) == finding.object).and_then(|object| object.allocated_at.as_ref());
        let file = place.and_then(|place| place.file.as_deref()).unwrap_or_default();
        let place = place.and_then(|place| Some(format!(" ({}:{})", place.file.as_deref()?, place.line?))).unwrap_or_default();
        let fix = recommendation.map_or_else(|| finding.fix.as_str().into(), |one| one.fix(finding));
        lines.push(one_line(&format!("{}{place}: {}", finding.object_name, finding.kind.as_str())).into_owned());
        let why_not = recommendation.and_then(|one| recommendations.why_not(one));
        if let Some(why) = &why_not {
            push_indented(&mut lines, "", why);
        }
        push_indented(&mut lines, if why_not.is_some() { "fix elsewhere: " } else { "fix: " }, &fix);
        let is_no_faster = recommendation.is_some_and(|one| one.is_interleaving_no_faster());
        match &finding.library {
            Some(library) if is_no_faster && library.interleaves() => {
                push_indented(&mut lines, "", "libfirsttouch: no gain is predicted by its interleaving on this machine")
            }
            Some(library) => push_indented(&mut lines, &format!("or by libfirsttouch ({}): ", library.needs), &library.text),
            None => push_indented(&mut lines, "", &format!("libfirsttouch: {}", without_a_call(finding, file))),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Why there are no lines with calls of libfirsttouch, and what it has for the case.
fn without_a_call(finding: &Finding, file: &str) -> String {
    let why = match finding.kind {
        FindingKind::SharedRead => "a table that is only read can have a copy on each node (FT_REPLICATED)",
        FindingKind::SerialFirstTouch | FindingKind::MismatchedPartition | FindingKind::IoFirstTouch | FindingKind::NoStablePartition
            if file.ends_with(".rs") =>
        {
            let partition = if finding.kind == FindingKind::NoStablePartition { "interleaved" } else { "blocked" };
            return format!(
                "with the crate firsttouch-alloc as a dependency, firsttouch_alloc::place(&mut ARRAY, &firsttouch_alloc::Partition::{partition}()) \
                 once it has its size (docs/library.md)"
            );
        }
        _ if file.is_empty() => "the line that allocates the memory is not known",
        FindingKind::SerialFirstTouch | FindingKind::MismatchedPartition | FindingKind::IoFirstTouch => {
            "the source does not show for certain where the memory begins and how large it is"
        }
        _ => "the source does not show for certain where the memory begins and how large it is, or no placement by threads helps",
    };
    format!("{why} (docs/library.md)")
}

/// `no finding (1.2 % of accesses would be remote [0.3, 2.1])`: the report says what is not judged.
fn no_finding(analysis: &Analysis) -> String {
    remote(analysis).map_or_else(|| "no finding".to_owned(), |remote| format!("no finding ({remote})").replace(GLUE, " "))
}

fn push_indented(lines: &mut Vec<String>, label: &str, text: &str) {
    for (number, line) in text.lines().enumerate() {
        let label = if number == 0 { label } else { "" };
        lines.push(format!("    {label}{}", one_line(line)));
    }
}

/// A remote share that falls by less than this is no reason for a gain.
const LEAST_FALL: f64 = 0.02;
/// A smaller gain needs no reason.
const GAINS: f64 = 1.02;

/// The plan in a few lines; `output` is the file that it was written to.
#[must_use]
pub fn plan_text(planned: &Planned, analysis: &Analysis, output: Option<&Path>) -> String {
    let plan = &planned.plan;
    // A plan without entries says it as the reason.
    let is_said = plan.is_empty() && matches!(analysis.verdict(), Verdict::NotJudged(_));
    let mut lines: Vec<String> =
        analysis.not_whole().filter(|_| !is_said).map(|cause| format!("NOT JUDGED: {cause}")).into_iter().collect();
    let to = output.map(|path| format!(" -> {}", one_line(&path.display().to_string()))).unwrap_or_default();
    if plan.is_empty() {
        let why = match analysis.verdict() {
            Verdict::Findings if plan.left_alone.is_empty() => "there is no finding that a placement of memory would remove".to_owned(),
            Verdict::Findings => "every object of a finding is left alone".to_owned(),
            Verdict::WellPlaced(_) => no_finding(analysis),
            Verdict::NotJudged(causes) => {
                let causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
                format!("NOT JUDGED: {}", causes.join("; and "))
            }
        };
        lines.push(format!("nothing to place on {}: {why}{to}", plan.judged_on));
    } else {
        let at = |at: &str| if at.is_empty() { String::new() } else { format!(" ({at})") };
        let names: Vec<String> =
            plan.entries.iter().map(|entry| format!("{}{}: {}", entry.what, at(&entry.at), entry.policy.name())).collect();
        lines.push(format!("plan for {}: {}{to}", plan.judged_on, names.join(", ")));
        if let (Some(gain), Some(outlook)) = (plan.gain, &planned.outlook) {
            let assumed = if outlook.is_assumed { ", assuming the relative speeds of the median machine of the catalogue" } else { "" };
            let is_open = if gain.low <= 1.0 { "; no gain is certain" } else { "" };
            // What gains without fewer remote accesses: pages that go round the nodes.
            let spreads = plan.entries.iter().any(|entry| matches!(entry.policy, Policy::Interleave(_)));
            let is_not_less_remote = spreads && outlook.remote_before - outlook.remote_after < LEAST_FALL && gain.value >= GAINS;
            let by_controllers =
                if is_not_less_remote { "; the gain is that several nodes' memory serves them at the same time" } else { "" };
            lines.push(format!(
                "predicted: {:.2} times as fast [{:.2}, {:.2}] on {}{assumed}; remote accesses {:.0} % -> {:.0} %{by_controllers}{is_open}",
                gain.value,
                gain.low,
                gain.high,
                plan.judged_on,
                100.0 * outlook.remote_before,
                100.0 * outlook.remote_after
            ));
            lines.extend(not_judged(outlook.caps, analysis.machine.nodes).map(|what| format!("NOT JUDGED: {what}")));
            lines.extend(left_out(analysis).map(|sentence| sentence.replace(GLUE, " ")));
        }
    }
    lines.extend(plan.left_alone.iter().map(|sentence| format!("left alone: {sentence}")));
    lines.join("\n")
}

/// The JSON of `firsttouch plan`.
#[derive(Serialize)]
pub struct PlanJson<'a> {
    schema: &'static str,
    machine: &'a str,
    entries: Vec<EntryJson<'a>>,
    left_alone: &'a [String],
    /// Why the profile holds a part of the run only.
    not_whole: Option<String>,
    threads: u32,
    predicted_gain: Option<GainJson>,
    outlook: Option<OutlookJson>,
    /// For each finding, in the order of the report.
    recommendations: Vec<FindingRecommendationJson<'a>>,
}

#[derive(Serialize)]
struct EntryJson<'a> {
    what: &'a str,
    at: &'a str,
    bytes: u64,
    policy: &'a str,
    small_pages: bool,
    reason: &'a str,
    predicted_gain: Option<GainJson>,
}

#[derive(Serialize)]
struct GainJson {
    value: f64,
    interval: [f64; 2],
}

#[derive(Serialize)]
struct OutlookJson {
    /// Whether the bandwidths are those of the median machine of the catalogue.
    assumed: bool,
    time_ratio: f64,
    remote_before: f64,
    remote_after: f64,
}

impl<'a> PlanJson<'a> {
    #[must_use]
    pub fn new(planned: &'a Planned) -> Self {
        let gain = |gain: Option<Gain>| gain.map(|gain| GainJson { value: gain.value, interval: [gain.low, gain.high] });
        let plan = &planned.plan;
        let entries = plan.entries.iter().map(|entry| EntryJson {
            what: &entry.what,
            at: &entry.at,
            bytes: entry.bytes,
            policy: entry.policy.name(),
            small_pages: entry.small_pages,
            reason: &entry.reason,
            predicted_gain: gain(entry.gain),
        });
        Self {
            schema: "firsttouch.planned/1",
            machine: &plan.judged_on,
            entries: entries.collect(),
            left_alone: &plan.left_alone,
            not_whole: None,
            threads: plan.threads.count,
            predicted_gain: gain(plan.gain),
            outlook: planned.outlook.as_ref().map(|outlook| OutlookJson {
                assumed: outlook.is_assumed,
                time_ratio: outlook.time_ratio,
                remote_before: outlook.remote_before,
                remote_after: outlook.remote_after,
            }),
            recommendations: FindingRecommendationJson::all(&planned.recommendations),
        }
    }

    /// The same, with what the profile lacks.
    #[must_use]
    pub fn of(self, analysis: &Analysis) -> Self {
        Self { not_whole: analysis.not_whole().map(|cause| cause.to_string()), ..self }
    }
}
