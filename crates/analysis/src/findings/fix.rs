//! The fix of a finding: what to do in words, and changes of the source where they are certain to keep what the program computes. A change uses
//! the program's own expressions and statements only.

mod beside;
mod by_loop;
mod constructed;
mod container_fill;
mod containers;
mod copies;
mod edit;
mod fortran_arrays;
mod goroutines;
mod handed_over;
mod jvm;
mod library;
mod member_list;
mod mismatch;
mod numpy;
mod parallel_loop;
mod pretouch;
mod recycled;
mod replace;
mod runtime;
mod serial;
mod small_blocks;
mod team;

pub(super) use by_loop::ByLoop;
pub(crate) use edit::{Fix, edits_text};
pub(crate) use library::Users;
pub(crate) use mismatch::misplaced_at;

use self::runtime::ThreadTeam;
use super::real_nodes::is_better_by_first_touch;
use super::rules::is_of_first_touch;
use super::{Case, Context};
use crate::CodeLocation;
use crate::names::Language;
use crate::source_code::describe;
use firsttouch_model::counted;
use firsttouch_model::finding::{FindingKind, FixKind};
use small_blocks::small_blocks;

const INTERLEAVE: &str = "without touching the source, spread its pages over the nodes: numactl --interleave=all CMD (which spreads \
                          all other memory too, the well-placed as well; on N nodes, all but 1/N of its accesses are remote then, but each \
                          node's memory serves a part of them)";
const SPREAD: &str = "its pages are on all nodes already, so no placement of them makes more of its accesses local";
const KEEP_PARTS: &str = ": what would is a division of the work by which each thread keeps its parts";

/// Pages on all nodes in turn; where they are, that nothing comes of it.
fn interleave(case: &Case<'_>) -> &'static str {
    if case.subject.is_spread { SPREAD } else { INTERLEAVE }
}

impl Context<'_> {
    pub(super) fn fix(&self, kind: FindingKind, case: &Case<'_>) -> Fix {
        let kind = self.left_without_policy(kind, case);
        let by_loop = || ByLoop::of(self, case).filter(|_| kind == FindingKind::NoStablePartition)?.fix(self, case);
        let fix = by_loop().unwrap_or_else(|| Fix { library: library::placed(self, kind, case), ..self.fix_of_one(kind, case) });
        let fix = goroutines::goroutines(kind, case, self.without_policy(kind, case, fix));
        match case.group.parts() {
            0 => fix,
            // Each of them has a place of its own in the source.
            parts => {
                let others = counted(parts as u64 - 1, "object");
                let words =
                    format!("for {}, and likewise for the other {}: {}", case.view.name, others.trim_start_matches("1 "), fix.words);
                fix.said(words)
            }
        }
    }

    /// What the fix does: of several that the words offer, the one that they offer first.
    pub(super) fn fix_kind(&self, kind: FindingKind, case: &Case<'_>) -> FixKind {
        match self.kind_of_fix(kind, case) {
            FixKind::Interleave if !case.subject.is_spread || jvm::jvm(self, kind, case).is_some() => FixKind::Interleave,
            FixKind::Interleave if kind == FindingKind::NoStablePartition => FixKind::FixedParts,
            FixKind::Interleave => FixKind::NotMemory,
            kind => kind,
        }
    }

    fn kind_of_fix(&self, kind: FindingKind, case: &Case<'_>) -> FixKind {
        let is_dealt_out = case.subject.partition.dealt_out;
        match self.left_without_policy(kind, case) {
            kind if numpy::is_out_of_reach(self, kind, case) => FixKind::Interleave,
            FindingKind::SerialFirstTouch | FindingKind::MismatchedPartition | FindingKind::IoFirstTouch => FixKind::DivideFirstTouch,
            FindingKind::HugePageSharing | FindingKind::RecycledMemory if case.group.pool.is_some() => FixKind::DivideFirstTouch,
            FindingKind::HugePageSharing => FixKind::AlignParts,
            FindingKind::RecycledMemory => FixKind::FreshMemory,
            FindingKind::PolicyMismatch => FixKind::NoPolicy,
            FindingKind::SlowTier => FixKind::FastNodes,
            FindingKind::NoStablePartition | FindingKind::SharedRead if case.group.processes() > 1 => FixKind::Interleave,
            FindingKind::SharedRead if copies::is_written(case) => FixKind::Interleave,
            FindingKind::SharedRead => FixKind::CopyPerNode,
            FindingKind::NoStablePartition if case.subject.partition.fine.is_some() => FixKind::FixedParts,
            FindingKind::NoStablePartition if is_dealt_out && (case.group.pool.is_some() || !self.same_part(case, "").is_empty()) => {
                FixKind::FixedParts
            }
            FindingKind::NoStablePartition if ByLoop::of(self, case).is_some_and(|one| one.is_better(case)) => FixKind::DivideFirstTouch,
            FindingKind::NoStablePartition => FixKind::Interleave,
            FindingKind::SharedSegment => FixKind::DivideFirstTouch,
            FindingKind::NodeFull
            | FindingKind::UnpinnedThreads
            | FindingKind::BalancingChurn
            | FindingKind::RankStraddlesNodes
            | FindingKind::RankMemoryElsewhere
            | FindingKind::RanksUnbound => FixKind::NotMemory,
        }
    }

    /// What remains to be repaired once a policy is taken away: the finding by first touch, unless first touch would place the object well.
    fn left_without_policy(&self, kind: FindingKind, case: &Case<'_>) -> FindingKind {
        let remains = kind == FindingKind::PolicyMismatch && !is_better_by_first_touch(case.subject);
        let touch = remains.then(|| self.kind_by_first_touch(case)).flatten();
        touch.filter(|kind| is_of_first_touch(*kind)).unwrap_or(kind)
    }

    /// A policy places the pages whoever touches them first, so a fix by first touch has no effect under it.
    fn without_policy(&self, kind: FindingKind, case: &Case<'_>, fix: Fix) -> Fix {
        match self.policy(case).filter(|_| is_of_first_touch(kind)) {
            Some(policy) => {
                let words = format!(
                    "take the policy {policy} away (start the program without numactl, or leave out set_mempolicy or mbind): it places the pages, \
                     whoever touches them first; and {}",
                    fix.words
                );
                fix.said(words)
            }
            None => fix,
        }
    }

    fn fix_of_one(&self, kind: FindingKind, case: &Case<'_>) -> Fix {
        let language = self.language(case);
        if let Some(text) = jvm::jvm(self, kind, case) {
            return Fix::words(text);
        }
        if let Some(text) = small_blocks(self, kind, case) {
            return Fix::words(text);
        }
        if case.group.processes() > 1 && matches!(kind, FindingKind::NoStablePartition | FindingKind::SharedRead) {
            return Fix::words(self.shared_by_processes(kind, case));
        }
        match kind {
            FindingKind::SerialFirstTouch => serial::serial(self, case, language),
            FindingKind::IoFirstTouch => self.io(case),
            _ => Fix { otherwise: self.otherwise(kind, case), ..Fix::words(self.in_words(kind, case)) },
        }
    }

    /// Pages on all nodes in turn, where a change of the source is better: what that costs or gains depends on the machine.
    fn otherwise(&self, kind: FindingKind, case: &Case<'_>) -> Option<String> {
        let is_other = matches!(self.fix_kind(kind, case), FixKind::FixedParts | FixKind::CopyPerNode);
        (is_other && !case.subject.is_spread).then(|| INTERLEAVE.to_owned())
    }

    /// What processes share by a mapping that they write, a copy cannot replace. What they only read, or inherited by fork, it
    /// can.
    fn shared_by_processes(&self, kind: FindingKind, case: &Case<'_>) -> String {
        let name = case.view.name.as_str();
        let is_mapped = case.group.members.iter().any(|&member| self.profile.shared_memory.contains_key(&self.profile.objects[member].id));
        let makes = if matches!(case.object.call.as_deref(), Some("mmap" | "mremap" | "shmat") | None) { "maps" } else { "allocates" };
        if case.subject.is_spread {
            let copy = format!("let a process of each node copy {name}, for the processes of its node to read");
            return if kind == FindingKind::SharedRead { format!("{SPREAD}; {copy}") } else { format!("{SPREAD}{KEEP_PARTS}") };
        }
        let source = format!("in the source, mbind() with MPOL_INTERLEAVE behind the call that {makes} {name}, before anybody touches it");
        match kind {
            FindingKind::SharedRead if is_mapped => {
                format!("{INTERLEAVE}; {source}; or let a process of each node copy {name}, for the processes of its node to read")
            }
            FindingKind::SharedRead => format!(
                "{INTERLEAVE}; {source}; or, as the processes inherited {name} by fork, let each that reads much of it copy it to memory of its own"
            ),
            _ if is_mapped => format!("the processes share {name}, so no copy can replace it: {INTERLEAVE}; {source}"),
            _ => format!("the processes inherited {name} by fork: {INTERLEAVE}; {source}"),
        }
    }

    fn in_words(&self, kind: FindingKind, case: &Case<'_>) -> String {
        let name = case.view.name.as_str();
        let used = at(case.view.used_at.first());
        match kind {
            FindingKind::MismatchedPartition => match self.team(Some(case)) {
                ThreadTeam::OpenMp => format!("{}{}", mismatch::same_division(self, case), serial::beside(self, case)),
                ThreadTeam::Own if self.followers(case).is_some() => format!(
                    "let threads that are made as those that use {name} initialise it once, before the first round{used}: same bounds, same number of \
                     threads, in the same order"
                ),
                ThreadTeam::Own if self.language(case) == Some(Language::Python) => numpy::same_thread(name, &used),
                ThreadTeam::Own if handed_over::is_handed_over(self.profile, case) => format!(
                    "the threads that fill {name} do not use it, allocation after allocation: keep the threads that hand it to each other on one \
                     node (firsttouch run --pin nodes:LIST -- CMD, the node of each thread in the order of their creation), or let the threads that \
                     use it{used} allocate and touch its memory once, and fill that again each time. The shares of this finding leave out the accesses that fill it"
                ),
                ThreadTeam::Own => mismatch::divide_part(self, case, &used).unwrap_or_else(|| {
                    format!("let each thread initialise the part of {name} that it uses{used}: same bounds, same number of threads")
                }),
            },
            FindingKind::NoStablePartition if case.subject.partition.fine.is_some() => self.side_by_side(case),
            FindingKind::NoStablePartition if case.subject.partition.stays_with_kinds() && !case.subject.partition.by_loops => format!(
                "threads with different code use {name}. If a thread always passes it on to the same threads, keep it and them on one node (firsttouch \
                 run --pin nodes:LIST -- CMD, the node of each thread in the order of their creation). If not, {}",
                interleave(case)
            ),
            FindingKind::NoStablePartition if !case.subject.partition.dealt_out && copies::is_written(case) => {
                let first = self.same_part(case, ". As its parts change hands, it may be better to ");
                let keep = if first.is_empty() && case.subject.is_spread { KEEP_PARTS } else { "" };
                format!("{}{keep}{first}", interleave(case))
            }
            FindingKind::NoStablePartition if !case.subject.partition.dealt_out => format!(
                "{}. If each thread reads all of {name}, one copy a node, made by a thread of that node, is better still{}",
                interleave(case),
                self.same_part(case, "; as its parts change hands, it may be better to ")
            ),
            FindingKind::NoStablePartition => {
                let first = self.same_part(case, "");
                let keep = if case.subject.is_spread { KEEP_PARTS } else { "" };
                if first.is_empty() { format!("{}{keep}", interleave(case)) } else { first }
            }
            FindingKind::SharedRead if case.subject.partition.assumed => format!(
                "if each thread reads all of {name}: {}; if each has parts of its own, smaller than a page (the samples do not tell): let the parts of a \
                 thread lie side by side, and let that thread initialise them",
                copies::one_a_node(case)
            ),
            FindingKind::SharedRead => copies::one_a_node(case),
            FindingKind::HugePageSharing => self.huge(case),
            FindingKind::SlowTier => format!(
                "keep {name} on nodes with CPUs, if there is room: numactl --membind={cpus} CMD, or mbind() for {name} alone; or let the kernel move \
                 what is hot there: echo 2 > /proc/sys/kernel/numa_balancing (root; memory tiering)",
                cpus = self.cpu_nodes()
            ),
            FindingKind::PolicyMismatch => format!(
                "take the policy away ({}) and let the threads that use {name}{used} touch it first",
                "start the program without numactl or its options --interleave, --membind, --preferred; in the source, without set_mempolicy or mbind",
            ),
            FindingKind::NodeFull => format!(
                "make room where {name} is used: end or move what fills that node (firsttouch stat, numastat -m), drop the page cache before the run \
                 (sync; echo 1 > /proc/sys/vm/drop_caches, as root), or spread the threads so that each node has room for its part"
            ),
            FindingKind::UnpinnedThreads => self.pin_advice(Some(case)),
            FindingKind::BalancingChurn => self.churn_advice(),
            FindingKind::RecycledMemory => recycled::recycled(self, case),
            // Their fixes have changes of the source too.
            FindingKind::SerialFirstTouch | FindingKind::IoFirstTouch => String::new(),
            // The fix of a shared segment is that of its defect; those of ranks are in job/findings.rs.
            FindingKind::SharedSegment | FindingKind::RankStraddlesNodes | FindingKind::RankMemoryElsewhere | FindingKind::RanksUnbound => {
                String::new()
            }
        }
    }

    /// For parts that are smaller than a page: they are to lie side by side by thread.
    fn side_by_side(&self, case: &Case<'_>) -> String {
        let name = case.view.name.as_str();
        let used = at(case.view.used_at.first());
        let directives = team::directives_at_use(self, case);
        let chunk = directives.iter().rev().find_map(|one| one.clause("schedule")).and_then(|clause| clause.split_once(','));
        let how = match chunk {
            Some((kind, chunk)) => format!("schedule({0}) instead of schedule({0},{chunk}){used}", kind.trim()),
            None => format!("one stretch of {name} a thread, or an array of its own for each{used}"),
        };
        format!(
            "let the parts of a thread lie side by side, so that each page has one user ({how}), and let that thread initialise them; where they must \
             alternate, no first touch helps"
        )
    }

    /// What gives each thread the same part every time, if the source shows why it changes; empty if it does not: where threads choose elements at
    /// random, no schedule helps.
    fn same_part(&self, case: &Case<'_>, before: &str) -> String {
        let Some(((file, line), directives)) = team::loop_at_use(self, case) else { return String::new() };
        let schedule = directives.iter().rev().find_map(|one| one.clause("schedule")).unwrap_or_default();
        let name = case.view.name.as_str();
        let place = CodeLocation { file: Some(file.to_owned()), line: Some(line), ..CodeLocation::default() };
        let used = at(Some(&place));
        let changes = ["dynamic", "guided", "auto", "runtime"].iter().find(|kind| schedule.trim_start().starts_with(**kind));
        let tasks = directives.iter().any(|one| one.has("task") || one.has("taskloop"));
        match changes {
            Some(kind) => format!(
                "{before}give each thread the same part every time (schedule(static) instead of schedule({kind}){used}), and initialise {name} in that loop"
            ),
            None if tasks => format!(
                "{before}any thread may execute a task, so if the work allows, give each thread the same part every time: a loop with schedule(static) in \
                 place of the tasks{used}, and {name} initialised in a loop with the same bounds and schedule"
            ),
            None => String::new(),
        }
    }

    fn io(&self, case: &Case<'_>) -> Fix {
        let name = case.view.name.as_str();
        let reads = at(case.view.first_touch.at.first());
        // Python code that reads a file (pickle.load, numpy.fromfile) gets the memory when it is full.
        let is_one_call = case.view.allocated_at.as_ref().zip(case.view.first_touch.at.first()).is_none_or(|(a, b)| a.is_same_line(b));
        if self.language(case) == Some(Language::Python) && is_one_call {
            return Fix::words(format!(
                "{name} is allocated and filled in one call{reads}, so no thread can touch its part before. If it is an array, read it under another name \
                 (made), allocate {name} = numpy.empty_like(made), and let each thread copy its own part ({name}[part] = made[part]) before it uses it"
            ));
        }
        if self.team(Some(case)) == ThreadTeam::Own {
            return Fix::words(format!(
                "let each thread touch its own part of {name} (write one byte a page) before it is read into{reads}"
            ));
        }
        match pretouch::pretouch(self, case) {
            Some(edits) => serial::first_touched(self, case, edits),
            None => Fix::words(format!(
                "let all threads touch {name} before it is read into{reads}, each the part that it uses (write one byte a page)"
            )),
        }
    }

    fn huge(&self, case: &Case<'_>) -> String {
        let name = case.view.name.as_str();
        let size = firsttouch_model::format_bytes(self.profile.machine.huge_page_bytes.max(case.subject.touch.page_bytes));
        format!(
            "make each thread's part of {name} a multiple of {size} and align it so (larger chunks, padding); or use base pages for it \
             (madvise with MADV_NOHUGEPAGE over its whole pages, before the first touch)"
        )
    }

    /// Advice on how to pin the threads that use an object, or all of them.
    pub(super) fn pin_advice(&self, case: Option<&Case<'_>>) -> String {
        match self.team(case) {
            ThreadTeam::OpenMp => {
                "pin the threads: OMP_PROC_BIND=spread OMP_PLACES=cores CMD (close instead of spread where fewer threads than one node \
                             has cores share data)"
                    .to_owned()
            }
            ThreadTeam::Own => {
                "pin the threads: let each call pthread_setaffinity_np (or sched_setaffinity) before it touches its memory, or confine the \
                          program to one node where that is enough: numactl --cpunodebind=0 --localalloc CMD"
                    .to_owned()
            }
        }
    }

    /// Nodes with CPUs that are not slow, in numactl's list format.
    fn cpu_nodes(&self) -> String {
        let machine = &self.profile.machine;
        let nodes = machine.node_cpus.iter().filter(|(node, cpus)| !cpus.is_empty() && !self.target.slow_nodes.contains(node));
        nodes.map(|(node, _)| node.to_string()).collect::<Vec<_>>().join(",")
    }

    fn language(&self, case: &Case<'_>) -> Option<Language> {
        let touch = case.view.first_touch.at.first().and_then(|p| p.file.as_deref()).and_then(Language::of);
        touch.or_else(|| case.view.allocated_at.as_ref().and_then(|p| p.file.as_deref()).and_then(Language::of))
    }
}

/// ` (pt.c:29)`; empty if the line is unknown.
fn at(place: Option<&CodeLocation>) -> String {
    place.filter(|place| place.line.is_some()).map_or_else(String::new, |place| format!(" ({})", describe(place)))
}
