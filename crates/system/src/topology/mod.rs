//! The topology below a root: sys/devices/system, /proc, and for this system the kernel's answer on memory policy.
//!
//! A damaged or contradictory file only costs its own values, and a doubt names it. The only error is a machine without any known CPU.

mod caches;
pub(crate) mod cpus;
mod distances;
mod domains;
pub(crate) mod nodes;
mod process;
mod processor;
pub(crate) mod sub_numa;

use crate::calls::mempolicy;
use crate::files::Reader;
use firsttouch_model::error::Result;
use firsttouch_model::topology::Topology;
use std::path::Path;

/// Reads the topology recorded below `root`.
///
/// # Errors
/// When nothing below `root` names the machine's CPUs.
pub fn read(root: &Path) -> Result<Topology> {
    let mut reader = Reader::new(root);
    let mut topology = Topology { processor: processor::read(&mut reader), ..Topology::default() };
    topology.cpus = cpus::lists(&mut reader)?;
    topology.nodes = nodes::read(&mut reader, &topology.cpus);
    topology.page_bytes = crate::files::page_bytes(root);
    topology.distances = distances::read(&mut reader, &topology.nodes);
    let known = cpus::read(&mut reader, &topology.cpus.online);
    topology.packages = cpus::packages(&known, &topology.nodes);
    topology.dies = cpus::dies(&known);
    topology.cores = cpus::cores(&mut reader, &known);
    topology.caches = caches::read(&mut reader, &topology.cpus.online);
    topology.sub_numa = sub_numa::recognise(&topology);
    topology.process = Some(process::read(&mut reader));
    topology.scheduling_domains = domains::read(&mut reader, &topology.cpus.online);
    topology.doubts = reader.doubts;
    topology.make_names_safe();
    Ok(topology)
}

/// Reads only what lists of nodes and CPUs need: the CPUs, the nodes' CPUs and memory, this process's limits. That is two files a
/// node, where a whole topology is dozens of files a CPU. `run` reads it before every program that it starts.
///
/// # Errors
/// When nothing below `root` names the machine's CPUs.
pub fn read_outline(root: &Path) -> Result<Topology> {
    let mut reader = Reader::new(root);
    let cpus = cpus::lists(&mut reader)?;
    let nodes = nodes::outline(&mut reader, &cpus);
    let process = Some(process::outline(&mut reader));
    Ok(Topology { cpus, nodes, process, doubts: reader.doubts, ..Topology::default() })
}

/// Reads the topology of this system, and asks the kernel for this thread's memory policy.
///
/// # Errors
/// When nothing names the machine's CPUs.
pub fn read_this_system() -> Result<Topology> {
    let mut topology = read(Path::new("/"))?;
    match mempolicy::of_this_thread() {
        // More exact than numa_maps, which has no node numbers for local policies and no balancing flag.
        Ok(policy) => topology.process.get_or_insert_default().policy = Some(policy),
        Err(error) => topology.doubts.push(format!(
            "the kernel does not report the memory policy: get_mempolicy failed: {error}; a container's seccomp filter often forbids it, \
             and docker run --cap-add SYS_NICE allows it{}",
            if topology.process.as_ref().is_some_and(|limits| limits.policy.is_some()) { "; taken from /proc/self/numa_maps" } else { "" }
        )),
    }
    Ok(topology)
}
