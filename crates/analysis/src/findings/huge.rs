//! The rule of `huge-page-sharing`: the program initialises as it computes, and only the page size spoils the placement.
//!
//! - Pages are huge.
//! - The first touches obey the users' partition: at least half of the touched pages (by weight, as far as the user there is
//!   known) were touched, at the very address that faulted, by the lane that uses that address.
//! - At least half of the windows with a remote access lie in a huge page where some part is used from the node that the page is on:
//!   with base pages each part would have been on its own user's node.

use super::Case;
use crate::homes::Home;
use crate::threads::Threads;
use std::collections::HashMap;

/// Positions looked at within one huge page.
const PROBES: u64 = 64;

pub(super) fn is_huge_page_sharing(case: &Case<'_>, threads: &Threads) -> bool {
    let touch = &case.subject.touch;
    if touch.page_bytes <= 4096 {
        return false;
    }
    let partition = &case.subject.partition;
    let (mut obeying, mut all) = (0.0, 0.0);
    for &(position, lane, pages) in &touch.placed {
        if let Some(owner) = partition.owner(position) {
            all += pages;
            obeying += if owner == lane { pages } else { 0.0 };
        }
    }
    if all <= 0.0 || obeying < 0.5 * all {
        return false;
    }
    // Lanes of one process: a lane's node is that of any of its threads.
    let process = case.object.process;
    let node_of: HashMap<usize, u32> = threads.list.iter().filter(|t| t.process == process).map(|t| (t.lane, t.node)).collect();
    let (mut shared, mut remote) = (0usize, 0usize);
    for hit in case.hits {
        let Home::Known { node, .. } = hit.home else { continue };
        if hit.by_thread.iter().all(|t| threads.list[t.thread].node == node) {
            continue;
        }
        remote += 1;
        let within = (case.object.address.wrapping_add(hit.offset)) % touch.page_bytes;
        let start = hit.position.saturating_sub(within);
        let probes = (0..PROBES).map(|i| start.saturating_add(i * touch.page_bytes / PROBES));
        let used_from_home = probes.filter_map(|p| partition.owner(p)).any(|lane| node_of.get(&lane) == Some(&node));
        shared += usize::from(used_from_home);
    }
    remote > 0 && shared as f64 >= 0.5 * remote as f64
}
