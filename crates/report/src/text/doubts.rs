//! Doubts about the measurement: evidence that is missing or incomplete, notes, and what would improve the report.

use super::Style;
use super::layout::{clean, wrap};
use super::place::{file_name, is_library};
use super::places::Places;
use super::words::{capital, count, interval, percent, thousands};
use firsttouch_analysis::{Analysis, Cause, CodeLocation, CrossCheck, EvidenceView, ObjectView};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::generated_code::is_generated;
use firsttouch_model::signal_words;
use firsttouch_symbols::readable_function;
use std::collections::{BTreeMap, BTreeSet};

/// Adds incomplete evidence, the notes, and what would improve the report.
pub fn push_doubts(out: &mut Vec<String>, analysis: &Analysis, verbose: bool, style: Style) {
    let before = out.len();
    let is_cause = |causes: &[Cause]| causes.iter().any(|cause| matches!(cause, Cause::Killed { .. }));
    if let Some(signal) = analysis.signal.filter(|_| !is_cause(&analysis.doubts())) {
        bullet(out, &format!("The program was ended by {}: what it would have done is not known", signal_words(signal)), style);
    }
    // Without a finding, the verdict names these.
    let of_ends = |cause: &&Cause| matches!(cause, Cause::Unfinished { .. } | Cause::Outlived { .. });
    for cause in analysis.doubts().iter().filter(of_ends).filter(|_| !analysis.findings.is_empty()) {
        bullet(out, &capital(&cause.to_string()), style);
    }
    // How samples and watchpoints were taken is no doubt.
    let is_method = |e: &EvidenceView| e.available && matches!(e.source, EvidenceSource::Sample | EvidenceSource::Watch);
    // Most systems have no counters of bandwidth that a user may read, and no judgement needs them.
    let is_extra = |e: &EvidenceView| e.source == EvidenceSource::Bandwidth;
    let told = |e: &&EvidenceView| (!e.available || !e.detail.is_empty()) && (verbose || !(is_method(e) || is_extra(e)));
    for evidence in analysis.evidence.iter().filter(told) {
        let state = if evidence.available { "" } else { " not available" };
        let detail = if evidence.detail.is_empty() { "no reason recorded" } else { &evidence.detail };
        bullet(out, &format!("Evidence '{}'{state}: {detail}", evidence.source), style);
    }
    for check in analysis.cross_checks.iter().filter(|check| !check.agrees && CrossCheck::is_precise(check.interval)) {
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

/// `Sources disagree about the remote share: 'sample' gives 49 %, 'watch' 20 % [10, 30] (113 samples). The report uses 'sample', and its interval
/// covers both.`
fn disagreement(analysis: &Analysis, check: &CrossCheck) -> String {
    let used = analysis.remote_evidence.as_ref().map_or("", |source| source.as_str());
    format!(
        "Sources disagree about the remote share: '{used}' gives {}, '{}' {} {} ({}). The report uses '{used}', and its interval covers both.",
        percent(analysis.remote_fraction.unwrap_or(0.0)),
        check.evidence,
        percent(check.remote_fraction),
        interval(check.interval),
        count(usize::try_from(check.samples).unwrap_or(usize::MAX), "sample")
    )
}

/// From this share of the accesses or first touches of an object on, code without lines in a program that has lines is named.
const MUCH_UNLINED: f64 = 0.2;

/// What is missing in a module.
#[derive(Default)]
struct Unlined {
    /// The largest share of an object's allocation, first touches or accesses that is by code without a line.
    most: f64,
    /// Whether other code of it has lines.
    has_lines: bool,
    is_stripped: bool,
    functions: BTreeSet<String>,
}

/// Advice for each module of the program whose lines or functions are missing from the findings. Missing lines of system libraries are not
/// reported.
fn what_would_help(analysis: &Analysis) -> Vec<String> {
    let mut modules: BTreeMap<&str, Unlined> = BTreeMap::new();
    let is_found = |object: &&ObjectView| analysis.findings.iter().any(|finding| finding.object == Some(object.id));
    for object in analysis.objects.iter().filter(is_found) {
        let allocated: Vec<&CodeLocation> = object.allocated_at.iter().collect();
        for places in [allocated, object.first_touch.at.iter().collect(), object.used_at.iter().collect()] {
            // Generated code is in no file: nothing was stripped, and -g changes nothing. The profile has a note about it.
            let of_program = places.iter().filter_map(|place| Some((*place, place.module.as_deref()?)));
            for (place, module) in of_program.filter(|(_, module)| !is_library(module) && !is_generated(module)) {
                let unlined = modules.entry(module).or_default();
                unlined.has_lines |= place.file.is_some();
                let shares =
                    places.iter().filter(|other| other.file.is_none() && other.module.as_deref() == Some(module)).map(|other| other.share);
                unlined.most = unlined.most.max(shares.sum());
                if let Some(function) = place.function.as_deref().filter(|_| place.file.is_none()) {
                    unlined.functions.insert(readable_function(function));
                }
                unlined.is_stripped |= place.file.is_none() && place.function.is_none();
            }
        }
    }
    // Of a program with lines, a few samples in the C library that is linked into it change nothing.
    let matters = |one: &Unlined| one.most > 0.0 && (!one.has_lines || one.most >= MUCH_UNLINED);
    let sentences = modules.into_iter().filter(|(_, one)| matters(one)).map(|(module, unlined)| {
        let name = clean(file_name(module));
        if unlined.has_lines {
            let functions: Vec<String> = unlined.functions.iter().map(|function| clean(function)).collect();
            let which = if functions.is_empty() { String::new() } else { format!(" ({})", functions.join(", ")) };
            format!("Some code of {name}{which} has no line numbers; compiling that part with -g too would show them.")
        } else if unlined.is_stripped {
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
