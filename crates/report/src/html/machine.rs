//! The machine: its nodes with the threads on them and the part of the accesses that their memory gets; arrows for remote accesses.

use super::markup::Markup;
use super::markup::node_class;
use crate::text::words::percent;
use firsttouch_analysis::Analysis;
use firsttouch_model::topology::format_list;
use std::f64::consts::{FRAC_PI_2, TAU};

/// Nodes that are drawn: with more, arrows would cover each other. The matrix shows all.
pub const MOST: usize = 8;
/// More nodes than these are on a ring, so that no arrow passes through another node.
const MOST_IN_ROWS: usize = 4;
/// Arrows of a ring, those of the largest parts.
const MOST_ARROWS: usize = 12;
const GAP: (f64, f64) = (140.0, 90.0);
/// The widest arrow, px: in rows one of all accesses, on a ring that of the largest part.
const WIDEST: f64 = 14.0;
const WIDEST_ON_RING: f64 = 10.0;
/// Smaller parts have no arrow.
const LEAST: f64 = 0.005;
/// Half the size of an arrow's number, with its distance from the widest arrow.
const NUMBER: (f64, f64) = (26.0, 17.0);

/// Where nodes and arrows are, px.
struct Layout {
    nodes: usize,
    /// The size of a node's box.
    of_box: (f64, f64),
    /// Arrows of both directions are this far from the line between two nodes.
    aside: f64,
    /// Where along an arrow its number stands: on a ring, arrows cross in the middle.
    number_at: f64,
}

impl Layout {
    const fn of(nodes: usize) -> Self {
        if nodes <= MOST_IN_ROWS {
            Self { nodes, of_box: (200.0, 84.0), aside: 18.0, number_at: 0.5 }
        } else {
            Self { nodes, of_box: (196.0, 76.0), aside: 7.0, number_at: 0.3 }
        }
    }

    const fn is_ring(&self) -> bool {
        self.nodes > MOST_IN_ROWS
    }

    fn columns(&self) -> usize {
        if self.nodes <= 3 { self.nodes } else { self.nodes.div_ceil(2) }
    }

    /// Half the width and the height of the ring through the middles of the boxes.
    const fn radius(&self) -> (f64, f64) {
        match self.nodes {
            ..7 => (350.0, 230.0),
            7 => (430.0, 260.0),
            _ => (500.0, 270.0),
        }
    }

    /// The middle of a node's box.
    fn middle(&self, node: usize) -> (f64, f64) {
        let (half_width, half_height) = (10.0 + self.of_box.0 / 2.0, 10.0 + self.of_box.1 / 2.0);
        if self.is_ring() {
            // Clockwise from the top, so that the nodes of two sockets are on two sides.
            let angle = ((node as f64 + 0.5) / self.nodes as f64).mul_add(TAU, -FRAC_PI_2);
            let radius = self.radius();
            return (half_width + radius.0 * (1.0 + angle.cos()), half_height + radius.1 * (1.0 + angle.sin()));
        }
        let (column, row) = (node % self.columns(), node / self.columns());
        (half_width + column as f64 * (self.of_box.0 + GAP.0), half_height + row as f64 * (self.of_box.1 + GAP.1))
    }

    fn size(&self) -> (f64, f64) {
        let farthest = |of: &dyn Fn((f64, f64)) -> f64| (0..self.nodes).map(|node| of(self.middle(node))).fold(0.0, f64::max);
        (farthest(&|at| at.0) + self.of_box.0 / 2.0 + 10.0, farthest(&|at| at.1) + self.of_box.1 / 2.0 + 10.0)
    }

    /// The arrow from a node's box to another's: where it starts, its direction, and its length without the point.
    fn arrow(&self, from: usize, to: usize) -> Line {
        let ((x1, y1), (x2, y2)) = (self.middle(from), self.middle(to));
        let distance = (x2 - x1).hypot(y2 - y1);
        let (dx, dy) = ((x2 - x1) / distance, (y2 - y1) / distance);
        let start = (self.of_box.0 / 2.0 / dx.abs().max(1e-9)).min(self.of_box.1 / 2.0 / dy.abs().max(1e-9)) + 2.0;
        let at = (x1 + dx * start - dy * self.aside, y1 + dy * start + dx * self.aside);
        Line { at, direction: (dx, dy), length: distance - 2.0 * start - 10.0 }
    }
}

struct Line {
    at: (f64, f64),
    direction: (f64, f64),
    length: f64,
}

impl Line {
    /// A point along the line and beside it.
    fn point(&self, along: f64, beside: f64) -> (f64, f64) {
        let ((x, y), (dx, dy)) = (self.at, self.direction);
        (x + dx * along - dy * beside, y + dy * along + dx * beside)
    }
}

/// Whether the machine is small enough for a picture.
#[must_use]
pub fn can_draw(analysis: &Analysis) -> bool {
    (2..=MOST).contains(&analysis.machine.nodes) && analysis.matrix.len() == analysis.machine.nodes
}

/// Parts of the accesses by node of the thread and node of the memory, the largest first.
fn flows(analysis: &Analysis) -> Vec<((usize, usize), f64)> {
    let nodes = analysis.machine.nodes;
    let pairs = (0..nodes).flat_map(|from| (0..nodes).filter(move |to| *to != from).map(move |to| (from, to)));
    let mut list: Vec<((usize, usize), f64)> = pairs.map(|(from, to)| ((from, to), analysis.matrix[from][to])).collect();
    list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    list
}

/// The picture as it is.
pub fn draw(html: &mut Markup, analysis: &Analysis) {
    draw_arrows(html, analysis, false);
}

/// The picture for the page, with arrows for its script that may appear in a selected stretch of time.
pub fn draw_for_script(html: &mut Markup, analysis: &Analysis) {
    draw_arrows(html, analysis, true);
}

fn draw_arrows(html: &mut Markup, analysis: &Analysis, has_hidden: bool) {
    let layout = Layout::of(analysis.machine.nodes);
    let flows = flows(analysis);
    let most = if layout.is_ring() { MOST_ARROWS } else { flows.len() };
    let largest = flows.first().map_or(0.0, |flow| flow.1).max(LEAST);
    let scale = if layout.is_ring() { WIDEST_ON_RING / largest } else { WIDEST };
    let (width, height) = layout.size();
    let (box_of_view, width, height) = (format!("0 0 {width:.0} {height:.0}"), format!("{width:.0}"), format!("{height:.0}"));
    let (shown, scale_text) = (most.to_string(), format!("{scale:.3}"));
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Picture of the machine")];
    html.within("div", &region, |html| {
        let attributes = [
            ("class", "machine"),
            ("id", "machine-picture"),
            ("data-most", shown.as_str()),
            ("data-scale", &scale_text),
            ("viewBox", &box_of_view),
            ("width", &width),
            ("height", &height),
            ("role", "img"),
            ("aria-labelledby", "machine-t machine-d"),
        ];
        html.within("svg", &attributes, |html| {
            html.element("title", &[("id", "machine-t")], &format!("{}: nodes, threads and remote accesses", analysis.machine.name));
            html.element("desc", &[("id", "machine-d")], &description(analysis));
            for (index, (nodes, part)) in flows.iter().enumerate() {
                let is_shown = index < most && *part >= LEAST;
                if is_shown || has_hidden {
                    arrow(html, &layout, *nodes, (*part, scale, is_shown));
                }
            }
            (0..layout.nodes).for_each(|node| node_box(html, analysis, &layout, node));
        });
    });
    let left_out = flows.iter().skip(most).filter(|flow| flow.1 >= LEAST).count();
    if left_out > 0 {
        let words = format!("The {MOST_ARROWS} largest flows have an arrow; {left_out} smaller ones have none.");
        html.element("p", &[("class", "hint")], &words);
    }
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

fn node_box(html: &mut Markup, analysis: &Analysis, layout: &Layout, node: usize) {
    let (x, y) = layout.middle(node);
    let size = layout.of_box;
    let (left, top) = (format!("{:.1}", x - size.0 / 2.0), format!("{:.1}", y - size.1 / 2.0));
    let (width, height) = (size.0.to_string(), size.1.to_string());
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
    let node_number = node.to_string();
    let lines = [("name", format!("node {}", analysis.node_name(node))), ("busy", threads), ("held", held)];
    for (index, (class, text)) in lines.iter().enumerate() {
        let (x, y) = (format!("{:.1}", x - size.0 / 2.0 + 22.0), format!("{:.1}", y - 18.0 + 22.0 * index as f64));
        html.element("text", &[("class", class), ("data-node", &node_number), ("x", &x), ("y", &y)], text);
    }
}

/// From the memory's node to the thread's: data flow that way, but who reads asks who accesses whom, so the arrow points to the memory.
fn arrow(html: &mut Markup, layout: &Layout, (from, to): (usize, usize), (part, scale, is_shown): (f64, f64, bool)) {
    let line = layout.arrow(from, to);
    let wide = (scale * part).clamp(1.5, WIDEST);
    let nodes = (from.to_string(), to.to_string());
    let group = [("class", "flow-of"), ("data-from", nodes.0.as_str()), ("data-to", &nodes.1), ("visibility", "hidden")];
    html.within("g", if is_shown { &group[..3] } else { &group }, |html| {
        let turn = line.direction.1.atan2(line.direction.0).to_degrees();
        let place = format!("translate({:.1} {:.1}) rotate({turn:.2})", line.at.0, line.at.1);
        let length = format!("{:.1}", line.length);
        html.within("g", &[("transform", &place)], |html| {
            html.empty("line", &[("class", "arrow"), ("x2", &length), ("stroke-width", &format!("{wide:.1}"))]);
            let head = wide / 2.0 + 4.0;
            let points = format!("{length},{:.1} {length},{head:.1} {:.1},0", -head, line.length + 9.0);
            html.empty("polygon", &[("class", "remote"), ("points", &points)]);
        });
        let beside = line.direction.1.abs() * NUMBER.0 + line.direction.0.abs() * NUMBER.1;
        let (x, y) = line.point(line.length * layout.number_at, beside);
        let (x, y) = (format!("{x:.1}"), format!("{:.1}", y + 4.0));
        html.element("text", &[("class", "flow"), ("x", &x), ("y", &y), ("text-anchor", "middle")], &percent(part));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that no arrow passes through the box of a third node, that boxes do not overlap, and that arrows have room for their points.
    #[test]
    fn arrows_pass_beside_other_nodes() {
        for nodes in 2..=MOST {
            let layout = Layout::of(nodes);
            let (width, height) = layout.of_box;
            for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to) {
                let ((x1, y1), (x2, y2)) = (layout.middle(from), layout.middle(to));
                assert!((x1 - x2).abs() > width || (y1 - y2).abs() > height, "{nodes}: {from} {to}");
                let line = layout.arrow(from, to);
                assert!(line.length > 20.0, "{nodes}: {from} {to}: {}", line.length);
                // In two rows, arrows along a row of three or more would pass the middle one; there are at most two in a row of two rows.
                let others = (0..nodes).filter(|node| ![from, to].contains(node) && (layout.is_ring() || nodes != 3));
                for (x, y) in others.map(|node| layout.middle(node)) {
                    for step in 0..=100 {
                        let (px, py) = line.point((line.length + 9.0) * f64::from(step) / 100.0, 0.0);
                        assert!((px - x).abs() > width / 2.0 || (py - y).abs() > height / 2.0, "{nodes}: {from} to {to}");
                    }
                }
            }
        }
    }
}
