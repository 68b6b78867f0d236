//! What to profile and how.

use firsttouch_model::rows::{Machine, RankPlace};
use firsttouch_profile::Output;
use firsttouch_system::debug_exceptions::Policy;
use hashbrown::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

pub struct Options {
    pub command: Vec<OsString>,
    pub output: Output,
    /// Allocations below this many bytes are not recorded.
    pub min_size: u64,
    pub follow: bool,
    /// With `follow`: record until all processes have ended, not only the first.
    pub wait: bool,
    pub duration: Option<Duration>,
    /// Attach to this process instead of starting `command`.
    pub pid: Option<i32>,
    /// Which threads may get watchpoints.
    pub watchpoints: Policy,
    /// Watchpoints may rest while samples of registers show the accesses.
    pub watchpoints_may_rest: bool,
    /// The agent library's bytes.
    pub agent: &'static [u8],
    pub machine: Machine,
    /// The place of the program in a job, if a launcher of ranks started it.
    pub rank: Option<RankPlace>,
    /// What could not be read of the machine, a sentence each.
    pub notes: Vec<String>,
    /// Called with (done, all) while names are looked up at the end.
    pub progress: Option<fn(usize, usize)>,
    /// Called once or twice a second while the program is recorded, and with `None` when that ends.
    pub observed: Option<Observer>,
    /// The profile is for live readers: it keeps recent samples only, for as long as the program runs.
    pub live: Option<Live>,
}

/// A recording whose profile is read while it is written, and thrown away at its end. It has no watchpoints and no names of code, and its samples
/// are not thinned with time, because old ones are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Samples that are older may be removed.
    pub kept: Duration,
    /// CPU time of a thread between two of its samples, at least.
    pub period: Duration,
    /// The process with which it ends, by SIGKILL: its parent. `None`: it goes on.
    pub parent: Option<i32>,
    pub effort: LiveEffort,
}

/// What a live recording may cost firsttouch, and how soon its rows can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveEffort {
    /// A view: several recordings run at a time, for as long as somebody looks.
    View,
    /// Tuning: one recording, whose samples save the program time; the earlier they come, the more.
    Tuning,
}

impl LiveEffort {
    /// The part of one CPU that firsttouch may spend on samples.
    pub(crate) fn share(self) -> f64 {
        match self {
            Self::View => 0.004,
            Self::Tuning => 0.02,
        }
    }
}

impl Live {
    pub(crate) fn period_ns(&self) -> u64 {
        u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Shows what was recorded so far.
pub type Observer = Box<dyn Fn(Option<&Observed<'_>>)>;

/// What was recorded so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed<'a> {
    /// The profile. Another process can read it, this one must not: closing the file would give up SQLite's locks.
    pub profile: &'a Path,
    pub elapsed_s: f64,
    pub threads: u64,
    /// Samples of registers, and hits of watchpoints.
    pub accesses: u64,
    pub first_touches: u64,
}

/// The budgets of a recorder are not divided among more ranks than these: a rank needs some evidence of its own.
const MOST_SHARING: u32 = 16;

impl Options {
    /// How many recorders share this host's budget: one for each rank of the job on it. Ranks wait for each other, so what holds up one of them holds up all.
    pub(crate) fn recorders_here(&self) -> u32 {
        self.rank.as_ref().and_then(|rank| rank.local_size).unwrap_or(1).clamp(1, MOST_SHARING)
    }

    /// Node of each CPU, on a machine with several nodes; else empty.
    pub(crate) fn cpu_nodes(&self) -> HashMap<u32, u32> {
        let nodes = &self.machine.node_cpus;
        if nodes.len() < 2 {
            return HashMap::new();
        }
        nodes.iter().flat_map(|(&node, cpus)| cpus.iter().map(move |&cpu| (cpu, node))).collect()
    }

    /// The CPUs of the machine, also if sysfs does not list them.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let mut list: Vec<u32> = self.machine.node_cpus.values().flatten().copied().collect();
        if list.is_empty() {
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            list = (0..u32::try_from(count).unwrap_or(1)).collect();
        }
        list.sort_unstable();
        list.dedup();
        list
    }
}
