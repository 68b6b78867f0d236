//! The command `firsttouch`: arguments, messages and exit statuses. What it does is in the other crates.

mod arguments;
mod commands;
mod output;
mod request;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os())
}
