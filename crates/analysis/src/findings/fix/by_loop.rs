//! Memory that loops divide differently: rows in one loop, columns in another. No thread has a part of it for itself, but one of the loops gives each
//! thread one block. If first touch follows that loop, its accesses are local, and those of the other loops stay as they are.

use super::super::{Case, Context, SERIAL};
use super::edit::Fix;
use super::library;
use crate::CodeLocation;
use crate::PartitionKind;
use crate::evidence::Hit;
use crate::findings::text::percent;
use crate::judge::Subject;
use crate::loops_apart::blocks;
use crate::partition::{Order, Partition};
use crate::report::ObjectView;
use crate::source_code::describe;
use firsttouch_model::finding::FindingKind;
use hashbrown::HashMap;

/// First touch by the loop must make at least this part of the accesses local that is remote now.
const LEAST_SAVED: f64 = 0.05;

/// A loop that gives each thread one block.
pub(in crate::findings) struct ByLoop<'a> {
    pub place: &'a CodeLocation,
    /// The most frequent other place that uses the memory.
    pub other: &'a CodeLocation,
    partition: Partition,
    /// The remote fraction of all accesses if each block is on its thread's node.
    after: f64,
}

impl<'a> ByLoop<'a> {
    /// `None` if no loop divides the memory in blocks, or all do.
    pub(in crate::findings) fn of(context: &Context<'_>, case: &Case<'a>) -> Option<Self> {
        let partition = &case.subject.partition;
        let is_plain = case.group.pool.is_none() && case.group.processes() == 1 && case.group.parts() == 0 && case.together.is_none();
        if !is_plain || partition.kind != PartitionKind::Irregular || !partition.leans || partition.of_tasks {
            return None;
        }
        let places = &case.view.used_at;
        let by_place: Vec<Vec<&Hit>> = places.iter().map(|place| hits_at(context, case, place)).collect();
        let (at, partition) = by_place.iter().enumerate().find_map(|(at, hits)| {
            let partition = blocks(context.threads, hits.iter().copied())?;
            (partition.order() == Order::Ascending).then_some((at, partition))
        })?;
        let mut places = places.iter().enumerate();
        let place = &case.view.used_at[at];
        let (_, other) = places.find(|(other, _)| *other != at)?;
        let after = case.view.used_at.iter().zip(&by_place).map(|(place, hits)| place.share * remote(context, &partition, hits)).sum();
        Some(Self { place, other, partition, after })
    }

    /// The fix; `None` if the memory is where that loop wants it already.
    pub(super) fn fix(&self, context: &Context<'_>, case: &Case<'_>) -> Option<Fix> {
        if !self.is_better(case) {
            return None;
        }
        let subject = Subject { partition: self.partition.clone(), ..case.subject.clone() };
        let view = ObjectView { partition: PartitionKind::Block, used_at: vec![self.place.clone()], ..case.view.clone() };
        let own = Case { subject: &subject, view: &view, ..*case };
        let kind = self.kind(case);
        let fix = context.fix_of_one(kind, &own);
        let (name, place, other) = (&case.view.name, describe(self.place), describe(self.other));
        let (now, after) = (case.subject.remote.map_or(0.0, |now| now.value), self.after);
        let words = format!(
            "two loops divide {name} differently. If its first touch follows the one at {place}, the accesses of that loop are local, and {} of all \
             accesses to {name} stay remote ({} now); none would if the one at {other} could be divided in the same way. So {}",
            percent(after),
            percent(now),
            fix.words
        );
        Some(Fix { library: library::placed(context, kind, &own), ..fix.said(words) })
    }

    pub(super) fn is_better(&self, case: &Case<'_>) -> bool {
        case.subject.remote.is_some_and(|now| self.after + LEAST_SAVED <= now.value)
    }

    fn kind(&self, case: &Case<'_>) -> FindingKind {
        let is_serial = case.subject.touch.main_worker().is_some_and(|(_, share)| share >= SERIAL);
        if is_serial { FindingKind::SerialFirstTouch } else { FindingKind::MismatchedPartition }
    }
}

/// The accesses that were made at this place alone.
pub(super) fn hits_at<'a>(context: &Context<'_>, case: &Case<'a>, place: &CodeLocation) -> Vec<&'a Hit> {
    let mut known = HashMap::new();
    let mut is_here = |site| *known.entry(site).or_insert_with(|| context.places.place(site).is_some_and(|one| one.is_same_line(place)));
    case.hits.iter().filter(|hit| !hit.sites.is_empty() && hit.sites.iter().all(|(site, _)| is_here(*site))).collect()
}

/// The fraction of these accesses by threads of other nodes than the owner's of the block.
fn remote(context: &Context<'_>, partition: &Partition, hits: &[&Hit]) -> f64 {
    let node: HashMap<usize, u32> = context.threads.list.iter().map(|thread| (thread.worker, thread.node)).collect();
    let (mut remote, mut all) = (0.0, 0.0);
    for hit in hits {
        let home = partition.owner(hit.position).and_then(|owner| node.get(&owner));
        for by in &hit.by_thread {
            all += 1.0;
            remote += if home == Some(&by.node) { 0.0 } else { 1.0 };
        }
    }
    if all > 0.0 { remote / all } else { 1.0 }
}
