//! The findings, most worthwhile first: the object, its map, its lines, and the fix.

use super::Page;
use super::markup::{Document, Figure, Markup};
use super::page_map;
use super::source;
use crate::text;
use crate::text::finding::{Advice, gained};
use crate::text::place::place;
use crate::text::ranks;
use crate::text::words::{by_lines, by_threads, by_users};
use firsttouch_analysis::{CodeLocation, Finding, ObjectView};
use firsttouch_model::TouchCause;
use std::collections::BTreeSet;

/// Lines that are listed of each kind.
const MOST_LINES: usize = 4;

pub fn draw(html: &mut Markup, page: &Page<'_>) {
    page_map::legend(html, page.analysis);
    let in_order = page.recommendations.in_order(&page.analysis.findings);
    let mut drawn = BTreeSet::new();
    for (number, (finding, recommended)) in in_order.enumerate() {
        // The object of several findings has its map in the first.
        let is_first = finding.object.is_none_or(|object| drawn.insert(object));
        let advice = Advice::new(finding, page.recommendations, recommended);
        let advice = Advice { ranks: ranks::of_finding(page.analysis, finding), ..advice };
        one(html, page, (number, finding), &advice, is_first);
    }
    let commands = text::commands_without_source(page.analysis, page.recommendations, page.context);
    if !commands.is_empty() {
        html.element("h3", &[], &text::without_source(page.analysis, page.recommendations, page.context));
        html.within("pre", &[("tabindex", "0")], |html| code_lines(html, commands.iter().map(String::as_str)));
    }
}

fn one(html: &mut Markup, page: &Page<'_>, (number, finding): (usize, &Finding), advice: &Advice, has_map: bool) {
    let object = finding.object.and_then(|id| page.object(id));
    let id = format!("finding-{}", number + 1);
    let class = if advice.why_not.is_some() { "finding minor" } else { "finding" };
    html.within("article", &[("class", class), ("id", &id)], |html| {
        html.within("h3", &[], |html| {
            html.text(&format!("{}. {} ", number + 1, finding.object_name));
            html.element("span", &[("class", "kind")], finding.kind.as_str());
        });
        head(html, (number, finding), advice);
        html.element("p", &[], &finding.message);
        if let Some((index, object)) = object {
            if let Some(map) = page.map(object).filter(|_| has_map) {
                page_map::draw(html, page.analysis, (index, object), &map, &format!("map-{}", object.id));
            }
            lines(html, page, (index, object));
        }
        if let Some(ranks) = &advice.ranks {
            labelled(html, "Ranks", ranks);
        }
        fix(html, advice);
    });
}

/// The figures of a finding in one line.
fn head(html: &mut Markup, (number, finding): (usize, &Finding), advice: &Advice) {
    let at = |key: &str| format!("/findings/{number}/{key}");
    html.within("p", &[("class", "head")], |html| {
        html.with_interval((&at("remote_fraction"), finding.remote_fraction), (&at("interval"), Some(finding.interval)));
        html.text(if finding.object.is_some() { " of its accesses are remote, " } else { " of all accesses are remote, " });
        html.figure(Document::Report, &at("remote_share"), Figure::Percent(finding.remote_share));
        html.text(" of all accesses seen. ");
        if let Some(gain) = advice.gain {
            html.element("b", &[], &gained(gain.gain, gain.interval, advice.is_of_fix));
            html.text(" (predicted)");
        }
    });
}

/// The lines that allocate, touch and use an object.
fn lines(html: &mut Markup, page: &Page<'_>, (index, object): (usize, &ObjectView)) {
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Lines of the source")];
    html.within("div", &region, |html| {
        html.within("table", &[("class", "lines")], |html| {
            html.element("caption", &[], &format!("Lines that allocate, first touch and use {}", object.name));
            if let Some(at) = &object.allocated_at {
                line(html, page, ("allocated", ""), at, None);
            }
            let touch = &object.first_touch;
            let by_lines = by_lines(touch);
            let is_of_all = by_lines.is_none();
            let mut by = by_lines.unwrap_or_else(|| by_threads(&touch.by_thread.to_vec(), touch.partition));
            if let Some(cause) = touch.cause.filter(|cause| is_of_all && !matches!(cause, TouchCause::Loop | TouchCause::Unknown)) {
                by = format!("{cause}, {by}");
            }
            several(html, page, ("first touched", &by), &touch.at, &format!("/objects/{index}/first_touch/at"));
            let by = by_users(object);
            several(html, page, ("used", &by), &object.used_at, &format!("/objects/{index}/used_at"));
        });
    });
}

fn several(html: &mut Markup, page: &Page<'_>, (what, by): (&str, &str), at: &[CodeLocation], pointer: &str) {
    if at.is_empty() {
        html.within("tr", &[], |html| {
            html.element("th", &[("scope", "row")], what);
            html.element("td", &[("colspan", "4")], if by.is_empty() { "not seen" } else { by });
        });
    }
    for (rank, location) in at.iter().enumerate().take(MOST_LINES) {
        let (what, by) = if rank == 0 { (what, by) } else { ("", "") };
        line(html, page, (what, by), location, Some(&format!("{pointer}/{rank}/share")));
    }
}

fn line(html: &mut Markup, page: &Page<'_>, (what, by): (&str, &str), at: &CodeLocation, pointer: Option<&str>) {
    html.within("tr", &[], |html| {
        html.element("th", &[("scope", "row")], what);
        html.within("td", &[("class", "n")], |html| {
            if let Some(pointer) = pointer {
                html.figure(Document::Report, pointer, Figure::Percent(at.share));
            }
        });
        html.within("td", &[], |html| match source::anchor(page, at) {
            Some(anchor) => html.element("a", &[("href", &format!("#{anchor}"))], &place(at)),
            None => html.text(&place(at)),
        });
        html.within("td", &[], |html| html.element("code", &[], at.text.as_deref().unwrap_or_default().trim()));
        html.element("td", &[("class", "hint")], by);
    });
}

fn fix(html: &mut Markup, advice: &Advice) {
    if let Some(why_not) = &advice.why_not {
        return labelled(html, "Fix", why_not);
    }
    if advice.is_fix_worth {
        html.within("div", &[("class", "fix")], |html| {
            html.element("h4", &[], "Fix");
            text_with_code(html, &advice.fix);
        });
    }
    if let Some(plan) = &advice.plan {
        labelled(html, "Plan", plan);
    }
}

/// Words and code: lines that are indented are code.
pub fn text_with_code(html: &mut Markup, text: &str) {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with(' ') {
            html.element("p", &[], line);
            continue;
        }
        html.within("pre", &[("tabindex", "0")], |html| {
            let first = std::iter::once(line);
            let rest = std::iter::from_fn(|| lines.next_if(|next| next.starts_with(' ')));
            code_lines(html, first.chain(rest).map(|line| line.strip_prefix("  ").unwrap_or(line)));
        });
    }
}

fn code_lines<'a>(html: &mut Markup, lines: impl Iterator<Item = &'a str>) {
    html.within("code", &[], |html| {
        for (index, line) in lines.enumerate() {
            html.raw(if index == 0 { "" } else { "\n" });
            html.text(line);
        }
    });
}

fn labelled(html: &mut Markup, label: &str, text: &str) {
    html.within("p", &[], |html| {
        html.element("b", &[], &format!("{label}: "));
        html.text(text);
    });
}
