//! Several arrays in one mapping: static programs and processes that were attached to show no allocations, so one array that a single thread
//! initialised and others that all threads did are one object. Who touched the whole of it says nothing about the defect then: the first
//! touches of the part that lies wrong do.

use crate::findings::SERIAL;
use crate::judge::Subject;
use crate::threads::Threads;
use crate::touch_summary::{Record, TouchSummary};
use firsttouch_model::rows::{Id, ObjectKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// With fewer records of misplaced pages, all first touches count.
const LEAST_RECORDS: usize = 8;

/// The first touches of the misplaced part, if one worker made them, in memory of most of the users. (Where a smaller team initialised the array,
/// one of it may have touched all misplaced pages too, but none of its own.)
#[must_use]
pub fn misplaced_part(subject: &Subject, kind: ObjectKind, process: Id, threads: &Threads) -> Option<TouchSummary> {
    let touch = &subject.touch;
    let is_serial = |touch: &TouchSummary| touch.main_worker().is_some_and(|(_, share)| share >= SERIAL);
    if subject.reason.is_some() || subject.arrays_in_mapping(kind).is_none() || is_serial(touch) {
        return None;
    }
    let node_of: HashMap<usize, u32> = threads.beside(process).map(|(_, thread)| (thread.worker, thread.node)).collect();
    let owner = |record: &Record| subject.partition.owner(record.position);
    let is_misplaced = |record: &&Record| owner(record).is_some_and(|owner| node_of.get(&owner) != node_of.get(&record.worker));
    let misplaced: Vec<Record> = touch.placed.iter().filter(is_misplaced).copied().collect();
    let part = TouchSummary { of_misplaced_part: true, ..touch.of_part(misplaced.iter().copied()) };
    let (worker, _) = part.main_worker().filter(|_| misplaced.len() >= LEAST_RECORDS && is_serial(&part))?;
    let sites: BTreeSet<Option<Id>> = misplaced.iter().filter(|record| record.worker == worker).map(|record| record.site).collect();
    let own = |record: &&Record| record.worker == worker && sites.contains(&record.site);
    let mut owners: BTreeMap<usize, f64> = BTreeMap::new();
    for (owner, pages) in touch.placed.iter().filter(own).filter_map(|record| Some((owner(record)?, record.pages))) {
        *owners.entry(owner).or_default() += pages;
    }
    // The borders of parts are not known to the page.
    let users = subject.users(threads).len();
    let fair = owners.values().sum::<f64>() / users.max(1) as f64;
    owners.retain(|_, pages| *pages >= fair / 4.0);
    (owners.contains_key(&worker) && 2 * owners.len() > users).then_some(part)
}
