//! The topology below a root: sys/devices/system, /proc, and for this system the kernel's answer on memory policy.
//!
//! A damaged or contradictory file costs what it would have told, and a doubt names it; only a machine without any
//! CPU that can be named is an error.

mod caches;
mod cpus;
mod distances;
mod domains;
mod nodes;
pub mod policy;
mod process;
mod processor;
pub(crate) mod reader;
pub(crate) mod sub_numa;

use anyhow::Result;
use firsttouch_model::topology::Topology;
pub(crate) use reader::{Reader, short};
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
    topology.page_bytes = crate::page_bytes(&crate::files::Root::new(root));
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
    Ok(topology)
}

/// Reads what lists of nodes and CPUs need, and nothing else: the CPUs, the nodes' CPUs and memory, this process's limits. It is two
/// files a node where a whole topology is dozens a CPU, and is read before every program that is started under a policy.
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
    match policy::of_this_thread() {
        // More exact than numa_maps, which tells no node numbers for local policies and no flag of balancing.
        Ok(policy) => topology.process.get_or_insert_default().policy = Some(policy),
        Err(error) => topology.doubts.push(format!(
            "the kernel does not tell the memory policy: get_mempolicy failed: {error}; a container's seccomp filter often forbids it, \
             and docker run --cap-add SYS_NICE opens it{}",
            if topology.process.as_ref().is_some_and(|limits| limits.policy.is_some()) { "; taken from /proc/self/numa_maps" } else { "" }
        )),
    }
    Ok(topology)
}
