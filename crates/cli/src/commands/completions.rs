//! `firsttouch completions`

use crate::arguments::{Arguments, Completions};
use crate::exit;
use crate::output::print_own;
use anyhow::Result;
use clap::{Command, CommandFactory};

pub fn run(arguments: &Completions) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(), "firsttouch", &mut script);
    print_own(&String::from_utf8_lossy(&script))?;
    Ok(exit::DONE)
}

/// The command line without hidden commands.
fn shown() -> Command {
    let all = Arguments::command();
    let commands = all.get_subcommands().filter(|one| !one.is_hide_set()).cloned();
    Command::new("firsttouch").version(env!("CARGO_PKG_VERSION")).about(all.get_about().cloned().unwrap_or_default()).subcommands(commands)
}
