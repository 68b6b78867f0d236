//! The memory policy of live objects: that of the mapping they lie in, from /proc/PID/numa_maps.

use super::processes::Processes;
use super::scope::Scope;
use crate::sink::Sink;
use firsttouch_model::rows::Policy;
use firsttouch_system::clock::monotonic_ns;

/// Reads the policies that are due, on a machine with several nodes.
pub(super) fn read(processes: &mut Processes, scope: &Scope, sink: &mut Sink, now: u64) {
    if !scope.has_nodes() {
        return;
    }
    for process in processes.live.values_mut().filter(|p| p.policies.next_ns <= now) {
        let began = monotonic_ns();
        let mappings = firsttouch_system::process::numa_maps(&scope.root, process.pid).unwrap_or_default();
        process.policies.done(now, monotonic_ns().saturating_sub(began));
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
