//! Finds settings of a system and of an environment that hurt the placement of memory or its observation. Pure: facts in, findings out.
//!
//! A check is a function of the facts. If a fact is unknown, the check finds nothing: it does not guess.

mod checks;
mod diagnosis;
mod openmp;
mod seen;

pub use checks::{CHECKS, Check, Scope};
pub use diagnosis::{Diagnosis, Evidence, Finding, LeftOut, Severity, openmp_word};

pub use seen::Seen;

use firsttouch_model::facts::Facts;

/// Runs every check that applies to this machine.
#[must_use]
pub fn examine(facts: &Facts) -> Diagnosis {
    let nodes = facts.topology.nodes.len();
    let (wanted, left_out): (Vec<&Check>, Vec<&Check>) = CHECKS.iter().partition(|check| nodes > 1 || check.scope == Scope::AnyMachine);
    let mut findings: Vec<Finding> = wanted.iter().flat_map(|check| (check.examine)(facts)).collect();
    // A stable sort keeps the order of the checks within a severity.
    findings.sort_by_key(|finding| finding.severity);
    Diagnosis {
        nodes,
        program: facts.program.clone(),
        findings,
        checked: wanted.iter().map(|check| check.id).collect(),
        left_out: left_out.iter().map(|check| LeftOut { id: check.id, reason: "it only matters on machines with several nodes" }).collect(),
        seen: seen::all(facts),
        doubts: facts.doubts.clone(),
    }
}
