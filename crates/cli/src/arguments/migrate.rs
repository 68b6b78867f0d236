//! `firsttouch migrate`.

use clap::Args;
use std::path::PathBuf;

/// Move a running program's pages to the nodes where they are used
#[derive(Debug, Args)]
#[command(
    long_about = "Moves the pages of a running program, in chunks, without stopping it: to the nodes where a profile of this process saw them \
        used, to the nodes that a plan chooses, to given nodes, or interleaved over nodes. Shows how many pages moved and how fast, and how many \
        could not be moved, by reason. The program's memory policy does not change; it still decides where pages go that the program touches \
        first later.\n\n\
        With --profile, each part of an object that one thread uses goes to the node where that thread runs now. Parts that several threads use \
        stay. Record the profile while the program runs: firsttouch profile --pid PID --duration 10. With --plan, a plan made from such a \
        profile decides (with --profile as well, any plan for the program); a thread's part goes to the node where the thread runs now.\n\n\
        No privilege is needed for your own processes. Pages that several processes map stay.",
    after_help = "Examples:\n  \
        firsttouch profile --pid 4711 --duration 10 && firsttouch migrate 4711 --profile pid-4711.ftp\n  \
        firsttouch profile --duration 10 -o a.ftp -- ./solver (it continues), then elsewhere:\n  \
        firsttouch plan a.ftp -o a.toml && firsttouch migrate solver --plan a.toml\n  \
        firsttouch migrate 4711 --to 1\n  \
        firsttouch migrate 4711 --interleave\n  \
        firsttouch migrate 4711 --interleave=0-1 --json | jq '{moved_bytes, gib_per_s, failed}'\n\n\
        Exit status: 0 also if some pages could not be moved; 1 if no page may be moved, or the process has ended; 2 for a usage error."
)]
pub struct Migrate {
    /// The number of a process, or the full name of its program
    #[arg(value_name = "PID|CMD")]
    pub process: String,
    /// Move all pages to these nodes, distributed evenly; pages that are already there stay
    #[arg(long, value_name = "NODES", conflicts_with_all = ["interleave", "profile", "plan"])]
    pub to: Option<String>,
    /// Interleave all pages over these nodes [default: all]
    #[arg(long, value_name = "NODES", num_args = 0..=1, require_equals = true, default_missing_value = "all",
        conflicts_with_all = ["profile", "plan"])]
    pub interleave: Option<String>,
    /// A profile of this process, which shows which threads use which memory
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// A plan, which chooses nodes for each object
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Print JSON (schema firsttouch.migrate/1)
    #[arg(long)]
    pub json: bool,
}
