//! What `firsttouch doctor` judges: the topology, switches of the kernel, limits of the control group, the environment, and
//! what the kernel answers to harmless calls.
//!
//! As for the topology, a damaged file costs what it would have told, and a doubt names it.

mod environment;
pub mod probe;
mod quota;

use crate::topology;
use crate::topology::reader::{Reader, short};
use anyhow::Result;
use firsttouch_model::facts::{Facts, Kernel, Swap};
use firsttouch_model::topology::Topology;
use std::collections::BTreeMap;
use std::path::Path;

pub use environment::matters;

/// Reads the facts recorded below `root`; nothing is known of an environment, and nobody can be asked.
///
/// # Errors
/// When nothing below `root` names the machine's CPUs.
pub fn read(root: &Path) -> Result<Facts> {
    Ok(beside(root, topology::read(root)?))
}

/// Reads the facts of this system, takes this process's environment, and asks the kernel about memory policies.
/// (perf_event_open and programs are the capture's to ask.)
///
/// # Errors
/// When nothing names the machine's CPUs.
pub fn read_this_system() -> Result<Facts> {
    // Without get_mempolicy's doubt: that the call is forbidden is a finding here.
    let mut topology = topology::read(Path::new("/"))?;
    if let Ok(policy) = topology::policy::of_this_thread() {
        topology.process.get_or_insert_default().policy = Some(policy);
    }
    let mut facts = beside(Path::new("/"), topology);
    facts.environment = Some(environment::of_this_process());
    facts.probes = probe::memory_policy();
    Ok(facts)
}

fn beside(root: &Path, topology: Topology) -> Facts {
    let mut reader = Reader::new(root);
    let choices = reader.text("sys/kernel/mm/transparent_hugepage/enabled");
    let kernel = Kernel {
        numa_balancing: reader.number("proc/sys/kernel/numa_balancing"),
        zone_reclaim_mode: reader.number("proc/sys/vm/zone_reclaim_mode"),
        perf_event_paranoid: reader.number("proc/sys/kernel/perf_event_paranoid"),
        transparent_huge_pages: choices.and_then(|text| crate::chosen(&text).map(str::to_owned)),
        huge_page_bytes: reader.number("sys/kernel/mm/transparent_hugepage/hpage_pmd_size"),
        seccomp: seccomp(&mut reader),
    };
    let mut facts = Facts {
        kernel,
        file_bytes: file_bytes(&mut reader, &topology),
        swap: swap(&mut reader),
        governors: governors(&mut reader, &topology),
        cpu_quota: quota::read(&mut reader),
        preloaded_everywhere: words(&reader.text("etc/ld.so.preload").unwrap_or_default()),
        ..Facts::default()
    };
    facts.doubts = topology.doubts.iter().cloned().chain(reader.doubts).collect();
    facts.topology = topology;
    facts
}

fn words(text: &str) -> Vec<String> {
    text.split([':', ' ', '\t', '\n']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn seccomp(reader: &mut Reader) -> Option<i64> {
    const STATUS: &str = "proc/self/status";
    let status = reader.text(STATUS)?;
    let text = status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?.trim();
    let mode = text.parse().ok();
    if mode.is_none() {
        reader.doubt(STATUS, format_args!("expected a number after Seccomp:, found {}", short(text)));
    }
    mode
}

/// A line of a meminfo file, such as `Node 0 FilePages: 12 kB`, in bytes.
fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once(key).map(|(_, value)| value))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn file_bytes(reader: &mut Reader, topology: &Topology) -> BTreeMap<u32, u64> {
    let of = |id: u32| {
        let text = reader.text(&format!("sys/devices/system/node/node{id}/meminfo"))?;
        Some((id, meminfo_bytes(&text, " FilePages:")?))
    };
    topology.nodes.iter().map(|node| node.id).filter_map(of).collect()
}

fn swap(reader: &mut Reader) -> Option<Swap> {
    let text = reader.text("proc/meminfo")?;
    Some(Swap { total_bytes: meminfo_bytes(&text, "SwapTotal:")?, free_bytes: meminfo_bytes(&text, "SwapFree:")? })
}

fn governors(reader: &mut Reader, topology: &Topology) -> BTreeMap<u32, String> {
    let mut governor = |cpu: u32| reader.text(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    topology.cpus.online.iter().filter_map(|&cpu| Some((cpu, governor(cpu).filter(|text| !text.is_empty())?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check lines of meminfo, with and without a node, and that damage is no figure.
    #[test]
    fn meminfo_is_read() {
        assert_eq!(meminfo_bytes("Node 0 MemFree: 4 kB\nNode 0 FilePages:   12 kB\n", " FilePages:"), Some(12 << 10));
        assert_eq!(meminfo_bytes("SwapTotal:       0 kB", "SwapTotal:"), Some(0));
        for text in ["", "SwapTotal:", "SwapTotal: kB", "SwapTotal: 5", "SwapTotal: -1 kB", "SwapTotal: 99999999999999999999 kB"] {
            assert_eq!(meminfo_bytes(text, "SwapTotal:"), None, "{text}");
        }
        assert_eq!(meminfo_bytes("SwapTotal: 18446744073709551615 kB", "SwapTotal:"), None, "more bytes than there are numbers");
    }
}
