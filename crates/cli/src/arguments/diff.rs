//! `firsttouch diff`.

use super::Judge;
use clap::Args;
use std::path::PathBuf;

/// Compare two profiles of the same work: what changed, and whether the change is significant
#[derive(Debug, Args)]
#[command(
    long_about = "Compares two profiles of the same work, for example before and after a fix: wall times, the remote fraction, findings that are \
        gone or new, and each object, matched by its name and the line that allocates it. Every difference has a 95 % interval and is \
        significant if the interval does not contain 0. Each wall time is that of one profiled run.\n\n\
        A JSON report, as 'report --json' writes it, can replace a profile; it keeps the machine that it was judged on. Profiles of \
        different commands are compared with a warning.",
    override_usage = "firsttouch diff [OPTIONS] [BEFORE AFTER]\n       firsttouch diff [OPTIONS] FILE.ftp",
    after_help = "Examples:\n  \
        firsttouch diff\n  \
        firsttouch diff before.ftp after.ftp\n  \
        firsttouch diff before.ftp after.ftp --machine epyc-7451x2 --pin compact\n  \
        firsttouch diff baseline.json solver.ftp\n  \
        firsttouch diff before.ftp after.ftp --html fix.html\n  \
        firsttouch diff before.ftp after.ftp --json | jq '.findings_new'\n\n\
        Exit status: 0 whatever differs; 1 if a file cannot be used; 2 for a usage error."
)]
pub struct Diff {
    /// The first profile (or directory with the profiles of ranks), or its JSON report [default: the newest *.ftp in this directory, and the profile before it: FILE.ftp.N]
    #[arg(value_name = "BEFORE")]
    pub before: Option<PathBuf>,
    /// The second profile, or its JSON report; without it, the first one is compared with the profile before it
    #[arg(value_name = "AFTER")]
    pub after: Option<PathBuf>,
    #[command(flatten)]
    pub judge: Judge,
    /// Print JSON (schema firsttouch.diff/1)
    #[arg(long)]
    pub json: bool,
    /// Write the comparison with pictures to this file, as one page that loads nothing from anywhere; it replaces an older page of that name. - is
    /// stdout
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
}
