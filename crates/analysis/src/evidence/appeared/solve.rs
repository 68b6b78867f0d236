//! Which threads made the rows of the windows of a process, as far as their anchors, their neighbours in time and the counts decide it.

use super::chains::assign_chains;
use super::counts::Toucher;
use super::windows::{Among, Appearance, Part, Row, Window};
use firsttouch_model::rows::Id;
use std::collections::BTreeMap;

/// Other threads may have made this part of what counts as the work of one.
const OTHERS: f64 = 0.05;
/// Threads that are tried together with another one.
const MOST_TRIED: usize = 24;
/// A border between two threads' parts is known well enough if it is known to this part of the row, or to so many pages.
const BORDER: f64 = 0.1;
const BORDER_PAGES: u64 = 8;
/// Rounds over all windows. Each one passes what is known on from window to window, so few are needed.
const MOST_ROUNDS: usize = 6;

/// Where rows begin and end: (window, row), in the order of time.
#[derive(Debug, Default)]
pub(super) struct Edges {
    pub starts: BTreeMap<u64, Vec<(usize, usize)>>,
    pub ends: BTreeMap<u64, Vec<(usize, usize)>>,
}

/// Finds out who made the rows.
pub(super) fn solve(appearance: &mut Appearance) {
    let Appearance { counts, windows } = appearance;
    let mut edges = Edges::default();
    for (w, window) in windows.iter().enumerate() {
        for (r, row) in window.rows.iter().enumerate() {
            edges.starts.entry(row.start).or_default().push((w, r));
            edges.ends.entry(row.end).or_default().push((w, r));
        }
    }
    for w in 0..windows.len() {
        assign_sole_toucher(windows, w);
    }
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
                let labels = labels(windows, &edges, w, r);
                let after = parts(Among::new(windows, w), r, &labels).unwrap_or_else(|| before.clone());
                has_changed |= after != before;
                windows[w].rows[r].parts = after;
            }
        }
        has_changed = has_changed || assign_chains(windows, counts, &edges);
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
fn labels(windows: &[Window], edges: &Edges, w: usize, r: usize) -> Vec<(u64, Id)> {
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
    let mut labels: Vec<(u64, Id)> = row.anchors.iter().map(|anchor| (anchor.address, anchor.thread)).collect();
    labels.splice(0..0, at_start.map(|thread| (row.start, thread)));
    labels.extend(at_end.map(|thread| (row.end - 1, thread)));
    labels.retain(|(_, thread)| Among::new(windows, w).left(Some(*thread)) > 0);
    labels
}

/// The parts of a row, if the labels and the counts decide it.
fn parts(window: Among<'_>, r: usize, labels: &[(u64, Id)]) -> Option<Vec<Part>> {
    let row = &window.window().rows[r];
    let pages = row.faults();
    // Faults that need not have been on pages of this window.
    let slack = window.window().capacity.keys().map(|&thread| window.left(thread)).sum::<u64>().checked_sub(window.open())?;
    let mut threads: Vec<Id> = labels.iter().map(|(_, thread)| *thread).collect();
    threads.dedup();
    let of = |thread: Id| window.left(Some(thread));
    match threads[..] {
        [] => {
            only_set(window, pages, slack, &[]).and_then(|set| if let [Some(thread)] = set[..] { Some(whole(row, thread)) } else { None })
        }
        [thread] if of(thread) >= pages => Some(whole(row, thread)),
        [thread] => {
            let set = only_set(window, pages, slack, &[Some(thread)])?;
            let other = set.iter().copied().find(|one| *one != Some(thread))?;
            let is_first = first_of_two(row, labels, thread, of(thread))?;
            let length = of(thread) * row.page_bytes;
            // The count of the thread that is known, and that of the other one: the border is between what both allow.
            let left = window.left(other).min(pages);
            let known = (of(thread) + (pages - left)) / 2 * row.page_bytes;
            let border = if is_first { row.start + known.min(length) } else { row.end - known.min(length) };
            let (first, second) = if is_first { (Some(thread), other) } else { (other, Some(thread)) };
            Some(two(row, (border, border), first, second))
        }
        [first, second] => {
            let (left, right) = (of(first).min(pages), of(second).min(pages));
            // The first thread made between so many pages.
            let (least, most) = (pages.saturating_sub(right), left);
            if least > most {
                return None;
            }
            let last_of_first = labels.iter().rev().find(|(_, thread)| *thread == first)?.0;
            let first_of_second = labels.iter().find(|(_, thread)| *thread == second)?.0;
            let low = (row.start + least * row.page_bytes).max(page_of(row, last_of_first) + row.page_bytes).min(row.end);
            let high = (row.start + most * row.page_bytes).min(page_of(row, first_of_second)).max(row.start);
            if low > high {
                return None;
            }
            let is_sharp = high - low <= ((BORDER * pages as f64) as u64).max(BORDER_PAGES) * row.page_bytes;
            let middle = (low + (high - low) / 2) / row.page_bytes * row.page_bytes;
            let border = if is_sharp { (middle, middle) } else { (low, high) };
            Some(two(row, border, Some(first), Some(second)))
        }
        _ => None,
    }
}

fn page_of(row: &Row, address: u64) -> u64 {
    row.start + (address - row.start) / row.page_bytes * row.page_bytes
}

fn whole(row: &Row, thread: Id) -> Vec<Part> {
    vec![Part { start: row.start, end: row.end, thread: Some(thread) }]
}

/// Two parts, and between them what is not known.
fn two(row: &Row, (low, high): (u64, u64), first: Toucher, second: Toucher) -> Vec<Part> {
    let parts = [(row.start, low, first), (low, high, None), (high, row.end, second)];
    parts.into_iter().filter(|(start, end, _)| start < end).map(|(start, end, thread)| Part { start, end, thread }).collect()
}

/// The only set of at most two threads beside the given ones that can have made so many pages, each with all of its faults but for the slack.
/// `None` if there is no such set, or several.
fn only_set(window: Among<'_>, pages: u64, slack: u64, given: &[Toucher]) -> Option<Vec<Toucher>> {
    let fits = |sum: u64| sum >= pages && sum - pages <= slack;
    let sum: u64 = given.iter().map(|&thread| window.left(thread)).sum();
    let others = window.window().capacity.keys().copied().filter(|thread| !given.contains(thread));
    let others: Vec<(Toucher, u64)> = others.map(|thread| (thread, window.left(thread))).filter(|(_, left)| *left > 0).collect();
    let all: u64 = others.iter().map(|(_, left)| left).sum();
    // One of them alone, and the others cannot have made a part of it that matters.
    if given.is_empty()
        && let Some(&(thread, most)) = others.iter().max_by_key(|(_, left)| *left)
        && most >= pages
        && (all - most) as f64 <= OTHERS * pages as f64
    {
        return Some(vec![thread]);
    }
    if others.len() > MOST_TRIED {
        return None;
    }
    let mut found: Vec<Vec<Toucher>> = Vec::new();
    for (i, &(one, left)) in others.iter().enumerate() {
        if fits(sum + left) {
            found.push(vec![one]);
        }
        for (j, &(other, more)) in others.iter().enumerate().skip(i + 1) {
            if fits(sum + left + more) {
                found.push(vec![one, other]);
            }
            found.extend(others[j + 1..].iter().filter(|third| fits(sum + left + more + third.1)).map(|third| vec![one, other, third.0]));
        }
    }
    let [set] = &found[..] else { return None };
    (given.len() + set.len() <= 2).then(|| given.iter().chain(set).copied().collect())
}

/// Whether the thread that is known made the beginning of a row, and another one the rest. `None` if both ways fit its labels.
fn first_of_two(row: &Row, labels: &[(u64, Id)], thread: Id, pages: u64) -> Option<bool> {
    let own = || labels.iter().filter(|label| label.1 == thread).map(|label| label.0);
    let length = pages * row.page_bytes;
    let (low, high) = (own().min()?, own().max()?);
    let is_first = high < row.start + length;
    let is_last = low >= row.end.saturating_sub(length);
    (is_first != is_last).then_some(is_first)
}
