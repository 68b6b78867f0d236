//! One figure: a bundled kernel in a process of its own, placed by `firsttouch run`, as often as it takes.

use anyhow::{Context, Result, bail};
use firsttouch_report::Best;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A figure needs so many runs to have a spread.
const LEAST_RUNS: u32 = 3;

/// How figures are measured.
pub struct Bench {
    pub firsttouch: PathBuf,
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
        let output = self.command(pair, arguments).output().context("cannot start the kernel")?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            let line = told.lines().next().unwrap_or("it told no reason").trim_start_matches("firsttouch: ").trim_start_matches("error: ");
            bail!("{line} ({})", output.status);
        }
        let value: Value = serde_json::from_slice(&output.stdout).context("the kernel printed no result")?;
        check_place(&value, pair)?;
        best(&value, figure)
    }

    /// Starts a kernel that is to run beside others.
    pub fn start(&self, pair: Pair, arguments: &[&str]) -> Result<Child> {
        self.command(pair, arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("cannot start the kernel")
    }

    fn command(&self, pair: Pair, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.firsttouch);
        command.arg("run").arg(format!("--cpunodebind={}", pair.cpu_node)).arg(format!("--membind={}", pair.memory_node)).arg("--");
        command.arg(&self.firsttouch).arg("bench").args(arguments).args(["--json", "--huge-pages"]);
        // What the user set for programs of their own does not decide what is measured.
        for name in ["OMP_NUM_THREADS", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_SCHEDULE"] {
            command.env_remove(name);
        }
        command.env("OMP_PROC_BIND", "true").stdin(Stdio::null());
        command
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
fn check_place(value: &Value, pair: Pair) -> Result<()> {
    let nodes = value["page_nodes"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let elsewhere = nodes.filter(|node| *node != u64::from(pair.memory_node)).count();
    if elsewhere > 0 {
        bail!("{elsewhere} of its pages were on other nodes than {}, so it was not measured", pair.memory_node);
    }
    Ok(())
}
