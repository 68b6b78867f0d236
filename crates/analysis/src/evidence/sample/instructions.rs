//! Which sites are one instruction. A site is a call stack, and code that calls itself (a sum by halves, a tree) comes to one instruction by many.

use firsttouch_model::rows::{Id, Profile, SampledAccess};
use hashbrown::HashMap;

/// One site for each instruction of a process.
#[derive(Debug, Default)]
pub(super) struct Instructions(HashMap<Id, Id>);

impl Instructions {
    pub fn new(profile: &Profile) -> Self {
        let places = || profile.sites.iter().filter_map(|(&id, site)| Some((id, (site.process, site.frames.first()?.address))));
        let mut first: HashMap<(Id, u64), Id> = HashMap::new();
        for (id, place) in places() {
            first.entry(place).and_modify(|known| *known = id.min(*known)).or_insert(id);
        }
        Self(places().map(|(id, place)| (id, first[&place])).filter(|(id, first)| id != first).collect())
    }

    /// The site that stands for the instruction of an access.
    pub fn of(&self, access: &SampledAccess) -> Option<Id> {
        access.site.map(|site| self.0.get(&site).copied().unwrap_or(site))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{AccessKind, Frame, Site};

    /// Check that call stacks with one instruction are one, those of another process or instruction are not, and unknown sites stay what they are.
    #[test]
    fn stacks_of_one_instruction_are_one() {
        let mut profile = Profile::default();
        for (id, process, addresses) in [(4, 1, &[0x10, 0x90][..]), (2, 1, &[0x10, 0x90, 0x90]), (3, 2, &[0x10]), (5, 1, &[0x18, 0x90])] {
            let frames = addresses.iter().map(|&address| Frame { address, ..Frame::default() }).collect();
            profile.sites.insert(id, Site { id, process, frames });
        }
        let instructions = Instructions::new(&profile);
        let of = |site: Option<Id>| {
            let (sample, object, address, bytes, words) = (1, 1, 0, 8, 1.0);
            instructions.of(&SampledAccess { sample, object, address, bytes, words, kind: AccessKind::Read, site, stride: Some(8) })
        };
        assert_eq!([2, 3, 4, 5, 6].map(|id| of(Some(id))), [Some(2), Some(3), Some(2), Some(5), Some(6)]);
        assert_eq!(of(None), None);
    }
}
