//! `firsttouch run --plan`

mod find;

use super::show;
use crate::arguments::Run;
use crate::exit::unless_not_executed;
use crate::output::message;
use crate::plan;
use anyhow::Result;
use firsttouch_launch::{Locator, Refusals, apply, explain, prepare};
use firsttouch_system::launch::become_program;
use std::path::Path;

pub fn run(arguments: &Run, file: &Path) -> Result<u8> {
    let plan = plan::read(file)?;
    let locator = Locator { find: &find::find, is_in: &find::is_in };
    let warn = |warnings: &[String]| warnings.iter().for_each(|warning| message(&format!("plan: {warning}")));
    if arguments.explain {
        let (prepared, planned) = explain(&plan, &arguments.program, &locator)?;
        warn(&prepared.warnings);
        return show(arguments, &prepared.placement, planned, Vec::new());
    }
    let prepared = prepare(&plan, file, &arguments.program, &locator)?;
    warn(&prepared.warnings);
    // What the kernel refuses has been a warning above; the program runs.
    let mut refusals = Refusals::new(true);
    apply(&prepared.placement, &mut refusals)?;
    super::warn(&mut refusals);
    unless_not_executed(become_program(&arguments.program, &prepared.placement.environment))
}
