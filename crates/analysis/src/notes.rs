//! Doubts about an analysis and its limits, each with what the user can do about it.

use crate::Target;
use crate::candidates::Candidates;
use crate::contention::unfair;
use crate::evidence::Evidence;
use crate::kernel_time::{KernelTime, kernel_time};
use crate::threads::Threads;
use crate::unowned_memory::{Unrecorded, UnrecordedCause};
use firsttouch_model::cpu_list;
use firsttouch_model::numactl::runs_a_plan;
use firsttouch_model::rows::Profile;
use firsttouch_model::{Pin, counted, format_bytes};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A doubt or a limit. The JSON holds its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Note {
    /// A sentence from the profile or from an earlier report.
    Recorded(String),
    /// Much of the touched memory belongs to no object.
    Unrecorded { unrecorded: Unrecorded, cause: UnrecordedCause },
    /// A judged mapping that seems to hold several arrays.
    Merged { name: String, arrays: u64 },
    /// Objects that may be misplaced, with too few samples for a verdict.
    Candidates(Candidates),
    /// The machine has one node.
    OneNode { machine: String },
    /// Objects with a memory policy that a virtual machine has no nodes for: the number, and the policy of one.
    UnknownPolicies { objects: usize, policy: String },
    /// `firsttouch run --plan` started the program on a machine with one node, where it places nothing.
    PlanWithoutNodes,
    /// The threads waited for a CPU for this part of the time in which they could run.
    Contended(f64),
    /// The threads spent most of their CPU time in the kernel.
    KernelTime(KernelTime),
    /// All threads may run on these CPUs only, which a virtual machine does not have.
    CpuMask { cpus: String, count: usize, machine: String },
    /// All threads run on one node.
    ThreadsOnOneNode { machine: String, remedy: Spreading },
    /// Threads that did nothing, of all threads, and so took no place.
    IdleThreads { idle: usize, all: usize, machine: String },
    /// The number of threads that make others anew all the time, at the same time.
    NestedTeams(usize),
    /// The number of processes whose threads stay together on one node.
    TogetherOnNodes(usize),
    /// Where the ranks of a job sit on a virtual machine: how many there are, and whether the launcher's binding decided.
    RanksOnNodes { ranks: usize, machine: String, is_by_binding: bool },
    /// Predictions and plans are about this host of a job.
    OneHost(String),
    /// Processes that the program started and that were not profiled. They may have done its work.
    ChildrenLeft(u64),
    /// The number of samples left out because they saw memory being initialised, and of all samples.
    Initialising { samples: u64, all: u64 },
    /// The number of records left out because they cannot be used.
    Unusable(u64),
    /// Objects overlap so much that at most so many first touches of each are used.
    Overlapping(usize),
    /// The number of objects that were sampled more or less often than size and lifetime predict.
    UnevenSampling(usize),
    /// The number of objects that are not listed.
    Unlisted(usize),
    /// A source file that was changed after the run.
    ChangedSource(PathBuf),
}

/// If more than one of so many samples saw memory being initialised, the report says so without being asked.
const MUCH_INITIALISING: u64 = 10;

/// How to judge threads that are all on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spreading {
    /// On a virtual machine with this many nodes.
    Virtual(usize),
    /// With another pinning.
    Pin,
}

impl Note {
    /// Whether it changes neither a verdict nor what the user would do.
    #[must_use]
    pub fn is_detail(&self) -> bool {
        match self {
            Self::Initialising { samples, all } => samples.saturating_mul(MUCH_INITIALISING) < *all,
            _ => matches!(self, Self::UnevenSampling(_) | Self::Unlisted(_)),
        }
    }
}

fn was(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded(text) => f.write_str(text),
            Self::Unrecorded { unrecorded, cause } => {
                let (part, bytes) = (unrecorded.part * 100.0, format_bytes(unrecorded.bytes as u64));
                write!(f, "{part:.0} % of the touched memory ({bytes}) belongs to no recorded object, and was not judged: ")?;
                match cause {
                    UnrecordedCause::LargeMinSize(size) => write!(
                        f,
                        "single allocations below --min-size ({}), or stacks; profile it with --min-size 4K to see them",
                        format_bytes(*size)
                    ),
                    UnrecordedCause::MinSize(size) => {
                        write!(f, "allocations below --min-size ({}), or stacks; larger blocks would be seen", format_bytes(*size))
                    }
                    UnrecordedCause::NoAgent => write!(
                        f,
                        "without the agent, allocations are not seen; a dynamically linked program started by 'firsttouch profile' has it"
                    ),
                }
            }
            Self::Merged { name, arrays } => {
                write!(f, "{name} may hold {arrays} arrays, each used in plain blocks: a mapping does not show single allocations")
            }
            Self::Candidates(Candidates { named, count, bytes }) => {
                let more = count.saturating_sub(named.len());
                let others = if more > 0 { format!(" and {more} more") } else { String::new() };
                let (was, is) = if *count == 1 { ("was", "is") } else { ("were", "are") };
                write!(
                    f,
                    "{} ({}{others}; {}) {was} first touched by one thread and {is} used on other nodes too, but with too few samples for a \
                     verdict: candidates for serial-first-touch; profile a longer run",
                    counted(*count, "object"),
                    named.join(", "),
                    format_bytes(*bytes)
                )
            }
            Self::OneNode { machine } => {
                write!(f, "{machine} has one node: nothing can be remote; judge on a machine with several (--machine virtual:2)")
            }
            Self::UnknownPolicies { objects, policy } => write!(
                f,
                "The program sets the memory policy {policy}, which says nothing about nodes that this machine does not have: {} judged as if \
                 first touch placed {}",
                if *objects == 1 { "1 object is".to_owned() } else { format!("{objects} objects are") },
                if *objects == 1 { "it" } else { "them" }
            ),
            Self::PlanWithoutNodes => f.write_str(
                "'firsttouch run --plan' places nothing on a machine with one node, so the program is judged without the plan. To judge the plan, run \
                 it on a machine with several nodes; its file holds the predicted gain",
            ),
            Self::Contended(part) => write!(
                f,
                "The threads waited for a CPU {:.0} % of the time in which they could run, so short phases may be seen too seldom: profile on idle \
                 CPUs, with a thread for each",
                part * 100.0
            ),
            Self::KernelTime(KernelTime { part, call, reads }) => {
                let by = call.as_ref().map_or(String::new(), |call| format!(" (most of it called by {call})"));
                write!(
                    f,
                    "The threads spent {:.0} % of their CPU time in the kernel{by}: its accesses are not seen, so the verdict is about the rest. ",
                    100.0 * part
                )?;
                if *reads {
                    write!(
                        f,
                        "If they read files: a file's pages in the page cache lie on the node of the thread that read them first, and no plan \
                         moves them. It may help to drop the cache before the run (sync; echo 1 > /proc/sys/vm/drop_caches, as root) and let each \
                         thread be the first to read its part, or to start whatever reads the file first with numactl --interleave=all"
                    )
                } else {
                    write!(f, "What the kernel does there, no plan places")
                }
            }
            Self::CpuMask { cpus, count, machine } => write!(
                f,
                "The threads may run on {} {cpus} only (taskset, a cpuset or a binding): {machine} has no such CPUs, so they are placed there as \
                 if they could run on all of it. To place them otherwise: --pin",
                if *count == 1 { "CPU" } else { "CPUs" }
            ),
            Self::ThreadsOnOneNode { machine, remedy } => {
                write!(f, "All threads run on one node of {machine}: nothing can be remote; ")?;
                match remedy {
                    Spreading::Virtual(nodes) => write!(f, "judge on a virtual machine (--machine virtual:{nodes})"),
                    Spreading::Pin => write!(f, "judge with --pin spread"),
                }
            }
            Self::IdleThreads { idle, all, machine } => {
                write!(
                    f,
                    "{idle} of {all} threads did next to nothing and took no place on {machine} (to place every thread: --place-all-threads)"
                )
            }
            Self::NestedTeams(makers) => write!(
                f,
                "{makers} threads make others anew for each of their rounds (nested parallel regions): the remote share depends on where those run, \
                 which changes from run to run unless they are bound (OMP_PROC_BIND=spread,close OMP_PLACES=cores). Here they have places in the order \
                 in which they are first made"
            ),
            Self::TogetherOnNodes(processes) => write!(
                f,
                "The threads of each of the {processes} processes are on one node, as ranks are launched; to spread each process over all \
                 nodes: --place-all-threads"
            ),
            Self::RanksOnNodes { ranks, machine, is_by_binding: true } => write!(
                f,
                "The {ranks} ranks are on the nodes of {machine} that have the same part of the CPUs as those to which the launcher bound them; to place them \
                 otherwise: --ranks-per-node, --distribution"
            ),
            Self::RanksOnNodes { ranks, machine, .. } => write!(
                f,
                "The launcher bound the {ranks} ranks to no nodes of their own, so they are placed on {machine} as if it did, in order; on a real machine, bind them \
                 (mpirun --bind-to numa, srun --cpu-bind=ldoms). To place them otherwise here: --ranks-per-node, --distribution"
            ),
            Self::OneHost(host) => write!(
                f,
                "Predictions and plans are about {host}, the host whose ranks have most remote accesses: a job takes as long as its slowest rank"
            ),
            Self::ChildrenLeft(children) => {
                let processes = if *children == 1 { "process" } else { "processes" };
                let were = was(*children);
                write!(f, "The program started {children} {processes} that {were} not profiled; to profile them as well: --follow")
            }
            Self::Initialising { samples, all } => write!(
                f,
                "{samples} of {} saw memory being initialised: shares of accesses, and predicted times, are of what follows",
                counted(*all, "sample")
            ),
            Self::Unusable(records) => {
                let (shown, were) = (counted(*records, "record"), was(*records));
                write!(f, "{shown} {were} not usable (unknown thread, object or address, or no usable figure) and {were} left out")
            }
            Self::Overlapping(most) => write!(
                f,
                "the recorded objects have the same addresses many times over; of the first touches of each, {most} at most are used, and stand for all of them"
            ),
            Self::UnevenSampling(objects) => write!(
                f,
                "{} {} sampled more or less often than size and lifetime predict; access shares there rest on the samples alone",
                counted(*objects as u64, "object"),
                was(*objects as u64)
            ),
            Self::Unlisted(objects) => {
                let are = if *objects == 1 { "is" } else { "are" };
                write!(f, "{} on which no access was seen {are} not listed", counted(*objects as u64, "object"))
            }
            Self::ChangedSource(file) => {
                write!(f, "{} was changed after the run: its lines are not shown, and names taken from them are missing", file.display())
            }
        }
    }
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self::Recorded(text)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Self {
        Self::Recorded(text.to_owned())
    }
}

impl From<Note> for String {
    fn from(note: Note) -> Self {
        note.to_string()
    }
}

/// The input of the notes.
pub struct NoteContext<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub threads: &'a Threads,
    pub uses: &'a Evidence,
    /// First touches that could not be used.
    pub refused_touches: u64,
    /// The first touches that are used of an object at most, if not all are.
    pub most_touches: Option<usize>,
    /// The number of objects that are not listed.
    pub unlisted: usize,
    pub unrecorded: Option<Unrecorded>,
    pub candidates: Option<Candidates>,
    /// Judged mappings that seem to hold several arrays: name, number.
    pub merged: Vec<(String, u64)>,
}

/// All notes; those of the profile come first.
#[must_use]
pub fn notes(context: NoteContext<'_>) -> Vec<Note> {
    let remote = match context.target.nodes {
        0 | 1 => Some(Note::OneNode { machine: context.target.name.clone() }),
        _ => nothing_remote(&context),
    };
    let NoteContext { profile, uses, .. } = context;
    let mut notes: Vec<Note> = profile.meta.notes.iter().cloned().map(Note::Recorded).collect();
    notes.extend(context.unrecorded.map(|unrecorded| Note::Unrecorded { unrecorded, cause: Unrecorded::cause(profile) }));
    notes.extend(context.merged.into_iter().map(|(name, arrays)| Note::Merged { name, arrays }));
    notes.extend(context.candidates.map(Note::Candidates));
    notes.extend(remote);
    notes.extend(contended(profile));
    notes.extend(kernel_time(profile).map(Note::KernelTime));
    notes.extend(of_places(context.threads, context.target));
    notes.extend(unknown_policies(profile, context.target));
    notes.extend(plan_without_nodes(profile, context.target));
    notes.extend(cpu_mask(profile, context.threads, context.target));
    let unusable = uses.refused.saturating_add(context.refused_touches);
    let uneven = uses.mismatched();
    let samples = uses.initialising;
    notes.extend((samples > 0).then(|| Note::Initialising { samples, all: samples.saturating_add(uses.counted_samples()) }));
    notes.extend((unusable > 0).then_some(Note::Unusable(unusable)));
    notes.extend(context.most_touches.map(Note::Overlapping));
    notes.extend((uneven > 0).then_some(Note::UnevenSampling(uneven)));
    notes.extend((context.unlisted > 0).then_some(Note::Unlisted(context.unlisted)));
    notes
}

/// Whether the threads waited for a CPU so much that samples at ticks are no fair sample of their time. Those of processes with one thread too.
fn contended(profile: &Profile) -> Option<Note> {
    unfair(profile).map(Note::Contended)
}

/// Which threads took no place on a virtual machine, and which processes stay together.
fn of_places(threads: &Threads, target: &Target) -> Vec<Note> {
    let idle = threads.list.iter().filter(|thread| thread.idle).count();
    if !target.virtual_machine || target.nodes < 2 {
        return Vec::new();
    }
    let took_none = (idle > 0).then(|| Note::IdleThreads { idle, all: threads.list.len(), machine: target.name.clone() });
    let ranks = threads.seats.count();
    let of_ranks = || Note::RanksOnNodes { ranks, machine: target.name.clone(), is_by_binding: threads.seats.is_by_binding };
    let is_given = target.ranks.is_given();
    let together = match threads.together {
        _ if ranks > 1 => (!is_given).then(of_ranks),
        processes => (processes > 1).then_some(Note::TogetherOnNodes(processes)),
    };
    let nested = (!threads.makers.is_empty()).then_some(Note::NestedTeams(threads.makers.len()));
    took_none.into_iter().chain(nested).chain(together).collect()
}

/// Policies that cannot be modelled on a virtual machine.
fn unknown_policies(profile: &Profile, target: &Target) -> Option<Note> {
    let mut policies = profile.policies.values().filter(|policy| !policy.is_first_touch() && !policy.is_interleaved());
    let first = policies.next().filter(|_| target.virtual_machine && target.nodes > 1)?;
    Some(Note::UnknownPolicies { objects: 1 + policies.count(), policy: first.policy.clone() })
}

/// A plan that has no effect where it was recorded.
fn plan_without_nodes(profile: &Profile, target: &Target) -> Option<Note> {
    let is_without_effect = target.virtual_machine && target.nodes > 1 && profile.machine.node_cpus.len() < 2;
    (is_without_effect && runs_a_plan(&profile.meta.command)).then_some(Note::PlanWithoutNodes)
}

/// The CPUs that all threads are confined to, if that is a part of the recorded machine. Threads that are bound to a CPU each are placed in the
/// same order on a virtual machine.
fn cpu_mask(profile: &Profile, threads: &Threads, target: &Target) -> Option<Note> {
    if !target.virtual_machine || target.nodes < 2 || threads.alone() || threads.seats.count() > 1 {
        return None;
    }
    let busy = |id: &i64| threads.index(*id).is_some_and(|index| !threads.list[index].idle);
    let mut masks = profile.threads.iter().filter(|row| busy(&row.id)).map(|row| row.allowed_cpus.as_deref());
    let mask = masks.next()??;
    let allowed = cpu_list::parse(mask)?;
    let mut machine: Vec<u32> = profile.machine.node_cpus.values().flatten().copied().collect();
    machine.sort_unstable();
    let is_part = !machine.is_empty() && machine.iter().any(|cpu| !allowed.contains(cpu));
    let same = masks.all(|other| other == Some(mask));
    (is_part && same).then(|| Note::CpuMask { cpus: mask.to_owned(), count: allowed.len(), machine: target.name.clone() })
}

/// Why the threads cannot have remote memory on this target; `None` if they can.
fn nothing_remote(context: &NoteContext<'_>) -> Option<Note> {
    let NoteContext { threads, target, .. } = context;
    let node = threads.list.first()?.node;
    if threads.alone() {
        // The report's headline already says that there is nothing to find.
        let children = context.profile.meta.children_left;
        return (children > 0).then_some(Note::ChildrenLeft(children));
    }
    if threads.list.iter().any(|t| t.node != node) {
        return None;
    }
    let remedy = match (target.virtual_machine, &target.pin) {
        (false, _) => Spreading::Virtual(target.nodes),
        (true, Pin::Spread) => return None,
        (true, _) => Spreading::Pin,
    };
    Some(Note::ThreadsOnOneNode { machine: target.name.clone(), remedy })
}
