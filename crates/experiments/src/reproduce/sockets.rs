//! The article's quick test: one socket, both, and one bound process per socket.

use super::iso3dfd::{DEFAULT_BYTES, EXPERIMENT, Grid, MACHINE, model, published};
use super::published::{Published, column};
use super::rounds::{Case, CaseRuns, Rounds, failures};
use super::{Claim, Drawing, Reproduction, ResultCell, ResultRow, ResultTable, Results, Runner, Source};
use crate::Result;
use firsttouch_predict::experiments::{Init, Sockets};

const RUNS: u32 = 5;
const ITERATIONS: u32 = 10;

pub fn run(runner: &Runner<'_>) -> Result<Reproduction> {
    let article = Published::find(EXPERIMENT, MACHINE)?;
    let (bytes, mut notes) = runner.array_bytes(DEFAULT_BYTES)?;
    let grid = Grid::of(bytes, runner.host.cpus().len() as u64);
    let rounds = runner.rounds(RUNS);
    let measured = measure(runner, &rounds, &grid)?;
    notes.extend(failures(&[&measured.single[..], &measured.each].concat()));
    let speeds = speeds(&article, &measured)?;
    let both = |rows: &[&CaseRuns]| sums(&rows.iter().map(|case_runs| case_runs.figures("mpoints_per_s")).collect::<Vec<Vec<f64>>>());
    let together = both(&measured.each.iter().collect::<Vec<&CaseRuns>>());
    let original = measured.single.get(1).map_or_else(Vec::new, |case_runs| case_runs.figures("mpoints_per_s"));
    let of = |name: &str| article.experiment.iso3dfd.iter().find(|run| run.name.ends_with(name)).map(|run| run.published_mpoints_per_s);
    let ratio = || Some((of(": the first")? + of(": the second")?) / published(&article, Sockets::All, Init::Serial, true)?);
    let claim = Claim {
        faster: "one bound process per node, all together,",
        slower: "one process on all nodes, initialised serially",
        faster_runs: &together,
        slower_runs: &original,
        published: ratio(),
        impossible: runner.host.impossible().map(|why| format!("{why}; only the row of one node can be measured")),
    };
    Ok(runner.reproduction(Results {
        title: "the quick test on the wave equation: one socket (node), both, and one bound process on each",
        sources: vec![article.source()],
        settings: vec![format!(
            "{}, {ITERATIONS} time steps; {} runs of each, in turn; {}.",
            grid.words(),
            rounds.runs,
            runner.host.node_words()
        )],
        tables: vec![speeds],
        effects: vec![claim.judged()],
        said: article.said(runner.name),
        notes,
    }))
}

struct SocketRuns {
    /// One node; all nodes with the original program; all nodes with first touch.
    single: Vec<CaseRuns>,
    /// One process per node, by node.
    each: Vec<CaseRuns>,
}

fn measure(runner: &Runner<'_>, rounds: &Rounds, grid: &Grid) -> Result<SocketRuns> {
    let nodes = &runner.host.nodes;
    let bound = |index: usize| {
        let node = &nodes[index];
        // With one node, no policy is needed, and containers may forbid it.
        let memory = (nodes.len() > 1).then(|| format!("--membind={}", node.node));
        let kernel = grid.kernel(Init::Parallel, false, node.cpus.len(), ITERATIONS);
        Case::new(format!("node {}, bound", node.node), Runner::pinned(&node.cpus).into_iter().chain(memory).collect(), &kernel)
    };
    let cpus = runner.host.cpus();
    let all = |init: Init, dynamic: bool| {
        Case::new(
            format!("all nodes, {} initialisation", init.name()),
            Runner::pinned(&cpus),
            &grid.kernel(init, dynamic, cpus.len(), ITERATIONS),
        )
    };
    let mut cases = vec![bound(0)];
    if nodes.len() == 1 {
        return Ok(SocketRuns { single: rounds.run(&cases)?, each: Vec::new() });
    }
    cases.extend([all(Init::Serial, true), all(Init::Parallel, false)]);
    let single = rounds.run(&cases)?;
    let each = rounds.together(&(0..nodes.len()).map(bound).collect::<Vec<Case>>())?;
    Ok(SocketRuns { single, each })
}

/// For each round in which every node has a run, the sum over the nodes.
fn sums(by_node: &[Vec<f64>]) -> Vec<f64> {
    let rounds = by_node.iter().map(Vec::len).min().unwrap_or(0);
    (0..rounds).map(|round| by_node.iter().map(|runs| runs[round]).sum()).collect()
}

fn speeds(article: &Published, measured: &SocketRuns) -> Result<ResultTable> {
    let mut speeds = ResultTable::new("speed", "MPoints/s", &["run"], Drawing::Bars);
    speeds.columns = vec![column(Source::Published, ""), column(Source::Model, ""), column(Source::Measured, "")];
    let here = |case_runs: Option<&CaseRuns>| case_runs.and_then(|case_runs| ResultCell::measured(&case_runs.figures("mpoints_per_s")));
    let ways = [
        ("one node, bound", Sockets::One, Init::Parallel, false),
        ("all nodes, serial initialisation, schedule dynamic", Sockets::All, Init::Serial, true),
        ("all nodes, first touch, schedule static", Sockets::All, Init::Parallel, false),
    ];
    for (index, (name, sockets, init, dynamic)) in ways.into_iter().enumerate() {
        let source = published(article, sockets, init, dynamic).map(ResultCell::published);
        let cells = vec![source, Some(model(&article.machine, sockets, init, dynamic)?), here(measured.single.get(index))];
        speeds.rows.push(ResultRow { labels: vec![name.to_owned()], cells });
    }
    // The model predicts the sum of both processes, which are equal.
    let both = model(&article.machine, Sockets::Each, Init::Parallel, false)?.value();
    let each: Vec<f64> =
        article.experiment.iso3dfd.iter().filter(|run| run.sockets == Sockets::Each).map(|run| run.published_mpoints_per_s).collect();
    for index in 0..each.len().max(measured.each.len()) {
        let model = (index < each.len()).then_some(ResultCell::Model { value: both, range: None });
        let cells = vec![each.get(index).copied().map(ResultCell::published), model, here(measured.each.get(index))];
        speeds.rows.push(ResultRow { labels: vec![format!("one bound process per node: number {}", index + 1)], cells });
    }
    Ok(speeds)
}
