//! The article's wave equation: first touch under static and dynamic schedules.

use super::published::{Published, column, predicted};
use super::rounds::{Case, CaseRuns, failures};
use super::{Claim, Drawing, Effect, Reproduction, ResultCell, ResultRow, ResultTable, Results, Runner, Source, dgemv};
use crate::Result;
use firsttouch_model::format_bytes;
use firsttouch_predict::experiments::{Init, Iso3dfd, Sockets};
use firsttouch_predict::machine::MachineModel;
use firsttouch_predict::runs;

pub const EXPERIMENT: &str = "iso3dfd-e5-2699v4";
pub const MACHINE: &str = "xeon-e5-2699v4x2";
pub const DEFAULT_BYTES: u64 = 256 << 20;
const RUNS: u32 = 10;
/// The article's grid is 448 x 2016 x 1056, in blocks of 448 x 24 x 96.
const N1: u64 = 448;
const N2_BLOCK: u64 = 24;
const N3_BLOCK: u64 = 96;
const BORDER: u64 = 16;
/// The least number of blocks per thread: with fewer, some threads have no work.
const BLOCKS_A_THREAD: u64 = 8;
/// The number of arrays, with four bytes per point.
const ARRAYS: u64 = 3;

/// Initialisation and dynamic schedule of the article's four cases; the first is the original program.
const CASES: [(Init, bool); 4] = [(Init::Serial, true), (Init::Parallel, false), (Init::Parallel, true), (Init::Serial, false)];

/// A smaller grid of the article's proportions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    n: [u64; 3],
    blocks: [u64; 3],
}

impl Grid {
    /// A grid whose three arrays take at most `bytes`, with blocks for all threads.
    pub fn of(bytes: u64, threads: u64) -> Self {
        let points = bytes / (4 * ARRAYS);
        // Large grids have the article's n1; smaller ones keep the proportions.
        let n1 = N1.min(((points as f64).cbrt() * 1.4) as u64).max(2 * BORDER);
        let plane = points / n1;
        let n3 = ((plane as f64 / 2.0).sqrt() as u64).max(BORDER + 1);
        let n2 = (plane / n3).max(BORDER + 1);
        let mut blocks = [n1, N2_BLOCK, N3_BLOCK];
        let count = |blocks: [u64; 3]| (n2 - BORDER).div_ceil(blocks[1]) * (n3 - BORDER).div_ceil(blocks[2]);
        // The kernel stores its fields in bricks of 8 planes and 4 rows; blocks are whole bricks.
        for smaller in [[N2_BLOCK, 48], [N2_BLOCK, 24], [N2_BLOCK, 8], [12, 8], [4, 8]] {
            if count(blocks) < BLOCKS_A_THREAD * threads {
                blocks[1..].copy_from_slice(&smaller);
            }
        }
        Self { n: [n1, n2, n3], blocks }
    }

    pub fn words(&self) -> String {
        let Self { n: [n1, n2, n3], blocks: [b1, b2, b3] } = self;
        format!("{n1} x {n2} x {n3} points ({}) in blocks of {b1} x {b2} x {b3}", format_bytes(4 * ARRAYS * n1 * n2 * n3))
    }

    pub fn kernel(&self, init: Init, dynamic: bool, threads: usize, iterations: u32) -> String {
        let Self { n: [n1, n2, n3], blocks: [b1, b2, b3] } = self;
        format!(
            "iso3dfd --n1 {n1} --n2 {n2} --n3 {n3} --n1-block {b1} --n2-block {b2} --n3-block {b3} --init {} --schedule {} \
             --threads {threads} --iterations {iterations} --repetitions 1",
            init.name(),
            schedule(dynamic)
        )
    }
}

fn schedule(dynamic: bool) -> &'static str {
    if dynamic { "dynamic" } else { "static" }
}

/// The model's speed of the article's grid.
pub fn model(machine: &MachineModel, sockets: Sockets, init: Init, dynamic: bool) -> Result<ResultCell> {
    let run =
        Iso3dfd { machine: machine.name.clone(), name: String::new(), sockets, init, dynamic, points: 1e9, published_mpoints_per_s: 0.0 };
    predicted(runs::iso3dfd(machine, &run))
}

pub fn published(published: &Published, sockets: Sockets, init: Init, dynamic: bool) -> Option<f64> {
    let runs = &published.experiment.iso3dfd;
    runs.iter().find(|run| (run.sockets, run.init, run.dynamic) == (sockets, init, dynamic)).map(|run| run.published_mpoints_per_s)
}

pub fn first_touch(runner: &Runner<'_>) -> Result<Reproduction> {
    const ITERATIONS: u32 = 10;
    let article = Published::find(EXPERIMENT, MACHINE)?;
    let (bytes, mut notes) = runner.array_bytes(DEFAULT_BYTES)?;
    let cpus = runner.host.cpus();
    let grid = Grid::of(bytes, cpus.len() as u64);
    let case = |(init, dynamic): (Init, bool)| {
        let name = format!("{} initialisation, schedule {}", init.name(), schedule(dynamic));
        Case::new(name, Runner::pinned(&cpus), &grid.kernel(init, dynamic, cpus.len(), ITERATIONS))
    };
    let rounds = runner.rounds(RUNS);
    let case_runs = rounds.run(&CASES.map(case))?;
    notes.extend(failures(&case_runs));
    let mut speeds = ResultTable::new("speed", "MPoints/s", &["initialisation", "schedule"], Drawing::Bars);
    speeds.columns = vec![
        column(Source::Published, "448 x 2016 x 1056"),
        column(Source::Model, "448 x 2016 x 1056"),
        column(Source::Measured, format!("{} x {} x {}", grid.n[0], grid.n[1], grid.n[2])),
    ];
    for ((init, dynamic), case_runs) in CASES.into_iter().zip(&case_runs) {
        let cells = vec![
            published(&article, Sockets::All, init, dynamic).map(ResultCell::published),
            Some(model(&article.machine, Sockets::All, init, dynamic)?),
            ResultCell::measured(&case_runs.figures("mpoints_per_s")),
        ];
        speeds.rows.push(ResultRow { labels: vec![init.name().to_owned(), schedule(dynamic).to_owned()], cells });
    }
    notes.extend(disagreement(&article.machine)?);
    let source = |init, dynamic| published(&article, Sockets::All, init, dynamic);
    let effects =
        effects(runner, &case_runs, source(Init::Parallel, false).zip(source(Init::Serial, true)).map(|(after, before)| after / before));
    Ok(runner.reproduction(Results {
        title: "the wave equation with data initialised serially and in the loop's own blocks, schedules static and dynamic",
        sources: vec![article.source()],
        settings: vec![format!(
            "{}, {} pinned to a core each of {}, {ITERATIONS} time steps; {} runs of each, in turn.",
            grid.words(),
            dgemv::threads_word(cpus.len()),
            runner.host.node_words(),
            rounds.runs
        )],
        tables: vec![speeds],
        effects,
        said: article.said(runner.name),
        notes,
    }))
}

/// Smaller gains (ratios of speeds) are ignored.
const LEAST_GAIN: f64 = 1.1;

/// A sentence about a contradiction between model and article, if there is one.
fn disagreement(machine: &MachineModel) -> Result<Option<String>> {
    let speed = |init| model(machine, Sockets::All, init, true).map(|cell| cell.value());
    let gain = speed(Init::Parallel)? / speed(Init::Serial)?;
    Ok((gain > LEAST_GAIN).then(|| {
        format!(
            "With a dynamic schedule the model predicts a gain of {gain:.2}x from first touch, but the article saw none: in the model, cores read \
             remote data as fast as local data, up to the link's capacity."
        )
    }))
}

/// First touch against the original program, and static against dynamic schedule.
fn effects(runner: &Runner<'_>, case_runs: &[CaseRuns], published: Option<f64>) -> Vec<Effect> {
    let figures: Vec<Vec<f64>> = case_runs.iter().map(|case_runs| case_runs.figures("mpoints_per_s")).collect();
    let claim = |faster, faster_runs: usize, slower, slower_runs: usize, published| {
        let (faster_runs, slower_runs) = (&figures[faster_runs][..], &figures[slower_runs][..]);
        Claim { faster, slower, faster_runs, slower_runs, published, impossible: runner.host.impossible() }.judged()
    };
    vec![
        claim("first touch with a static schedule", 1, "serial initialisation with a dynamic one", 0, published),
        claim("first touch with a static schedule", 1, "first touch with a dynamic one", 2, None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that grids have about the requested size, have blocks for all threads, and are never empty.
    #[test]
    fn grids_fit() {
        for (bytes, threads) in [(12 * 448 * 2016 * 1056, 44), (256 << 20, 2), (256 << 20, 256), (1 << 20, 2)] {
            let Grid { n: [n1, n2, n3], blocks } = Grid::of(bytes, threads);
            let taken = 12 * n1 * n2 * n3;
            assert!(taken <= bytes && taken > bytes / 2, "{bytes}: {n1} x {n2} x {n3}");
            assert!((n2 - 16).div_ceil(blocks[1]) * (n3 - 16).div_ceil(blocks[2]) >= threads, "{bytes} {threads}: {blocks:?}");
        }
        assert_eq!(Grid::of(12 * 448 * 2016 * 1056, 44).n[0], 448);
    }
}
