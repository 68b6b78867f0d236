//! `firsttouch map`

mod measure;

pub use measure::{Pair, check_place};

use super::kernels::Kernels;
use crate::arguments::{Map as Arguments, MapKernel};
use crate::output::{self, is_stdout, message, print, print_json};
use anyhow::{Result, bail};
use clap::ValueEnum;
use firsttouch_model::counted;
use firsttouch_model::topology::{Core, Distances, Topology};
use firsttouch_report::{Best, Cell, Map, Origin, Point, Table, heat_maps, machine_toml, map_text, map_xml};
use firsttouch_system::topology;
use measure::{Bench, value_of};
use std::io::{IsTerminal, stderr};
use std::path::Path;

/// A map of more nodes than these has one kernel, or it would take minutes.
const NODES_WITH_ALL_KERNELS: usize = 2;
/// Where no cache is known.
const USUAL_CACHE: u64 = 32 << 20;
/// An array takes at most this part of a node's free memory: four are needed.
const PART_OF_NODE: u64 = 8;
/// Sweeps and repetitions of one run, and loads of one: a few tens of milliseconds.
const SWEEPS: &str = "2";
const REPETITIONS: &str = "3";
const LOADS: &str = "300000";

pub fn run(arguments: &Arguments) -> Result<u8> {
    let topology = topology::read_this_system()?;
    let mut scan = Scan::new(arguments, &topology)?;
    for kernel in kernels(arguments, scan.map.cpu_nodes.len().max(scan.map.memory_nodes.len())) {
        scan.table(kernel);
    }
    scan.latencies();
    if !arguments.pairs_only {
        scan.curves();
    }
    let map = scan.map;
    if map.tables.iter().all(|table| table.cells.iter().all(|cell| cell.best.is_none())) {
        let why = map.tables.iter().flat_map(|table| &table.cells).find_map(|cell| cell.failed.clone());
        bail!("cannot measure any pair of nodes: {}", why.unwrap_or_default());
    }
    show(arguments, &map, &topology)?;
    Ok(0)
}

fn show(arguments: &Arguments, map: &Map, topology: &Topology) -> Result<()> {
    let mut printed = false;
    let mut write = |path: &Path, text: &str| {
        printed |= is_stdout(path);
        output::write(path, text)
    };
    if let Some(path) = &arguments.svg {
        write(path, &heat_maps(map))?;
    }
    if let Some(path) = &arguments.xml {
        write(path, &map_xml(map, topology))?;
    }
    if let Some(path) = &arguments.save {
        let name = path.file_stem().filter(|_| !is_stdout(path)).map(|stem| stem.to_string_lossy().into_owned());
        let origin = Origin { name: name.unwrap_or_else(host), host: host(), version: env!("CARGO_PKG_VERSION").to_owned() };
        write(path, &machine_toml(map, topology, &origin)?)?;
    }
    match (arguments.json, printed) {
        (true, _) => print_json(map),
        (false, false) => print(&map_text(map)),
        (false, true) => Ok(()),
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "this-machine".to_owned() } else { name.trim().to_owned() }
}

fn kernels(arguments: &Arguments, nodes: usize) -> Vec<MapKernel> {
    match (arguments.kernels.is_empty(), nodes <= NODES_WITH_ALL_KERNELS) {
        (false, _) => arguments.kernels.clone(),
        (true, true) => vec![MapKernel::Read, MapKernel::Copy, MapKernel::Triad, MapKernel::Schoenauer],
        (true, false) => vec![MapKernel::Triad],
    }
}

struct Scan {
    bench: Bench,
    map: Map,
    elements: String,
    lines: String,
    /// Kernels of the tables.
    swept: Vec<String>,
    distances: Option<Distances>,
    shows_progress: bool,
}

impl Scan {
    fn new(arguments: &Arguments, topology: &Topology) -> Result<Self> {
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
            bail!("cannot map this machine: no node has CPUs and none has memory that this process may use");
        }
        let cache = topology.caches.iter().map(|cache| cache.size_bytes).max().filter(|bytes| *bytes > 0).unwrap_or(USUAL_CACHE);
        let free = memory.iter().filter_map(|node| node.memory?.free_bytes).min().unwrap_or(u64::MAX);
        let array_bytes = arguments.size.unwrap_or(4 * cache).min(free / PART_OF_NODE).max(64 * 1024);
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
            notes.push("The arrays are smaller than twice the last-level cache, for want of free memory: caches help.".to_owned());
        }
        let map = Map {
            schema: "firsttouch.map/1",
            machine: machine(topology),
            cpu_nodes: cpus.iter().map(|(node, _)| *node).collect(),
            memory_nodes: memory.iter().map(|node| node.id).collect(),
            threads: cpus.iter().map(|(_, threads)| *threads).collect(),
            cores: cpus.iter().map(|(node, threads)| cores_of(topology, *node, *threads, &may_run)).collect(),
            array_bytes,
            spread_limit: arguments.spread,
            tables: Vec::new(),
            curve_node: None,
            saturation: Vec::new(),
            loaded_latency: Vec::new(),
            one_thread_remote: None,
            notes,
        };
        Ok(Self {
            bench: Bench { kernels: Kernels::new()?, most_runs: arguments.runs, spread: arguments.spread },
            elements: (array_bytes / 8).to_string(),
            lines: (array_bytes / 64).to_string(),
            map,
            swept: Vec::new(),
            distances: topology.distances.clone(),
            shows_progress: stderr().is_terminal(),
        })
    }

    fn table(&mut self, kernel: MapKernel) {
        let name = kernel.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        let about = match kernel {
            MapKernel::Read => "only reads",
            MapKernel::Copy => "one read for one write",
            MapKernel::Triad => "two reads for one write",
            MapKernel::Schoenauer => "three reads for one write",
            MapKernel::Write => "only writes",
        };
        let elements = self.elements.clone();
        let arguments = [name.as_str(), "--elements", &elements, "--iterations", SWEEPS, "--repetitions", REPETITIONS];
        self.swept.push(name.clone());
        self.all_pairs(&name, about, "GB/s", &arguments, "gb_per_s");
    }

    fn latencies(&mut self) {
        let lines = self.lines.clone();
        let arguments = ["chase", "--threads", "1", "--lines", &lines, "--iterations", LOADS, "--repetitions", REPETITIONS];
        self.all_pairs("latency", "one thread, nothing else runs", "ns", &arguments, "latency_ns");
    }

    fn all_pairs(&mut self, name: &str, about: &str, unit: &str, arguments: &[&str], figure: &str) {
        let (mut cells, mut moved_factor) = (Vec::new(), None);
        for &memory_node in &self.map.memory_nodes {
            for &cpu_node in &self.map.cpu_nodes {
                self.tell(&format!("{name}: CPUs of node {cpu_node}, memory of node {memory_node}"));
                let measured = self.bench.measured(Pair { cpu_node, memory_node }, arguments, figure);
                let (best, failed) = match measured {
                    Ok(measured) => {
                        moved_factor = moved_factor.or(measured.moved);
                        (measured.best, None)
                    }
                    Err(error) => (None, Some(format!("{error:#}"))),
                };
                cells.push(Cell { cpu_node, memory_node, best, failed });
            }
        }
        self.map.tables.push(Table { name: name.to_owned(), about: about.to_owned(), unit: unit.to_owned(), moved_factor, cells });
    }

    /// On the first node that has both: bandwidth by number of threads, and latency while threads read.
    fn curves(&mut self) {
        let own = (0..self.map.cpu_nodes.len()).find(|&at| self.map.memory_nodes.contains(&self.map.cpu_nodes[at]));
        let Some(at) = own else { return };
        let (node, most, cores) = (self.map.cpu_nodes[at], self.map.threads[at], self.map.cores[at]);
        let pair = Pair { cpu_node: node, memory_node: node };
        self.map.curve_node = Some(node);
        // Reads, and the first mix with writes.
        let mut kernels = vec!["read".to_owned()];
        kernels.extend(
            ["triad", "copy", "schoenauer", "write"]
                .iter()
                .find(|name| self.swept.iter().any(|swept| swept == *name))
                .map(|name| (*name).to_owned()),
        );
        for kernel in kernels {
            let counts = steps(cores).into_iter().chain((most > cores).then_some(most));
            for threads in counts {
                self.tell(&format!("node {node}: {kernel} by {threads} of {most} threads"));
                let best = self.bench.figure(pair, &self.stream(&kernel, &threads.to_string()), "gb_per_s").ok().flatten();
                self.map.saturation.push(Point { kernel: kernel.clone(), threads, gb_per_s: best, latency_ns: None });
            }
        }
        if let Some(memory_node) = self.nearest_other(node) {
            self.tell(&format!("node {node}: one thread reads node {memory_node}"));
            let remote = self.bench.figure(Pair { cpu_node: node, memory_node }, &self.stream("read", "1"), "gb_per_s");
            self.map.one_thread_remote = remote.ok().flatten();
        }
        for threads in std::iter::once(0).chain(steps(most.saturating_sub(1))) {
            self.tell(&format!("node {node}: latency while {threads} threads read"));
            if let Ok((gb_per_s, latency_ns)) = self.loaded(pair, threads) {
                self.map.loaded_latency.push(Point { kernel: "read".to_owned(), threads, gb_per_s, latency_ns });
            }
        }
    }

    fn stream<'a>(&'a self, kernel: &'a str, threads: &'a str) -> [&'a str; 9] {
        [kernel, "--threads", threads, "--elements", &self.elements, "--iterations", SWEEPS, "--repetitions", REPETITIONS]
    }

    /// The other memory node at the least distance.
    fn nearest_other(&self, node: u32) -> Option<u32> {
        let distance = |other: u32| {
            let distances = self.distances.as_ref()?;
            let [row, column] = [node, other].map(|id| distances.nodes.iter().position(|at| *at == id));
            distances.matrix.get(row?)?.get(column?).copied()
        };
        let others = self.map.memory_nodes.iter().copied().filter(|other| *other != node);
        others.min_by_key(|other| distance(*other).unwrap_or(u32::MAX))
    }

    /// Latency of one thread while others read, and their bandwidth meanwhile.
    fn loaded(&self, pair: Pair, threads: u32) -> Result<(Option<Best>, Option<Best>)> {
        let chase = ["chase", "--threads", "1", "--lines", &self.lines, "--iterations", LOADS, "--repetitions", REPETITIONS];
        if threads == 0 {
            return Ok((None, self.bench.figure(pair, &chase, "latency_ns")?));
        }
        let count = threads.to_string();
        // Long enough to be there from before the chase's start to after its end; it is ended then.
        let reader = ["read", "--threads", &count, "--elements", &self.elements, "--iterations", SWEEPS, "--repetitions", "40"];
        let (mut speeds, mut latencies) = (Vec::new(), Vec::new());
        for _ in 0..self.bench.most_runs.min(4) {
            let load = self.bench.start(pair, &reader)?;
            let latency = self.bench.start(pair, &chase)?.wait_with_output()?;
            let load = load.wait_with_output()?;
            latencies.push(value_of(&latency.stdout, "latency_ns")?);
            speeds.push(value_of(&load.stdout, "gb_per_s")?);
        }
        Ok((Best::of(&speeds, true), Best::of(&latencies, false)))
    }

    fn tell(&self, what: &str) {
        if self.shows_progress {
            message(what);
        }
    }
}

/// Cores of a node that CPUs which may run are of; without word of cores, as many as CPUs.
fn cores_of(topology: &Topology, node: u32, threads: u32, may_run: &impl Fn(&u32) -> bool) -> u32 {
    let Some(node) = topology.nodes.iter().find(|one| one.id == node) else { return threads };
    let runs = |core: &&Core| core.cpus.iter().any(|cpu| node.cpus.contains(cpu) && may_run(cpu));
    let cores = topology.cores.iter().filter(runs).count();
    u32::try_from(cores).ok().filter(|cores| (1..=threads).contains(cores)).unwrap_or(threads)
}

/// 1, 2, 3, 4, then by doubling, and the last.
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

/// In words: processor, CPUs, nodes.
pub fn machine(topology: &Topology) -> String {
    let cpus = topology.cpus.online.len();
    let nodes = topology.nodes.len();
    let name = if topology.processor.model_name.is_empty() { "unknown CPU" } else { &topology.processor.model_name };
    format!("{name}, {}, {}", counted(cpus, "CPU"), counted(nodes, "node"))
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
