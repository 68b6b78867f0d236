//! Where the threads of an OpenMP program will run, according to the environment it would be started in.

use crate::diagnosis::{Finding, Severity};
use crate::openmp::{self, Binding};
use crate::places;
use firsttouch_model::counted;
use firsttouch_model::facts::{Facts, OpenMp};
use firsttouch_model::topology::format_list;
use std::collections::BTreeMap;

pub const UNPINNED: &str = "unpinned-threads";
pub const TOGETHER: &str = "threads-on-one-place";
pub const FEW_PLACES: &str = "fewer-places-than-threads";
pub const TOO_MANY: &str = "more-threads-than-cpus";
pub const SMT: &str = "smt-shared";

/// CPUs this process may run on.
pub fn allowed(facts: &Facts) -> Vec<u32> {
    let online = &facts.topology.cpus.online;
    let allowed = facts.topology.process.as_ref().and_then(|limits| limits.allowed_cpus.as_ref());
    online.iter().copied().filter(|cpu| allowed.is_none_or(|allowed| allowed.contains(cpu))).collect()
}

/// Threads of an OpenMP team, and the variable that sets the number; `None` if none does.
pub fn team(facts: &Facts) -> Option<(&'static str, usize)> {
    let (variable, threads) = openmp::threads(variables(facts)?.0)?;
    Some((variable, usize::try_from(threads).ok()?))
}

/// The environment and the runtime that reads it; `None` if no OpenMP program will run, or the environment is unknown.
pub(super) fn variables(facts: &Facts) -> Option<(&BTreeMap<String, String>, OpenMp)> {
    let openmp = facts.program.as_ref().map_or(OpenMp::Unknown, |program| program.openmp);
    facts.environment.as_ref().filter(|_| openmp != OpenMp::None).map(|variables| (variables, openmp))
}

/// `the program's threads`, or those of OpenMP programs.
fn whose(openmp: OpenMp) -> &'static str {
    if openmp == OpenMp::Unknown { "OpenMP threads started here" } else { "the program's OpenMP threads" }
}

pub fn unpinned(facts: &Facts) -> Option<Finding> {
    let (variables, openmp) = variables(facts)?;
    let Binding::Free(useless) = openmp::binding(variables, openmp) else { return None };
    // If the whole process is confined to one node, its threads cannot leave it.
    if facts.topology.nodes_of(&allowed(facts)).len() < 2 {
        return None;
    }
    let message = format!(
        "{} are not bound to CPUs: the kernel may move them to another node, away from the memory they touched first",
        whose(openmp)
    );
    let mut finding = Finding::new(UNPINNED, if openmp == OpenMp::Unknown { Severity::Medium } else { Severity::High }, message);
    if let Some(program) = facts.program.as_ref().filter(|program| !program.runtime.is_empty()) {
        finding = finding.seen(&program.path, format!("needs {}", program.runtime));
    }
    for (name, why) in &useless {
        finding = finding.seen(*name, format!("{} ({why})", variables.get(*name).map_or("", String::as_str)));
    }
    for name in ["OMP_PROC_BIND", "OMP_PLACES"].iter().filter(|name| useless.iter().all(|(other, _)| other != *name)) {
        finding = finding.seen(*name, openmp::set(variables, name).unwrap_or("not set"));
    }
    Some(finding.remedy("export OMP_PROC_BIND=spread OMP_PLACES=cores"))
}

/// The variable that binds the threads to a list of CPUs, those of them that are allowed, and the size of the team (by default, a thread for each
/// allowed CPU).
fn bound(facts: &Facts) -> Option<(&'static str, Vec<u32>, usize)> {
    let (variables, openmp) = variables(facts)?;
    if openmp::binding(variables, openmp) != Binding::Bound {
        return None;
    }
    let (variable, cpus) = places::cpus(facts, variables, openmp)?;
    let allowed = allowed(facts);
    // A thread that cannot start is another finding.
    if variable == "GOMP_CPU_AFFINITY" && cpus.iter().any(|cpu| !allowed.contains(cpu)) {
        return None;
    }
    let threads = team(facts).map_or(allowed.len(), |(_, threads)| threads);
    Some((variable, cpus.into_iter().filter(|cpu| allowed.contains(cpu)).collect(), threads))
}

/// All threads on one CPU, although several are allowed.
fn on_one_cpu(facts: &Facts) -> Option<Finding> {
    let (variable, cpus, threads) = bound(facts)?;
    let [cpu] = cpus[..] else { return None };
    if threads < 2 || allowed(facts).len() < 2 {
        return None;
    }
    let message = format!(
        "{} are all bound to CPU {cpu}: the {threads} of them take turns on it, and all other CPUs stay idle",
        whose(variables(facts)?.1)
    );
    let finding =
        Finding::new(TOGETHER, Severity::High, message).seen(variable, openmp::set(variables(facts)?.0, variable).unwrap_or_default());
    Some(finding.seen("/proc/self/status", format!("Cpus_allowed_list: {}", format_list(&allowed(facts)))).remedy(rebind(variable)))
}

/// Each thread its own core, without the variable that binds them otherwise.
fn rebind(variable: &str) -> String {
    let unset = if variable == "OMP_PLACES" { String::new() } else { format!("unset {variable}; ") };
    format!("{unset}export OMP_PROC_BIND=spread OMP_PLACES=cores")
}

pub fn few_places(facts: &Facts) -> Option<Finding> {
    let (variable, cpus, threads) = bound(facts)?;
    // One CPU, or as many threads as share all CPUs anyway, are other findings.
    if cpus.len() < 2 || threads <= cpus.len() || cpus.len() >= allowed(facts).len() {
        return None;
    }
    let message = format!(
        "{threads} threads are bound to the {} CPUs of {variable}: they take turns on them, while {} CPUs stay idle",
        cpus.len(),
        allowed(facts).len() - cpus.len()
    );
    let value = openmp::set(variables(facts)?.0, variable).unwrap_or_default();
    let (source, asked) = team(facts).map_or(("OMP_NUM_THREADS", "not set".to_owned()), |(name, threads)| (name, threads.to_string()));
    Some(Finding::new(FEW_PLACES, Severity::Medium, message).seen(variable, value).seen(source, asked).remedy(rebind(variable)))
}

pub fn together(facts: &Facts) -> Option<Finding> {
    let (variables, openmp) = variables(facts)?;
    if let Some(finding) = on_one_cpu(facts) {
        return Some(finding);
    }
    if openmp::binding(variables, openmp) != Binding::Together {
        return None;
    }
    let bind = openmp::set(variables, "OMP_PROC_BIND").unwrap_or_default();
    let places = openmp::set(variables, "OMP_PLACES").unwrap_or("not set");
    let message = format!(
        "{} are all bound to the place of the first one: other CPUs, and the memory controllers of other nodes, stay idle",
        whose(openmp)
    );
    Some(
        Finding::new(TOGETHER, Severity::Medium, message)
            .seen("OMP_PROC_BIND", bind)
            .seen("OMP_PLACES", places)
            .remedy("export OMP_PROC_BIND=spread OMP_PLACES=cores"),
    )
}

pub fn too_many(facts: &Facts) -> Option<Finding> {
    let (variable, threads) = team(facts)?;
    let allowed = allowed(facts);
    if allowed.is_empty() || threads <= allowed.len() {
        return None;
    }
    let message = format!(
        "{threads} threads share {}: they take turns, the kernel moves them, and they wait for each other at every barrier",
        counted(allowed.len(), "CPU")
    );
    let (source, words) = match &facts.launcher {
        Some(launcher) => (launcher.as_str(), format!("CPUs {}", format_list(&allowed))),
        None => ("/proc/self/status", format!("Cpus_allowed_list: {}", format_list(&allowed))),
    };
    Some(
        Finding::new(TOO_MANY, Severity::Medium, message)
            .seen(variable, threads)
            .seen(source, words)
            .remedy(format!("export OMP_NUM_THREADS={}", cores(facts, &allowed).max(1))),
    )
}

/// The number of cores with an allowed CPU; of allowed CPUs if cores are unknown.
fn cores(facts: &Facts, allowed: &[u32]) -> usize {
    let cores = facts.topology.cores.iter().filter(|core| core.cpus.iter().any(|cpu| allowed.contains(cpu))).count();
    if cores == 0 { allowed.len() } else { cores }
}

/// Two threads of a team on one core: more threads than cores, or threads packed although each could have its own core. By default,
/// runtimes start as many threads as there are CPUs.
pub fn smt(facts: &Facts) -> Option<Finding> {
    let (variables, openmp) = variables(facts)?;
    let allowed = allowed(facts);
    let cores = cores(facts, &allowed);
    if cores == allowed.len() {
        return None;
    }
    let (variable, threads) = team(facts).unwrap_or(("OMP_NUM_THREADS", allowed.len()));
    let is_asked = team(facts).is_some();
    // More threads than CPUs are another finding; KMP_HW_SUBSET may select one thread a core.
    if threads > allowed.len() || (openmp != OpenMp::Gnu && openmp::set(variables, "KMP_HW_SUBSET").is_some()) {
        return None;
    }
    let siblings = facts.topology.cores.iter().find(|core| core.cpus.len() > 1)?;
    let packed = openmp::packs_siblings(variables) && threads > 1;
    let message = if threads > cores {
        format!(
            "{threads} threads share {cores} cores (SMT): two threads on a core share its caches and its bandwidth, and few programs benefit"
        )
    } else if packed {
        format!(
            "{threads} threads are packed onto adjacent hardware threads: two share each core while other cores, and perhaps nodes, are idle"
        )
    } else {
        return None;
    };
    let first = siblings.cpus.first()?;
    let mut finding = Finding::new(SMT, if is_asked || packed { Severity::Medium } else { Severity::Low }, message)
        .seen(variable, if is_asked { threads.to_string() } else { format!("not set: one thread for each of {threads} CPUs") });
    if packed {
        finding = finding.seen("OMP_PLACES", "threads").seen("OMP_PROC_BIND", openmp::set(variables, "OMP_PROC_BIND").unwrap_or_default());
    }
    finding = finding.seen(format!("/sys/devices/system/cpu/cpu{first}/topology/core_cpus_list"), format_list(&siblings.cpus));
    Some(finding.remedy(format!("one thread a core: export OMP_NUM_THREADS={} OMP_PLACES=cores OMP_PROC_BIND=spread", threads.min(cores))))
}
