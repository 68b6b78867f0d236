//! CPUs and what they are grouped in: cores (SMT siblings), dies, packages; sys/devices/system/cpu/cpuN/topology.

use crate::files::Reader;
use crate::proc::stat;
use firsttouch_model::error::{Error, Result};
use firsttouch_model::topology::{Core, CpuLists, Die, Node, Package};
use std::collections::{BTreeMap, BTreeSet};

const CPUS: &str = "sys/devices/system/cpu";

/// The CPUs that are online, from the best available source.
///
/// # Errors
/// When nothing names a CPU.
pub fn online(reader: &mut Reader) -> Result<Vec<u32>> {
    let mut online = reader.list(&format!("{CPUS}/online")).unwrap_or_default();
    if online.is_empty() {
        online = from_nodes(reader);
    }
    if online.is_empty() {
        online = stat::online_cpus(&reader.text("proc/stat").unwrap_or_default());
    }
    if online.is_empty() {
        let causes = if reader.doubts.is_empty() { String::new() } else { format!(" ({})", reader.doubts.join("; ")) };
        return Err(Error::not_found(format!(
            "cannot find the machine's CPUs: neither {CPUS}/online nor proc/stat names any{causes}; are /proc and /sys missing in this container, or in the recorded folder?"
        )));
    }
    Ok(online)
}

/// The CPUs that are online, and those that could be.
///
/// # Errors
/// When nothing names a CPU.
pub fn lists(reader: &mut Reader) -> Result<CpuLists> {
    let online = online(reader)?;
    // `offline` also lists empty slots, of which virtual machines have hundreds; lscpu uses `present` too.
    let present = reader.list(&format!("{CPUS}/present"));
    if let Some(cpu) = present.as_ref().and_then(|present| online.iter().find(|cpu| present.binary_search(cpu).is_err())) {
        reader.doubt(&format!("{CPUS}/present"), format_args!("lacks CPU {cpu}, which is online"));
    }
    let mut offline = present.or_else(|| reader.list(&format!("{CPUS}/offline"))).unwrap_or_default();
    offline.retain(|cpu| online.binary_search(cpu).is_err());
    Ok(CpuLists { online, offline })
}

fn from_nodes(reader: &mut Reader) -> Vec<u32> {
    let mut cpus = BTreeSet::new();
    for node in reader.numbered("sys/devices/system/node", "node") {
        cpus.extend(reader.list(&format!("sys/devices/system/node/node{node}/cpulist")).unwrap_or_default());
    }
    cpus.into_iter().collect()
}

/// The contents of one CPU's topology directory.
pub struct Cpu {
    id: u32,
    package: Option<u32>,
    die: Option<u32>,
    core: Option<u32>,
    siblings: Option<Vec<u32>>,
}

pub fn read(reader: &mut Reader, online: &[u32]) -> Vec<Cpu> {
    let mut cpus = Vec::with_capacity(online.len());
    for &id in online {
        let folder = format!("{CPUS}/cpu{id}/topology");
        // Firmware without numbers for packages or dies gives -1 (or 65535, in 16 bits, for clusters): assume one.
        let mut number =
            |name: &str| reader.number::<i64>(&format!("{folder}/{name}")).map(|number| u32::try_from(number).ok().unwrap_or(0));
        let (package, die, core) = (number("physical_package_id"), number("die_id"), number("core_id"));
        // core_cpus_list replaced thread_siblings_list in Linux 5.3.
        let mut file = format!("{folder}/core_cpus_list");
        let mut siblings = reader.list(&file);
        if siblings.is_none() {
            file = format!("{folder}/thread_siblings_list");
            siblings = reader.list(&file);
        }
        if let Some(list) = &siblings
            && list.binary_search(&id).is_err()
        {
            reader.doubt(&file, format_args!("CPU {id} is not among its own siblings; taken as a core of its own"));
            siblings = None;
        }
        cpus.push(Cpu { id, package, die, core, siblings });
    }
    let without = cpus.iter().filter(|cpu| cpu.package.is_none()).count();
    if without > 0 {
        reader.doubt(
            &format!("{CPUS}/cpuN/topology/physical_package_id"),
            format_args!("cannot be read for {without} of {} CPUs; their packages are unknown", cpus.len()),
        );
    }
    cpus
}

pub fn packages(cpus: &[Cpu], nodes: &[Node]) -> Vec<Package> {
    let mut packages: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for cpu in cpus {
        if let Some(id) = cpu.package {
            packages.entry(id).or_default().push(cpu.id);
        }
    }
    packages.into_iter().map(|(id, cpus)| Package { id, nodes: nodes_of(nodes, &cpus), cpus }).collect()
}

fn nodes_of(nodes: &[Node], cpus: &[u32]) -> Vec<u32> {
    nodes.iter().filter(|node| node.cpus.iter().any(|cpu| cpus.binary_search(cpu).is_ok())).map(|node| node.id).collect()
}

/// Dies, if the kernel reports them (Linux 5.2).
pub fn dies(cpus: &[Cpu]) -> Vec<Die> {
    let mut dies: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for cpu in cpus {
        if let (Some(package), Some(die)) = (cpu.package, cpu.die) {
            dies.entry((package, die)).or_default().push(cpu.id);
        }
    }
    dies.into_iter().map(|((package, id), cpus)| Die { id, package, cpus }).collect()
}

/// Cores by their sibling lists; a CPU in the lists of two cores stays with the first.
pub fn cores(reader: &mut Reader, cpus: &[Cpu]) -> Vec<Core> {
    let known: BTreeMap<u32, &Cpu> = cpus.iter().map(|cpu| (cpu.id, cpu)).collect();
    let mut taken = BTreeSet::new();
    let mut cores = Vec::new();
    for cpu in cpus {
        if taken.contains(&cpu.id) {
            continue;
        }
        let mut members = Vec::new();
        for sibling in cpu.siblings.as_deref().unwrap_or(&[cpu.id]) {
            // Some kernels list offline siblings; skip them.
            let Some(other) = known.get(sibling) else { continue };
            let agrees = other.id == cpu.id || other.siblings.as_deref() == cpu.siblings.as_deref() && other.package == cpu.package;
            if agrees && taken.insert(other.id) {
                members.push(other.id);
            } else if !agrees {
                reader.doubt(
                    &format!("{CPUS}/cpu{}/topology/core_cpus_list", cpu.id),
                    format_args!("names CPU {sibling} as a sibling, which that CPU's own files contradict; not taken as siblings"),
                );
            }
        }
        cores.push(Core { id: cpu.core, package: cpu.package, cpus: members });
    }
    cores
}
