//! The rule of `huge-page-sharing`: each thread initialises what it uses, but the large pages defeat this placement.
//!
//! - Pages are huge.
//! - The first touches follow the users' partition: of the touched pages with a known user (by weight), at least half were touched by the
//!   worker that uses the very address that faulted. Loops fault at the border of their part, so an address within a 64th of a page counts
//!   as well.
//! - Several workers race for the pages. If one worker won 90 % of them or more, the addresses must show the race: at least 90 % of the touches
//!   conform, and at least half of those lie inside their page, where that worker's part begins. A thread that initialises everything by itself enters each
//!   page at its start or its end.
//! - At least half of the windows with a remote access lie in a huge page in which some part is used from the node that the page is on:
//!   with base pages, each part would have been on its own user's node.

use super::{Case, SERIAL};
use crate::homes::Home;
use crate::threads::Threads;
use crate::touch_summary::Record;
use hashbrown::HashMap;

/// Number of positions examined within one huge page.
const PROBES: u64 = 64;
/// An address closer to a border between two workers than this fraction of a page counts as on the border.
const BORDER: u64 = 64;

pub(super) fn is_huge_page_sharing(case: &Case<'_>, threads: &Threads) -> bool {
    let touch = &case.subject.touch;
    if touch.page_bytes <= 4096 {
        return false;
    }
    let partition = &case.subject.partition;
    let border = touch.page_bytes / BORDER;
    let (mut obeying, mut inside, mut all) = (0.0, 0.0, 0.0);
    for &Record { position, worker, pages, .. } in &touch.placed {
        let near = [position, position.saturating_add(border), position.saturating_sub(border)];
        if partition.owner(position).is_none() {
            continue;
        }
        all += pages;
        if near.into_iter().any(|p| partition.owner(p) == Some(worker)) {
            obeying += pages;
            let within = case.object.address.wrapping_add(position) % touch.page_bytes;
            inside += if within > border && within < touch.page_bytes - border { pages } else { 0.0 };
        }
    }
    if all <= 0.0 || obeying < 0.5 * all {
        return false;
    }
    let serial = touch.main_worker().is_some_and(|(_, share)| share >= SERIAL);
    // Who wins the race enters each page in its own part: of what one thread initialises alone, most belongs to others.
    if serial && (inside < 0.5 * obeying || obeying < SERIAL * all) {
        return false;
    }
    // The node of a worker is that of any of its threads.
    let process = case.object.process;
    let node_of: HashMap<usize, u32> = threads.beside(process).map(|(_, t)| (t.worker, t.node)).collect();
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
        let used_from_home = probes.filter_map(|p| partition.owner(p)).any(|worker| node_of.get(&worker) == Some(&node));
        shared += usize::from(used_from_home);
    }
    remote > 0 && shared as f64 >= 0.5 * remote as f64
}
