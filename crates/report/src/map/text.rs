//! A map as text. As in the slides, rows are nodes of the memory and columns are nodes of the CPUs.

use crate::topology::table::fold;
use firsttouch_experiments::map::{Best, Map, PairTable};
use firsttouch_model::format_bytes;
use std::fmt::Write;

/// Sentences have lines of at most `most` columns; tables have a column for each node.
#[must_use]
pub fn map_text(map: &Map, most: usize) -> String {
    let text = all(map);
    let is_of_table = |line: &&str| line.contains("  ");
    let folded = |line: &str| match is_of_table(&line) {
        true => line.to_owned(),
        false => fold(line, most).iter().map(|part| part.trim_end()).collect::<Vec<&str>>().join("\n"),
    };
    text.lines().map(folded).collect::<Vec<String>>().join("\n") + "\n"
}

fn all(map: &Map) -> String {
    let threads: Vec<String> = map.cpu_nodes.iter().zip(&map.threads).map(|(node, threads)| format!("{threads} on node {node}")).collect();
    // Writing to a String cannot fail.
    let mut out =
        format!("{}\nThreads: {}; arrays of {}; huge pages requested.\n", map.machine, threads.join(", "), format_bytes(map.array_bytes));
    for table in &map.tables {
        one(&mut out, map, table);
    }
    curves(&mut out, map);
    for note in &map.notes {
        let _ = writeln!(out, "\n{note}");
    }
    out
}

fn one(out: &mut String, map: &Map, table: &PairTable) {
    let _ = writeln!(out, "\n{}, {} ({})", table.name, table.unit, table.about);
    let _ = write!(out, "{:<14}", "memory \\ CPUs");
    for node in &map.cpu_nodes {
        let _ = write!(out, "{node:>9}");
    }
    let _ = writeln!(out);
    for memory in &map.memory_nodes {
        let _ = write!(out, "{memory:<14}");
        for cpu in &map.cpu_nodes {
            let value = table.cell(*memory, *cpu).and_then(|cell| cell.best);
            let _ = write!(out, "{:>9}", value.map_or("-".to_owned(), |best| format!("{:.1}", best.value)));
        }
        let _ = writeln!(out);
    }
    if let Some(spread) = table.spread() {
        let runs = table.cells.iter().filter_map(|cell| cell.best.map(|best| best.runs)).max().unwrap_or(0);
        let over =
            if spread > map.spread_limit { format!(": more than the requested {:.1} %", map.spread_limit * 100.0) } else { String::new() };
        let _ = writeln!(out, "spread at most {:.1} % in up to {runs} runs{over}", spread * 100.0);
    }
    for cell in &table.cells {
        if let Some(why) = &cell.failed {
            let _ = writeln!(out, "CPUs of node {}, memory of node {}: {why}", cell.cpu_node, cell.memory_node);
        }
    }
}

fn curves(out: &mut String, map: &Map) {
    let Some(node) = map.curve_node else { return };
    let number = |best: Option<Best>| best.map_or("-".to_owned(), |best| format!("{:.1}", best.value));
    for points in map.saturation.chunk_by(|a, b| a.kernel == b.kernel) {
        let _ = writeln!(out, "\nnode {node}, {} by number of threads\n{:>8}{:>10}", points[0].kernel, "threads", "GB/s");
        for point in points {
            let _ = writeln!(out, "{:>8}{:>10}", point.threads, number(point.gb_per_s));
        }
    }
    if map.one_thread_remote.is_some() {
        let _ = writeln!(out, "one thread reads {} GB/s from the nearest other node", number(map.one_thread_remote));
    }
    if !map.loaded_latency.is_empty() {
        let _ = writeln!(out, "\nlatency on node {node} while other threads read\n{:>8}{:>10}{:>10}", "threads", "GB/s", "ns");
        for point in &map.loaded_latency {
            let _ = writeln!(out, "{:>8}{:>10}{:>10}", point.threads, number(point.gb_per_s), number(point.latency_ns));
        }
    }
}
