//! The memory policy of live objects: that of the mapping they lie in, from /proc/PID/numa_maps.

use super::live_objects::LiveObject;
use super::processes::Processes;
use super::scope::Scope;
use crate::sink::Sink;
use firsttouch_model::rows::Policy;
use firsttouch_system::calls::clock::monotonic_ns;
use std::sync::Arc;

/// Objects of a process with the default policy that get a row. A verdict does not need it, and a million rows take so long that records of the
/// agent are lost meanwhile.
const MOST_USUAL: u32 = 20_000;

/// Reads the policies that are due. On a machine with one node, where a policy matters only for virtual ones, once an object.
pub(super) fn read(processes: &mut Processes, scope: &Scope, sink: &mut Sink, now: u64) {
    for process in processes.live.values_mut().filter(|p| p.policies.next_ns <= now) {
        let is_open = |(_, object): (&u64, &LiveObject)| object.is_sampled() && object.policy.is_none();
        if !scope.has_nodes() && !process.objects.by_address.iter().any(is_open) {
            continue;
        }
        let began = monotonic_ns();
        let mappings = firsttouch_system::process::numa_maps(&scope.root, process.pid).unwrap_or_default();
        process.policies.done(now, monotonic_ns().saturating_sub(began));
        // Neighbours have the same one, mostly.
        let mut policy: Arc<str> = Arc::from("");
        for (&address, object) in process.objects.by_address.iter_mut().filter(|(_, o)| o.is_sampled()) {
            let middle = address.saturating_add(object.bytes / 2);
            let after = mappings.partition_point(|m| m.start <= middle);
            let Some(mapping) = after.checked_sub(1).and_then(|i| mappings.get(i)) else { continue };
            if object.policy.as_deref() != Some(mapping.policy.as_str()) {
                let is_usual = object.policy.is_none() && mapping.policy == "default";
                if *policy != *mapping.policy {
                    policy = Arc::from(mapping.policy.as_str());
                }
                object.policy = Some(Arc::clone(&policy));
                process.policies.usual += u32::from(is_usual);
                if is_usual && process.policies.usual > MOST_USUAL {
                    continue;
                }
                let row = Policy { policy: mapping.policy.clone(), time_ns: now };
                sink.write(|w| w.policy(object.id, &row));
            }
        }
    }
}
