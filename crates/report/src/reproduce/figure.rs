//! A reproduction as a picture (SVG): its tables, with a panel for each column or table.

use super::bars::bars;
use super::lines::lines;
use super::source_words;
use crate::canvas::{Anchor, Canvas};
use crate::map::HeatMap;
use firsttouch_experiments::reproduce::{Drawing, Reproduction, ResultCell, ResultTable, Source};

const MARGIN: f64 = 20.0;
const GAP: f64 = 36.0;

/// All tables with a drawing, one below the other.
#[must_use]
pub fn reproduction_figure(reproduction: &Reproduction) -> String {
    let mut canvas = Canvas::default();
    let title = format!("{}: {}", reproduction.experiment, reproduction.title);
    canvas.text((MARGIN, 26.0), Anchor::Start, "big", &reproduction.experiment);
    canvas.text((MARGIN, 44.0), Anchor::Start, "", &reproduction.title);
    canvas.text((MARGIN, 60.0), Anchor::Start, "faint", &format!("Here: {}", reproduction.measured_on.machine));
    let mut top = 80.0;
    let has_figures = |table: &&ResultTable| !table.columns_with_figures().is_empty();
    for table in reproduction.tables.iter().filter(has_figures) {
        match table.drawing {
            Drawing::None => continue,
            Drawing::Lines | Drawing::LinesOfOneScale => lines(&mut canvas, table, (MARGIN, top)),
            Drawing::Bars => bars(&mut canvas, table, (MARGIN, top)),
            Drawing::Heat => heat(table).draw(&mut canvas, (MARGIN, top)),
        }
        top = canvas.bottom() + GAP;
    }
    canvas.finish(&title, MARGIN)
}

fn heat(table: &ResultTable) -> HeatMap {
    let source = table.columns.first().map_or(Source::Measured, |column| column.source);
    HeatMap {
        title: format!("{}: {}, {}", source_words(source), table.title, table.unit),
        about: "rows: the memory's node, columns: the node whose CPUs run".to_owned(),
        is_speed: true,
        rows: table.rows.iter().filter_map(|row| row.labels.last().cloned()).collect(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        values: table.rows.iter().map(|row| row.cells.iter().map(|cell| cell.as_ref().map(ResultCell::value)).collect()).collect(),
    }
}
