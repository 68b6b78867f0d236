//! Commands of the model.

use clap::{Args, Subcommand};

/// List the machines that predictions can be made for, or show what is known of one
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    long_about = "Lists the machines of the catalogue, or shows one: every number with where it comes from, and the published measurements \
        that numbers were fitted to. What is assumed or inferred says so.",
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

/// Show what is known of a machine, and from where
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    firsttouch machines show xeon-e5620x2\n  \
    firsttouch machines show my-machine.toml\n  \
    firsttouch machines show epyc-7451x2 --json | jq '.numbers[] | select(.source | startswith(\"assumed\"))'")]
pub struct MachinesShow {
    /// A machine of the catalogue, or a file that describes one
    #[arg(value_name = "NAME|FILE.toml")]
    pub machine: String,
    /// Print JSON (schema firsttouch.machine-shown/1)
    #[arg(long)]
    pub json: bool,
}

/// Compare the model's predictions with published measurements
#[derive(Debug, Args)]
#[command(
    long_about = "Predicts every row of the published measurements that come with firsttouch, and prints row, published, predicted and \
        error; then the errors of the rows that no machine's numbers were fitted to. Rows that were are marked, and do not count.",
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
