//! Free memory and swap.

use crate::diagnosis::{Finding, Severity};
use firsttouch_model::facts::Facts;
use firsttouch_model::format_bytes;

pub const NEARLY_FULL: &str = "node-nearly-full";
pub const SWAP: &str = "swap-in-use";

/// A node with a smaller fraction of free memory is nearly full: the kernel soon takes pages from another node.
const LEAST_FREE: f64 = 0.05;

pub fn nearly_full(facts: &Facts) -> Option<Finding> {
    let mut finding: Option<Finding> = None;
    for node in &facts.topology.nodes {
        let Some(memory) = node.memory.filter(|memory| memory.total_bytes > 0) else { continue };
        let Some(free) = memory.free_bytes.filter(|free| (*free as f64) < LEAST_FREE * memory.total_bytes as f64) else { continue };
        let files = facts.file_bytes.get(&node.id).copied().filter(|bytes| *bytes > 0);
        let held = files.map_or_else(String::new, |bytes| format!(", files hold {}", format_bytes(bytes)));
        let value = format!("{} free of {}{held}", format_bytes(free), format_bytes(memory.total_bytes));
        let source = format!("/sys/devices/system/node/node{}/meminfo", node.id);
        finding = Some(finding.unwrap_or_else(start).seen(source, value));
    }
    finding
}

fn start() -> Finding {
    let message = "less than 5 % of a node's memory is free (cached files count as used): memory first touched there soon comes from \
                   another node";
    Finding::new(NEARLY_FULL, Severity::High, message.to_owned()).remedy(
        "drop the cached files before the run: sync && echo 1 | sudo tee /proc/sys/vm/drop_caches; to see the memory of programs: numastat -m",
    )
}

pub fn swap(facts: &Facts) -> Option<Finding> {
    let swap = facts.swap?;
    let used = swap.total_bytes.checked_sub(swap.free_bytes).filter(|used| *used > 0)?;
    let message = "memory was written to swap: a page that is swapped in goes to the node of the thread that waits for it, and its fault \
                   looks like a first touch";
    Some(
        Finding::new(SWAP, Severity::Medium, message.to_owned())
            .seen("/proc/meminfo", format!("{} of {} swap in use", format_bytes(used), format_bytes(swap.total_bytes)))
            .remedy("free memory, then swap everything in: sudo swapoff -a && sudo swapon -a"),
    )
}
