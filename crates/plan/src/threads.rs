//! Numbers and pins the threads of a plan.

use crate::{MOST_THREADS, Threads};
use firsttouch_analysis::{Analysis, ThreadView};
use firsttouch_model::rows::Profile;
use firsttouch_model::{NodeId, Pin};
use firsttouch_predict::forecast::ForecastMachine;
use std::collections::BTreeMap;

/// The thread numbers of the process that is planned for: the one with the most traffic; in a job, the rank of the first finding.
#[derive(Clone, Debug)]
pub struct Numbering {
    pub process: i64,
    pub threads: Threads,
    /// Whether its threads are created in the same order in every run.
    pub is_ordered: bool,
    /// By worker of the traffic: its number, if it is part of that process.
    of_worker: Vec<Option<u32>>,
}

impl Numbering {
    pub fn new(profile: &Profile, analysis: &Analysis, machine: &ForecastMachine, pin_was_named: bool) -> Self {
        let (views, traffic) = (&analysis.threads, &analysis.traffic);
        let view = |worker: usize| traffic.workers.get(worker)?.threads.first().and_then(|thread| views.get(*thread));
        let mut volumes: BTreeMap<i64, f64> = BTreeMap::new();
        for (worker, bytes) in traffic.objects.iter().flat_map(|object| &object.samples).flat_map(|sample| &sample.bytes) {
            if let Some(view) = view(*worker) {
                *volumes.entry(view.process).or_default() += bytes;
            }
        }
        let most = volumes.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(process, _)| *process);
        let process = rank_to_place(analysis).or(most).or_else(|| views.first().map(|view| view.process)).unwrap_or(0);
        let is_own = |view: &&ThreadView| view.process == process;
        let number = |worker: usize| view(worker).filter(is_own).and_then(|view| u32::try_from(view.slot).ok());
        let of_worker: Vec<Option<u32>> = (0..traffic.workers.len()).map(number).collect();
        let count = of_worker.iter().flatten().max().map_or(1, |last| last + 1).min(MOST_THREADS);
        let born = profile.threads.iter().filter(|thread| thread.process == process).take(count as usize);
        let is_ordered = births_are_ordered(born.map(|thread| (thread.id, thread.parent)));
        let numbered = || traffic.workers.iter().zip(&of_worker).filter_map(|(worker, number)| Some((worker, (*number)?)));
        let mut idle: Vec<u32> = numbered().filter(|(worker, _)| worker.idle).map(|(_, number)| number).collect();
        idle.retain(|number| *number < count);
        idle.sort_unstable();
        let seated = numbered().filter(|(worker, _)| !worker.idle).map(|(worker, number)| (number, worker.node)).collect();
        let mut threads = Threads { count, idle, pin: None };
        threads.pin = Pinning { analysis, machine, process, threads: &threads, seated }.pin(pin_was_named);
        Self { process, threads, is_ordered, of_worker }
    }

    /// The number of a worker of the traffic, if the plan contains it.
    pub fn of_worker(&self, worker: usize) -> Option<u32> {
        self.of_worker.get(worker).copied().flatten().filter(|number| *number < self.threads.count)
    }
}

/// The process of a job's first finding on memory of one rank: ranks do equal work, and one of them alone may have a defect.
fn rank_to_place(analysis: &Analysis) -> Option<i64> {
    let found = analysis.findings.iter().filter(|_| !analysis.ranks.is_empty()).filter_map(|finding| finding.object);
    let view = |id: i64| analysis.objects.iter().find(|object| object.id == id && object.shared_by.is_none());
    found.filter_map(view).map(|view| view.process).next()
}

/// Whether threads, given with their creators in order of birth, are always created in this order: one thread creates all others, or each
/// new creator is the thread created last, and earlier creators create no more.
fn births_are_ordered(born: impl Iterator<Item = (i64, Option<i64>)>) -> bool {
    let (mut creator, mut last) = (None, None);
    for (thread, parent) in born.skip(1) {
        if parent.is_some() && creator.is_some() && parent != creator && parent != last {
            return false;
        }
        (creator, last) = (parent.or(creator), Some(thread));
    }
    true
}

struct Pinning<'a> {
    analysis: &'a Analysis,
    machine: &'a ForecastMachine,
    process: i64,
    threads: &'a Threads,
    /// The node of each thread that takes a place, by thread number, for which the profile was judged.
    seated: BTreeMap<u32, u32>,
}

impl Pinning<'_> {
    /// The pinning for which the profile was judged: spread, or a node for each thread. `None` for a single thread, and for a process that
    /// shares the machine with others: a run pins the threads of all of them alike, so they would all be on the nodes of this one.
    fn pin(&self, was_named: bool) -> Option<Pin> {
        let (nodes, threads) = (self.analysis.machine.nodes.max(1), self.threads);
        if threads.placed() < 2 || self.is_kept_together() {
            return None;
        }
        // A run has no logical nodes for nodes without CPUs. If node numbers could be ambiguous for that reason, spread.
        let has_others = self.analysis.threads.iter().any(|view| view.node as usize >= nodes) || self.machine.memory_nodes.len() != nodes;
        let spread = |number: u32| Pin::Spread.node(threads.place(number) as usize, threads.placed() as usize, nodes, 1);
        if has_others || self.seated.iter().all(|(number, node)| spread(*number).0 == *node) || (!was_named && self.is_crowded()) {
            return Some(Pin::Spread);
        }
        Some(Pin::Nodes(
            (0..threads.count).map(|number| self.seated.get(&number).map_or_else(|| spread(number), |node| NodeId(*node))).collect(),
        ))
    }

    /// Whether all threads of this process are on one node, and threads of other processes on others.
    fn is_kept_together(&self) -> bool {
        let Some(node) = self.seated.values().next() else { return false };
        let elsewhere = |view: &ThreadView| !view.idle && view.process != self.process && view.node != *node;
        self.seated.values().all(|other| other == node) && self.analysis.threads.iter().any(elsewhere)
    }

    /// Whether the kernel had put more threads on a node than it has cores: unpinned threads move away.
    fn is_crowded(&self) -> bool {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        self.seated.values().for_each(|node| *counts.entry(*node).or_default() += 1);
        let even = self.seated.len().div_ceil(self.analysis.machine.nodes.max(1));
        counts.values().any(|count| *count > even)
            && self.machine.description().is_none_or(|machine| {
                counts.iter().any(|(node, count)| machine.nodes.get(*node as usize).is_none_or(|node| *count > node.cores))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::births_are_ordered;

    /// Check which births have a fixed order: those by one creator, and chains; not those by two creators at the same time.
    #[test]
    fn births_of_several_creators() {
        let ordered = |parents: &[i64]| {
            let born = parents.iter().enumerate().map(|(index, parent)| (index as i64, (*parent >= 0).then_some(*parent)));
            births_are_ordered(born)
        };
        for parents in [&[][..], &[-1], &[-1, 0, 0, 0], &[-1, 0, 1, 2], &[-1, 0, 0, 2, 2], &[-1, -1, -1, 0, -1, 0]] {
            assert!(ordered(parents), "{parents:?}");
        }
        for parents in [&[-1, 0, 1, 0][..], &[-1, 0, 0, 1], &[-1, 0, 0, 2, 1]] {
            assert!(!ordered(parents), "{parents:?}");
        }
    }
}
