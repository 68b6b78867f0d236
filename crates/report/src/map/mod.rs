//! What `firsttouch map` measured.

mod attributes;
mod heat;
mod save;
mod text;

pub use attributes::map_xml;
pub(crate) use heat::Heat;
pub use heat::heat_maps;
pub use save::{Origin, machine_toml};
pub use text::map_text;

use serde::Serialize;

/// A figure: the fastest of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Best {
    pub value: f64,
    /// How far the third fastest run is from it, as a part of it.
    pub spread: f64,
    pub runs: u32,
}

impl Best {
    /// None of fewer than three values. `most`: the largest value is the fastest, else the smallest.
    #[must_use]
    pub fn of(values: &[f64], most: bool) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        if most {
            sorted.reverse();
        }
        let (best, third) = (*sorted.first()?, *sorted.get(2)?);
        (best > 0.0).then(|| Self {
            value: best,
            spread: (best - third).abs() / best,
            runs: u32::try_from(values.len()).unwrap_or(u32::MAX),
        })
    }
}

/// One pair of nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    pub cpu_node: u32,
    pub memory_node: u32,
    /// None where the runs failed, and why.
    pub best: Option<Best>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// One quantity for all pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// A kernel's name, or `latency`.
    pub name: String,
    /// What it is, in words.
    pub about: String,
    /// `GB/s` or `ns`.
    pub unit: String,
    /// Bytes that really pass the controller over those counted: a store may read its line first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_factor: Option<f64>,
    pub cells: Vec<Cell>,
}

/// A point of a curve on one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// What they run: `read`, or another kernel.
    pub kernel: String,
    pub threads: u32,
    pub gb_per_s: Option<Best>,
    /// Of a load that another thread does meanwhile.
    pub latency_ns: Option<Best>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Map {
    pub schema: &'static str,
    pub machine: String,
    /// Nodes whose CPUs run, and nodes whose memory is used.
    pub cpu_nodes: Vec<u32>,
    pub memory_nodes: Vec<u32>,
    /// CPUs that run on each CPU node, and the cores they are of.
    pub threads: Vec<u32>,
    pub cores: Vec<u32>,
    pub array_bytes: u64,
    pub spread_limit: f64,
    pub tables: Vec<Table>,
    /// Of `curve_node`'s own memory.
    pub curve_node: Option<u32>,
    pub saturation: Vec<Point>,
    pub loaded_latency: Vec<Point>,
    /// What one thread of `curve_node` reads from the nearest other node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_thread_remote: Option<Best>,
    pub notes: Vec<String>,
}

impl Table {
    #[must_use]
    pub fn cell(&self, memory_node: u32, cpu_node: u32) -> Option<&Cell> {
        self.cells.iter().find(|cell| (cell.memory_node, cell.cpu_node) == (memory_node, cpu_node))
    }

    /// The largest spread of any cell.
    #[must_use]
    pub fn spread(&self) -> Option<f64> {
        self.cells.iter().filter_map(|cell| cell.best.map(|best| best.spread)).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which run counts, and how far the others are.
    #[test]
    fn the_fastest_counts() {
        assert_eq!(Best::of(&[1.0, 2.0], true), None);
        let best = Best::of(&[8.0, 10.0, 9.0, 9.5], true).unwrap();
        assert_eq!((best.value, best.runs), (10.0, 4));
        assert!((best.spread - 0.1).abs() < 1e-12);
        let best = Best::of(&[120.0, 100.0, 101.0, 103.0], false).unwrap();
        assert!(best.value == 100.0 && (best.spread - 0.03).abs() < 1e-12);
        assert_eq!(Best::of(&[0.0, 0.0, 0.0], true), None);
    }
}
