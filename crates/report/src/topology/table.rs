//! Columns of text.

use crate::text::layout::{pad, width};

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// The last column of a table has at least this width.
const LEAST_LAST: usize = 16;
/// Space between columns.
const GAP: usize = 2;

/// Lines of a table. The last column is folded where it would exceed `most` columns. If the others leave no room for it, each row is a paragraph.
pub fn table(rows: &[Vec<String>], aligns: &[Align], most: usize) -> Vec<String> {
    let (widths, indent) = widths(rows, aligns);
    if !fits(rows, aligns, most) {
        return rows.iter().flat_map(|row| paragraph(row, row.iter().skip(1).cloned(), most)).collect();
    }
    let last = aligns.len().saturating_sub(1);
    let mut lines = Vec::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, columns), align) in row.iter().zip(&widths).zip(aligns) {
            line += &match align {
                Align::Left => pad(cell, *columns),
                Align::Right => format!("{}{cell}", " ".repeat(columns.saturating_sub(width(cell)))),
            };
            line += "  ";
        }
        let cell = row.get(last).map_or("", String::as_str);
        for (index, part) in fold(cell, most.saturating_sub(indent).max(LEAST_LAST)).into_iter().enumerate() {
            if index > 0 {
                line = " ".repeat(indent);
            }
            lines.push(format!("{line}{part}").trim_end().to_owned());
        }
    }
    lines
}

/// As [`table`], of rows whose first one has the names of the columns: they stand before the figures if each row is a paragraph.
pub fn headed_table(rows: &[Vec<String>], aligns: &[Align], most: usize) -> Vec<String> {
    let Some((header, figures)) = rows.split_first().filter(|_| !fits(rows, aligns, most)) else { return table(rows, aligns, most) };
    let named = |row: &Vec<String>| {
        let cells = row.iter().zip(header).skip(1).filter(|(cell, _)| !cell.trim().is_empty());
        paragraph(row, cells.map(|(cell, name)| format!("{} {}", name.trim(), cell.trim())), most)
    };
    figures.iter().flat_map(named).collect()
}

/// The widths of all columns but the last, and their sum with the space behind each.
fn widths(rows: &[Vec<String>], aligns: &[Align]) -> (Vec<usize>, usize) {
    let of_column = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..aligns.len().saturating_sub(1)).map(of_column).collect();
    let sum = widths.iter().map(|width| width + GAP).sum();
    (widths, sum)
}

/// Whether the columns fit. Of two, the first is short.
fn fits(rows: &[Vec<String>], aligns: &[Align], most: usize) -> bool {
    let last = rows.iter().filter_map(|row| row.get(aligns.len().saturating_sub(1))).map(|cell| width(cell)).max().unwrap_or(0);
    aligns.len() < 3 || widths(rows, aligns).1 + last.min(LEAST_LAST) <= most
}

/// The first cell of a row on a line, and the others below it, indented. None of them is broken unless it is wider than a line.
fn paragraph(row: &[String], others: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let first = row.first().map_or("", String::as_str);
    let indent = first.len() - first.trim_start().len() + GAP;
    let mut groups = vec![String::new()];
    for cell in others.map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()) {
        match groups.last_mut() {
            Some(line) if line.is_empty() => *line = cell,
            Some(line) if indent + width(line) + GAP + width(&cell) <= most => *line += &format!("  {cell}"),
            _ => groups.push(cell),
        }
    }
    let parts = groups.iter().flat_map(|group| fold(group, most.saturating_sub(indent).max(1)));
    let others = parts.filter(|part| !part.trim().is_empty()).map(|part| format!("{}{}", " ".repeat(indent), part.trim_end()));
    [first.trim_end().to_owned()].into_iter().chain(others).collect()
}

/// A text in lines of at most `most` columns, broken after spaces, and words that are wider (lists of CPUs) after commas; returns at least one line.
pub fn fold(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ').flat_map(|word| split_wide(word, most)) {
        match lines.last_mut() {
            Some(line) if line.is_empty() || width(line) + width(word.trim_end()) <= most => *line += word,
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The word, or its parts up to each comma if it is wider than a line.
fn split_wide(word: &str, most: usize) -> Vec<&str> {
    if width(word.trim_end()) <= most { vec![word] } else { word.split_inclusive(',').collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check alignment, and that a long last column is folded.
    #[test]
    fn columns_line_up() {
        let rows = [vec!["node".to_owned(), "CPUs".to_owned()], vec!["10".to_owned(), "0-1,4-5,8-9,12-13,16".to_owned()]];
        let lines = table(&rows, &[Align::Right, Align::Left], 22);
        assert_eq!(lines, ["node  CPUs", "  10  0-1,4-5,8-9,", "      12-13,16"]);
    }

    /// Check that numbers stay whole, and that long lists are broken.
    #[test]
    fn folding_keeps_numbers() {
        assert_eq!(fold("from 1,172 addresses", 8), ["from ", "1,172 ", "addresses"]);
        assert_eq!(fold("on 0-1,4-5,8-9,12-13", 10), ["on 0-1,", "4-5,8-9,", "12-13"]);
    }

    /// Check that a table that is wider than the terminal has a paragraph for each row, with the names of the columns, and that nothing exceeds the
    /// width.
    #[test]
    fn narrow_tables_are_paragraphs() {
        let row = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["placement", "time", "95 % interval", "controller", "link"]),
            row(["  as is", "1.60x", "[1.4, 1.8]", "node 0 63 %", "0->1 62 %, which is the busiest of all links there"]),
        ];
        let aligns = [Align::Left, Align::Right, Align::Left, Align::Left, Align::Left];
        let lines = headed_table(&rows, &aligns, 44);
        assert_eq!(
            lines,
            [
                "  as is",
                "    time 1.60x  95 % interval [1.4, 1.8]",
                "    controller node 0 63 %",
                "    link 0->1 62 %, which is the busiest of",
                "    all links there"
            ]
        );
        assert_eq!(table(&rows, &aligns, 44)[0], "placement");
        for most in [30, 44, 60] {
            assert!(
                headed_table(&rows, &aligns, most).iter().chain(&table(&rows, &aligns, most)).all(|line| width(line) <= most),
                "{most}"
            );
        }
        assert_eq!(headed_table(&rows, &aligns, 100), table(&rows, &aligns, 100));
    }
}
