//! `firsttouch machines`

use crate::arguments::MachinesAction;
use crate::output::{print, print_json, style};
use anyhow::{Context, Result};
use firsttouch_predict::machine::{self, Machine};
use firsttouch_report::{MachineJson, MachinesJson, machine_text, machines_text};
use std::io::stdout;
use std::path::Path;

pub fn run(action: &MachinesAction) -> Result<u8> {
    match action {
        MachinesAction::List(arguments) => {
            let machines = machine::names().map(machine::find).collect::<Result<Vec<Machine>, _>>()?;
            if arguments.json {
                print_json(&MachinesJson::new(&machines))?;
            } else {
                print(&machines_text(&machines, style(&stdout())))?;
            }
        }
        MachinesAction::Show(arguments) => {
            let machine = read(&arguments.machine)?;
            if arguments.json {
                print_json(&MachineJson::new(&machine))?;
            } else {
                print(&machine_text(&machine, style(&stdout())))?;
            }
        }
    }
    Ok(0)
}

/// A file that describes a machine, or a name of the catalogue.
fn read(name: &str) -> Result<Machine> {
    if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
        return Ok(machine::find(name)?);
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read the machine description {name}"))?;
    Machine::parse(&text).with_context(|| name.to_owned())
}
