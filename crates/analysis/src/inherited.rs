//! Memory that a process inherited by fork: until it writes, its pages are those that its parent had placed before.
//!
//! - What children use and nobody wrote since is one object of all these processes, as if it were shared memory ([`sets`]).
//! - What a child wrote in part has the pages that it wrote, and those that its parent placed before ([`TouchReader::add_inherited`]).

use crate::repeated_faults::keep_written;
use crate::spans::Spans;
use crate::touch_record::{BASE_PAGE, Placed};
use crate::touches::TouchReader;
use firsttouch_model::rows::{Id, Object, Profile};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// The forks before a process whose touches count in what it inherited: of a longer chain of forks, the first processes are left out.
const MOST_FORKS: usize = 64;
/// A child with fewer samples on its copy does not use it.
const LEAST_SAMPLES: usize = 4;
/// Memory counts as written after a fork if more than this part of its pages, or of the samples on it, was.
const WRITTEN: f64 = 0.1;

/// What is known of the use of an object.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    samples: usize,
    writes: usize,
}

/// The copies that children use of an object of their parent, each with the original, and with their offsets from it. None of them was written since
/// the fork.
pub(crate) fn sets(profile: &Profile) -> Vec<Vec<(&Object, u64)>> {
    let inheritance = Inheritance::new(profile);
    if inheritance.forks.is_empty() {
        return Vec::new();
    }
    let uses = uses(profile);
    let mut copies: BTreeMap<Id, Vec<&Object>> = BTreeMap::new();
    for object in profile.objects.iter().filter(|object| !profile.shared_memory.contains_key(&object.id)) {
        let of = uses.get(&object.id).copied().unwrap_or_default();
        let is_read = of.samples >= LEAST_SAMPLES && of.writes as f64 <= WRITTEN * of.samples as f64;
        if is_read && let Some(original) = inheritance.first(object) {
            copies.entry(original.id).or_default().push(object);
        }
    }
    let objects: HashMap<Id, &Object> = profile.objects.iter().map(|object| (object.id, object)).collect();
    let sizes = page_sizes(profile);
    let size = |object: &Object| sizes.get(&object.id).copied().unwrap_or(BASE_PAGE);
    let mut sets = Vec::new();
    for (original, mut copies) in copies {
        let Some(&original) = objects.get(&original) else { continue };
        copies.retain(|copy| copy.address >= original.address && !is_written(profile, copy, copy.born_ns, size(copy)));
        let fork = copies.iter().map(|copy| copy.born_ns).min();
        if fork.is_some_and(|fork| !is_written(profile, original, fork, size(original))) {
            let copy = |copy: &&Object| copy.address - original.address;
            let offsets: Vec<u64> = copies.iter().map(copy).collect();
            sets.push([(original, 0)].into_iter().chain(copies.into_iter().zip(offsets)).collect());
        }
    }
    sets
}

fn uses(profile: &Profile) -> HashMap<Id, Use> {
    let mut uses: HashMap<Id, Use> = HashMap::new();
    for access in &profile.sampled_accesses {
        let of = uses.entry(access.object).or_default();
        of.samples += 1;
        of.writes += usize::from(access.kind.writes());
    }
    let hit: HashSet<Id> = profile.accesses.iter().map(|access| access.window).collect();
    for window in profile.windows.iter().filter(|window| hit.contains(&window.id)) {
        uses.entry(window.object).or_default().samples += 1;
    }
    uses
}

/// Whether a process took faults on much of an object after a fork: it wrote pages that it had in common with others, or new ones. `page_bytes`: the size
/// of the pages that the kernel was seen to have made.
fn is_written(profile: &Profile, object: &Object, fork: u64, page_bytes: u64) -> bool {
    let end = object.address.saturating_add(object.bytes);
    let died = object.died_ns.unwrap_or(u64::MAX);
    let is_later = |time: u64| fork < time && time <= died;
    let later = profile.first_touches.iter().filter(|touch| {
        touch.process == object.process && (object.address..end).contains(&touch.address) && is_later(touch.time_ns) && touch.weight > 0.0
    });
    let written = if page_bytes > BASE_PAGE {
        // A fault where no page was makes a whole one; where one was, it may copy a small part of it.
        let (mut made, mut copied): (BTreeMap<u64, f64>, f64) = (BTreeMap::new(), 0.0);
        for touch in later {
            if touch.mapped_bytes == Some(0) {
                let weight = made.entry(touch.address / page_bytes).or_default();
                *weight = weight.max(touch.weight);
            } else {
                copied += touch.weight * BASE_PAGE as f64;
            }
        }
        made.values().sum::<f64>() * page_bytes as f64 + copied
    } else {
        later.map(|touch| touch.weight * BASE_PAGE as f64).sum::<f64>()
    };
    written > WRITTEN * object.bytes as f64
}

/// The size of most pages of each object whose size the kernel said.
fn page_sizes(profile: &Profile) -> HashMap<Id, u64> {
    let mut counts: HashMap<Id, BTreeMap<u64, usize>> = HashMap::new();
    for page in profile.pages.iter().filter(|page| page.page_bytes > 0) {
        if let Some(object) = page.object {
            *counts.entry(object).or_default().entry(page.page_bytes).or_default() += 1;
        }
    }
    counts.into_iter().filter_map(|(object, sizes)| Some((object, sizes.into_iter().max_by_key(|(_, count)| *count)?.0))).collect()
}

/// The objects of parents, to find those that a child inherited.
#[derive(Debug, Default)]
pub(crate) struct Inheritance<'a> {
    /// Process -> (its parent, time of the fork).
    forks: HashMap<Id, (Id, u64)>,
    /// The objects of each parent, with their place in the profile.
    of_parent: HashMap<Id, Spans<(usize, &'a Object)>>,
}

impl<'a> Inheritance<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        let forks: HashMap<Id, (Id, u64)> =
            profile.processes.iter().filter_map(|process| Some((process.id, (process.parent?, process.born_ns)))).collect();
        let mut of_parent: HashMap<Id, Spans<(usize, &Object)>> = forks.values().map(|&(parent, _)| (parent, Spans::default())).collect();
        for (place, object) in profile.objects.iter().enumerate() {
            if let Some(spans) = of_parent.get_mut(&object.process) {
                spans.insert((object.address, object.address.saturating_add(object.bytes)), (place, object));
            }
        }
        Self { forks, of_parent }
    }

    /// The parent's object that this one is a copy of, as it was until the fork.
    fn original(&self, object: &Object) -> Option<Object> {
        let &(parent, fork) = self.forks.get(&object.process).filter(|(_, fork)| *fork == object.born_ns)?;
        let range = (object.address, object.address.saturating_add(object.bytes));
        let is_original = |(_, other): &&(usize, &Object)| {
            let lived = other.born_ns <= fork && other.died_ns.is_none_or(|died| fork <= died);
            lived && (other.kind, other.site) == (object.kind, object.site)
        };
        let overlapping = self.of_parent.get(&parent)?.overlapping(range).map(|(_, other)| other);
        let (_, original) = overlapping.filter(is_original).min_by_key(|(place, _)| *place)?;
        // The parent may have given back a part of it later.
        Some(Object { address: object.address, bytes: object.bytes, died_ns: Some(fork), ..(*original).clone() })
    }

    /// Whether the process inherited the object by fork.
    pub(crate) fn is_copy(&self, object: &Object) -> bool {
        self.original(object).is_some()
    }

    /// The first process's object that this one is a copy of, over up to [`MOST_FORKS`] forks, as in [`Inheritance::original`].
    fn first(&self, object: &Object) -> Option<Object> {
        let mut first = self.original(object)?;
        for _ in 1..MOST_FORKS {
            match self.original(&first).filter(|original| original.born_ns < first.born_ns) {
                Some(original) => first = original,
                None => break,
            }
        }
        Some(first)
    }
}

impl TouchReader<'_> {
    /// Adds the touches of the parent before the fork to an object's own ones, and keeps those that placed the pages: a page that the child wrote
    /// is its own.
    pub(crate) fn add_inherited(&mut self, object: &Object, own: &mut Vec<Placed>, page_bytes: u64) {
        let mut lineage = Vec::new();
        let mut child_born = None;
        let mut next = self.inheritance.original(object);
        // A damaged profile may say that a process is its own parent.
        while let Some(original) =
            next.filter(|original| lineage.len() < MOST_FORKS && child_born.is_none_or(|born| original.born_ns < born))
        {
            let mut placed = self.own_touches(&original, page_bytes);
            // Hints are of the parent's use, not of the child's.
            drop(self.faults.take_hints(&original, &mut placed));
            self.faults.keep_placing(&original, &mut placed);
            lineage.push(placed);
            child_born = Some(original.born_ns);
            next = self.inheritance.original(&original);
        }
        let inherited = lineage.into_iter().rev().reduce(|earlier, written| self::written(earlier, written, object));
        if let Some(earlier) = inherited {
            *own = written(earlier, std::mem::take(own), object);
        }
    }
}

/// What a process inherited, and wrote since: a page that it wrote is its own.
fn written(inherited: Vec<Placed>, written: Vec<Placed>, object: &Object) -> Vec<Placed> {
    if inherited.is_empty() {
        return written;
    }
    let mut all = inherited;
    keep_written(&mut all, written, object.address, object.bytes);
    all
}
