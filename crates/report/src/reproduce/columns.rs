//! A table of a reproduction as text: columns grouped by source, in several parts if they do not fit side by side.

use super::source_words;
use crate::text::layout::{pad, width};
use firsttouch_experiments::reproduce::{ResultCell, ResultTable, Source};

const GAP: usize = 2;

/// The heading of a table.
pub fn title(table: &ResultTable) -> String {
    let unit = if table.unit.is_empty() { String::new() } else { format!(", {}", table.unit) };
    let from = table.only_source().map_or_else(String::new, |source| format!(" ({})", source_words(source)));
    format!("{}{unit}{from}", table.title)
}

/// A column as text.
struct Printed {
    source: Source,
    name: String,
    cells: Vec<String>,
    width: usize,
}

/// Header and rows. No line is wider than `most` columns, provided that one column fits beside the labels.
pub fn lines(table: &ResultTable, most: usize, shown: impl Fn(&ResultCell) -> String) -> Vec<String> {
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

/// How many columns fit side by side, with the names of their sources above them; at least one.
fn fitting(columns: &[Printed], most: usize) -> usize {
    let fits = |count: &usize| {
        let together: usize =
            columns[..*count].chunk_by(|one, other| one.source == other.source).map(|group| GAP + group_width(group)).sum();
        together <= most
    };
    (1..=columns.len()).take_while(fits).last().unwrap_or(1)
}

/// The width of adjacent columns of one source, or of the source's name if that is wider.
fn group_width(group: &[Printed]) -> usize {
    let columns: usize = group.iter().map(|column| GAP + column.width).sum();
    let word = group.first().map_or(0, |column| width(source_words(column.source)));
    columns.saturating_sub(GAP).max(word)
}

/// The labels of the header and of each row, padded to equal width; numbers are aligned right.
fn labels(table: &ResultTable) -> Vec<String> {
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

fn part(table: &ResultTable, labels: &[String], columns: &mut [Printed]) -> Vec<String> {
    let mut lines = Vec::new();
    let has_names = columns.iter().any(|column| !column.name.is_empty());
    let indent = labels.first().map_or(0, |line| width(line));
    if table.only_source().is_none() || !has_names {
        let groups = groups(columns);
        let line: String =
            groups.iter().map(|(source, width)| format!("{}{}", " ".repeat(GAP), right(source_words(*source), *width))).collect();
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

/// The groups of adjacent columns of one source, with their total width. The last column of a group is widened if the source's name needs
/// it.
fn groups(columns: &mut [Printed]) -> Vec<(Source, usize)> {
    let mut groups = Vec::new();
    for group in columns.chunk_by_mut(|one, other| one.source == other.source) {
        let together = group_width(group);
        let columns: usize = group.iter().map(|column| GAP + column.width).sum();
        if let Some(last) = group.last_mut() {
            last.width += together + GAP - columns;
            groups.push((last.source, together));
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_experiments::reproduce::{Drawing, ResultColumn, ResultRow};

    fn table() -> ResultTable {
        let column = |source, name: &str| ResultColumn { source, name: name.to_owned() };
        let row = |label: &str, values: [f64; 2]| ResultRow {
            labels: vec![label.to_owned(), "8".to_owned()],
            cells: values
                .map(|value| Some(ResultCell::published(value)))
                .into_iter()
                .chain([None, ResultCell::measured(&[1.0, 2.0])])
                .collect(),
        };
        ResultTable {
            title: "time".to_owned(),
            unit: "s".to_owned(),
            heads: vec!["init".to_owned(), "threads".to_owned()],
            columns: vec![
                column(Source::Published, "m=1"),
                column(Source::Published, "m=2"),
                column(Source::Model, "m=1"),
                column(Source::Measured, "m=3"),
            ],
            rows: vec![row("serial", [0.73, 2.98]), row("parallel", [0.5, 12.5])],
            drawing: Drawing::None,
        }
    }

    fn shown(cell: &ResultCell) -> String {
        cell.value().to_string()
    }

    /// Check that columns are below their source, that a column without figures is left out, and that the remaining columns follow below.
    #[test]
    fn columns_stand_under_their_source() {
        let expected = [
            "                    published  measured here",
            "init      threads   m=1   m=2            m=3",
            "serial          8  0.73  2.98            1.5",
            "parallel        8   0.5  12.5            1.5",
        ];
        assert_eq!(lines(&table(), 60, shown), expected);
        let narrow = lines(&table(), 34, shown);
        assert_eq!(
            (narrow.len(), narrow[1].as_str(), narrow[6].as_str()),
            (9, "init      threads   m=1   m=2", "init      threads            m=3")
        );
        assert!(narrow.iter().all(|line| width(line) <= 34), "{narrow:?}");
        // At least one column at a time.
        assert_eq!(lines(&table(), 1, shown).len(), 14);
    }

    /// Check that a source shared by all columns is named once, in the title.
    #[test]
    fn a_common_source_is_in_the_title() {
        let mut table = table();
        assert_eq!(title(&table), "time, s");
        table.columns.truncate(2);
        assert_eq!(title(&table), "time, s (published)");
        assert_eq!(lines(&table, 60, shown)[0], "init      threads   m=1   m=2");
    }
}
