//! The arguments of `firsttouch check`.

use super::{Judge, parse_part};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Fail when a program's memory is placed worse than allowed: a gate for continuous integration
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch check [OPTIONS] [--] PROGRAM [ARGUMENT]...\n       firsttouch check [OPTIONS] FILE.ftp",
    long_about = "Profiles a program (or takes a profile), judges it as 'report' does, and exits with 3 when a limit is exceeded: on any \
        machine, with one node too. A limit is exceeded only when the whole 95 % interval lies above it: chance does not fail a build. The \
        program's output stays as it is; the result goes to stdout with a FILE.ftp, else to stderr, or to --output.\n\n\
        --max-slowdown needs a machine whose bandwidths are described: one of the catalogue, or a file (.toml).",
    after_help = "Examples:\n  \
        firsttouch check -- ./solver input.dat\n  \
        firsttouch check --machine epyc-7451x2 --max-remote 10% --max-slowdown 1.1 -- ./solver input.dat\n  \
        firsttouch check --format sarif --output placement.sarif solver.ftp\n  \
        firsttouch check --baseline known-good.ftp -- ./solver input.dat\n\n\
        Exit status: 0 within the limits; 3 a limit is exceeded; the program's own where it failed (128+N for signal N, 126, 127); 1 when \
        nothing could be judged; 2 for a wrong command line."
)]
pub struct Check {
    #[command(flatten)]
    pub judge: Judge,
    /// The part of accesses that may be remote [default: 20%, unless --max-slowdown or --baseline is given]
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    pub max_remote: Option<f64>,
    /// How much longer the program may take than with the best placement, such as 1.2
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor)]
    pub max_slowdown: Option<f64>,
    /// A profile, or a JSON report of the same machine, that must not be surpassed: no object with a finding that it does not have, and no
    /// larger remote part
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,
    /// Write the result to FILE
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep the profile of the program
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Print JSON (schema firsttouch.check/1)
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// A profile (FILE.ftp), or the program and its arguments
    #[arg(value_name = "PROGRAM|FILE.ftp", trailing_var_arg = true, required = true)]
    pub program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// GitHub's workflow commands: annotations at the lines
    Github,
    /// JUnit's XML: a test case a limit
    Junit,
    /// SARIF 2.1.0: a result a finding, at its line
    Sarif,
}

fn parse_factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
    number
        .filter(|factor| factor.is_finite() && *factor >= 1.0)
        .ok_or_else(|| format!("expected a factor of 1 or more such as 1.2, found '{text}'"))
}
