//! Which threads made the rows of the windows of a process, as far as their anchors, their neighbours in time and the counts decide it.

use super::chains::assign_chains;
use super::counts::{Counts, Toucher};
use super::owners::Owners;
use super::shares::{Label, OTHERS, Shares};
use super::stretches::Stretches;
use super::windows::{Among, Anchor, Appearance, Row, Window};
use firsttouch_model::rows::Id;
use std::collections::BTreeMap;

/// Rounds over all windows. Each one passes what is known on from window to window, so few are needed.
const MOST_ROUNDS: usize = 6;

/// Where rows begin and end: (window, row), in the order of time.
#[derive(Debug, Default)]
pub(super) struct Edges {
    pub starts: BTreeMap<u64, Vec<(usize, usize)>>,
    pub ends: BTreeMap<u64, Vec<(usize, usize)>>,
}

/// Finds out who made the rows: first those that one thread made, and then those of objects in which each thread had a stretch.
pub(super) fn solve(appearance: &mut Appearance, owners: &Owners<'_>) {
    let mut edges = Edges::default();
    for (w, window) in appearance.windows.iter().enumerate() {
        for (r, row) in window.rows.iter().enumerate() {
            edges.starts.entry(row.start).or_default().push((w, r));
            edges.ends.entry(row.end).or_default().push((w, r));
        }
    }
    for w in 0..appearance.windows.len() {
        assign_sole_toucher(&mut appearance.windows, w);
    }
    let mut stretches = Stretches::new(&appearance.windows, owners);
    refine(appearance, &edges, &mut stretches);
    if stretches.find(&appearance.windows) {
        refine(appearance, &edges, &mut stretches);
    }
}

/// Passes what is known on from row to row, until nothing more is found.
fn refine(appearance: &mut Appearance, edges: &Edges, stretches: &mut Stretches) {
    let Appearance { counts, windows } = appearance;
    for round in 0..MOST_ROUNDS {
        let mut has_changed = false;
        let order: Vec<usize> = if round % 2 == 0 { (0..windows.len()).collect() } else { (0..windows.len()).rev().collect() };
        for w in order {
            for r in 0..windows[w].rows.len() {
                if windows[w].rows[r].is_known() {
                    continue;
                }
                // What was known of it does not count against its own threads.
                let before = windows[w].rows[r].forget();
                let labels = labels(windows, counts, edges, w, r);
                let shares = Shares::new(Among::new(windows, w), r, &labels);
                let only = shares.as_ref().and_then(Shares::only);
                let parts = || shares?.stretches(stretches.are_in(w, r));
                let after = only.map(|thread| windows[w].rows[r].whole(thread)).or_else(parts).unwrap_or_else(|| before.clone());
                if after.len() > 1 {
                    stretches.add(w, r);
                }
                has_changed |= after != before;
                windows[w].rows[r].parts = after;
            }
        }
        has_changed = has_changed || assign_chains(windows, counts, edges);
        if !has_changed {
            break;
        }
    }
}

/// One thread made nearly all faults of a window.
fn assign_sole_toucher(windows: &mut [Window], w: usize) {
    let among = Among::new(windows, w);
    let left: Vec<(Toucher, u64)> = among.window().capacity.keys().map(|&thread| (thread, among.left(thread))).collect();
    let Some(&(Some(thread), most)) = left.iter().max_by_key(|(_, left)| *left) else { return };
    let others = left.iter().map(|(_, left)| left).sum::<u64>() - most;
    let pages = among.open();
    if others as f64 <= OTHERS * pages as f64 && most + others >= pages {
        let is_others = |row: &&mut Row| row.anchors.iter().any(|anchor| anchor.thread != thread);
        windows[w].rows.iter_mut().filter(|row| !is_others(row)).for_each(|row| row.assign(thread));
    }
}

/// The threads that are known to have worked at places of a row, in the order of addresses.
fn labels(windows: &[Window], counts: &Counts, edges: &Edges, w: usize, r: usize) -> Vec<Label> {
    let row = &windows[w].rows[r];
    let is_descending = row.is_descending();
    let edge = |map: &BTreeMap<u64, Vec<(usize, usize)>>, at: u64, is_earlier: bool| {
        let list = map.get(&at)?;
        let near = if is_earlier { list.iter().rev().find(|one| one.0 < w) } else { list.iter().find(|one| one.0 > w) };
        near.map(|&(w, r)| &windows[w].rows[r])
    };
    let last = |row: &Row| row.parts.last().and_then(|part| part.thread);
    let first = |row: &Row| row.parts.first().and_then(|part| part.thread);
    // The thread that came from the row before, and the one that went on to the row behind.
    let at_start = edge(&edges.ends, row.start, !is_descending).and_then(last);
    let at_end = edge(&edges.starts, row.end, is_descending).and_then(first);
    let seen = |anchor: &Anchor| Label {
        page: (anchor.address - row.start) / row.page_bytes,
        thread: anchor.thread,
        counts: anchor.faults.and_then(|faults| counts.around(anchor.thread, faults, (windows[w].from_ns, windows[w].to_ns))),
    };
    let neighbour = |thread: Id, page: u64| Label { page, thread, counts: None };
    let mut labels: Vec<Label> = row.anchors.iter().map(seen).collect();
    labels.splice(0..0, at_start.map(|thread| neighbour(thread, 0)));
    labels.extend(at_end.map(|thread| neighbour(thread, row.faults().saturating_sub(1))));
    labels.retain(|label| Among::new(windows, w).left(Some(label.thread)) > 0);
    labels
}
