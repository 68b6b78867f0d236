//! What `firsttouch bench` measured.

mod chart;
mod text;

pub use chart::speed_chart;
pub(crate) use chart::{label, nice};
pub use text::bench_text;

use serde::Serialize;
use std::collections::BTreeMap;

/// Values over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub min: f64,
    /// The mean of the middle two of an even number.
    pub median: f64,
    pub max: f64,
    /// Of the sample; none of a single value.
    pub standard_deviation: Option<f64>,
}

impl Figure {
    /// None of no values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let standard_deviation = (sorted.len() > 1).then(|| (squares / (sorted.len() - 1) as f64).sqrt());
        Some(Self { min, median, max, standard_deviation })
    }

    /// Of a rate: `amount` in each of some times.
    #[must_use]
    pub fn rate(amount: f64, seconds: &[f64]) -> Option<Self> {
        Self::of(&seconds.iter().map(|s| amount / s).collect::<Vec<f64>>())
    }
}

/// What an iteration of the kernel does.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// What an element is.
    pub element: String,
    pub elements: f64,
    /// Bytes an element that the program names, and that move.
    pub bytes: f64,
    pub moved: f64,
    pub flops: f64,
    /// What one iteration is called.
    pub iteration: String,
}

/// A kernel and how it ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    pub kernel: String,
    pub init: String,
    pub schedule: String,
    pub form: String,
    /// The words of `--place`.
    pub place: Option<String>,
    pub sizes: BTreeMap<String, u64>,
    /// The sizes in words.
    pub shape: String,
    /// Memory of all arrays.
    pub bytes: u64,
    pub huge_pages: bool,
    pub iterations: u64,
    /// CPUs that this process may use.
    pub cpus: usize,
    pub work: Work,
    /// At least one; more where the number of threads was varied.
    pub teams: Vec<Team>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Team {
    pub threads: u32,
    /// Of one iteration, by repetition.
    pub seconds: Vec<f64>,
    pub worst_error: f64,
    /// CPUs on which its threads ran at the end.
    pub cpus: Vec<u32>,
    /// Nodes of pages at equal distances in the main array.
    pub page_nodes: Vec<Option<u32>>,
}

/// Schema `firsttouch.bench/1`; the figures are those of the last team.
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

/// Of one iteration.
#[derive(Debug, Serialize)]
struct Figures {
    seconds: Option<Figure>,
    gb_per_s: Option<Figure>,
    moved_gb_per_s: Option<Figure>,
    gflops: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mpoints_per_s: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ns: Option<Figure>,
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
    pub fn new(bench: &'a Bench) -> Self {
        let last = bench.teams.last();
        let scaling = if bench.teams.len() > 1 {
            bench
                .teams
                .iter()
                .map(|team| TeamJson { threads: team.threads, speedup: bench.speedup(team), figures: bench.figures(&team.seconds) })
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
            figures: bench.figures(last.map_or(&[], |team| &team.seconds)),
            worst_error: last.map_or(0.0, |team| team.worst_error),
            ran_on_cpus: last.map_or(&[], |team| &team.cpus),
            page_nodes: last.map_or(&[], |team| &team.page_nodes),
            scaling,
        }
    }
}

impl Bench {
    fn figures(&self, seconds: &[f64]) -> Figures {
        let work = &self.work;
        let rate = |per_element: f64, unit: f64| Figure::rate(work.elements * per_element / unit, seconds);
        let is_chase = self.kernel == "chase";
        Figures {
            seconds: Figure::of(seconds),
            gb_per_s: rate(work.bytes, 1e9),
            moved_gb_per_s: rate(work.moved, 1e9),
            gflops: rate(work.flops, 1e9),
            mpoints_per_s: if work.element == "point" { rate(1.0, 1e6) } else { None },
            latency_ns: if is_chase { Figure::of(&seconds.iter().map(|s| s * 1e9).collect::<Vec<f64>>()) } else { None },
        }
    }

    /// The first team's median time over this one's: T(1) / T(p) where the first has one thread.
    fn speedup(&self, team: &Team) -> Option<f64> {
        Some(Figure::of(&self.teams.first()?.seconds)?.median / Figure::of(&team.seconds)?.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the statistics on samples whose answers are known.
    #[test]
    fn figures() {
        assert_eq!(Figure::of(&[]), None);
        assert_eq!(Figure::of(&[2.0]), Some(Figure { min: 2.0, median: 2.0, max: 2.0, standard_deviation: None }));
        let figure = Figure::of(&[4.0, 2.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((figure.min, figure.median, figure.max), (2.0, 4.5, 9.0));
        assert!((figure.standard_deviation.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        let rate = Figure::rate(10.0, &[1.0, 2.0, 5.0]).unwrap();
        assert_eq!((rate.min, rate.median, rate.max), (2.0, 5.0, 10.0));
    }
}
