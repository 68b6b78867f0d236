//! The nodes: CPU, memory, and the counters of placement.

use super::rate;
use crate::snapshot::{NodeRow, SystemRow, rounded};
use crate::window::{Counter, Window};
use firsttouch_model::system::Counters;
use firsttouch_system::proc::stat::{CpuTime, cpu_times};
use firsttouch_system::proc::{meminfo, pressure};
use firsttouch_system::{counters, proc};
use std::collections::BTreeMap;
use std::path::Path;

/// Counters of nodes, and those of the whole system.
const OF_NODES: [&str; 3] = ["numa_hit", "numa_miss", "numa_foreign"];
const OF_SYSTEM: [&str; 3] = ["numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"];

#[derive(Default)]
struct Cpu {
    busy: Counter,
    all: Counter,
}

impl Cpu {
    /// The part of the window in which it was busy.
    fn use_of(&self, window: Window) -> Option<f64> {
        let (busy, all) = (self.busy.rate(window)?, self.all.rate(window)?);
        (all > 0.0).then(|| (busy / all).min(1.0))
    }
}

/// Readings of the nodes.
#[derive(Default)]
pub struct Nodes {
    node_cpus: BTreeMap<u32, Vec<u32>>,
    cpus: BTreeMap<u32, Cpu>,
    /// By (node, name); the whole system has no node.
    counters: BTreeMap<(Option<u32>, &'static str), Counter>,
    memory: BTreeMap<u32, (u64, u64)>,
    system_memory: Option<(u64, u64)>,
    pressure: [Option<f64>; 2],
    doubts: Vec<String>,
}

impl Nodes {
    /// `node_cpus`: the CPUs of each node.
    #[must_use]
    pub fn new(node_cpus: BTreeMap<u32, Vec<u32>>) -> Self {
        Self { node_cpus, ..Self::default() }
    }

    /// Reads them.
    pub fn read(&mut self, root: &Path, now_ns: u64) {
        let text = std::fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
        for (cpu, CpuTime { busy_ticks, all_ticks }) in cpu_times(&text) {
            let known = self.cpus.entry(cpu).or_default();
            known.busy.read(now_ns, busy_ticks);
            known.all.read(now_ns, all_ticks);
        }
        let Counters { nodes, system, doubts } = counters::read(root);
        for node in nodes {
            for name in OF_NODES {
                if let Some(&value) = node.counters.get(name) {
                    self.counters.entry((Some(node.id), name)).or_default().read(now_ns, value);
                }
            }
        }
        for name in OF_SYSTEM {
            if let Some(&value) = system.get(name) {
                self.counters.entry((None, name)).or_default().read(now_ns, value);
            }
        }
        self.doubts = doubts;
        self.memory = counters::memory(root).into_iter().map(|one| (one.node, (one.total_bytes, one.free_bytes))).collect();
        let text = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let bytes = |key| meminfo::bytes(&text, None, key);
        self.system_memory = bytes("MemTotal").zip(bytes("MemFree"));
        self.pressure = ["cpu", "memory"].map(|resource| pressure::some_10s(root, resource).map(rounded));
    }

    /// What could not be read.
    #[must_use]
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Whether the machine has several nodes.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.node_cpus.len() >= 2
    }

    /// The node of a CPU.
    #[must_use]
    pub fn of_cpu(&self, cpu: u32) -> Option<u32> {
        self.node_cpus.iter().find(|(_, cpus)| cpus.contains(&cpu)).map(|(node, _)| *node)
    }

    /// The only node, if there is one.
    #[must_use]
    pub fn only(&self) -> Option<u32> {
        self.node_cpus.keys().next().copied().filter(|_| self.node_cpus.len() == 1)
    }

    fn used(&self, cpus: impl Iterator<Item = u32>, window: Window) -> Option<f64> {
        let used: Vec<f64> = cpus.filter_map(|cpu| self.cpus.get(&cpu)?.use_of(window)).collect();
        (!used.is_empty()).then(|| rounded(used.iter().sum()))
    }

    fn rate(&self, node: Option<u32>, name: &'static str, window: Window) -> Option<f64> {
        rate(self.counters.get(&(node, name))?, window)
    }

    /// The nodes' rows.
    #[must_use]
    pub fn rows(&self, window: Window) -> Vec<NodeRow> {
        let row = |(&node, cpus): (&u32, &Vec<u32>)| {
            // Where the kernel has no NUMA support, the only node has all memory.
            let memory = self.memory.get(&node).copied().or(self.system_memory.filter(|_| !self.are_several()));
            let [hits_per_s, misses_per_s, foreign_per_s] = OF_NODES.map(|name| self.rate(Some(node), name, window));
            NodeRow {
                node,
                cpus: cpus.len(),
                cpu: self.used(cpus.iter().copied(), window),
                memory_total_bytes: memory.map(|(total, _)| total),
                memory_free_bytes: memory.map(|(_, free)| free),
                hits_per_s,
                misses_per_s,
                foreign_per_s,
                accesses_in: None,
                accesses_out: None,
            }
        };
        self.node_cpus.iter().map(row).collect()
    }

    /// The row of the system, without the processes.
    #[must_use]
    pub fn system(&self, window: Window) -> SystemRow {
        let [hint_faults_per_s, hint_faults_local_per_s, pages_migrated_per_s] = OF_SYSTEM.map(|name| self.rate(None, name, window));
        let [pressure_cpu, pressure_memory] = self.pressure;
        SystemRow {
            cpus: self.cpus.len(),
            cpu: self.used(self.cpus.keys().copied(), window),
            memory_total_bytes: self.system_memory.map(|(total, _)| total),
            memory_free_bytes: self.system_memory.map(|(_, free)| free),
            pressure_cpu,
            pressure_memory,
            hint_faults_per_s,
            hint_faults_local_per_s,
            pages_migrated_per_s,
            processes: 0,
        }
    }
}

/// The size of a base page.
#[must_use]
pub fn page_bytes(root: &Path) -> u64 {
    std::fs::read(root.join("proc/self/auxv")).ok().and_then(|vector| proc::auxv::page_bytes(&vector)).unwrap_or(4096)
}
