//! Which threads made a row, by their counts: each thread that touched any page of it spent all of its faults there, but for the slack.
//!
//! A sample that shows a thread at a page, with its count at that time, says more: how many pages of its stretch lie before that page, and how many
//! behind it. So it shows where the stretch begins and ends, and that the thread filled a stretch at all: pages that are dealt out in turn lie farther
//! apart than the counts say.

use super::counts::Toucher;
use super::windows::{Among, Part, Row};
use firsttouch_model::rows::Id;
use std::collections::BTreeSet;

/// Threads may have made this part of a row together without being counted among those who made it.
pub(super) const OTHERS: f64 = 0.05;
/// A border between two threads' parts is known well enough if it is known to this part of the row, or to so many pages.
const BORDER: f64 = 0.1;
const BORDER_PAGES: u64 = 8;
/// A count and a page that are read at one tick differ by so many pages, at most.
const TICK_PAGES: u64 = 2;
/// A sample confirms a stretch if at least this part (1 / `INSIDE`) of it lies on either side, and if its ends are known to this part of it.
const INSIDE: u64 = 8;
const KNOWN_TO: u64 = 16;
/// Sets of threads that are tried, sets that may fit, and threads of a set that are tried in all orders. With more, nothing would be certain.
const MOST_TRIED: usize = 4_000;
const MOST_SETS: usize = 12;
const MOST_ORDERED: usize = 6;

/// Pages of a row, from and to, and their thread.
type Stretch = (u64, u64, Toucher);

/// A thread worked at a page of the row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    pub page: u64,
    pub thread: Id,
    /// The thread's faults in the window, before and after it was there.
    pub counts: Option<(u64, u64)>,
}

/// A row, and what each thread can have made of it.
pub(super) struct Shares<'a> {
    row: &'a Row,
    pages: u64,
    /// Faults that need not have been on pages of this window.
    slack: u64,
    /// Faults of threads that are too few to matter.
    ignored: u64,
    /// Threads and their faults, those with most first.
    threads: Vec<(Toucher, u64)>,
    /// In the order of pages.
    labels: Vec<Label>,
    /// One thread had nearly all faults.
    sole: Option<Id>,
}

impl<'a> Shares<'a> {
    /// `None` if all threads together had fewer faults than pages appeared.
    pub fn new(among: Among<'a>, r: usize, labels: &[Label]) -> Option<Self> {
        let row = &among.window().rows[r];
        let pages = row.faults();
        let mut threads: Vec<(Toucher, u64)> = among.window().capacity.keys().map(|&thread| (thread, among.left(thread))).collect();
        threads.retain(|(_, left)| *left > 0);
        threads.sort_by_key(|&(thread, left)| (std::cmp::Reverse(left), thread));
        let all: u64 = threads.iter().map(|(_, left)| left).sum();
        let slack = all.checked_sub(among.open())?;
        let sole = threads.first().filter(|(_, most)| *most >= pages && (all - most) as f64 <= OTHERS * pages as f64).and_then(|one| one.0);
        let mut ignored = 0;
        while let Some(&(_, least)) = threads.last()
            && (ignored + least) as f64 <= OTHERS * pages as f64
        {
            ignored += least;
            threads.pop();
        }
        let counts = |thread: Id| threads.iter().any(|one| one.0 == Some(thread));
        let labels = labels.iter().filter(|label| counts(label.thread)).copied().collect();
        Some(Self { row, pages, slack, ignored, threads, labels, sole })
    }

    /// The only thread that can have made the row.
    pub fn only(&self) -> Option<Id> {
        let mut labelled: Vec<Id> = self.labels.iter().map(|label| label.thread).collect();
        labelled.sort_unstable();
        labelled.dedup();
        match labelled[..] {
            [] if self.sole.is_some() => return self.sole,
            // It worked there, and had enough faults for all of it.
            [thread] if self.threads.iter().any(|one| one.0 == Some(thread) && one.1 >= self.pages) => return Some(thread),
            [] | [_] => {}
            _ => return None,
        }
        let sets = self.sets()?;
        let [set] = &sets[..] else { return None };
        let [one] = set[..] else { return None };
        self.threads[one].0
    }

    /// The sets of threads that can have made the row and include all that worked there. `None` if there are too many to try.
    fn sets(&self) -> Option<Vec<Vec<usize>>> {
        let labelled = |set: &[usize]| self.labels.iter().all(|label| set.iter().any(|&one| self.threads[one].0 == Some(label.thread)));
        let mut rest = vec![0; self.threads.len() + 1];
        for (i, (_, left)) in self.threads.iter().enumerate().rev() {
            rest[i] = rest[i + 1] + left;
        }
        let (mut found, mut tried) = (Vec::new(), 0);
        let mut open: Vec<(Vec<usize>, usize, u64)> = vec![(Vec::new(), 0, 0)];
        while let Some((set, next, sum)) = open.pop() {
            tried += 1;
            if tried > MOST_TRIED || found.len() > MOST_SETS {
                return None;
            }
            if sum + self.ignored >= self.pages && !set.is_empty() && labelled(&set) {
                found.push(set.clone());
            }
            for (i, (_, left)) in self.threads.iter().enumerate().skip(next) {
                // Nothing that follows is enough.
                if sum + rest[i] + self.ignored < self.pages {
                    break;
                }
                let more = sum.saturating_add(*left);
                if more <= self.pages.saturating_add(self.slack) {
                    open.push((set.iter().copied().chain([i]).collect(), i + 1, more));
                }
            }
        }
        Some(found)
    }

    /// The parts of a row whose threads have a stretch each, as far as all sets and orders of threads that are possible agree. If it is not known
    /// that they have, samples must confirm it.
    pub fn stretches(&self, have_stretches: bool) -> Option<Vec<Part>> {
        if !have_stretches && self.labels.iter().all(|label| label.counts.is_none()) {
            return None;
        }
        let mut agreed: Option<Vec<Stretch>> = None;
        for set in self.sets()? {
            if set.len() > MOST_ORDERED {
                return None;
            }
            for order in orders(&set) {
                let Some((parts, confirmed)) = self.parts(&order) else { continue };
                // Two threads that take pages in turn are never seen in the middle of a stretch, and three or more once by chance.
                if !have_stretches && confirmed < usize::min(order.len() - 1, 2) {
                    return None;
                }
                let both = match agreed {
                    Some(before) => common(&before, &parts),
                    None => parts,
                };
                if both.iter().all(|part| part.2.is_none()) {
                    return None;
                }
                agreed = Some(both);
            }
        }
        let at = |page: u64| self.row.start + page * self.row.page_bytes;
        agreed.map(|parts| parts.into_iter().map(|(start, end, thread)| Part { start: at(start), end: at(end), thread }).collect())
    }

    /// The stretches of threads in this order, with what is not known between them, and how many of them samples confirm. `None` if a thread worked
    /// elsewhere.
    fn parts(&self, order: &[usize]) -> Option<(Vec<Stretch>, usize)> {
        // Where each stretch begins, from and to; the last one is the end of the row.
        let mut borders = vec![(0, 0)];
        let mut sum = 0;
        let mut later: u64 = order.iter().map(|&one| self.threads[one].1).sum();
        for &one in order {
            (sum, later) = (sum + self.threads[one].1, later - self.threads[one].1);
            borders.push((self.pages.saturating_sub(self.ignored + later).min(self.pages), sum.min(self.pages)));
        }
        borders[order.len()] = (self.pages, self.pages);
        let mut narrow = |at: usize, low: u64, high: u64| {
            borders[at] = (borders[at].0.max(low), borders[at].1.min(high));
            borders[at].0 <= borders[at].1
        };
        let margin = TICK_PAGES + self.ignored;
        let (mut at, mut confirmed) = (0, BTreeSet::new());
        for label in &self.labels {
            while self.threads[*order.get(at)?].0 != Some(label.thread) {
                at += 1;
            }
            // The label lies behind the beginning, and before the end.
            let next = label.page + 1;
            if !narrow(at, 0, label.page + TICK_PAGES) || !narrow(at + 1, next.saturating_sub(TICK_PAGES), u64::MAX) {
                return None;
            }
            let Some((before, after)) = label.counts else { continue };
            let (first, last) = (next.saturating_sub(before), next.saturating_add(after));
            let (slack, length) = (self.slack.saturating_add(margin), before.saturating_add(after));
            let is_begin = narrow(at, first.saturating_sub(margin), first.saturating_add(slack));
            if !is_begin || !narrow(at + 1, last.saturating_sub(slack).min(self.pages), last.saturating_add(margin)) {
                return None;
            }
            if before.min(after) >= length / INSIDE && slack <= length / KNOWN_TO {
                confirmed.insert(label.thread);
            }
        }
        Some((self.between(&borders, order), confirmed.len()))
    }

    /// The stretches between these borders.
    fn between(&self, borders: &[(u64, u64)], order: &[usize]) -> Vec<Stretch> {
        let mut parts = Vec::new();
        let mut begin = 0;
        for (&one, &(low, high)) in order.iter().zip(&borders[1..]) {
            let thread = self.threads[one].0;
            let (low, high) = (low.max(begin), high.max(begin));
            if high - low <= ((BORDER * self.pages as f64) as u64).max(BORDER_PAGES) {
                let middle = low.midpoint(high);
                parts.push((begin, middle, thread));
                begin = middle;
            } else {
                parts.push((begin, low, thread));
                parts.push((low, high, None));
                begin = high;
            }
        }
        parts.retain(|(start, end, _)| start < end);
        parts
    }
}

/// What two divisions of a row have in common.
fn common(a: &[Stretch], b: &[Stretch]) -> Vec<Stretch> {
    let mut both: Vec<Stretch> = Vec::new();
    let (mut i, mut j, mut at) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let end = a[i].1.min(b[j].1);
        let thread = if a[i].2 == b[j].2 { a[i].2 } else { None };
        match both.last_mut() {
            Some(last) if last.2 == thread => last.1 = end,
            _ => both.push((at, end, thread)),
        }
        at = end;
        i += usize::from(a[i].1 == end);
        j += usize::from(b[j].1 == end);
    }
    both
}

/// All orders of a set.
fn orders(set: &[usize]) -> Vec<Vec<usize>> {
    if set.len() <= 1 {
        return vec![set.to_vec()];
    }
    let without = |at: usize| -> Vec<usize> { [&set[..at], &set[at + 1..]].concat() };
    let from = |at: usize| orders(&without(at)).into_iter().map(move |rest| [&[set[at]], &rest[..]].concat());
    (0..set.len()).flat_map(from).collect()
}
