//! The ccNUMA map scan of the slides, with triad.

use super::published::{Published, column};
use super::rounds::{Case, CaseRuns, failures};
use super::{Claim, Drawing, Reproduction, ResultCell, ResultRow, ResultTable, Results, Runner, Source};
use crate::Result;
use crate::error::{Context, ErrorKind};
use crate::host::NodeCpus;
use crate::map::{Pair, check_page_nodes};
use firsttouch_model::format_bytes;
use firsttouch_predict::validate::validate;

const RUNS: u32 = 5;
/// With more pairs than this, each is measured fewer times.
const MANY_PAIRS: usize = 16;
const ARRAYS: u64 = 3;
const DEFAULT_BYTES: u64 = ARRAYS * (128 << 20);

pub fn run(runner: &Runner<'_>) -> Result<Reproduction> {
    let published = Published::find("map-epyc-7451", "epyc-7451x2")?;
    let (bytes, mut notes) = runner.array_bytes(DEFAULT_BYTES)?;
    let nodes = &runner.host.nodes;
    let rounds = runner.rounds(if nodes.len() * nodes.len() > MANY_PAIRS { 4 } else { RUNS });
    let kernel = format!("triad --elements {} --iterations 2 --repetitions 3 --huge-pages", bytes / (ARRAYS * 8));
    let pairs: Vec<(u32, u32)> = nodes.iter().flat_map(|memory| nodes.iter().map(|cpu| (memory.node, cpu.node))).collect();
    let case = |&(memory, cpu): &(u32, u32)| {
        // With one node, no policy is needed, and containers may forbid it.
        let options = Pair { cpu_node: cpu, memory_node: memory }.options();
        let options = options.into_iter().take(if nodes.len() > 1 { 2 } else { 1 }).collect();
        Case::new(format!("CPUs of node {cpu}, memory of node {memory}"), options, &kernel)
    };
    let mut case_runs = rounds.run(&pairs.iter().map(case).collect::<Vec<Case>>())?;
    for (case_runs, (memory, cpu)) in case_runs.iter_mut().zip(&pairs) {
        let wrong = case_runs.printed.iter().find_map(|value| check_page_nodes(value, *memory).err());
        if let Some(why) = wrong {
            *case_runs = CaseRuns { printed: Vec::new(), failed: Some(format!("CPUs of node {cpu}, memory of node {memory}: {why:#}")) };
        }
    }
    notes.extend(failures(&case_runs));
    notes.extend(fit(&published)?);
    let matrix = published.experiment.pairs.first().map_or(&[][..], |pairs| &pairs.gb_per_s);
    let is_local = |(memory, cpu): &(u32, u32)| memory == cpu;
    let speeds = |local: bool| -> Vec<f64> {
        pairs
            .iter()
            .zip(&case_runs)
            .filter(|(pair, _)| is_local(pair) == local)
            .flat_map(|(_, case_runs)| case_runs.figures("gb_per_s"))
            .collect()
    };
    let claim = Claim {
        faster: "triad on a node's own memory (all nodes)",
        slower: "on memory of another (all pairs)",
        faster_runs: &speeds(true),
        slower_runs: &speeds(false),
        published: own_over_other(matrix),
        impossible: runner.host.impossible().map(|why| format!("{why}, and there is no other node's memory to compare with")),
    };
    Ok(runner.reproduction(Results {
        title: "ccNUMA map scan: triad for every pair of memory node and CPU node",
        sources: vec![published.source()],
        settings: vec![format!(
            "Arrays of {}, all CPUs of a node, {}; {} runs of each pair, in turn; stores bypass the caches.",
            format_bytes(bytes / ARRAYS),
            runner.host.node_words(),
            rounds.runs
        )],
        tables: vec![published_table(matrix), measured_table(runner, &case_runs)],
        effects: vec![claim.judged()],
        said: published.said(runner.name),
        notes,
    }))
}

const HEAD: &str = "memory \\ CPUs";

fn published_table(matrix: &[Vec<f64>]) -> ResultTable {
    let mut pairs = ResultTable::new("triad", "GB/s", &[HEAD], Drawing::Heat);
    pairs.columns = (0..matrix.len()).map(|node| column(Source::Published, node.to_string())).collect();
    let row = |(node, row): (usize, &Vec<f64>)| ResultRow {
        labels: vec![node.to_string()],
        cells: row.iter().map(|value| Some(ResultCell::published(*value))).collect(),
    };
    pairs.rows = matrix.iter().enumerate().map(row).collect();
    pairs
}

fn measured_table(runner: &Runner<'_>, case_runs: &[CaseRuns]) -> ResultTable {
    let nodes = &runner.host.nodes;
    let mut pairs = ResultTable::new("triad", "GB/s", &[HEAD], Drawing::Heat);
    pairs.columns = nodes.iter().map(|node| column(Source::Measured, node.node.to_string())).collect();
    let row = |(node, case_runs): (&NodeCpus, &[CaseRuns])| ResultRow {
        labels: vec![node.node.to_string()],
        cells: case_runs.iter().map(|case_runs| ResultCell::measured(&case_runs.figures("gb_per_s"))).collect(),
    };
    pairs.rows = nodes.iter().zip(case_runs.chunks(nodes.len())).map(row).collect();
    pairs
}

/// The published mean of local pairs over the mean of remote pairs.
fn own_over_other(matrix: &[Vec<f64>]) -> Option<f64> {
    let cells =
        || matrix.iter().enumerate().flat_map(|(memory, row)| row.iter().enumerate().map(move |(cpu, value)| (memory == cpu, *value)));
    let mean = |own: bool| {
        let values: Vec<f64> = cells().filter(|(is_own, _)| *is_own == own).map(|(_, value)| value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    Some(mean(true)? / mean(false)?)
}

/// How well the model's machine, whose numbers are fitted to this matrix, reproduces it.
fn fit(published: &Published) -> Result<Option<String>> {
    let validation = validate(std::slice::from_ref(&published.experiment)).of_kind(ErrorKind::Internal)?;
    let worst = validation.rows.iter().map(|row| row.error.abs()).reduce(f64::max);
    Ok(worst.map(|worst| {
        format!(
            "The model's numbers for {} come from this matrix, so they are no prediction; the model reproduces its {} figures within {:.1} %.",
            published.machine.title,
            validation.rows.len(),
            100.0 * worst
        )
    }))
}
