//! The DGEMV of the slides: scaling with threads, and first touch.

use super::published::{Published, column, predicted};
use super::rounds::{Case, CaseRuns, failures};
use super::{Claim, Drawing, Reproduction, ResultCell, ResultRow, ResultTable, Results, Runner, Source};
use crate::Result;
use firsttouch_model::format_bytes;
use firsttouch_model::topology::format_list;
use firsttouch_predict::experiments::{Dgemv, Init, Quantity};
use firsttouch_predict::machine::MachineModel;
use firsttouch_predict::runs;
use std::collections::BTreeSet;

const EXPERIMENT: &str = "dgemv-e5620";
const MACHINE: &str = "xeon-e5620x2";
const OTHER_MACHINE: &str = "xeon-e5-2620v4x2";
const INITS: [Init; 2] = [Init::Serial, Init::Parallel];
const RUNS: u32 = 5;
const DEFAULT_BYTES: u64 = 512 << 20;
/// The size with a complete published table, used for the model as well.
const SIZE: u32 = 40000;
const SIZES: [u32; 3] = [20000, SIZE, 49000];
/// The slides time one product; the median of several varies less.
const PRODUCTS: &str = "--iterations 1 --repetitions 5";

/// Rows and columns of a square matrix of at most `bytes`, rounded down to two digits.
pub fn rows(bytes: u64) -> u64 {
    let exact = ((bytes / 8) as f64).sqrt().max(1.0);
    let unit = 10f64.powf(exact.log10().floor() - 1.0).max(1.0);
    ((exact / unit).floor() * unit) as u64
}

pub fn kernel(init: Init, m: u64, threads: usize, more: &str) -> String {
    format!("dgemv --init {} --m {m} --n {m} --threads {threads} {more}", init.name())
}

fn seconds(machine: &MachineModel, init: Init, m: u32, threads: usize) -> Result<ResultCell> {
    let run = Dgemv { machine: machine.name.clone(), note: None, init, m, threads, quantity: Quantity::Seconds, published: 0.0 };
    predicted(runs::dgemv(machine, &run))
}

/// The runs of one team.
struct TeamRuns {
    init: Init,
    threads: usize,
    runs: CaseRuns,
}

pub fn scaling(runner: &Runner<'_>) -> Result<Reproduction> {
    let published = Published::find(EXPERIMENT, MACHINE)?;
    let (bytes, mut notes) = runner.array_bytes(DEFAULT_BYTES)?;
    let (m, most) = (rows(bytes), runner.host.cpus().len());
    let teams: Vec<(Init, usize)> =
        INITS.into_iter().flat_map(|init| team_sizes(most).into_iter().map(move |threads| (init, threads))).collect();
    let case = |(init, threads): &(Init, usize)| {
        Case::new(format!("{} initialisation, {threads} threads", init.name()), Vec::new(), &kernel(*init, m, *threads, PRODUCTS))
    };
    let runs = runner.rounds(RUNS).run(&teams.iter().map(case).collect::<Vec<Case>>())?;
    notes.extend(failures(&runs));
    let measured: Vec<TeamRuns> = teams.into_iter().zip(runs).map(|((init, threads), runs)| TeamRuns { init, threads, runs }).collect();
    let tables = scaling_tables(&published, m, &measured)?;
    let speeds = |init| speeds(&measured, init, most);
    let time = |init| published_seconds(&published, init, SIZE, 8);
    let claim = Claim {
        faster: &format!("the product by {} with parallel initialisation", threads_word(most)),
        slower: "with serial initialisation",
        faster_runs: &speeds(Init::Parallel),
        slower_runs: &speeds(Init::Serial),
        published: time(Init::Serial).zip(time(Init::Parallel)).map(|(serial, parallel)| serial / parallel),
        impossible: runner.host.impossible(),
    };
    Ok(runner.reproduction(Results {
        title: "row-major DGEMV by number of threads, its data initialised by one thread or by the threads that use them",
        sources: vec![published.source()],
        settings: vec![setting(m, &format!("{} not pinned, as in the slides", team_words(most)), runner.rounds(RUNS).runs)],
        effects: vec![claim.judged()],
        said: published.said(runner.name),
        tables,
        notes,
    }))
}

fn setting(m: u64, threads: &str, runs: u32) -> String {
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    format!("m = n = {m} ({}), {threads}; {runs} of each, in turn.", format_bytes(8 * m * m))
}

pub fn threads_word(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

/// `1 to 8 threads`.
fn team_words(most: usize) -> String {
    if most == 1 { "1 thread".to_owned() } else { format!("1 to {most} threads") }
}

/// The slides' team sizes, then doubled, and `most`.
fn team_sizes(most: usize) -> BTreeSet<usize> {
    let doubled = std::iter::successors(Some(16usize), |threads| threads.checked_mul(2));
    [1, 2, 4, 6, 8]
        .into_iter()
        .chain(doubled.take_while(|threads| *threads < most))
        .filter(|threads| *threads <= most)
        .chain([most])
        .collect()
}

fn speeds(measured: &[TeamRuns], init: Init, threads: usize) -> Vec<f64> {
    let team = measured.iter().find(|team| team.init == init && team.threads == threads);
    team.map_or_else(Vec::new, |team| team.runs.figures("seconds").iter().map(|seconds| 1.0 / seconds).collect())
}

fn published_seconds(published: &Published, init: Init, m: u32, threads: usize) -> Option<f64> {
    published.experiment.dgemv.iter().find(|run| (run.init, run.m, run.threads) == (init, m, threads)).map(|run| run.published)
}

fn published_speedup(published: &Published, init: Init, m: u32, threads: usize) -> Option<f64> {
    let of = published.experiment.speedups.iter().find(|speedups| (speedups.init, speedups.m) == (init, m))?;
    let at = of.threads.iter().position(|other| *other == threads)?;
    of.published.get(at).copied()
}

/// Times, and speed-ups T(1) / T(p).
fn scaling_tables(published: &Published, m: u64, measured: &[TeamRuns]) -> Result<Vec<ResultTable>> {
    let heads = ["init", "threads"];
    let mut times = ResultTable::new("time of a product", "s", &heads, Drawing::None);
    let mut speedups = ResultTable::new("speed-up over 1 thread", "T(1) / T(p)", &heads, Drawing::LinesOfOneScale);
    let sizes = SIZES.map(|size| column(Source::Published, format!("m={size}"))).into_iter();
    let columns = sizes.chain([column(Source::Model, format!("m={SIZE}")), column(Source::Measured, format!("m={m}"))]);
    times.columns = columns.collect();
    speedups.columns.clone_from(&times.columns);
    let teams: BTreeSet<usize> = [1, 2, 4, 6, 8].into_iter().chain(measured.iter().map(|team| team.threads)).collect();
    for init in INITS {
        let alone =
            measured.iter().find(|team| team.init == init && team.threads == 1).map_or_else(Vec::new, |team| team.runs.figures("seconds"));
        let model_alone = seconds(&published.machine, init, SIZE, 1)?.value();
        for &threads in &teams {
            let labels = vec![init.name().to_owned(), threads.to_string()];
            let here = measured.iter().find(|team| team.init == init && team.threads == threads);
            let here = here.map_or_else(Vec::new, |team| team.runs.figures("seconds"));
            let model = if threads <= published.machine.cores() { Some(seconds(&published.machine, init, SIZE, threads)?) } else { None };
            let source = SIZES.map(|size| published_seconds(published, init, size, threads).map(ResultCell::published)).into_iter();
            times
                .rows
                .push(ResultRow { labels: labels.clone(), cells: source.chain([model.clone(), ResultCell::measured(&here)]).collect() });
            if threads > 1 {
                let source = SIZES.map(|size| published_speedup(published, init, size, threads).map(ResultCell::published)).into_iter();
                let model = model.map(|cell| ResultCell::Model { value: model_alone / cell.value(), range: None });
                // Runs of one round follow each other, so a disturbance slows both.
                let here: Vec<f64> = alone.iter().zip(&here).map(|(one, many)| one / many).collect();
                speedups.rows.push(ResultRow { labels, cells: source.chain([model, ResultCell::measured(&here)]).collect() });
            }
        }
    }
    Ok(vec![times, speedups])
}

pub fn first_touch(runner: &Runner<'_>) -> Result<Reproduction> {
    let (published, other) = (Published::find(EXPERIMENT, MACHINE)?, Published::find("balancing-e5-2620v4", OTHER_MACHINE)?);
    let (bytes, mut notes) = runner.array_bytes(DEFAULT_BYTES)?;
    let (m, cpus) = (rows(bytes), runner.host.cpus());
    let case =
        |init: Init| Case::new(format!("{} initialisation", init.name()), Runner::pinned(&cpus), &kernel(init, m, cpus.len(), PRODUCTS));
    let case_runs = runner.rounds(RUNS).run(&INITS.map(case))?;
    notes.extend(failures(&case_runs));
    let mut times = ResultTable::new("time of a product", "s", &["init"], Drawing::Bars);
    times.columns = vec![
        column(Source::Published, "E5620"),
        column(Source::Published, "E5-2620 v4"),
        column(Source::Model, "E5620"),
        column(Source::Model, "E5-2620 v4"),
        column(Source::Measured, format!("m={m}")),
    ];
    let unbalanced = |init| other.experiment.dgemv.iter().find(|run| run.init == init && run.note.as_deref() == Some("balancing off"));
    for (init, case_runs) in INITS.into_iter().zip(&case_runs) {
        let cells = vec![
            published_seconds(&published, init, SIZE, 8).map(ResultCell::published),
            unbalanced(init).map(|run| ResultCell::published(run.published)),
            Some(seconds(&published.machine, init, SIZE, 8)?),
            Some(seconds(&other.machine, init, 20000, 16)?),
            ResultCell::measured(&case_runs.figures("seconds")),
        ];
        times.rows.push(ResultRow { labels: vec![init.name().to_owned()], cells });
    }
    let time = |init| published_seconds(&published, init, SIZE, 8);
    let speeds = |at: usize| case_runs[at].figures("seconds").iter().map(|seconds| 1.0 / seconds).collect::<Vec<f64>>();
    let claim = Claim {
        faster: "the product with parallel initialisation",
        slower: "with serial initialisation",
        faster_runs: &speeds(1),
        slower_runs: &speeds(0),
        published: time(Init::Serial).zip(time(Init::Parallel)).map(|(serial, parallel)| serial / parallel),
        impossible: runner.host.impossible(),
    };
    let threads = format!("{} pinned to CPUs {} of {}", threads_word(cpus.len()), format_list(&sorted(&cpus)), runner.host.node_words());
    Ok(runner.reproduction(Results {
        title: "row-major DGEMV on all cores, its data initialised by one thread or by the threads that use them",
        sources: vec![
            format!("{}, m = {SIZE}, 8 threads", published.source()),
            format!("{}, m = 20000, 16 threads, balancing off", other.source()),
        ],
        settings: vec![setting(m, &threads, runner.rounds(RUNS).runs)],
        tables: [times].into_iter().chain(pages(runner, &case_runs)).collect(),
        effects: vec![claim.judged()],
        said: Vec::new(),
        notes,
    }))
}

fn sorted(cpus: &[u32]) -> Vec<u32> {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted
}

/// The nodes of sampled pages of the matrix; `None` where the kernel does not report them.
fn pages(runner: &Runner<'_>, case_runs: &[CaseRuns]) -> Option<ResultTable> {
    let mut pages = ResultTable::new("where the matrix is: pages, of 64 at equal distances in the first run", "", &["init"], Drawing::None);
    pages.columns = runner.host.nodes.iter().map(|node| column(Source::Measured, format!("node {}", node.node))).collect();
    for (init, case_runs) in INITS.into_iter().zip(case_runs) {
        let nodes = case_runs.page_nodes();
        let on = |node: u32| nodes.iter().filter(|other| **other == u64::from(node)).count();
        let count = |node: u32| (!nodes.is_empty()).then(|| ResultCell::measured(&[on(node) as f64])).flatten();
        pages.rows.push(ResultRow {
            labels: vec![init.name().to_owned()],
            cells: runner.host.nodes.iter().map(|node| count(node.node)).collect(),
        });
    }
    pages.rows.iter().flat_map(|row| &row.cells).any(Option::is_some).then_some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check sizes from bytes, and the teams of a machine.
    #[test]
    fn sizes() {
        for (bytes, m) in [(3_200_000_000, 20000), (512 << 20, 8100), (1 << 20, 360), (8, 1)] {
            assert_eq!(rows(bytes), m, "{bytes}");
        }
        let teams = |most| team_sizes(most).into_iter().collect::<Vec<usize>>();
        assert_eq!(teams(1), [1]);
        assert_eq!(teams(3), [1, 2, 3]);
        assert_eq!(teams(8), [1, 2, 4, 6, 8]);
        assert_eq!(teams(48), [1, 2, 4, 6, 8, 16, 32, 48]);
    }
}
