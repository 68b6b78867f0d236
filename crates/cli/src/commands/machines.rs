//! `firsttouch machines`

use crate::arguments::MachinesAction;
use crate::output::{print, print_json};
use crate::terminal::style;
use anyhow::Result;
use firsttouch_pipeline::described_machine;
use firsttouch_predict::machine::{self, MachineModel};
use firsttouch_report::{MachineJson, MachinesJson, machine_text, machines_text};
use std::io::stdout;

pub fn run(action: &MachinesAction) -> Result<u8> {
    match action {
        MachinesAction::List(arguments) => {
            let machines = machine::names().map(machine::find).collect::<Result<Vec<MachineModel>, _>>()?;
            if arguments.json {
                print_json(&MachinesJson::new(&machines))?;
            } else {
                print(&machines_text(&machines, style(&stdout())))?;
            }
        }
        MachinesAction::Show(arguments) => {
            let machine = described_machine(&arguments.machine)?;
            if arguments.json {
                print_json(&MachineJson::new(&machine))?;
            } else {
                print(&machine_text(&machine, style(&stdout())))?;
            }
        }
    }
    Ok(0)
}
