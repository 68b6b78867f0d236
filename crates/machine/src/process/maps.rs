//! Memory by mapping: numa_maps has nodes and policies, smaps the rest; joined by start address.

use super::memory::{add, bytes_by_node, numa_mappings, sums};
use super::numa_maps::NumaMapping;
use super::smaps::{self, SizedMapping};
use super::{file, name};
use anyhow::Result;
use firsttouch_domain::system::{Mapping, ProcessMaps};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads the mappings of a process.
///
/// # Errors
/// When it is gone, or may not be read.
pub fn maps(root: &Path, pid: i32) -> Result<ProcessMaps> {
    let mut doubts = Vec::new();
    let mut memory = sums(root, pid)?;
    let told = numa_mappings(root, pid, &mut doubts)?;
    let (sized, damaged) = smaps::parse(&file(root, pid, "smaps")?.unwrap_or_default());
    if damaged > 0 {
        doubts.push(format!("proc/{pid}/smaps: {damaged} lines are damaged; sizes of mappings may be wrong"));
    }
    let base = crate::page_bytes(&crate::files::Root::new(root));
    let mut mappings = join(told.as_deref(), sized, base, &mut doubts);
    mappings.sort_by_key(|mapping| mapping.start);
    if told.is_some() {
        let mut nodes = BTreeMap::new();
        mappings.iter().filter_map(|mapping| mapping.nodes.as_ref()).for_each(|bytes| add(&mut nodes, bytes));
        memory.nodes = Some(nodes);
    }
    if mappings.is_empty() && memory.rss_bytes.is_none() {
        doubts.push(format!("process {pid} has no memory of its own: it is a thread of the kernel, or has ended"));
    }
    Ok(ProcessMaps { pid, name: name(root, pid), memory, mappings, objects: Vec::new(), doubts })
}

fn join(told: Option<&[NumaMapping]>, sized: Vec<SizedMapping>, base: Option<u64>, doubts: &mut Vec<String>) -> Vec<Mapping> {
    let mut by_start: BTreeMap<u64, SizedMapping> = sized.into_iter().map(|mapping| (mapping.start, mapping)).collect();
    let mut mappings = Vec::new();
    let (mut unsized_ones, mut contradictions, mut impossible) = (0, 0, 0);
    for told in told.unwrap_or_default() {
        let sized = by_start.remove(&told.start);
        let from_smaps = sized.as_ref().and_then(|sized| sized.page_bytes);
        let by_node = bytes_by_node(told, from_smaps, base);
        impossible += usize::from(by_node.is_none());
        unsized_ones += usize::from(sized.is_none());
        contradictions += usize::from(told.page_bytes.zip(from_smaps).is_some_and(|(ours, theirs)| ours != theirs));
        let sized = sized.unwrap_or_else(|| SizedMapping { start: told.start, end: told.start, ..SizedMapping::default() });
        let mut mapping = of_smaps(sized);
        if mapping.name.is_empty() {
            mapping.name.clone_from(&told.name);
        }
        mapping.policy = Some(told.policy.clone());
        mapping.hugetlb |= told.huge;
        if let Some((nodes, page_bytes)) = by_node {
            mapping.resident_bytes = nodes.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
            mapping.page_bytes = Some(page_bytes);
            mapping.nodes = Some(nodes);
        }
        mappings.push(mapping);
    }
    if impossible > 0 {
        doubts.push(format!(
            "{impossible} mappings of huge pages do not tell the size of a page, or impossible numbers; they are not counted by node"
        ));
    }
    if contradictions > 0 {
        doubts.push(format!("numa_maps and smaps name different page sizes for {contradictions} mappings; taken from numa_maps"));
    }
    // Between the two files the process went on; what has nothing resident is of no interest.
    let missing = by_start.values().filter(|mapping| mapping.rss_bytes > 0).count();
    if told.is_some() && (missing > 0 || unsized_ones > 0) {
        let all = missing + unsized_ones;
        doubts.push(format!("{all} mappings are in only one of numa_maps and smaps (the process was mapping memory meanwhile): what the other tells of them is missing"));
    }
    mappings.extend(by_start.into_values().map(of_smaps));
    mappings
}

fn of_smaps(sized: SizedMapping) -> Mapping {
    Mapping {
        start: sized.start,
        end: sized.end,
        hugetlb: sized.hugetlb_bytes > 0,
        resident_bytes: sized.rss_bytes.saturating_add(sized.hugetlb_bytes),
        permissions: sized.permissions,
        name: sized.name,
        policy: None,
        page_bytes: sized.page_bytes,
        transparent_huge_bytes: sized.transparent_huge_bytes,
        swap_bytes: sized.swap_bytes,
        nodes: None,
    }
}
