//! `firsttouch bench`

mod place;
mod progress;
mod setup;

use super::usage;
use crate::arguments::{How, Init, Kernel as Arguments};
use crate::output::{is_stdout, print, print_json, write};
use anyhow::{Result, bail};
use firsttouch_model::format_bytes;
use firsttouch_native::{Outcome, Run, Schedule};
use firsttouch_report::{Bench, BenchJson, Team, Work, bench_text, speed_chart};
use firsttouch_system::MachineInfo;
use setup::Setup;
use std::path::Path;

pub fn run(arguments: &Arguments) -> Result<u8> {
    let info = MachineInfo::read(Path::new("/"));
    let available = info.map_or(0, |info| info.available_memory_bytes);
    let Setup { run, sizes, shape, iteration, how } = usage(setup::of(arguments, available))?;
    if let Some(placement) = &how.place {
        return place::become_placed(placement);
    }
    usage(fits_memory(&run, available))?;
    let cost = run.kernel.cost();
    let mut bench = Bench {
        kernel: run.kernel.name().to_owned(),
        init: init_name(how.init).to_owned(),
        schedule: schedule_name(how.schedule),
        form: String::new(),
        place: how.placed.clone(),
        sizes,
        shape,
        bytes: 0,
        huge_pages: run.huge_pages,
        iterations: run.iterations,
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        work: Work {
            element: cost.element.to_owned(),
            elements: run.elements(),
            bytes: cost.bytes,
            moved: cost.moved,
            flops: cost.flops,
            iteration: iteration.to_owned(),
        },
        teams: Vec::new(),
    };
    let teams = if how.scaling.is_empty() { vec![how.threads.unwrap_or(0)] } else { how.scaling.clone() };
    for (index, &threads) in teams.iter().enumerate() {
        let what = if teams.len() > 1 { format!("{threads} threads ({} of {})", index + 1, teams.len()) } else { bench.kernel.clone() };
        let outcome = progress::run(&Run { threads, ..run }, &what)?;
        outcome.form.name().clone_into(&mut bench.form);
        let Outcome { threads, seconds, worst_error, bytes, cpus, page_nodes, .. } = outcome;
        bench.bytes = bytes;
        bench.teams.push(Team { threads, seconds, worst_error, cpus, page_nodes });
    }
    show(&bench, how)?;
    Ok(0)
}

fn show(bench: &Bench, how: &How) -> Result<()> {
    if let Some(path) = &how.svg {
        write(path, &speed_chart(bench))?;
        if is_stdout(path) {
            return Ok(());
        }
    }
    if how.json { print_json(&BenchJson::new(bench)) } else { print(&bench_text(bench)) }
}

/// Linux hands out memory it does not have and kills who uses it: better refused before.
fn fits_memory(run: &Run, available: u64) -> Result<()> {
    let bytes = run.bytes();
    if available > 0 && bytes > available {
        bail!(
            "cannot run {}: it needs {}, and {} are available; choose smaller sizes",
            run.kernel.name(),
            format_bytes(bytes),
            format_bytes(available)
        );
    }
    Ok(())
}

fn init_name(init: Init) -> &'static str {
    match init {
        Init::Serial => "serial",
        Init::Parallel => "parallel",
        Init::Mismatched => "mismatched",
        Init::Blocked => "blocked",
    }
}

fn schedule_name(schedule: Schedule) -> String {
    let (kind, chunk) = match schedule {
        Schedule::Static { chunk } => ("static", chunk),
        Schedule::Dynamic { chunk } => ("dynamic", chunk),
        Schedule::Guided { chunk } => ("guided", chunk),
    };
    chunk.map_or(kind.to_owned(), |chunk| format!("{kind},{chunk}"))
}
