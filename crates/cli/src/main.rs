//! The command `firsttouch`: arguments, messages and exit statuses. The work is done in the other crates.
//!
//! | module | what it does |
//! |---|---|
//! | `arguments/` | the options of each command, with their help |
//! | `commands/` | one file a command: calls the crate that does the work, prints the result |
//! | `exit.rs` | exit statuses, and the errors that determine them |
//! | `output.rs` | results go to stdout or a file, messages to stderr |
//! | `page.rs` | the report with pictures |
//! | `terminal.rs`, `progress.rs` | colours and width; progress on a terminal |
//! | `profile_name/` | names of profiles: by the program, with `%p`; the newest one here |
//! | `record.rs`, `first_verdict.rs` | starts a recording, for `profile` and `check`; the verdict so far, while it lasts |
//! | `ranks/` | recording the ranks of an MPI job, behind and before a launcher |
//! | `processes.rs` | finds the processes that a command line names |
//! | `tuning.rs` | tunes a process or a program, for `tune` and `run --tune` |
//! | `watchpoints.rs` | the environment variables that say when watchpoints are set |
//! | `request.rs` | from arguments to requests of the libraries |

mod arguments;
mod commands;
mod exit;
mod first_verdict;
mod output;
mod page;
mod processes;
mod profile_name;
mod progress;
mod ranks;
mod record;
mod request;
mod terminal;
mod tuning;
mod watchpoints;

use arguments::{Arguments, Command, OVERVIEW};
use clap::Parser;
use firsttouch_system::launch::{outlive_size_limit, with_enough_stack};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    outlive_size_limit();
    let status = with_enough_stack(|| {
        run(std::env::args_os().collect()).unwrap_or_else(|error| {
            output::error(&error);
            exit::of_error(&error)
        })
    });
    ExitCode::from(status.unwrap_or_else(|error| {
        output::message(&format!("error: cannot start a thread, and the stack is limited (ulimit -s): {error}"));
        exit::FAILED
    }))
}

fn run(words: Vec<OsString>) -> anyhow::Result<u8> {
    if words.len() <= 1 {
        output::tell(OVERVIEW);
        return Ok(exit::USAGE);
    }
    let arguments = match Arguments::try_parse_from(commands::profile_last(words)) {
        Ok(arguments) => arguments,
        Err(refusal) => return exit::help_or_usage(refusal),
    };
    // OMP_PROC_BIND also binds this process, before `main`. Only the bundled kernels are OpenMP programs and need that.
    if !matches!(arguments.command, Command::Bench(_)) {
        firsttouch_system::launch::restore_cpus();
    }
    commands::run(&arguments.command)
}
