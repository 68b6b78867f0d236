//! Recognises mappings that are stacks of threads. Stacks are not reported as objects, but without the agent, the kernel's list of mappings
//! does not identify them.
//!
//! The C library maps a thread's stack in one piece of the default size (the stack limit, 8 MiB nearly everywhere), above a guard
//! page. So mappings of equal size that lie exactly a guard page apart count as stacks, and so does a single mapping of 8 MiB, as
//! long as there are no more of them than threads besides the main thread. Mappings with sampled accesses are always reported.

use crate::touch_record::BASE_PAGE;
use firsttouch_model::rows::{Id, ObjectKind, Profile};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

const DEFAULT_BYTES: u64 = 8 << 20;

/// Indices of the objects that look like stacks of threads.
#[must_use]
pub fn stacks(profile: &Profile) -> HashSet<usize> {
    let mut threads: HashMap<Id, usize> = HashMap::new();
    for thread in &profile.threads {
        *threads.entry(thread.process).or_default() += 1;
    }
    let mut by_size: BTreeMap<(Id, u64), Vec<(u64, usize)>> = BTreeMap::new();
    for (i, object) in profile.objects.iter().enumerate() {
        if object.kind == ObjectKind::Mapping && object.name.is_none() {
            by_size.entry((object.process, object.bytes)).or_default().push((object.address, i));
        }
    }
    let mut found = HashSet::new();
    for ((process, bytes), mut list) in by_size {
        list.sort_unstable();
        let apart = |low: u64, high: u64| high.checked_sub(low) == bytes.checked_add(BASE_PAGE);
        let guarded = |i: usize| (i > 0 && apart(list[i - 1].0, list[i].0)) || list.get(i + 1).is_some_and(|next| apart(list[i].0, next.0));
        let like: Vec<usize> = (0..list.len()).filter(|&i| bytes == DEFAULT_BYTES || guarded(i)).map(|i| list[i].1).collect();
        if like.len() < threads.get(&process).copied().unwrap_or(0) {
            found.extend(like);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{Object, Thread};

    fn profile(threads: usize, mappings: &[(u64, u64)]) -> Profile {
        let thread = |id: usize| Thread { id: id as i64, process: 1, tid: 1, born_ns: 0, ..Thread::default() };
        let object = |(i, &(address, bytes)): (usize, &(u64, u64))| Object {
            id: i as i64,
            process: 1,
            kind: ObjectKind::Mapping,
            call: None,
            name: None,
            address,
            bytes,
            born_ns: 0,
            died_ns: None,
            site: None,
            thread: None,
        };
        Profile {
            threads: (0..threads).map(thread).collect(),
            objects: mappings.iter().enumerate().map(object).collect(),
            ..Profile::default()
        }
    }

    /// Check that mappings a guard page apart, or of the default size, are stacks, but never more than there are threads for.
    #[test]
    fn stacks_are_recognised_by_size_and_distance() {
        const M: u64 = 1 << 20;
        let found = |threads: usize, mappings: &[(u64, u64)]| {
            let mut list: Vec<usize> = stacks(&profile(threads, mappings)).into_iter().collect();
            list.sort_unstable();
            list
        };
        let three = [(M, 8 * M), (9 * M + 4096, 8 * M), (90 * M, 64 * M)];
        assert_eq!(found(3, &three), [0, 1]);
        assert_eq!(found(2, &three), [0; 0]);
        assert_eq!(found(4, &[(M, 2 * M), (3 * M + 4096, 2 * M), (20 * M, 2 * M)]), [0, 1]);
        assert_eq!(found(2, &[(M, 64 * M)]), [0; 0]);
    }
}
