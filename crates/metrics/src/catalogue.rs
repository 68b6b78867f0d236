//! Every metric, in the order in which they are shown. Names follow node_exporter: base units, the unit at the end, `_total` for what only grows.

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows. Its samples are named `NAME_total`.
    Counter,
    Gauge,
    /// Its labels are the information; its value is 1. Its samples are named `NAME_info`.
    Info,
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// Without the ending that its kind adds.
    pub name: &'static str,
    pub kind: Kind,
    /// The unit, with which the name ends; empty for counts.
    pub unit: &'static str,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

impl Metric {
    /// The name of its samples.
    #[must_use]
    pub fn sample_name(&self) -> String {
        let ending = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
            Kind::Info => "_info",
        };
        format!("{}{ending}", self.name)
    }
}

macro_rules! catalogue {
    ($($id:ident = $kind:ident $name:literal $unit:literal [$($label:literal)*] $help:literal;)*) => {
        $(pub static $id: Metric = Metric { name: $name, kind: Kind::$kind, unit: $unit, labels: &[$($label),*], help: $help };)*
        /// All of them.
        pub static ALL: &[&Metric] = &[$(&$id),*];
    };
}

catalogue! {
    NODE_CPUS = Gauge "firsttouch_node_cpus" "" ["node"] "Online CPUs of the node.";
    NODE_MEMORY_SIZE = Gauge "firsttouch_node_memory_size_bytes" "bytes" ["node"] "Memory of the node (MemTotal).";
    NODE_MEMORY_FREE = Gauge "firsttouch_node_memory_free_bytes" "bytes" ["node"] "Free memory of the node (MemFree).";
    NODE_MEMORY_USED = Gauge "firsttouch_node_memory_used_bytes" "bytes" ["node" "kind"]
        "Used memory of the node by what it is used for; the kinds do not overlap.";
    NODE_MEMORY_TRANSPARENT_HUGE = Gauge "firsttouch_node_memory_transparent_huge_bytes" "bytes" ["node"]
        "Transparent huge pages of programs on the node (AnonHugePages), a part of the kind anonymous.";

    NUMA_HIT = Counter "firsttouch_node_numa_hit" "" ["node"] "Pages allocated on this node as wanted (numastat).";
    NUMA_MISS = Counter "firsttouch_node_numa_miss" "" ["node"] "Pages allocated on this node because the wanted node had no room (numastat).";
    NUMA_FOREIGN = Counter "firsttouch_node_numa_foreign" "" ["node"] "Pages wanted on this node and allocated on another one (numastat).";
    NUMA_INTERLEAVE = Counter "firsttouch_node_numa_interleave" "" ["node"] "Pages that an interleave policy placed on this node as wanted (numastat).";
    NUMA_LOCAL = Counter "firsttouch_node_numa_local" "" ["node"] "Pages allocated on this node by a thread that ran on it (numastat).";
    NUMA_OTHER = Counter "firsttouch_node_numa_other" "" ["node"] "Pages allocated on this node by a thread that ran on another one (numastat).";
    NODE_PROMOTED = Counter "firsttouch_node_promoted_pages" "" ["node"] "Pages moved to this node from a slower tier (pgpromote_success).";
    NODE_PROMOTION_CANDIDATES = Counter "firsttouch_node_promotion_candidate_pages" "" ["node"]
        "Pages of a slower tier found hot, and wanted on this node (pgpromote_candidate).";
    NODE_DEMOTED = Counter "firsttouch_node_demoted_pages" "" ["node" "by"] "Pages moved from this node to a slower tier, by what moved them (pgdemote_).";

    BALANCING_ENABLED = Gauge "firsttouch_balancing_enabled" "" [] "1 if the kernel's NUMA balancing moves pages to the threads that use them.";
    BALANCING_TIERING = Gauge "firsttouch_balancing_tiering_enabled" "" [] "1 if the kernel's NUMA balancing moves hot pages to faster tiers.";
    HINT_FAULTS = Counter "firsttouch_balancing_hint_faults" "" [] "NUMA-hinting faults.";
    HINT_FAULTS_LOCAL = Counter "firsttouch_balancing_hint_faults_local" "" [] "NUMA-hinting faults on a page of the thread's own node.";
    BALANCING_MIGRATED = Counter "firsttouch_balancing_migrated_pages" "" [] "Pages moved by NUMA balancing.";
    BALANCING_PTE_UPDATES = Counter "firsttouch_balancing_pte_updates" "" [] "Page table entries marked for NUMA-hinting faults.";
    BALANCING_HUGE_PTE_UPDATES = Counter "firsttouch_balancing_huge_pte_updates" "" [] "Huge pages marked for NUMA-hinting faults.";
    MIGRATED = Counter "firsttouch_migrated_pages" "" ["result"] "Pages that were moved, or could not be, whatever asked for it (pgmigrate_).";
    HUGE_MIGRATIONS = Counter "firsttouch_huge_page_migrations" "" ["result"]
        "Transparent huge pages that were moved whole, split, or could not be moved (thp_migration_).";
    PRESSURE_WAITING = Counter "firsttouch_pressure_waiting_seconds" "seconds" ["resource"] "Time in which some task waited for the resource (PSI, some).";
    PRESSURE_STALLED = Counter "firsttouch_pressure_stalled_seconds" "seconds" ["resource"] "Time in which all tasks waited for the resource (PSI, full).";

    CGROUP_MEMORY = Gauge "firsttouch_cgroup_memory_bytes" "bytes" ["cgroup" "node" "kind"]
        "Memory of the control group and those below it, by node and by what it is used for (memory.numa_stat).";
    CGROUP_NODE_ALLOWED = Gauge "firsttouch_cgroup_node_allowed" "" ["cgroup" "node"]
        "1 if the control group may allocate memory on the node (cpuset.mems.effective), else 0.";
    CGROUP_OUTSIDE = Gauge "firsttouch_cgroup_memory_outside_cpuset_bytes" "bytes" ["cgroup"]
        "Memory of the control group on nodes that its cpuset does not allow.";

    PROCESS = Info "firsttouch_process" "" ["pid" "name" "user" "cgroup"] "A process with much memory: its user and its control group.";
    PROCESS_RESIDENT = Gauge "firsttouch_process_resident_memory_bytes" "bytes" ["pid" "name"] "Resident memory of the process.";
    PROCESS_MEMORY = Gauge "firsttouch_process_memory_bytes" "bytes" ["pid" "name" "node"] "Resident memory of the process by node (numa_maps), huge pages included.";
    PROCESS_CPU = Counter "firsttouch_process_cpu_seconds" "seconds" ["pid" "name"] "CPU time of the process.";
    PROCESS_MIGRATED = Counter "firsttouch_process_migrated_pages" "" ["pid" "name"] "Pages that NUMA balancing moved for the threads of the process.";
    PROCESS_CPU_MIGRATIONS = Counter "firsttouch_process_cpu_migrations" "" ["pid" "name"] "Times that threads of the process changed their CPU.";
    PROCESS_REMOTE = Gauge "firsttouch_process_remote_access_ratio" "ratio" ["pid" "name"]
        "Share of the process's memory accesses that go to another node than the thread's, of the judged machine; missing while it is not known.";
    PROCESS_REMOTE_LOWER = Gauge "firsttouch_process_remote_access_lower_bound_ratio" "ratio" ["pid" "name"]
        "Lower bound of the remote share: of its 95 % interval.";
    PROCESS_REMOTE_UPPER = Gauge "firsttouch_process_remote_access_upper_bound_ratio" "ratio" ["pid" "name"]
        "Upper bound of the remote share: of its 95 % interval.";
    PROCESS_REMOTE_SAMPLES = Gauge "firsttouch_process_remote_access_samples" "" ["pid" "name"] "Samples that the remote share rests on.";
    PROCESS_REMOTE_NEWEST = Gauge "firsttouch_process_remote_access_newest_sample_timestamp_seconds" "seconds" ["pid" "name"]
        "Unix time of the newest sample that the remote share rests on; a share whose newest sample is older than the window is missing.";
    JUDGED_MACHINE = Info "firsttouch_judged_machine" "" ["machine" "nodes" "virtual"] "The machine that remote shares are judged on.";

    BUILD = Info "firsttouch_build" "" ["version"] "The version of firsttouch.";
    START_TIME = Gauge "firsttouch_exporter_start_time_seconds" "seconds" [] "When the exporter started, seconds since 1970.";
    EXPORTER_CPU = Counter "firsttouch_exporter_cpu_seconds" "seconds" [] "CPU time of the exporter, without its recorders.";
    EXPORTER_MEMORY = Gauge "firsttouch_exporter_resident_memory_bytes" "bytes" [] "Resident memory of the exporter, without its recorders.";
    RECORDERS = Gauge "firsttouch_exporter_recorders" "" [] "Processes that are sampled now, each by a recorder.";
    HTTP_REQUESTS = Counter "firsttouch_http_requests" "" ["code"] "Requests that were answered, by status.";
    HTTP_CONNECTIONS = Gauge "firsttouch_http_connections" "" [] "Connections that are open.";
    HTTP_CLOSED = Counter "firsttouch_http_connections_closed" "" ["reason"] "Connections that the exporter closed before the client was done, by reason.";
    SCRAPE_DURATION = Gauge "firsttouch_scrape_duration_seconds" "seconds" [] "Time to read the figures of this scrape.";
    COLLECTOR_DURATION = Gauge "firsttouch_scrape_collector_duration_seconds" "seconds" ["collector"] "Time to read the figures of one collector.";
    COLLECTOR_SUCCESS = Gauge "firsttouch_scrape_collector_success" "" ["collector"] "1 if the collector could read what it should, else 0.";
    SERIES = Gauge "firsttouch_scrape_series" "" [] "Series of this scrape, without those about the exporter itself.";
    SERIES_LIMIT = Gauge "firsttouch_scrape_series_limit" "" [] "The most series that a scrape may have (--max-series).";
    SERIES_DROPPED = Gauge "firsttouch_scrape_series_dropped" "" ["collector"] "Series that this scrape left out because there were more than the limit.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Check names against the rules of OpenMetrics and of node_exporter.
    #[test]
    fn names_follow_the_rules() {
        let mut seen = BTreeSet::new();
        for metric in ALL {
            let Metric { name, unit, help, labels, kind } = metric;
            assert!(seen.insert(*name), "{name} twice");
            assert!(name.starts_with("firsttouch_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(!["_total", "_info", "_count", "_sum", "_bucket", "_created"].iter().any(|end| name.ends_with(end)), "{name}");
            assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name} has the unit {unit}");
            assert!(["", "bytes", "seconds", "ratio"].contains(unit), "{unit} is not a base unit");
            assert!(*kind != Kind::Info || unit.is_empty(), "{name}");
            assert!(
                ["bytes", "seconds", "ratio"].iter().all(|end| !name.ends_with(&format!("_{end}")) || unit == end),
                "{name} lacks its unit"
            );
            assert!(help.ends_with('.') && !help.contains(['\n', '\\', '"']), "{help}");
            assert!(labels.iter().collect::<BTreeSet<_>>().len() == labels.len(), "{name}");
        }
    }

    /// Check that the documentation lists each metric with its labels, and no other.
    #[test]
    fn the_documentation_lists_each_metric() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let document = std::fs::read_to_string(document).unwrap();
        let rows = document.lines().filter_map(|line| line.strip_prefix("| `firsttouch_"));
        let listed: BTreeSet<String> = rows
            .map(|row| {
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                format!("firsttouch_{} {}", cells[0].trim_end_matches('`'), cells[1].replace('`', ""))
            })
            .collect();
        let expected: BTreeSet<String> = ALL.iter().map(|one| format!("{} {}", one.sample_name(), one.labels.join(", "))).collect();
        assert_eq!(listed, expected);
    }
}
