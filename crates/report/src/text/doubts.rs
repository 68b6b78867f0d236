//! Doubts about the measurement: evidence that is missing or incomplete, notes, and what would improve the report.

use super::Style;
use super::layout::{clean, wrap};
use super::place::{file_name, is_library};
use super::places::Places;
use super::words::{count, interval, percent, thousands};
use firsttouch_analysis::{Analysis, CrossCheck, EvidenceView, ObjectView};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::generated_code::is_generated;
use std::collections::BTreeMap;

/// Adds incomplete evidence, the notes, and what would improve the report.
pub fn push_doubts(out: &mut Vec<String>, analysis: &Analysis, verbose: bool, style: Style) {
    let before = out.len();
    // How samples and watchpoints were taken is no doubt.
    let is_method = |e: &EvidenceView| e.available && matches!(e.source, EvidenceSource::Sample | EvidenceSource::Watch);
    let told = |e: &&EvidenceView| (!e.available || !e.detail.is_empty()) && (verbose || !is_method(e));
    for evidence in analysis.evidence.iter().filter(told) {
        let state = if evidence.available { "" } else { " not available" };
        let detail = if evidence.detail.is_empty() { "no reason recorded" } else { &evidence.detail };
        bullet(out, &format!("Evidence '{}'{state}: {detail}", evidence.source), style);
    }
    for check in analysis.cross_checks.iter().filter(|check| !check.agrees) {
        bullet(out, &disagreement(analysis, check), style);
    }
    for note in analysis.notes.iter().filter(|note| verbose || !note.is_detail()) {
        bullet(out, &note.to_string(), style);
    }
    if let Some(places) = Places::of(analysis) {
        let (threads, places) = (thousands(analysis.threads.len() as u64), places.count());
        bullet(
            out,
            &format!("{threads} threads followed each other in {places} places; 'thread' in this report is the number of a place"),
            style,
        );
    }
    for help in what_would_help(analysis) {
        bullet(out, &help, style);
    }
    if out.len() > before {
        out.push(String::new());
    }
}

fn bullet(out: &mut Vec<String>, text: &str, style: Style) {
    for (index, line) in wrap(text, style.width - 2).into_iter().enumerate() {
        out.push(format!("{} {line}", if index == 0 { "-" } else { " " }));
    }
}

/// `Sources disagree about the remote share: 'sample' gives 49 % [46, 51], 'watch' 20 % [10, 30] (113 samples). The report uses 'sample'.`
fn disagreement(analysis: &Analysis, check: &CrossCheck) -> String {
    let used = analysis.remote_evidence.as_ref().map_or("", |source| source.as_str());
    format!(
        "Sources disagree about the remote share: '{used}' gives {} {}, '{}' {} {} ({}). The report uses '{used}'.",
        percent(analysis.remote_fraction.unwrap_or(0.0)),
        interval(analysis.remote_interval.unwrap_or([0.0, 1.0])),
        check.evidence,
        percent(check.remote_fraction),
        interval(check.interval),
        count(usize::try_from(check.samples).unwrap_or(usize::MAX), "sample")
    )
}

/// Advice for each module of the program whose lines or functions are missing from the findings. Missing lines of system libraries are not
/// reported.
fn what_would_help(analysis: &Analysis) -> Vec<String> {
    let mut modules: BTreeMap<&str, bool> = BTreeMap::new();
    let is_found = |object: &&ObjectView| analysis.findings.iter().any(|finding| finding.object == Some(object.id));
    for object in analysis.objects.iter().filter(is_found) {
        for place in object.allocated_at.iter().chain(&object.first_touch.at).chain(&object.used_at) {
            // Generated code is in no file: nothing was stripped, and -g changes nothing. The profile has a note about it.
            let is_in_file = |module: &&str| place.file.is_none() && !is_library(module) && !is_generated(module);
            if let Some(module) = place.module.as_deref().filter(is_in_file) {
                *modules.entry(module).or_default() |= place.function.is_none();
            }
        }
    }
    let sentences = modules.into_iter().map(|(module, stripped)| {
        let name = clean(file_name(module));
        if stripped {
            format!(
                "Some code of {name} has no names: it was stripped. A build with -g, not stripped, would show functions and lines; \
                     until then, objdump -d -F {name} shows the code at these offsets."
            )
        } else {
            format!("{name} has no line numbers. Compiling it with -g (or its debug symbols) would show lines and variables.")
        }
    });
    sentences.collect()
}
