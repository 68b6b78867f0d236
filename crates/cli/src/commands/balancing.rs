//! `firsttouch balancing`

use crate::arguments::{Balancing, BalancingAction, BalancingMeasure};
use crate::exit::{self, unless_not_executed};
use crate::output::{Destination, Terminal, message, print, print_json, words};
use crate::terminal::style;
use anyhow::Result;
use firsttouch_report::{BalancingJson, MeasuredJson, balancing_text, measured_text};
use firsttouch_system::balancing::{self, Measurement, Timed};
use firsttouch_system::launch::Commands;
use std::io::stdout;
use std::path::Path;

/// A shell adds this to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

pub fn run(arguments: &Balancing) -> Result<u8> {
    let root = Path::new("/");
    match &arguments.action {
        None => show(arguments.json),
        Some(BalancingAction::On(action)) => switch(root, |before| before | 1, action.json),
        Some(BalancingAction::Off(action)) => switch(root, |_| 0, action.json),
        Some(BalancingAction::Measure(action)) => measure(action),
    }
}

/// Switches balancing to the value that follows from the one before, and says which that was: who switches it back needs it.
fn switch(root: &Path, after: impl Fn(u64) -> u64, json: bool) -> Result<u8> {
    let before = balancing::read(root).value;
    let after = after(before.unwrap_or(0));
    balancing::switch(root, after)?;
    if let Some(before) = before {
        message(&format!("kernel.numa_balancing was {before}, and is {after} now"));
    }
    show(json)
}

fn show(json: bool) -> Result<u8> {
    let balancing = balancing::read(Path::new("/"));
    if json {
        print_json(&BalancingJson::new(&balancing))?;
    } else {
        print(&balancing_text(&balancing, style(&stdout())))?;
    }
    Ok(exit::DONE)
}

fn measure(arguments: &BalancingMeasure) -> Result<u8> {
    let destination = Destination { json: arguments.json.as_deref(), output: arguments.output.as_deref() };
    destination.check()?;
    let root = Path::new("/");
    let commands = Commands::new()?;
    let run = || -> Result<Timed> {
        if let Some(signal) = commands.interrupted() {
            return Ok(Timed { wall_s: 0.0, stop: Some(SIGNALLED + signal) });
        }
        let ran = commands.run(&arguments.program)?;
        let failed = (ran.exit_code != 0).then_some(ran.exit_code);
        Ok(Timed { wall_s: ran.wall_s, stop: failed.or(ran.interrupted.map(|signal| SIGNALLED + signal)) })
    };
    let measured = match balancing::measure(root, arguments.rounds as usize, run) {
        Ok(Measurement::Done(measured)) => measured,
        Ok(Measurement::Stopped { exit_code }) => {
            message(&format!("nothing measured: a run ended with status {exit_code}; balancing is as it was before"));
            return Ok(exit::of_program(exit_code));
        }
        Err(error) => return unless_not_executed(error),
    };
    let (command, nodes) = (words(&arguments.program), balancing::read(root).nodes);
    let json = MeasuredJson::new(&command, nodes, &measured);
    destination.show(&json, |style| measured_text(&command, nodes, &measured, style), Terminal::Stderr)?;
    Ok(exit::DONE)
}
