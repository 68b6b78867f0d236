//! A map as a machine description for predictions. Each number has its source: how it was measured, or that it is assumed.

use firsttouch_experiments::map::{Best, CurvePoint, Map, PairTable};
use firsttouch_model::topology::Topology;
use firsttouch_predict::machine::{MachineModel, Streams, curve::Curve};
use std::fmt::{self, Write};

/// Where a map was measured.
pub struct Origin {
    /// The name of the description.
    pub name: String,
    pub host: String,
    /// The version of firsttouch.
    pub version: String,
}

/// Why a map cannot be saved as a machine description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveError {
    kind: SaveErrorKind,
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveErrorKind {
    /// No node has both CPUs and memory.
    NoNode,
    /// A figure that a description needs was not measured.
    NotMeasured,
    /// The figures contradict the format.
    Invalid,
}

impl SaveError {
    fn new(kind: SaveErrorKind, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }

    #[must_use]
    pub fn kind(&self) -> SaveErrorKind {
        self.kind
    }
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot save this map as a machine description: {}", self.why)
    }
}

impl std::error::Error for SaveError {}

/// Name, arrays read and arrays written by each kernel, without the reads of cache lines that stores overwrite (write allocate).
const STREAMS: [(&str, f64, f64); 5] =
    [("triad", 2.0, 1.0), ("copy", 1.0, 1.0), ("schoenauer", 3.0, 1.0), ("read", 1.0, 0.0), ("write", 0.0, 1.0)];

/// The description in the catalogue's format (docs/model.md). Nodes without CPUs or memory are left out, and a comment lists them.
///
/// # Errors
/// When pairs were not measured, or no node has both CPUs and memory.
pub fn machine_toml(map: &Map, topology: &Topology, origin: &Origin) -> Result<String, SaveError> {
    let nodes: Vec<u32> = map.cpu_nodes.iter().copied().filter(|node| map.memory_nodes.contains(node)).collect();
    if nodes.is_empty() {
        return Err(SaveError::new(SaveErrorKind::NoNode, "no node has both CPUs and memory"));
    }
    let Some(table) = STREAMS.iter().find_map(|(name, ..)| map.tables.iter().find(|table| table.name == *name)) else {
        return Err(SaveError::new(SaveErrorKind::NotMeasured, "no bandwidth was measured"));
    };
    let mut out = head(map, topology, origin, &nodes);
    sizes(&mut out, map, topology, &nodes);
    for points in map.saturation.chunk_by(|a, b| a.kernel == b.kernel) {
        curve(&mut out, map, points);
    }
    if let Some(remote) = map.one_thread_remote {
        let _ = writeln!(
            out,
            "\n[core]\nremote_gb_per_s = {{ value = {:.3}, source = \"map\" }} # one thread reads the nearest other node",
            remote.value
        );
    }
    let streams = streams(&table.name, table.moved_factor);
    let _ = writeln!(
        out,
        "\n# {}, all CPUs of a node. Rows: node of the memory. Columns: node of the CPUs.\n[bandwidth]\ngb_per_s = [",
        table.name
    );
    matrix(&mut out, table, &nodes)?;
    let _ = writeln!(out, "streams = {}\nsource = \"map\"", inline(streams));
    if let Some(latency) = map.tables.iter().find(|table| table.unit == "ns") {
        let _ = writeln!(out, "\n# ns, idle.\n[latency]\nvalues = [");
        matrix(&mut out, latency, &nodes)?;
        let _ = writeln!(out, "source = \"map\"");
    }
    distances(&mut out, topology, &nodes);
    // Do not write a description that cannot be read back.
    MachineModel::parse(&out).map_err(|error| SaveError::new(SaveErrorKind::Invalid, error.to_string()))?;
    Ok(out)
}

fn head(map: &Map, topology: &Topology, origin: &Origin, nodes: &[u32]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let runs = map.tables.iter().flat_map(|table| &table.cells).filter_map(|cell| cell.best);
    let spread = runs.map(|best| best.spread).fold(0.0, f64::max);
    let how = format!(
        "firsttouch {} map on {}: the fastest of several runs, the third fastest within {:.1} %",
        origin.version,
        origin.host,
        spread * 100.0
    );
    let mut out = format!(
        "schema = \"firsttouch.machine/1\"\nname = {}\ntitle = {}\n\n[sources]\nmap = {}\nsystem = \"the kernel's word (/sys)\"\n",
        quoted(&origin.name),
        quoted(&map.machine),
        quoted(&how)
    );
    let numbers: Vec<String> = nodes.iter().map(u32::to_string).collect();
    if nodes.len() < topology.nodes.len() {
        let _ = writeln!(
            out,
            "\n# Nodes without CPUs or without memory that could be used are left out: these are nodes {} of the system.",
            numbers.join(", ")
        );
    }
    out
}

fn sizes(out: &mut String, map: &Map, topology: &Topology, nodes: &[u32]) {
    let at = |node: u32| map.cpu_nodes.iter().position(|id| *id == node).unwrap_or(0);
    let cores: Vec<u32> = nodes.iter().map(|node| map.cores[at(*node)].max(1)).collect();
    let smt: Vec<u32> = nodes.iter().zip(&cores).map(|(node, cores)| map.threads[at(*node)].div_ceil(*cores)).collect();
    let packages = topology.packages.iter().map(|package| package.nodes.iter().filter(|node| nodes.contains(node)).count());
    let (least, most) =
        packages.filter(|count| *count > 0).fold((usize::MAX, 0), |(least, most), count| (least.min(count), most.max(count)));
    let per_package = if least == most { least } else { 1 };
    let _ = writeln!(out, "\n[nodes]\ncount = {{ value = {}, source = \"system\" }}", nodes.len());
    let _ = writeln!(
        out,
        "per_package = {{ value = {per_package}, source = {} }}",
        if least == most { "\"system\"" } else { "\"assumed: packages differ\"" }
    );
    let _ = writeln!(out, "cores = {{ value = {cores:?}, source = \"system\" }}\nsmt = {{ value = {smt:?}, source = \"system\" }}");
    let memory: Option<Vec<u64>> =
        nodes.iter().map(|id| topology.nodes.iter().find(|node| node.id == *id)?.memory.map(|memory| memory.total_bytes >> 20)).collect();
    if let Some(memory) = memory.filter(|list| list.iter().all(|mib| *mib > 0)) {
        let _ = writeln!(out, "memory_mib = {{ value = {memory:?}, source = \"system\" }}");
    }
}

fn streams(kernel: &str, moved_factor: Option<f64>) -> Streams {
    let (read, write) = STREAMS.iter().find(|(name, ..)| *name == kernel).map_or((1.0, 0.0), |(_, read, write)| (*read, *write));
    let allocate = ((moved_factor.unwrap_or(1.0) - 1.0) * (read + write)).max(0.0).round();
    Streams { read, write, allocate }
}

fn inline(streams: Streams) -> String {
    format!("{{ read = {}, write = {}, allocate = {} }}", streams.read, streams.write, streams.allocate)
}

/// The points of a curve that the model uses: one core, the bend, and all cores.
fn curve(out: &mut String, map: &Map, points: &[CurvePoint]) {
    let cores = map.curve_node.and_then(|node| Some(map.cores[map.cpu_nodes.iter().position(|id| *id == node)?]));
    let kernel = &points[0].kernel;
    let streams = streams(kernel, map.tables.iter().find(|table| table.name == *kernel).and_then(|table| table.moved_factor));
    let measured = |point: &CurvePoint| Some((point.threads, point.gb_per_s?.value));
    let all: Vec<(u32, f64)> = points.iter().filter(|point| Some(point.threads) <= cores).filter_map(measured).collect();
    let Some(chosen) = characteristic(&all, streams) else { return };
    let list: Vec<String> = chosen.iter().map(|(cores, rate)| format!("[{cores}, {rate:.3}]")).collect();
    let _ = writeln!(
        out,
        "\n# {kernel} on node {} of the system.\n[[controller.curves]]\nstreams = {}\npoints = [{}]\nsource = \"map\"",
        map.curve_node.unwrap_or(0),
        inline(streams),
        list.join(", ")
    );
}

/// The first point, the point farthest above the line from first to last, and the last point; fewer points if no curve passes through
/// these.
fn characteristic(points: &[(u32, f64)], streams: Streams) -> Option<Vec<(u32, f64)>> {
    let (first, last) = (*points.first()?, *points.last()?);
    let above = |point: &(u32, f64)| {
        let part = f64::from(point.0 - first.0) / f64::from((last.0 - first.0).max(1));
        point.1 - (first.1 + part * (last.1 - first.1))
    };
    let inner = points.get(1..points.len() - 1).unwrap_or_default();
    let bend = inner.iter().max_by(|a, b| above(a).total_cmp(&above(b))).copied();
    let choices = [bend.map(|bend| vec![first, bend, last]), (points.len() > 1).then(|| vec![first, last]), Some(vec![last])];
    let passes = |list: &Vec<(u32, f64)>| {
        let points: Vec<(f64, f64)> = list.iter().map(|(cores, rate)| (f64::from(*cores), rate * 1e9)).collect();
        Curve::through(streams, &points).is_ok()
    };
    choices.into_iter().flatten().find(passes)
}

fn matrix(out: &mut String, table: &PairTable, nodes: &[u32]) -> Result<(), SaveError> {
    for memory in nodes {
        let mut row = Vec::new();
        for cpu in nodes {
            let cell = table.cell(*memory, *cpu);
            let Some(Best { value, .. }) = cell.and_then(|cell| cell.best) else {
                let why = cell.and_then(|cell| cell.failed.clone()).unwrap_or_else(|| "not measured".to_owned());
                let why = format!("{} of CPUs of node {cpu} and memory of node {memory}: {why}", table.name);
                return Err(SaveError::new(SaveErrorKind::NotMeasured, why));
            };
            row.push(format!("{value:.3}"));
        }
        let _ = writeln!(out, "  [{}],", row.join(", "));
    }
    let _ = writeln!(out, "]");
    Ok(())
}

fn distances(out: &mut String, topology: &Topology, nodes: &[u32]) {
    let Some(all) = &topology.distances else { return };
    let at = |node: &u32| all.nodes.iter().position(|id| id == node);
    let Some(places) = nodes.iter().map(at).collect::<Option<Vec<usize>>>() else { return };
    let row = |from: &usize| {
        let values = places.iter().map(|to| all.matrix.get(*from).and_then(|row| row.get(*to)).map(u32::to_string));
        values.collect::<Option<Vec<String>>>().map(|values| format!("  [{}],", values.join(", ")))
    };
    let Some(rows) = places.iter().map(row).collect::<Option<Vec<String>>>() else { return };
    let _ = writeln!(out, "\n[distances]\nvalues = [\n{}\n]\nsource = \"system\"", rows.join("\n"));
}
