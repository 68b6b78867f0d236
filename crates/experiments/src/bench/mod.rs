//! Runs one bundled kernel in this process, with one team of threads or several team sizes.

mod request;

pub(crate) use request::DEFAULT_CACHE_BYTES;
pub use request::{Problem, Request};

use crate::error::{Context, Error, ErrorKind};
use crate::{Result, Statistics};
use firsttouch_model::format_bytes;
use firsttouch_native::{KernelError, KernelResult, KernelRun, Schedule};
use std::collections::BTreeMap;

/// The work in one iteration of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelWork {
    /// The name of an element in the results.
    pub element: String,
    pub elements: f64,
    /// Bytes per element that the program accesses, and bytes that actually move.
    pub bytes: f64,
    pub moved: f64,
    pub flops: f64,
    /// The name of an iteration in the results.
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
    /// The sizes of the arrays in words.
    pub shape: String,
    /// Bytes of all arrays.
    pub bytes: u64,
    pub huge_pages: bool,
    pub iterations: u64,
    /// The number of CPUs that this process may use.
    pub cpus: usize,
    pub work: KernelWork,
    /// At least one; several if the number of threads was varied.
    pub teams: Vec<TeamResult>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TeamResult {
    pub threads: u32,
    /// Seconds per iteration, for each repetition.
    pub seconds: Vec<f64>,
    pub worst_error: f64,
    /// CPUs on which its threads ran at the end.
    pub cpus: Vec<u32>,
    /// The node of pages at equal distances in the main array; `None` for a page whose node is unknown.
    pub page_nodes: Vec<Option<u32>>,
}

/// Runs the kernel once for each team size. `run_team` runs it; its argument is the beginning of the progress line.
///
/// # Errors
/// When the arrays do not fit the available memory, or the kernel fails.
pub fn run(
    request: &Request,
    available_bytes: u64,
    run_team: impl Fn(&KernelRun, &str) -> std::result::Result<KernelResult, KernelError>,
) -> Result<BenchResult> {
    let (kernel_run, mut result) = request.prepare(available_bytes);
    check_memory(&kernel_run, available_bytes)?;
    let default_team = [0];
    let teams = if request.teams.is_empty() { &default_team[..] } else { &request.teams };
    for (index, &threads) in teams.iter().enumerate() {
        let what = if teams.len() > 1 { format!("{threads} threads ({} of {})", index + 1, teams.len()) } else { result.kernel.clone() };
        let outcome = run_team(&KernelRun { threads, ..kernel_run }, &what).of_kind(ErrorKind::Kernel)?;
        outcome.form.name().clone_into(&mut result.form);
        let KernelResult { threads, seconds, worst_error, bytes, cpus, page_nodes, .. } = outcome;
        result.bytes = bytes;
        result.teams.push(TeamResult { threads, seconds, worst_error, cpus, page_nodes });
    }
    Ok(result)
}

/// Linux grants more memory than it has, and kills processes that then use it. So check first.
fn check_memory(run: &KernelRun, available_bytes: u64) -> Result<()> {
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
    /// The first team's median time / this team's: T(1) / T(p) if the first team has one thread.
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
