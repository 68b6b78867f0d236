//! Distances: nodes on a circle with links between them, and the matrix.
//!
//! Firmware reports distances, not physical links. The closest pairs get the thickest lines; larger distances get thinner and paler lines.

use crate::canvas::{Anchor, Area, Canvas};
use firsttouch_model::topology::{Distances, Topology};
use std::collections::BTreeSet;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

/// Up to this many nodes, each link has a label with its distance; with more, labels would overlap, so colours show the distance.
const MOST_LABELLED: usize = 4;
/// Above this many nodes only the closest links are drawn.
const MOST_FULL: usize = 16;
/// Colour and width (px) of links by closeness; larger distances are drawn like the last.
const CLASSES: [(&str, f64); 4] = [("#1f4e79", 4.0), ("#5b8fc7", 2.2), ("#a3bfdd", 1.4), ("#ccd3da", 1.0)];
const NODE_RADIUS: f64 = 17.0;
const CELL: (f64, f64) = (32.0, 22.0);

pub fn draw(canvas: &mut Canvas, topology: &Topology, (x, y): (f64, f64)) {
    let Some(distances) = &topology.distances else { return };
    let count = distances.nodes.len();
    canvas.text((x, y), Anchor::Start, "head", "Distances");
    canvas.text((x + 90.0, y), Anchor::Start, "faint", "from the firmware; 10 = local memory");
    // The space between neighbours on the circle, for a node and a label.
    let radius = (count as f64 * (2.0 * NODE_RADIUS + 26.0) / TAU).max(64.0);
    // Two nodes form a line beside the two rows of the matrix.
    let half = if count == 2 { 1.5 * CELL.1 } else { radius };
    let centre = (x + radius + NODE_RADIUS + 4.0, y + 22.0 + half + NODE_RADIUS);
    let classes = classes(distances);
    circle(canvas, distances, &classes, centre, radius);
    let right = centre.0 + radius + NODE_RADIUS + 50.0;
    matrix(canvas, distances, (right, y + 22.0));
    if count > MOST_LABELLED {
        key(canvas, &classes, (right + 32.0 + count as f64 * CELL.0 + 40.0, y + 40.0));
    }
}

/// The distances between different nodes, the closest first.
fn classes(distances: &Distances) -> Vec<u32> {
    let pairs = distances
        .matrix
        .iter()
        .enumerate()
        .flat_map(|(from, row)| row.iter().enumerate().filter(move |(to, _)| *to != from).map(|(_, distance)| *distance));
    pairs.collect::<BTreeSet<u32>>().into_iter().collect()
}

fn look(classes: &[u32], distance: u32) -> (&'static str, f64) {
    let class = classes.iter().position(|one| *one == distance).unwrap_or(0);
    CLASSES[class.min(CLASSES.len() - 1)]
}

fn circle(canvas: &mut Canvas, distances: &Distances, classes: &[u32], centre: (f64, f64), radius: f64) {
    let count = distances.nodes.len();
    // Two nodes lie side by side; with more, the first is at the top.
    let start = if count == 2 { PI } else { -FRAC_PI_2 };
    let place = |index: usize| {
        let angle = start + TAU * index as f64 / count as f64;
        (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin())
    };
    let mut links: Vec<(u32, usize, usize)> = Vec::new();
    for from in 0..count {
        for to in from + 1..count {
            let there = distances.matrix[from][to];
            links.push((there.min(distances.matrix[to][from]), from, to));
        }
    }
    // Draw the closest last, on top.
    links.sort_by_key(|(distance, ..)| std::cmp::Reverse(*distance));
    for &(distance, from, to) in &links {
        if count <= MOST_FULL || classes.first() == Some(&distance) {
            let (colour, width) = look(classes, distance);
            canvas.line(place(from), place(to), colour, width);
        }
    }
    if count <= MOST_LABELLED {
        for &(_, from, to) in &links {
            let (there, back) = (distances.matrix[from][to], distances.matrix[to][from]);
            let text = if there == back { there.to_string() } else { format!("{there} / {back}") };
            let ((x1, y1), (x2, y2)) = (place(from), place(to));
            // Diagonals cross in the middle, so their labels are off centre.
            let part = if to - from == 2 { 0.3 } else { 0.5 };
            let (x, y) = (x1 + (x2 - x1) * part, y1 + (y2 - y1) * part);
            let width = crate::canvas::text_width(&text) + 6.0;
            canvas.rectangle(Area { x: x - width / 2.0, y: y - 8.0, width, height: 16.0 }, "white", "#bbb");
            canvas.text((x, y + 4.0), Anchor::Middle, "", &text);
        }
    }
    for (index, node) in distances.nodes.iter().enumerate() {
        let (x, y) = place(index);
        canvas.circle((x, y), NODE_RADIUS, "#e8eef7", "#5b76a3");
        canvas.text((x, y + 4.5), Anchor::Middle, "head", &node.to_string());
    }
}

fn matrix(canvas: &mut Canvas, distances: &Distances, (x, y): (f64, f64)) {
    let (width, height) = CELL;
    let furthest = distances.matrix.iter().flatten().copied().max().unwrap_or(10).max(11);
    for (row, (node, line)) in distances.nodes.iter().zip(&distances.matrix).enumerate() {
        let top = y + height * (row + 1) as f64;
        canvas.text((x + 22.0, top + 15.0), Anchor::End, "head", &node.to_string());
        canvas.text((x + 32.0 + width * (row as f64 + 0.5), y + 15.0), Anchor::Middle, "head", &node.to_string());
        for (column, distance) in line.iter().enumerate() {
            let part = f64::from(distance.saturating_sub(10)) / f64::from(furthest - 10);
            // From white to a warm tone on which black text is readable.
            let tone = |full: f64| (255.0 - (255.0 - full) * part.clamp(0.0, 1.0)).round() as u8;
            let fill = format!("#{:02x}{:02x}{:02x}", tone(244.0), tone(178.0), tone(112.0));
            let cell = Area { x: x + 32.0 + width * column as f64, y: top, width, height };
            canvas.rectangle(cell, &fill, "#aaa");
            canvas.text((cell.x + width / 2.0, top + 15.0), Anchor::Middle, "", &distance.to_string());
        }
    }
}

/// The legend of colours.
fn key(canvas: &mut Canvas, classes: &[u32], (x, y): (f64, f64)) {
    for (place, (colour, width)) in CLASSES.iter().enumerate().take(classes.len()) {
        let y = y + 20.0 * place as f64;
        canvas.line((x, y), (x + 30.0, y), colour, *width);
        let further = place + 1 == CLASSES.len() && classes.len() > CLASSES.len();
        let text = if further { format!("{} and more", classes[place]) } else { classes[place].to_string() };
        canvas.text((x + 38.0, y + 4.0), Anchor::Start, "", &text);
    }
}
