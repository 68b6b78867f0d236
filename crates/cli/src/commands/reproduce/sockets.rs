//! The article's quick test: one socket, both, and a bound process on each.

use super::iso3dfd::{EXPERIMENT, Grid, MACHINE, USUAL_BYTES, model, published};
use super::published::{Published, column};
use super::rounds::{Case, Ran, Rounds, failures};
use super::{Found, Lab, table};
use crate::commands::kernels::printed;
use anyhow::{Context, Result};
use firsttouch_predict::experiments::{Init, Sockets};
use firsttouch_report::{Claim, Drawing, ReproducedCell as Cell, ReproducedRow as Row, Reproduction, Source};
use std::process::{Child, Stdio};

const RUNS: u32 = 5;
const ITERATIONS: u32 = 10;

pub fn run(lab: &Lab) -> Result<Reproduction> {
    let article = Published::find(EXPERIMENT, MACHINE)?;
    let (bytes, mut notes) = lab.array_bytes(USUAL_BYTES)?;
    let grid = Grid::of(bytes, lab.here.cpus().len() as u64);
    let rounds = lab.rounds(RUNS);
    let measured = measure(lab, &rounds, &grid)?;
    notes.extend(failures(&[&measured.single[..], &measured.each].concat()));
    let speeds = speeds(&article, &measured)?;
    let both = |rows: &[&Ran]| sums(&rows.iter().map(|ran| ran.figures("mpoints_per_s")).collect::<Vec<Vec<f64>>>());
    let together = both(&measured.each.iter().collect::<Vec<&Ran>>());
    let as_it_was = measured.single.get(1).map_or_else(Vec::new, |ran| ran.figures("mpoints_per_s"));
    let of = |name: &str| article.experiment.iso3dfd.iter().find(|run| run.name.ends_with(name)).map(|run| run.published_mpoints_per_s);
    let ratio = || Some((of(": the first")? + of(": the second")?) / published(&article, Sockets::All, Init::Serial, true)?);
    let claim = Claim {
        faster: "a bound process a node, all together,",
        slower: "one process on all nodes, initialised serially",
        faster_runs: &together,
        slower_runs: &as_it_was,
        published: ratio(),
        impossible: lab.here.impossible().map(|why| format!("{why}; only the row of one node can be measured")),
    };
    Ok(lab.reproduction(Found {
        title: "the quick test on the wave equation: one socket (node), both, and a bound process on each",
        sources: vec![article.source()],
        settings: vec![format!(
            "{}, {ITERATIONS} time steps; {} runs of each, in turn; {}.",
            grid.words(),
            rounds.runs,
            lab.here.node_words()
        )],
        tables: vec![speeds],
        effects: vec![claim.judged()],
        said: article.said(lab.name),
        notes,
    }))
}

struct Measured {
    /// One node; all nodes as the program was; all nodes with first touch.
    single: Vec<Ran>,
    /// A process a node, by node.
    each: Vec<Ran>,
}

fn measure(lab: &Lab, rounds: &Rounds, grid: &Grid) -> Result<Measured> {
    let nodes = &lab.here.nodes;
    let bound = |index: usize| {
        let seats = &nodes[index];
        // Of a single node nothing but its own memory can be had: no policy is needed, and containers may forbid one.
        let memory = (nodes.len() > 1).then(|| format!("--membind={}", seats.node));
        let kernel = grid.kernel(Init::Parallel, false, seats.cpus.len(), ITERATIONS);
        Case::new(format!("node {}, bound", seats.node), Lab::pinned(&seats.cpus).into_iter().chain(memory).collect(), &kernel)
    };
    let cpus = lab.here.cpus();
    let all = |init: Init, dynamic: bool| {
        Case::new(
            format!("all nodes, {} initialisation", init.name()),
            Lab::pinned(&cpus),
            &grid.kernel(init, dynamic, cpus.len(), ITERATIONS),
        )
    };
    let mut cases = vec![bound(0)];
    if nodes.len() == 1 {
        return Ok(Measured { single: rounds.run(&cases)?, each: Vec::new() });
    }
    cases.extend([all(Init::Serial, true), all(Init::Parallel, false)]);
    let single = rounds.run(&cases)?;
    let each = together(rounds, &(0..nodes.len()).map(bound).collect::<Vec<Case>>())?;
    Ok(Measured { single, each })
}

/// Runs all cases at the same time, round by round.
fn together(rounds: &Rounds, cases: &[Case]) -> Result<Vec<Ran>> {
    let mut all = vec![Ran::default(); cases.len()];
    for _ in 0..rounds.runs {
        let started: Vec<Child> = cases
            .iter()
            .map(|case| rounds.kernels.command(&case.placement, &case.kernel).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
            .collect::<Result<_, _>>()
            .context("cannot start the kernels")?;
        for ((child, ran), case) in started.into_iter().zip(&mut all).zip(cases) {
            match child.wait_with_output().context("cannot wait for the kernel").and_then(|output| printed(&output)) {
                Ok(value) => ran.printed.push(value),
                Err(error) => ran.failed = Some(format!("{}: {error:#}", case.name)),
            }
        }
    }
    Ok(all)
}

/// Round by round; none where a node lacks runs.
fn sums(by_node: &[Vec<f64>]) -> Vec<f64> {
    let rounds = by_node.iter().map(Vec::len).min().unwrap_or(0);
    (0..rounds).map(|round| by_node.iter().map(|runs| runs[round]).sum()).collect()
}

fn speeds(article: &Published, measured: &Measured) -> Result<firsttouch_report::ReproducedTable> {
    let mut speeds = table("speed", "MPoints/s", &["run"], Drawing::Bars);
    speeds.columns = vec![column(Source::Published, ""), column(Source::Model, ""), column(Source::Measured, "")];
    let here = |ran: Option<&Ran>| ran.and_then(|ran| Cell::measured(&ran.figures("mpoints_per_s")));
    let ways = [
        ("one node, bound", Sockets::One, Init::Parallel, false),
        ("all nodes, serial initialisation, schedule dynamic", Sockets::All, Init::Serial, true),
        ("all nodes, first touch, schedule static", Sockets::All, Init::Parallel, false),
    ];
    for (index, (name, sockets, init, dynamic)) in ways.into_iter().enumerate() {
        let told = published(article, sockets, init, dynamic).map(Cell::published);
        let cells = vec![told, Some(model(&article.machine, sockets, init, dynamic)?), here(measured.single.get(index))];
        speeds.rows.push(Row { labels: vec![name.to_owned()], cells });
    }
    // The model gives the sum of both processes, which are alike.
    let both = model(&article.machine, Sockets::Each, Init::Parallel, false)?.value();
    let each: Vec<f64> =
        article.experiment.iso3dfd.iter().filter(|run| run.sockets == Sockets::Each).map(|run| run.published_mpoints_per_s).collect();
    for index in 0..each.len().max(measured.each.len()) {
        let model = (index < each.len()).then_some(Cell::Model { value: both, range: None });
        let cells = vec![each.get(index).copied().map(Cell::published), model, here(measured.each.get(index))];
        speeds.rows.push(Row { labels: vec![format!("a bound process a node: number {}", index + 1)], cells });
    }
    Ok(speeds)
}
