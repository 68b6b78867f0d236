//! Which sites are one instruction. A site is a call stack, and code that calls itself (a sum by halves, a tree) comes to one instruction by many.

use firsttouch_model::rows::{Frame, Id, Profile, SampledAccess, Site};
use hashbrown::HashMap;

/// One site for each instruction of a process.
#[derive(Debug, Default)]
pub(super) struct Instructions(HashMap<Id, Id>);

impl Instructions {
    pub fn new(profile: &Profile) -> Self {
        // The address of interpreted code is its place in a function: others have the same.
        let is_interpreted = |frame: &Frame| frame.module.is_some() && frame.offset.is_none();
        let place = |site: &Site| site.frames.first().filter(|frame| !is_interpreted(frame)).map(|frame| (site.process, frame.address));
        let places = || profile.sites.iter().filter_map(|(&id, site)| Some((id, place(site)?)));
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
    use firsttouch_model::rows::AccessKind;

    /// Check that call stacks with one instruction are one, those of another process or instruction, or of interpreted code, are not, and unknown sites stay what they are.
    #[test]
    fn stacks_of_one_instruction_are_one() {
        let mut profile = Profile::default();
        for (id, process, addresses) in [(4, 1, &[0x10, 0x90][..]), (2, 1, &[0x10, 0x90, 0x90]), (3, 2, &[0x10]), (5, 1, &[0x18, 0x90])] {
            let frames = addresses.iter().map(|&address| Frame { address, ..Frame::default() }).collect();
            profile.sites.insert(id, Site { id, process, frames });
        }
        let interpreted = Frame { address: 0x10, module: Some("python".into()), ..Frame::default() };
        profile.sites.insert(1, Site { id: 1, process: 1, frames: vec![interpreted] });
        let instructions = Instructions::new(&profile);
        let of = |site: Option<Id>| {
            let (sample, object, address, bytes, words) = (1, 1, 0, 8, 1.0);
            instructions.of(&SampledAccess { sample, object, address, bytes, words, kind: AccessKind::Read, site, stride: Some(8) })
        };
        assert_eq!([1, 2, 3, 4, 5, 6].map(|id| of(Some(id))), [Some(1), Some(2), Some(3), Some(2), Some(5), Some(6)]);
        assert_eq!(of(None), None);
    }
}
