//! The accesses that an object is compared with: in a profile of one recording all, in a merged one those of the object's rank. Else no object of
//! a job of a hundred ranks would matter.

use crate::evidence::{Evidence, SourceRef};
use crate::groups::Group;
use crate::judge::Subject;
use firsttouch_model::rows::{Id, Profile};
use hashbrown::HashMap;
use std::collections::BTreeSet;

/// Accesses to the objects that count, by rank and source.
#[derive(Debug, Default)]
pub struct OwnAccesses {
    /// The part of each group; `None` if there is one part only, or several ranks share the group.
    part_of: Vec<Option<usize>>,
    by_source: HashMap<(usize, Option<usize>), f64>,
    /// The part's fraction of all accesses seen.
    share: Vec<f64>,
}

impl OwnAccesses {
    #[must_use]
    pub fn new(profile: &Profile, groups: &[Group], uses: &Evidence, subjects: &[Subject]) -> Self {
        let part_of: Vec<Option<usize>> = groups.iter().map(|group| part_of(profile, group)).collect();
        let mut own = Self { part_of, share: vec![0.0; profile.parts.len()], ..Self::default() };
        for subject in subjects {
            let part = own.part_of[subject.group];
            if let Some(part) = part {
                own.share[part] += subject.access_share.map_or(0.0, |share| share.value);
            }
            for source in uses.sources().filter(|_| subject.counts) {
                let accesses = uses.of(source).design.accesses(subject.group);
                *own.by_source.entry((source.index(), None)).or_default() += accesses;
                if part.is_some() {
                    *own.by_source.entry((source.index(), part)).or_default() += accesses;
                }
            }
        }
        own
    }

    /// Accesses by this source to the objects of the rank of a group; to all objects if it belongs to none.
    #[must_use]
    pub fn counted(&self, source: SourceRef, group: usize) -> f64 {
        self.by_source.get(&(source.index(), self.part(group))).copied().unwrap_or(0.0)
    }

    /// The fraction of all accesses seen that the rank of a group has; 1 if it belongs to none.
    #[must_use]
    pub fn share(&self, group: usize) -> f64 {
        self.part(group).and_then(|part| self.share.get(part)).copied().filter(|share| *share > 0.0).unwrap_or(1.0)
    }

    fn part(&self, group: usize) -> Option<usize> {
        self.part_of.get(group).copied().flatten()
    }
}

fn part_of(profile: &Profile, group: &Group) -> Option<usize> {
    let shared = group.shared.values().flat_map(|sharing| sharing.processes.iter().copied());
    let own = group.members.iter().map(|&member| profile.objects[member].process);
    let parts: BTreeSet<Option<usize>> = own.chain(shared).map(|process: Id| profile.index_of_part(process)).collect();
    if parts.len() == 1 { parts.first().copied().flatten() } else { None }
}
