//! Watchpoints: every access to one word of memory in one window of time.
//!
//! A window counts as use only if its page had been touched before it began: until then it sees initialising writes. For memory that is
//! initialised repeatedly (`repeated_faults.rs`), a window is left out only if it saw the initialisation.

mod exposure;

use super::{ByThread, Counts, Hit, Reader, Samples, Source};
use crate::estimator::{Design, Draw};
use crate::few::Few;
use crate::groups::Group;
use crate::homes::Home;
use crate::partition::Sight;
use exposure::Span;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Access, Id, Object, Profile, SampleState, Thread};
use hashbrown::{HashMap, HashSet};

/// Windows on words drawn from the recorded objects.
#[derive(Debug)]
pub struct Watch;

/// A thread that lives for less than this part of a round is hardly ever watched: a round begins with the threads that live then.
const LEAST_LIFE: f64 = 0.5;
/// If such threads make at least this part of the samples, the windows do not show who uses memory.
const MISSED: f64 = 0.1;

/// Whether the windows miss threads that work, as samples show: the inner threads of nested parallel regions, made anew for each.
pub(super) fn misses_threads(profile: &Profile) -> bool {
    let mut rounds: Vec<u64> = profile.windows.iter().map(|window| window.round_ns).collect();
    rounds.sort_unstable();
    let Some(round_ns) = rounds.get(rounds.len() / 2) else { return false };
    let is_short =
        |thread: &&Thread| thread.died_ns.is_some_and(|died| (died.saturating_sub(thread.born_ns) as f64) < LEAST_LIFE * *round_ns as f64);
    let short: HashSet<Id> = profile.threads.iter().filter(is_short).map(|thread| thread.id).collect();
    let samples = || profile.samples.iter().filter(|sample| sample.state == SampleState::Computing);
    let of_short = samples().filter(|sample| short.contains(&sample.thread)).count();
    !short.is_empty() && of_short as f64 >= MISSED * samples().count() as f64 && of_short > 0
}

impl Source for Watch {
    fn name(&self) -> EvidenceSource {
        EvidenceSource::Watch
    }

    fn read(&self, reader: &Reader<'_>) -> Samples {
        let profile = reader.profile;
        let mut samples = Samples::of_groups(reader.groups.len());
        let rows = rows(reader, &mut samples.refused);
        samples.draws.reserve(profile.windows.len());
        for window in &profile.windows {
            let Some((object, group)) = reader.object(window.object) else {
                samples.refused += 1;
                continue;
            };
            let this = &profile.objects[object];
            let words = (this.bytes / 8).max(1) as f64;
            let z = words * window.round_ns as f64 / window.inclusion;
            let offset = window.address.checked_sub(this.address).filter(|&offset| offset < this.bytes.max(8));
            let (Some(offset), true, true) = (offset, z.is_finite() && z > 0.0, window.held_ns > 0) else {
                samples.refused += 1;
                continue;
            };
            let held_ns = window.held_ns as f64;
            samples.draws.push(Draw { group, round: window.round, z, held_ns, rate: 0.0, cut: false, doubts: [None; 2] });
            let own = rows.of(window.id);
            if own.is_empty() {
                continue;
            }
            let (by_thread, sites) = rates(reader, own, held_ns);
            samples.hits[group].push(Hit {
                draw: samples.draws.len() - 1,
                object,
                offset,
                position: reader.groups[group].position(object, offset),
                start: window.start_ns,
                end: window.start_ns.saturating_add(window.held_ns),
                round: window.round,
                by_thread,
                writes: None,
                strided: None,
                sites,
                home: Home::Unknown,
            });
        }
        samples
    }

    fn design(&self, reader: &Reader<'_>, draws: Vec<Draw>) -> Design {
        let exposures = Span::new(reader.profile).exposures(reader.profile, reader.groups);
        let design = Design::new(draws, &exposures).with_hot_error(reader.profile.meta.hot_error.unwrap_or(0.0));
        let life = |group: &Group| {
            let members = || group.members.iter().map(|&member| &reader.profile.objects[member]);
            let died = |object: &Object| object.died_ns.unwrap_or(u64::MAX);
            (members().map(|object| object.born_ns).min().unwrap_or(0), members().map(died).max().unwrap_or(u64::MAX))
        };
        let lives: Vec<(u64, u64)> = reader.groups.iter().map(life).collect();
        let mut starts: HashMap<u64, u64> = HashMap::new();
        for window in &reader.profile.windows {
            starts.entry(window.round).and_modify(|start| *start = window.start_ns.min(*start)).or_insert(window.start_ns);
        }
        design.with_lives(&lives, &starts)
    }

    fn counts(&self) -> Counts {
        Counts::Accesses
    }

    fn sees_initialisation(&self) -> bool {
        true
    }

    fn sight(&self) -> Sight {
        Sight::All
    }

    fn unit(&self, count: u64) -> &'static str {
        if count == 1 { "sample" } else { "samples" }
    }

    fn has_draws(&self, profile: &Profile) -> bool {
        !profile.windows.is_empty()
    }
}

/// The usable rows of accesses, grouped by window.
struct Rows<'a> {
    /// Sorted by window; rows of one window keep the order of the profile.
    list: Vec<&'a Access>,
    /// The index range of each window's rows in `list`.
    of_window: HashMap<Id, (usize, usize)>,
}

impl<'a> Rows<'a> {
    fn of(&self, window: Id) -> &[&'a Access] {
        self.of_window.get(&window).map_or(&[], |&(from, to)| &self.list[from..to])
    }
}

fn rows<'a>(reader: &Reader<'a>, refused: &mut u64) -> Rows<'a> {
    let usable =
        |row: &&Access| row.estimate.is_finite() && row.estimate > 0.0 && row.estimate < 1e18 && reader.threads.index(row.thread).is_some();
    let all = &reader.profile.accesses;
    let mut list: Vec<&Access> = all.iter().filter(usable).collect();
    *refused += (all.len() - list.len()) as u64;
    // Recorders write the rows in this order. The sort is stable, so rows of one window keep their order.
    if !list.is_sorted_by_key(|row| row.window) {
        list.sort_by_key(|row| row.window);
    }
    let mut of_window = HashMap::new();
    let mut from = 0;
    for own in list.chunk_by(|a, b| a.window == b.window) {
        of_window.extend(own.first().map(|row| (row.window, (from, from + own.len()))));
        from += own.len();
    }
    Rows { list, of_window }
}

/// Accesses per ns, by thread and by site.
fn rates(reader: &Reader<'_>, rows: &[&Access], held_ns: f64) -> (Few<ByThread>, Few<(Option<Id>, f64)>) {
    // Most windows have one row: vectors that grow would have room for four.
    let mut by_thread: Vec<ByThread> = Vec::with_capacity(rows.len());
    let mut sites: Vec<(Option<Id>, f64)> = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(thread) = reader.threads.index(row.thread) else { continue };
        let rate = row.estimate / held_ns;
        let node = row.cpu.map_or(reader.threads.list[thread].node, |cpu| reader.threads.touch_node(thread, cpu));
        match by_thread.iter_mut().find(|t| t.thread == thread) {
            Some(entry) => {
                entry.rate += rate;
                entry.hits = entry.hits.saturating_add(row.hits);
                entry.cut |= row.cut;
                entry.cpu_ns = entry.cpu_ns.max(row.cpu_ns);
                entry.node = node;
            }
            None => by_thread.push(ByThread { thread, rate, hits: row.hits, cut: row.cut, cpu_ns: row.cpu_ns, node }),
        }
        match sites.iter_mut().find(|(site, _)| *site == row.site) {
            Some(entry) => entry.1 += rate,
            None => sites.push((row.site, rate)),
        }
    }
    (by_thread.into(), sites.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{TimerSample, Window};

    const MS: u64 = 1_000_000;

    /// Check that windows miss threads which live for less than half of a round and work, and none that live longer or that were not seen to work.
    #[test]
    fn short_threads_are_missed() {
        let thread =
            |id: Id, lived_ms: u64| Thread { id, process: 1, tid: 100, born_ns: 0, died_ns: Some(lived_ms * MS), ..Thread::default() };
        let sample = |thread: Id| TimerSample {
            id: 0,
            thread,
            time_ns: 0,
            cpu: 0,
            cpu_ns: 0,
            weight: 1.0,
            site: None,
            state: SampleState::Computing,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        };
        let window = Window { id: 1, round: 0, object: 1, address: 0, start_ns: 0, held_ns: MS, round_ns: 70 * MS, inclusion: 1.0 };
        let profile = |lived_ms: u64, of_short: usize| Profile {
            threads: vec![thread(1, 1000), thread(2, lived_ms)],
            samples: (0..100).map(|number| sample(if number < of_short { 2 } else { 1 })).collect(),
            windows: vec![window.clone()],
            ..Profile::default()
        };
        assert!(misses_threads(&profile(5, 50)));
        assert!(!misses_threads(&profile(5, 5)));
        assert!(!misses_threads(&profile(40, 50)));
        assert!(!misses_threads(&Profile { windows: vec![], ..profile(5, 50) }));
    }
}
