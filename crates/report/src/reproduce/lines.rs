//! A table as curves: one panel per column, the last label along the x axis, and a line for each combination of the other labels.

use super::panel::panel_title;
use crate::bench::{label, nice};
use crate::canvas::{Anchor, Area, Canvas};
use firsttouch_experiments::reproduce::{Drawing, ResultCell, ResultRow, ResultTable};

/// Distinguishable also for colour-blind readers (Okabe and Ito's palette).
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"];
const PANEL: (f64, f64) = (270.0, 220.0);
const PANELS_A_ROW: usize = 3;
const AXIS: f64 = 46.0;
const GAP: f64 = 30.0;

/// The points of a line: the position on the x axis, and the figure.
type Series<'a> = Vec<(usize, &'a ResultCell)>;

pub fn lines(canvas: &mut Canvas, table: &ResultTable, (x, y): (f64, f64)) {
    canvas.text((x, y + 12.0), Anchor::Start, "head", &format!("{}, {}", table.title, table.unit));
    let steps = steps(table);
    let names = names(table);
    let panels: Vec<(usize, Vec<Series<'_>>)> =
        table.columns_with_figures().into_iter().map(|column| (column, series(table, column, &steps, &names))).collect();
    let is_drawn = |index: usize| panels.iter().any(|(_, series)| series.get(index).is_some_and(|points| !points.is_empty()));
    legend(canvas, names.iter().enumerate().filter(|(index, _)| is_drawn(*index)), (x, y + 30.0));
    let highest = |series: &[Series<'_>]| series.iter().flatten().map(|(_, cell)| cell.top()).fold(0.0, f64::max);
    let of_all = panels.iter().map(|(_, series)| highest(series)).fold(0.0, f64::max);
    for (index, (column, series)) in panels.iter().enumerate() {
        let (across, down) = ((index % PANELS_A_ROW) as f64, (index / PANELS_A_ROW) as f64);
        let left = x + AXIS + across * (PANEL.0 + AXIS + GAP);
        let area = Area { x: left, y: y + 64.0 + down * (PANEL.1 + 72.0), width: PANEL.0, height: PANEL.1 };
        canvas.text((left, area.y - 10.0), Anchor::Start, "", &panel_title(table, *column));
        let top = if table.drawing == Drawing::LinesOfOneScale { of_all } else { highest(series) };
        panel(canvas, table, series, &steps, (area, nice(top)));
    }
}

/// The last labels, sorted as numbers.
fn steps(table: &ResultTable) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for text in table.rows.iter().filter_map(|row| row.labels.last()) {
        if !steps.contains(text) {
            steps.push(text.clone());
        }
    }
    steps.sort_by(|one, other| {
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::MAX);
        number(one).total_cmp(&number(other))
    });
    steps
}

fn name(labels: &[String]) -> String {
    labels.split_last().map_or_else(String::new, |(_, others)| others.join(", "))
}

fn names(table: &ResultTable) -> Vec<String> {
    let mut names = Vec::new();
    for row in &table.rows {
        let name = name(&row.labels);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn series<'a>(table: &'a ResultTable, column: usize, steps: &[String], names: &[String]) -> Vec<Series<'a>> {
    let of = |wanted: &String| {
        let rows = table.rows.iter().filter(|row| name(&row.labels) == *wanted);
        let point = |row: &'a ResultRow| {
            let step = steps.iter().position(|step| Some(step) == row.labels.last())?;
            Some((step, row.cells.get(column)?.as_ref()?))
        };
        let mut points: Series<'_> = rows.filter_map(point).collect();
        points.sort_by_key(|(step, _)| *step);
        points
    };
    names.iter().map(of).collect()
}

/// The names of the curves in the colours of their indices.
fn legend<'a>(canvas: &mut Canvas, names: impl Iterator<Item = (usize, &'a String)>, (x, y): (f64, f64)) {
    let mut left = x;
    for (index, name) in names {
        let colour = COLOURS[index % COLOURS.len()];
        canvas.line((left, y - 4.0), (left + 18.0, y - 4.0), colour, 2.0);
        canvas.circle((left + 9.0, y - 4.0), 3.0, colour, "white");
        canvas.text((left + 24.0, y), Anchor::Start, "", name);
        left += 44.0 + crate::canvas::text_width(name);
    }
}

fn panel(canvas: &mut Canvas, table: &ResultTable, series: &[Series<'_>], steps: &[String], (area, top): (Area, f64)) {
    let height = |value: f64| area.y + area.height * (1.0 - value / top);
    for tick in 0..=5u32 {
        let value = top * f64::from(tick) / 5.0;
        canvas.line((area.x, height(value)), (area.x + area.width, height(value)), "#eee", 1.0);
        canvas.text((area.x - 6.0, height(value) + 4.0), Anchor::End, "small", &label(value, top));
    }
    let place = |step: usize| area.x + area.width * (step as f64 + 0.5) / steps.len().max(1) as f64;
    for (step, text) in steps.iter().enumerate() {
        canvas.text((place(step), area.y + area.height + 15.0), Anchor::Middle, "small", text);
    }
    canvas.line((area.x, area.y + area.height), (area.x + area.width, area.y + area.height), "#222", 1.0);
    let along = table.heads.last().map_or("", String::as_str);
    canvas.text((area.x + area.width / 2.0, area.y + area.height + 30.0), Anchor::Middle, "small", along);
    // An invisible box: extends the picture below the labels.
    canvas.rectangle(Area { x: area.x, y: area.y + area.height + 32.0, width: area.width, height: 1.0 }, "none", "none");
    for (index, (series, colour)) in series.iter().zip(COLOURS.iter().cycle()).enumerate() {
        // Draw the ranges at one position side by side.
        let shift = (index as f64 - 0.5) * 5.0;
        let at = |step: usize, value: f64| (place(step) + shift, height(value));
        for pair in series.windows(2) {
            if let [(one, from), (other, to)] = pair {
                canvas.line(at(*one, from.value()), at(*other, to.value()), colour, 1.5);
            }
        }
        for (step, cell) in series {
            if let Some([low, high]) = cell.range() {
                canvas.line(at(*step, low), at(*step, high), colour, 1.5);
            }
            canvas.circle(at(*step, cell.value()), 3.0, colour, "white");
        }
    }
}
