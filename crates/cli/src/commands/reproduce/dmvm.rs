//! The slides' dense matrix-vector products: short and long runs, and how far they spread.

use super::published::{Published, column, predicted};
use super::rounds::{Case, Ran, failures};
use super::{Found, Lab, dgemv, table};
use anyhow::Result;
use firsttouch_model::format_bytes;
use firsttouch_predict::experiments::{Init, Kernel};
use firsttouch_predict::runs::{self, Memory};
use firsttouch_predict::seats;
use firsttouch_report::{
    Claim, Drawing, Effect, ReproducedCell as Cell, ReproducedRow as Row, ReproducedTable as Table, Reproduction, Source,
};
use firsttouch_system::balancing;
use std::path::Path;

/// The slides do not name their machine; this one of the catalogue is split by Cluster on Die as theirs was.
const MACHINE: &str = "xeon-e5-2697v4x2-cod";
const RUNS: u32 = 10;
const INITS: [Init; 2] = [Init::Serial, Init::Parallel];
/// The slides' range.
const ITERATIONS: [u32; 2] = [200, 2000];
/// Ten runs of all of them take two minutes at 25 GB/s.
const USUAL_BYTES: u64 = 64 << 20;

pub fn run(lab: &Lab) -> Result<Reproduction> {
    let published = Published::find("dmvm-variability", MACHINE)?;
    let (bytes, mut notes) = lab.array_bytes(USUAL_BYTES)?;
    let (m, cpus) = (dgemv::rows(bytes), lab.here.cpus());
    let ways: Vec<(Init, u32)> = INITS.into_iter().flat_map(|init| ITERATIONS.map(|iterations| (init, iterations))).collect();
    let case = |&(init, iterations): &(Init, u32)| {
        let kernel =
            format!("dmvm --init {} --m {m} --n {m} --threads {} --iterations {iterations} --repetitions 1", init.name(), cpus.len());
        Case::new(format!("{} initialisation, {iterations} iterations", init.name()), Lab::pinned(&cpus), &kernel)
    };
    let rounds = lab.rounds(RUNS);
    let ran = rounds.run(&ways.iter().map(case).collect::<Vec<Case>>())?;
    notes.extend(failures(&ran));
    let balancing = balancing::read(Path::new("/"));
    notes.push(format!("NUMA balancing here: {}.", balancing.state));
    notes.push(format!(
        "The slides do not name their machine; the model's is {}, split by Cluster on Die as theirs was.",
        published.machine.title
    ));
    let mut speeds = table("speed of a run", "GB/s", &["init", "iterations"], Drawing::Bars);
    speeds.columns = vec![column(Source::Measured, "")];
    speeds.rows = ways.iter().zip(&ran).map(|((init, iterations), ran)| row(*init, *iterations, ran)).collect();
    Ok(lab.reproduction(Found {
        title: "dense matrix-vector products again and again: short runs and long ones, and how far runs spread",
        sources: vec![published.experiment.source.clone()],
        settings: vec![format!(
            "m = n = {m} ({}), {} pinned to a core each of {}; {} runs of each, in turn.",
            format_bytes(8 * m * m),
            dgemv::threads_word(cpus.len()),
            lab.here.node_words(),
            rounds.runs
        )],
        tables: vec![speeds, spreads(&ways, &ran), model(&published)?],
        effects: effects(lab, &ran, balancing.value.unwrap_or(0) & 1 != 0),
        said: published.said(lab.name),
        notes,
    }))
}

fn row(init: Init, iterations: u32, ran: &Ran) -> Row {
    Row { labels: vec![init.name().to_owned(), iterations.to_string()], cells: vec![Cell::measured(&ran.figures("gb_per_s"))] }
}

/// How far the runs of each way are from each other.
fn spreads(ways: &[(Init, u32)], ran: &[Ran]) -> Table {
    let mut spreads = table("spread of the runs, (fastest - slowest) / median", "%", &["init", "iterations"], Drawing::None);
    spreads.columns = vec![column(Source::Measured, "")];
    let spread = |ran: &Ran| {
        let cell = Cell::measured(&ran.figures("gb_per_s"))?;
        let [low, high] = cell.range()?;
        Cell::measured(&[100.0 * (high - low) / cell.value()])
    };
    let row = |((init, iterations), ran): (&(Init, u32), &Ran)| Row {
        labels: vec![init.name().to_owned(), iterations.to_string()],
        cells: vec![spread(ran)],
    };
    spreads.rows = ways.iter().zip(ran).map(row).collect();
    spreads
}

/// By number of threads, which fill node after node.
fn model(published: &Published) -> Result<Table> {
    let machine = &published.machine;
    let mut speeds = table(format!("what the model says of {}", machine.title), "GB/s", &["init", "threads"], Drawing::Lines);
    speeds.columns = vec![column(Source::Model, "")];
    let nodes = 1..=machine.nodes.len();
    let teams: Vec<usize> = nodes.map(|count| machine.nodes.iter().take(count).map(|node| node.cores).sum()).collect();
    for init in INITS {
        let memory = if init == Init::Serial { Memory::Node(0) } else { Memory::Own };
        for threads in [1].into_iter().chain(teams.iter().copied()) {
            let speed = runs::bandwidth(machine, Kernel::Load, &seats::compact(machine, threads), memory)?;
            speeds.rows.push(Row { labels: vec![init.name().to_owned(), threads.to_string()], cells: vec![Some(predicted(speed))] });
        }
    }
    Ok(speeds)
}

/// Initialisation, and balancing that sets in late.
fn effects(lab: &Lab, ran: &[Ran], is_balanced: bool) -> Vec<Effect> {
    let figures: Vec<Vec<f64>> = ran.iter().map(|ran| ran.figures("gb_per_s")).collect();
    let impossible = lab.here.impossible();
    let claim = |faster, one: usize, slower, other: usize, impossible| {
        Claim { faster, slower, faster_runs: &figures[one], slower_runs: &figures[other], published: None, impossible }.judged()
    };
    let unbalanced = (!is_balanced).then(|| "the kernel's NUMA balancing is off".to_owned());
    vec![
        claim("a short run after parallel initialisation", 2, "one after serial initialisation", 0, impossible.clone()),
        claim("a run of 2000 iterations after serial initialisation", 1, "one of 200", 0, impossible.or(unbalanced)),
    ]
}
