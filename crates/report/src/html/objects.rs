//! All objects: areas, and a table that can be sorted and filtered.

use super::Page;
use super::markup::{Figure, Markup};
use super::{page_map, remote_of, treemap};
use crate::text::place::place;
use crate::text::words::by_users;
use firsttouch_analysis::{Analysis, ObjectView};
use firsttouch_model::rows::Id;
use std::collections::BTreeSet;

/// Objects in the table: those with the most accesses, then the largest. The others are counted.
const MOST: usize = 400;

pub fn draw(html: &mut Markup, page: &Page<'_>) {
    let analysis = page.analysis;
    if analysis.objects.is_empty() {
        html.element("p", &[], "No objects were seen.");
        return;
    }
    html.within("div", &[("class", "areas")], |html| {
        areas_by_bytes(html, analysis);
        areas_by_remote(html, analysis);
    });
    html.within("p", &[("class", "tools"), ("hidden", "hidden")], |html| {
        html.within("label", &[("for", "filter")], |html| html.text("Filter "));
        html.empty("input", &[("id", "filter"), ("type", "search"), ("data-filters", "objects-table"), ("autocomplete", "off")]);
        html.element("span", &[("class", "hint"), ("id", "filter-count"), ("role", "status")], "");
    });
    table(html, page);
    let more = analysis.objects.len().saturating_sub(MOST);
    if more > 0 {
        let words = format!("{} more objects with fewer accesses are not in this table: firsttouch report --json has all.", more);
        html.element("p", &[("class", "hint")], &words);
    }
}

/// Draws all objects as areas by their bytes.
pub fn areas_by_bytes(html: &mut Markup, analysis: &Analysis) {
    let title = "Areas by bytes; the darker, the more of the accesses is remote";
    treemap::draw(html, &analysis.objects, |object| object.total_bytes as f64, ("tree-bytes", title));
}

/// Draws objects as areas by their remote accesses, if there are some. Returns whether there are.
pub fn areas_by_remote(html: &mut Markup, analysis: &Analysis) -> bool {
    let part = |object: &ObjectView| object.access_share.unwrap_or(0.0) * remote_of(object).unwrap_or(0.0);
    let has_remote = analysis.objects.iter().any(|object| part(object) > 0.0);
    if has_remote {
        treemap::draw(html, &analysis.objects, part, ("tree-remote", "Areas by remote accesses"));
    }
    has_remote
}

/// Column names, and whether they have numbers.
const COLUMNS: &[(&str, bool)] = &[
    ("object", false),
    ("bytes", true),
    ("accesses", true),
    ("remote", true),
    ("allocated at", false),
    ("used", false),
    ("verdict", false),
];

fn table(html: &mut Markup, page: &Page<'_>) {
    let analysis = page.analysis;
    let found: BTreeSet<Id> = analysis.findings.iter().flat_map(firsttouch_analysis::Finding::objects).collect();
    let mapped = page.map_ids();
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Table of objects")];
    html.within("div", &region, |html| {
        html.within("table", &[("id", "objects-table"), ("class", "sortable")], |html| {
            html.element("caption", &[], "Objects by their share of the accesses seen, with 95 % intervals");
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    for (name, is_number) in COLUMNS {
                        html.element("th", &[("scope", "col"), ("class", if *is_number { "n" } else { "" })], name);
                    }
                });
            });
            html.within("tbody", &[], |html| {
                for (index, object) in analysis.objects.iter().enumerate().take(MOST) {
                    row(html, analysis, (index, object), (found.contains(&object.id), mapped.contains(&object.id)));
                }
            });
        });
    });
}

fn row(html: &mut Markup, analysis: &Analysis, (index, object): (usize, &ObjectView), (is_found, is_mapped): (bool, bool)) {
    let at = |key: &str| format!("/objects/{index}/{key}");
    html.within("tr", &[("data-object", &index.to_string())], |html| {
        html.within("th", &[("scope", "row"), ("data-v", &object.name)], |html| match is_mapped {
            true => html.element("a", &[("href", &format!("#map-{}", object.id))], &page_map::named(analysis, object)),
            false => html.text(&page_map::named(analysis, object)),
        });
        html.figure_cell(&at("total_bytes"), Some(Figure::Bytes(object.total_bytes)), object.total_bytes as f64);
        part(html, (&at("access_share"), object.access_share), (&at("access_share_interval"), object.access_share_interval));
        part(html, (&at("remote_fraction"), remote_of(object)), (&at("remote_interval"), object.remote_interval));
        html.element("td", &[], &object.allocated_at.as_ref().map_or_else(String::new, place));
        html.element("td", &[], &by_users(object));
        let verdict = match &object.reason {
            Some(reason) => format!("not judged: {reason}"),
            None if is_found => "misplaced".to_owned(),
            None => "no finding".to_owned(),
        };
        html.element("td", &[("class", if is_found { "bad" } else { "" })], &verdict);
    });
}

/// A cell with a part of a whole and its interval; a dash if it is not known.
fn part(html: &mut Markup, (pointer, value): (&str, Option<f64>), (of_interval, range): (&str, Option<[f64; 2]>)) {
    let number = format!("{:.6}", value.unwrap_or(-1.0));
    html.within("td", &[("class", "n"), ("data-v", &number)], |html| match value {
        Some(value) => html.with_interval((pointer, value), (of_interval, range)),
        None => html.text("\u{2013}"),
    });
}
