//! `firsttouch plan`

use super::Judge;
use clap::Args;
use std::path::PathBuf;

/// Plan where a program's memory should go: a policy for each misplaced object, by the line that allocates it
#[derive(Debug, Args)]
#[command(
    long_about = "Turns the findings of a profile into a plan for 'firsttouch run --plan': for each misplaced object, by the place in the code \
        that allocates it, where its pages go (each thread's part on its node, or round all nodes), and where threads sit. Nodes are logical, and \
        what is divided among threads follows the number of nodes: a plan made on a virtual machine applies to a real one. No entry is made \
        that the model predicts to cost more than 1 % on the machine; a well-placed program gets an empty plan that says so. The plan is TOML with \
        comments, to be read and edited.",
    after_help = "Examples:\n  \
        firsttouch plan solver.ftp -o solver.toml\n  \
        firsttouch plan solver.ftp -o solver.toml --machine epyc-7451x2\n  \
        firsttouch run --plan solver.toml -- ./solver input.dat\n  \
        firsttouch plan solver.ftp --json | jq '.entries[] | {what, policy, predicted_gain}'"
)]
pub struct Plan {
    /// The profile
    #[arg(value_name = "PROFILE")]
    pub profile: PathBuf,
    /// Write the plan there ('-': stdout, as without it)
    #[arg(short, long, value_name = "PLAN.toml")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub judge: Judge,
    /// Print what was planned as JSON on stdout (schema firsttouch.planned/1)
    #[arg(long)]
    pub json: bool,
}
