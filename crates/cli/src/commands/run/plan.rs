//! `firsttouch run --plan`

use super::show;
use crate::arguments::Run;
use crate::exit::unless_not_executed;
use crate::output::message;
use anyhow::Result;
use firsttouch_launch::{Refusals, apply, explain, prepare};
use firsttouch_pipeline::{ElfFiles, read_plan};
use firsttouch_system::launch::become_program;
use std::path::Path;

pub fn run(arguments: &Run, file: &Path) -> Result<u8> {
    let plan = read_plan(file)?;
    let files = ElfFiles::default();
    let warn = |warnings: &[String]| warnings.iter().for_each(|warning| message(&format!("plan: {warning}")));
    if arguments.explain {
        let (prepared, planned) = explain(&plan, &arguments.program, &files)?;
        warn(&prepared.warnings);
        return show(arguments, &prepared.placement, planned, Vec::new());
    }
    let mut prepared = prepare(&plan, file, &arguments.program, &files)?;
    warn(&prepared.warnings);
    super::place_openmp_allocators(arguments, &mut prepared.placement.environment);
    // The program runs without what the kernel refuses.
    let mut refusals = Refusals::new(true);
    apply(&prepared.placement, &mut refusals)?;
    super::warn(&mut refusals);
    unless_not_executed(become_program(&arguments.program, &prepared.placement.environment))
}
