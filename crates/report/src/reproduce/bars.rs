//! A table as horizontal bars: one panel per column, one bar per row, with the range as a line and every run as a dot.

use super::digits;
use super::panel::{BLUE, panel_title};
use crate::bench::nice;
use crate::canvas::{Anchor, Area, Canvas, text_width};
use firsttouch_experiments::reproduce::{ResultCell, ResultTable};

const ROW: f64 = 26.0;
const WIDTH: f64 = 190.0;
const GAP: f64 = 70.0;

pub fn bars(canvas: &mut Canvas, table: &ResultTable, (x, y): (f64, f64)) {
    canvas.text((x, y + 12.0), Anchor::Start, "head", &format!("{}, {}", table.title, table.unit));
    let names: Vec<String> = table.rows.iter().map(|row| row.labels.join(", ")).collect();
    let names_width = names.iter().map(|name| text_width(name)).fold(0.0, f64::max);
    let top = y + 44.0;
    for (row, name) in names.iter().enumerate() {
        canvas.text((x, top + ROW * (row as f64 + 0.5) + 4.0), Anchor::Start, "", name);
    }
    for (index, column) in table.columns_with_figures().into_iter().enumerate() {
        let left = x + names_width + 14.0 + index as f64 * (WIDTH + GAP);
        canvas.text((left, y + 34.0), Anchor::Start, "", &panel_title(table, column));
        let cells: Vec<Option<&ResultCell>> = table.column(column).collect();
        panel(canvas, &cells, Area { x: left, y: top, width: WIDTH, height: ROW * cells.len() as f64 });
    }
}

fn panel(canvas: &mut Canvas, cells: &[Option<&ResultCell>], area: Area) {
    let most = nice(cells.iter().flatten().map(|cell| cell.top()).fold(0.0, f64::max));
    let place = |value: f64| area.x + area.width * value / most;
    for tick in 0..=2u32 {
        let value = most * f64::from(tick) / 2.0;
        canvas.line((place(value), area.y), (place(value), area.y + area.height), "#eee", 1.0);
        canvas.text(
            (place(value), area.y + area.height + 14.0),
            Anchor::Middle,
            "small",
            &if tick == 0 { "0".to_owned() } else { digits(value, most) },
        );
    }
    for (row, cell) in cells.iter().enumerate() {
        let middle = area.y + ROW * (row as f64 + 0.5);
        let Some(cell) = cell else {
            canvas.text((area.x + 4.0, middle + 4.0), Anchor::Start, "faint", "-");
            continue;
        };
        let width = place(cell.value()) - area.x;
        canvas.rectangle(Area { x: area.x, y: middle - 8.0, width, height: 16.0 }, "#bcd4ec", BLUE);
        if let Some([low, high]) = cell.range() {
            canvas.line((place(low), middle), (place(high), middle), BLUE, 2.0);
        }
        if let ResultCell::Measured { runs, .. } = cell {
            runs.iter().for_each(|run| canvas.circle((place(*run), middle), 2.2, BLUE, "white"));
        }
        let text = match cell {
            ResultCell::Published { value } => value.to_string(),
            _ => digits(cell.value(), cell.value()),
        };
        canvas.text((place(cell.top()) + 6.0, middle + 4.0), Anchor::Start, "small", &text);
    }
    canvas.line((area.x, area.y), (area.x, area.y + area.height), "#222", 1.0);
    // An invisible box: extends the picture below the numbers of the axis.
    canvas.rectangle(Area { x: area.x, y: area.y + area.height + 16.0, width: area.width, height: 1.0 }, "none", "none");
}
