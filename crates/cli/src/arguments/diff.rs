//! `firsttouch diff`.

use super::Judge;
use clap::Args;
use std::path::PathBuf;

/// Compare two profiles of the same work: what changed, and whether it may be chance
#[derive(Debug, Args)]
#[command(
    long_about = "Compares two profiles of the same work, such as before and after a fix: wall times, the remote part, the findings that are \
        gone and those that are new, and each object, matched by its name and the line that allocates it. Every difference has a 95 % \
        interval, and is called significant where that does not hold 0. Wall times are those of one run each, profiled.\n\n\
        Instead of a profile, a report as `report --json` writes it can be given; it keeps the machine that it was judged on. Profiles of \
        different commands are compared with a warning.",
    after_help = "Examples:\n  \
        firsttouch diff before.ftp after.ftp\n  \
        firsttouch diff before.ftp after.ftp --machine epyc-7451x2 --pin compact\n  \
        firsttouch diff baseline.json solver.ftp\n  \
        firsttouch diff before.ftp after.ftp --json | jq '.findings_new'\n\n\
        Exit status: 0 whatever differs; 1 when a file cannot be used; 2 for a wrong command line."
)]
pub struct Diff {
    /// The first profile, or its JSON report
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The second
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    #[command(flatten)]
    pub judge: Judge,
    /// Print JSON (schema firsttouch.diff/1)
    #[arg(long)]
    pub json: bool,
}
