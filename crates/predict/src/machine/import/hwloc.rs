//! hwloc's XML: the topology, with bandwidth and latency of pairs of nodes.

use super::super::assumed::typical;
use super::super::file::{Bandwidth, File, Matrix, Nodes, Number, SCHEMA, Value};
use super::super::{MachineError, MachineModel, Streams, build};
use super::{FILE, assumed_link, matrix, number};
use firsttouch_model::pairs::{PairFigure, PairKind};
use firsttouch_model::topology::{Node, Topology, format_list};
use std::collections::BTreeMap;

const GB_PER_MIB: f64 = 1_048_576.0 / 1e9;

/// A machine from a topology and the figures of pairs of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub machine: MachineModel,
    /// Whether its nodes are all nodes of the topology, with the same numbers.
    pub same_nodes: bool,
}

/// The machine of the nodes that have CPUs and memory, with the file's bandwidth of each node from its own CPUs, and of each pair if the
/// file has it. `None` if the file has no bandwidth of a node from its own CPUs: then only the nodes are known.
///
/// # Errors
/// When a machine may not have that many nodes or cores.
pub fn pairs(name: &str, topology: &Topology, figures: &[PairFigure]) -> Result<Option<Imported>, MachineError> {
    let has_both = |node: &&Node| !node.cpus.is_empty() && node.memory.is_none_or(|memory| memory.total_bytes > 0);
    let nodes: Vec<&Node> = topology.nodes.iter().filter(has_both).collect();
    let ids: Vec<u32> = nodes.iter().map(|node| node.id).collect();
    let read = table(figures, PairKind::ReadBandwidth);
    let any = table(figures, PairKind::Bandwidth);
    let known =
        |table: &PairTable| ids.iter().flat_map(|m| ids.iter().map(move |c| (*m, *c))).filter(|pair| table.contains_key(pair)).count();
    // If both have equally many figures, prefer the attribute whose mix is known.
    let (kind, bandwidth) = if known(&any) > known(&read) { ("Bandwidth", any) } else { ("ReadBandwidth", read) };
    let own: Vec<f64> = ids.iter().filter_map(|node| bandwidth.get(&(*node, *node))).map(|mib| *mib as f64 * GB_PER_MIB).collect();
    if own.is_empty() {
        return Ok(None);
    }
    let mut sources = BTreeMap::from([(FILE.to_owned(), "hwloc's XML: topology and memory attributes".to_owned())]);
    let rates = filled(&ids, &bandwidth, &own)?;
    let mix = if kind == "Bandwidth" { "; taken for reads, as the file does not tell the mix" } else { "" };
    let source = match (rates.missing.is_empty(), mix.is_empty()) {
        (true, true) => {
            sources.insert("pairs".to_owned(), format!("hwloc's memory attribute {kind}"));
            "pairs".to_owned()
        }
        (true, false) => format!("inferred: hwloc's memory attribute {kind}{mix}"),
        (false, _) => format!(
            "assumed: hwloc's memory attribute {kind}{mix}; it does not tell of {} (memory-CPUs), which compare as on the median machine of the \
             catalogue",
            rates.missing
        ),
    };
    let same_nodes = ids.iter().zip(0..).all(|(id, place)| *id == place) && ids.len() == topology.nodes.len();
    let title = if topology.processor.model_name.is_empty() { name } else { &topology.processor.model_name };
    let file = File {
        schema: SCHEMA.to_owned(),
        name: name.to_owned(),
        title: title.to_owned(),
        vendor: vendor(&topology.processor.vendor, &topology.processor.model_name),
        sources,
        fit: Default::default(),
        nodes: sizes(topology, &nodes, same_nodes),
        controller: Default::default(),
        core: Default::default(),
        interconnect: None,
        links: Vec::new(),
        bandwidth: Some(Bandwidth { gb_per_s: rates.matrix, streams: Streams { read: 1.0, write: 0.0, allocate: 0.0 }, source }),
        latency: latency(&ids, figures),
        distances: distances(&ids, topology),
    };
    Ok(Some(Imported { machine: build::build(&file)?, same_nodes }))
}

/// The vendor in a processor's own texts; `None` if it is another.
fn vendor(vendor: &str, model_name: &str) -> Option<String> {
    let name = format!("{vendor} {model_name}").to_ascii_lowercase();
    ["intel", "amd", "arm"].into_iter().find(|vendor| name.contains(vendor)).map(str::to_owned)
}

/// MiB/s or ns, by (node of the memory, node of the CPUs).
type PairTable = BTreeMap<(u32, u32), u64>;

/// The figures of one kind. A figure for fewer nodes takes precedence over one for more nodes.
fn table(figures: &[PairFigure], kind: PairKind) -> PairTable {
    let mut own: Vec<&PairFigure> = figures.iter().filter(|figure| figure.kind == kind && figure.value > 0).collect();
    own.sort_by_key(|figure| std::cmp::Reverse(figure.from.len()));
    own.into_iter().flat_map(|figure| figure.from.iter().map(move |from| ((figure.memory, *from), figure.value))).collect()
}

struct Filled {
    /// GB/s; rows are the node of the memory.
    matrix: Vec<Vec<f64>>,
    /// The pairs without a figure in the file, as text.
    missing: String,
}

fn filled(ids: &[u32], bandwidth: &PairTable, own: &[f64]) -> Result<Filled, MachineError> {
    let typical = typical()?;
    let mut sorted = own.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
    let known = |memory: u32, cpus: u32| bandwidth.get(&(memory, cpus)).map(|mib| *mib as f64 * GB_PER_MIB);
    let mut missing = Vec::new();
    let matrix = ids.iter().map(|&memory| {
        let controller = known(memory, memory).unwrap_or(middle);
        let row = ids.iter().map(|&cpus| {
            known(memory, cpus).unwrap_or_else(|| {
                missing.push(format!("{memory}-{cpus}"));
                if memory == cpus { middle } else { assumed_link(&typical, controller) }
            })
        });
        row.collect::<Vec<f64>>()
    });
    let matrix = matrix.collect();
    const SHOWN: usize = 4;
    let more = missing.len().saturating_sub(SHOWN);
    let mut words = missing.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 {
        words += &format!(" and {more} more");
    }
    Ok(Filled { matrix, missing: words })
}

fn sizes(topology: &Topology, nodes: &[&Node], same_nodes: bool) -> Nodes {
    let each = |values: Vec<usize>, source: &str| Number {
        value: Value::Each(values.into_iter().map(|value| value as f64).collect()),
        range: None,
        source: source.to_owned(),
    };
    let of = |node: &Node| topology.cores.iter().filter(|core| core.cpus.iter().any(|cpu| node.cpus.contains(cpu))).collect::<Vec<_>>();
    let cores: Vec<usize> = nodes.iter().map(|node| of(node).len()).collect();
    let known = cores.iter().all(|count| *count > 0);
    let smt = nodes.iter().map(|node| of(node).iter().map(|core| core.cpus.len()).max().unwrap_or(1));
    let (cores, smt) = if known {
        (each(cores, FILE), each(smt.collect(), FILE))
    } else {
        let all = nodes.iter().map(|node| node.cpus.len()).collect();
        (each(all, "assumed: every CPU is a core; the file has no cores"), number(1.0, "assumed: the file has no cores"))
    };
    let inside: Vec<usize> =
        topology.packages.iter().map(|package| nodes.iter().filter(|node| package.nodes.contains(&node.id)).count()).collect();
    let mut counts = inside.iter().copied().filter(|count| *count > 0);
    let per_package = match counts.next() {
        Some(first) if counts.all(|count| count == first) => number(first as f64, FILE),
        _ => number(1.0, "assumed: the file has no packages, or they differ"),
    };
    let mib: Option<Vec<f64>> =
        nodes.iter().map(|node| node.memory.map(|memory| memory.total_bytes as f64 / 1_048_576.0).filter(|mib| *mib > 0.0)).collect();
    let ids: Vec<u32> = nodes.iter().map(|node| node.id).collect();
    let count = match same_nodes {
        true => number(nodes.len() as f64, FILE),
        false => number(
            nodes.len() as f64,
            &format!("inferred: the file's nodes {}, numbered anew; others lack CPUs or memory", format_list(&ids)),
        ),
    };
    Nodes {
        count,
        per_package,
        cores,
        smt,
        memory_mib: mib.map(|list| Number { value: Value::Each(list), range: None, source: FILE.to_owned() }),
        free_mib: None,
        channels: None,
        mega_transfers_per_s: None,
    }
}

/// Latencies in ns, rows are the node of the CPUs. None unless every pair is known.
fn latency(ids: &[u32], figures: &[PairFigure]) -> Option<Matrix> {
    let of = |kind: PairKind| {
        let table = table(figures, kind);
        let row = |cpus: &u32| ids.iter().map(|memory| table.get(&(*memory, *cpus)).map(|ns| *ns as f64)).collect::<Option<Vec<f64>>>();
        ids.iter().map(row).collect::<Option<Vec<_>>>()
    };
    of(PairKind::ReadLatency).or_else(|| of(PairKind::Latency)).map(matrix)
}

fn distances(ids: &[u32], topology: &Topology) -> Option<Matrix> {
    let all = topology.distances.as_ref()?;
    let row = |from: &u32| ids.iter().map(|to| all.between(*from, *to).filter(|d| *d > 0).map(f64::from)).collect::<Option<Vec<f64>>>();
    ids.iter().map(row).collect::<Option<Vec<_>>>().map(matrix)
}
