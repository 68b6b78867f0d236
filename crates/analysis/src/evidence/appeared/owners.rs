//! Whose memory it was when its pages appeared.

use super::windows::Segment;
use firsttouch_model::rows::{Id, Object, Profile};
use hashbrown::HashMap;

/// Objects before an address that are looked at: several may have had it, one after another.
const LOOKED_AT: usize = 64;

/// The objects of one site, an object without a site, or no object: small blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    Site(Id),
    Object(Id),
    None,
}

/// The objects of each process, by address.
pub(super) struct Owners<'a>(HashMap<Id, Vec<&'a Object>>);

impl<'a> Owners<'a> {
    pub fn new(profile: &'a Profile) -> Self {
        let mut objects: HashMap<Id, Vec<&Object>> = HashMap::new();
        profile.objects.iter().for_each(|object| objects.entry(object.process).or_default().push(object));
        objects.values_mut().for_each(|list| list.sort_by_key(|object| object.address));
        Self(objects)
    }

    /// Whose memory it was when it was touched.
    pub fn of(&self, segment: &Segment) -> Owner {
        match self.object(segment) {
            Some(object) => object.site.map_or(Owner::Object(object.id), Owner::Site),
            None => Owner::None,
        }
    }

    fn object(&self, segment: &Segment) -> Option<&'a Object> {
        let list = self.0.get(&segment.process)?;
        let before = &list[..list.partition_point(|object| object.address < segment.end)];
        let is_there = |object: &&&Object| {
            let life = object.born_ns..=object.died_ns.unwrap_or(u64::MAX);
            object.address.saturating_add(object.bytes) > segment.start && life.contains(&segment.time_ns)
        };
        before.iter().rev().take(LOOKED_AT).find(is_there).copied()
    }
}
