//! The fix of a finding as text, and as code in the program's language. If the source lines are known, it uses the program's own names,
//! values and loops, else neutral words. The code does the same work as the user's line, divided among threads.

mod lines;
mod serial;
mod small_blocks;

use super::independence::{Directive, directive, private_variables};
use super::loops::{Loop, indexing_loop};
use super::{Case, Context};
use crate::names::{Language, in_code};
use crate::source_code::describe;
use crate::{CodeLocation, PartitionKind};
use firsttouch_model::counted;
use firsttouch_model::finding::FindingKind;
use small_blocks::small_blocks;

const INTERLEAVE: &str = "without touching the source, spread its pages over the nodes: numactl --interleave=all CMD (which spreads \
                          all other memory too, the well-placed as well)";

/// What divides the program's work among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadTeam {
    /// An OpenMP runtime: a pragma can divide a loop.
    OpenMp,
    /// The program's own thread functions: a pragma would have no effect.
    Own,
}

impl Context<'_> {
    pub(super) fn fix(&self, kind: FindingKind, case: &Case<'_>) -> String {
        let fix = self.fix_of_one(kind, case);
        match case.group.parts() {
            0 => fix,
            parts => format!(
                "for {}, and likewise for the other {}: {fix}",
                case.view.name,
                counted(parts as u64 - 1, "object").trim_start_matches("1 ")
            ),
        }
    }

    fn fix_of_one(&self, kind: FindingKind, case: &Case<'_>) -> String {
        let name = case.view.name.as_str();
        let language = self.language(case);
        if let Some(text) = small_blocks(self, kind, case) {
            return text;
        }
        if case.group.processes() > 1 && matches!(kind, FindingKind::NoStablePartition | FindingKind::SharedRead) {
            return format!(
                "the processes share {name}, so no copy can replace it: {INTERLEAVE}; in the source, mbind() with MPOL_INTERLEAVE behind the call that \
                 maps {name}, before anybody touches it"
            );
        }
        match kind {
            FindingKind::SerialFirstTouch => serial::serial(self, case, language),
            FindingKind::MismatchedPartition => match self.team() {
                ThreadTeam::OpenMp => format!(
                    "initialise {name} with the loop that uses it: same bounds, same schedule and chunk, same number of threads{}",
                    code(&self.parallel_loop(case, language))
                ),
                ThreadTeam::Own => {
                    format!("let each thread initialise the part of {name} that it uses: same bounds, same number of threads")
                }
            },
            FindingKind::NoStablePartition if !case.subject.partition.dealt_out => format!(
                "{INTERLEAVE}. If each thread reads all of {name}, one copy a node, made by a thread of that node, is better still; if its parts \
                 change hands, give each thread the same part every time ({}), and initialise {name} in that loop",
                static_schedule(language, self.team())
            ),
            FindingKind::NoStablePartition => format!(
                "give each thread the same part every time ({}), and initialise {name} in that loop; or {INTERLEAVE}",
                static_schedule(language, self.team())
            ),
            FindingKind::SharedRead => format!("keep one copy of {name} a node, made by a thread of that node; or {INTERLEAVE}"),
            FindingKind::IoFirstTouch => io(self, case, language),
            FindingKind::HugePageSharing => huge(self, case, language),
            FindingKind::SlowTier => format!(
                "keep {name} on nodes with CPUs, if there is room: numactl --membind={cpus} CMD, or mbind() for {name} alone; or let the kernel move \
                 what is hot there: echo 2 > /proc/sys/kernel/numa_balancing (root; memory tiering)",
                cpus = self.cpu_nodes()
            ),
            FindingKind::PolicyMismatch => format!(
                "take the policy away ({}) and let the threads that use {name} touch it first{}",
                "start the program without numactl or its options --interleave, --membind, --preferred; in the source, without set_mempolicy or mbind",
                code(&self.parallel_loop(case, language))
            ),
            FindingKind::NodeFull => format!(
                "make room where {name} is used: end or move what fills that node (firsttouch stat, numastat -m), drop the page cache before the run \
                 (sync; echo 1 > /proc/sys/vm/drop_caches, as root), or spread the threads so that each node has room for its part"
            ),
            FindingKind::UnpinnedThreads => self.pin_advice(),
            FindingKind::BalancingChurn => self.churn_advice(),
            FindingKind::RecycledMemory => format!(
                "use fresh memory for {name}: do not free the former buffer before, or allocate with mmap (environment: \
                 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072 makes glibc return large blocks to the kernel), or use an allocator that keeps memory by thread; \
                 then initialise it in the loop that uses it. Or move the pages to their users once with move_pages"
            ),
        }
    }

    /// Advice on how to pin the threads.
    pub(super) fn pin_advice(&self) -> String {
        match self.team() {
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

    /// Whether an OpenMP runtime was seen. If no stack shows which modules ran, assume one.
    fn team(&self) -> ThreadTeam {
        const RUNTIMES: &[&str] = &["libgomp", "libomp", "libiomp", "libnvomp"];
        const OUTLINED: &[&str] = &["_omp_fn", "omp_outlined", "GOMP_", "__kmp", "__nv_"];
        let is_recorded = !self.profile.regions.is_empty() || self.profile.threads.iter().any(|t| t.omp_number.is_some());
        let mut frames = self.profile.sites.values().flat_map(|site| &site.frames);
        let is_known = self.profile.sites.values().flat_map(|site| &site.frames).any(|frame| frame.module.is_some());
        let is_openmp = frames.any(|frame| {
            let module = frame.module.as_deref().and_then(|module| module.rsplit('/').next()).unwrap_or_default();
            let function = frame.function.as_deref().unwrap_or_default();
            RUNTIMES.iter().any(|name| module.starts_with(name)) || OUTLINED.iter().any(|name| function.contains(name))
        });
        if is_recorded || is_openmp || !is_known { ThreadTeam::OpenMp } else { ThreadTeam::Own }
    }

    /// The user's initialising loop, if the source shows which one it is.
    fn own_loop(&self, case: &Case<'_>, language: Language) -> Option<Loop> {
        let place = case.view.first_touch.at.first()?;
        indexing_loop(self.places.sources, place.file.as_deref()?, place.line?, language, in_code(&case.view.name))
    }

    /// The user's initialising loop, made parallel. Empty if it is unknown which loop that is.
    fn parallel_loop(&self, case: &Case<'_>, language: Option<Language>) -> String {
        let arrays = case.subject.arrays_in_mapping(case.object.kind).is_some();
        // Its chunk is not known.
        let has_chunks = case.subject.partition.kind == PartitionKind::BlockCyclic && !arrays;
        match language.filter(|_| !has_chunks) {
            Some(language @ (Language::C | Language::Cpp | Language::Fortran)) => self.divided(case, language).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// The user's initialising loop with a directive; `None` if it is unknown, or if its source does not show that its rounds are independent.
    fn divided(&self, case: &Case<'_>, language: Language) -> Option<String> {
        let (own, file) = (self.own_loop(case, language)?, case.view.first_touch.at.first()?.file.as_deref()?);
        let private = private_variables(self.places.sources, file, &own, language)?;
        let mark = if language == Language::Fortran { "!$omp" } else { "#pragma omp" };
        let word = if language == Language::Fortran { "do" } else { "for" };
        let parallel = match directive(self.places.sources, file, own.line, language) {
            // Its threads compute their own bounds: the code at hand does not say how.
            Directive::Within => return None,
            Directive::For => "",
            Directive::None | Directive::ParallelFor => "parallel ",
        };
        let private = if private.is_empty() { String::new() } else { format!(" private({})", private.join(", ")) };
        Some(format!("{mark} {parallel}{word} schedule(static){private}\n{}", own.code(language)))
    }

    /// Whether the initialising loop is known, and its rounds may depend on each other.
    fn may_depend(&self, case: &Case<'_>, language: Option<Language>) -> bool {
        let Some(language @ (Language::C | Language::Cpp | Language::Fortran)) = language else { return false };
        let file = case.view.first_touch.at.first().and_then(|place| place.file.as_deref());
        let own = self.own_loop(case, language);
        own.zip(file).is_some_and(|(own, file)| private_variables(self.places.sources, file, &own, language).is_none())
    }
}

/// The object's name if code can use it, else `otherwise`.
fn variable<'a>(name: &'a str, otherwise: &'a str) -> &'a str {
    Some(in_code(name)).filter(|name| lines::is_name(name)).unwrap_or(otherwise)
}

fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    format!(":\n{}", lines.join("\n"))
}

/// ` (pt.c:29)`; empty if the line is unknown.
fn at(place: Option<&CodeLocation>) -> String {
    place.filter(|place| place.line.is_some()).map_or_else(String::new, |place| format!(" ({})", describe(place)))
}

fn static_schedule(language: Option<Language>, team: ThreadTeam) -> &'static str {
    match (language, team) {
        (Some(Language::C | Language::Cpp), ThreadTeam::OpenMp) => "#pragma omp for schedule(static) instead of dynamic, guided or tasks",
        (Some(Language::Fortran), ThreadTeam::OpenMp) => "!$omp do schedule(static) instead of dynamic, guided or tasks",
        _ => "a static split instead of dynamic scheduling",
    }
}

fn io(context: &Context<'_>, case: &Case<'_>, language: Option<Language>) -> String {
    let name = case.view.name.as_str();
    let reads = at(case.view.first_touch.at.first());
    if context.team() == ThreadTeam::Own {
        return format!("let each thread touch its own part of {name} (write one byte a page) before it is read into{reads}");
    }
    let touch = match language {
        Some(Language::C | Language::Cpp) if lines::is_name(in_code(name)) => {
            let variable = in_code(name);
            let loop_of = |elements| {
                format!(
                    "#pragma omp parallel for schedule(static)\nfor (size_t i = 0; i < {elements}; i++) memset(&{variable}[i], 0, sizeof {variable}[i]);"
                )
            };
            serial::allocated_elements(case).map_or_else(String::new, loop_of)
        }
        Some(Language::Fortran) => serial::fortran_loop(case, "0").unwrap_or_default(),
        _ => String::new(),
    };
    format!("touch {name} in parallel, divided like the loop that uses it, before reading into it{reads}{}", code(&touch))
}

fn huge(context: &Context<'_>, case: &Case<'_>, language: Option<Language>) -> String {
    let name = case.view.name.as_str();
    let size = firsttouch_model::format_bytes(context.profile.machine.huge_page_bytes.max(case.subject.touch.page_bytes));
    let advice = match language {
        Some(Language::C | Language::Cpp) | None => {
            format!(":\n  madvise({}, bytes, MADV_NOHUGEPAGE); /* before the first touch */", variable(name, "p"))
        }
        _ => " with madvise(..., MADV_NOHUGEPAGE) before the first touch".to_owned(),
    };
    format!(
        "make each thread's part of {name} a multiple of {size} and align it so (larger chunks, padding); or use base pages for it{advice}"
    )
}
