//! The kernel's counters: numastat and vmstat of nodes, vmstat and pressure of the system.

use super::Found;
use crate::catalogue as metric;
use crate::catalogue::Metric;
use crate::exposition::Batch;
use firsttouch_system::proc::pressure;
use firsttouch_system::{balancing, counters};
use std::collections::BTreeMap;
use std::path::Path;

const OF_NODE: [(&str, &Metric); 8] = [
    ("numa_hit", &metric::NUMA_HIT),
    ("numa_miss", &metric::NUMA_MISS),
    ("numa_foreign", &metric::NUMA_FOREIGN),
    ("interleave_hit", &metric::NUMA_INTERLEAVE),
    ("local_node", &metric::NUMA_LOCAL),
    ("other_node", &metric::NUMA_OTHER),
    ("pgpromote_success", &metric::NODE_PROMOTED),
    ("pgpromote_candidate", &metric::NODE_PROMOTION_CANDIDATES),
];

const OF_SYSTEM: [(&str, &Metric); 5] = [
    ("numa_hint_faults", &metric::HINT_FAULTS),
    ("numa_hint_faults_local", &metric::HINT_FAULTS_LOCAL),
    ("numa_pages_migrated", &metric::BALANCING_MIGRATED),
    ("numa_pte_updates", &metric::BALANCING_PTE_UPDATES),
    ("numa_huge_pte_updates", &metric::BALANCING_HUGE_PTE_UPDATES),
];

const BY_RESULT: [(&str, &Metric, &str); 5] = [
    ("pgmigrate_success", &metric::MIGRATED, "success"),
    ("pgmigrate_fail", &metric::MIGRATED, "failure"),
    ("thp_migration_success", &metric::HUGE_MIGRATIONS, "success"),
    ("thp_migration_fail", &metric::HUGE_MIGRATIONS, "failure"),
    ("thp_migration_split", &metric::HUGE_MIGRATIONS, "split"),
];

/// What the kernel counts since boot.
pub fn counters(root: &Path) -> Found {
    let read = counters::read(root);
    let mut found = Found { doubts: read.doubts, ..Found::default() };
    for node in &read.nodes {
        found.batches.push(of_node(&node.id.to_string(), &node.counters));
    }
    let mut system = Batch::default();
    let switch = balancing::switch_value(root);
    system.add_known(&metric::BALANCING_ENABLED, &[], switch.map(|value| value & 1 != 0));
    system.add_known(&metric::BALANCING_TIERING, &[], switch.map(|value| value & 2 != 0));
    for (name, metric) in OF_SYSTEM {
        system.add_known(metric, &[], read.system.get(name).copied());
    }
    for (name, metric, result) in BY_RESULT {
        system.add_known(metric, &[result], read.system.get(name).copied());
    }
    found.batches.push(system);
    found
}

fn of_node(node: &str, counters: &BTreeMap<String, u64>) -> Batch {
    let mut batch = Batch::default();
    for (name, metric) in OF_NODE {
        batch.add_known(metric, &[node], counters.get(name).copied());
    }
    for (name, pages) in counters {
        if let Some(by) = name.strip_prefix("pgdemote_").filter(|by| by.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')) {
            batch.add(&metric::NODE_DEMOTED, &[node, by], *pages);
        }
    }
    batch
}

/// How long tasks have waited.
pub fn pressure(root: &Path) -> Found {
    let mut batch = Batch::default();
    let seconds = |us: u64| us as f64 / 1e6;
    for resource in ["cpu", "memory", "io"] {
        let Some(waited) = pressure::waited(root, resource) else { continue };
        batch.add(&metric::PRESSURE_WAITING, &[resource], seconds(waited.some_us));
        batch.add_known(&metric::PRESSURE_STALLED, &[resource], waited.full_us.map(seconds));
    }
    let mut found = Found::default();
    if batch.is_empty() {
        let place = root.join("proc/pressure");
        found.doubts.push(format!("{}: cannot be read (a kernel without CONFIG_PSI, or started without psi=1)", place.display()));
    }
    found.batches.push(batch);
    found
}
