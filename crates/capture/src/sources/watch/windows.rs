//! From what the threads saw in a window to its rows.

use super::debug_registers::SlotResult;
use super::hot::{CutPart, HotGroups};
use super::pace::Pace;
use super::rate::accesses;
use super::select::Watchpoint;
use crate::track::Tracker;
use firsttouch_model::rows::metadata::Entry;
use firsttouch_model::rows::{Access, Id, Window};
use std::collections::BTreeMap;

/// The round that a window belongs to.
#[derive(Clone, Copy)]
pub struct Round {
    pub number: u64,
    pub start_ns: u64,
}

pub struct Windows {
    /// Hits so far.
    pub hits: u64,
    /// Cost of a trap by the calibration, ns.
    trap_ns: f64,
    pub hot: HotGroups,
    /// Windows of the running round, written when its length is known.
    closed: Vec<Window>,
}

impl Windows {
    #[must_use]
    pub fn new(trap_ns: f64) -> Self {
        Self { hits: 0, trap_ns, hot: HotGroups::default(), closed: Vec::new() }
    }

    /// The round is over: writes its windows with the time they stand for.
    pub fn write(&mut self, tracker: &mut Tracker, round_ns: u64) {
        for window in self.closed.drain(..) {
            tracker.write_window(&Window { round_ns, ..window });
        }
    }

    /// Settles the windows that were kept back until the end of the run.
    pub fn finish(&mut self, tracker: &mut Tracker) {
        let rest = self.hot.take_waiting();
        self.settle(tracker, rest);
        let error = self.hot.error(self.trap_ns);
        if error > 0.0 {
            tracker.sink.write(|w| w.meta(Entry::HotError(error)));
        }
    }

    /// Closes a window at `now`: a row for it and for every thread that hit it, and what later rounds learn from it.
    pub fn close(
        &mut self,
        tracker: &mut Tracker,
        pace: &mut Pace,
        round: Round,
        (pid, watchpoint): (i32, &Watchpoint),
        mut seen: Vec<(Id, SlotResult)>,
        now: u64,
    ) {
        let group = watchpoint.group;
        let start = seen.iter().map(|(_, r)| r.armed_ns).min().unwrap_or(round.start_ns);
        let mut held = seen.iter().map(|(_, r)| r.watched.watched_ns).max().unwrap_or(now.saturating_sub(start));
        let died = tracker.objects.deaths.get(&watchpoint.object).copied();
        if let Some(died) = died {
            // Hits after the object's death belong to the next object at this address.
            held = held.min(died.saturating_sub(start));
            seen.iter_mut().for_each(|(_, result)| result.end_at(died));
        }
        for pattern in seen.iter().filter(|(_, r)| r.watched.cut()).filter_map(|(_, r)| r.pattern.as_ref()) {
            self.hot.learn(group, pattern);
        }
        for pair in seen.iter().filter_map(|(_, r)| r.pair) {
            self.hot.learn_pair(group, pair);
        }
        if held == 0 || watchpoint.is_companion {
            return;
        }
        let cut = seen.iter().any(|(_, r)| r.watched.cut());
        self.hot.window(group, cut);
        let id = tracker.next_window();
        self.closed.push(Window {
            id,
            round: round.number,
            object: watchpoint.object,
            address: watchpoint.address,
            start_ns: start,
            held_ns: held,
            round_ns: 0, // known when the round is over
            inclusion: watchpoint.inclusion,
        });
        let (mut total, mut traps) = (0.0, 0);
        for (thread, result) in seen.iter().filter(|(_, r)| r.watched.hits > 0) {
            let estimate = accesses(&result.watched, result.pattern.as_ref(), self.hot.trap_ns(group, self.trap_ns));
            total += estimate;
            traps += result.traps;
            self.hits += result.watched.hits;
            self.hot.passed(group, result.watched.hits, result.traps);
            let rows = access_rows(tracker, pid, id, *thread, result);
            if cut {
                let due = self.hot.wait(CutPart { group, rows, watched: result.watched, pattern: result.pattern });
                self.settle(tracker, due);
            } else {
                write(tracker, rows, estimate);
            }
        }
        if died.is_some() && group < 0 {
            pace.forget(group);
            self.hot.forget(group);
        } else {
            pace.learn(group, held, total, traps as f64 * self.trap_ns);
        }
    }

    /// Writes windows that were kept back.
    fn settle(&mut self, tracker: &mut Tracker, parts: Vec<CutPart>) {
        for part in parts {
            let estimate = self.hot.settle(&part, self.trap_ns);
            write(tracker, part.rows, estimate);
        }
    }
}

/// The hits of one thread, divided among the sites that made them. The estimates are fractions of one.
fn access_rows(tracker: &mut Tracker, pid: i32, window: Id, thread: Id, result: &SlotResult) -> Vec<Access> {
    let mut by_site: BTreeMap<Option<Id>, u64> = BTreeMap::new();
    let mut cpus: BTreeMap<u32, u64> = BTreeMap::new();
    for sample in &result.samples {
        let site = tracker.processes.live.get_mut(&pid).map(|process| {
            process.page_sizes.learn(sample.address, sample.page_bytes);
            let stack = process.unwinder.stack(sample);
            tracker.sites.intern(process, &stack, true, &mut tracker.sink)
        });
        *by_site.entry(site).or_default() += 1;
        *cpus.entry(sample.cpu).or_default() += 1;
    }
    if by_site.is_empty() {
        by_site.insert(None, 1);
    }
    let sampled: u64 = by_site.values().sum();
    let cpu = cpus.into_iter().max_by_key(|&(_, count)| count).map(|(cpu, _)| cpu);
    let row = |(site, count): (Option<Id>, u64)| {
        let part = count as f64 / sampled as f64;
        Access {
            window,
            thread,
            site,
            hits: (result.watched.hits as f64 * part).round() as u64,
            estimate: part,
            watched_ns: result.watched.watched_ns,
            cut: result.watched.cut(),
            cpu,
            cpu_ns: Some(result.watched.cpu_ns),
        }
    };
    by_site.into_iter().map(row).collect()
}

/// Writes rows whose estimates are fractions of `estimate`.
fn write(tracker: &mut Tracker, rows: Vec<Access>, estimate: f64) {
    for mut row in rows {
        row.estimate *= estimate;
        tracker.sink.write(|w| w.access(&row));
    }
}
