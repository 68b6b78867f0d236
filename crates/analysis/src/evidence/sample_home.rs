//! The node that a sampled page was on when it was accessed.

use super::{Evidence, Hit, Reader};
use crate::groups::Group;
use crate::homes::{Home, comes_later, home, home_between, observed};
use crate::touch_record::{BASE_PAGE, Placed};
use crate::touches::ObjectTouches;
use firsttouch_model::rows::Id;
use std::collections::HashMap;

/// Instructions closer together than this belong to one loop body, bytes.
const SAME_LOOP: u64 = 64;

impl Reader<'_> {
    /// For a group with rows, if a member that was hit has no record of its own: all records in the group's logical range.
    pub(super) fn logical(&self, group: usize, hits: &[Hit], touches: &HashMap<usize, ObjectTouches>) -> Option<ObjectTouches> {
        let group = &self.groups[group];
        let bare = |hit: &Hit| touches.get(&hit.object).is_none_or(ObjectTouches::is_bare);
        (group.rows > 1 && hits.iter().any(bare)).then(|| in_logical_range(group, touches))
    }

    /// The node of a hit's page: from first touches, and on the recorded machine from the kernel's answers.
    pub(super) fn home(&self, hit: &Hit, group: usize, evidence: &Evidence, logical: Option<&ObjectTouches>) -> Home {
        let kernel_node = |thread: usize| self.threads.list[thread].node;
        let Some(own) = evidence.touches.get(&hit.object) else { return Home::Unknown };
        let nearest = match logical.filter(|_| own.is_bare()) {
            Some(all) => home(all, kernel_node, hit.position, hit.start),
            None => home_between(own, kernel_node, hit.offset, (hit.start, hit.end)),
        };
        if own.history.is_none() && self.initialises(hit, own) {
            return Home::Untouched;
        }
        let object = &self.profile.objects[hit.object];
        let derived = match nearest {
            // Neighbours disagree: if the touches follow a rule, it is a better estimate than the nearest neighbour.
            Home::Known { sure: false, .. } => {
                let worker = evidence.summaries[group].partition.owner_by_rule(hit.position);
                let thread = worker.and_then(|worker| self.threads.of_worker(object.process, worker));
                thread.map_or(nearest, |(t, _)| Home::Known {
                    thread: Some(t),
                    node: kernel_node(t),
                    first: Some(kernel_node(t)),
                    sure: false,
                })
            }
            _ => nearest,
        };
        let address = object.address.saturating_add(hit.offset);
        match self.real_nodes {
            Some(nodes) => observed(derived, self.residents, object, address, hit.start, own.page_bytes, nodes),
            None => self.by_policy(derived, object.id, address / own.page_bytes.max(1)),
        }
    }

    /// On a virtual machine: an interleaved object has its pages on the nodes in turn, whoever touches them first.
    fn by_policy(&self, derived: Home, object: Id, page: u64) -> Home {
        let is_interleaved = self.profile.policies.get(&object).is_some_and(|policy| policy.is_interleaved());
        if !is_interleaved || derived == Home::Untouched {
            return derived;
        }
        let (thread, first) = if let Home::Known { thread, first, .. } = derived { (thread, first) } else { (None, None) };
        Home::Known { thread, node: (page % self.nodes as u64) as u32, first, sure: true }
    }

    /// Whether a thread in the sample was still initialising its parts, with the code that made the first touches.
    fn initialises(&self, hit: &Hit, own: &ObjectTouches) -> bool {
        let same = |p: &Placed| hit.sites.iter().any(|&(site, _)| self.same_code(site, p.touch.site));
        hit.by_thread.iter().any(|by| comes_later(own, hit.offset, hit.start, by.thread, same))
    }

    /// Whether two call stacks end in the same line; without lines, within a few instructions of each other.
    fn same_code(&self, a: Option<Id>, b: Option<Id>) -> bool {
        let leaf = |site: Option<Id>| site.and_then(|id| self.profile.sites.get(&id)).and_then(|site| site.frames.first());
        let (Some(a), Some(b)) = (leaf(a), leaf(b)) else { return false };
        match (a.line, b.line) {
            (Some(_), Some(_)) => (&a.file, a.line) == (&b.file, b.line),
            _ => a.module == b.module && a.address.abs_diff(b.address) <= SAME_LOOP,
        }
    }
}

/// The records of all members at their logical positions.
fn in_logical_range(group: &Group, touches: &HashMap<usize, ObjectTouches>) -> ObjectTouches {
    let mut placed = Vec::new();
    let mut page_bytes = BASE_PAGE;
    for &object in &group.members {
        if let Some(own) = touches.get(&object) {
            page_bytes = page_bytes.max(own.page_bytes);
            placed.extend(own.placed.iter().map(|p| Placed { offset: group.position(object, p.offset), ..p.clone() }));
        }
    }
    placed.sort_by_key(|p| (p.offset, p.touch.time));
    ObjectTouches {
        address: 0,
        bytes: group.extent(),
        page_bytes,
        placed,
        hints: Vec::new(),
        history: None,
        kernel: None,
        kernel_pages: 0.0,
        incomplete: false,
    }
}
