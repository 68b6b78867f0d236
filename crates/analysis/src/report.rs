//! The result of an analysis. firsttouch-report writes it as JSON, joined with a forecast: the contract `firsttouch.report/1`
//! (DESIGN.md, section 7). Other tools rely on the names. An analysis is read back from that JSON.

use crate::PartitionKind;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::{FindingKind, Severity};
use firsttouch_model::prediction::Prediction;
use firsttouch_model::rows::ObjectKind;
use firsttouch_model::traffic::Traffic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the JSON that a report is written as.
pub const REPORT_SCHEMA: &str = "firsttouch.report/1";

/// A two-sided 95 % interval: low, high.
pub type Interval = [f64; 2];

/// Everything a report shows. Shares and fractions are in [0, 1]; arrays by thread are indexed by `threads[].index`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Analysis {
    pub command: Vec<String>,
    pub exit_code: Option<i32>,
    pub wall_s: f64,
    pub machine: MachineView,
    pub threads: Vec<ThreadView>,
    pub evidence: Vec<EvidenceView>,
    /// Remote accesses / accesses, over objects larger than a core's cache where the home is known; null without evidence.
    pub remote_fraction: Option<f64>,
    pub remote_interval: Option<Interval>,
    /// Samples behind `remote_fraction`, and what they are: `watch` (windows with hits) or `hint` (hinting faults); null without.
    pub remote_samples: u64,
    pub remote_evidence: Option<EvidenceSource>,
    /// [node of thread][node of page], sums to 1 (all zero without evidence).
    pub matrix: Vec<Vec<f64>>,
    /// By access share, largest first.
    pub objects: Vec<ObjectView>,
    /// By remote share of all accesses, largest first.
    pub findings: Vec<Finding>,
    pub not_judged: Vec<NotJudged>,
    /// What the kernel counted while the program ran, of the whole system; null where it was not recorded.
    pub kernel: Option<KernelView>,
    /// Doubts and limits, one sentence each, with what to do about them.
    pub notes: Vec<String>,
    /// Part of the touched memory that belongs to no recorded object, where it is too much for an all-clear. Not in the JSON,
    /// where `notes` tells it.
    #[serde(skip)]
    pub unrecorded: Option<f64>,
    pub lost: Vec<LostView>,
    /// What a model of the machine has to carry. Not in the JSON.
    #[serde(skip)]
    pub traffic: Traffic,
}

/// An analysis, and what a model predicts for the program on the same machine.
#[derive(Clone, Copy, Debug)]
pub struct Assessed<'a> {
    pub analysis: &'a Analysis,
    /// `None` where there is no description of the machine, or nothing to predict from.
    pub prediction: Option<&'a Prediction>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineView {
    pub name: String,
    pub nodes: usize,
    #[serde(rename = "virtual")]
    pub virtual_machine: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadView {
    pub index: usize,
    pub node: u32,
    pub name: Option<String>,
    /// Place among the threads of its process; threads that follow each other share one.
    pub slot: usize,
    /// The profile's process id.
    pub process: i64,
    pub omp_number: Option<u32>,
    /// CPUs it might run on, as the kernel lists them; null where that was not recorded.
    pub allowed_cpus: Option<String>,
    /// On the recorded machine: looks at where it ran, by node, and how often it was seen to have moved to another node.
    pub seen_on_nodes: Vec<u64>,
    pub node_moves: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceView {
    pub source: EvidenceSource,
    pub available: bool,
    pub samples: u64,
    pub lost: u64,
    pub detail: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectView {
    /// The profile's object id (of the group's representative).
    pub id: i64,
    pub name: String,
    /// Size of one object, bytes (of the largest, when it grew).
    pub bytes: u64,
    /// Objects reported as this one.
    pub count: usize,
    /// Bytes alive at once.
    pub total_bytes: u64,
    pub kind: ObjectKind,
    pub call: Option<String>,
    pub process: i64,
    /// Which of several objects of this name, from 0, in order of birth.
    pub ordinal: usize,
    /// `c`, `c++`, `fortran`, `rust`, `python`, or null.
    pub language: Option<String>,
    pub allocated_at: Option<Place>,
    /// Of all sampled accesses; null without watch evidence.
    pub access_share: Option<f64>,
    pub access_share_interval: Option<Interval>,
    /// What the figures on its use rest on: `watch` or `hint`. Access shares rest on windows where any were hit.
    pub evidence: EvidenceSource,
    /// Watch windows held, and those with hits that count as use; hinting faults on it.
    pub windows: u64,
    pub hit_windows: u64,
    pub hints: u64,
    pub remote_fraction: Option<f64>,
    pub remote_interval: Option<Interval>,
    pub first_touch: FirstTouchView,
    pub used_by_thread: Vec<f64>,
    pub used_by_thread_interval: Vec<Interval>,
    /// Traps seen by thread.
    pub used_by_thread_samples: Vec<u64>,
    pub used_at: Vec<Place>,
    pub partition: PartitionKind,
    pub page_bytes: u64,
    /// On the recorded machine: memory policy of its mapping, and where its pages were.
    pub policy: Option<String>,
    pub resident: Option<ResidentView>,
    pub judged: bool,
    /// Why not judged.
    pub reason: Option<String>,
    pub map: Strip,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstTouchView {
    /// Share of the touched pages by thread; all zero when unknown.
    pub by_thread: Vec<f64>,
    pub at: Vec<Place>,
    pub partition: PartitionKind,
    /// What the touching code was (`loop`, `memset`, `calloc`, ...).
    pub cause: Option<String>,
    /// First-touch records behind the figures.
    pub samples: u64,
    /// Share of the touched pages that the kernel touched on a thread's behalf.
    pub by_kernel: f64,
    /// Share of the touched pages that were touched under a former owner.
    pub recycled: f64,
}

/// A place in the code, with its share of what it is listed under.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    pub share: f64,
    /// The source line.
    pub text: Option<String>,
    pub module: Option<String>,
    pub offset: Option<u64>,
}

/// Where pages were, by the kernel's answers on a sample of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResidentView {
    /// Pages asked about that were there.
    pub pages: u64,
    /// Their shares by node, when first and when last asked.
    pub nodes_first: Vec<f64>,
    pub nodes_last: Vec<f64>,
    /// Of those asked about again: the part that had changed its node in between, and that came back to one it had left.
    pub moved: Option<Figure>,
    pub returned: Option<Figure>,
}

/// A figure with its interval, and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub value: f64,
    pub interval: Interval,
    pub samples: u64,
    /// `watch`, `hint`, `resident`, `touch`, or `looks` at where threads run.
    pub evidence: EvidenceSource,
}

/// The kernel's side of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelView {
    /// kernel.numa_balancing: 0 off, 1 on, 2 or 3 with memory tiers.
    pub numa_balancing: u64,
    /// Counters that grew, of the whole system; those of nodes as `NAME` with `node`.
    pub counters: Vec<CounterView>,
    /// Free memory of each node at the start and the end, bytes.
    pub nodes: Vec<NodeMemoryView>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterView {
    pub name: String,
    pub node: Option<u32>,
    pub growth: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeMemoryView {
    pub node: u32,
    pub total_bytes: u64,
    pub free_at_start: u64,
    pub free_at_end: u64,
}

/// Up to 32 equal pieces of the logical address range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Strip {
    /// Thread that uses each piece; -1 several, -2 unknown.
    pub users: Vec<i64>,
    /// Node each piece is on; -1 several, -2 unknown.
    pub homes: Vec<i64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Finding {
    #[serde(rename = "id")]
    pub kind: FindingKind,
    /// Null where the finding is about the threads or the whole program; `object_name` says so then.
    pub object: Option<i64>,
    pub object_name: String,
    pub severity: Severity,
    pub message: String,
    pub fix: String,
    pub cause: Option<String>,
    /// Of the accesses to this object (to all objects, where there is none).
    pub remote_fraction: f64,
    pub interval: Interval,
    /// Remote accesses to this object / all sampled accesses.
    pub remote_share: f64,
    /// What the finding stands on, by name: `remote` and what its rule looks at besides.
    pub figures: BTreeMap<String, Figure>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotJudged {
    pub id: i64,
    pub name: String,
    pub bytes: u64,
    pub count: usize,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostView {
    pub source: EvidenceSource,
    pub reason: String,
    pub count: u64,
}
