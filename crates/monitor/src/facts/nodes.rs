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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn tree(root: &Path, busy: u64, misses: u64) {
        let idle = 1000 - busy;
        write(root, "proc/stat", &format!("cpu  1 2 3 4\ncpu0 {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu1 0 0 0 1000\ncpu2 500 0 0 500\n"));
        write(root, "proc/meminfo", "MemTotal: 3000 kB\nMemFree: 1000 kB\n");
        write(root, "proc/pressure/cpu", "some avg10=25.00 avg60=0 avg300=0 total=1\n");
        write(root, "proc/vmstat", "numa_hint_faults 7\nnuma_hint_faults_local 5\nnuma_pages_migrated 2\n");
        for node in 0..2 {
            write(
                root,
                &format!("sys/devices/system/node/node{node}/numastat"),
                &format!("numa_hit 100\nnuma_miss {misses}\nnuma_foreign 0\n"),
            );
            write(
                root,
                &format!("sys/devices/system/node/node{node}/meminfo"),
                &format!("Node {node} MemTotal: 2000 kB\nNode {node} MemFree: 500 kB\n"),
            );
        }
    }

    /// Check CPU, memory and counters of a machine with two nodes, from a recorded tree that changes.
    #[test]
    fn nodes_have_their_own_figures() {
        let root = tempfile::tempdir().unwrap();
        let mut nodes = Nodes::new(BTreeMap::from([(0, vec![0, 1]), (1, vec![2, 3])]));
        tree(root.path(), 100, 10);
        nodes.read(root.path(), 1_000_000_000);
        assert_eq!((nodes.rows(Window::Short)[0].cpu, nodes.system(Window::Short).cpu), (None, None), "a rate needs two readings");
        tree(root.path(), 100, 30);
        write(root.path(), "proc/stat", "cpu0 150 0 0 950\ncpu1 0 0 0 1100\ncpu2 600 0 0 500\n");
        nodes.read(root.path(), 3_000_000_000);
        let rows = nodes.rows(Window::Medium);
        assert_eq!((rows[0].cpu, rows[1].cpu, rows[0].cpus), (Some(0.5), Some(1.0), 2));
        assert_eq!((rows[0].misses_per_s, rows[0].hits_per_s), (Some(10.0), Some(0.0)));
        assert_eq!((rows[1].memory_total_bytes, rows[1].memory_free_bytes), (Some(2000 << 10), Some(500 << 10)));
        let system = nodes.system(Window::Medium);
        assert_eq!((system.pressure_cpu, system.pressure_memory, system.pages_migrated_per_s), (Some(0.25), None, Some(0.0)));
        assert_eq!((nodes.of_cpu(3), nodes.of_cpu(9), nodes.only()), (Some(1), None, None));
    }

    /// Check that a machine whose files are missing has no figures, and no zeros.
    #[test]
    fn missing_files_are_not_zero() {
        let root = tempfile::tempdir().unwrap();
        let mut nodes = Nodes::new(BTreeMap::from([(0, vec![0])]));
        nodes.read(root.path(), 1);
        nodes.read(root.path(), 2);
        let row = &nodes.rows(Window::Short)[0];
        assert_eq!((row.cpu, row.memory_total_bytes, row.misses_per_s), (None, None, None));
        assert!(!nodes.doubts().is_empty());
    }
}
