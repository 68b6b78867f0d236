//! The scan: tables of all pairs, then curves on one node.

use super::one_pair::{PairBench, value_of};
use super::{Best, CurvePoint, Map, MapKernel, Options, Pair, PairFigure, PairTable};
use crate::bench::DEFAULT_CACHE_BYTES;
use crate::error::{Context, Error, ErrorKind};
use crate::host::machine_name;
use crate::kernels::Kernels;
use crate::{Progress, Result};
use firsttouch_model::topology::{Core, Distances, Topology};

/// With more nodes than this, only one kernel is measured, because all kernels would take minutes.
const NODES_WITH_ALL_KERNELS: usize = 2;
/// An array takes at most a node's free memory divided by this: a kernel has up to four arrays.
const PART_OF_NODE: u64 = 8;
/// Sweeps and repetitions of one bandwidth run, and loads of one latency run: each takes a few tens of milliseconds.
const SWEEPS: &str = "2";
const REPETITIONS: &str = "3";
const LOADS: &str = "300000";
/// Besides `read`, the first of these kernels that was measured for pairs gets a curve.
const CURVES_WITH_WRITES: [MapKernel; 4] = [MapKernel::Triad, MapKernel::Copy, MapKernel::Schoenauer, MapKernel::Write];

/// Measures this machine.
///
/// # Errors
/// When no node is usable, or no pair could be measured.
pub fn scan(topology: &Topology, options: &Options, progress: Progress<'_>) -> Result<Map> {
    let mut scan = Scan::new(options, topology, progress)?;
    for kernel in kernels(options, scan.map.cpu_nodes.len().max(scan.map.memory_nodes.len())) {
        scan.table(kernel);
    }
    scan.latencies();
    if !options.pairs_only {
        scan.curves();
    }
    let map = scan.map;
    if map.tables.iter().all(|table| table.cells.iter().all(|cell| cell.best.is_none())) {
        let why = map.tables.iter().flat_map(|table| &table.cells).find_map(|cell| cell.failed.clone());
        return Err(Error::new(ErrorKind::Kernel, format!("cannot measure any pair of nodes: {}", why.unwrap_or_default())));
    }
    Ok(map)
}

fn kernels(options: &Options, nodes: usize) -> Vec<MapKernel> {
    match (options.kernels.is_empty(), nodes <= NODES_WITH_ALL_KERNELS) {
        (false, _) => options.kernels.clone(),
        (true, true) => vec![MapKernel::Read, MapKernel::Copy, MapKernel::Triad, MapKernel::Schoenauer],
        (true, false) => vec![MapKernel::Triad],
    }
}

struct Scan<'a> {
    bench: PairBench,
    map: Map,
    /// The numbers of elements and of cache lines of an array, as options of the kernels.
    elements: String,
    lines: String,
    /// The kernels that are measured for pairs.
    measured: Vec<MapKernel>,
    distances: Option<Distances>,
    progress: Progress<'a>,
}

impl<'a> Scan<'a> {
    fn new(options: &Options, topology: &Topology, progress: Progress<'a>) -> Result<Self> {
        let process = topology.process.as_ref();
        let may_run = |cpu: &u32| process.and_then(|process| process.allowed_cpus.as_ref()).is_none_or(|cpus| cpus.contains(cpu));
        let may_use = |node: u32| process.and_then(|process| process.allowed_nodes.as_ref()).is_none_or(|nodes| nodes.contains(&node));
        let cpus: Vec<(u32, u32)> = topology
            .nodes
            .iter()
            .map(|node| (node.id, u32::try_from(node.cpus.iter().filter(|cpu| may_run(cpu)).count()).unwrap_or(0)))
            .filter(|(_, cpus)| *cpus > 0)
            .collect();
        let has_memory = |node: &&firsttouch_model::topology::Node| node.memory.is_none_or(|memory| memory.total_bytes > 0);
        let memory: Vec<_> = topology.nodes.iter().filter(has_memory).filter(|node| may_use(node.id)).collect();
        if cpus.is_empty() || memory.is_empty() {
            return Err(Error::new(
                ErrorKind::System,
                "cannot map this machine: this process may use the CPUs of no node, or the memory of no node (see 'firsttouch topology')",
            ));
        }
        let cache = topology.caches.iter().map(|cache| cache.size_bytes).max().filter(|bytes| *bytes > 0).unwrap_or(DEFAULT_CACHE_BYTES);
        let free = memory.iter().filter_map(|node| node.memory?.free_bytes).min().unwrap_or(u64::MAX);
        let array_bytes = options.array_bytes.unwrap_or(4 * cache).min(free / PART_OF_NODE).max(64 * 1024);
        let mut notes = Vec::new();
        let left_out: Vec<String> =
            topology.nodes.iter().filter(|node| !cpus.iter().any(|(id, _)| *id == node.id)).map(|node| node.id.to_string()).collect();
        if !left_out.is_empty() {
            notes.push(format!("Node {} has no CPUs that this process may use: only its memory was measured.", left_out.join(", ")));
        }
        let no_memory: Vec<String> =
            topology.nodes.iter().filter(|node| !memory.iter().any(|other| other.id == node.id)).map(|node| node.id.to_string()).collect();
        if !no_memory.is_empty() {
            notes.push(format!("Node {} has no memory that this process may use: only its CPUs were measured.", no_memory.join(", ")));
        }
        if array_bytes < 2 * cache {
            notes.push("The arrays are smaller than twice the last-level cache: caches raise the figures.".to_owned());
        }
        notes.extend(crate::host::others_run());
        let map = Map {
            schema: "firsttouch.map/1",
            machine: machine_name(topology),
            cpu_nodes: cpus.iter().map(|(node, _)| *node).collect(),
            memory_nodes: memory.iter().map(|node| node.id).collect(),
            threads: cpus.iter().map(|(_, threads)| *threads).collect(),
            cores: cpus.iter().map(|(node, threads)| cores_of(topology, *node, *threads, &may_run)).collect(),
            array_bytes,
            spread_limit: options.spread,
            tables: Vec::new(),
            curve_node: None,
            saturation: Vec::new(),
            loaded_latency: Vec::new(),
            one_thread_remote: None,
            notes,
        };
        Ok(Self {
            bench: PairBench { kernels: Kernels::new()?, most_runs: options.runs, spread: options.spread },
            elements: (array_bytes / 8).to_string(),
            lines: (array_bytes / 64).to_string(),
            map,
            measured: Vec::new(),
            distances: topology.distances.clone(),
            progress,
        })
    }

    fn table(&mut self, kernel: MapKernel) {
        let elements = self.elements.clone();
        let arguments = [kernel.name(), "--elements", &elements, "--iterations", SWEEPS, "--repetitions", REPETITIONS];
        self.measured.push(kernel);
        self.all_pairs(kernel.name(), kernel.about(), "GB/s", &arguments, "gb_per_s");
    }

    fn latencies(&mut self) {
        let lines = self.lines.clone();
        let arguments = ["chase", "--threads", "1", "--lines", &lines, "--iterations", LOADS, "--repetitions", REPETITIONS];
        self.all_pairs("latency", "one thread; map runs nothing beside it", "ns", &arguments, "latency_ns");
    }

    fn all_pairs(&mut self, name: &str, about: &str, unit: &str, arguments: &[&str], figure: &str) {
        let (mut cells, mut moved_factor) = (Vec::new(), None);
        for &memory_node in &self.map.memory_nodes {
            for &cpu_node in &self.map.cpu_nodes {
                (self.progress)(&format!("{name}: CPUs of node {cpu_node}, memory of node {memory_node}"));
                let measured = self.bench.measured(Pair { cpu_node, memory_node }, arguments, figure);
                let (best, failed) = match measured {
                    Ok(measured) => {
                        moved_factor = moved_factor.or(measured.moved_factor);
                        (measured.best, None)
                    }
                    Err(error) => (None, Some(format!("{error:#}"))),
                };
                cells.push(PairFigure { cpu_node, memory_node, best, failed });
            }
        }
        self.map.tables.push(PairTable { name: name.to_owned(), about: about.to_owned(), unit: unit.to_owned(), moved_factor, cells });
    }

    /// Curves on the first node with CPUs and memory: bandwidth by number of threads, and latency while other threads read.
    fn curves(&mut self) {
        let own = (0..self.map.cpu_nodes.len()).find(|&at| self.map.memory_nodes.contains(&self.map.cpu_nodes[at]));
        let Some(at) = own else { return };
        let (node, most, cores) = (self.map.cpu_nodes[at], self.map.threads[at], self.map.cores[at]);
        let pair = Pair { cpu_node: node, memory_node: node };
        self.map.curve_node = Some(node);
        let with_writes = CURVES_WITH_WRITES.into_iter().find(|kernel| self.measured.contains(kernel));
        for kernel in [MapKernel::Read].into_iter().chain(with_writes).map(MapKernel::name) {
            let counts = steps(cores).into_iter().chain((most > cores).then_some(most));
            for threads in counts {
                (self.progress)(&format!("node {node}: {kernel} by {threads} of {most} threads"));
                let best = self.bench.figure(pair, &self.stream(kernel, &threads.to_string()), "gb_per_s").ok().flatten();
                self.map.saturation.push(CurvePoint { kernel: kernel.to_owned(), threads, gb_per_s: best, latency_ns: None });
            }
        }
        if let Some(memory_node) = self.nearest_other(node) {
            (self.progress)(&format!("node {node}: one thread reads node {memory_node}"));
            let remote = self.bench.figure(Pair { cpu_node: node, memory_node }, &self.stream("read", "1"), "gb_per_s");
            self.map.one_thread_remote = remote.ok().flatten();
        }
        for threads in std::iter::once(0).chain(steps(most.saturating_sub(1))) {
            (self.progress)(&format!("node {node}: latency while {threads} threads read"));
            if let Ok((gb_per_s, latency_ns)) = self.loaded(pair, threads) {
                self.map.loaded_latency.push(CurvePoint { kernel: "read".to_owned(), threads, gb_per_s, latency_ns });
            }
        }
    }

    fn stream<'s>(&'s self, kernel: &'s str, threads: &'s str) -> [&'s str; 9] {
        [kernel, "--threads", threads, "--elements", &self.elements, "--iterations", SWEEPS, "--repetitions", REPETITIONS]
    }

    /// The nearest other node with memory.
    fn nearest_other(&self, node: u32) -> Option<u32> {
        let distance = |other: u32| {
            let distances = self.distances.as_ref()?;
            let [row, column] = [node, other].map(|id| distances.nodes.iter().position(|at| *at == id));
            distances.matrix.get(row?)?.get(column?).copied()
        };
        let others = self.map.memory_nodes.iter().copied().filter(|other| *other != node);
        others.min_by_key(|other| distance(*other).unwrap_or(u32::MAX))
    }

    /// Latency of one thread while `threads` others read, and the bandwidth of the others.
    fn loaded(&self, pair: Pair, threads: u32) -> Result<(Option<Best>, Option<Best>)> {
        let chase = ["chase", "--threads", "1", "--lines", &self.lines, "--iterations", LOADS, "--repetitions", REPETITIONS];
        if threads == 0 {
            return Ok((None, self.bench.figure(pair, &chase, "latency_ns")?));
        }
        let count = threads.to_string();
        // Enough repetitions that the readers start before the latency run and end after it.
        let reader = ["read", "--threads", &count, "--elements", &self.elements, "--iterations", SWEEPS, "--repetitions", "40"];
        let (mut speeds, mut latencies) = (Vec::new(), Vec::new());
        for _ in 0..self.bench.most_runs.min(4) {
            let load = self.bench.start(pair, &reader)?;
            let latency = self.bench.start(pair, &chase)?.wait_with_output().context(ErrorKind::System, "cannot wait for the kernel")?;
            let load = load.wait_with_output().context(ErrorKind::System, "cannot wait for the kernel")?;
            latencies.push(value_of(&latency.stdout, "latency_ns")?);
            speeds.push(value_of(&load.stdout, "gb_per_s")?);
        }
        Ok((Best::of(&speeds, true), Best::of(&latencies, false)))
    }
}

/// The number of cores of a node with a CPU that this process may use; the number of CPUs if cores are unknown.
fn cores_of(topology: &Topology, node: u32, threads: u32, may_run: &impl Fn(&u32) -> bool) -> u32 {
    let Some(node) = topology.nodes.iter().find(|one| one.id == node) else { return threads };
    let runs = |core: &&Core| core.cpus.iter().any(|cpu| node.cpus.contains(cpu) && may_run(cpu));
    let cores = topology.cores.iter().filter(runs).count();
    u32::try_from(cores).ok().filter(|cores| (1..=threads).contains(cores)).unwrap_or(threads)
}

/// 1, 2, 3, 4, then doubled, then `most`.
fn steps(most: u32) -> Vec<u32> {
    let mut steps: Vec<u32> = (1..=most.min(4)).collect();
    let mut next = 8;
    while next < most {
        steps.push(next);
        next *= 2;
    }
    if most > 4 {
        steps.push(most);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::steps;

    /// Check the numbers of threads of a curve.
    #[test]
    fn curves_have_few_points() {
        assert_eq!(steps(0), [0u32; 0]);
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(4), [1, 2, 3, 4]);
        assert_eq!(steps(6), [1, 2, 3, 4, 6]);
        assert_eq!(steps(24), [1, 2, 3, 4, 8, 16, 24]);
    }
}
