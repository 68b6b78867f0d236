//! The arguments of `firsttouch ps` and `firsttouch maps`.

use clap::Args;
use std::path::PathBuf;

/// Show a process's threads: where each last ran, where it may run, its migrations; and the process's memory by node
#[derive(Debug, Args)]
#[command(
    long_about = "Shows the threads of a process with name, state, the CPU and node each last ran on, CPU time, how often the scheduler \
        moved it, and the CPUs it may run on; and the process's memory by node. With NUMA balancing, also each thread's preferred node \
        and its hinting faults by node. A program's name selects all processes of that name.",
    after_help = "Examples:\n  \
        firsttouch ps 4711\n  \
        firsttouch ps solver\n  \
        firsttouch ps 4711 --json | jq '.processes[].threads[] | {tid, node}'"
)]
pub struct Ps {
    /// The number of a process, or the full name of its program
    #[arg(value_name = "PID|CMD")]
    pub process: String,
    /// Print JSON (schema firsttouch.ps/1)
    #[arg(long)]
    pub json: bool,
}

/// Show a process's memory by mapping and node, with page sizes and policies
#[derive(Debug, Args)]
#[command(
    long_about = "Shows the mappings of a process, largest first: resident memory by node, page size, the part in huge pages, and memory \
        policy. Huge pages count with their real size, both transparent ones and those of hugetlbfs. With --profile, also shows \
        the objects of a profile of this process, and the nodes of a sample of their pages.",
    after_help = "Examples:\n  \
        firsttouch maps 4711\n  \
        firsttouch maps solver --all\n  \
        firsttouch maps 4711 --profile pid-4711.ftp\n  \
        firsttouch maps 4711 --json | jq '.processes[].mappings[] | select(.policy != \"default\")'"
)]
pub struct Maps {
    /// The number of a process, or the full name of its program
    #[arg(value_name = "PID|CMD")]
    pub process: String,
    /// Show all mappings, by address
    #[arg(short, long)]
    pub all: bool,
    /// Show the objects of this profile of the process
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Print JSON (schema firsttouch.maps/1)
    #[arg(long)]
    pub json: bool,
}
