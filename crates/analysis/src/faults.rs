//! Which page faults placed a page, and which only tell who used one.
//!
//! The kernel's event tells of every fault. A fault places a page when it is the first touch, or the first write to memory that was only
//! read before (the zero page) or that is shared after fork. It places none when
//!
//! - the NUMA balancing had marked the page to see who uses it (a *hinting fault*);
//! - the page was being moved (balancing, compaction, memory taken offline) and the thread waited for it.
//!
//! Two facts tell them apart. `mapped`: whether a page was mapped when the access faulted (Linux 5.11). And where the
//! agent tells each allocation and release, the life of memory: a page that was never given back is first touched once.
//!
//! | `mapped` | balancing | the fault |
//! |---|---|---|
//! | no | | first touch; or, of memory never given back, waiting for a page on its way: the first generation stays |
//! | yes | off, or one node | write to the zero page or a shared page: places |
//! | yes | on | a hint; but a write, as far as the same stretch of memory had been read before (found without a node) or inherited by fork |
//! | not told | off, or one node | any of the placing ones: the last generation stays |
//! | not told | on | of memory never given back the first generation stays, and the others are dropped |
//!
//! The balancing never marks the zero page (mm/mprotect.c, change_pte_range: pages without a struct page of their own are passed
//! over), so the writes of a stretch come before its hints. Memory that was in swap is placed anew when it comes back, by a fault without a
//! page: then the last generation stays.
//!
//! Limit: copies that a parent makes when it writes after fork are taken for hints where balancing is on.

use crate::generations::{Cells, keep_first, keep_last};
use crate::touches::{Placed, Touch};
use firsttouch_model::rows::{Id, Object, ObjectKind, Profile, Release};
use std::collections::{BTreeMap, HashMap};

/// Where less than this part of a stretch was read before it was written, none of it was: answers may come late.
const READ_FIRST: f64 = 0.1;

/// What is known of the faults of a run.
#[derive(Debug, Default)]
pub struct Faults {
    may_hint: bool,
    swapped: bool,
    /// Births, deaths and releases are known without gaps.
    lives_known: bool,
    /// By process, in order of time.
    releases: HashMap<Id, Vec<Release>>,
    /// Birth of each forked process.
    forked: HashMap<Id, u64>,
}

impl Faults {
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let mut releases: HashMap<Id, Vec<Release>> = HashMap::new();
        for &release in &profile.releases {
            releases.entry(release.process).or_default().push(release);
        }
        let agent = profile.evidence.iter().find(|e| e.source == "agent");
        let lost = profile.lost.iter().any(|l| l.source == "agent" && l.count > 0);
        Self {
            may_hint: profile.machine.may_hint(),
            swapped: profile.meta.swapped_bytes != 0,
            lives_known: agent.is_some_and(|e| e.available && e.detail.is_empty()) && !lost,
            releases,
            forked: profile.processes.iter().filter(|p| p.parent.is_some()).map(|p| (p.id, p.born_ns)).collect(),
        }
    }

    /// Whether the kernel may have caught this access on a page that was there already.
    #[must_use]
    pub fn is_caught(&self, touch: &Touch) -> bool {
        self.may_hint && touch.mapped.is_some_and(|bytes| bytes > 0)
    }

    /// Takes the hinting faults out of an object's own faults.
    #[must_use]
    pub fn take_hints(&self, object: &Object, own: &mut Vec<Placed>) -> Vec<Placed> {
        let (mut caught, rest): (Vec<Placed>, Vec<Placed>) = own.drain(..).partition(|p| self.is_caught(&p.touch));
        *own = rest;
        if caught.is_empty() {
            return caught;
        }
        let covered: f64 = own.iter().chain(&caught).map(Placed::covers).sum();
        let inherited = self.forked.get(&object.process).is_some_and(|&born| born == object.born_ns);
        // The same stretches for what was read and what was caught.
        let all = own.iter().chain(&caught).cloned();
        let Cells { size, cells, .. } = Cells::new(all, covered, object.bytes);
        let mut hints = Vec::new();
        caught.clear();
        for mut cell in cells {
            cell.sort_by_key(|p| p.touch.time);
            let sum = |of: &dyn Fn(&Placed) -> bool| cell.iter().filter(|p| of(p)).map(Placed::covers).sum::<f64>();
            let read = sum(&|p| !self.is_caught(&p.touch) && p.touch.found == Some(false));
            let first = sum(&|p| !self.is_caught(&p.touch));
            let shared = if inherited { size } else { read.min(size) };
            let mut writes = if inherited || read >= READ_FIRST * first { shared } else { 0.0 };
            for placed in cell.into_iter().filter(|p| self.is_caught(&p.touch)) {
                if writes > 0.0 {
                    writes -= placed.covers();
                    own.push(placed);
                } else {
                    hints.push(placed);
                }
            }
        }
        hints.sort_by_key(|p| p.touch.time);
        hints
    }

    /// Leaves, of an object's own faults without hints, those that placed its pages.
    pub fn keep_placing(&self, object: &Object, own: &mut Vec<Placed>) {
        let known = self.lives_known && matches!(object.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::Static);
        if !known || self.swapped {
            return keep_last(own, object.address, object.bytes);
        }
        self.drop_released(object, own);
        let told = own.iter().all(|p| p.touch.mapped.is_some());
        let (mut writes, mut first): (Vec<Placed>, Vec<Placed>) =
            own.drain(..).partition(|p| p.touch.mapped.is_some_and(|bytes| bytes > 0));
        if told || self.may_hint {
            keep_first(&mut first, object.address, object.bytes);
        }
        let again = !told && !self.may_hint || !writes.is_empty();
        own.append(&mut first);
        own.append(&mut writes);
        if again {
            keep_last(own, object.address, object.bytes);
        }
    }

    /// Drops faults on pages that the program gave back later.
    fn drop_released(&self, object: &Object, own: &mut Vec<Placed>) {
        let Some(releases) = self.releases.get(&object.process) else { return };
        let end = object.address.saturating_add(object.bytes);
        let died = object.died_ns.unwrap_or(u64::MAX);
        let within = |r: &&Release| r.address < end && r.address.saturating_add(r.bytes) > object.address && r.time_ns <= died;
        // A program that gives back the same memory each step does so many times: the last time counts.
        let mut last: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for r in releases.iter().filter(within) {
            let time = last.entry((r.address, r.bytes)).or_default();
            *time = r.time_ns.max(*time);
        }
        own.retain(|p| {
            let address = object.address.saturating_add(p.offset);
            let later = |(&(from, bytes), &time): (&(u64, u64), &u64)| time > p.touch.time && address >= from && address - from < bytes;
            !last.iter().any(later)
        });
    }
}
