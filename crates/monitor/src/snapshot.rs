//! What is known at one time. All readers show this; a figure has its home here and nowhere else.
//!
//! Figures that are not known are `None`, with the reason beside them: never 0.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema of the JSON of a snapshot.
pub const SCHEMA: &str = "firsttouch.top/1";
/// A remote share whose interval is wider than this is uncertain, and shown dim.
pub const WIDE: f64 = 0.1;
/// No figure is old before this, seconds: samples come and are judged each 2 s at best.
const OLD_S: f64 = 3.0;
/// No figure is outdated before this, seconds, however short the window is.
const OUTDATED_S: f64 = 5.0;
/// With fewer samples there is no remote share, and other figures of samples are shown dim.
pub const LEAST_SAMPLES: u64 = 8;

/// Shares are in [0, 1], times in seconds, rates a second. CPU is in CPUs: 1 is one CPU all the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub schema: String,
    /// Seconds since 1970.
    pub time_s: f64,
    /// The window that rates and remote shares are taken over.
    pub window_s: f64,
    /// How much of it was seen: less in the beginning. 0 in older records.
    #[serde(default)]
    pub seen_s: f64,
    pub host: String,
    /// The machine that remote shares are judged on.
    pub machine: JudgedMachine,
    pub system: SystemRow,
    /// The nodes of this machine, by number.
    pub nodes: Vec<NodeRow>,
    /// By process number.
    pub processes: Vec<ProcessRow>,
    /// The process that is looked at closely.
    pub detail: Option<Detail>,
    /// What firsttouch itself costs.
    pub cost: Cost,
    /// What cannot be seen here, and what would help.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgedMachine {
    pub name: String,
    pub nodes: usize,
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
}

/// The whole system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemRow {
    pub cpus: usize,
    /// CPUs in use.
    pub cpu: Option<f64>,
    pub memory_total_bytes: Option<u64>,
    pub memory_free_bytes: Option<u64>,
    /// The part of the last 10 s in which some task waited for it (PSI).
    pub pressure_cpu: Option<f64>,
    pub pressure_memory: Option<f64>,
    /// NUMA-hinting faults, those of them on the page's own node, and pages that balancing moved.
    pub hint_faults_per_s: Option<f64>,
    pub hint_faults_local_per_s: Option<f64>,
    pub pages_migrated_per_s: Option<f64>,
    /// All processes, and those that are listed.
    pub processes: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeRow {
    pub node: u32,
    pub cpus: usize,
    /// CPUs in use.
    pub cpu: Option<f64>,
    pub memory_total_bytes: Option<u64>,
    pub memory_free_bytes: Option<u64>,
    /// Pages: allocated here as wanted; allocated here for want of room elsewhere; wanted here and allocated elsewhere.
    pub hits_per_s: Option<f64>,
    pub misses_per_s: Option<f64>,
    pub foreign_per_s: Option<f64>,
    /// Shares of all sampled accesses: by threads of other nodes to this node's memory, and by its threads to other nodes. Of the judged machine.
    pub accesses_in: Option<f64>,
    pub accesses_out: Option<f64>,
}

/// The share of a process's accesses that go to another node than its threads run on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remote {
    pub share: Option<f64>,
    /// 95 %.
    pub interval: Option<[f64; 2]>,
    pub samples: u64,
    /// The source of evidence: `sample`, `hint`.
    pub source: Option<String>,
    /// The share of the accesses that the figure covers: those to objects that could be judged, of those to memory that does not fit in a core's cache.
    /// Only of processes.
    pub covers: Option<f64>,
    /// Why there is no figure.
    pub reason: Option<String>,
    /// The time of the newest sample that the figure is of, seconds since 1970. Samples are judged as often as the cost allows. Only of processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

impl Snapshot {
    /// The seconds that rates are taken over: the window, or less in the beginning.
    #[must_use]
    pub fn covered_s(&self) -> f64 {
        if self.seen_s > 0.0 { self.seen_s.min(self.window_s) } else { self.window_s }
    }
}

impl Remote {
    #[must_use]
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// Whether the figure says little: its interval is wide, or it leaves out a large part of the accesses.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        self.interval.is_none_or(|[low, high]| high - low > WIDE) || self.leaves_much_out()
    }

    /// How long before this time, seconds since 1970, its newest sample is; `None` without one.
    #[must_use]
    pub fn age_s(&self, time_s: f64) -> Option<f64> {
        self.until_s.filter(|_| self.share.is_some()).map(|until| (time_s - until).max(0.0))
    }

    /// Whether it says little of the time of a snapshot: of a large part of its window there are no samples yet.
    #[must_use]
    pub fn is_old(&self, snapshot: &Snapshot) -> bool {
        self.age_s(snapshot.time_s).is_some_and(|age| age > f64::max(snapshot.window_s / 4.0, OLD_S))
    }

    /// Whether it says nothing of it: its newest sample is older than the window.
    #[must_use]
    pub fn is_outdated(&self, time_s: f64, window_s: f64) -> bool {
        self.age_s(time_s).is_some_and(|age| age > f64::max(window_s, OUTDATED_S))
    }

    /// Whether it covers less than four fifths of the accesses: what the others do may change it by more than its interval.
    #[must_use]
    pub fn leaves_much_out(&self) -> bool {
        self.covers.is_some_and(|covers| covers < 0.8)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessRow {
    pub pid: i32,
    pub parent: i32,
    pub user: String,
    pub name: String,
    pub command: String,
    /// The letter of proc(5).
    pub state: char,
    pub threads: u64,
    pub cpu: Option<f64>,
    pub resident_bytes: u64,
    /// Resident bytes by node, huge pages included.
    pub nodes: Option<BTreeMap<u32, u64>>,
    /// Why the nodes are not known.
    pub nodes_unknown: Option<String>,
    pub remote: Remote,
    /// It has ended since the last snapshot; its row is the last one that was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ended: bool,
}

/// A process, closely.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    pub pid: i32,
    pub name: String,
    /// By number.
    pub threads: Vec<ThreadRow>,
    /// What samples say of its objects, by number.
    pub objects: Vec<ObjectRow>,
    /// What the kernel says of its largest mappings, by address.
    pub mappings: Vec<MappedMemory>,
    /// `[node of thread][node of page]`: shares of accesses, of the judged machine; empty if it is not known.
    pub matrix: Vec<Vec<f64>>,
    pub remote: Remote,
    pub doubts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadRow {
    pub tid: i32,
    pub name: String,
    pub state: char,
    pub cpu: Option<f64>,
    /// The CPU that it last ran on, and that CPU's node on this machine.
    pub last_cpu: u32,
    pub node: Option<u32>,
    /// Its node on the machine that is judged on, if that is another one.
    pub judged_node: Option<u32>,
    /// The CPUs and nodes that it may use, as the kernel lists them.
    pub allowed_cpus: Option<String>,
    pub allowed_nodes: Option<String>,
    pub migrations: Option<u64>,
    pub remote: Option<f64>,
    /// The object that it uses most.
    pub hottest: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectRow {
    pub id: i64,
    pub name: String,
    /// Where it was allocated: `file:line`.
    pub line: Option<String>,
    pub bytes: u64,
    pub share: Option<f64>,
    /// The share of its pages by node, and of its accesses by the node of the thread, of the judged machine.
    pub pages_by_node: Vec<f64>,
    pub users_by_node: Vec<f64>,
    pub remote: Remote,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MappedMemory {
    pub id: u64,
    pub name: String,
    pub policy: String,
    pub resident_bytes: u64,
    pub nodes: BTreeMap<u32, u64>,
}

/// CPUs in use by firsttouch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// By this process.
    pub own_cpu: Option<f64>,
    /// By the recorders.
    pub recorders_cpu: Option<f64>,
    /// Processes that are sampled now.
    pub sampled: usize,
}

/// Figures are kept to three decimals: a record of them is exact, and small.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which figures are shown as uncertain.
    #[test]
    fn wide_intervals_are_uncertain() {
        let figure = |interval, covers| Remote { share: Some(0.5), interval, covers, ..Remote::default() };
        assert!(!figure(Some([0.47, 0.53]), Some(0.9)).is_uncertain());
        assert!(figure(Some([0.4, 0.6]), Some(0.9)).is_uncertain());
        assert!(figure(Some([0.47, 0.53]), Some(0.2)).is_uncertain());
        assert!(figure(Some([0.0, 0.06]), Some(0.6)).is_uncertain());
        assert!(figure(None, None).is_uncertain());
    }
}
