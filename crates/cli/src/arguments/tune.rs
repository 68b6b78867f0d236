//! The arguments of `firsttouch tune`, and those that `run --tune` has in common with it.

use super::Judge;
use clap::Args;
use firsttouch_model::quantity::parse_duration;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Move a running program's pages to where they are used, while it runs, as far as that pays
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "firsttouch tune [OPTIONS] PID|CMD\n       firsttouch tune [OPTIONS] -- PROGRAM [ARGUMENT]...",
    long_about = "Samples the accesses of a running program, and moves its pages: parts of an object that threads of one node use go to that node, parts that \
        threads of several nodes use are interleaved over these. It moves pages in small pieces, never more than --budget, and only if the time that \
        threads then no longer wait for remote memory is more than twice what moving costs, over the time that the program is expected to use its memory in this way. It \
        asks the kernel again where the pages are, notices when the program changes its partition, and ends with the program, after Ctrl-C, or with --once \
        when nothing more is to be moved. Then it says what it moved, why, and which share of the accesses was remote before and after.\n\n\
        It changes nothing but the nodes of pages: no memory policy, no affinity. If it is killed, the program goes on with its pages where they are then. \
        No privilege is needed for your own processes.",
    after_help = "Examples:\n  \
        firsttouch tune 4711\n  \
        firsttouch tune 4711 --once --budget 200\n  \
        firsttouch tune --dry-run solver\n  \
        firsttouch tune --save-plan solver.toml -- ./solver input.dat\n  \
        firsttouch tune --dry-run --machine virtual:2 -- ./solver input.dat\n  \
        firsttouch tune 4711 --once --json | jq '.processes[] | {moved_bytes, remote_before, remote_after}'\n\n\
        Exit status: 0; with PROGRAM its own; 1 if pages of the process may not be moved, or it cannot be sampled; 2 for a usage error."
)]
pub struct Tune {
    #[command(flatten)]
    pub options: TuneOptions,
    /// End when nothing more is to be moved; a PROGRAM is tuned until it ends
    #[arg(long, conflicts_with = "program")]
    pub once: bool,
    /// Show what would be moved, and move nothing; watches for 10 s, or --duration, or until PROGRAM ends
    #[arg(long)]
    pub dry_run: bool,
    /// End after this time (seconds, or with a unit: 500ms, 5m); a PROGRAM is tuned until it ends
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "program")]
    pub duration: Option<Duration>,
    /// Print the outcome as JSON (schema firsttouch.tune/1), or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write the outcome to FILE (- for stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// With --dry-run: what would be moved on this machine, as 'firsttouch report' judges it
    #[arg(long, value_name = "NAME|virtual:N|FILE", requires = "dry_run")]
    pub machine: Option<String>,
    /// Where threads run on a virtual machine, as in 'firsttouch report' [default: spread]
    #[arg(long, value_name = "EXPR", requires = "dry_run")]
    pub pin: Option<String>,
    /// The number of a process, or the full name of its program
    #[arg(value_name = "PID|CMD", required_unless_present = "program", conflicts_with = "program")]
    pub process: Option<String>,
    /// A program to start, and its arguments
    #[arg(value_name = "PROGRAM", last = true)]
    pub program: Vec<OsString>,
}

/// What `tune` and `run --tune` have in common.
#[derive(Clone, Debug, Args)]
pub struct TuneOptions {
    /// Move at most so many MB a second
    #[arg(long, value_name = "MB/s", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub budget: u64,
    /// Write what was learnt as a plan, which 'firsttouch run --plan' takes
    #[arg(long, value_name = "PLAN.toml")]
    pub save_plan: Option<PathBuf>,
}

impl Tune {
    /// The judge's options.
    pub fn judge(&self) -> Judge {
        Judge { machine: self.machine.clone(), pin: self.pin.clone(), ..Judge::default() }
    }
}
