//! The result of an analysis. firsttouch-report writes it as JSON, together with a forecast: the contract `firsttouch.report/1` (DESIGN.md,
//! section 7). Other tools depend on the names. An analysis can be read back from that JSON.

use crate::findings::{NEAR_BAR, REMOTE_BAR, WORTH_BAR};
use crate::job::{HostView, ObjectAcrossRanks, RankView};
use crate::touch_record::BASE_PAGE;
use crate::{Coverage, NotJudgedReason, Note, PartitionKind, PerThread, Unasked};
use firsttouch_model::TouchCause;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::{FindingKind, FixKind, Remedy, Severity};
use firsttouch_model::prediction::Prediction;
use firsttouch_model::rows::{Id, ObjectKind};
use firsttouch_model::traffic::Traffic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema of the JSON of a report.
pub const REPORT_SCHEMA: &str = "firsttouch.report/1";

/// A two-sided 95 % interval: low, high.
pub type Interval = [f64; 2];

/// The contents of a report. Shares and fractions are in [0, 1]; arrays by thread are indexed by `threads[].index`, arrays by node by the
/// node's number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Analysis {
    pub command: Vec<String>,
    /// As a shell gives it: 128+N for signal N.
    pub exit_code: Option<i32>,
    /// The signal that ended the program; null if none did.
    pub signal: Option<i32>,
    pub wall_s: f64,
    pub machine: MachineView,
    pub threads: Vec<ThreadView>,
    pub evidence: Vec<EvidenceView>,
    /// Remote accesses / accesses, over objects larger than a core's cache whose home is known; null without evidence.
    pub remote_fraction: Option<f64>,
    pub remote_interval: Option<Interval>,
    /// The number of samples behind `remote_fraction`, and their source: `watch` (windows with hits) or `hint` (hinting faults); null
    /// without evidence.
    pub remote_samples: u64,
    pub remote_evidence: Option<EvidenceSource>,
    /// The same figure by other sources of evidence.
    #[serde(default)]
    pub cross_checks: Vec<CrossCheck>,
    /// `[node of thread][node of page]`: shares of accesses, sum 1 (all zero without evidence).
    pub matrix: Vec<Vec<f64>>,
    /// Sorted by access share, descending.
    pub objects: Vec<ObjectView>,
    /// Sorted by remote share of all accesses, descending.
    pub findings: Vec<Finding>,
    pub not_judged: Vec<NotJudged>,
    /// Which part of the accesses the verdicts cover; null without evidence.
    #[serde(default)]
    pub coverage: Option<Coverage>,
    /// What the kernel counted for the whole system while the program ran; null if it was not recorded.
    pub kernel: Option<KernelView>,
    /// Doubts and limits, each with what the user can do about it.
    pub notes: Vec<Note>,
    /// The fraction of the touched memory that belongs to no recorded object, if it is so large that the report must not say that all is
    /// well. Not in the JSON, which has a note about it.
    #[serde(skip)]
    pub unrecorded: Option<f64>,
    /// The interval of the remote fraction that chance alone gives, if it is another one, and how much of the fraction may be wrong because the
    /// nodes of some pages are guessed. Not in the JSON, whose verdict says what is missing.
    #[serde(skip)]
    pub remote_interval_by_samples: Option<Interval>,
    #[serde(skip)]
    pub guessed_homes: f64,
    /// How much of it may be wrong because it is not known how fast loops go, which more samples do not show.
    #[serde(skip)]
    pub speed_error: f64,
    /// The part of the accesses whose addresses are not known.
    #[serde(skip)]
    pub missing_addresses: f64,
    /// The part of the accesses to memory that threads use one after the other, each of which may run on any node.
    #[serde(skip)]
    pub used_in_turn: f64,
    /// Where the kernel was not asked where pages are. Not in the JSON, whose verdict says so.
    #[serde(skip)]
    pub unasked: Option<Unasked>,
    /// Whether firsttouch attached to the program, which ran already. Not in the JSON, whose command says so.
    #[serde(skip)]
    pub attached: bool,
    /// The part of the CPU time that processes used which were started and not profiled, if it is most of it. Not in the JSON, whose
    /// verdict names it.
    #[serde(skip)]
    pub unprofiled: Option<f64>,
    /// Processes of the program that outlive its first one and were no longer recorded. Not in the JSON, whose verdict names them.
    #[serde(skip)]
    pub processes_left: u64,
    /// How long the threads ran while they were recorded, all together; `None` if the kernel does not say.
    #[serde(skip)]
    pub ran_s: Option<f64>,
    /// The recording was to last until they had ended (`--wait`).
    #[serde(skip)]
    pub has_waited: bool,
    /// Why the profile could not be written to its end, and how many rows are missing. Not in the JSON, whose verdict names it.
    #[serde(skip)]
    pub write_failure: Option<(String, u64)>,
    /// The profile has no end: firsttouch was killed while it recorded, or still records. In the JSON only if so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    pub lost: Vec<LostView>,
    /// The hosts and ranks of a merged profile, in order; empty if it was not merged.
    #[serde(default)]
    pub hosts: Vec<HostView>,
    #[serde(default)]
    pub ranks: Vec<RankView>,
    /// Ranks of the job that the profile does not have.
    #[serde(default)]
    pub missing_ranks: Vec<u32>,
    /// The objects that several ranks have, over these ranks.
    #[serde(default)]
    pub across_ranks: Vec<ObjectAcrossRanks>,
    /// The memory traffic, as input for the model of a machine. Not in the JSON.
    #[serde(skip)]
    pub traffic: Traffic,
    /// The variables that the listed objects are assigned to, by allocation site, for storage in the profile. Not in the JSON.
    #[serde(skip)]
    pub variables: BTreeMap<Id, String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// The remote fraction by another source than the report's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    pub evidence: EvidenceSource,
    pub remote_fraction: f64,
    pub interval: Interval,
    pub samples: u64,
    /// Whether the two figures differ by no more than chance explains, and this one is precise enough to compare.
    pub agrees: bool,
}

/// Figures with a wider interval agree with nearly all others.
const WIDEST_COMPARED: f64 = 0.3;

impl CrossCheck {
    /// Whether a figure is precise enough to compare.
    #[must_use]
    pub fn is_precise([low, high]: Interval) -> bool {
        // Borders of 0.3 in binary.
        high - low <= WIDEST_COMPARED + 1e-9
    }
}

impl Analysis {
    /// Whether firsttouch attached to a program that ran already.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.attached || self.command.is_empty()
    }

    /// The rank, or other part of a merged profile, that a process belongs to.
    #[must_use]
    pub fn rank_of(&self, process: i64) -> Option<&RankView> {
        self.ranks.get(self.ranks.partition_point(|rank| rank.process <= process).checked_sub(1)?)
    }

    /// The name of a node: its number, with several hosts `host:number`.
    #[must_use]
    pub fn node_name(&self, node: usize) -> String {
        let is_on = |host: &&HostView| (host.first_node as usize..host.first_node as usize + host.nodes).contains(&node);
        match self.hosts.iter().find(is_on).filter(|_| self.hosts.len() > 1) {
            Some(host) => format!("{}:{}", host.name, node - host.first_node as usize),
            None => node.to_string(),
        }
    }

    /// The objects of each finding, with the placement of their memory after the fix. The first one is the finding's own. Fixed parts for the
    /// threads of a loop change the use of all objects that it works on.
    #[must_use]
    pub fn remedies(&self) -> Vec<(Vec<i64>, Remedy)> {
        let of_objects = || self.findings.iter().filter(|finding| finding.object.is_some());
        let in_loop_of = |finding: &Finding| -> Vec<i64> {
            let line = self.divided_at(finding);
            let others = of_objects().filter(|other| line.is_some() && other.object != finding.object && self.divided_at(other) == line);
            finding.objects().chain(others.flat_map(Finding::objects)).collect()
        };
        of_objects().filter_map(|finding| Some((in_loop_of(finding), finding.fix_kind.remedy()?))).collect()
    }

    /// The line of the loop that gets fixed parts by the fix of a finding.
    fn divided_at(&self, finding: &Finding) -> Option<(&str, u32)> {
        let object =
            self.objects.iter().find(|object| Some(object.id) == finding.object).filter(|_| finding.fix_kind == FixKind::FixedParts)?;
        object.used_at.first()?.lines().last()
    }
}

impl Finding {
    /// The ids of all objects that it is about.
    pub fn objects(&self) -> impl Iterator<Item = i64> {
        self.object.into_iter().chain(self.together.iter().copied()).chain(self.in_ranks.iter().copied())
    }
}

/// An analysis, and the prediction of a model for the program on the same machine.
#[derive(Clone, Copy, Debug)]
pub struct Assessed<'a> {
    pub analysis: &'a Analysis,
    /// `None` without a description of the machine, or without evidence to predict from.
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
    /// Whether it did nothing, and so took no place of its own. Absent in reports of earlier versions.
    #[serde(default)]
    pub idle: bool,
    pub name: Option<String>,
    /// Index among the concurrent threads of its process; threads with successive lifetimes share one.
    pub slot: usize,
    /// The process's id in the profile.
    pub process: i64,
    /// The first of the processes that have the place of its process by turns; null if it is alone there.
    #[serde(default)]
    pub turn: Option<i64>,
    /// The first process of those with which its process shares memory; null if it shares none.
    #[serde(default)]
    pub team: Option<i64>,
    pub omp_number: Option<u32>,
    /// CPUs it was allowed to run on, in the kernel's list format; null if that was not recorded.
    pub allowed_cpus: Option<String>,
    /// On the recorded machine: how often it was observed on each node, and how often it had moved to another node since the observation
    /// before.
    pub seen_on_nodes: Vec<u64>,
    pub node_moves: u64,
}

impl ThreadView {
    /// The first of the processes that have the place of its process.
    #[must_use]
    pub fn turn(&self) -> i64 {
        self.turn.unwrap_or(self.process)
    }
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
    /// The object's id in the profile (of the group's representative).
    pub id: i64,
    pub name: String,
    /// Bytes of one object (of the largest, if the object grew).
    pub bytes: u64,
    /// The number of objects that are reported as this one.
    pub count: usize,
    /// Bytes alive at the same time.
    pub total_bytes: u64,
    pub kind: ObjectKind,
    pub call: Option<String>,
    pub process: i64,
    /// The number of processes that share it; null if it belongs to one.
    #[serde(default)]
    pub shared_by: Option<usize>,
    /// Whether processes can share it, so that another one may have touched it first, also one that is not recorded.
    #[serde(skip)]
    pub is_shareable: bool,
    /// The file name of the library that keeps it as a buffer of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Index among the objects of this name, from 0, in order of birth.
    pub ordinal: usize,
    /// `c`, `c++`, `fortran`, `rust`, `python`, or null.
    pub language: Option<String>,
    pub allocated_at: Option<CodeLocation>,
    /// Share of all sampled accesses; null without watch evidence.
    pub access_share: Option<f64>,
    pub access_share_interval: Option<Interval>,
    /// CPU time at this object / CPU time at all recorded objects; null if no samples of registers were taken.
    #[serde(default)]
    pub time_share: Option<f64>,
    #[serde(default)]
    pub time_share_interval: Option<Interval>,
    /// The source of the figures on its use: `watch` or `hint`. Access shares always come from watch windows if any were hit.
    pub evidence: EvidenceSource,
    /// The number of watch windows on it; of windows with hits that count as use; of hinting faults.
    pub windows: u64,
    pub hit_windows: u64,
    pub hints: u64,
    pub remote_fraction: Option<f64>,
    pub remote_interval: Option<Interval>,
    /// The interval that chance alone gives; `remote_interval` also covers guessed nodes, unknown speeds of loops, and sources that disagree. Null if it is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_interval_by_samples: Option<Interval>,
    /// How much of the remote fraction may be wrong because the nodes of some pages are guessed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub guessed_homes: f64,
    /// How much of it may be wrong because it is not known how fast loops go, which more samples do not show.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub speed_error: f64,
    /// Whether the remote fraction is the same wherever its pages are, and their nodes are not known: those accesses do not count in the remote
    /// fraction of the program. Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_same_anywhere: bool,
    /// Whether its pages are on the nodes of the threads whose parts they are: what is remote are accesses by other threads, and no placement of the
    /// pages makes much of that local. Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_at_users: bool,
    /// Whether its accesses go to all nodes alike, those to neighbouring places too, so that to spread its pages changes nothing. Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spread: bool,
    pub first_touch: FirstTouchView,
    pub used_by_thread: PerThread<f64>,
    pub used_by_thread_interval: PerThread<Interval>,
    /// The number of traps by thread.
    pub used_by_thread_samples: PerThread<u64>,
    pub used_at: Vec<CodeLocation>,
    pub partition: PartitionKind,
    /// Each thread has parts of its own that are smaller than a page: the bytes after which the same thread has a part again. Absent else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_period: Option<u64>,
    pub page_bytes: u64,
    /// The memory policy of its mapping (on a virtual machine only an interleaved one); on the recorded machine, where its pages were.
    pub policy: Option<String>,
    pub resident: Option<ResidentView>,
    pub judged: bool,
    /// Why it is not judged; null if it is.
    pub reason: Option<NotJudgedReason>,
    /// The ids of the objects that it was judged together with, because each of them alone has too few samples.
    #[serde(default)]
    pub together: Vec<i64>,
    pub map: ObjectMap,
}

impl ObjectView {
    /// Whether more of it is remote than of a well-placed object, but no finding is certain: its interval reaches down to the bar of findings, and not to
    /// next to nothing; or its value is at most twice that bar, and it is the nodes of its pages that are not certain enough.
    #[must_use]
    pub fn is_near_bar(&self) -> bool {
        self.is_remote_beyond(|value, low| low <= REMOTE_BAR || value <= NEAR_BAR)
    }

    /// Whether more of it is remote than of a well-placed object, for certain, although each thread has pages of its own that could be on its node, and
    /// are not.
    #[must_use]
    pub fn is_remote_without_need(&self) -> bool {
        let is_dealt_by_page = self.partition == PartitionKind::BlockCyclic && self.page_bytes <= BASE_PAGE;
        let is_interleaved = self.policy.as_ref().is_some_and(|policy| policy.starts_with("interleave"));
        let has_own_pages = (self.partition == PartitionKind::Block || is_dealt_by_page) && !is_interleaved;
        has_own_pages && self.is_remote_beyond(|_, low| low > REMOTE_BAR)
    }

    fn is_remote_beyond(&self, is_open: impl Fn(f64, f64) -> bool) -> bool {
        let known = self.remote_fraction.zip(self.remote_interval);
        known.is_some_and(|(value, [low, _])| value > REMOTE_BAR && low > WORTH_BAR && is_open(value, low))
            && self.library.is_none()
            && !self.is_at_users
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstTouchView {
    /// Share of the touched pages by thread; all zero when unknown.
    pub by_thread: PerThread<f64>,
    pub at: Vec<CodeLocation>,
    pub partition: PartitionKind,
    /// The construct that touched the memory.
    pub cause: Option<TouchCause>,
    /// The number of first-touch records behind the figures.
    pub samples: u64,
    /// Share of the touched pages that the kernel touched on a thread's behalf.
    pub by_kernel: f64,
    /// Share of the touched pages that were touched under a former owner.
    pub recycled: f64,
    /// The object is several arrays (in one mapping, or from one line), and the threads and places are those of its misplaced part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_misplaced_part: bool,
    /// How many of its allocations that part is, if one thread touched those and several the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_allocations: Option<u64>,
}

/// A place in the code, with its share of the figure under which it is listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CodeLocation {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    pub share: f64,
    /// Absent where the share is no estimate: it was counted, or is of one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_interval: Option<Interval>,
    /// Of a place that first touches an object which others touch too: the thread that makes nearly all of its touches, by index. Absent where
    /// several do, or one thread touches the whole object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<usize>,
    /// The text of the source line.
    pub text: Option<String>,
    pub module: Option<String>,
    pub offset: Option<u64>,
    /// The calls by which its function is part of another one (inlined), the innermost first. Absent if it is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined_at: Vec<CallLine>,
}

/// The line of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLine {
    pub file: String,
    pub line: u32,
}

/// Where pages were, according to the kernel's answers for a sample of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResidentView {
    /// The number of queried pages that were resident.
    pub pages: u64,
    /// Their shares by node, at the first and at the last query.
    pub nodes_first: Vec<f64>,
    pub nodes_last: Vec<f64>,
    /// Of the pages queried more than once: the fraction that had moved to another node in between, and the fraction that returned to a
    /// node it had left.
    pub moved: Option<Figure>,
    pub returned: Option<Figure>,
}

/// A figure with its interval and its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub value: f64,
    pub interval: Interval,
    pub samples: u64,
    /// `watch`, `hint`, `resident`, `touch`, or `looks` (observations of where threads run).
    pub evidence: EvidenceSource,
}

/// What the kernel counted during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelView {
    /// kernel.numa_balancing: 0 off, 1 on, 2 or 3 with memory tiers.
    pub numa_balancing: u64,
    /// Counters that grew. `node` is null for counters of the whole system.
    pub counters: Vec<CounterView>,
    /// Total memory of each node, and its free memory at the start and the end, bytes.
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

/// The users and nodes of up to 32 equal pieces of the logical address range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectMap {
    /// Index of the thread that uses each piece; -1 for several, -2 for unknown.
    pub users: Vec<i64>,
    /// Node of each piece; -1 for several, -2 for unknown.
    pub homes: Vec<i64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Finding {
    #[serde(rename = "id")]
    pub kind: FindingKind,
    /// Null if the finding is about the threads or the whole program; `object_name` is then `threads` or `pages`.
    pub object: Option<i64>,
    /// The ids of the other objects that it is about, if several objects were judged together.
    #[serde(default)]
    pub together: Vec<i64>,
    pub object_name: String,
    pub severity: Severity,
    pub message: String,
    /// What to do, in words, with the changes of `fix_edits` as text.
    pub fix: String,
    /// Changes of the source that make the fix; empty where no change is certain to keep what the program computes. Absent in reports of earlier
    /// versions.
    #[serde(default)]
    pub fix_edits: Vec<FixEdit>,
    /// Another remedy in words, which pays only on some machines: the recommendation decides whether it is shown.
    #[serde(default)]
    pub fix_otherwise: Option<String>,
    /// The object placed by calls of libfirsttouch instead, where the source shows how. Absent in reports of earlier versions.
    #[serde(default)]
    pub library: Option<LibraryFix>,
    /// What the fix does. Absent in reports of earlier versions.
    #[serde(default)]
    pub fix_kind: FixKind,
    pub cause: Option<TouchCause>,
    /// The place in the code whose first touches put most of the misplaced pages where they are, for a mismatched partition; null if it is not known.
    #[serde(default)]
    pub misplaced_at: Option<CodeLocation>,
    /// Fraction of the accesses to this object (without an object: of all accesses) that are remote.
    pub remote_fraction: f64,
    pub interval: Interval,
    /// Remote accesses to this object / all sampled accesses.
    pub remote_share: f64,
    /// The figures that justify the finding, by name: `remote`, and what its rule uses besides.
    pub figures: BTreeMap<String, Figure>,
    /// The ranks that have it, in a job of several.
    #[serde(default)]
    pub ranks: Vec<u32>,
    /// The ids of the same objects in the other ranks that have it.
    #[serde(default)]
    pub in_ranks: Vec<i64>,
}

/// Changes of the source that place an object by libfirsttouch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryFix {
    /// The changes as text.
    pub text: String,
    pub edits: Vec<FixEdit>,
    /// How the program is built then, and what it has to say once before: a part of a sentence.
    pub needs: String,
}

impl LibraryFix {
    /// Whether it spreads the pages over all nodes.
    #[must_use]
    pub fn interleaves(&self) -> bool {
        self.text.contains("interleaved")
    }
}

/// A change of a source file. Line numbers are those of the file as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixEdit {
    pub file: String,
    pub action: EditAction,
    /// The first and the last line that the change is about. For insertions both are the line before or after which the text goes.
    pub line: u32,
    pub last_line: u32,
    /// The new lines, with their indentation.
    pub text: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditAction {
    InsertBefore,
    InsertAfter,
    Replace,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotJudged {
    pub id: i64,
    pub name: String,
    pub bytes: u64,
    pub count: usize,
    pub reason: NotJudgedReason,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostView {
    pub source: EvidenceSource,
    pub reason: String,
    pub count: u64,
}
