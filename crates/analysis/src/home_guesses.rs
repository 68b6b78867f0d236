//! How often the node of a page without a record is guessed wrong, from records of other pages or by a rule.

use crate::touch_record::BASE_PAGE;
use std::collections::BTreeMap;

/// The number of records that are searched for one on another page.
const NEAR: usize = 16;
/// Records on each side of a place, and how many of them are a long run of one thread's.
pub(crate) const AROUND: usize = 8;
const LONG_RUN: usize = 4;
/// Records are missing between two that are more than so many times further apart than what they stand for.
pub(crate) const MISSING: f64 = 4.0;

/// A record, as evidence of what the pages around it are guessed to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HomeRecord {
    pub position: u64,
    /// The node of the toucher.
    pub node: u32,
    pub worker: usize,
    pub pages: f64,
    /// Of these, those of the page that was touched.
    pub own_pages: f64,
    /// The node that the rule of the touches gives, where that decides instead of the nearest record.
    pub by_rule: Option<u32>,
}

/// Whether the threads of records in a row change so seldom that the nearest one is a better guess than a rule.
pub(crate) fn are_runs<T>(around: &[T], worker: impl Fn(&T) -> usize) -> bool {
    let changes = around.windows(2).filter(|two| worker(&two[0]) != worker(&two[1])).count();
    around.len() > AROUND && changes * LONG_RUN <= around.len()
}

/// Guesses of one record from another, weighed by the pages that they stand for.
#[derive(Default)]
struct Guesses {
    wrong: f64,
    pages: f64,
    squares: f64,
}

impl Guesses {
    fn add(&mut self, is_wrong: bool, pages: f64) {
        self.wrong += if is_wrong { pages } else { 0.0 };
        self.pages += pages;
        self.squares += pages * pages;
    }

    /// What part is wrong, with what so few guesses leave open: the upper end of an 80 % interval. Of n equal ones without an error that is 1.6 / n.
    fn error(&self) -> f64 {
        const QUANTILE: f64 = 0.84;
        const NONE_SEEN: f64 = 1.6;
        let (seen, count) = (self.wrong / self.pages, self.pages * self.pages / self.squares);
        (seen + QUANTILE * (seen * (1.0 - seen) / count).sqrt() + NONE_SEEN * (1.0 - seen) / count).min(1.0)
    }
}

/// How often the node of a page is guessed wrong from the records of other pages: by the rule of the touches where that decides, else each record
/// is guessed from the nearest one on another page. Pages without a record are half as far from the nearest record as records are from each other:
/// if nodes become independent with distance as 1 - exp(-d), to what chance gives, that is half of a small error, and all of one that chance gives. (0
/// if all pages have records, because then nothing is guessed.)
/// `records`: by position. `is_nearer_better`: false if no page is guessed better because it is nearer.
pub(crate) fn guess_error(records: &[HomeRecord], page_bytes: u64, is_nearer_better: bool) -> f64 {
    let page = |record: &HomeRecord| record.position / page_bytes.max(1);
    let (mut wrong, mut by_nearest, mut by_node, mut all) = (0.0, Guesses::default(), BTreeMap::<u32, f64>::new(), 0.0);
    for (i, record) in records.iter().enumerate() {
        let is_other = |other: &&HomeRecord| page(other) != page(record);
        let near = [records[..i].iter().rev().take(NEAR).find(is_other), records[i + 1..].iter().take(NEAR).find(is_other)];
        // Only the pages that the record stands for besides its own are guessed.
        let guessed = (record.pages - record.own_pages).max(0.0);
        if let Some(node) = record.by_rule {
            wrong += if node == record.node { 0.0 } else { guessed };
        } else if let Some(near) = near.into_iter().flatten().min_by_key(|other| other.position.abs_diff(record.position)) {
            by_nearest.add(near.node != record.node, guessed);
            *by_node.entry(record.node).or_default() += guessed;
        }
        all += record.pages;
    }
    if by_nearest.pages > 0.0 {
        let error = by_nearest.error();
        let chance = 1.0 - by_node.values().map(|pages| (pages / by_nearest.pages).powi(2)).sum::<f64>();
        let half_as_far = if error < chance { chance * (1.0 - (1.0 - error / chance).sqrt()) } else { error / 2.0 };
        wrong += if is_nearer_better { half_as_far } else { error } * by_nearest.pages;
    }
    if all > 0.0 { wrong / all } else { 0.0 }
}

/// The part of the pages that may be guessed wrong where records are missing for a while: those between two records of different nodes that are
/// much further apart than what they stand for. All of them, because they are guessed to be of the thread that went towards them, and the other
/// one may have come from there; as many as the rule of the touches gets wrong, where that decides. `records`: by position.
pub(crate) fn missing_error(records: &[HomeRecord]) -> f64 {
    let ruled = || records.iter().filter_map(|record| Some((record.by_rule? != record.node, record.pages)));
    let by_rule: f64 = ruled().map(|(_, pages)| pages).sum();
    let wrong: f64 = ruled().filter(|(is_wrong, _)| *is_wrong).map(|(_, pages)| pages).sum();
    let (mut missing, mut all) = (0.0, 0.0);
    for (one, next) in records.iter().zip(records.iter().skip(1)) {
        let (between, shown) = ((next.position - one.position) as f64 / BASE_PAGE as f64, f64::max(one.pages, next.pages));
        all += between;
        let part = if one.by_rule.is_some() && next.by_rule.is_some() { wrong / by_rule } else { 1.0 };
        missing += if one.node != next.node && between > MISSING * shown { (between - shown) * part } else { 0.0 };
    }
    if all > 0.0 { missing / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that records which are missing for a while make homes uncertain where those on both sides differ, and nowhere else.
    #[test]
    fn missing_records_are_uncertain() {
        let records = |second: u32, gap: u64| -> Vec<HomeRecord> {
            let record = |page: u64, node: u32| HomeRecord {
                position: page * BASE_PAGE,
                node,
                worker: node as usize,
                pages: 31.0,
                own_pages: 1.0,
                by_rule: None,
            };
            let block = move |first: u64, node: u32| (0..100u64).map(move |i| record(first + i * 31, node));
            block(0, 0).chain(block(3100 + gap, second)).collect()
        };
        let error = |second, gap| missing_error(&records(second, gap));
        assert!(error(1, 0) < 1e-9 && error(0, 2000) < 1e-9, "{} {}", error(1, 0), error(0, 2000));
        assert!((error(1, 2000) - 2000.0 / 8200.0).abs() < 0.01, "{}", error(1, 2000));
        assert!(guess_error(&records(1, 2000), BASE_PAGE, true) < 0.01);
    }

    /// Check that where the touches follow a rule, homes are as uncertain as the rule is wrong, and not as neighbours differ; also where records are
    /// missing.
    #[test]
    fn rules_are_certain() {
        let records = |by_rule: &dyn Fn(u64) -> Option<u32>| -> Vec<HomeRecord> {
            let at = |i: u64| if i < 100 { i * 31 } else { i * 31 + 5000 };
            let record = |i: u64| HomeRecord {
                position: at(i) * BASE_PAGE,
                node: (i % 2) as u32,
                worker: i as usize % 2,
                pages: 31.0,
                own_pages: 1.0,
                by_rule: by_rule(i),
            };
            (0..200).map(record).collect()
        };
        let errors = |records: Vec<HomeRecord>| (guess_error(&records, BASE_PAGE, true), missing_error(&records));
        let (guessed, missing) = errors(records(&|_| None));
        assert!(guessed > 0.4 && missing > 0.4, "{guessed} {missing}");
        let (guessed, missing) = errors(records(&|i| Some((i % 2) as u32)));
        assert!(guessed < 1e-9 && missing < 1e-9, "{guessed} {missing}");
        let (guessed, missing) = errors(records(&|i| Some(if i % 10 == 3 { 0 } else { (i % 2) as u32 })));
        assert!((guessed - 0.1 * 30.0 / 31.0).abs() < 0.01 && (missing - 0.1 * 4969.0 / 11169.0).abs() < 0.02, "{guessed} {missing}");
    }
}
