//! What each check saw, also if it found nothing: for `doctor --verbose`.

use crate::checks::CHECKS;
use crate::diagnosis::openmp_word;
use crate::openmp;
use firsttouch_model::facts::{BandwidthCounters, Facts, Probe, Probes};
use firsttouch_model::format_bytes;
use firsttouch_model::topology::format_list;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a check saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    pub id: &'static str,
    /// The facts that it judges, in words; `unknown` if they cannot be read here.
    pub saw: String,
}

/// What every check saw, in the order of the checks.
pub fn all(facts: &Facts) -> Vec<Seen> {
    CHECKS.iter().map(|check| Seen { id: check.id, saw: of(check.id, facts).unwrap_or_else(|| "unknown".to_owned()) }).collect()
}

/// Whether the facts that a check judges are known.
pub fn is_known(id: &str, facts: &Facts) -> bool {
    let tried = |probe: Probe| probe != Probe::NotTried;
    match id {
        "perf-forbidden" => tried(facts.probes.page_faults),
        "watchpoints-missing" => tried(facts.probes.watchpoint),
        "mempolicy-forbidden" => tried(facts.probes.mbind) || tried(facts.probes.set_mempolicy),
        "unpinned-threads"
        | "openmp-value-not-understood"
        | "places-not-allowed"
        | "threads-on-one-place"
        | "fewer-places-than-threads"
        | "more-threads-than-cpus"
        | "smt-shared" => facts.environment.is_some(),
        id => of(id, facts).is_some(),
    }
}

fn of(id: &str, facts: &Facts) -> Option<String> {
    let (topology, kernel, probes) = (&facts.topology, &facts.kernel, &facts.probes);
    let limits = topology.process.as_ref();
    match id {
        "perf-forbidden" => {
            let level = kernel.perf_event_paranoid.map(|level| format!("; kernel.perf_event_paranoid = {level}")).unwrap_or_default();
            Some(format!("perf_event_open for page faults: {}{level}", probe(probes.page_faults)))
        }
        "watchpoints-missing" => Some(format!("perf_event_open for a watchpoint: {}", probe(probes.watchpoint))),
        "mempolicy-forbidden" => Some(calls(probes)),
        "openmp-value-not-understood" => {
            let names = ["OMP_PROC_BIND", "OMP_PLACES", "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "GOMP_CPU_AFFINITY"];
            Some(variables(facts, &names))
        }
        "unpinned-threads" | "places-not-allowed" | "threads-on-one-place" | "fewer-places-than-threads" => {
            Some(variables(facts, &["OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"]))
        }
        "more-threads-than-cpus" | "smt-shared" => {
            let cpus = limits.and_then(|limits| limits.allowed_cpus.as_ref()).unwrap_or(&topology.cpus.online);
            let threads = variables(facts, &["OMP_NUM_THREADS", "OMP_THREAD_LIMIT"]);
            Some(format!("{threads}; CPUs: {}; cores: {}", format_list(cpus), topology.cores.len()))
        }
        "cpu-quota" => Some(facts.cpu_quota.as_ref().map_or("no limit of a control group".to_owned(), |quota| {
            format!("{} CPUs ({}: {})", quota.cpus, quota.file, quota.value.trim())
        })),
        "open-files-limit" => facts.limits.map(|limits| number("open files (hard limit)", limits.open_files)),
        "address-space-limit" => {
            facts.limits.map(|limits| format!("address space: {}", limits.address_space_bytes.map_or("no limit".to_owned(), format_bytes)))
        }
        "cpuset" => {
            let nodes = limits.and_then(|limits| limits.allowed_nodes.as_ref())?;
            Some(format!("nodes whose memory is allowed: {}; nodes: {}", format_list(nodes), topology.nodes.len()))
        }
        "memory-policy" => {
            limits.and_then(|limits| limits.policy.as_ref()).map(|policy| format!("the policy of this process is {}", policy.mode))
        }
        "numa-balancing" => kernel.numa_balancing.map(|value| format!("kernel.numa_balancing = {value}")),
        "huge-pages-always" => kernel.transparent_huge_pages.as_ref().map(|word| format!("transparent_hugepage/enabled: {word}")),
        "zone-reclaim" => kernel.zone_reclaim_mode.map(|value| format!("vm.zone_reclaim_mode = {value}")),
        "node-nearly-full" => {
            let free = |node: &firsttouch_model::topology::Node| {
                let memory = node.memory?;
                Some(format!("node {}: {} of {} free", node.id, format_bytes(memory.free_bytes?), format_bytes(memory.total_bytes)))
            };
            joined(topology.nodes.iter().filter_map(free))
        }
        "swap-in-use" => facts.swap.map(|swap| {
            format!("{} of {} used", format_bytes(swap.total_bytes.saturating_sub(swap.free_bytes)), format_bytes(swap.total_bytes))
        }),
        "node-without-memory" | "node-without-cpus" => {
            let one = |node: &firsttouch_model::topology::Node| {
                let bytes = node.memory.map_or("unknown memory".to_owned(), |memory| format_bytes(memory.total_bytes));
                format!("node {}: {} CPUs, {bytes}", node.id, node.cpus.len())
            };
            joined(topology.nodes.iter().map(one))
        }
        "sub-numa" => {
            let packages = format!("packages: {}; nodes: {}", topology.packages.len(), topology.nodes.len());
            Some(topology.sub_numa.as_ref().map_or(packages.clone(), |mode| format!("{packages}: {} {}", mode.mode, mode.meaning)))
        }
        "openmp-runtime-missing" | "openmp-without-ompt" | "openmp-allocator-trait" => Some(runtime(facts)),
        "preloaded-allocator" => {
            let everywhere = if facts.preloaded_everywhere.is_empty() { "empty".to_owned() } else { facts.preloaded_everywhere.join(" ") };
            Some(format!("{}; /etc/ld.so.preload: {everywhere}", variables(facts, &["LD_PRELOAD"])))
        }
        "preload-missing" => facts.environment.as_ref().map(|_| variables(facts, &["LD_PRELOAD"])),
        "frequency-governor" => {
            let words: BTreeSet<&str> = facts.governors.values().map(String::as_str).collect();
            joined(words.into_iter().map(str::to_owned))
        }
        "bandwidth-counters" => match &facts.bandwidth_counters {
            BandwidthCounters::Unknown => None,
            BandwidthCounters::Missing => {
                Some("the kernel shows no counters of memory controllers, and no bandwidth in resctrl".to_owned())
            }
            BandwidthCounters::Readable(what) => Some(format!("can be read: {what}")),
            BandwidthCounters::Refused { why, .. } => Some(format!("cannot be read: {why}")),
        },
        _ => None,
    }
}

fn number(what: &str, limit: Option<u64>) -> String {
    format!("{what}: {}", limit.map_or("no limit".to_owned(), |limit| limit.to_string()))
}

fn joined(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn probe(probe: Probe) -> String {
    match probe {
        Probe::NotTried => "not tried".to_owned(),
        Probe::Allowed => "allowed".to_owned(),
        Probe::Refused(errno) => format!("refused ({})", std::io::Error::from_raw_os_error(errno)),
    }
}

fn calls(probes: &Probes) -> String {
    let calls = [
        ("set_mempolicy", probes.set_mempolicy),
        ("mbind", probes.mbind),
        ("get_mempolicy", probes.get_mempolicy),
        ("move_pages", probes.move_pages),
    ];
    calls.map(|(name, result)| format!("{name}: {}", probe(result))).join("; ")
}

fn value(variables: &BTreeMap<String, String>, name: &str) -> String {
    openmp::set(variables, name).map_or_else(|| format!("{name} is not set"), |text| format!("{name}={text}"))
}

fn variables(facts: &Facts, names: &[&str]) -> String {
    match &facts.environment {
        None => "the environment is unknown".to_owned(),
        Some(known) => names.iter().map(|name| value(known, name)).collect::<Vec<_>>().join("; "),
    }
}

/// The program's OpenMP runtime, its version, and all variables of OpenMP that are in force.
fn runtime(facts: &Facts) -> String {
    let program = facts.program.as_ref().map_or_else(
        || {
            let found = |what: &Option<String>| what.clone().unwrap_or_else(|| "not found".to_owned());
            format!("no program given; clang: {}; libomp: {}", found(&facts.compiler.clang), found(&facts.compiler.libomp))
        },
        |program| {
            let file = program.runtime_file.as_deref().unwrap_or("no file found");
            let version = program.runtime_version.as_deref().unwrap_or("unknown");
            let ompt = program.ompt.map_or("unknown", |known| if known { "yes" } else { "no" });
            match program.runtime.as_str() {
                "" => format!("{}: OpenMP {}", program.path, openmp_word(program.openmp)),
                name => {
                    format!("{}: OpenMP {}, {name} ({file}); version: {version}; OMPT: {ompt}", program.path, openmp_word(program.openmp))
                }
            }
        },
    );
    let is_openmp = |name: &&String| ["OMP_", "GOMP_", "KMP_"].iter().any(|prefix| name.starts_with(prefix));
    let in_force: Vec<String> =
        facts.environment.iter().flatten().filter(|(name, _)| is_openmp(name)).map(|(name, value)| format!("{name}={value}")).collect();
    let in_force = if in_force.is_empty() { "none".to_owned() } else { in_force.join(" ") };
    format!("{program}; variables in force: {in_force}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::facts::{OpenMp, Program};

    /// Check that every check says what it saw, also of a system of which nothing is known.
    #[test]
    fn every_check_says_what_it_saw() {
        for check in CHECKS {
            // An id that `of` does not know gives `None` for any facts.
            let known = Facts {
                kernel: firsttouch_model::facts::Kernel {
                    numa_balancing: Some(1),
                    zone_reclaim_mode: Some(0),
                    transparent_huge_pages: Some("always".to_owned()),
                    ..Default::default()
                },
                swap: Some(firsttouch_model::facts::Swap::default()),
                limits: Some(firsttouch_model::facts::Limits::default()),
                environment: Some(BTreeMap::new()),
                governors: [(0, "powersave".to_owned())].into(),
                bandwidth_counters: BandwidthCounters::Missing,
                topology: topology(),
                ..Facts::default()
            };
            assert!(of(check.id, &known).is_some(), "{}", check.id);
        }
        assert_eq!(all(&Facts::default()).len(), CHECKS.len());
    }

    fn topology() -> firsttouch_model::topology::Topology {
        use firsttouch_model::topology::{Memory, MemoryPolicy, Node, ProcessLimits, Topology};
        let memory = Some(Memory { total_bytes: 1 << 30, free_bytes: Some(1 << 29) });
        let node = Node { id: 0, cpus: vec![0], memory, huge_pages: Vec::new(), access: Vec::new(), memory_side_caches: Vec::new() };
        let policy = MemoryPolicy { mode: "default".to_owned(), flags: Vec::new(), nodes: Vec::new(), source: Default::default() };
        let process = ProcessLimits { policy: Some(policy), allowed_nodes: Some(vec![0]), ..ProcessLimits::default() };
        Topology { nodes: vec![node], process: Some(process), ..Topology::default() }
    }

    /// Check that the runtime, its version and the variables in force are named.
    #[test]
    fn the_runtime_is_named() {
        let program = Program {
            path: "/opt/solver".to_owned(),
            openmp: OpenMp::Gnu,
            runtime: "libgomp.so.1".to_owned(),
            runtime_file: Some("/usr/lib/libgomp.so.1".to_owned()),
            runtime_version: Some("symbols up to GOMP_5.1".to_owned()),
            ompt: Some(false),
            ..Program::default()
        };
        let environment = [("OMP_NUM_THREADS".to_owned(), "8".to_owned()), ("LD_PRELOAD".to_owned(), "x.so".to_owned())].into();
        let facts = Facts { program: Some(program), environment: Some(environment), ..Facts::default() };
        assert_eq!(
            runtime(&facts),
            "/opt/solver: OpenMP gnu, libgomp.so.1 (/usr/lib/libgomp.so.1); version: symbols up to GOMP_5.1; OMPT: no; variables in force: \
             OMP_NUM_THREADS=8"
        );
    }
}
