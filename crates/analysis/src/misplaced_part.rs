//! What of an object lies wrong, where it is more than one array: who touched the whole of it says nothing about the defect then.
//!
//! Several arrays in one mapping: static programs and processes that were attached to show no allocations, so one array that a single thread
//! initialised and others that all threads did are one object. The first
//! touches of the part that lies wrong show the defect.
//!
//! Several allocations of one line: a single thread may have initialised some of them, and all threads the others.

use crate::findings::SERIAL;
use crate::groups::Group;
use crate::judge::Subject;
use crate::threads::Threads;
use crate::touch_summary::{Record, TouchSummary};
use firsttouch_model::rows::{Id, ObjectKind};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

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
    let owner = |record: &Record| subject.partition.owner(record.position);
    let misplaced = misplaced_records(subject, process, threads);
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

/// The first touches of pages whose owner, as the object is used, runs on another node.
pub(crate) fn misplaced_records(subject: &Subject, process: Id, threads: &Threads) -> Vec<Record> {
    let node_of: HashMap<usize, u32> = threads.beside(process).map(|(_, thread)| (thread.worker, thread.node)).collect();
    let is_misplaced =
        |record: &&Record| subject.partition.owner(record.position).is_some_and(|owner| node_of.get(&owner) != node_of.get(&record.worker));
    subject.touch.placed.iter().filter(is_misplaced).copied().collect()
}

/// With fewer records, it is not known who touched an allocation.
const LEAST_OF_A_ROW: usize = 4;
/// The allocations that one thread touched hold at least this part of the misplaced pages.
const MOST_MISPLACED: f64 = 0.75;
/// At least this part of their pages is misplaced.
const LEAST_MISPLACED: f64 = 0.25;

/// The first touches of those allocations of a group that one worker touched alone, if the other allocations were touched by several, and nearly all
/// that lies wrong is in the former.
#[must_use]
pub fn misplaced_rows(subject: &Subject, group: &Group, process: Id, threads: &Threads) -> Option<TouchSummary> {
    let is_plain = group.rows > 1 && group.members.len() == group.rows && !group.growth && group.pool.is_none() && group.parts() == 0;
    if subject.reason.is_some() || !is_plain {
        return None;
    }
    let row_of = |record: &Record| record.position / group.stride.max(1);
    let mut rows: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    for record in &subject.touch.placed {
        rows.entry(row_of(record)).or_default().push(*record);
    }
    let known: Vec<(u64, Option<usize>)> =
        rows.iter().filter(|(_, list)| list.len() >= LEAST_OF_A_ROW).map(|(row, list)| (*row, only_worker(list))).collect();
    let serial: BTreeMap<u64, usize> = known.iter().filter_map(|(row, worker)| Some((*row, (*worker)?))).collect();
    let is_of_one = serial.values().collect::<BTreeSet<_>>().len() == 1;
    if !is_of_one || serial.len() == known.len() {
        return None;
    }
    let misplaced = misplaced_records(subject, process, threads);
    let is_serial = |record: &&Record| serial.contains_key(&row_of(record));
    let placed = || subject.touch.placed.iter();
    let pages = |records: &mut dyn Iterator<Item = &Record>| records.map(|record| record.pages).sum::<f64>();
    let all = pages(&mut misplaced.iter());
    let own = pages(&mut misplaced.iter().filter(is_serial));
    let touched = pages(&mut placed().filter(is_serial));
    let is_cause = all > 0.0 && own >= MOST_MISPLACED * all && own >= LEAST_MISPLACED * touched;
    let part = subject.touch.of_part(placed().filter(is_serial).copied());
    is_cause.then_some(TouchSummary { of_misplaced_part: true, serial_rows: Some(serial.len()), ..part })
}

/// The worker that made these first touches, if it made nearly all.
fn only_worker(records: &[Record]) -> Option<usize> {
    let mut pages: BTreeMap<usize, f64> = BTreeMap::new();
    for record in records {
        *pages.entry(record.worker).or_default() += record.pages;
    }
    let all: f64 = pages.values().sum();
    pages.into_iter().find(|(_, own)| *own >= SERIAL * all).map(|(worker, _)| worker)
}
