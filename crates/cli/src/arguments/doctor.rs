//! The arguments of `firsttouch doctor`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// List settings of this system and environment that hurt placement, with evidence and remedy
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch doctor [OPTIONS] [[--] PROGRAM [ARGUMENT]...]",
    long_about = "Lists settings of this system and environment that hurt the placement of memory, or limit what firsttouch can measure: \
        the kernel's NUMA balancing, unbound threads, more threads than CPUs, limits of control groups, system calls that a \
        container forbids, nodes that are nearly full or without memory, swap, huge pages, sub-NUMA modes, missing runtimes, preloaded \
        allocators. Each finding has a severity, the file and value that show it, and a remedy. Nothing is changed.\n\n\
        With a program, also examines its file and libraries: whether it uses OpenMP, and which runtime. The program is not run. \
        On a machine with one node, checks that matter only with several nodes are skipped.",
    after_help = "Examples:\n  \
        firsttouch doctor\n  \
        OMP_NUM_THREADS=16 firsttouch doctor -- ./solver input.dat\n  \
        firsttouch doctor --verbose -- ./solver\n  \
        firsttouch doctor --json | jq -r '.findings[] | .id + \": \" + .remedy'\n  \
        firsttouch doctor -i recorded-machine/\n\n\
        Exit status: 0 whatever was found; 1 if the machine or the program cannot be read; 2 for a usage error."
)]
pub struct Doctor {
    /// Examine a directory with a copy of another machine's /proc and /sys; its environment and permissions are unknown
    #[arg(short, long, value_name = "DIRECTORY", conflicts_with = "program")]
    pub input: Option<PathBuf>,
    /// First list each check and what it saw: files, variables in force, the OpenMP runtime and its version
    #[arg(short, long, conflicts_with = "json")]
    pub verbose: bool,
    /// Print JSON (schema firsttouch.doctor/1)
    #[arg(long)]
    pub json: bool,
    /// The program that you would start here, and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}
