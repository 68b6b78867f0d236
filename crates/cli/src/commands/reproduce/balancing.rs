//! The slides' table on the kernel's balancing.

use super::published::{Published, column, predicted};
use super::rounds::Case;
use super::{Found, Lab, dgemv, table};
use crate::output::message;
use anyhow::{Result, bail};
use firsttouch_model::format_bytes;
use firsttouch_model::system::Measured;
use firsttouch_predict::experiments::{Dgemv, Init, Quantity};
use firsttouch_predict::runs;
use firsttouch_report::{
    Claim, Drawing, Effect, ReproducedCell as Cell, ReproducedRow as Row, ReproducedTable as Table, Reproduction, Source,
};
use firsttouch_system::balancing::{self, Measurement, Timed};
use firsttouch_system::launch::Commands;
use std::io::{IsTerminal, stderr};
use std::path::Path;

const RUNS: u32 = 5;
const INITS: [Init; 2] = [Init::Serial, Init::Parallel];
const STATES: [&str; 2] = ["off", "on"];
/// Products that balancing has time in, and the one sweep in which it has none.
const LONG: u32 = 100;
const SHORT: u32 = 1;
const USUAL_BYTES: u64 = 256 << 20;

/// Runs of one kernel, with balancing on or off; seconds are those of a product.
struct Series {
    init: Init,
    repetitions: u32,
    states: Vec<Measured>,
}

pub fn run(lab: &Lab) -> Result<Reproduction> {
    let published = Published::find("balancing-e5-2620v4", "xeon-e5-2620v4x2")?;
    let (bytes, mut notes) = lab.array_bytes(USUAL_BYTES)?;
    let (m, threads) = (dgemv::rows(bytes), lab.here.cpus().len());
    let rounds = lab.rounds(RUNS).runs;
    let switchable = match balancing::read(Path::new("/")).value {
        Some(value) => balancing::switch(Path::new("/"), value).map_err(|error| error.to_string()),
        None => Err("this kernel has no NUMA balancing, or hides it".to_owned()),
    };
    let mut all = Vec::new();
    for (init, repetitions) in [(Init::Serial, LONG), (Init::Parallel, LONG), (Init::Serial, SHORT)] {
        let kernel = dgemv::kernel(init, m, threads, &format!("--iterations {repetitions} --repetitions 1"));
        let case = Case::new(format!("{} initialisation, {repetitions} products", init.name()), Vec::new(), &kernel);
        let states = if switchable.is_ok() { switched(lab, &case, rounds)? } else { as_it_is(lab, &case, rounds)? };
        all.push(Series { init, repetitions, states });
    }
    if let Err(why) = &switchable {
        let state = balancing::read(Path::new("/")).state;
        notes.push(format!("Balancing cannot be switched here, so only its present state ({state}) is measured: {why}."));
    }
    Ok(lab.reproduction(Found {
        title: "row-major DGEMV with the kernel's NUMA balancing off and on",
        sources: vec![published.source()],
        settings: vec![format!(
            "m = n = {m} ({}), {threads} threads, not pinned, as in the slides; {rounds} runs of each, with balancing on and off in turn.",
            format_bytes(8 * m * m)
        )],
        tables: vec![times(&published, m, &all)?, migrations(&published, m, &all)],
        effects: effects(lab, &published, &all, switchable.is_ok()),
        said: published.said(lab.name),
        notes,
    }))
}

/// Runs with balancing on and off in turn; the old state is put back, also after Ctrl-C.
fn switched(lab: &Lab, case: &Case, rounds: u32) -> Result<Vec<Measured>> {
    let commands = Commands::new()?;
    let once = || {
        let timed = timed(lab, case);
        // The kernel got the terminal's signal too: its failure is the user's wish then.
        match commands.interrupted() {
            Some(signal) => Ok(Timed { wall_s: 0.0, stop: Some(128 + signal) }),
            None => timed,
        }
    };
    match balancing::measure(Path::new("/"), rounds as usize, once)? {
        Measurement::Done(measured) => Ok(measured.into_iter().collect()),
        Measurement::Stopped { exit_code } => bail!("interrupted (status {exit_code}); balancing is as it was before"),
    }
}

fn as_it_is(lab: &Lab, case: &Case, rounds: u32) -> Result<Vec<Measured>> {
    let state = balancing::read(Path::new("/"));
    let name = if state.value.unwrap_or(0) & 1 == 0 { "off" } else { "on" };
    let run = |_| timed(lab, case).map(|timed| firsttouch_model::system::TimedRun { wall_s: timed.wall_s, ..Default::default() });
    Ok(vec![Measured::new(name, (0..rounds).map(run).collect::<Result<_>>()?)])
}

/// One run: the seconds of a product, its initialisation left out.
fn timed(lab: &Lab, case: &Case) -> Result<Timed> {
    if stderr().is_terminal() {
        message(&case.name);
    }
    let value = lab.rounds(1).once(case)?;
    Ok(Timed { wall_s: value["seconds"]["median"].as_f64().unwrap_or(0.0), stop: None })
}

fn find<'a>(all: &'a [Series], init: Init, repetitions: u32, state: &str) -> Option<&'a Measured> {
    let series = all.iter().find(|series| series.init == init && series.repetitions == repetitions)?;
    series.states.iter().find(|measured| measured.balancing == state)
}

fn seconds(measured: Option<&Measured>) -> Vec<f64> {
    measured.map_or_else(Vec::new, |measured| measured.runs.iter().map(|run| run.wall_s).filter(|seconds| *seconds > 0.0).collect())
}

fn told<'a>(published: &'a Published, init: Init, state: &str) -> Option<&'a Dgemv> {
    let note = format!("balancing {state}");
    published.experiment.dgemv.iter().find(|run| run.init == init && run.note.as_deref() == Some(&note))
}

fn times(published: &Published, m: u64, all: &[Series]) -> Result<Table> {
    let mut times = table("time of a product", "s", &["balancing", "initialisation"], Drawing::Bars);
    times.columns = vec![
        column(Source::Published, "m=20000"),
        column(Source::Model, "m=20000, no balancing"),
        column(Source::Measured, format!("m={m}, {LONG} products")),
    ];
    for state in STATES {
        for init in INITS {
            let run = Dgemv {
                machine: published.machine.name.clone(),
                note: None,
                init,
                m: 20000,
                threads: 16,
                quantity: Quantity::Seconds,
                published: 0.0,
            };
            let model = if state == "off" { Some(predicted(runs::dgemv(&published.machine, &run)?)) } else { None };
            let cells = vec![
                told(published, init, state).map(|run| Cell::published(run.published)),
                model,
                Cell::measured(&seconds(find(all, init, LONG, state))),
            ];
            times.rows.push(Row { labels: vec![state.to_owned(), init.name().to_owned()], cells });
        }
    }
    Ok(times)
}

/// With balancing on and serial initialisation: what was moved, and the time of a product.
fn migrations(published: &Published, m: u64, all: &[Series]) -> Table {
    let mut moved = table(
        "balancing on, serial initialisation: pages migrated, and the time of a product",
        "",
        &["repetitions", "figure"],
        Drawing::None,
    );
    moved.columns = vec![column(Source::Published, "m=10000"), column(Source::Measured, format!("m={m}"))];
    for repetitions in [SHORT, LONG] {
        let told = published.experiment.migrations.iter().find(|told| told.repetitions == repetitions);
        let here = find(all, Init::Serial, repetitions, "on");
        let pages: Vec<f64> = here.map_or_else(Vec::new, |here| here.runs.iter().map(|run| run.pages_migrated as f64).collect());
        for (figure, told, here) in [
            ("pages migrated", told.map(|told| told.pages as f64), Cell::measured(&pages)),
            ("seconds a product", told.map(|told| told.seconds), Cell::measured(&seconds(here))),
        ] {
            let labels = vec![repetitions.to_string(), figure.to_owned()];
            moved.rows.push(Row { labels, cells: vec![told.map(Cell::published), here] });
        }
    }
    moved
}

/// Initialisation without balancing, and what balancing makes of a bad one.
fn effects(lab: &Lab, published: &Published, all: &[Series], is_switchable: bool) -> Vec<Effect> {
    let speeds = |init, state: &str| seconds(find(all, init, LONG, state)).iter().map(|seconds| 1.0 / seconds).collect::<Vec<f64>>();
    // Where only one state could be had, that one.
    let state = if find(all, Init::Serial, LONG, "off").is_some() { "off" } else { "on" };
    let ratio = || Some(told(published, Init::Serial, state)?.published / told(published, Init::Parallel, state)?.published);
    let impossible = lab.here.impossible();
    let not_switched = (!is_switchable).then(|| "balancing cannot be switched here".to_owned());
    vec![
        Claim {
            faster: &format!("with balancing {state}, a product after parallel initialisation"),
            slower: "one after serial initialisation",
            faster_runs: &speeds(Init::Parallel, state),
            slower_runs: &speeds(Init::Serial, state),
            published: ratio(),
            impossible: impossible.clone(),
        }
        .judged(),
        Claim {
            faster: "after serial initialisation, one of 100 products with balancing on",
            slower: "with balancing off",
            faster_runs: &speeds(Init::Serial, "on"),
            slower_runs: &speeds(Init::Serial, "off"),
            // The slides compare one product with a hundred, both with balancing on: the table has that.
            published: None,
            impossible: impossible.or(not_switched),
        }
        .judged(),
    ]
}
