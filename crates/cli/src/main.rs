//! The command `firsttouch`: arguments, messages and exit statuses. What it does is in the other crates.

mod arguments;
mod commands;
mod described;
mod forecast;
mod judge;
mod live;
mod output;
mod plan;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os())
}
