//! Which object memory belonged to when its pages appeared.

use firsttouch_model::rows::{Id, Object, Profile};
use std::collections::HashMap;

/// Objects before an address that are looked at: several may have had it, one after another.
const LOOKED_AT: usize = 64;

/// The objects of each process, by address.
pub(super) struct Owners<'a>(HashMap<Id, Vec<&'a Object>>);

impl<'a> Owners<'a> {
    pub fn new(profile: &'a Profile) -> Self {
        let mut objects: HashMap<Id, Vec<&Object>> = HashMap::new();
        profile.objects.iter().for_each(|object| objects.entry(object.process).or_default().push(object));
        objects.values_mut().for_each(|list| list.sort_by_key(|object| object.address));
        Self(objects)
    }

    /// The object that had a part of this memory at this time.
    pub fn of(&self, process: Id, (start, end): (u64, u64), time: u64) -> Option<&'a Object> {
        let list = self.0.get(&process)?;
        let before = &list[..list.partition_point(|object| object.address < end)];
        let is_there = |object: &&&Object| {
            let life = object.born_ns..=object.died_ns.unwrap_or(u64::MAX);
            object.address.saturating_add(object.bytes) > start && life.contains(&time)
        };
        before.iter().rev().take(LOOKED_AT).find(is_there).copied()
    }
}
