//! What `firsttouch doctor` judges: the topology, switches of the kernel, limits of the control group, the environment, and
//! what the kernel answers to harmless calls.
//!
//! As for the topology, a damaged file only costs its own values, and a doubt names it.

mod environment;
mod quota;

use crate::bandwidth;
use crate::calls::{mempolicy, probe};
use crate::files::{Reader, chosen, short};
use crate::machine::HUGE_PAGE_BYTES;
use crate::proc::status::Status;
use crate::proc::{limits, meminfo};
use crate::topology;
use firsttouch_model::error::Result;
use firsttouch_model::facts::{Facts, Kernel, Swap};
use firsttouch_model::topology::Topology;
use std::collections::BTreeMap;
use std::path::Path;

pub use environment::matters;

/// Reads the facts recorded below `root`. The environment is unknown, and there is no kernel to ask.
///
/// # Errors
/// When nothing below `root` names the machine's CPUs.
pub fn read(root: &Path) -> Result<Facts> {
    let facts = beside(root, topology::read(root)?);
    Ok(Facts { bandwidth_counters: bandwidth::recorded(root, facts.kernel.perf_event_paranoid), ..facts })
}

/// Reads the facts of this system and the environment of this process, and tries the calls of memory policies.
/// ([`crate::calls::probe::perf_events`] and [`crate::program`] add the rest.)
///
/// # Errors
/// When nothing names the machine's CPUs.
pub fn read_this_system() -> Result<Facts> {
    // Add no doubt about get_mempolicy: a forbidden call is a finding here.
    let mut topology = topology::read(Path::new("/"))?;
    if let Ok(policy) = mempolicy::of_this_thread() {
        topology.process.get_or_insert_default().policy = Some(policy);
    }
    let mut facts = beside(Path::new("/"), topology);
    facts.environment = Some(environment::of_this_process());
    facts.limits = limits::resources();
    facts.probes = probe::memory_policy();
    facts.bandwidth_counters = bandwidth::probe();
    Ok(facts)
}

fn beside(root: &Path, topology: Topology) -> Facts {
    let mut reader = Reader::new(root);
    let choices = reader.text("sys/kernel/mm/transparent_hugepage/enabled");
    let kernel = Kernel {
        numa_balancing: reader.number("proc/sys/kernel/numa_balancing"),
        zone_reclaim_mode: reader.number("proc/sys/vm/zone_reclaim_mode"),
        perf_event_paranoid: reader.number("proc/sys/kernel/perf_event_paranoid"),
        transparent_huge_pages: choices.and_then(|text| chosen(&text).map(str::to_owned)),
        huge_page_bytes: reader.number(HUGE_PAGE_BYTES),
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
    let status = Status::parse(reader.text(STATUS)?);
    let text = status.value("Seccomp")?;
    let mode = text.parse().ok();
    if mode.is_none() {
        reader.doubt(STATUS, format_args!("expected a number after Seccomp:, found {}", short(text)));
    }
    mode
}

fn file_bytes(reader: &mut Reader, topology: &Topology) -> BTreeMap<u32, u64> {
    let of = |id: u32| {
        let text = reader.text(&format!("sys/devices/system/node/node{id}/meminfo"))?;
        Some((id, meminfo::bytes(&text, Some(id), "FilePages")?))
    };
    topology.nodes.iter().map(|node| node.id).filter_map(of).collect()
}

fn swap(reader: &mut Reader) -> Option<Swap> {
    let text = reader.text("proc/meminfo")?;
    Some(Swap { total_bytes: meminfo::bytes(&text, None, "SwapTotal")?, free_bytes: meminfo::bytes(&text, None, "SwapFree")? })
}

fn governors(reader: &mut Reader, topology: &Topology) -> BTreeMap<u32, String> {
    let mut governor = |cpu: u32| reader.text(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    topology.cpus.online.iter().filter_map(|&cpu| Some((cpu, governor(cpu).filter(|text| !text.is_empty())?))).collect()
}
