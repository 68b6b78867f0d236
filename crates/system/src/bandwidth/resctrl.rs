//! Monitoring of memory bandwidth by resctrl (Documentation/filesystems/resctrl.rst). It is only read: nothing is mounted or written.

use super::places::{CpuNodes, numbered};
use crate::files::Root;
use std::collections::BTreeMap;

pub const MOUNT: &str = "sys/fs/resctrl";
pub const TOTAL: &str = "mbm_total_bytes";
pub const LOCAL: &str = "mbm_local_bytes";

/// The counters of the CPUs that share a level-3 cache, for one group of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The node of the CPUs, not of the memory.
    pub node: u32,
    pub total: String,
    pub local: Option<String>,
}

/// The counters of all nodes; empty if resctrl is not mounted, or does not monitor bandwidth.
///
/// # Errors
/// Names the domain whose node is not known. A part of the domains would not be the bandwidth.
pub fn find(root: &Root) -> Result<Vec<Domain>, String> {
    // Tasks of other groups do not count in the root group.
    let is_group = |name: &String| !["info", "mon_groups", "mon_data"].contains(&name.as_str());
    let folders = root.folders(MOUNT).unwrap_or_default().into_iter().flatten().filter(is_group);
    let groups = std::iter::once(format!("{MOUNT}/mon_data")).chain(folders.map(|group| format!("{MOUNT}/{group}/mon_data")));
    let mut domains = Vec::new();
    let mut caches: Option<BTreeMap<u32, _>> = None;
    for folder in groups {
        for id in ids(root, &folder) {
            let caches = caches.get_or_insert_with(|| CpuNodes::read(root).by_cache(root));
            let domain = format!("{folder}/mon_L3_{id}");
            // With sub-NUMA clusters, the domain has a folder for each node (Linux 6.11).
            let parts = numbered(root, &domain, "mon_sub_L3_");
            let number = id.parse::<u32>().ok();
            let placed: Vec<(u32, String)> = match (parts.is_empty(), number.and_then(|number| caches.get(&number))) {
                (false, _) => {
                    ids_of(root, &domain, "mon_sub_L3_").into_iter().map(|(node, name)| (node, format!("{domain}/{name}"))).collect()
                }
                (true, Some(nodes)) if nodes.len() == 1 => nodes.iter().map(|node| (*node, domain.clone())).collect(),
                (true, Some(nodes)) => {
                    return Err(format!("{}: its cache serves {} nodes", root.path(&domain).display(), nodes.len()));
                }
                (true, None) => return Err(format!("{}: no CPU has a level-3 cache with this id", root.path(&domain).display())),
            };
            for (node, folder) in placed {
                let total = format!("{folder}/{TOTAL}");
                if root.bytes(&total).is_some() {
                    let local = Some(format!("{folder}/{LOCAL}")).filter(|local| root.bytes(local).is_some());
                    domains.push(Domain { node, total, local });
                }
            }
        }
    }
    Ok(domains)
}

/// The ids of the domains in a folder, as they are written: `00`.
fn ids(root: &Root, folder: &str) -> Vec<String> {
    ids_of(root, folder, "mon_L3_").into_iter().filter_map(|(_, name)| name.strip_prefix("mon_L3_").map(str::to_owned)).collect()
}

fn ids_of(root: &Root, folder: &str, prefix: &str) -> Vec<(u32, String)> {
    let mut names = root.names(folder).unwrap_or_default();
    names.sort_unstable();
    names.into_iter().filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name))).collect()
}

/// Bytes, or `None` for what the kernel writes instead: `Unavailable`, `Error`, `Unassigned`.
pub fn bytes(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Whether the processor can monitor bandwidth, and resctrl is not mounted.
pub fn is_not_mounted(root: &Root) -> bool {
    // The kernel makes the folder if the processor has anything that resctrl shows. (/proc/cpuinfo takes long on large machines.)
    if root.names(MOUNT).map_or(true, |names| !names.is_empty()) {
        return false;
    }
    let processor = root.text("proc/cpuinfo").ok().flatten().unwrap_or_default();
    let has_flag = |line: &str| line.starts_with("flags") && line.split_ascii_whitespace().any(|flag| flag == "cqm_mbm_total");
    processor.lines().any(has_flag)
}
