//! One module a command; each returns its exit status.

mod balancing;
mod bench;
mod check;
mod demo;
mod diff;
mod doctor;
mod kernels;
mod machines;
mod man;
mod map;
mod maps;
mod migrate;
mod plan;
mod predict;
mod profile;
mod ps;
mod report;
mod reproduce;
mod run;
mod stat;
mod topology;
mod validate;

use crate::arguments::{Arguments, Command, OVERVIEW};
use crate::output::{message, print, tell};
use anyhow::Result;
use clap::Parser;
use clap::error::{ContextKind, ErrorKind};
use firsttouch_pipeline::PipelineError;
use firsttouch_system::launch::LaunchError;
use std::ffi::OsString;
use std::process::ExitCode;

pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;

/// A command line that parsed, but asks for something that cannot be.
#[derive(Debug)]
pub struct Usage(pub anyhow::Error);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Usage {}

/// Runs a command line; the only place that prints errors.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = check::profile_last(arguments.into_iter().collect());
    if arguments.len() <= 1 {
        tell(OVERVIEW);
        return ExitCode::from(USAGE);
    }
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return refused(error),
    };
    // The bundled programs are OpenMP programs, and want their threads where OMP_PROC_BIND puts them; nothing else does.
    if !matches!(arguments.command, Command::Bench(_)) {
        firsttouch_system::launch::restore_cpus();
    }
    let status = match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Topology(arguments) => topology::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Stat(arguments) => stat::run(&arguments),
        Command::Ps(arguments) => ps::run(&arguments),
        Command::Maps(arguments) => maps::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments),
        Command::Balancing(arguments) => balancing::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments.kernel),
        Command::Map(arguments) => map::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Machines(arguments) => machines::run(&arguments.action),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::HelpMan { directory } => man::write(&directory),
    };
    match status {
        Ok(status) => ExitCode::from(status),
        Err(error) => failed(&error),
    }
}

/// Help and version (stdout, 0), or a wrong command line (stderr, 2).
fn refused(mut error: clap::Error) -> ExitCode {
    // The hint that an unknown option could be a value after `--` only misleads: no command takes such values.
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let help = error.render();
            let colour = crate::output::style(&std::io::stdout()).colour;
            let text = if colour { help.ansi().to_string() } else { help.to_string() };
            match print(&text) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&error),
            }
        }
        _ => {
            message(&error.render().to_string());
            ExitCode::from(USAGE)
        }
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    message(&format!("error: {error:#}"));
    let is_usage = error.is::<Usage>() || error.downcast_ref::<PipelineError>().is_some_and(PipelineError::is_usage);
    ExitCode::from(if is_usage { USAGE } else { FAILED })
}

/// A command line's words, as text.
fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The status to end with when a command could not be executed (126, 127, as shells do); other errors stay errors.
fn unless_not_executed(error: anyhow::Error) -> Result<u8> {
    let Some(status) = error.downcast_ref::<LaunchError>().map(LaunchError::exit_code) else { return Err(error) };
    message(&format!("error: {error:#}"));
    Ok(exit_status(status))
}

fn exit_status(code: i32) -> u8 {
    u8::try_from(code & 0xff).unwrap_or(FAILED)
}

/// Marks an error as one of the command line.
pub fn usage<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| Usage(error).into())
}
