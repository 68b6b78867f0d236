//! `firsttouch migrate`.

use clap::Args;
use std::path::PathBuf;

/// Move a running program's pages to the nodes where they are used
#[derive(Debug, Args)]
#[command(
    long_about = "Moves the pages of a running program, in chunks, while it goes on: to where a profile of that same process saw them used, to \
        where a plan wants them, to nodes, or page by page over nodes. Says how many pages moved and how fast, and how many could not, by reason. The program is not \
        stopped, and its memory policy stays as it is: pages that it touches first later lie where that puts them.\n\n\
        With --profile, each part of an object that one thread uses goes to the node that thread runs on now; parts that several use \
        stay. Make the profile while the program runs: firsttouch profile --pid PID --duration 10. With --plan, a plan made from such a \
        profile (or with --profile, any plan for the program) says which memory goes where; a thread's part goes to the node that it \
        runs on now.\n\n\
        A process of your own needs no privilege. Pages that several processes map stay.",
    after_help = "Examples:\n  \
        firsttouch profile --pid 4711 --duration 10 && firsttouch migrate 4711 --profile pid-4711.ftp\n  \
        firsttouch profile --duration 10 -o a.ftp -- ./solver (it goes on), then elsewhere:\n  \
        firsttouch plan a.ftp -o a.toml && firsttouch migrate solver --plan a.toml\n  \
        firsttouch migrate 4711 --to 1\n  \
        firsttouch migrate 4711 --interleave\n  \
        firsttouch migrate 4711 --interleave=0-1 --json | jq '{moved_bytes, gib_per_s, failed}'\n\n\
        Exit status: 0 also where some pages could not move; 1 when none may be moved, or the process is gone; 2 for a wrong command line."
)]
pub struct Migrate {
    /// The number of a process, or the whole name of its program
    #[arg(value_name = "PID|CMD")]
    pub process: String,
    /// Move pages that are on other nodes to these, dealt out evenly
    #[arg(long, value_name = "NODES", conflicts_with_all = ["interleave", "profile", "plan"])]
    pub to: Option<String>,
    /// Spread all pages over these nodes in turn [default: all]
    #[arg(long, value_name = "NODES", num_args = 0..=1, require_equals = true, default_missing_value = "all",
        conflicts_with_all = ["profile", "plan"])]
    pub interleave: Option<String>,
    /// A profile of this process, which tells who uses what
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// A plan: which memory goes where
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Print JSON (schema firsttouch.migrate/1)
    #[arg(long)]
    pub json: bool,
}
