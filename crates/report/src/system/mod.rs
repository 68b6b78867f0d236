//! Counters, processes, balancing, machines and the model's errors, as text and JSON.

mod balancing;
mod machines;
mod maps;
mod migrate;
mod ps;
mod stat;
mod validation;

pub use balancing::{BalancingJson, MeasuredJson, balancing_text, measured_text};
pub use machines::{MachineJson, MachinesJson, machine_text, machines_text};
pub use maps::{MapsJson, MapsText, maps_text};
pub use migrate::{MigrateJson, MigrateTarget, NotMoved, migrate_text};
pub use ps::{PsJson, ps_text};
pub use stat::{Span, StatJson, WatchTable, stat_text};
pub use validation::{validation_markdown, validation_text};

use crate::text::Style;
use crate::text::layout::{GLUE, clean};
use crate::text::paint::Paint;
use crate::topology::table::{Align, fold, headed_table, table};
use firsttouch_model::format_bytes;
use std::collections::BTreeMap;

/// Collects the lines of a text.
pub(crate) struct Lines {
    style: Style,
    lines: Vec<String>,
}

impl Lines {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, lines: Vec::new() }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.gap();
        for line in fold(text, self.style.width) {
            self.lines.push(self.style.paint(Paint::Bold, line.trim_end()));
        }
    }

    pub(crate) fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(String::new());
        }
    }

    pub(crate) fn sentence(&mut self, text: &str) {
        self.lines.extend(fold(&clean(text), self.style.width).into_iter().map(|line| line.trim_end().to_owned()));
    }

    /// A sentence of which each line begins with `indent`.
    pub(crate) fn indented(&mut self, text: &str, indent: &str) {
        let lines = fold(&clean(text), self.style.width.saturating_sub(indent.len()));
        self.lines.extend(lines.into_iter().map(|line| format!("{indent}{}", line.trim_end())));
    }

    /// Adds a line that already has its layout and colours.
    pub(crate) fn line(&mut self, line: &str) {
        self.lines.push(line.trim_end().to_owned());
    }

    pub(crate) fn width(&self) -> usize {
        self.style.width
    }

    pub(crate) fn table(&mut self, rows: &[Vec<String>], aligns: &[Align]) {
        self.lines.extend(table(rows, aligns, self.style.width));
    }

    /// A table whose first row has the names of the columns.
    pub(crate) fn headed_table(&mut self, rows: &[Vec<String>], aligns: &[Align]) {
        self.lines.extend(headed_table(rows, aligns, self.style.width));
    }

    fn doubts(&mut self, doubts: &[String]) {
        if doubts.is_empty() {
            return;
        }
        self.heading("Doubts");
        let rows: Vec<Vec<String>> = doubts.iter().map(|doubt| vec!["  -".to_owned(), clean(doubt)]).collect();
        self.table(&rows, &[Align::Left, Align::Left]);
    }

    pub(crate) fn text(self) -> String {
        let mut text = self.lines.join("\n").replace(GLUE, " ");
        text.push('\n');
        text
    }
}

pub(crate) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn known<T>(value: Option<T>, word: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "?".to_owned(), word)
}

/// Bytes by node: `node 0 800 MiB (67 %), node 1 400 MiB (33 %)`.
fn by_node(nodes: &BTreeMap<u32, u64>) -> String {
    let sum: f64 = nodes.values().map(|bytes| *bytes as f64).sum();
    let share = |bytes: u64| if sum > 0.0 { format!(" ({:.0} %)", 100.0 * bytes as f64 / sum) } else { String::new() };
    let words: Vec<String> = nodes
        .iter()
        .filter(|(_, bytes)| **bytes > 0)
        .map(|(node, bytes)| format!("node {node} {}{}", format_bytes(*bytes), share(*bytes)))
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// Page counts by node as shares: `node 0 67 %, node 1 33 %`.
fn shares(pages: &BTreeMap<u32, u64>) -> String {
    let sum: u64 = pages.values().sum();
    let words: Vec<String> =
        pages.iter().map(|(node, pages)| format!("node {node} {:.0} %", 100.0 * *pages as f64 / sum.max(1) as f64)).collect();
    if words.is_empty() { "not present".to_owned() } else { words.join(", ") }
}
