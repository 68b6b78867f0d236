//! The slides' dense matrix-vector products: the speed and spread of short and long runs.

use super::published::{Published, column, predicted};
use super::rounds::{Case, CaseRuns, failures};
use super::{Claim, Drawing, Effect, Reproduction, ResultCell, ResultRow, ResultTable, Results, Runner, Source, dgemv};
use crate::Result;
use firsttouch_model::format_bytes;
use firsttouch_predict::experiments::{Init, Kernel};
use firsttouch_predict::runs::{self, Memory};
use firsttouch_predict::seats;
use firsttouch_system::balancing;
use std::path::Path;

/// The slides do not name their machine. Like theirs, this one is split by Cluster on Die.
const MACHINE: &str = "xeon-e5-2697v4x2-cod";
const RUNS: u32 = 10;
const INITS: [Init; 2] = [Init::Serial, Init::Parallel];
/// The ends of the slides' range.
const ITERATIONS: [u32; 2] = [200, 2000];
/// Ten runs of all cases take two minutes at 25 GB/s.
const DEFAULT_BYTES: u64 = 64 << 20;

pub fn run(runner: &Runner<'_>) -> Result<Reproduction> {
    let published = Published::find("dmvm-variability", MACHINE)?;
    let (bytes, mut notes) = runner.array_bytes(DEFAULT_BYTES)?;
    let (m, cpus) = (dgemv::rows(bytes), runner.host.cpus());
    let ways: Vec<(Init, u32)> = INITS.into_iter().flat_map(|init| ITERATIONS.map(|iterations| (init, iterations))).collect();
    let case = |&(init, iterations): &(Init, u32)| {
        let kernel =
            format!("dmvm --init {} --m {m} --n {m} --threads {} --iterations {iterations} --repetitions 1", init.name(), cpus.len());
        Case::new(format!("{} initialisation, {iterations} iterations", init.name()), Runner::pinned(&cpus), &kernel)
    };
    let rounds = runner.rounds(RUNS);
    let case_runs = rounds.run(&ways.iter().map(case).collect::<Vec<Case>>())?;
    notes.extend(failures(&case_runs));
    let balancing = balancing::read(Path::new("/"));
    notes.push(format!("NUMA balancing here: {}.", balancing.state));
    notes.push(format!(
        "The slides do not name their machine. The model uses {}, which is split by Cluster on Die as theirs was.",
        published.machine.title
    ));
    let mut speeds = ResultTable::new("speed of a run", "GB/s", &["init", "iterations"], Drawing::Bars);
    speeds.columns = vec![column(Source::Measured, "")];
    speeds.rows = ways.iter().zip(&case_runs).map(|((init, iterations), case_runs)| row(*init, *iterations, case_runs)).collect();
    Ok(runner.reproduction(Results {
        title: "repeated dense matrix-vector products: the speed and spread of short and long runs",
        sources: vec![published.experiment.source.clone()],
        settings: vec![format!(
            "m = n = {m} ({}), {} pinned to a core each of {}; {} runs of each, in turn.",
            format_bytes(8 * m * m),
            dgemv::threads_word(cpus.len()),
            runner.host.node_words(),
            rounds.runs
        )],
        tables: vec![speeds, spreads(&ways, &case_runs), model(&published)?],
        effects: effects(runner, &case_runs, balancing.value.unwrap_or(0) & 1 != 0),
        said: published.said(runner.name),
        notes,
    }))
}

fn row(init: Init, iterations: u32, case_runs: &CaseRuns) -> ResultRow {
    ResultRow {
        labels: vec![init.name().to_owned(), iterations.to_string()],
        cells: vec![ResultCell::measured(&case_runs.figures("gb_per_s"))],
    }
}

/// The spread of the runs of each case.
fn spreads(ways: &[(Init, u32)], case_runs: &[CaseRuns]) -> ResultTable {
    let mut spreads = ResultTable::new("spread of the runs, (fastest - slowest) / median", "%", &["init", "iterations"], Drawing::None);
    spreads.columns = vec![column(Source::Measured, "")];
    let spread = |case_runs: &CaseRuns| {
        let cell = ResultCell::measured(&case_runs.figures("gb_per_s"))?;
        let [low, high] = cell.range()?;
        ResultCell::measured(&[100.0 * (high - low) / cell.value()])
    };
    let row = |((init, iterations), case_runs): (&(Init, u32), &CaseRuns)| ResultRow {
        labels: vec![init.name().to_owned(), iterations.to_string()],
        cells: vec![spread(case_runs)],
    };
    spreads.rows = ways.iter().zip(case_runs).map(row).collect();
    spreads
}

/// The model's speeds by number of threads, which fill node after node.
fn model(published: &Published) -> Result<ResultTable> {
    let machine = &published.machine;
    let mut speeds =
        ResultTable::new(format!("the model's prediction for {}", machine.title), "GB/s", &["init", "threads"], Drawing::Lines);
    speeds.columns = vec![column(Source::Model, "")];
    let nodes = 1..=machine.nodes.len();
    let teams: Vec<usize> = nodes.map(|count| machine.nodes.iter().take(count).map(|node| node.cores).sum()).collect();
    for init in INITS {
        let memory = if init == Init::Serial { Memory::Node(0) } else { Memory::Own };
        for threads in [1].into_iter().chain(teams.iter().copied()) {
            let speed = predicted(runs::bandwidth(machine, Kernel::Load, &seats::compact(machine, threads), memory))?;
            speeds.rows.push(ResultRow { labels: vec![init.name().to_owned(), threads.to_string()], cells: vec![Some(speed)] });
        }
    }
    Ok(speeds)
}

/// The effect of initialisation, and of balancing, which needs a long run.
fn effects(runner: &Runner<'_>, case_runs: &[CaseRuns], is_balanced: bool) -> Vec<Effect> {
    let figures: Vec<Vec<f64>> = case_runs.iter().map(|case_runs| case_runs.figures("gb_per_s")).collect();
    let impossible = runner.host.impossible();
    let claim = |faster, one: usize, slower, other: usize, impossible| {
        Claim { faster, slower, faster_runs: &figures[one], slower_runs: &figures[other], published: None, impossible }.judged()
    };
    let unbalanced = (!is_balanced).then(|| "the kernel's NUMA balancing is off".to_owned());
    vec![
        claim("a short run after parallel initialisation", 2, "one after serial initialisation", 0, impossible.clone()),
        claim("a run of 2000 iterations after serial initialisation", 1, "one of 200", 0, impossible.or(unbalanced)),
    ]
}
