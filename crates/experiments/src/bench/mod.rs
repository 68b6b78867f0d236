//! One bundled kernel in this process, by one team of threads or by several team sizes.

mod request;

pub(crate) use request::DEFAULT_CACHE_BYTES;
pub use request::{Problem, Request};

use crate::error::{Context, Error, ErrorKind};
use crate::{Result, Statistics};
use firsttouch_model::format_bytes;
use firsttouch_native::{KernelError, Outcome, Run, Schedule};
use std::collections::BTreeMap;

/// What an iteration of the kernel does.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelWork {
    /// What an element is called.
    pub element: String,
    pub elements: f64,
    /// Bytes of an element that the program names, and bytes that move.
    pub bytes: f64,
    pub moved: f64,
    pub flops: f64,
    /// What one iteration is called.
    pub iteration: String,
}

/// A kernel, how it ran, and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchResult {
    pub kernel: String,
    pub init: String,
    pub schedule: String,
    pub form: String,
    /// The value of `--place`.
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
    pub work: KernelWork,
    /// At least one; several where the number of threads was varied.
    pub teams: Vec<TeamResult>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TeamResult {
    pub threads: u32,
    /// Of one iteration, by repetition.
    pub seconds: Vec<f64>,
    pub worst_error: f64,
    /// CPUs on which its threads ran at the end.
    pub cpus: Vec<u32>,
    /// Nodes of pages at equal distances in the main array.
    pub page_nodes: Vec<Option<u32>>,
}

/// Runs the kernel once for each team size. `run_team` runs it, and gets the beginning of a line about its progress.
///
/// # Errors
/// When the arrays do not fit the available memory, and when the kernel fails.
pub fn run(
    request: &Request,
    available_bytes: u64,
    run_team: impl Fn(&Run, &str) -> std::result::Result<Outcome, KernelError>,
) -> Result<BenchResult> {
    let (kernel_run, mut result) = request.prepare(available_bytes);
    check_memory(&kernel_run, available_bytes)?;
    let default_team = [0];
    let teams = if request.teams.is_empty() { &default_team[..] } else { &request.teams };
    for (index, &threads) in teams.iter().enumerate() {
        let what = if teams.len() > 1 { format!("{threads} threads ({} of {})", index + 1, teams.len()) } else { result.kernel.clone() };
        let outcome = run_team(&Run { threads, ..kernel_run }, &what).of_kind(ErrorKind::Kernel)?;
        outcome.form.name().clone_into(&mut result.form);
        let Outcome { threads, seconds, worst_error, bytes, cpus, page_nodes, .. } = outcome;
        result.bytes = bytes;
        result.teams.push(TeamResult { threads, seconds, worst_error, cpus, page_nodes });
    }
    Ok(result)
}

/// Linux grants more memory than it has and kills processes that use it, so this check comes first.
fn check_memory(run: &Run, available_bytes: u64) -> Result<()> {
    let bytes = run.bytes();
    if available_bytes > 0 && bytes > available_bytes {
        return Err(Error::usage(format!(
            "cannot run {}: it needs {}, and {} are available; choose smaller sizes",
            run.kernel.name(),
            format_bytes(bytes),
            format_bytes(available_bytes)
        )));
    }
    Ok(())
}

impl BenchResult {
    /// The first team's median time over this one's: T(1) / T(p) where the first has one thread.
    #[must_use]
    pub fn speedup(&self, team: &TeamResult) -> Option<f64> {
        Some(Statistics::of(&self.teams.first()?.seconds)?.median / Statistics::of(&team.seconds)?.median)
    }
}

fn schedule_name(schedule: Schedule) -> String {
    let (kind, chunk) = match schedule {
        Schedule::Static { chunk } => ("static", chunk),
        Schedule::Dynamic { chunk } => ("dynamic", chunk),
        Schedule::Guided { chunk } => ("guided", chunk),
    };
    chunk.map_or(kind.to_owned(), |chunk| format!("{kind},{chunk}"))
}
