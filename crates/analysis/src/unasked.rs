//! On a machine with several nodes: whether the kernel said where pages are. Without its answers, pages count as placed by first touch, and neither a
//! memory policy nor a full node would show. A recorder beside busy threads may never get to ask.

use crate::Target;
use firsttouch_model::rows::{Id, Part, Profile, in_words};
use hashbrown::HashMap;

/// The parts of a profile in which the kernel was not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unasked {
    /// `rank 3 of 8`; `None` if it is the whole profile.
    pub ranks: Option<String>,
}

impl Unasked {
    /// `None` if the kernel was asked in every part, or where first touch is what counts (a virtual machine, one node).
    #[must_use]
    pub fn of(profile: &Profile, target: &Target) -> Option<Self> {
        if target.virtual_machine || target.nodes < 2 || profile.objects.is_empty() {
            return None;
        }
        let part = |process: Id| profile.index_of_part(process).unwrap_or(0);
        let mut is_asked = vec![false; profile.parts.len().max(1)];
        let pages = profile.pages.iter().filter(|page| page.node >= 0).map(|page| page.process);
        let touches = profile.first_touches.iter().filter(|touch| touch.node.is_some_and(|node| node >= 0)).map(|touch| touch.process);
        let process_of: HashMap<Id, Id> = profile.objects.iter().map(|object| (object.id, object.process)).collect();
        let policies = profile.policies.keys().filter_map(|object| process_of.get(object).copied());
        for process in pages.chain(touches).chain(policies) {
            is_asked[part(process)] = true;
        }
        let unasked: Vec<&Part> = profile.parts.iter().zip(&is_asked).filter(|(_, asked)| !**asked).map(|(part, _)| part).collect();
        is_asked.contains(&false).then(|| Self { ranks: in_words(&unasked, &profile.parts).filter(|_| !unasked.is_empty()) })
    }
}
