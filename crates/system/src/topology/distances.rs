//! Distances between nodes: sys/devices/system/node/nodeN/distance, a row of the firmware's SLIT.

use crate::files::{Reader, short};
use firsttouch_model::topology::{Distances, Node};

/// The SLIT gives a node 10 to its own memory, and 255 to what it cannot reach (ACPI, 5.2.17).
const LOCAL: u32 = 10;
const UNREACHABLE: u32 = 255;

pub fn read(reader: &mut Reader, nodes: &[Node]) -> Option<Distances> {
    let mut matrix = Vec::with_capacity(nodes.len());
    for (place, node) in nodes.iter().enumerate() {
        let file = format!("sys/devices/system/node/node{}/distance", node.id);
        let Some(text) = reader.text(&file) else {
            // Kernels without NUMA support have no such files for their one node.
            if !matrix.is_empty() {
                reader.doubt(&file, "cannot be read; the distances are not shown");
            }
            return None;
        };
        let row: Option<Vec<u32>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        let Some(row) = row else {
            reader.doubt(&file, format_args!("expected distances such as 10 21, found {}", short(&text)));
            return None;
        };
        if row.len() != nodes.len() {
            reader.doubt(
                &file,
                format_args!("has {} distances, but {} nodes are online; the distances are not shown", row.len(), nodes.len()),
            );
            return None;
        }
        check(reader, &file, node.id, &row, place);
        matrix.push(row);
    }
    (!matrix.is_empty()).then(|| Distances { nodes: nodes.iter().map(|node| node.id).collect(), matrix })
}

/// Firmware often gets these wrong: show the values, with a doubt.
fn check(reader: &mut Reader, file: &str, node: u32, row: &[u32], place: usize) {
    if row.get(place).is_some_and(|own| *own != LOCAL) {
        reader.doubt(file, format_args!("gives node {node} the distance {} to itself instead of {LOCAL}", row[place]));
    }
    if let Some(distance) = row.iter().find(|distance| **distance < LOCAL || **distance > UNREACHABLE) {
        reader.doubt(file, format_args!("has the distance {distance}; distances are {LOCAL} to {UNREACHABLE}"));
    }
}
