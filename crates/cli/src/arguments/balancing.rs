//! The arguments of `firsttouch balancing`.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Show or switch the kernel's NUMA balancing, or measure its effect on a program
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    long_about = "Shows whether the kernel moves pages to the threads that use them (NUMA balancing), and its tunables. \
        'on' and 'off' switch it for the whole machine, which needs root with CAP_SYS_ADMIN. 'measure' runs a program with balancing on and \
        off in turn.",
    after_help = "Examples:\n  \
        firsttouch balancing\n  \
        sudo firsttouch balancing off\n  \
        sudo firsttouch balancing measure -- ./solver input.dat"
)]
pub struct Balancing {
    #[command(subcommand)]
    pub action: Option<BalancingAction>,
    /// Print JSON (schema firsttouch.balancing/1)
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum BalancingAction {
    /// Switch NUMA balancing on for the whole machine, until the next boot
    On(BalancingSwitch),
    /// Switch NUMA balancing off for the whole machine, until the next boot
    Off(BalancingSwitch),
    Measure(BalancingMeasure),
}

/// Switch NUMA balancing on or off for the whole machine, until the next boot
#[derive(Debug, Args)]
#[command(
    long_about = "Switches NUMA balancing for the whole machine, until the next boot. This needs root with CAP_SYS_ADMIN; in a container, run it on the host.",
    after_help = "Examples:\n  sudo firsttouch balancing on\n  sudo firsttouch balancing off"
)]
pub struct BalancingSwitch {
    /// Print the new state as JSON (schema firsttouch.balancing/1)
    #[arg(long)]
    pub json: bool,
}

/// Run a program with NUMA balancing on and off in turn, and compare
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch balancing measure [OPTIONS] [--] PROGRAM [ARGUMENT]...",
    long_about = "Runs a program several times with NUMA balancing on and off in turn, and shows time, hinting faults and migrated \
        pages of both, with median, least and most. The previous state is restored afterwards, also after Ctrl-C. The text goes to stderr \
        (stdout belongs to the program). This needs root with CAP_SYS_ADMIN.",
    after_help = "Examples:\n  \
        sudo firsttouch balancing measure -- ./solver input.dat\n  \
        sudo firsttouch balancing measure --rounds 10 -- ./solver input.dat\n\n\
        Exit status: 0 if all runs ended with 0; else that of the first run that failed, after which nothing more is run."
)]
pub struct BalancingMeasure {
    /// Number of runs with balancing on, and with balancing off
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Print JSON (schema firsttouch.balancing-measure/1) on stdout, after the program's own output; or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write the result to FILE (- for stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, required = true)]
    pub program: Vec<OsString>,
}
