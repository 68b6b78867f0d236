//! `firsttouch map`

mod measure;

pub use measure::{Pair, check_place};

use super::kernels::Kernels;
use crate::arguments::{Map as Arguments, MapKernel};
use crate::output::{message, print, print_json};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use firsttouch_domain::topology::Topology;
use firsttouch_machine::topology;
use firsttouch_report::{Best, Cell, Map, Point, Table, heat_maps, map_text};
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
    show(arguments, &map)?;
    Ok(0)
}

fn show(arguments: &Arguments, map: &Map) -> Result<()> {
    if let Some(path) = &arguments.svg {
        let picture = heat_maps(map);
        if path == Path::new("-") {
            return print(&picture);
        }
        std::fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if arguments.json { print_json(map) } else { print(&map_text(map)) }
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
        let has_memory = |node: &&firsttouch_domain::topology::Node| node.memory.is_none_or(|memory| memory.total_bytes > 0);
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
            array_bytes,
            spread_limit: arguments.spread,
            tables: Vec::new(),
            curve_node: None,
            saturation: Vec::new(),
            loaded_latency: Vec::new(),
            notes,
        };
        Ok(Self {
            bench: Bench { kernels: Kernels::new()?, most_runs: arguments.runs, spread: arguments.spread },
            elements: (array_bytes / 8).to_string(),
            lines: (array_bytes / 64).to_string(),
            map,
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
        self.all_pairs(&name, about, "GB/s", &arguments, "gb_per_s");
    }

    fn latencies(&mut self) {
        let lines = self.lines.clone();
        let arguments = ["chase", "--threads", "1", "--lines", &lines, "--iterations", LOADS, "--repetitions", REPETITIONS];
        self.all_pairs("latency", "one thread, nothing else runs", "ns", &arguments, "latency_ns");
    }

    fn all_pairs(&mut self, name: &str, about: &str, unit: &str, arguments: &[&str], figure: &str) {
        let mut cells = Vec::new();
        for &memory_node in &self.map.memory_nodes {
            for &cpu_node in &self.map.cpu_nodes {
                self.tell(&format!("{name}: CPUs of node {cpu_node}, memory of node {memory_node}"));
                let measured = self.bench.figure(Pair { cpu_node, memory_node }, arguments, figure);
                let (best, failed) = match measured {
                    Ok(best) => (best, None),
                    Err(error) => (None, Some(format!("{error:#}"))),
                };
                cells.push(Cell { cpu_node, memory_node, best, failed });
            }
        }
        self.map.tables.push(Table { name: name.to_owned(), about: about.to_owned(), unit: unit.to_owned(), cells });
    }

    /// On the first node that has both: bandwidth by number of threads, and latency while threads read.
    fn curves(&mut self) {
        let own = self.map.cpu_nodes.iter().zip(&self.map.threads).find(|(node, _)| self.map.memory_nodes.contains(node));
        let Some((&node, &most)) = own else { return };
        let pair = Pair { cpu_node: node, memory_node: node };
        self.map.curve_node = Some(node);
        for threads in steps(most) {
            self.tell(&format!("node {node}: {threads} of {most} threads read"));
            let count = threads.to_string();
            let arguments =
                ["read", "--threads", &count, "--elements", &self.elements, "--iterations", SWEEPS, "--repetitions", REPETITIONS];
            let best = self.bench.figure(pair, &arguments, "gb_per_s").ok().flatten();
            self.map.saturation.push(Point { threads, gb_per_s: best, latency_ns: None });
        }
        for threads in std::iter::once(0).chain(steps(most.saturating_sub(1))) {
            self.tell(&format!("node {node}: latency while {threads} threads read"));
            if let Ok((gb_per_s, latency_ns)) = self.loaded(pair, threads) {
                self.map.loaded_latency.push(Point { threads, gb_per_s, latency_ns });
            }
        }
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
    let plural = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let name = if topology.processor.model_name.is_empty() { "unknown CPU" } else { &topology.processor.model_name };
    format!("{name}, {}, {}", plural(cpus, "CPU"), plural(nodes, "node"))
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
