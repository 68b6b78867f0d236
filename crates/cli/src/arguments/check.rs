//! The arguments of `firsttouch check`.

use super::profile::parse_ranks;
use super::{Judge, Ranks, parse_part};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Fail continuous integration when a program's memory is placed worse than allowed
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "firsttouch check [OPTIONS] [--] PROGRAM [ARGUMENT]...\n       firsttouch check [OPTIONS] FILE.ftp",
    long_about = "Profiles a program (or takes a profile), judges it like 'report', and exits with 3 if a limit is exceeded. This works on any \
        machine, also with one node. A limit is exceeded only if the whole 95 % interval is above it, so chance does not fail a build. The \
        program's output does not change; the result goes to stdout with a FILE.ftp, else to stderr, or to --output.\n\n\
        --max-slowdown needs a machine with known bandwidths: one of the catalogue, or a file (.toml).",
    after_help = "Examples:\n  \
        firsttouch check -- ./solver input.dat\n  \
        firsttouch check --machine epyc-7451x2 --max-remote 10% --max-slowdown 1.1 -- ./solver input.dat\n  \
        firsttouch check --format sarif --output placement.sarif solver.ftp\n  \
        firsttouch check --baseline known-good.ftp -- ./solver input.dat\n\n\
        Exit status: 0 within the limits; 3 if a limit is exceeded; the program's own if it failed (128+N for signal N, 126, 127; 1 in \
        place of 3); 1 if nothing could be judged; 2 for a usage error."
)]
pub struct Check {
    #[command(flatten)]
    pub judge: Judge,
    /// Maximum part of remote accesses: 20%, 20 and 0.2 all mean 20 % [default: 20%, unless --max-slowdown or --baseline is given]
    #[arg(long, value_name = "PERCENT", value_parser = parse_part, allow_negative_numbers = true)]
    pub max_remote: Option<f64>,
    /// Maximum time of the program relative to the best placement, such as 1.2
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor)]
    pub max_slowdown: Option<f64>,
    /// Fail if placement is worse than in this profile (or JSON report of the same machine): an object with a new finding, or a larger remote
    /// part. Given three times or more, with profiles of several runs, their spread says what runs differ by
    #[arg(long, value_name = "FILE")]
    pub baseline: Vec<PathBuf>,
    /// What two runs may differ by without failing against a baseline: points of the remote part, and part of the slow-down [default: 10%, or the
    /// spread of three or more baselines]
    #[arg(long, value_name = "PERCENT", value_parser = parse_part, requires = "baseline")]
    pub tolerance: Option<f64>,
    /// Judge the program also if it fails (exit status other than 0)
    #[arg(long)]
    pub ignore_failure: bool,
    /// Profile child processes as well (with a program)
    #[arg(long)]
    pub follow: bool,
    /// Record until all processes of the program have ended, not only the first; implies --follow (with a program)
    #[arg(long)]
    pub wait: bool,
    /// Record only these ranks of an MPI job, such as 0,5-8
    #[arg(long, value_name = "LIST", value_parser = parse_ranks)]
    pub ranks: Option<Ranks>,
    /// Format of the result
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,
    /// Write the result to FILE (- for stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep the program's profile in FILE (%p, %h, %q{VAR}, %% as in profile -o)
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Print JSON (schema firsttouch.check/1); or write it to FILE, besides the result in the other format
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// A profile (FILE.ftp), or the program and its arguments
    #[arg(value_name = "PROGRAM|FILE.ftp", trailing_var_arg = true, required = true)]
    pub program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for a terminal
    Text,
    /// GitHub workflow commands: annotations at the lines
    Github,
    /// JUnit XML: one test case per limit
    Junit,
    /// SARIF 2.1.0: one result per object of a finding, at its line
    Sarif,
}

fn parse_factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
    number
        .filter(|factor| factor.is_finite() && *factor >= 1.0)
        .ok_or_else(|| format!("expected a factor of 1 or more such as 1.2, found '{text}'"))
}
