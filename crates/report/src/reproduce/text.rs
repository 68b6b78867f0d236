//! A reproduction as text.

use super::{columns, digits};
use crate::system::{Lines, row};
use crate::text::Style;
use crate::topology::table::Align::Left;
use firsttouch_experiments::reproduce::{Reproduction, ResultCell};

/// The tables, then the sentences about the effects.
#[must_use]
pub fn reproduction_text(reproduction: &Reproduction, style: Style) -> String {
    let mut out = Lines::new(style);
    out.heading(&format!("{}: {}", reproduction.experiment, reproduction.title));
    for source in &reproduction.sources {
        out.sentence(&format!("Published: {source}."));
    }
    out.sentence(&format!("Here: {}. {}", reproduction.measured_on.machine, reproduction.settings.join(" ")));
    for table in &reproduction.tables {
        out.heading(&columns::title(table));
        columns::lines(table, out.width(), shown).iter().for_each(|line| out.line(line));
    }
    legend(&mut out, reproduction);
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

/// Explains the brackets.
fn legend(out: &mut Lines, reproduction: &Reproduction) {
    let cells = || reproduction.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells).flatten();
    let has_range = |is_model: bool| cells().any(|cell| matches!(cell, ResultCell::Model { .. }) == is_model && cell.range().is_some());
    let mut words = Vec::new();
    if has_range(false) {
        words.push("Measured: median [least, most] of the runs.");
    }
    if has_range(true) {
        words.push("Model: mean [95 % range] over the possible placements of threads that are not pinned.");
    }
    if !words.is_empty() {
        out.gap();
        out.sentence(&words.join(" "));
    }
}

fn bullets(out: &mut Lines, texts: &[String]) {
    let rows: Vec<Vec<String>> = texts.iter().map(|text| row(["  -", text])).collect();
    out.table(&rows, &[Left, Left]);
}

fn shown(cell: &ResultCell) -> String {
    let value = cell.value();
    // Whole numbers are counts.
    let is_whole = cell.range().map_or(value.fract() == 0.0, |[low, high]| [low, value, high].iter().all(|part| part.fract() == 0.0));
    let word = |part: f64| if is_whole { format!("{part:.0}") } else { digits(part, value) };
    match (cell, cell.range()) {
        // Published figures keep their digits.
        (ResultCell::Published { value }, _) => value.to_string(),
        (_, Some([low, high])) => format!("{} [{}, {}]", word(value), word(low), word(high)),
        (_, None) => word(value),
    }
}
