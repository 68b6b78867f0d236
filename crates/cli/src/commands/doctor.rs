//! `firsttouch doctor`

use crate::arguments::Doctor;
use crate::exit;
use crate::output::{print, print_json};
use crate::terminal::style;
use anyhow::{Context, Result, bail};
use firsttouch_model::facts::{Facts, Program};
use firsttouch_report::{DoctorJson, doctor_text, seen_text};
use firsttouch_system::facts;
use firsttouch_system::launch::find_program;
use firsttouch_system::{calls::probe, program};
use std::ffi::OsStr;
use std::path::Path;

pub fn run(arguments: &Doctor) -> Result<u8> {
    let facts = match &arguments.input {
        Some(root) => recorded(root)?,
        None => this_system(arguments.program.first().map(|name| name.as_os_str()))?,
    };
    let diagnosis = firsttouch_doctor::examine(&facts);
    if arguments.json {
        print_json(&DoctorJson::new(&diagnosis))?;
    } else {
        if arguments.verbose {
            print(&seen_text(&diagnosis, style(&std::io::stdout())))?;
        }
        print(&doctor_text(&diagnosis, style(&std::io::stdout())))?;
    }
    Ok(exit::DONE)
}

fn recorded(root: &Path) -> Result<Facts> {
    if !root.is_dir() {
        bail!("cannot examine {}: it is not a directory with a copy of a machine's /proc and /sys", root.display());
    }
    facts::read(root).with_context(|| format!("cannot read the machine recorded in {}", root.display()))
}

fn this_system(name: Option<&OsStr>) -> Result<Facts> {
    let mut facts = facts::read_this_system()?;
    facts.probes = probe::perf_events(facts.probes);
    facts.compiler = program::compiler();
    facts.program = name.map(look_at).transpose()?;
    Ok(facts)
}

fn look_at(name: &OsStr) -> Result<Program> {
    let cannot = || format!("cannot look at {}", name.display());
    let path = find_program(name).context("there is no such program: check the name and PATH").with_context(cannot)?;
    // An unreadable file could contain anything, so do not report it as a program without OpenMP.
    std::fs::File::open(&path).with_context(cannot)?;
    Ok(program::look_at(&path))
}
