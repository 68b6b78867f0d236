//! Findings: what is wrong with the placement of an object or of the whole program, why, and how to fix it.
//!
//! | file | answers |
//! |---|---|
//! | `rules.rs`, `real_nodes.rs`, `huge.rs` | which finding does an object have? |
//! | `program.rs` | which findings does the whole program have? |
//! | `text.rs` | the message |
//! | `fix.rs`, `fix/` | the fix, in words and as changes of the source |

mod fix;
mod huge;
mod program;
mod real_nodes;
mod rules;
mod segment;
mod text;

pub use program::Program;
pub(crate) use rules::{NEAR_BAR, REMOTE_BAR, SERIAL, WIDEST, WORTH_BAR, Weight};
pub(crate) use text::{capital, digits, percent};

use crate::evidence::Hit;
use crate::groups::Group;
use crate::judge::Subject;
use crate::names::{Language, ObjectName};
use crate::own_accesses::OwnAccesses;
use crate::residents::Moves;
use crate::source_code::CodeLocations;
use crate::threads::Threads;
use crate::{Figure, Finding, FixEdit, Interval, LibraryFix, ObjectView, Target};
use firsttouch_model::Estimate;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::{FindingKind, Severity};
use firsttouch_model::rows::{Object, Profile};
use std::collections::BTreeMap;

/// The input of the rules and of their messages.
pub struct Context<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub threads: &'a Threads,
    pub places: &'a CodeLocations<'a>,
    /// Accesses to all objects larger than a core's cache, in a merged profile to those of a rank.
    pub own: &'a OwnAccesses,
    /// The groups and their names, to name former owners.
    pub groups: &'a [Group],
    pub names: &'a [ObjectName],
    /// All objects that are listed.
    pub cases: &'a [Case<'a>],
}

/// One object that is being judged.
pub struct Case<'a> {
    pub subject: &'a Subject,
    pub group: &'a Group,
    pub hits: &'a [Hit],
    pub object: &'a Object,
    pub view: &'a ObjectView,
    pub moves: &'a Moves,
    /// The names of all objects, if several are judged together. The view is then that of the first.
    pub together: Option<&'a str>,
}

/// When threads of the program's own join a team by `call`, or what the library assumes where none of them can have.
fn joining(call: &str, threads: usize, start_later: bool) -> String {
    let used = format!("{threads} threads used it in this run");
    if start_later {
        format!(
            "{used}, and none but the one that allocates has started at this line: the library takes them to be spread over the nodes in order; if they \
             are bound otherwise, place the memory when each of them has called {call}"
        )
    } else {
        format!(
            "{used}: {call} once in each, before the memory is placed (threads that start later are taken to be spread over the nodes in order)"
        )
    }
}

/// The library's call as a part of a finding.
fn library_fix(edits: Vec<FixEdit>, users: &fix::Users) -> Option<LibraryFix> {
    let spreads = edits.iter().flat_map(|edit| &edit.text).any(|line| line.contains("interleaved"));
    let join = |words: &str| if spreads { String::new() } else { format!("{words}; ") };
    let needs = match Language::of(&edits.first()?.file) {
        Some(Language::Fortran) => format!(
            "compile its firsttouch.f90 too, and link with -lfirsttouch; {}call ft_place(ARRAY, ft_local()) before it is freed",
            join(&match users {
                fix::Users::OpenMp(None) => "call ft_join_openmp() once before".to_owned(),
                fix::Users::OpenMp(Some(threads)) => format!(
                    "call ft_join_team(omp_get_thread_num(), omp_get_num_threads()) once before, in a parallel region with num_threads({threads})"
                ),
                fix::Users::Own { threads, start_later } => joining(&format!("ft_join_team(THREAD, {threads})"), *threads, *start_later),
            })
        ),
        Some(Language::Python) => format!(
            "install its Python package firsttouch; {}firsttouch.place(ARRAY, \"local\") before it is freed",
            join(&match users {
                fix::Users::Own { threads, start_later } => {
                    joining(&format!("firsttouch.join_team(THREAD, {threads})"), *threads, *start_later)
                }
                fix::Users::OpenMp(_) => "threads of the program's own call firsttouch.join_team once before".to_owned(),
            })
        ),
        Some(Language::Rust) => format!(
            "add firsttouch-alloc = {{ path = \"bindings/rust\" }}, with the path of that folder of firsttouch, to the dependencies in Cargo.toml; \
             {}firsttouch_alloc::place(&mut ARRAY, &firsttouch_alloc::Partition::local()) before it is dropped",
            join(
                "firsttouch_alloc::Team::default().join(THREAD, THREADS) once in each thread that has a part, before the memory is placed (where they \
                 start later, Partition::blocked().parts(THREADS) takes them to be spread over the nodes in order)"
            )
        ),
        _ => {
            let joined = join(&match users {
                fix::Users::Own { threads, start_later } => joining(&format!("ft_team_join(0, THREAD, {threads})"), *threads, *start_later),
                fix::Users::OpenMp(None) => "ft_team_openmp(0) once before".to_owned(),
                fix::Users::OpenMp(Some(threads)) => format!(
                    "ft_team_join(0, omp_get_thread_num(), omp_get_num_threads()) once before, in a parallel region with num_threads({threads})"
                ),
            });
            format!("link with -lfirsttouch; {joined}ft_place(POINTER, BYTES, NULL, 0) before it is freed")
        }
    };
    Some(LibraryFix { text: fix::edits_text(&edits), edits, needs })
}

impl Context<'_> {
    /// The finding on an object, if any.
    #[must_use]
    pub fn find(&self, case: &Case<'_>) -> Option<Finding> {
        let remote = case.subject.remote?;
        let kind = self.kind(case)?;
        let interval: Interval = [remote.low, remote.high];
        let remote_share = case.subject.remote_share();
        let fix = self.fix(kind, case);
        let ranks = self.sharing_ranks(case);
        Some(Finding {
            kind: if ranks.len() > 1 { FindingKind::SharedSegment } else { kind },
            object: Some(case.object.id),
            together: Vec::new(),
            object_name: case.together.unwrap_or(&case.view.name).to_owned(),
            severity: Severity::of(remote_share),
            message: segment::message(&ranks, self.message(kind, case)),
            fix: segment::fix(&ranks, (&case.view.name, case.subject.partition.kind), fix.text()),
            fix_edits: fix.edits,
            fix_otherwise: fix.otherwise,
            library: library_fix(fix.library, &self.users(case)),
            fix_kind: self.fix_kind(kind, case),
            cause: case.view.first_touch.cause,
            misplaced_at: (kind == FindingKind::MismatchedPartition).then(|| fix::misplaced_at(self, case)).flatten(),
            remote_fraction: remote.value,
            interval,
            remote_share,
            figures: self.case_figures(kind, case),
            ranks,
            in_ranks: Vec::new(),
        })
    }

    /// The figures that justify the finding, by name.
    fn case_figures(&self, kind: FindingKind, case: &Case<'_>) -> BTreeMap<String, Figure> {
        let source = || case.subject.source.name();
        let mut figures = BTreeMap::new();
        let mut add = |name: &str, estimate: Option<Estimate>, evidence: EvidenceSource| {
            figures.extend(estimate.map(|e| (name.to_owned(), figure(e, evidence))));
        };
        add("remote", case.subject.remote, source());
        match kind {
            FindingKind::SlowTier => add("slow", case.subject.slow, source()),
            FindingKind::PolicyMismatch => add("remote_by_first_touch", case.subject.by_first_touch, source()),
            FindingKind::NodeFull => {
                add("remote_by_first_touch", case.subject.by_first_touch, source());
                add("displaced", case.subject.touch.displaced, EvidenceSource::Touch);
            }
            FindingKind::UnpinnedThreads => add("touched_by_its_user", self.touched_by_user(case), EvidenceSource::Touch),
            _ => {}
        }
        add("moved", case.moves.part(case.moves.moved), EvidenceSource::Resident);
        figures
    }
}

/// Findings whose fixes are the same change of the source (a loop that initialises two arrays) say so, so that the change is made once.
pub fn name_shared_changes(findings: &mut [Finding]) {
    for at in 1..findings.len() {
        let (before, rest) = findings.split_at_mut(at);
        let finding = &mut rest[0];
        if let Some(first) = before.iter().find(|first| !first.fix_edits.is_empty() && first.fix_edits == finding.fix_edits) {
            finding.fix = format!("make this change once, it is that for {} too: {}", first.object_name, finding.fix);
        }
    }
}

/// A figure of a report.
pub fn figure(estimate: Estimate, evidence: EvidenceSource) -> Figure {
    Figure { value: estimate.value, interval: [estimate.low, estimate.high], samples: estimate.samples, evidence }
}
