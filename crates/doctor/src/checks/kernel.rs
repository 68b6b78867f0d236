//! Settings of the kernel.

use crate::diagnosis::{Finding, Severity};
use firsttouch_model::facts::Facts;
use firsttouch_model::format_bytes;
use firsttouch_model::topology::format_list;

pub const BALANCING: &str = "numa-balancing";
pub const HUGE_PAGES: &str = "huge-pages-always";
pub const ZONE_RECLAIM: &str = "zone-reclaim";
pub const GOVERNOR: &str = "frequency-governor";

/// Bits of kernel.numa_balancing (include/linux/sched/sysctl.h): 1 moves pages to their users, 2 moves hot pages to faster memory.
const TIERING_ONLY: i64 = 2;

pub fn balancing(facts: &Facts) -> Option<Finding> {
    let mode = facts.kernel.numa_balancing.filter(|mode| *mode != 0)?;
    let (severity, message) = if mode == TIERING_ONLY {
        (
            Severity::Low,
            "the kernel moves hot pages to faster memory and cold ones away while a program runs: where a page was first touched is not where it stays",
        )
    } else {
        (
            Severity::Medium,
            "the kernel moves pages and threads between nodes while a program runs (NUMA balancing): placement changes with time and from run to run, and every page it watches costs faults",
        )
    };
    Some(
        Finding::new(BALANCING, severity, message.to_owned())
            .seen("/proc/sys/kernel/numa_balancing", mode)
            .remedy("for programs that place their memory themselves: sudo sysctl kernel.numa_balancing=0"),
    )
}

pub fn huge_pages(facts: &Facts) -> Option<Finding> {
    let choice = facts.kernel.transparent_huge_pages.as_ref().filter(|choice| *choice == "always")?;
    let size = facts.kernel.huge_page_bytes.filter(|bytes| *bytes > 0);
    let size_word = size.map_or_else(|| "huge pages".to_owned(), |bytes| format!("pages of {}", format_bytes(bytes)));
    let message = format!(
        "all programs get {size_word}, and each lies on one node: if parts of several threads share one, it is remote for all but the first"
    );
    Some(
        Finding::new(HUGE_PAGES, Severity::Low, message)
            .seen("/sys/kernel/mm/transparent_hugepage/enabled", choice)
            .remedy("leave the choice to the programs: echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
    )
}

pub fn zone_reclaim(facts: &Facts) -> Option<Finding> {
    let mode = facts.kernel.zone_reclaim_mode.filter(|mode| *mode != 0)?;
    let message = "when a node is full, the kernel drops its cached files, and may write out pages, before it takes memory of another node: \
                   allocations stall, and files are read from the disk again";
    Some(
        Finding::new(ZONE_RECLAIM, Severity::Low, message.to_owned())
            .seen("/proc/sys/vm/zone_reclaim_mode", mode)
            .remedy("unless it was set on purpose: sudo sysctl vm.zone_reclaim_mode=0"),
    )
}

pub fn governor(facts: &Facts) -> Option<Finding> {
    let others: Vec<u32> = facts.governors.iter().filter(|(_, governor)| *governor != "performance").map(|(cpu, _)| *cpu).collect();
    let (first, governor) = others.first().and_then(|cpu| facts.governors.get_key_value(cpu))?;
    let message = format!(
        "the frequency of CPUs {} follows their load, so times of short runs vary, and a better placement may look worse",
        format_list(&others)
    );
    Some(
        Finding::new(GOVERNOR, Severity::Low, message)
            .seen(format!("/sys/devices/system/cpu/cpu{first}/cpufreq/scaling_governor"), governor)
            .remedy("while you measure: sudo cpupower frequency-set -g performance"),
    )
}
