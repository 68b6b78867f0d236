//! What `firsttouch bench` measured, as JSON, text and a chart.

mod chart;
mod text;

pub use chart::speed_chart;
pub(crate) use chart::{label, nice};
pub use text::bench_text;

use firsttouch_experiments::Statistics;
use firsttouch_experiments::bench::BenchResult;
use serde::Serialize;
use std::collections::BTreeMap;

/// Schema `firsttouch.bench/1`. If there are several teams, the figures are those of the last one.
#[derive(Debug, Serialize)]
pub struct BenchJson<'a> {
    schema: &'static str,
    kernel: &'a str,
    threads: u32,
    init: &'a str,
    schedule: &'a str,
    simd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    sizes: &'a BTreeMap<String, u64>,
    bytes: u64,
    huge_pages: bool,
    cpus: usize,
    iterations: u64,
    repetitions: usize,
    bytes_per_element: f64,
    moved_bytes_per_element: f64,
    flops_per_element: f64,
    #[serde(flatten)]
    figures: Figures,
    worst_error: f64,
    ran_on_cpus: &'a [u32],
    page_nodes: &'a [Option<u32>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scaling: Vec<TeamJson>,
}

/// Statistics of the time of one iteration.
#[derive(Debug, Serialize)]
struct Figures {
    seconds: Option<Statistics>,
    gb_per_s: Option<Statistics>,
    moved_gb_per_s: Option<Statistics>,
    gflops: Option<Statistics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mpoints_per_s: Option<Statistics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ns: Option<Statistics>,
}

#[derive(Debug, Serialize)]
struct TeamJson {
    threads: u32,
    speedup: Option<f64>,
    #[serde(flatten)]
    figures: Figures,
}

impl<'a> BenchJson<'a> {
    #[must_use]
    pub fn new(bench: &'a BenchResult) -> Self {
        let last = bench.teams.last();
        let scaling = if bench.teams.len() > 1 {
            bench
                .teams
                .iter()
                .map(|team| TeamJson { threads: team.threads, speedup: bench.speedup(team), figures: Figures::of(bench, &team.seconds) })
                .collect()
        } else {
            Vec::new()
        };
        Self {
            schema: "firsttouch.bench/1",
            kernel: &bench.kernel,
            threads: last.map_or(0, |team| team.threads),
            init: &bench.init,
            schedule: &bench.schedule,
            simd: &bench.form,
            place: bench.place.as_deref(),
            sizes: &bench.sizes,
            bytes: bench.bytes,
            huge_pages: bench.huge_pages,
            cpus: bench.cpus,
            iterations: bench.iterations,
            repetitions: last.map_or(0, |team| team.seconds.len()),
            bytes_per_element: bench.work.bytes,
            moved_bytes_per_element: bench.work.moved,
            flops_per_element: bench.work.flops,
            figures: Figures::of(bench, last.map_or(&[], |team| &team.seconds)),
            worst_error: last.map_or(0.0, |team| team.worst_error),
            ran_on_cpus: last.map_or(&[], |team| &team.cpus),
            page_nodes: last.map_or(&[], |team| &team.page_nodes),
            scaling,
        }
    }
}

impl Figures {
    pub(super) fn of(bench: &BenchResult, seconds: &[f64]) -> Self {
        let work = &bench.work;
        let rate = |per_element: f64, unit: f64| Statistics::rate(work.elements * per_element / unit, seconds);
        let is_chase = bench.kernel == "chase";
        Self {
            seconds: Statistics::of(seconds),
            gb_per_s: rate(work.bytes, 1e9),
            moved_gb_per_s: rate(work.moved, 1e9),
            gflops: rate(work.flops, 1e9),
            mpoints_per_s: if work.element == "point" { rate(1.0, 1e6) } else { None },
            latency_ns: if is_chase { Statistics::of(&seconds.iter().map(|s| s * 1e9).collect::<Vec<f64>>()) } else { None },
        }
    }
}
