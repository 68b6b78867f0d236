//! The kernel's own counters of placement and migration, at the start and up to the end; whether its balancing is on.

use super::Session;
use firsttouch_model::metadata::Entry;
use firsttouch_model::rows::Counter;
use firsttouch_model::system::Counters;
use firsttouch_system::{balancing, counters};
use std::collections::BTreeMap;

/// How often they are read while the program runs, for a profile cut short.
const EVERY_NS: u64 = 5_000_000_000;

/// Counters by name and node (none: the whole system).
type Values = BTreeMap<(String, Option<u32>), u64>;

/// The counters at the start, and when they are read next.
#[derive(Default)]
pub(super) struct Counted {
    start: Values,
    next_ns: u64,
}

impl Session<'_> {
    /// Reads the counters if it is time, or it is the end. Memory of each node goes with them.
    pub(super) fn read_counters(&mut self, now: u64, is_end: bool) {
        if now < self.counted.next_ns && !is_end {
            return;
        }
        self.counted.next_ns = now.saturating_add(EVERY_NS);
        let root = self.tracker.scope.root.clone();
        let mut values = flat(&counters::read(&root));
        for memory in counters::memory(&root) {
            values.insert(("memory_total_bytes".to_owned(), Some(memory.node)), memory.total_bytes);
            values.insert(("memory_free_bytes".to_owned(), Some(memory.node)), memory.free_bytes);
        }
        if self.counted.start.is_empty() {
            self.counted.start.clone_from(&values);
        }
        let start = &self.counted.start;
        let rows: Vec<Counter> = values
            .into_iter()
            .map(|((name, node), at_end)| {
                let at_start = start.get(&(name.clone(), node)).copied().unwrap_or(0);
                Counter { name, node, at_start, at_end }
            })
            .collect();
        self.tracker.sink.write(|w| rows.iter().try_for_each(|row| w.counter(row)));
        self.note_balancing();
    }

    /// Balancing that was switched on meanwhile makes hinting faults from then on.
    fn note_balancing(&mut self) {
        if self.tracker.scope.may_hint || self.tracker.scope.cpu_nodes.is_empty() {
            return;
        }
        let value = balancing::read(&self.tracker.scope.root).value.unwrap_or(0);
        if value != 0 {
            self.tracker.scope.may_hint = true;
            let machine = firsttouch_model::rows::Machine { numa_balancing: value, ..self.options.machine.clone() };
            self.tracker.sink.write(|w| w.machine(&machine));
        }
    }
}

impl crate::track::Tracker {
    /// How much of the profiled memory is in swap: a page that comes back is placed anew.
    pub fn read_swap(&mut self) {
        let swapped = self.processes.keys().filter_map(|&pid| firsttouch_system::procfs::swapped_bytes(&self.scope.root, pid)).sum::<u64>();
        if swapped > self.swapped_bytes {
            self.swapped_bytes = swapped;
            self.sink.write(|w| w.meta(Entry::SwappedBytes(swapped)));
        }
    }
}

fn flat(counters: &Counters) -> Values {
    let system = counters.system.iter().map(|(name, &value)| ((name.clone(), None), value));
    let nodes = counters.nodes.iter().flat_map(|n| n.counters.iter().map(|(name, &value)| ((name.clone(), Some(n.id)), value)));
    system.chain(nodes).collect()
}
