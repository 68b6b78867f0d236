//! The arguments of `firsttouch predict`, `machines` and `validate`.

use super::Judge;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Predict what each placement of a program's memory would cost on a machine
#[derive(Debug, Args)]
#[command(
    long_about = "Predicts how long a recorded program would take on a machine with its memory as it is, with parallel first touch, interleaved, \
        interleaved by bandwidth, all on one node, and as 'plan' would place it. Each time is relative to the best, with a 95 % interval, the remote \
        fraction, and the controller and link nearest to their limits. The profile gives the traffic of each thread and the place of each object. The \
        machine gives the bandwidths: one of the catalogue, a description (FILE.toml, as 'map --save' writes), hwloc XML with bandwidths (as \
        'map --xml' writes), or the output of Intel's mlc. Virtual machines and hwloc XML without bandwidths only have nodes: the relative speeds of \
        controllers, cores and links are then those of the median machine of the catalogue. Assumptions are listed.",
    after_help = "Examples:\n  \
        firsttouch predict solver.ftp --machine epyc-7451x2\n  \
        firsttouch predict solver.ftp --machine my-machine.toml --pin compact\n  \
        mlc > box.txt; firsttouch predict solver.ftp --machine box.txt\n  \
        firsttouch predict solver.ftp --machine virtual:4 --writes 25%\n  \
        firsttouch predict solver.ftp --machine epyc-7451x2 --exhaustive\n  \
        firsttouch predict solver.ftp --machine xeon-e5620x2 --json | jq '.placements[] | {name, slowdown}'"
)]
pub struct Predict {
    /// The profile, or a directory with the profiles of ranks (*.ftp.d) [default: the newest in this directory]
    #[arg(value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    #[command(flatten)]
    pub judge: Judge,
    /// The part of the traffic that is written; the evidence does not distinguish reads from writes
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = super::parse_part)]
    pub writes: f64,
    /// What limits a thread, besides controllers and links
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = CapsFrom::Auto)]
    pub caps: CapsFrom,
    /// Also compute every combination of placements of the objects with the most traffic, to show how close the plan is to the best
    #[arg(long)]
    pub exhaustive: bool,
    /// Print JSON (schema firsttouch.predict/1)
    #[arg(long)]
    pub json: bool,
}

/// What limits a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CapsFrom {
    /// The recorded rate, if it is far from what the machine's memory delivers; else the machine's cores
    Auto,
    /// The bandwidth of one core of the machine: the program only waits for memory
    Machine,
    /// The bytes that each thread moved per second of CPU time when it was recorded
    Recorded,
}

/// List the machines that predictions can be made for, or show one
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    long_about = "Lists the machines of the catalogue, or shows one: every number with its source, and the published measurements \
        that numbers were fitted to. Assumed and inferred numbers are marked.",
    after_help = "Examples:\n  \
        firsttouch machines list\n  \
        firsttouch machines show epyc-7451x2\n  \
        firsttouch machines show my-machine.toml"
)]
pub struct Machines {
    #[command(subcommand)]
    pub action: MachinesAction,
}

#[derive(Debug, Subcommand)]
pub enum MachinesAction {
    List(MachinesList),
    Show(MachinesShow),
}

/// List the machines of the catalogue
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  firsttouch machines list\n  firsttouch machines list --json | jq -r '.machines[].name'")]
pub struct MachinesList {
    /// Print JSON (schema firsttouch.machines/1)
    #[arg(long)]
    pub json: bool,
}

/// Show a machine's numbers and their sources
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    firsttouch machines show xeon-e5620x2\n  \
    firsttouch machines show my-machine.toml\n  \
    mlc > box.txt; firsttouch machines show box.txt\n  \
    firsttouch machines show epyc-7451x2 --json | jq '.numbers[] | select(.source | startswith(\"assumed\"))'")]
pub struct MachinesShow {
    /// A machine of the catalogue, or a file: a description, hwloc XML with bandwidths, or the output of mlc
    #[arg(value_name = "NAME|FILE")]
    pub machine: String,
    /// Print JSON (schema firsttouch.machine-shown/1)
    #[arg(long)]
    pub json: bool,
}

/// Compare the model's predictions with published measurements
#[derive(Debug, Args)]
#[command(
    long_about = "Predicts every row of the published measurements that come with firsttouch, and prints the published figure, the prediction and \
        the error; then a summary of the errors. Rows that a machine's numbers were fitted to are marked and not counted.",
    after_help = "Examples:\n  \
        firsttouch validate\n  \
        firsttouch validate --json | jq '.rows[] | select(.fitted | not) | select((.error | fabs) > 0.15)'\n  \
        firsttouch validate --markdown > docs/validation.md"
)]
pub struct Validate {
    /// Print JSON (schema firsttouch.validate/1)
    #[arg(long)]
    pub json: bool,
    /// Print Markdown, as in docs/validation.md
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}
