//! The arguments of `firsttouch topology`.

use clap::Args;
use std::path::PathBuf;

/// Show the machine: nodes, CPUs, caches, memory, distances, and where this process may run
#[derive(Debug, Default, Args)]
#[command(
    long_about = "Shows the nodes with their CPUs, memory, huge pages and distances; packages, SMT siblings and caches; the \
        firmware's bandwidth and latency (HMAT) and the scheduling domains, where they are available; and this process's memory policy, \
        allowed CPUs and allowed nodes. This is what numactl --hardware, numactl --show and lscpu show together. \
        Sub-NUMA modes (CoD, SNC, NPS) are recognised. Values that cannot be read or that contradict each other are listed.",
    after_help = "Examples:\n  \
        firsttouch topology\n  \
        firsttouch topology --json | jq '.nodes[].cpus'\n  \
        firsttouch topology --svg machine.svg\n  \
        firsttouch topology --xml machine.xml && lstopo -i machine.xml\n  \
        firsttouch topology -i other-machine.xml"
)]
pub struct Topology {
    /// Show another machine: an hwloc XML file, or a directory with a copy of its /proc and /sys
    #[arg(short, long, value_name = "FILE|DIRECTORY")]
    pub input: Option<PathBuf>,
    /// Print JSON (schema firsttouch.topology/1)
    #[arg(long)]
    pub json: bool,
    /// Write a picture instead of text (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write hwloc XML instead of text (- for stdout); lstopo and firsttouch --machine read it
    #[arg(long, value_name = "FILE")]
    pub xml: Option<PathBuf>,
}
