//! The memory policy of live objects: that of the mapping they lie in, from /proc/PID/numa_maps.
//!
//! The kernel walks a process's page tables to write that file, some 10 ns a page, so it is read rarely: reading takes at most half a percent
//! of the time.

use super::Tracker;
use firsttouch_model::rows::Policy;

/// The first reading comes so long after a process was first seen; others follow at growing distances.
const FIRST_NS: u64 = 200_000_000;
const GROWTH: f64 = 1.5;
/// Time between readings, in times of what the last one took.
const RARELY: u64 = 200;

/// When a process's policies are read next.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    next_ns: u64,
    pause_ns: u64,
}

impl Schedule {
    #[must_use]
    pub fn new(born_ns: u64) -> Self {
        Self { next_ns: born_ns.saturating_add(FIRST_NS), pause_ns: FIRST_NS }
    }

    fn read(&mut self, now: u64, took_ns: u64) {
        self.pause_ns = ((self.pause_ns as f64 * GROWTH) as u64).max(took_ns.saturating_mul(RARELY));
        self.next_ns = now.saturating_add(self.pause_ns);
    }
}

impl Tracker {
    /// Reads the policies that are due, on a machine with several nodes.
    pub fn read_policies(&mut self, now: u64) {
        if self.scope.cpu_nodes.is_empty() {
            return;
        }
        let mut rows = Vec::new();
        for process in self.processes.values_mut().filter(|p| p.policies.next_ns <= now) {
            let began = firsttouch_system::calls::clock::monotonic_ns();
            let mappings = firsttouch_system::process::numa_maps(&self.scope.root, process.pid).unwrap_or_default();
            process.policies.read(now, firsttouch_system::calls::clock::monotonic_ns().saturating_sub(began));
            for (&address, object) in process.objects.by_address.iter_mut().filter(|(_, o)| o.watchable()) {
                let middle = address.saturating_add(object.bytes / 2);
                let place = mappings.partition_point(|m| m.start <= middle);
                let Some(mapping) = place.checked_sub(1).and_then(|i| mappings.get(i)) else { continue };
                if object.policy.as_deref() != Some(mapping.policy.as_str()) {
                    object.policy = Some(mapping.policy.clone());
                    rows.push((object.id, Policy { policy: mapping.policy.clone(), time_ns: now }));
                }
            }
        }
        self.sink.write(|w| rows.iter().try_for_each(|(object, policy)| w.policy(*object, policy)));
    }
}
