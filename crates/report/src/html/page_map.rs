//! The page map of an object: its address range from left to right; below each other who touched first, who uses, where it lies, and how much is remote.

use super::markup::{Document, Figure, Markup, across, node_class};
use crate::text::layout::clean;
use crate::text::place::place;
use crate::text::words::{interval, percent};
use firsttouch_analysis::pictures::{CloseMap, Majority, PageMap, Part, Piece};
use firsttouch_analysis::{Analysis, ObjectMap, ObjectView};
use firsttouch_model::format_bytes;
use serde_json::{Value, json};

/// The heights of rows and of the axis, px. The style has the same heights for the names beside them.
const ROW: f64 = 20.0;
const GAP: f64 = 2.0;
const REMOTE: f64 = 26.0;
const AXIS: f64 = 16.0;
/// A run of pieces of at least this part of the width has its thread or node written in it; narrower ones if they are zoomed in.
const LABELLED: f64 = 0.03;
const LABELLED_ZOOMED: f64 = 0.004;
/// With more runs, pieces have no tooltips of their own without the script.
const MOST_TITLES: usize = 96;
/// Rows of the map as a table.
const MOST_ROWS: usize = 64;

/// A row of a map: which property of a piece it shows.
#[derive(Clone, Copy, PartialEq)]
enum Row {
    Touched,
    Used,
    Lies,
    Remote,
}

impl Row {
    const fn name(self) -> &'static str {
        match self {
            Self::Touched => "first touch",
            Self::Used => "used by",
            Self::Lies => "lies on",
            Self::Remote => "remote",
        }
    }

    const fn height(self) -> f64 {
        if matches!(self, Self::Remote) { REMOTE } else { ROW }
    }
}

/// The name of an object, with its rank where several have one of that name.
#[must_use]
pub fn named(analysis: &Analysis, object: &ObjectView) -> String {
    let is_other = |other: &&ObjectView| other.id != object.id && other.name == object.name;
    let rank = analysis.rank_of(object.process).and_then(|rank| rank.rank).filter(|_| object.shared_by.is_none());
    match rank.filter(|_| analysis.objects.iter().find(is_other).is_some()) {
        Some(rank) => format!("{} of rank {rank}", object.name),
        None => object.name.clone(),
    }
}

/// The map of an object for pictures, or the report's own coarse one.
#[must_use]
pub fn map_of(object: &ObjectView, fine: Option<&PageMap>) -> Option<PageMap> {
    fine.cloned().or_else(|| coarse(object)).filter(|map| map.pieces.iter().any(is_known))
}

fn is_known(piece: &Piece) -> bool {
    [piece.toucher, piece.user, piece.home].iter().any(|one| *one != Majority::Unknown)
}

/// A saved report has only the report's map.
fn coarse(object: &ObjectView) -> Option<PageMap> {
    let ObjectMap { users, homes } = &object.map;
    let majority = |value: i64| match value {
        -1 => Majority::Several,
        number => usize::try_from(number).map_or(Majority::Unknown, Majority::One),
    };
    let pieces: Vec<Piece> =
        users.iter().zip(homes).map(|(user, home)| Piece { user: majority(*user), home: majority(*home), ..Piece::default() }).collect();
    let piece_bytes = object.total_bytes.div_ceil(pieces.len().max(1) as u64);
    (!pieces.is_empty()).then_some(PageMap { object: object.id, piece_bytes, pieces, ..PageMap::default() })
}

/// Draws a map, with its table. `index`: of the object in the report.
pub fn draw(html: &mut Markup, analysis: &Analysis, (index, object): (usize, &ObjectView), map: &PageMap, id: &str) {
    draw_plain(html, analysis, object, map, id);
    as_table(html, analysis, (index, object));
}

/// Draws a map.
pub fn draw_plain(html: &mut Markup, analysis: &Analysis, object: &ObjectView, map: &PageMap, id: &str) {
    let shows = |row: Row| match row {
        Row::Touched => map.pieces.iter().any(|piece| piece.toucher != Majority::Unknown),
        Row::Used | Row::Lies => true,
        Row::Remote => map.pieces.iter().any(|piece| piece.remote.is_some()),
    };
    let rows: Vec<Row> = [Row::Touched, Row::Used, Row::Lies, Row::Remote].into_iter().filter(|row| shows(*row)).collect();
    let height = rows.iter().map(|row| row.height() + GAP).sum::<f64>();
    let name = named(analysis, object);
    let label = format!("Page map of {name}. Arrow keys move, plus and minus zoom, 0 shows all.");
    html.within("div", &[("class", "map"), ("id", id), ("data-map", &object.id.to_string())], |html| {
        html.within("div", &[("class", "rows"), ("aria-hidden", "true")], |html| {
            rows.iter().for_each(|row| html.element("span", &[], row.name()));
        });
        html.within("div", &[("class", "view"), ("tabindex", "0"), ("role", "group"), ("aria-label", &label)], |html| {
            let (title, desc) = (format!("{id}-t"), format!("{id}-d"));
            let all = (height + AXIS).to_string();
            let labelled = format!("{title} {desc}");
            html.within("svg", &[("width", "100%"), ("height", &all), ("role", "img"), ("aria-labelledby", &labelled)], |html| {
                html.element("title", &[("id", &title)], &format!("Page map of {name}"));
                html.element("desc", &[("id", &desc)], &description(analysis, object, map));
                html.within("svg", &[("class", "zoom"), ("width", "100%"), ("height", &all)], |html| {
                    let mut top = 0.0;
                    for one in &rows {
                        match one {
                            Row::Remote => remote(html, map, top),
                            other => row(html, analysis, map, *other, top),
                        }
                        top += one.height() + GAP;
                    }
                    axis(html, object.total_bytes, top + AXIS - GAP - 2.0);
                });
            });
        });
        html.element("p", &[("class", "readout"), ("aria-live", "polite"), ("hidden", "hidden")], "");
    });
}

/// What the picture shows, in words.
fn description(analysis: &Analysis, object: &ObjectView, map: &PageMap) -> String {
    let mut parts =
        vec![format!("{} in {} pieces of {}.", format_bytes(object.total_bytes), map.pieces.len(), format_bytes(map.piece_bytes))];
    for (row, verb) in [(Row::Touched, "first touched"), (Row::Used, "used"), (Row::Lies, "lying")] {
        let runs = runs(map, row);
        let mut names: Vec<String> = runs.iter().map(|run| who(analysis, row, run.who)).collect();
        names.dedup();
        let more = names.len().saturating_sub(8);
        names.truncate(8);
        if runs.iter().any(|run| run.who != Majority::Unknown) {
            let more = if more > 0 { format!(", and {more} more changes") } else { String::new() };
            parts.push(format!("From start to end {verb} {}{more}.", names.join(", then ")));
        }
    }
    if let Some((value, range)) = object.remote_fraction.zip(object.remote_interval) {
        parts.push(format!("{} of its accesses are remote {}.", percent(value), interval(range)));
    }
    parts.join(" ")
}

/// Pieces next to each other with the same thread or node.
struct Run {
    first: usize,
    count: usize,
    who: Majority,
}

fn runs(map: &PageMap, row: Row) -> Vec<Run> {
    let value = |piece: &Piece| match row {
        Row::Touched => piece.toucher,
        Row::Used => piece.user,
        Row::Lies | Row::Remote => piece.home,
    };
    let mut list: Vec<Run> = Vec::new();
    for (index, piece) in map.pieces.iter().enumerate() {
        match list.last_mut() {
            Some(run) if run.who == value(piece) => run.count += 1,
            _ => list.push(Run { first: index, count: 1, who: value(piece) }),
        }
    }
    list
}

/// `by thread 3 (node 1)`, `on node 0`, `by several threads`, `not known`.
fn who(analysis: &Analysis, row: Row, who: Majority) -> String {
    match (row, who) {
        (_, Majority::Unknown) => "not known".to_owned(),
        (Row::Lies, Majority::Several) => "on several nodes".to_owned(),
        (_, Majority::Several) => "by several threads".to_owned(),
        (Row::Lies, Majority::One(node)) => format!("on node {}", analysis.node_name(node)),
        (_, Majority::One(thread)) => match analysis.threads.get(thread) {
            Some(view) => format!("by thread {thread} (node {})", analysis.node_name(view.node as usize)),
            None => format!("by thread {thread}"),
        },
    }
}

/// The pattern: that of the node of the thread, or of the memory.
fn class(analysis: &Analysis, row: Row, who: Majority) -> String {
    match (row, who) {
        (_, Majority::Unknown) => "nu".to_owned(),
        (_, Majority::Several) => "ns".to_owned(),
        (Row::Lies, Majority::One(node)) => node_class(node),
        (_, Majority::One(thread)) => analysis.threads.get(thread).map_or_else(|| "ns".to_owned(), |view| node_class(view.node as usize)),
    }
}

fn row(html: &mut Markup, analysis: &Analysis, map: &PageMap, row: Row, top: f64) {
    let (y, height_px) = (top.to_string(), ROW.to_string());
    html.within("g", &[("data-row", row.name()), ("data-top", &y), ("data-height", &height_px)], |html| {
        pieces(html, analysis, map, (row, &y, &height_px));
        labels(html, analysis, map, (row, top + ROW - 6.0));
    });
}

fn pieces(html: &mut Markup, analysis: &Analysis, map: &PageMap, (row, y, height): (Row, &str, &str)) {
    let (runs, all) = (runs(map, row), map.pieces.len() as f64);
    html.within("g", &[("class", "cells")], |html| {
        for run in &runs {
            let (x, width) = (across(run.first as f64 / all), across(run.count as f64 / all));
            let class = class(analysis, row, run.who);
            let attributes = [("class", class.as_str()), ("x", &x), ("y", y), ("width", &width), ("height", height)];
            if runs.len() > MOST_TITLES {
                html.empty("rect", &attributes);
            } else {
                html.within("rect", &attributes, |html| html.element("title", &[], &title(analysis, map, row, run)));
            }
        }
    });
}

fn labels(html: &mut Markup, analysis: &Analysis, map: &PageMap, (row, baseline): (Row, f64)) {
    let all = map.pieces.len() as f64;
    for run in &runs(map, row) {
        let part = run.count as f64 / all;
        let text = match run.who {
            Majority::One(number) if row == Row::Lies && analysis.hosts.len() > 1 => analysis.node_name(number),
            Majority::One(number) => number.to_string(),
            Majority::Several if part >= 0.2 => "several".to_owned(),
            _ => continue,
        };
        let least = (text.len() as f64).max(1.0).mul_add(0.5, 0.5);
        if part >= LABELLED_ZOOMED * least {
            let class = if part >= LABELLED * least { "label" } else { "label close" };
            let (x, y) = (across((run.first as f64 + run.count as f64 / 2.0) / all), baseline.to_string());
            html.element("text", &[("class", class), ("x", &x), ("y", &y), ("text-anchor", "middle")], &text);
        }
    }
}

/// `0 B to 12 MiB: first touched by thread 0 (node 0)`
fn title(analysis: &Analysis, map: &PageMap, row: Row, run: &Run) -> String {
    let bytes = |piece: usize| format_bytes(map.piece_bytes.saturating_mul(piece as u64));
    let verb = match row {
        Row::Touched => "first touched",
        Row::Used => "used",
        Row::Lies | Row::Remote => "lies",
    };
    format!("{} to {}: {verb} {}", bytes(run.first), bytes(run.first + run.count), who(analysis, row, run.who))
}

/// The part of each piece's accesses that is remote, as the height of a bar.
fn remote(html: &mut Markup, map: &PageMap, top: f64) {
    let height = REMOTE;
    let all = map.pieces.len() as f64;
    let (y, tall) = (top.to_string(), height.to_string());
    html.empty("rect", &[("class", "track"), ("x", "0"), ("y", &y), ("width", "100%"), ("height", &tall)]);
    html.within("g", &[("class", "cells"), ("data-row", Row::Remote.name()), ("data-top", &y), ("data-height", &tall)], |html| {
        let mut first = 0;
        let shown = |piece: &Piece| piece.remote.map(|part| (part * height * 2.0).round() / 2.0);
        while first < map.pieces.len() {
            let part = shown(&map.pieces[first]);
            let count = map.pieces[first..].iter().take_while(|piece| shown(piece) == part).count();
            let (x, width) = (across(first as f64 / all), across(count as f64 / all));
            if let Some(tall) = part.filter(|tall| *tall > 0.0) {
                let (y, tall) = ((top + height - tall).to_string(), tall.to_string());
                html.empty("rect", &[("class", "remote"), ("x", &x), ("y", &y), ("width", &width), ("height", &tall)]);
            }
            if part.is_none() {
                html.empty("rect", &[("class", "unseen"), ("x", &x), ("y", &y), ("width", &width), ("height", &height.to_string())]);
            }
            first += count;
        }
    });
}

fn axis(html: &mut Markup, bytes: u64, baseline: f64) {
    let y = baseline.to_string();
    for (part, anchor) in [(0.0, "start"), (0.25, "middle"), (0.5, "middle"), (0.75, "middle"), (1.0, "end")] {
        let class = if part == 0.25 || part == 0.75 { "tick wide" } else { "tick" };
        let text = format_bytes((bytes as f64 * part) as u64);
        html.element("text", &[("class", class), ("x", &across(part)), ("y", &y), ("text-anchor", anchor)], &text);
    }
}

/// The report's map as a table: for who cannot see the picture, and with the figures of the JSON.
fn as_table(html: &mut Markup, analysis: &Analysis, (index, object): (usize, &ObjectView)) {
    let ObjectMap { users, homes } = &object.map;
    if users.is_empty() {
        return;
    }
    html.within("details", &[("class", "as-table")], |html| {
        html.element("summary", &[], "This map as a table");
        html.within("div", &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "The map as a table")], |html| {
            html.within("table", &[], |html| {
                html.element("caption", &[], &format!("{} in {} equal pieces", named(analysis, object), users.len()));
                html.within("tr", &[], |html| {
                    for name in ["piece", "used by thread", "lies on node"] {
                        html.element("th", &[("scope", "col")], name);
                    }
                });
                for (piece, (user, home)) in users.iter().zip(homes).enumerate().take(MOST_ROWS) {
                    html.within("tr", &[], |html| {
                        html.element("th", &[("scope", "row")], &(piece + 1).to_string());
                        for (key, value, is_node) in [("users", *user, false), ("homes", *home, true)] {
                            let pointer = format!("/objects/{index}/map/{key}/{piece}");
                            html.within("td", &[("class", "n")], |html| number(html, analysis, &pointer, value, is_node));
                        }
                    });
                }
            });
        });
    });
}

fn number(html: &mut Markup, analysis: &Analysis, pointer: &str, value: i64, is_node: bool) {
    match usize::try_from(value) {
        Ok(node) if is_node && analysis.hosts.len() > 1 => html.text(&analysis.node_name(node)),
        Ok(number) => html.figure(Document::Report, pointer, Figure::Count(number as u64)),
        Err(_) if value == -1 => html.text("several"),
        Err(_) => html.text("not known"),
    }
}

/// A thread or node as the script has it.
fn who_number(who: Majority) -> i64 {
    match who {
        Majority::Unknown => -2,
        Majority::Several => -1,
        Majority::One(number) => i64::try_from(number).unwrap_or(-2),
    }
}

fn short(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The parts of pieces; equal ones next to each other once, with their number.
fn close(map: &CloseMap) -> Value {
    let run = |run: &[Part]| {
        let part = &run[0];
        json!([
            run.len(),
            who_number(part.toucher),
            who_number(part.user),
            who_number(part.home),
            part.remote.map(short),
            part.remote_interval.map(|[low, high]| [short(low), short(high)]),
            part.samples
        ])
    };
    json!({ "parts": map.parts, "bytes": map.part_bytes, "runs": map.list.chunk_by(PartialEq::eq).map(run).collect::<Vec<_>>() })
}

/// What the script shows of each piece, and of its parts if `parts` of them are allowed; these are taken off.
#[must_use]
pub fn data(analysis: &Analysis, (index, object): (usize, &ObjectView), map: &PageMap, parts: &mut usize) -> Value {
    let shown = map.close.as_ref().filter(|close| close.list.len() <= *parts);
    *parts -= shown.map_or(0, |close| close.list.len());
    let piece = |piece: &Piece| {
        json!([
            who_number(piece.toucher),
            who_number(piece.user),
            who_number(piece.home),
            piece.remote.map(short),
            piece.remote_interval.map(|[low, high]| [short(low), short(high)]),
            (piece.share * 1e5).round() / 1e5,
            piece.samples,
            piece.touched_at,
            piece.used_at
        ])
    };
    json!({
        "name": clean(&named(analysis, object)),
        "object": index,
        "bytes": map.piece_bytes,
        "lines": map.lines.iter().map(|at| clean(&place(at))).collect::<Vec<_>>(),
        "pieces": map.pieces.iter().map(piece).collect::<Vec<_>>(),
        "close": shown.map(close),
        "virtual": analysis.machine.virtual_machine,
    })
}

/// What patterns mean: the nodes of the machine.
pub fn legend(html: &mut Markup, analysis: &Analysis) {
    html.within("ul", &[("class", "legend")], |html| {
        let swatch = |html: &mut Markup, class: &str, text: &str| {
            html.within("li", &[], |html| {
                html.within("svg", &[("width", "18"), ("height", "12"), ("aria-hidden", "true"), ("focusable", "false")], |html| {
                    html.empty("rect", &[("class", class), ("width", "18"), ("height", "12")]);
                });
                html.text(text);
            });
        };
        for node in 0..analysis.machine.nodes.min(super::markup::NODE_PATTERNS) {
            let threads = analysis.threads.iter().filter(|thread| thread.node as usize == node && !thread.idle).count();
            let threads = crate::text::words::count(threads, "busy thread");
            swatch(html, &node_class(node), &format!("node {} ({threads})", analysis.node_name(node)));
        }
        swatch(html, "ns", "several");
        swatch(html, "nu", "not known");
        swatch(html, "remote", "remote accesses");
    });
}
