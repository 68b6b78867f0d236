//! A table of a reproduction as lines: columns under their sources, in several parts where they do not fit side by side.

use super::{Cell, Source, Table};
use crate::text::layout::{pad, width};

const GAP: usize = 2;

/// The heading of a table.
pub fn title(table: &Table) -> String {
    let unit = if table.unit.is_empty() { String::new() } else { format!(", {}", table.unit) };
    let from = table.only_source().map_or_else(String::new, |source| format!(" ({})", source.words()));
    format!("{}{unit}{from}", table.title)
}

/// A column as it is printed.
struct Printed {
    source: Source,
    name: String,
    cells: Vec<String>,
    width: usize,
}

/// Header and rows; no line is wider than `most` as long as one column fits beside the labels.
pub fn lines(table: &Table, most: usize, shown: impl Fn(&Cell) -> String) -> Vec<String> {
    let labels = labels(table);
    let indent = labels.first().map_or(0, |line| width(line));
    let mut columns: Vec<Printed> = table
        .columns_with_figures()
        .into_iter()
        .map(|at| {
            let cells: Vec<String> = table.column(at).map(|cell| cell.map_or_else(|| "-".to_owned(), &shown)).collect();
            let (source, name) = (table.columns[at].source, table.columns[at].name.clone());
            let width = cells.iter().map(|cell| width(cell)).max().unwrap_or(0).max(width(&name));
            Printed { source, name, cells, width }
        })
        .collect();
    let mut lines = Vec::new();
    while !columns.is_empty() {
        let rest = columns.split_off(fitting(&columns, most.saturating_sub(indent)));
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(part(table, &labels, &mut columns));
        columns = rest;
    }
    lines
}

/// How many columns fit; at least one.
fn fitting(columns: &[Printed], most: usize) -> usize {
    let mut used = 0;
    let fits = |column: &&Printed| {
        used += GAP + column.width;
        used <= most
    };
    columns.iter().take_while(fits).count().max(1)
}

/// Heads and labels of each row, padded to the same width; numbers to the right.
fn labels(table: &Table) -> Vec<String> {
    let column = |at: usize| -> Vec<String> {
        let texts = || table.rows.iter().map(|row| row.labels.get(at).map_or("", String::as_str));
        let widest = texts().map(width).max().unwrap_or(0).max(width(&table.heads[at]));
        let is_number = texts().all(|text| text.parse::<f64>().is_ok());
        let aligned = |text: &str| if is_number { right(text, widest) } else { pad(text, widest) };
        std::iter::once(aligned(&table.heads[at])).chain(texts().map(aligned)).collect()
    };
    let columns: Vec<Vec<String>> = (0..table.heads.len()).map(column).collect();
    (0..=table.rows.len()).map(|line| columns.iter().map(|column| column[line].as_str()).collect::<Vec<&str>>().join("  ")).collect()
}

fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

fn part(table: &Table, labels: &[String], columns: &mut [Printed]) -> Vec<String> {
    let mut lines = Vec::new();
    let has_names = columns.iter().any(|column| !column.name.is_empty());
    let indent = labels.first().map_or(0, |line| width(line));
    if table.only_source().is_none() || !has_names {
        let groups = groups(columns);
        let line: String = groups.iter().map(|(source, width)| format!("{}{}", " ".repeat(GAP), right(source.words(), *width))).collect();
        lines.push(format!("{}{line}", if has_names { " ".repeat(indent) } else { labels.first().cloned().unwrap_or_default() }));
    }
    let line = |label: &str, cells: &mut dyn Iterator<Item = (&str, usize)>| {
        let cells: String = cells.map(|(cell, width)| format!("{}{}", " ".repeat(GAP), right(cell, width))).collect();
        format!("{label}{cells}")
    };
    for (index, label) in labels.iter().enumerate() {
        let row = index.checked_sub(1);
        if row.is_none() && !has_names {
            continue;
        }
        let text = |column: &'_ Printed| row.map_or(column.name.clone(), |row| column.cells[row].clone());
        let texts: Vec<(String, usize)> = columns.iter().map(|column| (text(column), column.width)).collect();
        lines.push(line(label, &mut texts.iter().map(|(text, width)| (text.as_str(), *width))));
    }
    lines
}

/// Neighbours of one source, and the width they have together; the last column is widened where the word needs it.
fn groups(columns: &mut [Printed]) -> Vec<(Source, usize)> {
    let mut groups: Vec<(Source, usize)> = Vec::new();
    let mut at = 0;
    while at < columns.len() {
        let source = columns[at].source;
        let count = columns[at..].iter().take_while(|column| column.source == source).count();
        let group = &mut columns[at..at + count];
        let together: usize = group.iter().map(|column| column.width).sum::<usize>() + GAP * (count - 1);
        let missing = width(source.words()).saturating_sub(together);
        if let Some(last) = group.last_mut() {
            last.width += missing;
        }
        groups.push((source, together + missing));
        at += count;
    }
    groups
}
