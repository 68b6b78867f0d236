//! Counters of placement and migration, and what each means.

use serde::Serialize;
use std::collections::BTreeMap;

/// The counters at one time, or their growth between two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    pub nodes: Vec<NodeCounters>,
    /// Counters that the kernel keeps only for the whole system.
    pub system: BTreeMap<String, u64>,
    /// What could not be read, or went backwards.
    pub doubts: Vec<String>,
}

/// The counters of one node. The unit of all counters is pages, unless [`meaning`] says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeCounters {
    pub id: u32,
    pub counters: BTreeMap<String, u64>,
}

impl Counters {
    /// Growth since `before`. A new counter or node counts from 0; one that shrank was reset in between and counts from 0 as well, with a
    /// doubt.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut doubts = self.doubts.clone();
        doubts.extend(before.doubts.iter().filter(|doubt| !self.doubts.contains(doubt)).cloned());
        let nodes = self
            .nodes
            .iter()
            .map(|node| {
                let earlier = before.nodes.iter().find(|one| one.id == node.id);
                let earlier = earlier.map(|one| &one.counters).unwrap_or(&EMPTY);
                NodeCounters { id: node.id, counters: grown(&node.counters, earlier, &format!(" of node {}", node.id), &mut doubts) }
            })
            .collect();
        let system = grown(&self.system, &before.system, "", &mut doubts);
        Self { nodes, system, doubts }
    }

    /// The sum of a counter over all nodes.
    #[must_use]
    pub fn sum(&self, name: &str) -> u64 {
        self.nodes.iter().filter_map(|node| node.counters.get(name)).fold(0, |sum, value| sum.saturating_add(*value))
    }
}

static EMPTY: BTreeMap<String, u64> = BTreeMap::new();

fn grown(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>, of: &str, doubts: &mut Vec<String>) -> BTreeMap<String, u64> {
    now.iter()
        .map(|(name, value)| {
            let earlier = before.get(name).copied().unwrap_or(0);
            let growth = value.checked_sub(earlier).unwrap_or_else(|| {
                doubts.push(format!("{name}{of} went from {earlier} to {value}: it was reset; counted from 0"));
                *value
            });
            (name.clone(), growth)
        })
        .collect()
}

/// Counters in the order of display, with what they mean (Documentation/admin-guide/numastat.rst, include/linux/vm_event_item.h,
/// mm/huge_memory.c and kernel/sched/fair.c of Linux 6.18).
const MEANINGS: &[(&str, &str)] = &[
    ("numa_hit", "pages allocated here, as the allocating thread wanted"),
    ("numa_miss", "pages allocated here because the node that was wanted had no room"),
    ("numa_foreign", "pages wanted here and allocated elsewhere: this node had no room"),
    ("interleave_hit", "pages allocated here in turn, by an interleave policy"),
    ("local_node", "pages allocated here by threads running here"),
    ("other_node", "pages allocated here by threads running on another node"),
    ("numa_hint_faults", "accesses the balancing caught on pages it had marked"),
    ("numa_hint_faults_local", "of these, accesses from the node the page was on"),
    ("numa_pages_migrated", "pages the balancing moved to another node"),
    ("numa_pte_updates", "pages the balancing marked to catch their next access"),
    ("numa_huge_pte_updates", "huge pages it marked"),
    ("numa_task_migrated", "threads the balancing moved to another node"),
    ("numa_task_swapped", "pairs of threads it exchanged between nodes"),
    ("pgmigrate_success", "pages moved for any reason (balancing, move_pages, compaction)"),
    ("pgmigrate_fail", "pages that could not be moved"),
    ("thp_migration_success", "huge pages moved whole"),
    ("thp_migration_fail", "huge pages that could not be moved"),
    ("thp_migration_split", "huge pages split because they could not be moved whole"),
    ("pgpromote_success", "pages moved up from a slow memory tier"),
    ("pgpromote_candidate", "pages of a slow tier found hot"),
    ("pgpromote_candidate_nrl", "the same, not bound by the promotion rate limit"),
    ("pgdemote_kswapd", "pages moved down to a slow tier in the background"),
    ("pgdemote_direct", "pages moved down to a slow tier while a thread waited for memory"),
    ("pgdemote_khugepaged", "pages moved down to a slow tier to form huge pages"),
    ("pgdemote_proactive", "pages moved down to a slow tier on request"),
    ("numa_interleave", "pages allocated by an interleave policy"),
    ("numa_local", "pages allocated by threads running on the page's node"),
    ("numa_other", "pages allocated by threads running on another node"),
];

/// The meaning of a counter, and its position in the order of display; `None` for an unknown counter.
#[must_use]
pub fn meaning(name: &str) -> Option<(usize, &'static str)> {
    let place = MEANINGS.iter().position(|(known, _)| *known == name)?;
    Some((place, MEANINGS[place].1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(node: u64, system: u64) -> Counters {
        Counters {
            nodes: vec![NodeCounters { id: 3, counters: [("numa_hit".to_owned(), node)].into() }],
            system: [("numa_hint_faults".to_owned(), system)].into(),
            doubts: Vec::new(),
        }
    }

    /// Check that growth is counted, that a new counter counts from 0, and that a reset causes a doubt.
    #[test]
    fn growth() {
        assert_eq!(counters(12, 9).since(&counters(10, 9)), counters(2, 0));
        assert_eq!(counters(12, 9).since(&Counters::default()), counters(12, 9));
        let reset = counters(4, 9).since(&counters(10, 9));
        assert_eq!((reset.sum("numa_hit"), reset.system["numa_hint_faults"]), (4, 0));
        assert_eq!(reset.doubts, ["numa_hit of node 3 went from 10 to 4: it was reset; counted from 0"]);
    }

    /// Check that meanings differ and are in order.
    #[test]
    fn meanings() {
        assert!(meaning("numa_hit").zip(meaning("numa_pages_migrated")).is_some_and(|(first, later)| first.0 < later.0));
        assert_eq!(meaning("pgfault"), None);
    }
}
