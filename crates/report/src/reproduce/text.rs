//! A reproduction as text.

use super::{Cell, Reproduction, Table, digits};
use crate::system::{Lines, row};
use crate::text::Style;
use crate::topology::table::Align::{self, Left, Right};

/// Tables, and the sentence on the effect last.
#[must_use]
pub fn reproduction_text(reproduction: &Reproduction, style: Style) -> String {
    let mut out = Lines::new(style);
    out.heading(&format!("{}: {}", reproduction.experiment, reproduction.title));
    for source in &reproduction.sources {
        out.sentence(&format!("Published: {source}."));
    }
    out.sentence(&format!("Here: {}. {}", reproduction.here.machine, reproduction.settings.join(" ")));
    for table in &reproduction.tables {
        one(&mut out, table);
    }
    if reproduction.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells).flatten().any(|cell| cell.range().is_some()) {
        out.gap();
        out.sentence("Measured: median [least, most] of the runs. Model: the mean [where 95 % lie] of random seats, for threads that are not pinned.");
    }
    if !reproduction.said.is_empty() {
        out.heading("The source also says");
        bullets(&mut out, &reproduction.said);
    }
    if !reproduction.notes.is_empty() {
        out.heading("Notes");
        bullets(&mut out, &reproduction.notes);
    }
    for effect in &reproduction.effects {
        out.gap();
        out.sentence(&effect.sentence);
    }
    out.text()
}

fn bullets(out: &mut Lines, texts: &[String]) {
    let rows: Vec<Vec<String>> = texts.iter().map(|text| row(["  -", text])).collect();
    out.table(&rows, &[Left, Left]);
}

fn one(out: &mut Lines, table: &Table) {
    let source = table.only_source();
    let from = source.map_or_else(String::new, |source| format!(" ({})", source.words()));
    let unit = if table.unit.is_empty() { String::new() } else { format!(", {}", table.unit) };
    out.heading(&format!("{}{unit}{from}", table.title));
    let columns = table.columns_with_figures();
    let blank = || vec![String::new(); table.heads.len()];
    let mut rows = Vec::new();
    if source.is_none() {
        rows.push(blank().into_iter().chain(columns.iter().map(|at| table.columns[*at].source.words().to_owned())).collect());
    }
    let names = || columns.iter().map(|at| table.columns[*at].name.clone());
    if source.is_some() || names().any(|name| !name.is_empty()) || table.heads.iter().any(|head| !head.is_empty()) {
        rows.push(table.heads.iter().cloned().chain(names()).collect());
    }
    for row in &table.rows {
        let cells = columns.iter().map(|at| row.cells.get(*at).and_then(Option::as_ref).map_or_else(|| "-".to_owned(), shown));
        rows.push(row.labels.iter().cloned().chain(cells).collect::<Vec<String>>());
    }
    let label = |index: usize| if is_number(table, index) { Right } else { Left };
    let aligns: Vec<Align> = (0..table.heads.len()).map(label).chain(columns.iter().map(|_| Right)).collect();
    // The last column is not aligned by the table: it may go on below itself.
    let width = rows.iter().filter_map(|row| row.last()).map(|cell| cell.chars().count()).max().unwrap_or(0);
    for row in &mut rows {
        if let Some(last) = row.last_mut() {
            *last = format!("{last:>width$}");
        }
    }
    out.table(&rows, &aligns);
}

fn is_number(table: &Table, label: usize) -> bool {
    table.rows.iter().all(|row| row.labels.get(label).is_some_and(|text| text.parse::<f64>().is_ok()))
}

fn shown(cell: &Cell) -> String {
    let value = cell.value();
    match (cell, cell.range()) {
        // As it was printed.
        (Cell::Published { value }, _) => value.to_string(),
        (_, Some([low, high])) => format!("{} [{}, {}]", digits(value, value), digits(low, value), digits(high, value)),
        (_, None) => digits(value, value),
    }
}
