//! What on a system or in an environment spoils the placement of memory, or what can be seen of it. Pure: facts in, findings out.
//!
//! A check is a function of the facts. It finds nothing where a fact is unknown: a doctor who guesses is not believed.

mod checks;
mod diagnosis;
mod openmp;

pub use checks::{CHECKS, Check, Scope};
pub use diagnosis::{Diagnosis, Evidence, Finding, LeftOut, Severity, openmp_word};

use firsttouch_model::facts::Facts;

/// Runs every check that means something on this machine.
#[must_use]
pub fn examine(facts: &Facts) -> Diagnosis {
    let nodes = facts.topology.nodes.len();
    let (wanted, left_out): (Vec<&Check>, Vec<&Check>) = CHECKS.iter().partition(|check| nodes > 1 || check.scope == Scope::AnyMachine);
    let mut findings: Vec<Finding> = wanted.iter().flat_map(|check| (check.examine)(facts)).collect();
    // A stable sort: within a severity the checks' own order holds.
    findings.sort_by_key(|finding| finding.severity);
    Diagnosis {
        nodes,
        program: facts.program.clone(),
        findings,
        checked: wanted.iter().map(|check| check.id).collect(),
        left_out: left_out.iter().map(|check| LeftOut { id: check.id, reason: "it matters on machines with several nodes only" }).collect(),
        doubts: facts.doubts.clone(),
    }
}
