//! The arguments of `firsttouch map`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Measure bandwidth and latency between all pairs of nodes
#[derive(Debug, Args)]
#[command(
    long_about = "Measures the ccNUMA map. For every pair of a node whose CPUs run and a node whose memory they use, it measures the bandwidth \
        of bundled kernels and the latency of a load. Then it measures one node's bandwidth by number of threads, and its latency while other \
        threads load the memory. Each figure is the fastest of several runs: runs are repeated until the third fastest is within --spread of \
        the fastest, or --runs are done. The spread is shown. Nodes without memory have no row, nodes without CPUs no column.",
    after_help = "Examples:\n  \
        firsttouch map\n  \
        firsttouch map --kernels read,triad --runs 10 --spread 2%\n  \
        firsttouch map --svg map.svg --json > map.json\n  \
        firsttouch map --save this-machine.toml && firsttouch machines show this-machine.toml\n  \
        firsttouch map --xml this-machine.xml && lstopo --memattrs -i this-machine.xml"
)]
pub struct Map {
    /// Bandwidth kernels [default: read, copy, triad and schoenauer with up to two nodes, else triad]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KERNEL,...")]
    pub kernels: Vec<MapKernel>,
    /// Maximum number of runs of a figure (3 to 1000)
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub runs: u32,
    /// Repeat runs until the third fastest is this close to the fastest
    #[arg(long, default_value = "3%", value_name = "PERCENT", value_parser = parse_percent)]
    pub spread: f64,
    /// Measure only the tables of all pairs, not the curves of one node
    #[arg(long)]
    pub pairs_only: bool,
    /// Bytes of each array (K, M, G: powers of 1024) [default: four times the last-level cache, at most an eighth of a node's free memory]
    #[arg(long, value_name = "BYTES", value_parser = firsttouch_model::quantity::parse_size)]
    pub size: Option<u64>,
    /// Print the results as JSON (schema firsttouch.map/1)
    #[arg(long)]
    pub json: bool,
    /// Draw the tables as heat maps to FILE (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write a description of this machine for 'predict' and 'check' to FILE (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write this machine's topology, with the measured figures as memory attributes, to FILE as hwloc XML (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub xml: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MapKernel {
    /// Only reads
    Read,
    /// One read for one write
    Copy,
    /// Two reads for one write
    Triad,
    /// Three reads for one write
    Schoenauer,
    /// Only writes
    Write,
}

impl From<MapKernel> for firsttouch_experiments::map::MapKernel {
    fn from(kernel: MapKernel) -> Self {
        match kernel {
            MapKernel::Read => Self::Read,
            MapKernel::Copy => Self::Copy,
            MapKernel::Triad => Self::Triad,
            MapKernel::Schoenauer => Self::Schoenauer,
            MapKernel::Write => Self::Write,
        }
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let part = super::parse_part(text)?;
    if part > 0.0 && part < 1.0 { Ok(part) } else { Err(format!("expected a percentage between 0 and 100 such as 3%, found '{text}'")) }
}
