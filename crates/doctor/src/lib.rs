//! Finds settings of a system and of an environment that hurt the placement of memory or its observation. Pure: facts in, findings out.
//!
//! A check is a function of the facts. If a fact is unknown, the check is not made: it does not
//! guess, and does not pass.

mod checks;
mod diagnosis;
mod openmp;
mod places;
mod rank;
mod seen;

pub use checks::{CHECKS, Check, Scope};
pub use diagnosis::{Diagnosis, Evidence, Finding, LeftOut, Severity, openmp_word};

pub use rank::RankBinding;
pub use seen::Seen;

use firsttouch_model::facts::Facts;

/// Why a check was left out.
pub const ONE_NODE: &str = "it only matters on machines with several nodes";
pub const UNKNOWN: &str = "what it judges is not known here";

/// Runs every check that applies to this machine.
#[must_use]
pub fn examine(facts: &Facts) -> Diagnosis {
    let nodes = facts.topology.nodes.len();
    let (wanted, left_out): (Vec<&Check>, Vec<&Check>) = CHECKS.iter().partition(|check| nodes > 1 || check.scope == Scope::AnyMachine);
    let found: Vec<(&Check, Option<Finding>)> = wanted.into_iter().map(|check| (check, (check.examine)(facts))).collect();
    // A part of the facts may be enough for a finding.
    let is_made = |(check, finding): &(&Check, Option<Finding>)| finding.is_some() || seen::is_known(check.id, facts);
    let (made, unknown): (Vec<_>, Vec<_>) = found.into_iter().partition(is_made);
    let checked = made.iter().map(|(check, _)| check.id).collect();
    let mut findings: Vec<Finding> = made.into_iter().filter_map(|(_, finding)| finding).collect();
    // A stable sort keeps the order of the checks within a severity.
    findings.sort_by_key(|finding| finding.severity);
    Diagnosis {
        nodes,
        program: facts.program.clone(),
        rank: rank::of(facts),
        findings,
        checked,
        left_out: left_out
            .iter()
            .map(|check| LeftOut { id: check.id, reason: ONE_NODE })
            .chain(unknown.iter().map(|(check, _)| LeftOut { id: check.id, reason: UNKNOWN }))
            .collect(),
        seen: seen::all(facts),
        doubts: facts.doubts.clone(),
    }
}
