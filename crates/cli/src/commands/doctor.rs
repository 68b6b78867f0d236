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
use firsttouch_system::launchers::{self, Launched};
use firsttouch_system::{calls::probe, program};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub fn run(arguments: &Doctor) -> Result<u8> {
    let facts = match &arguments.input {
        Some(root) => recorded(root)?,
        None => this_system(&launchers::behind(&arguments.program))?,
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

/// This system as the program would see it behind its launchers (`taskset`, `env`, `numactl`).
fn this_system(launched: &Launched) -> Result<Facts> {
    let mut facts = facts::read_this_system()?;
    facts.probes = probe::perf_events(facts.probes);
    facts.compiler = program::compiler();
    facts.rank = crate::ranks::here();
    facts.program = launched.command.first().map(|name| look_at(name)).transpose()?;
    apply(launched, &mut facts);
    let variable = |name: &str| facts.environment.as_ref().and_then(|variables| variables.get(name)).map(String::as_str);
    facts.missing_preloads = program::missing_preloads(variable("LD_PRELOAD").unwrap_or_default(), variable("LD_LIBRARY_PATH"));
    Ok(facts)
}

/// Changes the facts as launchers in front of the program do.
fn apply(launched: &Launched, facts: &mut Facts) {
    let environment = facts.environment.get_or_insert_default();
    if launched.is_empty_environment {
        environment.clear();
    }
    for (name, value) in launched.variables.iter().filter(|(name, _)| facts::matters(name)) {
        match value {
            Some(value) => environment.insert(name.clone(), value.clone()),
            None => environment.remove(name),
        };
    }
    if let Some((cpus, words)) = &launched.cpus {
        // A CPU that is offline or does not exist is left out, as by the kernel.
        let online = &facts.topology.cpus.online;
        let allowed = cpus.iter().copied().filter(|cpu| online.contains(cpu)).collect();
        facts.topology.process.get_or_insert_default().allowed_cpus = Some(allowed);
        facts.launcher = Some(words.clone());
    }
}

fn look_at(name: &OsStr) -> Result<Program> {
    let cannot = || format!("cannot look at {}", name.display());
    let path = find_program(name).context("there is no such program: check the name and PATH").with_context(cannot)?;
    // An unreadable file could contain anything, so do not report it as a program without OpenMP.
    let mut file = std::fs::File::open(&path).with_context(cannot)?;
    let mut start = [0; 4];
    let read = file.read(&mut start).with_context(cannot)?;
    let is_program =
        start == *b"\x7fELF" || start.starts_with(b"#!") || file.metadata().is_ok_and(|one| one.permissions().mode() & 0o111 != 0);
    if read == 0 || !is_program {
        bail!(
            "cannot look at {}: it is no program (no ELF file, no script that begins with #!, and not executable); name what you run",
            path.display()
        );
    }
    Ok(program::look_at(&path))
}
