//! What tuning did, as JSON. The names of the fields are those of the schema.

use crate::decide::Held;
use crate::segments::Target;
use crate::tuner::{Known, Tuner};
use crate::words::{held_words, why};
use firsttouch_placement::move_pages::reason;
use serde::Serialize;
use std::collections::BTreeMap;

pub const SCHEMA: &str = "firsttouch.tune/1";
/// Objects with a smaller share of the accesses are listed only if they were moved.
const LISTED_SHARE: f64 = 0.01;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    pub schema: String,
    pub machine: String,
    pub nodes: usize,
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    pub seconds: f64,
    pub dry_run: bool,
    /// Nothing more was to be moved when it ended.
    pub settled: bool,
    pub budget_bytes_per_s: f64,
    pub processes: Vec<ProcessOutcome>,
    /// The plan that was written.
    pub plan: Option<String>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessOutcome {
    pub pid: i32,
    pub name: String,
    pub moved_pages: u64,
    pub moved_bytes: u64,
    pub moving_s: f64,
    /// Pages of the moved ranges that were in their place, and elsewhere, when the kernel was asked again.
    pub verified_pages: u64,
    pub astray_pages: u64,
    pub failed: Vec<FailedPages>,
    pub remote_before: Option<Remote>,
    pub remote_after: Option<Remote>,
    /// In a dry run: of the CPU time at memory whose node is known, the share at remote memory now, and the share that the moves would leave.
    pub remote_now: Option<f64>,
    pub remote_expected: Option<f64>,
    /// The part of the CPU time at memory that both shares are of.
    pub remote_expected_of: Option<f64>,
    /// Accesses in the last window.
    pub accesses: usize,
    /// How often the program changed its partition of an object.
    pub changes: usize,
    pub threads: Option<ThreadAdvice>,
    pub objects: Vec<ObjectOutcome>,
}

/// The share of accesses to another node than the thread's, with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remote {
    pub share: f64,
    pub interval: [f64; 2],
    pub samples: u64,
    pub source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedPages {
    pub errno: String,
    pub reason: String,
    pub pages: u64,
}

/// Threads that change nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadAdvice {
    /// The part of the accesses by threads that were on another node than usual.
    pub away: f64,
    pub advice: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObjectOutcome {
    pub id: i64,
    pub name: String,
    pub line: Option<String>,
    pub bytes: u64,
    /// Of the CPU time at memory, in the last window.
    pub access_share: f64,
    pub moved_pages: u64,
    pub moved_bytes: u64,
    pub from: BTreeMap<u32, u64>,
    pub to: BTreeMap<u32, u64>,
    pub failed_pages: u64,
    pub moves: Vec<Moved>,
    /// Why the rest stays.
    pub held: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// `node` or `interleave`.
    pub how: String,
    pub nodes: Vec<u32>,
    pub from: Option<u32>,
    /// Seconds after tuning began.
    pub decided_s: f64,
    /// As estimated when it was decided.
    pub bytes: u64,
    /// CPU seconds that threads no longer wait, over the time that this use was expected to last; and the expected cost.
    pub gain_s: f64,
    pub expected_s: f64,
    pub cost_s: f64,
    pub why: String,
}

impl ProcessOutcome {
    /// `wandering_threshold`: above it, the advice on threads is given.
    #[must_use]
    pub fn of(pid: i32, name: &str, tuner: &Tuner) -> Self {
        let carried = tuner.carrier.objects.values();
        let mut failed: BTreeMap<i32, u64> = BTreeMap::new();
        carried.clone().flat_map(|one| &one.failed).for_each(|(errno, pages)| *failed.entry(*errno).or_default() += pages);
        let failed = failed.into_iter().map(|(errno, pages)| {
            let (errno, reason) = reason(errno);
            FailedPages { errno, reason: reason.to_owned(), pages }
        });
        let sum = |of: fn(&crate::Carried) -> u64| carried.clone().map(of).sum();
        let forecast = tuner.forecast.filter(|_| tuner.settings().dry_run);
        let mut objects: Vec<ObjectOutcome> = tuner.objects.iter().map(|(id, known)| object(*id, known, tuner)).collect();
        objects.retain(|one| !one.moves.is_empty() || one.access_share >= LISTED_SHARE);
        objects.sort_by(|a, b| b.moved_bytes.cmp(&a.moved_bytes).then(b.access_share.total_cmp(&a.access_share)).then(a.id.cmp(&b.id)));
        Self {
            pid,
            name: name.to_owned(),
            moved_pages: sum(|one| one.moved_pages),
            moved_bytes: sum(|one| one.moved_bytes),
            moving_s: tuner.carrier.moving_s,
            verified_pages: sum(|one| one.verified_pages),
            astray_pages: sum(|one| one.astray_pages),
            failed: failed.collect(),
            remote_before: tuner.before.clone(),
            remote_after: tuner.after.clone(),
            remote_now: forecast.map(|shares| shares.now),
            remote_expected: forecast.map(|shares| shares.after),
            remote_expected_of: forecast.map(|shares| shares.known),
            accesses: tuner.seen,
            changes: tuner.changes(),
            threads: advice(tuner),
            objects,
        }
    }
}

fn advice(tuner: &Tuner) -> Option<ThreadAdvice> {
    let is_held = tuner.objects.values().any(|known| matches!(known.held, Some(Held::ThreadsMove { .. })));
    is_held.then(|| ThreadAdvice {
        away: tuner.wandering,
        advice: "pin the threads, so that their memory can follow them: firsttouch run --pin spread -- PROGRAM, or OMP_PROC_BIND=spread OMP_PLACES=cores"
            .to_owned(),
    })
}

fn object(id: i64, known: &Known, tuner: &Tuner) -> ObjectOutcome {
    let carried = tuner.carrier.objects.get(&id).cloned().unwrap_or_default();
    let moves = known.decisions.iter().map(|decision| {
        let (how, nodes) = match &decision.target {
            Target::Node(node) => ("node", vec![*node]),
            Target::Several(nodes) => ("interleave", nodes.clone()),
        };
        Moved {
            how: how.to_owned(),
            nodes,
            from: decision.from,
            decided_s: decision.decided_s,
            bytes: decision.bytes as u64,
            gain_s: decision.gain_rate * decision.expected_s,
            expected_s: decision.expected_s,
            cost_s: decision.cost_s,
            why: why(decision),
        }
    });
    ObjectOutcome {
        id,
        name: known.name.clone(),
        line: known.line.clone(),
        bytes: known.bytes,
        access_share: known.share,
        moved_pages: carried.moved_pages,
        moved_bytes: carried.moved_bytes,
        from: carried.from,
        to: carried.to,
        failed_pages: carried.failed.values().sum(),
        moves: moves.collect(),
        held: known.held.as_ref().map(held_words),
    }
}
