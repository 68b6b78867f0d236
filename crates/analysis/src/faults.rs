//! Which page faults placed a page, and which only show that one was used.
//!
//! The kernel's event counts every page fault. A fault places a page if it is the first touch, or the first write to memory that was
//! only read before (the zero page) or that is shared after fork. It places no page if
//!
//! - NUMA balancing had marked the page to find out who uses it (a *hinting fault*);
//! - the page was being migrated (balancing, compaction, memory taken offline) and the thread waited for it.
//!
//! Two facts distinguish these cases. `mapped`: whether a page was mapped when the access faulted (since Linux 5.11). And, if the
//! agent recorded each allocation and release, the life of memory: a page that was never released is first touched once.
//!
//! | `mapped` | balancing | the fault |
//! |---|---|---|
//! | no | | first touch; or, of memory never released, a wait for a page in migration: the first generation stays |
//! | yes | off, or one node | write to the zero page or a shared page: it places the page |
//! | yes | on | a hint; a write if the same stretch of memory had been read before (found without a node) or inherited by fork |
//! | unknown | off, or one node | any fault that places a page: the last generation stays |
//! | unknown | on | of memory never released, the first generation stays and the others are dropped |
//!
//! Balancing never marks the zero page (mm/mprotect.c, change_pte_range skips pages without a struct page of their own), so the writes
//! to a stretch come before its hints. Memory that was swapped out is placed again by a fault without a page when it is read back:
//! then the last generation stays.
//!
//! Limit: if balancing is on, copies that a parent makes when it writes after fork count as hints.

use crate::repeated_faults::{Cells, keep_first, keep_last, keep_written};
use crate::spans::Spans;
use crate::touch_record::{Placed, Touch};
use firsttouch_model::rows::{Id, Object, ObjectKind, Profile};
use hashbrown::HashMap;
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// If less than this fraction of a stretch seems to have been read before it was written, assume that nothing was: the kernel's answers may
/// have come late.
const READ_FIRST: f64 = 0.1;

/// The memory that a process released: ranges, and when each was released, in order (ns). A program may release the same memory in each step.
type Releases = Spans<Vec<u64>>;

/// Those of each process.
fn releases_of(profile: &Profile) -> HashMap<Id, Releases> {
    let mut times: BTreeMap<(Id, u64, u64), Vec<u64>> = BTreeMap::new();
    for release in &profile.releases {
        times.entry((release.process, release.address, release.bytes)).or_default().push(release.time_ns);
    }
    let mut releases: HashMap<Id, Releases> = HashMap::new();
    for ((process, address, bytes), mut times) in times {
        times.sort_unstable();
        releases.entry(process).or_default().insert((address, address.saturating_add(bytes)), times);
    }
    releases
}

/// A record and its index in the list of an object's faults.
struct At<'a> {
    index: usize,
    placed: &'a Placed,
}

impl Borrow<Placed> for At<'_> {
    fn borrow(&self) -> &Placed {
        self.placed
    }
}

/// How to classify the faults of a run.
#[derive(Debug, Default)]
pub struct Faults {
    may_hint: bool,
    swapped: bool,
    /// Whether births, deaths and releases of memory were recorded without gaps.
    lives_known: bool,
    releases: HashMap<Id, Releases>,
    /// The birth of each forked process, ns.
    forked: HashMap<Id, u64>,
}

impl Faults {
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let agent = profile.evidence.iter().find(|e| e.source == "agent");
        let lost = profile.lost.iter().any(|l| l.source == "agent" && l.count > 0);
        Self {
            may_hint: profile.machine.may_hint(),
            swapped: profile.meta.swapped_bytes != 0,
            lives_known: agent.is_some_and(|e| e.available && e.detail.is_empty()) && !lost,
            releases: releases_of(profile),
            forked: profile.processes.iter().filter(|p| p.parent.is_some()).map(|p| (p.id, p.born_ns)).collect(),
        }
    }

    /// Whether the kernel may have caught this access on a page that was already mapped.
    #[must_use]
    pub fn is_caught(&self, touch: &Touch) -> bool {
        self.may_hint && touch.mapped.is_some_and(|bytes| bytes > 0)
    }

    /// Removes the hinting faults from an object's own faults and returns them.
    #[must_use]
    pub fn take_hints(&self, object: &Object, own: &mut Vec<Placed>) -> Vec<Placed> {
        if !own.iter().any(|p| self.is_caught(&p.touch)) {
            return Vec::new();
        }
        let covered: f64 = own.iter().map(Placed::covers).sum();
        let inherited = self.forked.get(&object.process).is_some_and(|&born| born == object.born_ns);
        // Build the cells from both the faults that were read and those that were caught.
        let all: Vec<At<'_>> = own.iter().enumerate().map(|(index, placed)| At { index, placed }).collect();
        let Cells { size, cells, .. } = Cells::new(all, covered, object.bytes);
        let mut is_hint = vec![false; own.len()];
        for mut cell in cells {
            let (mut read, mut first) = (0.0, 0.0);
            for at in cell.iter().filter(|at| !self.is_caught(&at.placed.touch)) {
                first += at.placed.covers();
                read += if at.placed.touch.found == Some(false) { at.placed.covers() } else { 0.0 };
            }
            cell.retain(|at| self.is_caught(&at.placed.touch));
            cell.sort_by_key(|at| at.placed.touch.time);
            let shared = if inherited { size } else { read.min(size) };
            let mut writes = if inherited || read >= READ_FIRST * first { shared } else { 0.0 };
            for at in cell {
                is_hint[at.index] = writes <= 0.0;
                writes -= if writes > 0.0 { at.placed.covers() } else { 0.0 };
            }
        }
        let mut hint = is_hint.into_iter();
        let mut hints: Vec<Placed> = own.extract_if(.., |_| hint.next().unwrap_or(false)).collect();
        hints.sort_by_key(|p| p.touch.time);
        hints
    }

    /// Keeps only the faults that placed pages. `own` are an object's own faults, without hints.
    pub fn keep_placing(&self, object: &Object, own: &mut Vec<Placed>) {
        let known = self.lives_known && matches!(object.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::Static);
        if !known || self.swapped {
            return keep_last(own, object.address, object.bytes);
        }
        self.drop_released(object, own);
        let known = own.iter().all(|p| p.touch.mapped.is_some());
        let writes: Vec<Placed> = own.extract_if(.., |p| p.touch.mapped.is_some_and(|bytes| bytes > 0)).collect();
        if known || self.may_hint {
            keep_first(own, object.address, object.bytes);
        }
        if !writes.is_empty() {
            keep_written(own, writes, object.address, object.bytes);
        } else if !known && !self.may_hint {
            keep_last(own, object.address, object.bytes);
        }
    }

    /// Drops faults on pages that the program released later.
    fn drop_released(&self, object: &Object, own: &mut Vec<Placed>) {
        let Some(releases) = self.releases.get(&object.process) else { return };
        let died = object.died_ns.unwrap_or(u64::MAX);
        let mut last: Spans<u64> = Spans::default();
        for (range, times) in releases.overlapping((object.address, object.address.saturating_add(object.bytes))) {
            // The last release of the same memory counts.
            if let Some(&time) = times[..times.partition_point(|&time| time <= died)].last() {
                last.insert(range.addresses(), time);
            }
        }
        own.retain(|p| {
            let address = object.address.saturating_add(p.offset);
            !last.overlapping((address, address.saturating_add(1))).any(|(_, &time)| time > p.touch.time)
        });
    }
}
