//! Bandwidth and latency of every pair of a node whose CPUs access memory and a node whose memory is accessed.

mod all_pairs;
mod one_pair;

pub use all_pairs::scan;
pub(crate) use one_pair::{Pair, check_page_nodes};

use serde::Serialize;

/// A bandwidth kernel of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKernel {
    Read,
    Copy,
    Triad,
    Schoenauer,
    Write,
}

impl MapKernel {
    /// The kernel's name in `firsttouch bench`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Copy => "copy",
            Self::Triad => "triad",
            Self::Schoenauer => "schoenauer",
            Self::Write => "write",
        }
    }

    /// The kernel's mix of reads and writes.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Read => "only reads",
            Self::Copy => "one read for one write",
            Self::Triad => "two reads for one write",
            Self::Schoenauer => "three reads for one write",
            Self::Write => "only writes",
        }
    }
}

/// What to measure, and how precisely.
#[derive(Clone, Debug)]
pub struct Options {
    /// If empty, the number of nodes determines the kernels.
    pub kernels: Vec<MapKernel>,
    /// The largest number of runs of a figure.
    pub runs: u32,
    /// The third fastest run must be within this fraction of the fastest.
    pub spread: f64,
    /// Whether to leave out the curves of one node.
    pub pairs_only: bool,
    /// Bytes of an array; by default four times the last-level cache.
    pub array_bytes: Option<u64>,
}

/// The fastest of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Best {
    pub value: f64,
    /// The distance of the third fastest run, as a fraction of `value`.
    pub spread: f64,
    pub runs: u32,
}

impl Best {
    /// `None` for fewer than three values. If `most`, the largest value is the fastest, else the smallest.
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

/// The figure of one pair of nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairFigure {
    pub cpu_node: u32,
    pub memory_node: u32,
    /// `None` if the runs failed; `failed` then has the reason.
    pub best: Option<Best>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// One quantity for all pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairTable {
    /// A kernel's name, or `latency`.
    pub name: String,
    /// A description of the quantity in words.
    pub about: String,
    /// `GB/s` or `ns`.
    pub unit: String,
    /// Bytes that pass the controller / bytes counted: a store may first read its cache line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_factor: Option<f64>,
    pub cells: Vec<PairFigure>,
}

impl PairTable {
    #[must_use]
    pub fn cell(&self, memory_node: u32, cpu_node: u32) -> Option<&PairFigure> {
        self.cells.iter().find(|cell| (cell.memory_node, cell.cpu_node) == (memory_node, cpu_node))
    }

    /// The largest spread of any cell.
    #[must_use]
    pub fn spread(&self) -> Option<f64> {
        self.cells.iter().filter_map(|cell| cell.best.map(|best| best.spread)).reduce(f64::max)
    }
}

/// A point of a curve on one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The kernel that the threads run.
    pub kernel: String,
    pub threads: u32,
    pub gb_per_s: Option<Best>,
    /// Of a load, while other threads access memory, ns.
    pub latency_ns: Option<Best>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Map {
    pub schema: &'static str,
    pub machine: String,
    /// Nodes whose CPUs access memory, and nodes whose memory is accessed.
    pub cpu_nodes: Vec<u32>,
    pub memory_nodes: Vec<u32>,
    /// The number of CPUs that run on each CPU node, and the number of their cores.
    pub threads: Vec<u32>,
    pub cores: Vec<u32>,
    pub array_bytes: u64,
    pub spread_limit: f64,
    pub tables: Vec<PairTable>,
    /// The node of the curves; its CPUs use its own memory.
    pub curve_node: Option<u32>,
    pub saturation: Vec<CurvePoint>,
    pub loaded_latency: Vec<CurvePoint>,
    /// The bandwidth of one thread of `curve_node` when it reads from the nearest other node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_thread_remote: Option<Best>,
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which run is the result, and how far the others are from it.
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
