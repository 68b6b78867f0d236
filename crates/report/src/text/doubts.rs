//! Doubts about the measurement: evidence that is missing or incomplete, notes, and what would improve the report.

use super::Style;
use super::layout::{clean, wrap};
use super::words::{file_name, is_library};
use firsttouch_analysis::{Analysis, ObjectView};
use std::collections::BTreeMap;

/// Adds incomplete evidence, the notes, and what would improve the report.
pub fn push_doubts(out: &mut Vec<String>, analysis: &Analysis, style: Style) {
    let before = out.len();
    for evidence in analysis.evidence.iter().filter(|e| !e.available || !e.detail.is_empty()) {
        let state = if evidence.available { "" } else { " not available" };
        let detail = if evidence.detail.is_empty() { "no reason recorded" } else { &evidence.detail };
        bullet(out, &format!("Evidence '{}'{state}: {detail}", evidence.source), style);
    }
    for note in &analysis.notes {
        bullet(out, &note.to_string(), style);
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

/// Advice for each module of the program whose lines or functions are missing from the findings. Missing lines of system libraries are not
/// reported.
fn what_would_help(analysis: &Analysis) -> Vec<String> {
    let mut modules: BTreeMap<&str, bool> = BTreeMap::new();
    let is_found = |object: &&ObjectView| analysis.findings.iter().any(|finding| finding.object == Some(object.id));
    for object in analysis.objects.iter().filter(is_found) {
        for place in object.allocated_at.iter().chain(&object.first_touch.at).chain(&object.used_at) {
            if let Some(module) = place.module.as_deref().filter(|module| place.line.is_none() && !is_library(module)) {
                *modules.entry(module).or_default() |= place.function.is_none();
            }
        }
    }
    modules
        .into_iter()
        .map(|(module, stripped)| {
            let name = clean(file_name(module));
            if stripped {
                format!(
                    "Some code of {name} has no names: it was stripped. A build with -g, not stripped, would show functions and lines; \
                     until then, objdump -d -F {name} shows the code at these offsets."
                )
            } else {
                format!("{name} has no line numbers. Compiling it with -g (or its debug symbols) would show lines and variables.")
            }
        })
        .collect()
}
