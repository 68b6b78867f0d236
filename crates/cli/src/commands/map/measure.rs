//! One figure: a bundled kernel in a process of its own, placed by `firsttouch run`, as often as it takes.

use crate::commands::kernels::{Kernels, printed};
use anyhow::{Context, Result, bail};
use firsttouch_report::Best;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// A figure needs so many runs to have a spread.
const LEAST_RUNS: u32 = 3;

/// How figures are measured.
pub struct Bench {
    pub kernels: Kernels,
    pub most_runs: u32,
    pub spread: f64,
}

/// Where a process runs and where its memory lies.
#[derive(Clone, Copy)]
pub struct Pair {
    pub cpu_node: u32,
    pub memory_node: u32,
}

impl Bench {
    /// The fastest of some runs of `bench ARGUMENTS`, by the figure (`gb_per_s`, `latency_ns`).
    ///
    /// # Errors
    /// The first run that failed, in its own words.
    pub fn figure(&self, pair: Pair, arguments: &[&str], figure: &str) -> Result<Option<Best>> {
        let mut values = Vec::new();
        for _ in 0..self.most_runs {
            values.push(self.run(pair, arguments, figure)?);
            let best = Best::of(&values, is_speed(figure)).filter(|best| best.runs >= LEAST_RUNS && best.spread <= self.spread);
            if best.is_some() {
                return Ok(best);
            }
        }
        Ok(Best::of(&values, is_speed(figure)))
    }

    fn run(&self, pair: Pair, arguments: &[&str], figure: &str) -> Result<f64> {
        let value = printed(&self.command(pair, arguments).output().context("cannot start the kernel")?)?;
        check_place(&value, pair.memory_node)?;
        best(&value, figure)
    }

    /// Starts a kernel that is to run beside others.
    pub fn start(&self, pair: Pair, arguments: &[&str]) -> Result<Child> {
        self.command(pair, arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("cannot start the kernel")
    }

    fn command(&self, pair: Pair, arguments: &[&str]) -> Command {
        self.kernels.command(&pair.options(), &[arguments, &["--huge-pages"]].concat())
    }
}

impl Pair {
    /// Of `firsttouch run`.
    pub fn options(self) -> [String; 2] {
        [format!("--cpunodebind={}", self.cpu_node), format!("--membind={}", self.memory_node)]
    }
}

fn is_speed(figure: &str) -> bool {
    figure != "latency_ns"
}

/// What a kernel printed.
pub fn value_of(json: &[u8], figure: &str) -> Result<f64> {
    best(&serde_json::from_slice(json).context("the kernel printed no result")?, figure)
}

/// The best repetition of a run.
fn best(value: &Value, figure: &str) -> Result<f64> {
    let key = if is_speed(figure) { "max" } else { "min" };
    value[figure][key].as_f64().with_context(|| format!("the kernel printed no {figure}"))
}

/// A figure counts only if the kernel says of the pages that they were where they were meant to be.
///
/// # Errors
/// When they were not.
pub fn check_place(value: &Value, memory_node: u32) -> Result<()> {
    let nodes = value["page_nodes"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let elsewhere = nodes.filter(|node| *node != u64::from(memory_node)).count();
    if elsewhere > 0 {
        bail!("{elsewhere} of its pages were on other nodes than {memory_node}, so it was not measured");
    }
    Ok(())
}
