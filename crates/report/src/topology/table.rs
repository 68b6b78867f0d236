//! Columns of text.

use crate::text::layout::{pad, width};

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Lines of a table. The last column is folded where it would exceed `most` columns.
pub fn table(rows: &[Vec<String>], aligns: &[Align], most: usize) -> Vec<String> {
    let last = aligns.len().saturating_sub(1);
    let widths: Vec<usize> =
        (0..last).map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)).collect();
    let indent: usize = widths.iter().map(|width| width + 2).sum();
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
        for (index, part) in fold(cell, most.saturating_sub(indent).max(16)).into_iter().enumerate() {
            if index > 0 {
                line = " ".repeat(indent);
            }
            lines.push(format!("{line}{part}").trim_end().to_owned());
        }
    }
    lines
}

/// A text in lines of at most `most` columns, broken after spaces and commas; returns at least one line.
pub fn fold(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive([' ', ',']) {
        match lines.last_mut() {
            Some(line) if line.is_empty() || width(line) + width(word.trim_end()) <= most => *line += word,
            _ => lines.push(word.to_owned()),
        }
    }
    lines
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
}
