//! Memory that short threads use one after the other.

use crate::evidence::Hit;
use crate::groups::Group;
use crate::judge::Judge;
use crate::touch_summary::TouchSummary;
use firsttouch_model::Pin;
use std::collections::{BTreeMap, BTreeSet};

/// The part of the accesses that all come from one place.
const NEARLY_ALL: f64 = 0.95;
/// So many threads, one after the other, are short ones.
const LEAST_IN_TURN: usize = 8;

impl Judge<'_> {
    /// How many threads, one after the other, make nearly all accesses to memory that another thread of their process touched first. They share a place, but a kernel may
    /// run each of them on any node.
    pub(crate) fn in_turn(&self, group: &Group, hits: &[Hit], touch: &TouchSummary) -> Option<usize> {
        let process = self.profile.objects[group.representative].process;
        let mut of_worker: BTreeMap<usize, (f64, BTreeSet<usize>)> = BTreeMap::new();
        let mut all = 0.0;
        for hit in hits {
            for by in &hit.by_thread {
                let accesses = self.design.weight(hit.draw) * by.rate;
                let (sum, threads) = of_worker.entry(self.threads.list[by.thread].worker).or_default();
                *sum += accesses;
                threads.extend((self.threads.list[by.thread].process == process).then_some(by.thread));
                all += accesses;
            }
        }
        let (worker, (own, threads)) = of_worker.into_iter().max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
        if own < NEARLY_ALL * all || threads.len() < LEAST_IN_TURN {
            return None;
        }
        let (toucher, _) = touch.main_worker()?;
        // Beside others, each has a place of its own in its step. Where the user says where threads run, it is no chance.
        let team = self.threads.list[*threads.first()?].team;
        let has_others = self.threads.list.iter().any(|one| one.team == team && !one.idle && one.worker != worker && one.worker != toucher);
        let node_of = |of: usize| self.threads.list.iter().find(|one| one.team == team && one.worker == of).map(|one| one.node);
        let are_spread = self.target.pin == Pin::Spread && node_of(worker) != node_of(toucher);
        (toucher != worker && !has_others && are_spread).then_some(threads.len())
    }
}
