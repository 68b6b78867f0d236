//! The table of the slides about the kernel's NUMA balancing.

use super::published::{Published, column, predicted};
use super::rounds::Case;
use super::{Claim, Drawing, Effect, Reproduction, ResultCell, ResultRow, ResultTable, Results, Runner, Source, dgemv};
use crate::Result;
use crate::error::{Context, Error, ErrorKind};
use firsttouch_model::format_bytes;
use firsttouch_model::system::Measured;
use firsttouch_predict::experiments::{Dgemv, Init, Quantity};
use firsttouch_predict::runs;
use firsttouch_system::balancing::{self, Measurement, Timed};
use firsttouch_system::launch::Commands;
use std::path::Path;

const RUNS: u32 = 5;
const INITS: [Init; 2] = [Init::Serial, Init::Parallel];
const STATES: [&str; 2] = ["off", "on"];
/// The number of products in a long run, in which balancing has time to move pages, and in a short run, in which it has not.
const LONG: u32 = 100;
const SHORT: u32 = 1;
const DEFAULT_BYTES: u64 = 256 << 20;

/// Runs of one kernel with balancing on or off. Seconds are per product.
struct Series {
    init: Init,
    repetitions: u32,
    states: Vec<Measured>,
}

pub fn run(runner: &Runner<'_>) -> Result<Reproduction> {
    let published = Published::find("balancing-e5-2620v4", "xeon-e5-2620v4x2")?;
    let (bytes, mut notes) = runner.array_bytes(DEFAULT_BYTES)?;
    let (m, threads) = (dgemv::rows(bytes), runner.host.cpus().len());
    let rounds = runner.rounds(RUNS).runs;
    let switchable = match balancing::read(Path::new("/")).value {
        Some(value) => balancing::switch(Path::new("/"), value).of_kind(ErrorKind::System).map_err(|error| error.to_string()),
        None => Err("this kernel has no NUMA balancing, or hides it".to_owned()),
    };
    let mut all = Vec::new();
    for (init, repetitions) in [(Init::Serial, LONG), (Init::Parallel, LONG), (Init::Serial, SHORT)] {
        let kernel = dgemv::kernel(init, m, threads, &format!("--iterations {repetitions} --repetitions 1"));
        let case = Case::new(format!("{} initialisation, {repetitions} products", init.name()), Vec::new(), &kernel);
        let states = if switchable.is_ok() { switched(runner, &case, rounds)? } else { unswitched(runner, &case, rounds)? };
        all.push(Series { init, repetitions, states });
    }
    if let Err(why) = &switchable {
        let state = balancing::read(Path::new("/")).state;
        notes.push(format!("Balancing cannot be switched here, so only its present state ({state}) is measured: {why}."));
    }
    Ok(runner.reproduction(Results {
        title: "row-major DGEMV with the kernel's NUMA balancing off and on",
        sources: vec![published.source()],
        settings: vec![format!(
            "m = n = {m} ({}), {threads} threads, not pinned, as in the slides; {rounds} runs of each, with balancing on and off in turn.",
            format_bytes(8 * m * m)
        )],
        tables: vec![times(&published, m, &all)?, migrations(&published, m, &all)],
        effects: effects(runner, &published, &all, switchable.is_ok()),
        said: published.said(runner.name),
        notes,
    }))
}

/// Runs with balancing on and off in turn. The previous state is restored, also after Ctrl-C.
fn switched(runner: &Runner<'_>, case: &Case, rounds: u32) -> Result<Vec<Measured>> {
    let commands = Commands::new().of_kind(ErrorKind::System)?;
    let once = || {
        let timed = timed(runner, case);
        // Ctrl-C reaches the kernel as well: its failure is then intended.
        match commands.interrupted() {
            Some(signal) => Ok(Timed { wall_s: 0.0, stop: Some(128 + signal) }),
            None => timed,
        }
    };
    match balancing::measure(Path::new("/"), rounds as usize, once)? {
        Measurement::Done(measured) => Ok(measured.into_iter().collect()),
        Measurement::Stopped { exit_code } => {
            Err(Error::new(ErrorKind::Interrupted, format!("interrupted (status {exit_code}); balancing is as it was before")))
        }
    }
}

fn unswitched(runner: &Runner<'_>, case: &Case, rounds: u32) -> Result<Vec<Measured>> {
    let state = balancing::read(Path::new("/"));
    let name = if state.value.unwrap_or(0) & 1 == 0 { "off" } else { "on" };
    let run = |_| timed(runner, case).map(|timed| firsttouch_model::system::TimedRun { wall_s: timed.wall_s, ..Default::default() });
    Ok(vec![Measured::new(name, (0..rounds).map(run).collect::<Result<_>>()?)])
}

/// One run: seconds per product, without the initialisation.
fn timed(runner: &Runner<'_>, case: &Case) -> Result<Timed> {
    (runner.progress)(&case.name);
    let value = runner.rounds(1).once(case)?;
    Ok(Timed { wall_s: value["seconds"]["median"].as_f64().unwrap_or(0.0), stop: None })
}

fn find<'a>(all: &'a [Series], init: Init, repetitions: u32, state: &str) -> Option<&'a Measured> {
    let series = all.iter().find(|series| series.init == init && series.repetitions == repetitions)?;
    series.states.iter().find(|measured| measured.balancing == state)
}

fn seconds(measured: Option<&Measured>) -> Vec<f64> {
    measured.map_or_else(Vec::new, |measured| measured.runs.iter().map(|run| run.wall_s).filter(|seconds| *seconds > 0.0).collect())
}

fn published_run<'a>(published: &'a Published, init: Init, state: &str) -> Option<&'a Dgemv> {
    let note = format!("balancing {state}");
    published.experiment.dgemv.iter().find(|run| run.init == init && run.note.as_deref() == Some(&note))
}

fn times(published: &Published, m: u64, all: &[Series]) -> Result<ResultTable> {
    let mut times = ResultTable::new("time of a product", "s", &["balancing", "initialisation"], Drawing::Bars);
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
            let model = if state == "off" { Some(predicted(runs::dgemv(&published.machine, &run))?) } else { None };
            let cells = vec![
                published_run(published, init, state).map(|run| ResultCell::published(run.published)),
                model,
                ResultCell::measured(&seconds(find(all, init, LONG, state))),
            ];
            times.rows.push(ResultRow { labels: vec![state.to_owned(), init.name().to_owned()], cells });
        }
    }
    Ok(times)
}

/// Results with balancing on and serial initialisation: migrated pages, and the time per product.
fn migrations(published: &Published, m: u64, all: &[Series]) -> ResultTable {
    let mut moved = ResultTable::new(
        "balancing on, serial initialisation: pages migrated, and the time of a product",
        "",
        &["repetitions", "figure"],
        Drawing::None,
    );
    moved.columns = vec![column(Source::Published, "m=10000"), column(Source::Measured, format!("m={m}"))];
    for repetitions in [SHORT, LONG] {
        let source = published.experiment.migrations.iter().find(|source| source.repetitions == repetitions);
        let here = find(all, Init::Serial, repetitions, "on");
        let pages: Vec<f64> = here.map_or_else(Vec::new, |here| here.runs.iter().map(|run| run.pages_migrated as f64).collect());
        for (figure, source, here) in [
            ("pages migrated", source.map(|source| source.pages as f64), ResultCell::measured(&pages)),
            ("seconds a product", source.map(|source| source.seconds), ResultCell::measured(&seconds(here))),
        ] {
            let labels = vec![repetitions.to_string(), figure.to_owned()];
            moved.rows.push(ResultRow { labels, cells: vec![source.map(ResultCell::published), here] });
        }
    }
    moved
}

/// The effect of initialisation without balancing, and the effect of balancing on serial initialisation.
fn effects(runner: &Runner<'_>, published: &Published, all: &[Series], is_switchable: bool) -> Vec<Effect> {
    let speeds = |init, state: &str| seconds(find(all, init, LONG, state)).iter().map(|seconds| 1.0 / seconds).collect::<Vec<f64>>();
    // If balancing cannot be switched, its present state.
    let state = if find(all, Init::Serial, LONG, "off").is_some() { "off" } else { "on" };
    let ratio =
        || Some(published_run(published, Init::Serial, state)?.published / published_run(published, Init::Parallel, state)?.published);
    let impossible = runner.host.impossible();
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
            // The slides compare one product with a hundred, both with balancing on; the table shows that comparison.
            published: None,
            impossible: impossible.or(not_switched),
        }
        .judged(),
    ]
}
