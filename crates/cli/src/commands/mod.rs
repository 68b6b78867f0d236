//! One module per command. Each calls the library that does the work, prints the result and returns the exit status. No command uses
//! another.

mod balancing;
mod bench;
mod check;
mod clean;
mod completions;
mod demo;
mod diff;
mod doctor;
mod export;
mod machines;
mod man;
mod map;
mod maps;
mod merge;
mod migrate;
mod plan;
mod predict;
mod profile;
mod ps;
mod report;
mod reproduce;
mod run;
mod serve_metrics;
mod stat;
mod top;
mod topology;
mod tune;
mod validate;

pub use check::profile_last;

use crate::arguments::Command;
use anyhow::Result;

/// Runs a command and returns its exit status.
pub fn run(command: &Command) -> Result<u8> {
    match command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Profile(arguments) => profile::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Predict(arguments) => predict::run(arguments),
        Command::Plan(arguments) => plan::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Merge(arguments) => merge::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::ServeMetrics(arguments) => serve_metrics::run(arguments),
        Command::RecordLive(arguments) => top::record_live(arguments),
        Command::Topology(arguments) => topology::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Stat(arguments) => stat::run(arguments),
        Command::Ps(arguments) => ps::run(arguments),
        Command::Maps(arguments) => maps::run(arguments),
        Command::Migrate(arguments) => migrate::run(arguments),
        Command::Tune(arguments) => tune::run(arguments),
        Command::Balancing(arguments) => balancing::run(arguments),
        Command::Bench(arguments) => bench::run(&arguments.kernel),
        Command::Map(arguments) => map::run(arguments),
        Command::Reproduce(arguments) => reproduce::run(arguments),
        Command::Machines(arguments) => machines::run(&arguments.action),
        Command::Validate(arguments) => validate::run(arguments),
        Command::Clean(arguments) => clean::run(arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::HelpMan { directory } => man::write(directory),
    }
}
