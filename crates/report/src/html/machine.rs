//! The machine: its nodes with the threads on them and the part of the accesses that their memory gets; arrows for remote accesses.

use super::markup::Markup;
use super::markup::node_class;
use crate::text::words::percent;
use firsttouch_analysis::Analysis;
use firsttouch_model::topology::format_list;

/// Nodes that are drawn: arrows between more of them would cross. The matrix shows all.
const MOST: usize = 4;
const BOX: (f64, f64) = (200.0, 84.0);
const GAP: (f64, f64) = (140.0, 90.0);
/// The widest arrow, px.
const WIDEST: f64 = 14.0;
/// Smaller parts have no arrow.
const LEAST: f64 = 0.005;

/// Whether the machine is small enough for a picture.
#[must_use]
pub fn can_draw(analysis: &Analysis) -> bool {
    (2..=MOST).contains(&analysis.machine.nodes) && analysis.matrix.len() == analysis.machine.nodes
}

fn columns(nodes: usize) -> usize {
    if nodes <= 3 { nodes } else { nodes.div_ceil(2) }
}

/// The middle of a node's box.
fn middle(node: usize, nodes: usize) -> (f64, f64) {
    let (column, row) = (node % columns(nodes), node / columns(nodes));
    (10.0 + BOX.0 / 2.0 + column as f64 * (BOX.0 + GAP.0), 10.0 + BOX.1 / 2.0 + row as f64 * (BOX.1 + GAP.1))
}

pub fn draw(html: &mut Markup, analysis: &Analysis) {
    let nodes = analysis.machine.nodes;
    let (width, height) = (20.0 + columns(nodes) as f64 * (BOX.0 + GAP.0) - GAP.0, middle(nodes - 1, nodes).1 + BOX.1 / 2.0 + 10.0);
    let box_of_view = format!("0 0 {width} {height}");
    let (width, height) = (width.to_string(), height.to_string());
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Picture of the machine")];
    html.within("div", &region, |html| {
        let attributes = [
            ("class", "machine"),
            ("viewBox", box_of_view.as_str()),
            ("width", &width),
            ("height", &height),
            ("role", "img"),
            ("aria-labelledby", "machine-t machine-d"),
        ];
        html.within("svg", &attributes, |html| {
            html.element("title", &[("id", "machine-t")], &format!("{}: nodes, threads and remote accesses", analysis.machine.name));
            html.element("desc", &[("id", "machine-d")], &description(analysis));
            for from in 0..nodes {
                for to in (0..nodes).filter(|to| *to != from) {
                    arrow(html, (from, to), nodes, analysis.matrix[from][to]);
                }
            }
            (0..nodes).for_each(|node| node_box(html, analysis, node));
        });
    });
}

fn description(analysis: &Analysis) -> String {
    let mut words = Vec::new();
    for (from, row) in analysis.matrix.iter().enumerate() {
        for (to, part) in row.iter().enumerate().filter(|(to, part)| *to != from && **part >= LEAST) {
            words.push(format!("{} of the accesses go from threads on node {from} to memory on node {to}", percent(*part)));
        }
    }
    if words.is_empty() { "No remote accesses.".to_owned() } else { format!("{}.", words.join("; ")) }
}

fn node_box(html: &mut Markup, analysis: &Analysis, node: usize) {
    let (x, y) = middle(node, analysis.machine.nodes);
    let (left, top) = ((x - BOX.0 / 2.0).to_string(), (y - BOX.1 / 2.0).to_string());
    let (width, height) = (BOX.0.to_string(), BOX.1.to_string());
    html.empty("rect", &[("class", "box"), ("x", &left), ("y", &top), ("width", &width), ("height", &height), ("rx", "4")]);
    let stripe =
        [("class", node_class(node)), ("x", left.clone()), ("y", top.clone()), ("width", "10".to_owned()), ("height", height.clone())];
    let stripe: Vec<(&str, &str)> = stripe.iter().map(|(name, value)| (*name, value.as_str())).collect();
    html.empty("rect", &stripe);
    let threads: Vec<u32> = analysis
        .threads
        .iter()
        .filter(|thread| thread.node as usize == node && !thread.idle)
        .filter_map(|thread| u32::try_from(thread.index).ok())
        .collect();
    let list = format_list(&threads);
    let threads = match threads.len() {
        0 => "no busy threads".to_owned(),
        _ if list.len() > 18 => format!("{} threads", threads.len()),
        1 => format!("thread {list}"),
        _ => format!("threads {list}"),
    };
    let held: f64 = analysis.matrix.iter().map(|row| row[node]).sum();
    let is_seen = analysis.matrix.iter().flatten().any(|part| *part > 0.0);
    let held = if is_seen { format!("{} of accesses end here", percent(held)) } else { String::new() };
    let lines = [("name", format!("node {}", analysis.node_name(node))), ("", threads), ("", held)];
    for (index, (class, text)) in lines.iter().enumerate() {
        let (x, y) = ((x - BOX.0 / 2.0 + 22.0).to_string(), (y - 18.0 + 22.0 * index as f64).to_string());
        html.element("text", &[("class", class), ("x", &x), ("y", &y)], text);
    }
}

/// From the memory's node to the thread's: data flow that way, but who reads asks who accesses whom, so the arrow points to the memory.
fn arrow(html: &mut Markup, (from, to): (usize, usize), nodes: usize, part: f64) {
    if part < LEAST {
        return;
    }
    let ((x1, y1), (x2, y2)) = (middle(from, nodes), middle(to, nodes));
    let length = (x2 - x1).hypot(y2 - y1);
    let (dx, dy) = ((x2 - x1) / length, (y2 - y1) / length);
    // Both directions side by side.
    let (ox, oy) = (-dy * 18.0, dx * 18.0);
    let reach = |dx: f64, dy: f64| (BOX.0 / 2.0 / dx.abs().max(1e-9)).min(BOX.1 / 2.0 / dy.abs().max(1e-9));
    let start = reach(dx, dy) + 2.0;
    let end = length - start - 10.0;
    let at = |along: f64| (x1 + dx * along + ox, y1 + dy * along + oy);
    let ((ax, ay), (bx, by)) = (at(start), at(end));
    let wide = (WIDEST * part).max(1.5);
    let points = {
        let head = wide / 2.0 + 4.0;
        let (tx, ty) = at(end + 9.0);
        format!("{:.1},{:.1} {:.1},{:.1} {tx:.1},{ty:.1}", bx - dy * head, by + dx * head, bx + dy * head, by - dx * head)
    };
    let width = format!("{wide:.1}");
    let coordinates = [ax, ay, bx, by].map(|value| format!("{value:.1}"));
    let [ax, ay, bx, by] = &coordinates;
    html.empty("line", &[("class", "arrow"), ("x1", ax), ("y1", ay), ("x2", bx), ("y2", by), ("stroke-width", &width)]);
    html.empty("polygon", &[("class", "remote"), ("points", &points)]);
    let (mx, my) = at((start + end) / 2.0);
    let side = 8.0 + wide / 2.0;
    let (mx, my) = (format!("{:.1}", mx - dy * side), format!("{:.1}", my + dx * side + 4.0));
    html.element("text", &[("class", "flow"), ("x", &mx), ("y", &my), ("text-anchor", "middle")], &percent(part));
}
