//! Measures one figure of one pair of nodes: repeats a kernel until the fastest runs agree.

use super::Best;
use crate::Result;
use crate::error::{Context, Error, ErrorKind};
use crate::kernels::Kernels;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// Fewer runs have no spread.
const LEAST_RUNS: u32 = 3;

/// Measures pairs of nodes.
pub struct PairBench {
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

pub struct PairMeasurement {
    pub best: Option<Best>,
    /// Bytes that the kernel moves / bytes that it counts.
    pub moved_factor: Option<f64>,
}

impl PairBench {
    /// The fastest of several runs of `bench ARGUMENTS`, by the figure named `figure` (`gb_per_s`, `latency_ns`).
    ///
    /// # Errors
    /// When a run fails: the error has its message.
    pub fn figure(&self, pair: Pair, arguments: &[&str], figure: &str) -> Result<Option<Best>> {
        Ok(self.measured(pair, arguments, figure)?.best)
    }

    /// The same, with the kernel's ratio of moved to counted bytes.
    ///
    /// # Errors
    /// When a run fails: the error has its message.
    pub fn measured(&self, pair: Pair, arguments: &[&str], figure: &str) -> Result<PairMeasurement> {
        let (mut values, mut moved) = (Vec::new(), None);
        for _ in 0..self.most_runs {
            let value = self.run(pair, arguments)?;
            moved = moved_factor(&value);
            values.push(best(&value, figure)?);
            if Best::of(&values, is_speed(figure)).is_some_and(|best| best.runs >= LEAST_RUNS && best.spread <= self.spread) {
                break;
            }
        }
        Ok(PairMeasurement { best: Best::of(&values, is_speed(figure)), moved_factor: moved })
    }

    fn run(&self, pair: Pair, arguments: &[&str]) -> Result<Value> {
        let value = self.kernels.run(&pair.options(), &[arguments, &["--huge-pages"]].concat())?;
        check_page_nodes(&value, pair.memory_node)?;
        Ok(value)
    }

    /// Starts a kernel that runs beside other ones.
    pub fn start(&self, pair: Pair, arguments: &[&str]) -> Result<Child> {
        let mut command: Command = self.kernels.command(&pair.options(), &[arguments, &["--huge-pages"]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context(ErrorKind::System, "cannot start the kernel")
    }
}

impl Pair {
    /// Its options of `firsttouch run`.
    pub fn options(self) -> [String; 2] {
        [format!("--cpunodebind={}", self.cpu_node), format!("--membind={}", self.memory_node)]
    }
}

/// `None` for kernels that count no bytes.
fn moved_factor(value: &Value) -> Option<f64> {
    let [moved, counted] = ["moved_bytes_per_element", "bytes_per_element"].map(|key| value[key].as_f64());
    Some(moved? / counted.filter(|counted| *counted > 0.0)?)
}

fn is_speed(figure: &str) -> bool {
    figure != "latency_ns"
}

/// The figure of the best repetition in the JSON of a kernel.
pub fn value_of(json: &[u8], figure: &str) -> Result<f64> {
    best(&serde_json::from_slice(json).context(ErrorKind::Kernel, "the kernel printed no result")?, figure)
}

/// The figure of the best repetition of a run.
fn best(value: &Value, figure: &str) -> Result<f64> {
    let key = if is_speed(figure) { "max" } else { "min" };
    value[figure][key].as_f64().ok_or_else(|| Error::new(ErrorKind::Kernel, format!("the kernel printed no {figure}")))
}

/// A figure counts only if the kernel found its pages on the node that they were bound to.
///
/// # Errors
/// When some pages were on another node.
pub fn check_page_nodes(value: &Value, memory_node: u32) -> Result<()> {
    let nodes = value["page_nodes"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let elsewhere = nodes.filter(|node| *node != u64::from(memory_node)).count();
    if elsewhere > 0 {
        let message = format!("{elsewhere} of its pages were on other nodes than {memory_node}, so it was not measured");
        return Err(Error::new(ErrorKind::Kernel, message));
    }
    Ok(())
}
