//! The source code around the lines that allocate, touch and use objects, with their shares in the margin.

use super::Page;
use super::markup::{Document, Figure, Markup};
use crate::text::place::file_name;
use firsttouch_analysis::pictures::SourceExcerpt;
use firsttouch_analysis::{CodeLocation, EditAction, FixEdit};
use std::collections::BTreeMap;

/// Smaller shares of a line are not in the margin.
const LEAST: f64 = 0.01;
/// Marks of a line.
const MOST_MARKS: usize = 4;

/// A mark in the margin of a line.
struct Mark<'a> {
    class: &'static str,
    verb: &'static str,
    object: &'a str,
    pointer: Option<String>,
    share: f64,
}

/// Whether anything can be shown.
pub fn has_code(page: &Page<'_>) -> bool {
    !page.excerpts.is_empty()
}

/// The anchor of a line, if the page shows it.
pub fn anchor(page: &Page<'_>, at: &CodeLocation) -> Option<String> {
    let (file, line) = (at.file.as_ref()?, at.line?);
    let index = page.excerpts.iter().position(|excerpt| excerpt.file == *file)?;
    page.excerpts[index].lines.iter().any(|(number, _)| *number == line).then(|| format!("src{index}-{line}"))
}

pub fn draw(html: &mut Markup, page: &Page<'_>) {
    for (index, excerpt) in page.excerpts.iter().enumerate() {
        file(html, page, (index, excerpt));
    }
}

fn file(html: &mut Markup, page: &Page<'_>, (index, excerpt): (usize, &SourceExcerpt)) {
    let marks = marks(page, &excerpt.file);
    let edits: Vec<&FixEdit> =
        page.analysis.findings.iter().flat_map(|finding| &finding.fix_edits).filter(|edit| edit.file == excerpt.file).collect();
    let region = [("class", "scroll code"), ("tabindex", "0"), ("role", "region"), ("aria-label", file_name(&excerpt.file))];
    html.element("h3", &[], file_name(&excerpt.file));
    html.element("p", &[("class", "hint")], &excerpt.file);
    html.within("div", &region, |html| {
        html.within("table", &[("class", "source")], |html| {
            html.element("caption", &[], &format!("{}: what its lines do to objects", file_name(&excerpt.file)));
            html.within("tr", &[("class", "visually-hidden")], |html| {
                for name in ["line", "what it does", "code"] {
                    html.element("th", &[("scope", "col")], name);
                }
            });
            let mut last = None;
            for (line, text) in &excerpt.lines {
                if last.is_some_and(|last: u32| last + 1 < *line) {
                    html.within("tr", &[("class", "gap")], |html| html.element("td", &[("colspan", "3")], "\u{22ef}"));
                }
                inserted(html, &edits, *line, EditAction::InsertBefore);
                let replaced = edits.iter().any(|edit| edit.action == EditAction::Replace && (edit.line..=edit.last_line).contains(line));
                row(html, (index, *line, text), marks.get(line).map_or(&[][..], Vec::as_slice), replaced);
                inserted(html, &edits, *line, EditAction::InsertAfter);
                inserted(html, &edits, *line, EditAction::Replace);
                last = Some(*line);
            }
        });
    });
}

fn row(html: &mut Markup, (file, line, text): (usize, u32, &str), marks: &[Mark<'_>], is_replaced: bool) {
    let class = match (is_replaced, marks.is_empty()) {
        (true, _) => "gone",
        (false, false) => "marked",
        (false, true) => "",
    };
    html.within("tr", &[("id", &format!("src{file}-{line}")), ("class", class)], |html| {
        html.element("th", &[("scope", "row")], &line.to_string());
        html.within("td", &[("class", "margin")], |html| {
            for mark in marks.iter().take(MOST_MARKS) {
                html.within("span", &[("class", mark.class)], |html| {
                    html.text(&format!("{} {} ", mark.verb, mark.object));
                    if let Some(pointer) = &mark.pointer {
                        html.figure(Document::Report, pointer, Figure::Percent(mark.share));
                    }
                });
            }
        });
        html.within("td", &[], |html| html.element("code", &[], text));
    });
}

/// Lines that the fix adds.
fn inserted(html: &mut Markup, edits: &[&FixEdit], line: u32, action: EditAction) {
    let at = |edit: &&&FixEdit| match edit.action {
        EditAction::InsertBefore => edit.line == line,
        EditAction::InsertAfter | EditAction::Replace => edit.last_line == line,
    };
    let mut shown: Vec<&Vec<String>> = Vec::new();
    for edit in edits.iter().filter(|edit| edit.action == action).filter(at) {
        if shown.contains(&&edit.text) {
            continue;
        }
        shown.push(&edit.text);
        for text in &edit.text {
            html.within("tr", &[("class", "added")], |html| {
                html.element("th", &[("scope", "row")], "+");
                html.within("td", &[("class", "margin")], |html| html.element("span", &[("class", "fixed")], "the fix adds"));
                html.within("td", &[], |html| html.element("code", &[], &text.replace('\t', "        ")));
            });
        }
    }
}

/// The marks of each line of a file, the largest shares first.
fn marks<'a>(page: &Page<'a>, file: &str) -> BTreeMap<u32, Vec<Mark<'a>>> {
    let mut marks: BTreeMap<u32, Vec<Mark<'a>>> = BTreeMap::new();
    let mut add = |at: &CodeLocation, mark: Mark<'a>| {
        if let Some(line) = at.line.filter(|_| at.file.as_deref() == Some(file)) {
            let marks = marks.entry(line).or_default();
            if !marks.iter().any(|one| one.verb == mark.verb && one.object == mark.object) {
                marks.push(mark);
            }
        }
    };
    // Libraries allocate on lines of the program that only call them.
    let own = page.analysis.objects.iter().enumerate().filter(|(_, object)| object.library.is_none());
    for (index, object) in own {
        let name = object.name.as_str();
        if let Some(at) = &object.allocated_at {
            add(at, Mark { class: "allocates", verb: "allocates", object: name, pointer: None, share: 1.0 });
        }
        let groups = [("touches", "first touches", "first_touch/at", &object.first_touch.at), ("uses", "uses", "used_at", &object.used_at)];
        for (class, verb, key, list) in groups {
            for (rank, at) in list.iter().enumerate().filter(|(_, at)| at.share >= LEAST) {
                let pointer = Some(format!("/objects/{index}/{key}/{rank}/share"));
                add(at, Mark { class, verb, object: name, pointer, share: at.share });
            }
        }
    }
    marks
}
