//! A process's memory in sums: /proc/PID/status, and the nodes of numa_maps.

use super::file;
use crate::files::USUAL_PAGE_BYTES;
use crate::proc::numa_maps;
use crate::proc::status::Status;
use firsttouch_model::error::Result;
use firsttouch_model::system::MemoryUse;
use std::collections::BTreeMap;
use std::path::Path;

/// The sums of /proc/PID/status.
pub fn sums(root: &Path, pid: i32) -> Result<MemoryUse> {
    let status = Status::parse(file(root, pid, "status")?.unwrap_or_default());
    Ok(MemoryUse {
        nodes: None,
        rss_bytes: status.resident_bytes(),
        hugetlb_bytes: status.hugetlb_bytes(),
        swap_bytes: status.swapped_bytes(),
    })
}

/// The mappings of numa_maps; `None` if this kernel has no such file.
pub fn numa_mappings(root: &Path, pid: i32, doubts: &mut Vec<String>) -> Result<Option<Vec<numa_maps::NumaMapping>>> {
    let Some(text) = file(root, pid, "numa_maps")? else {
        doubts.push(format!("process {pid} has no numa_maps (a kernel without NUMA support, or a sandbox): its memory by node is unknown"));
        return Ok(None);
    };
    let lines: Vec<_> = text.lines().map(numa_maps::parse).collect();
    let damaged = lines.iter().filter(|line| line.is_none()).count();
    if damaged > 0 {
        doubts.push(format!("proc/{pid}/numa_maps: {damaged} of {} lines damaged; their memory is missing here", lines.len()));
    }
    Ok(Some(lines.into_iter().flatten().collect()))
}

/// Bytes by node of a mapping, and the size of its pages. Before Linux 3.16, numa_maps has no page size; then `from_smaps` is used.
pub fn bytes_by_node(mapping: &numa_maps::NumaMapping, from_smaps: Option<u64>, base: Option<u64>) -> Option<(BTreeMap<u32, u64>, u64)> {
    let page_bytes = mapping.page_bytes.or(from_smaps).or((!mapping.huge).then_some(base.unwrap_or(USUAL_PAGE_BYTES)))?;
    let bytes = mapping.pages.iter().map(|(node, pages)| Some((*node, pages.checked_mul(page_bytes)?))).collect::<Option<_>>()?;
    Some((bytes, page_bytes))
}

/// Adds each node's bytes.
pub fn add(sum: &mut BTreeMap<u32, u64>, bytes: &BTreeMap<u32, u64>) {
    for (node, bytes) in bytes {
        let sum = sum.entry(*node).or_default();
        *sum = sum.saturating_add(*bytes);
    }
}
