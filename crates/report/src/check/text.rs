//! The result as text that fits one screen.

use super::{CheckJson, words};
use crate::system::Lines;
use crate::text::Style;
use crate::text::finding::gained;
use crate::text::layout::clean;
use crate::text::paint::Paint;
use crate::text::words::percent;
use crate::topology::table::Align::Left;
use firsttouch_analysis::check_limits::{LimitKind, LimitStatus, Outcome};
use firsttouch_analysis::{Note, ObjectView};
use firsttouch_model::counted;

/// The number of findings shown.
const MOST_FINDINGS: usize = 8;

/// Which limit would allow the remote share, where no object has a finding and interleaved memory is a cause of it.
fn without_repair(check: &CheckJson<'_>) -> Option<String> {
    let remote = check.limits.iter().find(|limit| limit.kind == LimitKind::MaxRemote && limit.status == LimitStatus::Exceeded)?;
    let is_interleaved = |object: &&ObjectView| object.judged && object.policy.as_ref().is_some_and(|policy| policy.contains("interleave"));
    let objects: Vec<&ObjectView> = check.analysis.objects.iter().filter(is_interleaved).collect();
    let (first, [_, high]) = objects.first().zip(remote.interval).filter(|_| check.findings.is_empty())?;
    let others = if objects.len() > 1 { format!(" and {}", counted(objects.len() - 1, "other object")) } else { String::new() };
    Some(format!(
        "No object has a finding. The pages of {}{others} are interleaved over the nodes, so some accesses stay remote; to allow this share: --max-remote {:.0}",
        first.name,
        (100.0 * high).ceil()
    ))
}

/// The result as text. `more` is a command that prints the complete report.
#[must_use]
pub fn check_text(check: &CheckJson<'_>, more: Option<&str>, style: Style) -> String {
    let mut out = Lines::new(style);
    let verdict = match check.outcome {
        Outcome::Passed => style.paint(Paint::Good, "passed"),
        Outcome::Failed => style.paint(Paint::Bad, "FAILED"),
        Outcome::NotJudged => style.paint(Paint::Bad, "NOT JUDGED"),
    };
    out.line(&format!("check {verdict} on {}", clean(&check.machine.name)));
    if check.machine.nodes == 1 {
        out.indented("It has one node, so no memory can be remote there: judge on another machine (--machine virtual:2).", "  ");
    }
    if check.outcome == Outcome::NotJudged && !check.findings.is_empty() {
        out.indented("MISPLACED, as the findings below show; but no limit is checked:", "  ");
    }
    if check.outcome != Outcome::Passed {
        check.standing_causes().for_each(|cause| out.indented(&clean(cause), "  "));
    }
    if check.outcome == Outcome::Passed && check.limits.iter().any(|limit| limit.status == LimitStatus::Unsure) {
        out.indented("No limit is exceeded for certain, but one may be (unsure).", "  ");
    }
    let rows: Vec<Vec<String>> = check
        .limits
        .iter()
        .map(|limit| {
            let word = match limit.status {
                LimitStatus::Within => "within",
                LimitStatus::Unsure => "unsure",
                LimitStatus::Exceeded => "EXCEEDED",
                LimitStatus::Unknown => "not judged",
            };
            vec![format!("  {word}"), limit.kind.to_string(), clean(&words(limit, check.machine))]
        })
        .collect();
    out.table(&rows, &[Left, Left, Left]);
    if let Some(words) = without_repair(check) {
        out.indented(&clean(&words), "  ");
    }
    // What is remote depends on where processes are taken to run, and on policies and plans that do nothing here.
    let decides_places = |note: &&Note| {
        matches!(note, Note::TogetherOnNodes(_) | Note::RanksOnNodes { .. } | Note::UnknownPolicies { .. } | Note::PlanWithoutNodes)
    };
    check.analysis.notes.iter().filter(decides_places).for_each(|note| out.indented(&format!("{}.", clean(&note.to_string())), "  "));
    if !check.findings.is_empty() {
        out.gap();
    }
    let rows: Vec<Vec<String>> = check
        .findings
        .iter()
        .take(MOST_FINDINGS)
        .map(|finding| {
            let place = check.place(finding).map_or_else(|| "-".to_owned(), |(_, file, line)| format!("{}:{line}", check.relative(file)));
            let gain = match finding.recommendation.as_ref() {
                Some(one) if one.why_not.is_some() => "; not worth repairing on this machine".to_owned(),
                Some(one) if !one.assumed => {
                    one.gain.map_or(String::new(), |gain| format!("; {}", gained(gain, one.gain_interval, one.gain == one.fix.gain)))
                }
                _ => String::new(),
            };
            let share = format!("remote: {} of the accesses to all objects{gain}", percent(finding.remote_share));
            vec![format!("  {}", finding.id), clean(finding.object_name), clean(&place), share]
        })
        .collect();
    out.table(&rows, &[Left, Left, Left, Left]);
    if check.findings.len() > MOST_FINDINGS {
        out.sentence(&format!("  and {} more findings", check.findings.len() - MOST_FINDINGS));
    }
    if let (Some(more), false) = (more, check.findings.is_empty()) {
        out.sentence(&format!("More: {more}"));
    }
    out.text()
}
