//! Two profiles side by side: what changed, and the maps of the objects that both have.

use super::document::{Section, document, script_data};
use super::markup::{Document, Figure, Markup};
use super::{page_map, verdict};
use crate::diff::{advice, sentence};
use crate::text::place::file_name;
use firsttouch_analysis::diff::{Change, Diff, FindingChange, ObjectChange};
use firsttouch_analysis::{Analysis, ObjectView};
use firsttouch_model::format_bytes;
use serde_json::Map;

/// Rows of the table of objects.
const MOST_OBJECTS: usize = 200;
/// Objects whose maps are shown side by side.
const MOST_MAPS: usize = 8;

/// One of the two profiles.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The name that the user gave it.
    pub name: &'a str,
    pub analysis: &'a Analysis,
}

/// What the page compares.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    pub diff: &'a Diff,
    pub before: Side<'a>,
    pub after: Side<'a>,
}

/// The page.
#[must_use]
pub fn diff_html(of: &Comparison<'_>) -> String {
    let mut head = Markup::default();
    draw_head(&mut head, of);
    let mut list = Vec::new();
    let mut add = |id: &'static str, title: &'static str, about: &'static str, draw: &dyn Fn(&mut Markup)| {
        let mut contents = Markup::default();
        draw(&mut contents);
        list.push(Section { id, title, about, contents });
    };
    let sides = [of.before, of.after];
    add("figures", "Figures", "Each difference has a 95 % interval; it is significant if the interval does not contain 0.", &|html| {
        figures(html, of.diff);
    });
    add("findings", "Findings", "What is gone, what is new, and what is in both.", &|html| findings(html, of.diff));
    add("maps", "Maps", "The same objects before and after.", &|html| maps(html, of));
    add("objects", "Objects", "Matched by name and line.", &|html| objects(html, of.diff));
    add("nodes", "Nodes", "Accesses by the node of the thread and the node of the memory, before and after.", &|html| {
        html.within("div", &[("class", "beside")], |html| {
            for side in sides {
                html.within("div", &[], |html| {
                    html.element("h3", &[], side.name);
                    matrix(html, &side);
                });
            }
        });
    });
    let title = format!("{} and {} compared - firsttouch", of.before.name, of.after.name);
    document(&title, head, list, &script_data(&serde_json::json!({ "maps": Map::new() })))
}

fn draw_head(html: &mut Markup, of: &Comparison<'_>) {
    html.within("p", &[("class", "brand")], |html| {
        html.element("b", &[], "firsttouch");
        html.text(&format!(" comparison, judged on {}", of.diff.machine));
    });
    html.element("h1", &[], &format!("{} \u{2192} {}", of.before.name, of.after.name));
    html.within("div", &[("class", "beside")], |html| {
        for side in [of.before, of.after] {
            let (class, word) = verdict::word(&side.analysis.verdict());
            html.within("div", &[("class", &format!("verdict {class}"))], |html| {
                html.element("p", &[("class", "word")], word);
                html.element("p", &[], side.name);
                html.element("p", &[("class", "hint")], &verdict::program(side.analysis));
                for cause in side.analysis.causes() {
                    html.element("p", &[], &cause.to_string());
                }
            });
        }
    });
    html.element("p", &[("class", "lead")], &sentence(of.diff));
    if let Some(advice) = advice(of.diff) {
        html.element("p", &[], &advice);
    }
    for doubt in &of.diff.doubts {
        html.within("p", &[("class", "open-note")], |html| html.text(&doubt.to_string()));
    }
}

/// What is wider than a narrow window, in a region that scrolls.
fn scrolled(html: &mut Markup, label: &str, contents: impl FnOnce(&mut Markup)) {
    html.within("div", &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", label)], contents);
}

fn head_row(html: &mut Markup, names: &[&str]) {
    html.within("tr", &[], |html| {
        for (index, name) in names.iter().enumerate() {
            html.element("th", &[("scope", "col"), ("class", if index == 0 { "" } else { "n" })], name);
        }
    });
}

fn figures(html: &mut Markup, diff: &Diff) {
    scrolled(html, "The two runs", |html| {
        html.within("table", &[], |html| {
            html.element("caption", &[], "The two runs; differences of percentages are in percentage points");
            head_row(html, &["", "before", "after", "difference", "significant"]);
            change(html, "remote accesses", "/remote_fraction", &diff.remote_fraction, Figure::Percent);
            if let Some(slowdown) = &diff.slowdown {
                change(html, "time over the best placement, predicted", "/slowdown", slowdown, Figure::Times);
            }
            change(html, "run time (one run each)", "/wall_s", &diff.wall_s, Figure::Seconds);
        });
    });
}

fn change(html: &mut Markup, name: &str, pointer: &str, change: &Change, figure: fn(f64) -> Figure) {
    html.within("tr", &[], |html| {
        html.element("th", &[("scope", "row")], name);
        cells(html, pointer, change, figure);
    });
}

/// Before, after, the difference, and whether it is significant.
fn cells(html: &mut Markup, pointer: &str, change: &Change, figure: fn(f64) -> Figure) {
    let range =
        |range: [f64; 2]| if matches!(figure(1.0), Figure::Times(_)) { Figure::TimesInterval(range) } else { Figure::Interval(range) };
    let all = [
        ("before", change.before, change.before_interval),
        ("after", change.after, change.after_interval),
        ("difference", change.difference, change.difference_interval),
    ];
    for (key, value, interval) in all {
        html.within("td", &[("class", "n"), ("data-v", &format!("{:.6}", value.unwrap_or(-1.0)))], |html| {
            let Some(value) = value else { return html.text("\u{2013}") };
            html.figure(Document::Diff, &format!("{pointer}/{key}"), figure(value));
            if let Some(interval) = interval {
                html.text(" ");
                html.figure(Document::Diff, &format!("{pointer}/{key}_interval"), range(interval));
            }
        });
    }
    let words = match change.significant {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not known",
    };
    html.element("td", &[("class", if change.significant == Some(true) { "n strong" } else { "n" })], words);
}

fn findings(html: &mut Markup, diff: &Diff) {
    let groups = [
        ("Gone", "findings_gone", &diff.findings_gone),
        ("New", "findings_new", &diff.findings_new),
        ("In both", "findings_kept", &diff.findings_kept),
    ];
    for (title, key, list) in groups {
        let comparable = list.iter().filter(|finding| finding.object_in_both).count();
        let only = if comparable < list.len() { format!(" ({comparable} on objects that both profiles judge)") } else { String::new() };
        html.element("h3", &[], &format!("{title}: {}{only}", list.len()));
        for (index, finding) in list.iter().enumerate() {
            one_finding(html, &format!("/{key}/{index}/remote_fraction"), finding);
        }
    }
}

fn one_finding(html: &mut Markup, pointer: &str, finding: &FindingChange) {
    html.within("article", &[("class", "finding minor")], |html| {
        html.within("h4", &[], |html| {
            html.text(&format!("{} ", finding.object_name));
            html.element("span", &[("class", "kind")], finding.kind.as_str());
        });
        html.element("p", &[], &finding.message);
        scrolled(html, &format!("Figures of {}", finding.object_name), |html| {
            html.within("table", &[], |html| {
                html.element("caption", &[], "The remote part of its accesses");
                head_row(html, &["", "before", "after", "difference", "significant"]);
                change(html, "remote", pointer, &finding.remote_fraction, Figure::Percent);
            });
        });
        if !finding.object_in_both {
            html.element(
                "p",
                &[("class", "open-note")],
                "The other profile does not judge this object, so its absence there says nothing.",
            );
        }
    });
}

fn objects(html: &mut Markup, diff: &Diff) {
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Table of objects")];
    html.within("div", &region, |html| {
        html.within("table", &[("class", "sortable")], |html| {
            html.element("caption", &[], "The remote part of the accesses to each object; differences are in percentage points");
            html.within("thead", &[], |html| {
                head_row(html, &["object", "allocated at", "bytes before", "bytes after", "before", "after", "difference", "significant"]);
            });
            html.within("tbody", &[], |html| {
                for (index, object) in diff.objects.iter().enumerate().take(MOST_OBJECTS) {
                    object_row(html, index, object);
                }
            });
        });
    });
    let more = diff.objects.len().saturating_sub(MOST_OBJECTS);
    if more > 0 {
        html.element("p", &[("class", "hint")], &format!("And {more} more."));
    }
}

fn object_row(html: &mut Markup, index: usize, object: &ObjectChange) {
    html.within("tr", &[], |html| {
        html.element("th", &[("scope", "row"), ("data-v", &object.name)], &object.name);
        let at = object.file.as_deref().zip(object.line).map(|(file, line)| format!("{}:{line}", file_name(file)));
        html.element("td", &[], &at.unwrap_or_default());
        for bytes in [object.bytes_before, object.bytes_after] {
            let text = bytes.map_or_else(|| "\u{2013}".to_owned(), format_bytes);
            html.element("td", &[("class", "n"), ("data-v", &bytes.unwrap_or(0).to_string())], &text);
        }
        cells(html, &format!("/objects/{index}/remote_fraction"), &object.remote_fraction, Figure::Percent);
    });
}

/// The maps of objects, before on the left and after on the right.
fn maps(html: &mut Markup, of: &Comparison<'_>) {
    page_map::legend(html, of.after.analysis);
    let mut shown = 0;
    for change in of.diff.objects.iter().filter(|change| change.bytes_before.is_some() && change.bytes_after.is_some()) {
        let found = [of.before, of.after].map(|side| named(side.analysis, change).zip(Some(side)));
        let [Some(before), Some(after)] = found else { continue };
        if shown >= MOST_MAPS {
            break;
        }
        shown += 1;
        html.within("article", &[("class", "object")], |html| {
            html.element("h3", &[], &change.name);
            html.within("div", &[("class", "beside")], |html| {
                for (side_number, (object, side)) in [before, after].into_iter().enumerate() {
                    html.within("div", &[], |html| {
                        html.element("p", &[("class", "hint")], side.name);
                        if let Some(map) = page_map::map_of(object, None) {
                            page_map::draw_plain(html, side.analysis, object, &map, &format!("map-{shown}-{side_number}"));
                        }
                    });
                }
            });
        });
    }
    if shown == 0 {
        html.element("p", &[], "No object is in both profiles.");
    }
}

/// The object of a profile that a change is about: by the name and the size of that profile, because lines move.
fn named<'a>(analysis: &'a Analysis, change: &ObjectChange) -> Option<&'a ObjectView> {
    let sizes = [change.bytes_before, change.bytes_after];
    let is_named = |object: &&ObjectView| object.name == change.name;
    let of_size = |object: &&ObjectView| is_named(object) && sizes.contains(&Some(object.total_bytes));
    analysis.objects.iter().find(of_size).or_else(|| analysis.objects.iter().find(is_named))
}

fn matrix(html: &mut Markup, side: &Side<'_>) {
    let analysis = side.analysis;
    let label = format!("Node by node matrix of {}", side.name);
    scrolled(html, &label, |html| {
        html.within("table", &[("class", "matrix")], |html| {
            html.element("caption", &[], "Parts of all accesses");
            html.within("tr", &[], |html| {
                html.element("th", &[("scope", "col")], "threads on");
                for node in 0..analysis.matrix.len() {
                    html.element("th", &[("scope", "col"), ("class", "n")], &format!("memory on {}", analysis.node_name(node)));
                }
            });
            for (from, row) in analysis.matrix.iter().enumerate() {
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], &format!("node {}", analysis.node_name(from)));
                    for (to, part) in row.iter().enumerate() {
                        html.element("td", &[("class", &super::matrices::shade(*part, from != to))], &Figure::Percent(*part).text());
                    }
                });
            }
        })
    });
}
