//! The memory policy of live objects: that of the mapping they lie in, from /proc/PID/numa_maps.
//!
//! The kernel walks a process's page tables to write that file, some 10 ns a page. So it is read rarely: reading takes at most half
//! a percent of the time.

use super::processes::Processes;
use super::scope::Scope;
use crate::sink::Sink;
use firsttouch_model::rows::Policy;
use firsttouch_system::clock::monotonic_ns;

/// Delay of the first reading after a process was first seen. Later readings follow at growing intervals.
const FIRST_NS: u64 = 200_000_000;
const GROWTH: f64 = 1.5;
/// Time between readings, as a multiple of the time that the last one took.
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

/// Reads the policies that are due, on a machine with several nodes.
pub(super) fn read(processes: &mut Processes, scope: &Scope, sink: &mut Sink, now: u64) {
    if !scope.has_nodes() {
        return;
    }
    for process in processes.live.values_mut().filter(|p| p.policies.next_ns <= now) {
        let began = monotonic_ns();
        let mappings = firsttouch_system::process::numa_maps(&scope.root, process.pid).unwrap_or_default();
        process.policies.read(now, monotonic_ns().saturating_sub(began));
        for (&address, object) in process.objects.by_address.iter_mut().filter(|(_, o)| o.is_sampled()) {
            let middle = address.saturating_add(object.bytes / 2);
            let after = mappings.partition_point(|m| m.start <= middle);
            let Some(mapping) = after.checked_sub(1).and_then(|i| mappings.get(i)) else { continue };
            if object.policy.as_deref() != Some(mapping.policy.as_str()) {
                object.policy = Some(mapping.policy.clone());
                let row = Policy { policy: mapping.policy.clone(), time_ns: now };
                sink.write(|w| w.policy(object.id, &row));
            }
        }
    }
}
