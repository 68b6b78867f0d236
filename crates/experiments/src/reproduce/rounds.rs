//! Runs several cases in turn, so that a change on the machine during the runs affects all of them alike.

use crate::error::{Context, Error, ErrorKind};
use crate::kernels::{Kernels, parse};
use crate::{Progress, Result};
use serde_json::Value;
use std::process::{Child, Stdio};

/// One way to run a kernel.
pub struct Case {
    /// The case's name in the table.
    pub name: String,
    /// Options of `firsttouch run`; if empty, nothing is placed.
    pub placement: Vec<String>,
    /// The kernel of `firsttouch bench` and its options.
    pub kernel: Vec<String>,
}

impl Case {
    pub fn new(name: impl Into<String>, placement: Vec<String>, kernel: &str) -> Self {
        Self { name: name.into(), placement, kernel: kernel.split(' ').map(str::to_owned).collect() }
    }
}

/// The JSON that the runs of a case printed; after a failure, fewer than requested.
#[derive(Clone, Debug, Default)]
pub struct CaseRuns {
    pub printed: Vec<Value>,
    pub failed: Option<String>,
}

impl CaseRuns {
    /// The median of each run's repetitions.
    pub fn figures(&self, key: &str) -> Vec<f64> {
        self.printed.iter().filter_map(|value| value[key]["median"].as_f64()).filter(|figure| *figure > 0.0).collect()
    }

    /// The node of each sampled page of the first run.
    pub fn page_nodes(&self) -> Vec<u64> {
        self.printed.first().and_then(|value| value["page_nodes"].as_array()).into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    fn add(&mut self, case: &Case, printed: Result<Value>) {
        match printed {
            Ok(value) => self.printed.push(value),
            Err(error) => self.failed = Some(format!("{}: {error:#}", case.name)),
        }
    }
}

pub struct Rounds<'a> {
    pub kernels: &'a Kernels,
    pub runs: u32,
    pub progress: Progress<'a>,
}

impl Rounds<'_> {
    /// Runs every case once per round. Each round begins with another case. A case that failed is not run again.
    ///
    /// # Errors
    /// When all cases failed: the error is that of the first.
    pub fn run(&self, cases: &[Case]) -> Result<Vec<CaseRuns>> {
        let mut all = vec![CaseRuns::default(); cases.len()];
        for round in 0..self.runs as usize {
            for turn in 0..cases.len() {
                let index = (round + turn) % cases.len();
                let (case, runs) = (&cases[index], &mut all[index]);
                if runs.failed.is_some() {
                    continue;
                }
                (self.progress)(&format!("run {} of {}: {}", round + 1, self.runs, case.name));
                runs.add(case, self.once(case));
            }
        }
        if let Some(why) = all.iter().find_map(|runs| runs.failed.as_ref())
            && all.iter().all(|runs| runs.printed.is_empty())
        {
            return Err(Error::new(ErrorKind::Kernel, format!("cannot run the experiment: {why}")));
        }
        Ok(all)
    }

    /// Runs all cases at the same time, round by round.
    pub fn together(&self, cases: &[Case]) -> Result<Vec<CaseRuns>> {
        let mut all = vec![CaseRuns::default(); cases.len()];
        for _ in 0..self.runs {
            let start =
                |case: &Case| self.kernels.command(&case.placement, &case.kernel).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let started: Vec<Child> =
                cases.iter().map(start).collect::<std::io::Result<_>>().context(ErrorKind::System, "cannot start the kernels")?;
            for ((child, runs), case) in started.into_iter().zip(&mut all).zip(cases) {
                let output = child.wait_with_output().context(ErrorKind::System, "cannot wait for the kernel");
                runs.add(case, output.and_then(|output| parse(&output)));
            }
        }
        Ok(all)
    }

    pub fn once(&self, case: &Case) -> Result<Value> {
        self.kernels.run(&case.placement, &case.kernel)
    }
}

/// The reasons why cases have no figures, as notes.
pub fn failures(all: &[CaseRuns]) -> impl Iterator<Item = String> {
    all.iter().filter_map(|runs| runs.failed.as_ref()).map(|why| format!("Not measured: {why}."))
}
