//! Objects whose threads filled a stretch each, as a static schedule divides a loop.
//!
//! Pages that threads take in turn appear side by side too, and their counts fit as well. So a row of several threads is divided into one stretch
//! for each of them only if samples confirm it (`shares.rs`), or if the object shows elsewhere that its threads work so: in one window, two threads
//! made a long row each, far from the other one and with all of their faults. Threads that take turns make many short rows each, or one row together.

use super::owners::{Owner, Owners};
use super::windows::{Row, Window};
use firsttouch_model::rows::Id;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeSet;

/// Pages between two rows, and of each.
const APART_PAGES: u64 = 64;
/// A row is so long, at least: this part of what each thread would have of the object.
const PART_OF_SHARE: f64 = 0.125;
/// A row has this part of its thread's faults in the window.
const OF_FAULTS: f64 = 0.9;

/// The objects of the rows, and those that were filled in stretches.
pub(super) struct Stretches {
    /// By window and row.
    owner_of: Vec<Vec<Owner>>,
    /// Pages of a row that a thread must have made alone.
    least: HashMap<Owner, f64>,
    filled: HashSet<Owner>,
}

impl Stretches {
    pub fn new(windows: &[Window], owners: &Owners<'_>) -> Self {
        let owner = |window: &Window, row: &Row| owners.of(&window.segment(row));
        let owner_of: Vec<Vec<Owner>> = windows.iter().map(|window| window.rows.iter().map(|row| owner(window, row)).collect()).collect();
        let mut all: HashMap<Owner, (u64, BTreeSet<Id>)> = HashMap::new();
        for (window, owners) in windows.iter().zip(&owner_of) {
            let busy = window.capacity.iter().filter(|(_, faults)| **faults >= APART_PAGES).filter_map(|(thread, _)| *thread);
            let busy: Vec<Id> = busy.collect();
            for (row, owner) in window.rows.iter().zip(owners) {
                let sums = all.entry(*owner).or_default();
                sums.0 += row.faults();
                sums.1.extend(&busy);
            }
        }
        let least = |(pages, threads): (u64, BTreeSet<Id>)| PART_OF_SHARE * pages as f64 / threads.len().max(1) as f64;
        Self { owner_of, least: all.into_iter().map(|(owner, sums)| (owner, least(sums))).collect(), filled: HashSet::new() }
    }

    /// The row belongs to an object that was filled in stretches.
    pub fn are_in(&self, w: usize, r: usize) -> bool {
        let owner = self.owner_of[w][r];
        owner != Owner::None && self.filled.contains(&owner)
    }

    /// The row is known to consist of stretches.
    pub fn add(&mut self, w: usize, r: usize) {
        self.filled.insert(self.owner_of[w][r]);
    }

    /// Looks for them in what is known. Returns whether there are any.
    pub fn find(&mut self, windows: &[Window]) -> bool {
        for (window, owners) in windows.iter().zip(&self.owner_of) {
            let made = |(row, owner): (&'_ Row, &Owner)| {
                let thread = row.maker()?;
                let faults = window.capacity.get(&Some(thread)).copied().unwrap_or(0);
                let is_long = row.faults() >= APART_PAGES && row.faults() as f64 >= self.least.get(owner).copied().unwrap_or(f64::INFINITY);
                let is_all = row.faults() as f64 >= OF_FAULTS * faults as f64;
                (*owner != Owner::None && is_long && is_all).then_some((row.start, row.end, row.page_bytes, thread, *owner))
            };
            let rows: Vec<_> = window.rows.iter().zip(owners).filter_map(made).collect();
            for (i, one) in rows.iter().enumerate() {
                let is_other = rows[i + 1..].iter().any(|other| {
                    other.4 == one.4 && other.3 != one.3 && one.1.saturating_add(APART_PAGES.saturating_mul(one.2)) <= other.0
                });
                if is_other {
                    self.filled.insert(one.4);
                }
            }
        }
        !self.filled.is_empty()
    }
}
