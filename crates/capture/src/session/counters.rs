//! The kernel's own counters of placement and migration: at the start, and up to the end.

use crate::track::Tracker;
use firsttouch_model::rows::Counter;
use firsttouch_model::system::Counters;
use firsttouch_system::counters;
use std::collections::BTreeMap;

/// How often they are read while the program runs, for a profile cut short.
const EVERY_NS: u64 = 5_000_000_000;

/// Counters by name and node (`None`: the whole system).
type Values = BTreeMap<(String, Option<u32>), u64>;

#[derive(Default)]
pub(super) struct CounterRecorder {
    start: Values,
    next_ns: u64,
}

impl CounterRecorder {
    /// Reads the counters, and the memory of each node, if it is time or the run ends.
    pub(super) fn read(&mut self, tracker: &mut Tracker, now: u64, is_end: bool) {
        if now < self.next_ns && !is_end {
            return;
        }
        self.next_ns = now.saturating_add(EVERY_NS);
        let mut values = flat(&counters::read(&tracker.scope.root));
        for memory in counters::memory(&tracker.scope.root) {
            values.insert(("memory_total_bytes".to_owned(), Some(memory.node)), memory.total_bytes);
            values.insert(("memory_free_bytes".to_owned(), Some(memory.node)), memory.free_bytes);
        }
        if self.start.is_empty() {
            self.start.clone_from(&values);
        }
        for (key, at_end) in values {
            let at_start = self.start.get(&key).copied().unwrap_or(0);
            let (name, node) = key;
            tracker.sink.write(|w| w.counter(&Counter { name, node, at_start, at_end }));
        }
    }
}

fn flat(counters: &Counters) -> Values {
    let system = counters.system.iter().map(|(name, &value)| ((name.clone(), None), value));
    let nodes = counters.nodes.iter().flat_map(|n| n.counters.iter().map(|(name, &value)| ((name.clone(), Some(n.id)), value)));
    system.chain(nodes).collect()
}
