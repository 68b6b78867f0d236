//! One profiling run: starts or attaches to the target (`start.rs`), loops over signals, records and rounds (`run.rs`), and
//! writes down what was and was not seen (`account.rs`).

mod account;
mod counters;
mod pages;
mod run;
mod start;

use crate::agent::ring::AgentRing;
use crate::perf::records::PerfRecord;
use crate::sink::Sink;
use crate::touch::TouchEvents;
use crate::track::{Scope, Tracker};
use crate::watch::rounds::Rounds;
use crate::watch::slots::{Calibration, WatchedThread};
use anyhow::Result;
use firsttouch_model::rows::Machine;
use firsttouch_profile::Writer;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::launch::raise_file_limit;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What to profile and how.
pub struct Options {
    pub command: Vec<OsString>,
    pub output: PathBuf,
    /// Allocations below this many bytes are not recorded.
    pub min_size: u64,
    pub follow: bool,
    pub duration: Option<Duration>,
    /// Attach to this process instead of starting `command`.
    pub pid: Option<i32>,
    /// The agent library's bytes.
    pub agent: &'static [u8],
    pub machine: Machine,
    /// Doubts about what was read of the machine, a sentence each.
    pub notes: Vec<String>,
    /// Told (done, all) while names are looked up at the end.
    pub progress: Option<fn(usize, usize)>,
}

/// How it went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The program's status as a shell gives it; none when attached.
    pub exit_code: Option<i32>,
    /// Why the profile is incomplete or missing (full disk), if it is.
    pub profile_error: Option<String>,
    /// What was not seen, why, and what would help; complete sentences.
    pub messages: Vec<String>,
    pub summary: Summary,
    /// Modules that are not what was mapped any more.
    pub replaced: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Summary {
    pub threads: u64,
    pub wall_s: f64,
    pub watch_hits: u64,
    pub watch_windows: u64,
    pub first_touches: u64,
    /// Faults the sampled first touches stand for.
    pub touch_weight: f64,
    pub lost: u64,
}

/// The evidence sources of one run, as far as they could be had.
struct Session<'a> {
    options: &'a Options,
    tracker: Tracker,
    pid: i32,
    touch: Result<TouchEvents, String>,
    ring: Option<AgentRing>,
    agent_missing: Option<String>,
    rounds: Option<Rounds>,
    watch_missing: Option<String>,
    resident_missing: Option<String>,
    pending: Vec<(u64, PerfRecord, u64)>,
    watched: HashSet<i32>,
    start_ns: u64,
    end_ns: u64,
    file_limit: u64,
    cpu_count: usize,
    next_waits: u64,
    last_tick: u64,
    /// Records taken in since then.
    taken: usize,
    watch_started: bool,
    counted: counters::Counted,
}

/// Runs the profile.
///
/// # Errors
/// [`LaunchError`] (downcast) when the command cannot be run; any other error means that nothing was started.
pub fn profile(options: &Options) -> Result<Outcome> {
    match options.pid {
        Some(pid) => start::attach(options, pid),
        None => start::launch(options),
    }
}

impl<'a> Session<'a> {
    fn new(options: &'a Options, writer: Writer, pid: i32, ring: Option<AgentRing>, agent_missing: Option<String>) -> Self {
        let now = monotonic_ns();
        let scope = Scope {
            root: PathBuf::from("/"),
            root_pid: pid,
            follow: options.follow,
            min_size: options.min_size,
            page_bytes: options.machine.page_bytes.max(4096),
            huge_page_bytes: options.machine.huge_page_bytes,
            cpu_nodes: cpu_nodes(&options.machine),
            may_hint: options.machine.may_hint(),
            by_mapping: ring.is_none(),
        };
        Self {
            options,
            tracker: Tracker::new(scope, Sink::new(writer), now ^ u64::from(pid.unsigned_abs()) << 32),
            pid,
            touch: Err(String::new()),
            ring,
            agent_missing,
            rounds: None,
            watch_missing: None,
            resident_missing: None,
            pending: Vec::new(),
            watched: HashSet::new(),
            start_ns: now,
            end_ns: now,
            file_limit: raise_file_limit(),
            cpu_count: cpus(&options.machine).len(),
            next_waits: 0,
            last_tick: now,
            taken: 0,
            watch_started: false,
            counted: counters::Counted::default(),
        }
    }

    fn start_watch(&mut self, calibration: Option<Calibration>) {
        match calibration {
            Some(Calibration { trap_ns, armed }) => {
                let seed = monotonic_ns().rotate_left(17) ^ u64::from(self.pid.unsigned_abs());
                self.rounds = Some(Rounds::new(seed, trap_ns, armed, cpus(&self.options.machine).len()));
            }
            None => {
                let error = WatchedThread::open(0, 0, 0).err().unwrap_or_else(|| std::io::Error::from_raw_os_error(libc::ENODEV));
                let reason = crate::touch::explain(&self.tracker.scope.root, &error);
                self.watch_missing = Some(if error.raw_os_error() == Some(libc::ENOSPC) {
                    "cannot set watchpoints (all debug registers are taken): end the debugger that holds them".to_owned()
                } else {
                    reason
                });
            }
        }
    }
}

/// Node of each CPU, on a machine with several nodes; else empty.
fn cpu_nodes(machine: &Machine) -> HashMap<u32, u32> {
    if machine.node_cpus.len() < 2 {
        return HashMap::new();
    }
    machine.node_cpus.iter().flat_map(|(&node, cpus)| cpus.iter().map(move |&cpu| (cpu, node))).collect()
}

/// The CPUs there are, also where sysfs does not say.
fn cpus(machine: &Machine) -> Vec<u32> {
    let mut list: Vec<u32> = machine.node_cpus.values().flatten().copied().collect();
    if list.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        list = (0..u32::try_from(count).unwrap_or(1)).collect();
    }
    list.sort_unstable();
    list.dedup();
    list
}
