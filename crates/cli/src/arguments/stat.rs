//! The arguments of `firsttouch stat`.

use super::parse_count;
use clap::Args;
use firsttouch_model::quantity::parse_duration;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Show the kernel's counters of placement: hits, misses, hinting faults, migrations
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch stat [OPTIONS] [[--] PROGRAM [ARGUMENT]...]",
    long_about = "Shows numastat's six counters of each node and the kernel's counters of balancing and migration, each with an explanation: \
        since boot, over an interval, or while a program runs. The counters cover the whole machine. With a program, the text goes to stderr \
        (stdout belongs to the program).",
    after_help = "Examples:\n  \
        firsttouch stat\n  \
        firsttouch stat -- ./solver input.dat\n  \
        firsttouch stat --interval 10\n  \
        firsttouch stat --watch --interval 2\n  \
        firsttouch stat --json | jq '.nodes[] | {id, miss: .counters.numa_miss}'\n\n\
        Exit status with a program: its own; 128+N if signal N ended it; 127 if it was not found, 126 if it cannot be executed."
)]
pub struct Stat {
    /// Show what is counted in this time (seconds, or with a unit: 500ms, 5m)
    #[arg(short = 'I', short_alias = 'i', long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "program")]
    pub interval: Option<Duration>,
    /// Show one line of counts an interval (default 1 s; see --interval) until Ctrl-C, as vmstat does
    #[arg(short, long, conflicts_with = "program")]
    pub watch: bool,
    /// With --watch, stop after N intervals
    #[arg(long, value_name = "N", requires = "watch", value_parser = parse_count)]
    pub count: Option<u64>,
    /// Print JSON (schema firsttouch.stat/1), or write it to FILE; with --watch, one line per interval
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write the result to FILE (- for stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}
