//! The memory policy of live objects: that of the mappings they lie in, from /proc/PID/numa_maps.

use super::live_objects::LiveObject;
use super::processes::Processes;
use super::scope::Scope;
use crate::sink::Sink;
use firsttouch_model::rows::Policy;
use firsttouch_system::calls::clock::thread_cpu_ns;
use firsttouch_system::process::NumaMapping;
use std::borrow::Cow;
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
            let began = thread_cpu_ns();
            let mappings = firsttouch_system::process::numa_maps(&scope.root, process.pid).unwrap_or_default();
            process.policies.done(now, thread_cpu_ns().saturating_sub(began));
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
            let Some(words) = words(&mappings, address, object.bytes) else { continue };
            if object.policy.as_deref() != Some(&*words) {
                let is_usual = object.policy.is_none() && words == "default";
                if *policy != *words {
                    policy = Arc::from(&*words);
                }
                object.policy = Some(Arc::clone(&policy));
                process.policies.usual += u32::from(is_usual);
                if is_usual && process.policies.usual > MOST_USUAL {
                    continue;
                }
                let row = Policy { policy: words.into_owned(), time_ns: now };
                sink.write(|w| w.policy(object.id, &row));
            }
        }
        process.policies.reading = next.map(|address| (mappings, address));
        is_left |= process.policies.reading.is_some();
    }
    is_left
}

/// The policy of an object in words; `None` if it lies in no mapping.
fn words(mappings: &[NumaMapping], address: u64, bytes: u64) -> Option<Cow<'_, str>> {
    let end = address.saturating_add(bytes.max(1));
    // numa_maps does not say where a mapping ends. An object of a heap may begin in a mapping that was there before.
    let first = mappings.partition_point(|mapping| mapping.start <= address).saturating_sub(1);
    let inside = || mappings[first..].iter().take_while(|mapping| mapping.start < end);
    let one = inside().next()?;
    if inside().all(|mapping| mapping.policy == one.policy) {
        return Some(Cow::Borrowed(&one.policy));
    }
    let ends = inside().skip(1).map(|mapping| mapping.start).chain([end]);
    let parts: Vec<(u64, &str)> =
        inside().zip(ends).map(|(mapping, next)| (next - mapping.start.max(address), mapping.policy.as_str())).collect();
    Some(Cow::Owned(Policy::of_parts(&parts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u64, policy: &str) -> NumaMapping {
        NumaMapping { start, policy: policy.to_owned(), ..NumaMapping::default() }
    }

    /// Check objects inside one mapping, across several, and outside of all.
    #[test]
    fn objects_in_one_mapping_and_across_several() {
        let mappings = [at(0x1000, "default"), at(0x3000, "bind:0"), at(0x5000, "bind:1"), at(0x6000, "bind:1")];
        let of = |address: u64, bytes: u64| words(&mappings, address, bytes).map(Cow::into_owned);
        assert_eq!(of(0x1010, 0x100).as_deref(), Some("default"));
        assert_eq!(of(0x5800, 0x1000).as_deref(), Some("bind:1"));
        assert_eq!(of(0x3010, 0x3000).as_deref(), Some("8176 bytes bind:0; 4112 bytes bind:1"));
        assert_eq!(of(0x2000, 0).as_deref(), Some("default"));
        assert_eq!((of(0x100, 0x10), words(&[], 0x1000, 8)), (None, None));
        assert_eq!(of(0x800, 0x1000).as_deref(), Some("default"), "most of it lies there");
    }
}
