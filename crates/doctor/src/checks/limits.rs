//! Limits from control groups and from the parent of this process.

use super::threads;
use crate::diagnosis::{Finding, Severity};
use firsttouch_model::facts::Facts;
use firsttouch_model::format_bytes;
use firsttouch_model::topology::format_list;

pub const QUOTA: &str = "cpu-quota";
pub const CPUSET: &str = "cpuset";
pub const POLICY: &str = "memory-policy";
pub const OPEN_FILES: &str = "open-files-limit";
pub const ADDRESS_SPACE: &str = "address-space-limit";

/// `profile` and `check` record nothing with fewer open files: 16 of their own, and those that every process starts with.
const FILES_TO_RECORD: u64 = 20;
/// With fewer, some evidence is missing: a performance event a CPU, and five files a watched thread beside 128 others.
const FILES_FOR_ALL: u64 = 256;

pub fn quota(facts: &Facts) -> Option<Finding> {
    let quota = facts.cpu_quota.as_ref()?;
    let allowed = threads::allowed(facts).len();
    let (source, team) = threads::team(facts).unwrap_or(("", allowed));
    if team as f64 <= quota.cpus {
        return None;
    }
    let whole = (quota.cpus.floor() as usize).max(1);
    let starter = if source.is_empty() {
        format!("a program that starts a thread for each of the {allowed} CPUs it sees")
    } else {
        format!("a team of {team} threads")
    };
    let message = format!(
        "the control group allows the time of {:.1} CPUs: {starter} is throttled in every period, all threads wait for throttled ones, and times say little about placement",
        quota.cpus
    );
    let mut finding =
        Finding::new(QUOTA, if source.is_empty() { Severity::Low } else { Severity::Medium }, message).seen(&quota.file, &quota.value);
    if !source.is_empty() {
        finding = finding.seen(source, team);
    }
    Some(finding.remedy(format!("export OMP_NUM_THREADS={whole}; or raise the limit (docker run --cpus=N, systemd CPUQuota=)")))
}

pub fn cpuset(facts: &Facts) -> Option<Finding> {
    let limits = facts.topology.process.as_ref()?;
    let memory = limits.allowed_nodes.as_ref()?;
    let with_memory: Vec<u32> =
        facts.topology.nodes.iter().filter(|node| node.memory.is_none_or(|memory| memory.total_bytes > 0)).map(|node| node.id).collect();
    let forbidden: Vec<u32> = with_memory.iter().copied().filter(|id| !memory.contains(id)).collect();
    if forbidden.is_empty() {
        return None;
    }
    let running = facts.topology.nodes_of(&threads::allowed(facts));
    let stranded: Vec<u32> = running.into_iter().filter(|id| forbidden.contains(id)).collect();
    let finding = if stranded.is_empty() {
        let message = format!(
            "this process may only use memory of nodes {}: of {} nodes with memory, the others are not available",
            format_list(memory),
            with_memory.len()
        );
        Finding::new(CPUSET, Severity::Low, message)
    } else {
        let message = format!(
            "this process may run on nodes {}, whose memory it may not use: all that threads touch there is placed on nodes {}",
            format_list(&stranded),
            format_list(memory)
        );
        Finding::new(CPUSET, Severity::High, message)
    };
    let mut finding = finding.seen("/proc/self/status", format!("Mems_allowed_list: {}", format_list(memory)));
    if let Some(cpus) = &limits.allowed_cpus {
        finding = finding.seen("/proc/self/status", format!("Cpus_allowed_list: {}", format_list(cpus)));
    }
    let group = limits.cpuset.as_ref().map(|cpuset| cpuset.group.clone());
    if let Some(group) = &group {
        finding = finding.seen("/proc/self/cgroup", format!("cpuset of {group}"));
    }
    let all = format_list(&with_memory);
    Some(finding.remedy(format!(
        "ask for CPUs and memory of the same nodes: docker run --cpuset-cpus=CPUS --cpuset-mems={all}; systemd-run -p AllowedMemoryNodes={all}; or the batch system's option"
    )))
}

/// Policies under which the first touch decides where a page is (mm/mempolicy.c).
const FIRST_TOUCH: [&str; 2] = ["default", "local"];

pub fn policy(facts: &Facts) -> Option<Finding> {
    let policy = facts.topology.process.as_ref()?.policy.as_ref()?;
    if FIRST_TOUCH.contains(&policy.mode.as_str()) {
        return None;
    }
    let nodes = format_list(&policy.nodes);
    let value = if nodes.is_empty() { policy.mode.clone() } else { format!("{}: {nodes}", policy.mode) };
    let message =
        format!("programs started here inherit a memory policy ({value}): it places their pages, not the thread that first touches them");
    let source = if policy.source == "numa_maps" { "/proc/self/numa_maps" } else { "get_mempolicy" };
    Some(
        Finding::new(POLICY, Severity::Medium, message)
            .seen(source, value)
            .remedy("unless this is intended: start without numactl, or with numactl --localalloc COMMAND"),
    )
}

pub fn open_files(facts: &Facts) -> Option<Finding> {
    let files = facts.limits?.open_files.filter(|files| *files < FILES_FOR_ALL)?;
    let (severity, message) = if files < FILES_TO_RECORD {
        (Severity::High, "too few files may be open for a recording: profile runs the program unobserved, and check judges nothing")
    } else {
        (
            Severity::Medium,
            "few files may be open: profile and check may see first touches only by the pages that appear, and watch few threads or none; \
             --pid may fail for programs with many threads",
        )
    };
    Some(
        Finding::new(OPEN_FILES, severity, message.to_owned())
            .seen("/proc/self/limits", format!("Max open files: {files} (hard limit)"))
            .remedy(format!("ulimit -n {FILES_FOR_ALL} in a new shell; if that is refused: sudo prlimit --nofile=4096 --pid $$")),
    )
}

/// The limit is no evidence that memory is short, but that calls may fail that work elsewhere.
pub fn address_space(facts: &Facts) -> Option<Finding> {
    let bytes = facts.limits?.address_space_bytes?;
    let message = "the address space of programs is limited: where the limit leaves too little room beside the program's own memory, \
                   profile and check run without their agent (objects are named by mapping, and their allocations are not seen), and \
                   run --plan places nothing; the report then says so";
    Some(
        Finding::new(ADDRESS_SPACE, Severity::Low, message.to_owned())
            .seen("/proc/self/limits", format!("Max address space: {}", format_bytes(bytes)))
            .remedy("ulimit -v unlimited in a new shell; in batch systems: ask for the memory instead (e.g. --mem of Slurm)"),
    )
}
