//! Values of OpenMP's variables that a runtime rejects, and CPUs in them that the program may not use.
//!
//! Sources: OpenMP 5.2 chapter 21; what libgomp 14 says to each of the values in the tests.

use super::threads::{allowed, variables};
use crate::diagnosis::{Finding, Severity};
use crate::openmp::{self, Binding};
use crate::places;
use firsttouch_model::facts::{Facts, OpenMp};
use firsttouch_model::topology::format_list;

pub const NOT_UNDERSTOOD: &str = "openmp-value-not-understood";
pub const NOT_ALLOWED: &str = "places-not-allowed";

/// What a variable's value must be.
type Rule = (&'static str, fn(&str) -> bool, &'static str);

const RULES: [Rule; 5] = [
    ("OMP_PROC_BIND", is_binding, "true, false, close, spread or primary"),
    ("OMP_PLACES", places::is_understood, "cores, threads, sockets, ll_caches, numa_domains, or a list of places such as {0:4},{4:4}"),
    ("OMP_NUM_THREADS", is_numbers, "a number from 1"),
    ("OMP_THREAD_LIMIT", is_numbers, "a number from 1"),
    ("GOMP_CPU_AFFINITY", |text| places::affinity(text).is_some(), "a list of CPUs such as 0-3 or 0 2 4-15:2"),
];

/// A list has a word for each nesting level.
fn is_binding(text: &str) -> bool {
    let words = ["true", "false", "close", "spread", "primary", "master"];
    text.split(',').all(|word| words.iter().any(|known| word.trim().eq_ignore_ascii_case(known)))
}

/// A list has a number for each nesting level.
fn is_numbers(text: &str) -> bool {
    text.split(',').all(|number| number.trim().parse::<u64>().is_ok_and(|number| number > 0))
}

pub fn not_understood(facts: &Facts) -> Option<Finding> {
    let (variables, _) = variables(facts)?;
    let wrong: Vec<(&Rule, &str)> = RULES
        .iter()
        .filter_map(|rule| Some((rule, openmp::set(variables, rule.0)?)))
        .filter(|((_, is_right, _), text)| !is_right(text))
        .collect();
    let (first, _) = wrong.first()?;
    let (names, are) = match &wrong[..] {
        [_] => (first.0.to_owned(), "is"),
        all => (all.iter().map(|(rule, _)| rule.0).collect::<Vec<_>>().join(" and "), "are"),
    };
    let message = format!("{names} {are} not understood: OpenMP runtimes ignore such a value, so threads run as if it were not set");
    let mut finding = Finding::new(NOT_UNDERSTOOD, Severity::Medium, message);
    for ((name, ..), text) in &wrong {
        finding = finding.seen(*name, *text);
    }
    let remedies: Vec<String> = wrong.iter().map(|((name, _, right), _)| format!("{name}: {right}")).collect();
    Some(finding.remedy(remedies.join("; ")))
}

pub fn not_allowed(facts: &Facts) -> Option<Finding> {
    let (variables, openmp) = variables(facts)?;
    if openmp::binding(variables, openmp) != Binding::Bound {
        return None;
    }
    let (variable, cpus) = places::named(variables, openmp)?;
    let allowed = allowed(facts);
    let outside: Vec<u32> = cpus.iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
    if outside.is_empty() || allowed.is_empty() {
        return None;
    }
    let is_none_left = outside.len() == cpus.len();
    let online = &facts.topology.cpus.online;
    let why = if outside.iter().any(|cpu| online.contains(cpu)) { "this process may not use" } else { "this machine does not have" };
    let effect = match (variable, openmp) {
        ("GOMP_CPU_AFFINITY", OpenMp::Gnu | OpenMp::Unknown) => {
            "GCC's runtime ends the program when it starts a thread there (Thread creation failed: Invalid argument)"
        }
        _ if is_none_left => "no place is left, so threads are not bound",
        _ => "runtimes leave them out, and threads share the places that remain",
    };
    let severity = if is_none_left || variable == "GOMP_CPU_AFFINITY" { Severity::High } else { Severity::Medium };
    let message = format!("{variable} names CPUs that {why} ({}): {effect}", format_list(&outside));
    let unset = if variable == "OMP_PLACES" { "" } else { "unset GOMP_CPU_AFFINITY; " };
    let finding = Finding::new(NOT_ALLOWED, severity, message)
        .seen(variable, openmp::set(variables, variable).unwrap_or_default())
        .seen("/proc/self/status", format!("Cpus_allowed_list: {}", format_list(&allowed)));
    Some(finding.remedy(format!("{unset}export OMP_PROC_BIND=spread OMP_PLACES=cores")))
}
