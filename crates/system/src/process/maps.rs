//! Memory by mapping: numa_maps has nodes and policies, smaps the rest; joined by start address.

use super::memory::{add, bytes_by_node, numa_mappings, sums};
use super::{count, file, name};
use crate::proc::numa_maps::NumaMapping;
use crate::proc::smaps::{self, SizedMapping};
use firsttouch_model::error::Result;
use firsttouch_model::system::{Mapping, ProcessMaps};
use std::collections::BTreeMap;
use std::path::Path;

/// The least difference that becomes a doubt: numa_maps and smaps are read one after the other, and count a few special pages
/// differently.
const LEAST_DIFFERENCE: u64 = 8 << 20;

/// Reads the mappings of a process.
///
/// # Errors
/// When it has ended, or may not be read.
pub fn maps(root: &Path, pid: i32) -> Result<ProcessMaps> {
    let mut doubts = Vec::new();
    let mut memory = sums(root, pid)?;
    let in_numa_maps = numa_mappings(root, pid, &mut doubts)?;
    let (sized, damaged) = smaps::parse(&file(root, pid, "smaps")?.unwrap_or_default());
    if damaged > 0 {
        doubts.push(format!("proc/{pid}/smaps: damaged in {}; sizes of mappings may be wrong", count(damaged, "line")));
    }
    let in_smaps = sized.iter().fold(0u64, |sum, one| sum.saturating_add(one.rss_bytes).saturating_add(one.hugetlb_bytes));
    let base = crate::files::page_bytes(root);
    let mut mappings = join(in_numa_maps.as_deref(), sized, base, &mut doubts);
    mappings.sort_by_key(|mapping| mapping.start);
    if in_numa_maps.is_some() {
        let mut nodes = BTreeMap::new();
        mappings.iter().filter_map(|mapping| mapping.nodes.as_ref()).for_each(|bytes| add(&mut nodes, bytes));
        let numa_bytes = nodes.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        if numa_bytes.abs_diff(in_smaps) > LEAST_DIFFERENCE.max(in_smaps / 10) {
            doubts.push(format!(
                "numa_maps adds up to {numa_bytes} bytes, smaps to {in_smaps}: the process's memory was changing, or one of them is damaged"
            ));
        }
        memory.nodes = Some(nodes);
    }
    Ok(ProcessMaps { pid, name: name(root, pid), memory, mappings, objects: Vec::new(), doubts })
}

fn join(in_numa_maps: Option<&[NumaMapping]>, sized: Vec<SizedMapping>, base: Option<u64>, doubts: &mut Vec<String>) -> Vec<Mapping> {
    let mut by_start: BTreeMap<u64, SizedMapping> = sized.into_iter().map(|mapping| (mapping.start, mapping)).collect();
    let mut mappings = Vec::new();
    let (mut unsized_ones, mut contradictions, mut impossible) = (0, 0, 0);
    for numa in in_numa_maps.unwrap_or_default() {
        let sized = by_start.remove(&numa.start);
        let from_smaps = sized.as_ref().and_then(|sized| sized.page_bytes);
        let by_node = bytes_by_node(numa, from_smaps, base);
        impossible += usize::from(by_node.is_none());
        unsized_ones += usize::from(sized.is_none());
        contradictions += usize::from(numa.page_bytes.zip(from_smaps).is_some_and(|(one, other)| one != other));
        let sized = sized.unwrap_or_else(|| SizedMapping { start: numa.start, end: numa.start, ..SizedMapping::default() });
        let mut mapping = of_smaps(sized);
        if mapping.name.is_empty() {
            mapping.name.clone_from(&numa.name);
        }
        mapping.policy = Some(numa.policy.clone());
        mapping.hugetlb |= numa.huge;
        if let Some((nodes, page_bytes)) = by_node {
            mapping.resident_bytes = nodes.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
            mapping.page_bytes = Some(page_bytes);
            mapping.nodes = Some(nodes);
        }
        mappings.push(mapping);
    }
    if impossible > 0 {
        doubts.push(format!(
            "the size of a page is missing, or a number is impossible, in {} of numa_maps; not counted by node",
            count(impossible, "mapping")
        ));
    }
    if contradictions > 0 {
        doubts
            .push(format!("numa_maps and smaps name different page sizes for {}; taken from numa_maps", count(contradictions, "mapping")));
    }
    // The process went on running between the two reads. Mappings without resident memory do not matter.
    let missing = by_start.values().filter(|mapping| mapping.rss_bytes > 0 || mapping.hugetlb_bytes > 0).count();
    if in_numa_maps.is_some() && (missing > 0 || unsized_ones > 0) {
        let all = missing + unsized_ones;
        doubts.push(format!(
            "{} in only one of numa_maps and smaps (the process was mapping memory meanwhile): their values from the other file are missing",
            count(all, "mapping")
        ));
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
