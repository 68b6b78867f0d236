//! The tables as heat maps (SVG): slower pairs are darker.

use crate::canvas::{Anchor, Area, Canvas, width_of};
use firsttouch_experiments::map::{Map, PairTable};

const MARGIN: f64 = 20.0;
const SIDE: f64 = 52.0;
const HEAD: f64 = 60.0;
/// The unit of a table of latencies.
const LATENCY: &str = "ns";

/// A table as a heat map.
pub struct HeatMap {
    pub title: String,
    pub about: String,
    /// Whether larger values are better.
    pub is_speed: bool,
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    pub values: Vec<Vec<Option<f64>>>,
}

#[must_use]
pub fn heat_maps(map: &Map) -> String {
    let mut canvas = Canvas::default();
    let title = format!("{} between nodes: {}", measured(&map.tables), map.machine);
    canvas.text((MARGIN, 26.0), Anchor::Start, "big", &title);
    canvas.text((MARGIN, 44.0), Anchor::Start, "faint", "rows: the memory's node, columns: the node whose CPUs run");
    let heats: Vec<HeatMap> = map.tables.iter().map(|table| heat(map, table)).collect();
    let width = heats.iter().map(HeatMap::width).fold(0.0, f64::max) + 20.0;
    let height = HEAD + SIDE * map.memory_nodes.len() as f64 + 30.0;
    for (index, heat) in heats.iter().enumerate() {
        let (column, row) = (index % 3, index / 3);
        heat.draw(&mut canvas, (MARGIN + column as f64 * width, 64.0 + row as f64 * height));
    }
    canvas.finish(&title, MARGIN)
}

/// What the tables have.
fn measured(tables: &[PairTable]) -> &'static str {
    let is_latency = |table: &&PairTable| table.unit == LATENCY;
    match tables.iter().filter(is_latency).count() {
        0 => "Bandwidth",
        count if count == tables.len() => "Latency",
        _ => "Bandwidth and latency",
    }
}

fn heat(map: &Map, table: &PairTable) -> HeatMap {
    let value = |memory: u32, cpu: u32| table.cell(memory, cpu).and_then(|cell| cell.best).map(|best| best.value);
    HeatMap {
        title: format!("{}, {}", table.name, table.unit),
        about: table.about.clone(),
        is_speed: table.unit != LATENCY,
        rows: map.memory_nodes.iter().map(u32::to_string).collect(),
        columns: map.cpu_nodes.iter().map(u32::to_string).collect(),
        values: map.memory_nodes.iter().map(|memory| map.cpu_nodes.iter().map(|cpu| value(*memory, *cpu)).collect()).collect(),
    }
}

impl HeatMap {
    /// The width of the drawing with its words, px.
    fn width(&self) -> f64 {
        let words = width_of("head", &self.title).max(width_of("faint", &self.about)) * 1.1;
        words.max(30.0 + SIDE * self.columns.len() as f64)
    }

    pub fn draw(&self, canvas: &mut Canvas, (x, y): (f64, f64)) {
        canvas.text((x, y + 14.0), Anchor::Start, "head", &self.title);
        canvas.text((x, y + 28.0), Anchor::Start, "faint", &self.about);
        let values = || self.values.iter().flatten().flatten().copied();
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        for (column, cpu) in self.columns.iter().enumerate() {
            let left = x + 30.0 + column as f64 * SIDE;
            canvas.text((left + SIDE / 2.0, y + 46.0), Anchor::Middle, "", cpu);
            for (row, memory) in self.rows.iter().enumerate() {
                let top = y + 52.0 + row as f64 * SIDE;
                if column == 0 {
                    canvas.text((x + 22.0, top + SIDE / 2.0 + 4.0), Anchor::End, "", memory);
                }
                let value = self.values.get(row).and_then(|row| *row.get(column)?);
                let area = Area { x: left, y: top, width: SIDE - 2.0, height: SIDE - 2.0 };
                let slowness = value.map_or(0.0, |value| if self.is_speed { 1.0 - value / most } else { 1.0 - least / value });
                canvas.rectangle(area, &colour(value.map(|_| slowness)), "white");
                let label = value.map_or("-".to_owned(), |value| format!("{value:.1}"));
                canvas.text((left + SIDE / 2.0 - 1.0, top + SIDE / 2.0 + 4.0), Anchor::Middle, "", &label);
            }
        }
    }
}

/// The colour for a slowness in [0, 1], from pale green (fastest) to red; grey for `None` (not measured).
fn colour(slowness: Option<f64>) -> String {
    let Some(part) = slowness.map(|part| part.clamp(0.0, 1.0)) else { return "#ddd".to_owned() };
    let mix = |from: f64, to: f64| (from + (to - from) * part.sqrt()).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(199.0, 240.0), mix(233.0, 120.0), mix(192.0, 90.0))
}
