//! Runs of several cases, in turn, so that what changes on the machine meanwhile meets all of them alike.

use crate::commands::kernels::{Kernels, printed};
use crate::output::message;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{IsTerminal, stderr};

/// One way to run a kernel.
pub struct Case {
    /// As in the table.
    pub name: String,
    /// Options of `firsttouch run`; none: nothing is placed.
    pub placement: Vec<String>,
    /// `bench`'s kernel and its options.
    pub kernel: Vec<String>,
}

impl Case {
    pub fn new(name: impl Into<String>, placement: Vec<String>, kernel: &str) -> Self {
        Self { name: name.into(), placement, kernel: kernel.split(' ').map(str::to_owned).collect() }
    }
}

/// What the runs of a case printed; fewer than asked for where one failed.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub printed: Vec<Value>,
    pub failed: Option<String>,
}

impl Ran {
    /// The median of each run's repetitions.
    pub fn figures(&self, key: &str) -> Vec<f64> {
        self.printed.iter().filter_map(|value| value[key]["median"].as_f64()).filter(|figure| *figure > 0.0).collect()
    }

    /// How many of the sampled pages of the first run were on each node.
    pub fn page_nodes(&self) -> Vec<u64> {
        self.printed.first().and_then(|value| value["page_nodes"].as_array()).into_iter().flatten().filter_map(Value::as_u64).collect()
    }
}

pub struct Rounds<'a> {
    pub kernels: &'a Kernels,
    pub runs: u32,
}

impl Rounds<'_> {
    /// Runs every case once a round, beginning with another one each time. A case that fails is not run again.
    ///
    /// # Errors
    /// When all cases failed: the first one's reason.
    pub fn run(&self, cases: &[Case]) -> Result<Vec<Ran>> {
        let mut all = vec![Ran::default(); cases.len()];
        let shows_progress = stderr().is_terminal();
        for round in 0..self.runs as usize {
            for turn in 0..cases.len() {
                let index = (round + turn) % cases.len();
                let (case, ran) = (&cases[index], &mut all[index]);
                if ran.failed.is_some() {
                    continue;
                }
                if shows_progress {
                    message(&format!("run {} of {}: {}", round + 1, self.runs, case.name));
                }
                match self.once(case) {
                    Ok(value) => ran.printed.push(value),
                    Err(error) => ran.failed = Some(format!("{}: {error:#}", case.name)),
                }
            }
        }
        if let Some(why) = all.iter().find_map(|ran| ran.failed.as_ref())
            && all.iter().all(|ran| ran.printed.is_empty())
        {
            bail!("cannot run the experiment: {why}");
        }
        Ok(all)
    }

    pub fn once(&self, case: &Case) -> Result<Value> {
        printed(&self.kernels.command(&case.placement, &case.kernel).output().context("cannot start the kernel")?)
    }
}

/// Why cases have no figures, as notes.
pub fn failures(all: &[Ran]) -> impl Iterator<Item = String> {
    all.iter().filter_map(|ran| ran.failed.as_ref()).map(|why| format!("Not measured: {why}."))
}
