//! `firsttouch merge`.

use clap::Args;
use std::path::PathBuf;

/// Merge the profiles of the ranks of a job, or of other runs, into one
#[derive(Debug, Args)]
#[command(
    long_about = "Merges profiles into one, on which all commands work: those of the ranks of a job, of several hosts, or of any other runs. It has \
        every row of each; what belongs together stays so. Nodes and CPUs of each host get numbers of their own, and times are aligned so that the \
        first ranks of all hosts start at the same time. The order of the files does not matter, and a merged profile can be merged with others: \
        the result is the same as of all at once. Of a directory, the profiles of ranks in it (rank-*.ftp) are merged.\n\n\
        Commands that read a profile take such a directory too, and merge it for themselves.",
    after_help = "Examples:\n  \
        firsttouch merge solver.ftp.d -o solver.ftp\n  \
        firsttouch merge node1.ftp node2.ftp -o both.ftp && firsttouch report both.ftp\n  \
        firsttouch merge solver.ftp.d -o solver.ftp --json | jq '.missing_ranks'\n\n\
        Exit status: 0, also if ranks are missing; 1 if a file cannot be read or written, or has a recording that is in another file too; \
        2 for a usage error."
)]
pub struct Merge {
    /// Profiles, merged ones too, and directories with the profiles of ranks
    #[arg(value_name = "FILE|DIR", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Write the merged profile to this file; %p, %h and %q{NAME} stand for the process number, the host, and an environment variable
    #[arg(short, long, value_name = "FILE.ftp")]
    pub output: PathBuf,
    /// Print JSON (schema firsttouch.merge/1)
    #[arg(long)]
    pub json: bool,
}
