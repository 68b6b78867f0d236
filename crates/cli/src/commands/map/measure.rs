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

/// A figure, and the bytes that its kernel really moves over those it counts.
pub struct Measured {
    pub best: Option<Best>,
    pub moved: Option<f64>,
}

impl Bench {
    /// The fastest of some runs of `bench ARGUMENTS`, by the figure (`gb_per_s`, `latency_ns`).
    ///
    /// # Errors
    /// The first run that failed, in its own words.
    pub fn figure(&self, pair: Pair, arguments: &[&str], figure: &str) -> Result<Option<Best>> {
        Ok(self.measured(pair, arguments, figure)?.best)
    }

    /// The same, with what the kernel says of its traffic.
    ///
    /// # Errors
    /// The first run that failed, in its own words.
    pub fn measured(&self, pair: Pair, arguments: &[&str], figure: &str) -> Result<Measured> {
        let (mut values, mut moved) = (Vec::new(), None);
        for _ in 0..self.most_runs {
            let value = self.run(pair, arguments)?;
            moved = moved_factor(&value);
            values.push(best(&value, figure)?);
            if Best::of(&values, is_speed(figure)).is_some_and(|best| best.runs >= LEAST_RUNS && best.spread <= self.spread) {
                break;
            }
        }
        Ok(Measured { best: Best::of(&values, is_speed(figure)), moved })
    }

    fn run(&self, pair: Pair, arguments: &[&str]) -> Result<Value> {
        let value = printed(&self.command(pair, arguments).output().context("cannot start the kernel")?)?;
        check_place(&value, pair.memory_node)?;
        Ok(value)
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

/// None for kernels that count no bytes.
fn moved_factor(value: &Value) -> Option<f64> {
    let [moved, counted] = ["moved_bytes_per_element", "bytes_per_element"].map(|key| value[key].as_f64());
    Some(moved? / counted.filter(|counted| *counted > 0.0)?)
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
