//! /proc/PID/task/TID/sched (CONFIG_SCHED_DEBUG): `se.nr_migrations : 12`, and `numa_faults node=0 task_private=1 task_shared=2 ...`.

use std::collections::BTreeMap;

/// What the scheduler counts for a thread; `None` where this kernel has no such line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sched {
    /// Times the thread changed its CPU.
    pub migrations: Option<u64>,
    /// Pages that NUMA balancing moved for the thread.
    pub pages_migrated: Option<u64>,
    pub preferred_node: Option<u32>,
    /// NUMA-hinting faults by node.
    pub hint_faults: Option<BTreeMap<u32, u64>>,
}

#[must_use]
pub fn parse(text: &str) -> Sched {
    let mut sched = Sched::default();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("numa_faults ") {
            let value = |key: &str| rest.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
            let Some(node) = value("node=").and_then(|node| u32::try_from(node).ok()) else { continue };
            let faults = sched.hint_faults.get_or_insert_default();
            let count = value("task_private=").unwrap_or(0).saturating_add(value("task_shared=").unwrap_or(0));
            if count > 0 {
                faults.insert(node, count);
            }
        } else if let Some((key, value)) = line.split_once(':') {
            let value = value.trim();
            match key.trim() {
                "se.nr_migrations" | "nr_migrations" => sched.migrations = value.parse().ok(),
                "numa_pages_migrated" => sched.pages_migrated = value.parse().ok(),
                // The kernel writes -1 if the thread prefers no node.
                "numa_preferred_nid" => sched.preferred_node = value.parse().ok(),
                _ => {}
            }
        }
    }
    sched
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the file of kernels with and without NUMA balancing.
    #[test]
    fn sched_files() {
        let sched = parse(
            "x (1, #threads: 1)\n---\nse.nr_migrations   :    12\nnuma_pages_migrated : 7\nnuma_preferred_nid : -1\n\
             current_node=0, numa_group_id=0\nnuma_faults node=0 task_private=0 task_shared=0 group_private=9 group_shared=9\n\
             numa_faults node=1 task_private=3 task_shared=4 group_private=0 group_shared=0\nnuma_faults node=x\nnuma_faults \n:",
        );
        assert_eq!((sched.migrations, sched.pages_migrated, sched.preferred_node), (Some(12), Some(7), None));
        assert_eq!(sched.hint_faults, Some([(1, 7)].into()));
        assert_eq!(parse("nr_migrations:x"), Sched::default());
    }
}
