//! The message of a finding: which threads touched the object, which use it, and how much of that is remote.

use super::fix::ByLoop;
use super::real_nodes::is_better_by_first_touch;
use super::{Case, Context};
use crate::evidence::SourceRef;
use crate::groups::Group;
use crate::judge::{Subject, acting};
use crate::names::made_by;
use crate::pool::Pool;
use crate::source_code::describe;
use crate::{CodeLocation, ObjectView, PartitionKind};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::format_bytes;
use firsttouch_model::rows::Object;

/// The message mentions moved pages if their fraction exceeds this at the lower limit.
const MOVED_BAR: f64 = 0.01;

/// Of an object: its name, its first toucher, its users, and how much is remote.
type Words<'w> = (&'w str, &'w str, &'w str, &'w str);

/// Of objects that are remote wherever they are.
fn of_no_consequence(case: &Case<'_>) -> &'static str {
    if case.view.first_touch.by_thread.iter().any(|share| *share > 0.0) {
        "Who touched it first makes no difference"
    } else {
        "Who touched it first was not seen, and makes no difference"
    }
}

impl Context<'_> {
    /// One or two sentences, with figures and intervals.
    pub(super) fn message(&self, kind: FindingKind, case: &Case<'_>) -> String {
        let name = match case.together {
            Some(names) => together(names, case),
            None => self.object_name(case),
        };
        let touched = self.touched(case);
        let used = self.used(case);
        let figures = self.figures(case);
        let real = self.real_message(kind, case, (&name, &touched, &used, &figures));
        let said = real.unwrap_or_else(|| self.plain_message(kind, case, (&name, &touched, &used, &figures)));
        // The name may be a phrase, and stand at the beginning.
        let phrase = case.together.and_then(|_| said.strip_prefix("each of "));
        let said = phrase.map_or(said.clone(), |rest| format!("Each of {rest}"));
        format!("{said}{}{}", self.policy_words(kind, case), moved_words(case))
    }

    /// The message of findings that occur only on a machine with real nodes; `None` for other findings.
    fn real_message(&self, kind: FindingKind, case: &Case<'_>, (name, touched, used, figures): Words<'_>) -> Option<String> {
        let subject = case.subject;
        let first = subject.by_first_touch.map_or(0.0, |e| e.value);
        Some(match kind {
            FindingKind::SlowTier => format!(
                "{name} lies on memory without CPUs or of a slower kind (node {}): {} of its accesses go there. It is used by {used}: {figures}.",
                self.target.slow_nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
                subject.slow.map_or_else(|| percent(0.0), ranged),
            ),
            FindingKind::PolicyMismatch if !is_better_by_first_touch(subject) => format!(
                "{name} has the memory policy {}, which spreads its pages over the nodes, whoever touches them: it is used by {used}, and {figures}. \
                 By first touch alone it would not be better: it was first touched by {touched}.",
                self.policy(case).unwrap_or_default(),
            ),
            FindingKind::PolicyMismatch => format!(
                "{name} has the memory policy {}, which is worse here than first touch: it is used by {used}, and {figures}; by first touch it would be {}.",
                self.policy(case).unwrap_or_default(),
                percent(first),
            ),
            FindingKind::NodeFull => format!(
                "{name} was touched by the right threads, but {} of its pages went to another node than their toucher ran on{}. It is used by {used}: \
                 {figures}; with room for it, it would be {}.",
                subject.touch.displaced.map_or_else(|| percent(0.0), ranged),
                self.full_nodes(),
                percent(first),
            ),
            FindingKind::UnpinnedThreads => format!(
                "{name} was first touched by the threads that use it ({}), but they ran on other nodes then: threads have moved since{}. It \
                 is used by {used}: {figures}.",
                touch_place(case),
                if moved_words(case).is_empty() { ", memory has not" } else { "" },
            ),
            _ => return None,
        })
    }

    /// `: node 0 had no room for 12,345 pages (numa_foreign, whole system)`; empty without such nodes.
    fn full_nodes(&self) -> String {
        let foreign = self.profile.machine.node_cpus.keys().filter_map(|&n| Some((n, self.profile.grown_on("numa_foreign", n)?)));
        let full: Vec<String> = foreign
            .filter(|&(_, pages)| pages > 0)
            .map(|(n, pages)| format!("node {n} had no room for {} pages", thousands(pages)))
            .collect();
        if full.is_empty() { String::new() } else { format!(": {} (numa_foreign, whole system)", full.join(", ")) }
    }

    /// ` Its memory policy is interleave:0-1, ...`; empty without a policy, or if the finding is about the policy.
    fn policy_words(&self, kind: FindingKind, case: &Case<'_>) -> String {
        match self.policy(case).filter(|_| kind != FindingKind::PolicyMismatch) {
            Some(policy) => format!(" Its memory policy is {policy}, which places it before any first touch does."),
            None => String::new(),
        }
    }

    fn plain_message(&self, kind: FindingKind, case: &Case<'_>, (name, touched, used, figures): Words<'_>) -> String {
        match kind {
            FindingKind::SerialFirstTouch => {
                let before = before_the_loop(case).map_or_else(String::new, |text| format!(" {text}."));
                match case.subject.touch.serial_rows {
                    Some(rows) => format!(
                        "Of {name}, {rows} were first touched by {touched}, the others by several threads; all are used by {used}: {figures}.{before}"
                    ),
                    None => format!("{name} was first touched by {touched} and is used by {used}: {figures}.{before}"),
                }
            }
            FindingKind::MismatchedPartition if case.view.first_touch.at.iter().any(|place| place.alone.is_some()) => {
                format!("{name} was first touched {} and is used by {used}: {figures}.", by_places(&case.view.first_touch.at))
            }
            FindingKind::MismatchedPartition => format!(
                "{name} was first touched in parallel ({}), but in a different partition from its use, by {used}: {figures}.",
                touch_place(case)
            ),
            FindingKind::NoStablePartition => format!(
                "{name} is used by {used}: {}. {}; {figures}.",
                if case.subject.partition.fine.is_some() {
                    "each page holds parts of several threads, so no first touch is right for all of them".to_owned()
                } else if case.subject.partition.leans {
                    self.leaning(case)
                } else if case.subject.partition.changes {
                    "no thread owns a part of it, so no first touch is right".to_owned()
                } else {
                    "no owner of a part shows, so no first touch is known to be right".to_owned()
                },
                if case.subject.is_same_anywhere {
                    of_no_consequence(case).to_owned()
                } else {
                    format!("It was first touched by {touched}")
                },
            ),
            FindingKind::SharedRead if case.subject.is_same_anywhere => {
                format!("{name} is used by {used}. {}; {figures}.", of_no_consequence(case))
            }
            FindingKind::SharedRead => {
                format!("{name} is used by {used}; it was first touched by {touched}, so {figures}.")
            }
            FindingKind::IoFirstTouch => format!(
                "The kernel first touched {name} on behalf of {} (I/O into memory nobody had touched), and it is used by {used}: {figures}.",
                self.toucher(case)
            ),
            FindingKind::HugePageSharing if case.subject.is_same_anywhere => format!(
                "The pages of {name} are {} and hold the parts of several threads: a page is on one node only. {}. It is used by {used}: {figures}.",
                format_bytes(case.subject.touch.page_bytes),
                of_no_consequence(case)
            ),
            FindingKind::HugePageSharing => format!(
                "{name} is first touched by the threads that use it, but its pages are {} and hold the parts of several threads; the first thread to touch a page placed it. It is used by {used}: {figures}.",
                format_bytes(case.subject.touch.page_bytes)
            ),
            FindingKind::RecycledMemory => format!(
                "{name} lies in memory that was used before{}: {} of its pages keep the place their former owner gave them ({touched}). It is used by {used}: {figures}.",
                self.former_owner(case),
                percent(case.subject.touch.recycled)
            ),
            // The messages of these are in `real_message`, in program.rs and job/findings.rs; that of a shared segment is that of its defect.
            FindingKind::SlowTier
            | FindingKind::PolicyMismatch
            | FindingKind::NodeFull
            | FindingKind::UnpinnedThreads
            | FindingKind::BalancingChurn
            | FindingKind::SharedSegment
            | FindingKind::RankStraddlesNodes
            | FindingKind::RankMemoryElsewhere
            | FindingKind::RanksUnbound => String::new(),
        }
    }

    /// Of memory of which no thread has a part for itself, although some parts are used more by some threads.
    fn leaning(&self, case: &Case<'_>) -> String {
        let some = "so first touch can make only some of its accesses local";
        match ByLoop::of(self, case) {
            Some(one) => {
                format!(
                    "the loop at {} gives each thread one block of it, the one at {} does not, {some}",
                    describe(one.place),
                    describe(one.other)
                )
            }
            None => format!("no thread has a part of it for itself, {some}"),
        }
    }

    /// `49 % of its accesses would be remote on virtual:2 [47, 52], which is 31 % of the accesses to all objects (812 samples)`.
    fn figures(&self, case: &Case<'_>) -> String {
        let remote = case.subject.remote;
        let (value, low, high) = remote.map_or((0.0, 0.0, 0.0), |r| (r.value, r.low, r.high));
        let verb = if self.target.virtual_machine { "would be" } else { "are" };
        format!(
            "{} of its accesses {verb} remote on {} [{}, {}], which is {} of the accesses to all objects ({})",
            percent(value),
            self.target.name,
            digits(low),
            digits(high),
            percent(case.subject.remote_share()),
            samples(case.subject.source, remote.map_or(0, |r| r.samples))
        )
    }

    /// `thread 0 alone (loop, dgemv.c:46)`.
    fn touched(&self, case: &Case<'_>) -> String {
        let touch = &case.subject.touch;
        let kernel = if touch.by_kernel >= 0.5 { "the kernel for " } else { "" };
        let kernel = if touch.of_misplaced_part && touch.serial_rows.is_none() {
            format!("{kernel}(its misplaced part) ")
        } else {
            kernel.to_owned()
        };
        let who = match touch.main_worker() {
            Some((_, share)) if share >= super::SERIAL => format!("{kernel}{} alone", self.toucher(case)),
            _ => format!("{kernel}{}", touching_threads(&acting(&touch.by_worker), &case.subject.users(self.threads))),
        };
        format!("{who} ({})", touch_place(case))
    }

    fn toucher(&self, case: &Case<'_>) -> String {
        case.subject.touch.main_thread().map_or_else(|| "an unknown thread".to_owned(), |t| format!("thread {t}"))
    }

    fn used(&self, case: &Case<'_>) -> String {
        let users = case.subject.users(self.threads).len();
        match case.subject.partition.kind {
            PartitionKind::Single => format!("thread {}", main_user(case.subject)),
            PartitionKind::Block => format!("{users} threads, each its own block"),
            PartitionKind::BlockCyclic => format!("{users} threads, in chunks dealt out to them in turn"),
            // Of one thread at a time, samples do not tell whether it uses every byte.
            PartitionKind::Shared => format!("{users} threads, each all over it"),
            PartitionKind::Irregular if case.subject.partition.fine.is_some() => {
                let period = case.subject.partition.fine.unwrap_or_default();
                format!(
                    "{users} threads in turn, each with parts that are smaller than a page (every {} bytes, the same thread again)",
                    thousands(period)
                )
            }
            PartitionKind::Irregular if case.subject.partition.leans => {
                format!("{users} threads, each part by several of them, some parts more by some threads")
            }
            PartitionKind::Irregular if case.subject.partition.dealt_out && case.subject.partition.changes => {
                format!("{users} threads, each part by changing ones")
            }
            PartitionKind::Irregular if case.subject.partition.dealt_out => {
                format!("{users} threads, several of them in each part as far as samples show (parts may be too small for that)")
            }
            PartitionKind::Irregular => {
                format!("{users} threads (each part by changing ones, or all of it by each: the samples do not tell)")
            }
            PartitionKind::Unknown => format!("{users} threads"),
        }
    }

    /// `mask (15.3 MiB, from xmalloc at cls.cpp:29) of process 812 (cls)`, with as many details as are needed to identify it.
    fn object_name(&self, case: &Case<'_>) -> String {
        let size = format_bytes(case.view.total_bytes);
        let (rows, all) = (case.group.rows, case.group.members.len());
        let pool = case.group.pool.as_ref();
        let blocks = |pool: &Pool| format!("about {} blocks of {}, {size}", thousands(pool.blocks), format_bytes(pool.block_bytes));
        let size = match all {
            _ if pool.is_some() => pool.map_or_else(String::new, blocks),
            _ if case.group.growth => format!("{} steps up to {size}", thousands(all as u64)),
            _ if rows > 1 => format!("{} allocations, {size}", thousands(rows as u64)),
            all if all > 1 => format!("{size}, {} times in turn", thousands(all as u64)),
            _ => size,
        };
        let by = made_by(case.object, self.places).map_or_else(String::new, |by| format!(", from {by}"));
        let processes = match case.group.processes() {
            1 => self.process(case.object),
            several => format!(", shared by {several} processes"),
        };
        format!("{} ({size}{by}){processes}", case.view.name)
    }

    /// ` of process 812 (cls)`; empty if only one process has objects larger than a core's cache.
    fn process(&self, object: &Object) -> String {
        let large = |group: &&Group| group.extent() > self.target.private_cache_bytes;
        let mut others = self.groups.iter().filter(large).map(|group| &self.profile.objects[group.representative]);
        let process = self.profile.processes.iter().find(|process| process.id == object.process);
        let Some(process) = process.filter(|_| others.any(|other| other.process != object.process)) else { return String::new() };
        let command = process.exe.as_deref().and_then(|exe| exe.rsplit('/').next()).filter(|name| !name.is_empty());
        format!(" of process {}{}", process.pid, command.map_or_else(String::new, |name| format!(" ({name})")))
    }

    /// ` by b, since freed`: the owner of the address when it was touched.
    fn former_owner(&self, case: &Case<'_>) -> String {
        let Some((address, time)) = case.subject.touch.former else { return String::new() };
        let owner = self.groups.iter().position(|group| {
            group.members.iter().map(|&i| &self.profile.objects[i]).any(|o| {
                let there = o.process == case.object.process && address.checked_sub(o.address).is_some_and(|offset| offset < o.bytes);
                there && o.born_ns <= time && o.died_ns.is_some_and(|died| time < died)
            })
        });
        owner.map_or_else(String::new, |group| format!(" by {}, since freed", self.names[group].shown))
    }
}

/// `each of m_x, m_y, m_z and 8 more (11 objects, 23.4 MiB, judged together because each has few of the accesses)`.
fn together(names: &str, case: &Case<'_>) -> String {
    let size = format_bytes(case.view.total_bytes);
    format!("each of {names} ({} objects, {size}, judged together because each has few of the accesses)", case.group.parts())
}

/// What calloc or realloc did, if a loop was the first to write the memory they returned.
fn before_the_loop(case: &Case<'_>) -> Option<String> {
    let place = describe(loop_after_call(case.view)?);
    match case.view.first_touch.cause? {
        TouchCause::Calloc => Some(format!("calloc gave zero pages that nobody had touched; the code at {place} wrote them first")),
        _ => Some(format!(
            "realloc gave memory whose new part nobody had touched (and moved the old pages along, where they were); the code at {place} wrote it first"
        )),
    }
}

/// The first touch, if the program's own code made it after calloc or realloc returned.
pub(super) fn loop_after_call(view: &ObjectView) -> Option<&CodeLocation> {
    let place = view.first_touch.at.first().filter(|p| p.line.is_some())?;
    let call = view.call.as_deref().and_then(TouchCause::of_call);
    let after = call.is_some() && view.first_touch.cause == call;
    let within = view.allocated_at.as_ref().is_some_and(|call| (&call.file, call.line) == (&place.file, place.line));
    (after && !within).then_some(place)
}

/// `3 threads, one of which does not use it`
fn touching_threads(touching: &[usize], using: &[usize]) -> String {
    let idle = touching.iter().filter(|thread| !using.contains(thread)).count();
    let idle = match idle {
        0 => String::new(),
        1 => ", one of which does not use it".to_owned(),
        _ => format!(", {idle} of which do not use it"),
    };
    format!("{} threads{idle}", touching.len())
}

fn touch_place(case: &Case<'_>) -> String {
    let view = &case.view.first_touch;
    let place = view.at.first().map(describe);
    match (view.cause.filter(|cause| *cause != TouchCause::Unknown), place) {
        (Some(cause), Some(place)) => format!("{cause}, {place}"),
        (Some(cause), None) => cause.to_string(),
        (None, Some(place)) => place,
        (None, None) => "its place in the code is not known".to_owned(),
    }
}

/// `by thread 0 alone (a.c:23, a.c:24) and by several threads (a.c:22)`
fn by_places(at: &[CodeLocation]) -> String {
    let mut by_thread: Vec<(Option<usize>, Vec<String>)> = Vec::new();
    for place in at {
        match by_thread.iter_mut().find(|(thread, _)| *thread == place.alone) {
            Some((_, lines)) => lines.push(describe(place)),
            None => by_thread.push((place.alone, vec![describe(place)])),
        }
    }
    let words = |(thread, lines): &(Option<usize>, Vec<String>)| match thread {
        Some(thread) => format!("by thread {thread} alone ({})", lines.join(", ")),
        None => format!("by several threads ({})", lines.join(", ")),
    };
    by_thread.iter().map(words).collect::<Vec<_>>().join(" and ")
}

fn main_user(subject: &Subject) -> usize {
    let value = |share: &Option<firsttouch_model::Estimate>| share.map_or(0.0, |s| s.value);
    let best = subject.used_by.largest(|a, b| value(a).total_cmp(&value(b)));
    best.map_or(0, |(thread, _)| thread)
}

/// ` 43 % [35, 52] of its pages were moved to another node while it ran (of 192 queried again).`; empty below [`MOVED_BAR`].
fn moved_words(case: &Case<'_>) -> String {
    let moved = case.moves.part(case.moves.moved).filter(|e| e.low > MOVED_BAR);
    moved.map_or_else(String::new, |e| {
        format!(" {} of its pages were moved to another node while it ran (of {} queried again).", ranged(e), e.samples)
    })
}

/// `43 % [35, 52]`.
fn ranged(e: firsttouch_model::Estimate) -> String {
    format!("{} [{}, {}]", percent(e.value), digits(e.low), digits(e.high))
}

/// The text with its first letter in upper case.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", digits(fraction))
}

/// A percentage in the format of all reports: one decimal below ten, else none.
pub(crate) fn digits(fraction: f64) -> String {
    let value = fraction * 100.0;
    if (0.05..9.95).contains(&value) { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// `1,904 samples`, with the unit of the source.
fn samples(source: SourceRef, count: u64) -> String {
    format!("{} {}", thousands(count), source.unit(count))
}

/// `1,904`.
pub(super) fn thousands(number: u64) -> String {
    let text = number.to_string();
    let split = |(at, c): (usize, char)| [(at > 0 && (text.len() - at).is_multiple_of(3)).then_some(','), Some(c)];
    text.chars().enumerate().flat_map(split).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::touching_threads;
    use crate::judge::acting;

    /// Check that stray pages make no thread a toucher, and that a thread that touched and does not use is named.
    #[test]
    fn counts_of_threads_are_explained() {
        let touching = acting(&[(0, 0.5), (1, 0.5), (2, 0.005), (3, 0.0)].into());
        assert_eq!(touching, [0, 1]);
        assert_eq!(touching_threads(&touching, &[0, 1]), "2 threads");
        assert_eq!(touching_threads(&[0, 1, 2], &[1, 2]), "3 threads, one of which does not use it");
        assert_eq!(touching_threads(&[0, 1, 2], &[2]), "3 threads, 2 of which do not use it");
    }
}
