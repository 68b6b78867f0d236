//! Machines imported from the output of other tools.

use firsttouch_model::pairs::{PairFigure, PairKind};
use firsttouch_model::topology::{Core, CpuLists, Memory, Node, Package, Topology};
use firsttouch_predict::experiments::Kernel;
use firsttouch_predict::machine::{self, MachineModel, import};
use firsttouch_predict::runs::{Memory as Where, bandwidth};
use firsttouch_predict::seats;

const ICELAKE: &str = include_str!("../../../fixtures/mlc/icelake.txt");
const SOCKETS: &str = include_str!("../../../fixtures/mlc/sockets.txt");
const MEMORY_ONLY: &str = include_str!("../../../fixtures/mlc/memory-only.txt");

fn source<'a>(machine: &'a MachineModel, what: &str) -> &'a str {
    &machine.facts.iter().find(|fact| fact.what == what).unwrap_or_else(|| panic!("{what}: {:?}", machine.facts)).source
}

/// GB/s of all cores of `cpus` reading memory of `memory`.
fn read(machine: &MachineModel, cpus: usize, memory: usize) -> f64 {
    bandwidth(machine, Kernel::Load, &seats::on_node(machine, cpus, machine.nodes[cpus].cores), Where::Node(memory)).unwrap().value
}

/// Compare MLC's text with the catalogue's machine of the same figures: all pairs, and also the peaks by mix.
#[test]
fn mlc_is_read() {
    let (found, known) = (import::mlc("icelake", ICELAKE).unwrap(), machine::find("xeon-icelake-sp-x2").unwrap());
    assert!(import::is_mlc(ICELAKE) && found.name == "icelake" && found.nodes.len() == 2);
    for (cpus, memory) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (one, other) = (read(&found, cpus, memory), read(&known, cpus, memory));
        // The peak of both nodes applies to each node, so the imported nodes do not differ.
        assert!((one / other - 1.0).abs() < 0.002, "cores {cpus}, memory {memory}: {one} {other}");
    }
    assert_eq!(found.nodes[0].curves.len(), 4, "{:?}", found.nodes[0].curves);
    let half = found.nodes[0].curve(0.5).limit;
    assert!((half / 145e9 - 1.0).abs() < 1e-9, "{half}");
    assert!(source(&found, "nodes.cores").starts_with("assumed: mlc does not tell"));
    assert_eq!(source(&found, "latency"), "file");
}

/// Check the older form, which has no peaks, and a node without cores, which is omitted with a note.
#[test]
fn other_forms_of_mlc() {
    let sockets = import::mlc("old", SOCKETS).unwrap();
    assert!((read(&sockets, 1, 0) - 25.0049).abs() < 1e-6 && (read(&sockets, 0, 1) - 25.0123).abs() < 1e-6);
    let three = import::mlc("cxl", MEMORY_ONLY).unwrap();
    assert_eq!(three.nodes.len(), 2);
    assert!(source(&three, "nodes.count").contains("numbered anew"));
    // With only peaks and a table of latencies, the links are assumed, and marked as assumed.
    let end = ICELAKE.find("Measuring Memory Bandwidths").unwrap();
    let unlinked = import::mlc("peaks", &ICELAKE[..end]).unwrap();
    assert!(source(&unlinked, "interconnect.gb_per_s").starts_with("assumed"));
    assert!(read(&unlinked, 0, 1) < read(&unlinked, 0, 0));
}

/// Check that damaged text is an error with its line.
#[test]
fn damaged_texts_of_mlc() {
    for (from, to, message) in [
        ("142.7", "x42.7", "line 5: expected a number, found 'x42.7'"),
        ("142.7", "-142.7", "line 5: -142.7 is not a positive number"),
        ("142.7", "", "line 5: 1 values for 2 nodes"),
        ("142.7", "-", "line 2: there is no latency from node 0 to node 1"),
        ("       1\t 142.9", "       3\t 142.9", "line 6: expected the row of node 1, found '3'"),
        ("55676.8", "NaN", "line 24: NaN is not a positive number"),
        ("351762.1", "0.0", "line 12: 0 is not a positive number"),
        ("351762.1", "fast", "line 12: expected a number, found 'fast'"),
        ("Using Read-only traffic type", "Using traffic type: 2:1 reads-writes", "line 21: the bandwidths are of other traffic than reads"),
        ("Numa node\t     0\t     1", "Numa node\t     1\t     0", "line 4: the columns are not nodes 0, 1, 2"),
        ("Numa node\t     0\t     1", "Numa node", "line 2: no line with the columns' nodes follows"),
    ] {
        assert!(ICELAKE.contains(from), "{from}");
        let error = import::mlc("icelake", &ICELAKE.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
    let twice = format!("{ICELAKE}{ICELAKE}");
    assert!(import::mlc("twice", &twice).unwrap_err().to_string().contains("line 41: a second table of latencies; the first is at line 2"));
    for (text, message) in [
        ("Intel(R) Memory Latency Checker - v3.9a\n", "neither a table of bandwidths nor one of idle latencies"),
        ("Measuring idle latencies\nNuma node 0\n0 80.0\n", "neither peak nor pairs' bandwidths"),
        ("Measuring idle latencies\nNuma node 0\n", "line 1: the table has no rows"),
        ("Measuring idle latencies\nNuma node 0\n0 -\n", "line 1: no node has both cores and memory"),
    ] {
        assert!(import::mlc("bad", text).unwrap_err().to_string().contains(message), "{text}");
    }
}

/// Two packages of two cores with two CPUs each; node numbers as given.
fn topology(ids: [u32; 2]) -> Topology {
    let halves = [vec![0, 1, 4, 5], vec![2, 3, 6, 7]];
    let node = |(id, cpus): (u32, &Vec<u32>)| Node {
        id,
        cpus: cpus.clone(),
        memory: Some(Memory { total_bytes: 8 << 30, free_bytes: None }),
        ..Node::default()
    };
    Topology {
        cpus: CpuLists { online: (0..8).collect(), offline: vec![] },
        packages: ids.iter().zip(&halves).map(|(id, cpus)| Package { id: *id, cpus: cpus.clone(), nodes: vec![*id] }).collect(),
        cores: (0..4).map(|id| Core { id: Some(id), package: None, cpus: vec![id, id + 4] }).collect(),
        nodes: ids.into_iter().zip(&halves).map(node).collect(),
        ..Topology::default()
    }
}

fn figure(kind: PairKind, memory: u32, from: &[u32], value: u64) -> PairFigure {
    PairFigure { kind, memory, from: from.to_vec(), value }
}

/// Check hwloc's figures of all pairs: MiB/s become GB/s, the narrowest set of CPUs counts, reads before a mix.
#[test]
fn pairs_are_read() {
    let mut figures = vec![];
    for (memory, from, value) in [(0, 0, 50_000), (0, 1, 20_000), (1, 0, 21_000), (1, 1, 51_000)] {
        figures.push(figure(PairKind::ReadBandwidth, memory, &[from], value));
        figures.push(figure(PairKind::Bandwidth, memory, &[from], 1));
        figures.push(figure(PairKind::Latency, memory, &[from], 90 + u64::from(memory != from) * 60));
    }
    figures.push(figure(PairKind::ReadBandwidth, 0, &[0, 1], 7));
    let found = import::pairs("box", &topology([0, 1]), &figures).unwrap().unwrap();
    let gb = |mib: f64| mib * 1_048_576.0 / 1e9;
    assert!(found.same_nodes && (read(&found.machine, 0, 1) - gb(21_000.0)).abs() < 1e-6);
    assert!((read(&found.machine, 0, 0) - gb(50_000.0)).abs() < 1e-6);
    let node = &found.machine.nodes[1];
    assert_eq!((node.cores, node.smt, node.memory.unwrap().0), (2, 2, 8.0 * 1_073_741_824.0));
    assert!(found.machine.facts.iter().any(|fact| fact.what == "latency" && fact.value == "90 150 | 150 90"));
    assert_eq!(source(&found.machine, "bandwidth.gb_per_s"), "pairs");
}

/// Check the firmware's figures, which cover only each node's own CPUs: figures between nodes are assumed, and marked as assumed. Without
/// any figures there is no machine. If the node numbers have holes, the nodes are renumbered.
#[test]
fn missing_pairs_are_assumed() {
    let own = [figure(PairKind::Bandwidth, 0, &[0], 50_000), figure(PairKind::Bandwidth, 3, &[3], 50_000)];
    let found = import::pairs("box", &topology([0, 3]), &own).unwrap().unwrap();
    assert!(!found.same_nodes && read(&found.machine, 0, 1) < read(&found.machine, 0, 0));
    let source = source(&found.machine, "bandwidth.gb_per_s");
    assert!(source.starts_with("assumed: ") && source.contains("does not tell of 0-3, 3-0"), "{source}");
    let one = import::pairs("box", &topology([0, 1]), &own[..1]).unwrap().unwrap();
    assert!((read(&one.machine, 1, 1) / read(&one.machine, 0, 0) - 1.0).abs() < 1e-9);
    assert_eq!(import::pairs("box", &topology([0, 1]), &[]).unwrap(), None);
    assert_eq!(import::pairs("box", &topology([0, 1]), &[figure(PairKind::ReadBandwidth, 0, &[0], 0)]).unwrap(), None);
}
