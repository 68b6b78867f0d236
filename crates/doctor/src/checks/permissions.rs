//! What a container or a sandbox forbids.

use crate::diagnosis::{Finding, Severity};
use firsttouch_model::facts::{BandwidthCounters, Facts, Probe, Probes};
use firsttouch_model::remedy::{NO_NUMA, PROFILE, SYS_NICE};

pub const PERF: &str = "perf-forbidden";
pub const WATCHPOINTS: &str = "watchpoints-missing";
pub const MEMPOLICY: &str = "mempolicy-forbidden";
pub const BANDWIDTH: &str = "bandwidth-counters";

/// Above this level, kernel.perf_event_paranoid forbids even events of the user's own processes (Debian, Ubuntu, Android).
const HIGHEST_ALLOWED: i64 = 2;
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const STATUS: &str = "/proc/self/status";

/// The name of an errno (asm-generic/errno-base.h, errno.h).
fn error_name(errno: i32) -> String {
    let names = [
        (1, "EPERM"),
        (2, "ENOENT"),
        (13, "EACCES"),
        (16, "EBUSY"),
        (19, "ENODEV"),
        (22, "EINVAL"),
        (24, "EMFILE"),
        (28, "ENOSPC"),
        (38, "ENOSYS"),
        (95, "EOPNOTSUPP"),
    ];
    names.iter().find(|(number, _)| *number == errno).map_or_else(|| format!("error {errno}"), |(_, name)| (*name).to_owned())
}

fn has_filter(facts: &Facts) -> bool {
    facts.kernel.seccomp.is_some_and(|mode| mode != 0)
}

/// Adds to a finding what forbids the calls, as far as it is known.
fn with_filter(finding: Finding, facts: &Facts) -> Finding {
    match facts.kernel.seccomp {
        Some(mode) if mode != 0 => finding.seen(STATUS, format!("Seccomp: {mode}")),
        _ => finding,
    }
}

pub fn perf(facts: &Facts) -> Option<Finding> {
    let paranoid = facts.kernel.perf_event_paranoid;
    let is_strict = paranoid.filter(|level| *level > HIGHEST_ALLOWED);
    let errno = match facts.probes.page_faults {
        Probe::Allowed => return None,
        // A recorded machine: the level says what an ordinary user may do.
        Probe::NotTried => {
            is_strict?;
            None
        }
        Probe::Refused(errno) => Some(errno),
    };
    // docs/adr/0022: profile works without them, less exactly.
    let message = "performance events are forbidden, even of your own processes: firsttouch profile sees first touches only by the pages that \
                   appear, and accesses only by timers in programs that it starts; of static programs and with --pid it sees no accesses";
    let mut finding = Finding::new(PERF, Severity::High, message.to_owned());
    if let Some(errno) = errno {
        finding = finding.seen("perf_event_open", error_name(errno));
    }
    if let Some(level) = paranoid {
        finding = finding.seen(PARANOID, level);
    }
    let container = "docker run --cap-add PERFMON, or a seccomp profile that allows perf_event_open: --security-opt seccomp=FILE";
    let remedy = if is_strict.is_some() {
        let also = if has_filter(facts) { format!("; in a container also: {container}") } else { String::new() };
        format!("sudo sysctl kernel.perf_event_paranoid=2{also}")
    } else if paranoid.is_none() {
        "this kernel or sandbox has no performance events: run on the host, or on a kernel with CONFIG_PERF_EVENTS".to_owned()
    } else {
        format!("in a container: {container}")
    };
    Some(with_filter(finding, facts).remedy(remedy))
}

/// Only if other events are allowed: else [`perf`] has reported it.
pub fn watchpoints(facts: &Facts) -> Option<Finding> {
    let errno = facts.probes.watchpoint.refused().filter(|_| facts.probes.page_faults == Probe::Allowed)?;
    let message = "watchpoints are not available: firsttouch profile sees which threads touch memory first, but not which threads use it";
    let finding = Finding::new(WATCHPOINTS, Severity::Medium, message.to_owned()).seen("perf_event_open (breakpoint)", error_name(errno));
    // ENOSPC: all debug registers are in use (kernel/events/hw_breakpoint.c).
    let remedy = if error_name(errno) == "ENOSPC" {
        "end the debuggers that use the processor's debug registers: ps -C gdb,lldb,rr"
    } else {
        "run on the host, or in a virtual machine whose hypervisor supports debug registers"
    };
    Some(finding.remedy(remedy))
}

/// Systems without such counters are many, and nothing would help there.
pub fn bandwidth(facts: &Facts) -> Option<Finding> {
    let BandwidthCounters::Refused { why, remedy } = &facts.bandwidth_counters else { return None };
    let message = "this system's counters of memory bandwidth cannot be read: report --timeline has the bandwidth that samples show, and not the measured one";
    let finding = Finding::new(BANDWIDTH, Severity::Low, message.to_owned()).seen("counters", why);
    Some(finding.remedy(if remedy.is_empty() { "nothing is known to help on this system" } else { remedy.as_str() }))
}

pub fn mempolicy(facts: &Facts) -> Option<Finding> {
    let Probes { get_mempolicy, set_mempolicy, mbind, move_pages, .. } = facts.probes;
    let calls = [("set_mempolicy", set_mempolicy), ("mbind", mbind), ("get_mempolicy", get_mempolicy), ("move_pages", move_pages)];
    let refused: Vec<(&str, i32)> = calls.iter().filter_map(|(name, probe)| Some((*name, probe.refused()?))).collect();
    let (_, errno) = refused.first()?;
    let is_one_node = facts.topology.nodes.len() < 2;
    // A kernel without NUMA: nothing is forbidden, and there is nothing to place.
    if is_one_node && error_name(*errno) == "ENOSYS" && !has_filter(facts) {
        return None;
    }
    let names = refused.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let placing = set_mempolicy.refused().is_some() || mbind.refused().is_some();
    let message = if placing {
        format!(
            "{names}: forbidden here: run with a policy (--interleave, --membind, ...), run --plan, numactl and programs that place their memory \
             fail, or place nothing"
        )
    } else {
        format!(
            "{names}: forbidden here: profile, maps and map cannot ask for the nodes of pages, and derive them from who touched them first"
        )
    };
    let severity = match (is_one_node, placing) {
        (true, _) => Severity::Low,
        (false, true) => Severity::High,
        (false, false) => Severity::Medium,
    };
    let message = if is_one_node { format!("{message} (on this machine's one node, all memory is local anyway)") } else { message };
    let mut finding = Finding::new(MEMPOLICY, severity, message);
    for (name, errno) in &refused {
        finding = finding.seen(*name, error_name(*errno));
    }
    let remedy = if error_name(*errno) == "ENOSYS" && !has_filter(facts) {
        NO_NUMA.to_owned()
    } else if refused.iter().all(|(name, _)| *name == "move_pages") {
        format!("in a container: {PROFILE}")
    } else if move_pages.refused().is_some() {
        format!("in a container: {SYS_NICE}, which allows all but move_pages; for all, {PROFILE}")
    } else {
        format!("in a container: {SYS_NICE}, or {PROFILE}")
    };
    Some(with_filter(finding, facts).remedy(remedy))
}
