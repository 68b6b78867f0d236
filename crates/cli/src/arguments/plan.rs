//! `firsttouch plan`

use super::Judge;
use clap::Args;
use std::path::PathBuf;

/// Plan where a program's memory should go: a policy for each misplaced object, by the line that allocates it
#[derive(Debug, Args)]
#[command(
    long_about = "Turns the findings of a profile into a plan for 'firsttouch run --plan'. For each misplaced object, identified by the line that \
        allocates it, the plan says where its pages go (each thread's part on the thread's node, or interleaved over all nodes), and where threads \
        run. Nodes are logical, and parts adapt to the number of nodes, so a plan made on a virtual machine applies to a real one. The plan has \
        no entry that would cost more than 1 % of time by the model; for a well-placed program it is empty and says so. The plan is TOML with \
        comments, which you can read and edit.",
    after_help = "Examples:\n  \
        firsttouch plan solver.ftp -o solver.toml\n  \
        firsttouch plan solver.ftp -o solver.toml --machine epyc-7451x2\n  \
        firsttouch run --plan solver.toml -- ./solver input.dat\n  \
        firsttouch plan solver.ftp --source\n  \
        firsttouch plan solver.ftp --json | jq '.entries[] | {what, policy, predicted_gain}'"
)]
pub struct Plan {
    /// The profile, or a directory with the profiles of ranks (*.ftp.d) [default: the newest in this directory]
    #[arg(value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    /// Write the plan to this file (- for stdout) [default: stdout]
    #[arg(short, long, value_name = "PLAN.toml")]
    pub output: Option<PathBuf>,
    /// Print the changes of the source instead: by the program's own means, and by calls of libfirsttouch
    #[arg(long, conflicts_with = "json")]
    pub source: bool,
    #[command(flatten)]
    pub judge: Judge,
    /// Print a summary of the plan as JSON on stdout (schema firsttouch.planned/1)
    #[arg(long)]
    pub json: bool,
}
