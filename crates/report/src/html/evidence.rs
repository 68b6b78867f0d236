//! What the report rests on: sources, samples, what was lost, what the recording cost, and what was not seen.

use super::Page;
use super::markup::{Document, Figure, Markup};
use crate::text;
use crate::text::words::{capital, percent};
use firsttouch_analysis::{Analysis, CrossCheck};

/// Objects that were not judged, listed by name.
const MOST_NOT_JUDGED: usize = 100;

pub fn draw(html: &mut Markup, page: &Page<'_>) {
    let analysis = page.analysis;
    doubts(html, analysis);
    sources(html, analysis);
    coverage(html, analysis);
    cost(html, page);
    notes(html, page);
    not_judged(html, analysis);
}

/// What stands against the verdict.
fn doubts(html: &mut Markup, analysis: &Analysis) {
    let causes = analysis.causes();
    if causes.is_empty() {
        return;
    }
    html.element("h3", &[], "What limits the verdict");
    html.within("ul", &[], |html| causes.iter().for_each(|cause| html.element("li", &[], &capital(&cause.to_string()))));
}

fn sources(html: &mut Markup, analysis: &Analysis) {
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Sources of evidence")];
    html.within("div", &region, |html| {
        html.within("table", &[], |html| {
            html.element("caption", &[], "Sources of evidence");
            html.within("tr", &[], |html| {
                for (name, class) in [("source", ""), ("available", ""), ("samples", "n"), ("lost", "n"), ("remarks", "")] {
                    html.element("th", &[("scope", "col"), ("class", class)], name);
                }
            });
            for (index, one) in analysis.evidence.iter().enumerate() {
                let at = |key: &str| format!("/evidence/{index}/{key}");
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], one.source.as_str());
                    html.element("td", &[("class", if one.available { "" } else { "bad" })], if one.available { "yes" } else { "no" });
                    html.figure_cell(&at("samples"), Some(Figure::Count(one.samples)), one.samples as f64);
                    html.figure_cell(&at("lost"), Some(Figure::Count(one.lost)), one.lost as f64);
                    html.element("td", &[], &one.detail);
                });
            }
        });
    });
    for (index, check) in analysis.cross_checks.iter().enumerate() {
        html.within("p", &[], |html| {
            html.text(&format!("Source '{}' by itself: ", check.evidence));
            let pointers = (format!("/cross_checks/{index}/remote_fraction"), format!("/cross_checks/{index}/interval"));
            html.with_interval((&pointers.0, check.remote_fraction), (&pointers.1, Some(check.interval)));
            html.text(match (CrossCheck::is_precise(check.interval), check.agrees) {
                (false, _) => " remote; it is too uncertain to compare.",
                (true, true) => " remote; it agrees.",
                (true, false) => " remote; it disagrees.",
            });
        });
    }
    for lost in analysis.lost.iter().filter(|lost| lost.count > 0) {
        html.element("p", &[], &format!("Lost: {} {}: {}.", lost.count, lost.source.as_str(), lost.reason));
    }
}

fn coverage(html: &mut Markup, analysis: &Analysis) {
    let Some(coverage) = &analysis.coverage else { return };
    html.within("p", &[], |html| {
        html.text("Of the accesses seen, ");
        let parts = [
            ("judged", "are to judged objects", Some(coverage.judged)),
            ("cached", "to objects that fit in a core's cache", Some(coverage.cached)),
            ("not_judged", "to objects that were not judged", Some(coverage.not_judged)),
            ("elsewhere", "to memory of no recorded object", coverage.elsewhere),
        ];
        for (index, (key, words, part)) in parts.iter().filter(|(_, _, part)| part.is_some()).enumerate() {
            html.text(if index == 0 { "" } else { ", " });
            html.figure(Document::Report, &format!("/coverage/{key}"), Figure::Percent(part.unwrap_or(0.0)));
            html.text(&format!(" {words}"));
        }
        html.text(".");
    });
}

fn cost(html: &mut Markup, page: &Page<'_>) {
    let cost = page.cost;
    if let Some(profiler_s) = cost.profiler_cpu_s {
        let of_program = cost.program_cpu_s.filter(|program| *program > 0.0);
        let part =
            of_program.map_or_else(String::new, |program| format!(", {} of the program's {program:.2} s", percent(profiler_s / program)));
        html.element("p", &[], &format!("Cost: firsttouch used {profiler_s:.2} s of CPU time while the program ran{part}."));
    }
    if let Some(version) = cost.recorded_by {
        html.element("p", &[("class", "hint")], &format!("Recorded by firsttouch {version}."));
    }
}

fn notes(html: &mut Markup, page: &Page<'_>) {
    let analysis = page.analysis;
    if let Some(words) = text::kernel_sentences(analysis) {
        html.element("p", &[], &words);
    }
    if !analysis.notes.is_empty() {
        html.element("h3", &[], "Notes");
        html.within("ul", &[], |html| analysis.notes.iter().for_each(|note| html.element("li", &[], &note.to_string())));
    }
}

fn not_judged(html: &mut Markup, analysis: &Analysis) {
    if analysis.not_judged.is_empty() {
        return;
    }
    html.element("h3", &[], "Objects that were not judged");
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Objects that were not judged")];
    html.within("div", &region, |html| {
        html.within("table", &[], |html| {
            html.element("caption", &[], "Objects without a verdict, and why");
            html.within("tr", &[], |html| {
                for (name, class) in [("object", ""), ("bytes", "n"), ("reason", "")] {
                    html.element("th", &[("scope", "col"), ("class", class)], name);
                }
            });
            for (index, one) in analysis.not_judged.iter().enumerate().take(MOST_NOT_JUDGED) {
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], if one.name.is_empty() { "(several)" } else { &one.name });
                    html.figure_cell(&format!("/not_judged/{index}/bytes"), Some(Figure::Bytes(one.bytes)), one.bytes as f64);
                    html.element("td", &[], &capital(&one.reason.to_string()));
                });
            }
        });
    });
    let more = analysis.not_judged.len().saturating_sub(MOST_NOT_JUDGED);
    if more > 0 {
        html.element("p", &[("class", "hint")], &format!("And {more} more."));
    }
}
