//! The node that a sampled page was on when it was accessed.

use super::{Evidence, Hit, Reader};
use crate::groups::Group;
use crate::home_guesses::{AROUND, are_runs};
use crate::homes::{Home, around, by_policy, comes_later, home, home_between, observed};
use crate::touch_record::{BASE_PAGE, Placed};
use crate::touches::ObjectTouches;
use firsttouch_model::rows::{Id, Object, Placing};
use hashbrown::HashMap;

/// Instructions closer together than this belong to one loop body, bytes.
const SAME_LOOP: u64 = 64;

/// Records that show where a whole object's pages are.
const MANY_RECORDS: usize = 8;
/// So few records show only their own pages, if each of them stands for a large part (1 / `LARGE_PART`) of the object.
const FEW_RECORDS: usize = 6;
const LARGE_PART: f64 = 8.0;

/// Members of a group that have lived one after the other in one place (an array that each step of a program allocates anew), in a time when few
/// page faults were recorded: who touched them first is taken from the member nearest in time that has records.
pub(super) struct Successors<'e> {
    /// By slot and bytes, in the order of birth: when a member with many records was born, and its touches.
    known: HashMap<(usize, u64), Vec<(u64, &'e ObjectTouches)>>,
}

impl<'e> Successors<'e> {
    fn new(group: &Group, objects: &[Object], touches: &'e HashMap<usize, ObjectTouches>) -> Self {
        let mut known: HashMap<(usize, u64), Vec<(u64, &ObjectTouches)>> = HashMap::new();
        for &member in &group.members {
            if let Some(own) =
                touches.get(&member).filter(|own| own.placed.len() >= MANY_RECORDS && own.kernel.is_none() && !own.incomplete)
            {
                known.entry((group.slot(member), own.bytes)).or_default().push((objects[member].born_ns, own));
            }
        }
        Self { known }
    }

    /// The home of a page of a member with too few records, by the member nearest in time. It is not certain.
    fn home(&self, group: &Group, object: &Object, own: &ObjectTouches, hit: &Hit, kernel_node: impl Fn(usize) -> u32) -> Option<Home> {
        let page = |offset: u64| own.address.wrapping_add(offset) / own.page_bytes.max(1);
        if !has_few_records(own) || own.placed.iter().any(|placed| page(placed.offset) == page(hit.offset)) {
            return None;
        }
        let members = self.known.get(&(group.slot(hit.object), own.bytes))?;
        let &(born_ns, other) = members.iter().min_by_key(|(born_ns, _)| born_ns.abs_diff(object.born_ns))?;
        let then = born_ns.saturating_add(hit.start.saturating_sub(object.born_ns));
        Some(match home(other, kernel_node, hit.offset, then) {
            Home::Known { thread, node, first, .. } => Home::Known { thread, node, first, sure: false },
            home => home,
        })
    }
}

fn has_few_records(own: &ObjectTouches) -> bool {
    let is_large = |placed: &Placed| placed.covers() * LARGE_PART > own.bytes as f64;
    own.kernel.is_none() && own.history.is_none() && own.placed.len() < FEW_RECORDS && own.placed.iter().all(is_large)
}

/// Of so few rows, each is large, and its neighbours do not show who touched it.
const FEW_ROWS: usize = 16;
/// So many records of a member on average are those of all: one without any was touched before it was allocated, or is not recorded.
const SHOWS_ALL: usize = 8;

/// Whether the members of a group that have records have many.
fn has_many_records(group: &Group, touches: &HashMap<usize, ObjectTouches>) -> bool {
    let recorded = || group.members.iter().filter_map(|member| touches.get(member)).map(|own| own.placed.len()).filter(|count| *count > 0);
    recorded().sum::<usize>() >= SHOWS_ALL * recorded().count().max(1)
}

/// What other members of a group show about those without enough records.
pub(super) struct Others<'e> {
    pub logical: Option<ObjectTouches>,
    pub successors: Option<Successors<'e>>,
}

impl Reader<'_> {
    /// For a group whose members replaced one another, if one that was hit has too few records of its own.
    pub(super) fn successors<'e>(&self, group: usize, hits: &[Hit], touches: &'e HashMap<usize, ObjectTouches>) -> Option<Successors<'e>> {
        let group = &self.groups[group];
        let has_few = |hit: &Hit| touches.get(&hit.object).is_some_and(has_few_records);
        (group.members.len() > 1 && hits.iter().any(has_few)).then(|| Successors::new(group, &self.profile.objects, touches))
    }

    /// For a group with rows, if a member that was hit has no record of its own: all records in the group's logical range.
    pub(super) fn logical(&self, group: usize, hits: &[Hit], touches: &HashMap<usize, ObjectTouches>) -> Option<ObjectTouches> {
        let group = &self.groups[group];
        let bare = |hit: &Hit| touches.get(&hit.object).is_none_or(ObjectTouches::is_bare);
        let other_rows_tell = group.rows > FEW_ROWS || !has_many_records(group, touches);
        (group.rows > 1 && other_rows_tell && hits.iter().any(bare)).then(|| in_logical_range(group, touches))
    }

    /// The node of a hit's page: from first touches, and on the recorded machine from the kernel's answers.
    pub(super) fn home(&self, hit: &Hit, group: usize, evidence: &Evidence, others: &Others<'_>) -> Home {
        let kernel_node = |thread: usize| self.threads.list[thread].node;
        let Some(own) = evidence.touches.get(&hit.object) else { return Home::Unknown };
        let this = &self.profile.objects[hit.object];
        let of_successor = || others.successors.as_ref()?.home(&self.groups[group], this, own, hit, kernel_node);
        let of_rows = || Some(home(others.logical.as_ref().filter(|_| own.is_bare())?, kernel_node, hit.position, hit.start));
        let nearest = of_successor().or_else(of_rows).unwrap_or_else(|| home_between(own, kernel_node, hit.offset, (hit.start, hit.end)));
        if own.history.is_none() && self.initialises(hit, own) {
            return Home::Untouched;
        }
        let object = this;
        let derived = match nearest {
            // Neighbours disagree, or agree by chance, as records at equal distances may: if the touches follow a rule, it is a better estimate than
            // the nearest neighbour.
            Home::Known { sure, .. } if !sure || self.is_by_period(hit, group, own, evidence) => {
                let worker = self.owner_by_rule(hit, group, own, evidence);
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
        let page = address / own.page_bytes.max(1);
        let Some(nodes) = self.real_nodes else { return self.in_turn(derived, object.id, page) };
        observed(derived, self.residents, object, address, hit.start, own.page_bytes, nodes).unwrap_or_else(|| {
            let placing = self.profile.policies.get(&object.id).map(|policy| policy.placing(hit.offset, page));
            by_policy(derived, placing.unwrap_or(Placing::FirstTouch), nodes)
        })
    }

    /// Whether a period that explains the first touches well decides for a hit: the nearest record is so far away that it says nothing
    /// (an eighth of a part).
    fn is_by_period(&self, hit: &Hit, group: usize, own: &ObjectTouches, evidence: &Evidence) -> bool {
        let at = own.placed.partition_point(|placed| placed.offset < hit.offset);
        let near = [at.checked_sub(1).and_then(|below| own.placed.get(below)), own.placed.get(at)];
        let distance = near.into_iter().flatten().map(|placed| placed.offset.abs_diff(hit.offset)).min().unwrap_or(0);
        own.kernel.is_none() && distance >= own.page_bytes && evidence.summaries[group].partition.outreaches(distance)
    }

    /// The worker that the rule of the group's first touches gives for a hit, where the nearest record does not show it: its thread changes from record
    /// to record. Where long runs of records meet, the nearest one is right but for the border itself; a rule that is wrong between the records
    /// (one block of memory may be divided into several arrays) would be wrong all around.
    fn owner_by_rule(&self, hit: &Hit, group: usize, own: &ObjectTouches, evidence: &Evidence) -> Option<usize> {
        let above = own.placed.partition_point(|placed| placed.offset < hit.offset);
        let around = around(&own.placed, above, hit.offset, AROUND);
        let are_runs = are_runs(&around, |placed| self.threads.list[placed.touch.thread].worker);
        // The rule is one of pages: a place at the end of a page lies nearer to the next one.
        let offset = if own.page_bytes == BASE_PAGE { own.page_centre(hit.offset) } else { hit.offset };
        let position = self.groups[group].position(hit.object, offset);
        let partition = &evidence.summaries[group].partition;
        if are_runs && !self.is_by_period(hit, group, own, evidence) { None } else { partition.owner_by_rule(position) }
    }

    /// On a virtual machine: an interleaved object has its pages on the nodes in turn, whoever touches them first.
    fn in_turn(&self, derived: Home, object: Id, page: u64) -> Home {
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
        is_full: false,
    }
}
