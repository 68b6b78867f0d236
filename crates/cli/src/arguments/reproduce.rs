//! The arguments of `firsttouch reproduce`.

use clap::{Args, ValueEnum};
use firsttouch_model::quantity::parse_size;
use std::path::PathBuf;

/// Repeat a published experiment on this machine, beside what was published and what the model says
#[derive(Debug, Args)]
#[command(
    long_about = "Runs a published experiment on the placement of memory as far as this machine allows (CPUs, nodes, memory), and shows what \
        was published, what the model says of the published machine, and what was measured here, side by side. A sentence says whether the effect appears \
        here, decided by the runs: every run of one way is faster than every run of the other, or not; and if it cannot appear, why. By \
        default an experiment takes up to a minute or two; dmvm-variability, with ten runs of 2000 products, several.",
    after_help = "Examples:\n  \
        firsttouch reproduce --list\n  \
        firsttouch reproduce dgemv-first-touch\n  \
        firsttouch reproduce dgemv-scaling --size 3G --svg scaling.svg\n  \
        firsttouch reproduce iso3dfd-first-touch --runs 4 --json | jq '.effects[].sentence'"
)]
pub struct Reproduce {
    /// The experiment
    #[arg(value_enum, value_name = "NAME", required_unless_present = "list")]
    pub name: Option<Experiment>,
    /// List the experiments
    #[arg(long, conflicts_with = "name")]
    pub list: bool,
    /// Runs of each figure; fewer than 4 give no verdict [default: 5; 10 where the publication has ten]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Memory of all arrays of a run (K, M, G: powers of 1024) [default: what runs in a minute or two, at most a quarter of the free memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Print the results as JSON (schema firsttouch.reproduce/1)
    #[arg(long)]
    pub json: bool,
    /// Draw the figure to FILE (- for stdout)
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub svg: Option<PathBuf>,
}

/// The documents' experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// DGEMV by number of threads, its matrix initialised serially and in parallel
    DgemvScaling,
    /// DGEMV on all cores, initialised serially and in parallel, and where the pages went
    DgemvFirstTouch,
    /// DGEMV with the kernel's NUMA balancing on and off (switched if allowed, and put back); pages that it migrates
    Balancing,
    /// The wave equation with and without first touch, schedules static and dynamic, and the spread over runs
    Iso3dfdFirstTouch,
    /// The quick test: the wave equation on one node, on all, and a bound process a node
    OneSocketTwoSockets,
    /// Bandwidth of triad for every pair of memory node and CPU node
    MapScan,
    /// Triad by number of domains: parallel initialisation, all in one domain, interleaved
    TriadDomains,
    /// Matrix-vector products again and again: 200 to 2000 iterations, ten runs each
    DmvmVariability,
}
