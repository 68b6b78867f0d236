//! First touches where the kernel reports no page faults: which thread touched the pages that appeared between two looks at a process.
//!
//! A look shows which pages appeared since the one before, and how many page faults each thread has had. Each page of private memory costs its
//! first toucher one fault. So in a window between two looks
//!
//! - no thread touched more pages than it had faults (a *capacity*),
//! - all threads together had as many faults as pages appeared, and some more elsewhere (the *slack*). Hence a thread that touched any of
//!   these pages touched all of its capacity but for the slack.
//!
//! Pages that appeared side by side are a *row*. Loops that initialise memory go through it in one direction, so a row is the work of one
//! thread, or of a few, each its own stretch. Who they are is known from
//!
//! - samples of registers: the thread that wrote at a place when its page appeared (`windows.rs`),
//! - rows of windows before and after, which end where this one begins, or begin where it ends,
//! - the counts, if only one thread can have made the row, or only one order of threads (`shares.rs`). A row is divided among several threads only
//!   if the object shows elsewhere that each of its threads filled a stretch (`stretches.rs`).
//!
//! What is not known remains unknown: rows that several threads can have made have no first touches here.
//!
//! How a thread filled memory (`fill.rs`) is the line that its samples show, or a system call.

mod chains;
mod counts;
mod fill;
mod owners;
mod shares;
mod solve;
mod stretches;
#[cfg(test)]
mod tests;
mod windows;

use super::sample::by_sample;
use counts::Counts;
use fill::Fillers;
use firsttouch_model::rows::{Appeared, FirstTouch, Id, Object, Profile};
use hashbrown::HashMap;
use owners::{Owner, Owners};
use solve::solve;
use std::collections::BTreeMap;
use windows::{Appearance, BASE_PAGE, Segment, Window, appearances};

/// Pages that one record stands for, at most.
const PAGES_OF_RECORD: u64 = 64;
/// The touchers of this part of an object's pages must be known.
const LEAST_KNOWN: f64 = 0.9;
/// Records of a segment, if it has as many pages.
const RECORDS: u64 = 64;

/// The first touches that looks at the process's pages show. `reads`: whether the code at a site reads data from a file or a socket.
#[must_use]
pub fn touches_of_appeared(profile: &Profile, reads: &dyn Fn(Id) -> bool) -> Vec<FirstTouch> {
    if profile.appeared.is_empty() || !profile.first_touches.is_empty() {
        return Vec::new();
    }
    let accesses = by_sample(profile);
    let mut all = appearances(profile, &accesses);
    let owners = Owners::new(profile);
    all.iter_mut().for_each(|one| solve(one, &owners));
    let segments = known_objects(&all, &owners);
    let fillers = Fillers::new(profile, &owners, reads, &segments);
    let clear = segments.iter().filter(|segment| !fillers.is_doubtful(segment));
    let mut touches: Vec<FirstTouch> = clear.flat_map(|segment| records(segment, &fillers)).collect();
    touches.sort_by_key(|touch| (touch.time_ns, touch.address));
    for (touch, id) in touches.iter_mut().zip(1..) {
        touch.id = id;
    }
    touches
}

/// The largest part of an object's pages that one thread can have touched first, by the counts. `None` if its pages were not seen to appear.
#[must_use]
pub fn largest_part(profile: &Profile, object: &Object) -> Option<f64> {
    let end = object.address.saturating_add(object.bytes);
    let life = object.born_ns..=object.died_ns.unwrap_or(u64::MAX);
    let is_of = |row: &&Appeared| {
        row.process == object.process
            && row.address < end
            && object.address < row.address.saturating_add(row.bytes)
            && life.contains(&row.to_ns)
    };
    let counts = Counts::new(profile.fault_counts.iter().filter(|row| row.process == object.process));
    let mut pages: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for row in profile.appeared.iter().filter(is_of) {
        *pages.entry((row.from_ns, row.to_ns)).or_default() += row.bytes / row.page_bytes.max(BASE_PAGE);
    }
    let mut most: HashMap<Option<Id>, u64> = HashMap::new();
    for (&(from, to), &pages) in &pages {
        for (thread, faults) in counts.between(from, to)? {
            *most.entry(thread).or_default() += faults.min(pages);
        }
    }
    let all: u64 = pages.values().sum();
    (all > 0).then(|| most.values().copied().max().unwrap_or(0) as f64 / all as f64)
}

/// What is known of objects whose touchers are known for most pages. Of other objects, a part would be taken for the whole. Objects of one site
/// are judged together.
fn known_objects(all: &[Appearance], owners: &Owners<'_>) -> Vec<Segment> {
    let mut pages: HashMap<(Id, Owner), (u64, u64)> = HashMap::new();
    let mut list = Vec::new();
    for segment in all.iter().flat_map(|one| &one.windows).flat_map(Window::segments) {
        let owner = owners.of(&segment);
        let sums = pages.entry((segment.process, owner)).or_default();
        let own = segment.end - segment.start;
        *sums = (sums.0 + if segment.thread.is_some() { own } else { 0 }, sums.1 + own);
        list.push((segment, owner));
    }
    let is_known = |(segment, owner): &(Segment, Owner)| {
        pages.get(&(segment.process, *owner)).is_some_and(|&(known, all)| known as f64 >= LEAST_KNOWN * all as f64)
    };
    list.into_iter().filter(is_known).map(|(segment, _)| segment).filter(|segment| segment.thread.is_some()).collect()
}

/// Records at equal distances that stand for the pages of a segment.
fn records(segment: &Segment, fillers: &Fillers<'_>) -> Vec<FirstTouch> {
    let filler = fillers.of(segment);
    let pages = (segment.end - segment.start) / segment.page_bytes;
    let count = pages.div_ceil(PAGES_OF_RECORD).max(pages.min(RECORDS)).max(1);
    let length = (segment.end - segment.start) / count;
    let Some(thread) = segment.thread else { return Vec::new() };
    let record = |i: u64| FirstTouch {
        id: 0,
        process: segment.process,
        time_ns: segment.time_ns,
        thread,
        cpu: filler.cpu,
        address: segment.start + length * i + length / 2,
        weight: pages as f64 / count as f64,
        by_kernel: filler.by_kernel,
        site: filler.site,
        mapped_bytes: None,
        node: None,
    };
    (0..count).map(record).collect()
}
