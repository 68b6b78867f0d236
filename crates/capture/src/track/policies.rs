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

/// Objects that are looked at before the agent's records are read again.
const AT_ONCE: usize = 1 << 15;

/// Reads the policies that are due. On a machine with one node, where a policy matters only for virtual ones, once an object. Returns whether some
/// objects are left for the next call.
pub(super) fn read(processes: &mut Processes, scope: &Scope, sink: &mut Sink, now: u64) -> bool {
    let mut is_left = false;
    for process in processes.live.values_mut().filter(|p| p.policies.reading.is_some() || p.policies.next_ns <= now) {
        let (mappings, from) = if let Some(reading) = process.policies.reading.take() {
            reading
        } else {
            let is_open = |(_, object): (&u64, &LiveObject)| object.is_sampled() && object.policy.is_none();
            if !scope.has_nodes() && !process.objects.by_address.iter().any(is_open) {
                continue;
            }
            let began = monotonic_ns();
            let mappings = firsttouch_system::process::numa_maps(&scope.root, process.pid).unwrap_or_default();
            process.policies.done(now, monotonic_ns().saturating_sub(began));
            (mappings, 0)
        };
        // Neighbours have the same one, mostly.
        let mut policy: Arc<str> = Arc::from("");
        let mut next = None;
        for (count, (&address, object)) in process.objects.by_address.range_mut(from..).filter(|(_, o)| o.is_sampled()).enumerate() {
            if count == AT_ONCE {
                next = Some(address);
                break;
            }
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
        process.policies.reading = next.map(|address| (mappings, address));
        is_left |= process.policies.reading.is_some();
    }
    is_left
}
