//! Rows of successive windows in which one front moved on: the work of one thread.
//!
//! Readings of counts and looks are not made at one instant, so the capacity of a window is a little too large. Over a chain of windows this
//! error stays the same while the pages add up, so a thread that went slower or paused is distinguished by what it can have touched since any
//! window of the chain until any other.

use super::counts::{Counts, Toucher};
use super::solve::Edges;
use super::windows::{Row, Window};
use firsttouch_model::rows::Id;
use std::collections::BTreeSet;

/// Windows of a chain that are looked at together.
const MOST_LINKS: usize = 64;
/// A chain of fewer pages may be the work of anyone.
const LEAST_PAGES: u64 = 32;

type Link = (usize, usize);

/// Assigns the chains that only one thread can have made. Returns whether there were any.
pub(super) fn assign_chains(windows: &mut [Window], counts: &Counts, edges: &Edges) -> bool {
    let mut has_changed = false;
    let mut seen: BTreeSet<Link> = BTreeSet::new();
    for w in 0..windows.len() {
        for r in 0..windows[w].rows.len() {
            if seen.contains(&(w, r)) || !is_open(&windows[w].rows[r]) {
                continue;
            }
            let chain = chain_from(windows, edges, (w, r));
            let made = longest_made(windows, counts, &chain);
            seen.extend(&chain[..made.map_or(1, |(length, _)| length)]);
            let Some((length, Some(thread))) = made else { continue };
            for &(w, r) in &chain[..length] {
                windows[w].rows[r].assign(thread);
            }
            has_changed = true;
        }
    }
    has_changed
}

fn is_open(row: &Row) -> bool {
    row.parts.iter().all(|part| part.thread.is_none())
}

/// The rows that continue this one.
fn chain_from(windows: &[Window], edges: &Edges, first: Link) -> Vec<Link> {
    let mut chain = vec![first];
    while chain.len() < MOST_LINKS {
        let (w, r) = chain[chain.len() - 1];
        let row = &windows[w].rows[r];
        let list = if row.is_descending() { edges.ends.get(&row.start) } else { edges.starts.get(&row.end) };
        let next = list.and_then(|list| list.iter().find(|link| link.0 > w));
        match next {
            Some(&(w, r)) if is_open(&windows[w].rows[r]) => chain.push((w, r)),
            _ => break,
        }
    }
    chain
}

/// The longest beginning of a chain that one thread can have made, and the thread if only one can have.
fn longest_made(windows: &[Window], counts: &Counts, chain: &[Link]) -> Option<(usize, Option<Id>)> {
    let mut candidates: Vec<Toucher> = windows[chain[0].0].capacity.keys().copied().collect();
    let mut made = None;
    for length in 1..=chain.len() {
        candidates.retain(|&thread| (0..length).all(|from| can_have_made(windows, counts, &chain[from..length], thread)));
        if candidates.is_empty() {
            break;
        }
        let pages: u64 = chain[..length].iter().map(|&(w, r)| windows[w].rows[r].faults()).sum();
        let only = if let [Some(thread)] = candidates[..] { Some(thread) } else { None };
        // Labels of other threads contradict it.
        let is_others =
            |thread: Id| chain[..length].iter().any(|&(w, r)| windows[w].rows[r].anchors.iter().any(|anchor| anchor.thread != thread));
        made = Some((length, only.filter(|&thread| pages >= LEAST_PAGES && !is_others(thread))));
    }
    made
}

/// Whether a thread had enough faults for these rows, beside those that it is known to have made meanwhile.
fn can_have_made(windows: &[Window], counts: &Counts, rows: &[Link], thread: Toucher) -> bool {
    let (first, last) = (&windows[rows[0].0], &windows[rows[rows.len() - 1].0]);
    let pages: u64 = rows.iter().map(|&(w, r)| windows[w].rows[r].faults()).sum();
    let end = windows.partition_point(|window| window.to_ns <= last.to_ns);
    let during =
        windows[..end].iter().rev().take_while(|window| window.to_ns > first.read_ns).filter(|window| first.read_ns <= window.from_ns);
    let used: u64 = during.map(|window| window.used(thread)).sum();
    let faults = counts.of_between(thread, first.from_ns, last.to_ns);
    faults.is_some_and(|faults| faults >= used + pages)
}
