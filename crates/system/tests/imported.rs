//! hwloc's exports of synthetic machines (fixtures/hwloc), imported.

use firsttouch_model::topology::Topology;
use firsttouch_system::{TargetMachine, hwloc};
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hwloc").join(name)
}

fn read(name: &str) -> Topology {
    hwloc::read_file(&file(name)).unwrap()
}

fn node_cpus(topology: &Topology) -> Vec<(u32, Vec<u32>)> {
    topology.nodes.iter().map(|node| (node.id, node.cpus.clone())).collect()
}

/// Check two packages with SMT, caches and distances.
#[test]
fn two_packages() {
    let machine = read("two-packages.xml");
    assert_eq!(node_cpus(&machine), [(0, (0..8).collect()), (1, (8..16).collect())]);
    assert_eq!(machine.nodes[0].memory.unwrap().total_bytes, 64 << 30);
    assert_eq!((machine.packages.len(), machine.cores.len(), machine.threads_per_core()), (2, 8, 2));
    let caches = |level| machine.caches.iter().filter(move |cache| cache.level == level).collect::<Vec<_>>();
    assert_eq!((caches(3).len(), caches(3)[1].size_bytes, caches(3)[1].cpus.len()), (2, 32 << 20, 8));
    assert_eq!((caches(2).len(), caches(2)[0].size_bytes), (8, 2 << 20));
    let distances = machine.distances.unwrap();
    assert_eq!((distances.between(0, 1), distances.between(1, 1)), (Some(21), Some(10)));
    assert_eq!(machine.doubts, Vec::<String>::new());
}

/// Check several nodes in a package of an unknown vendor.
#[test]
fn sub_numa() {
    let machine = read("sub-numa.xml");
    assert_eq!(machine.nodes.len(), 8);
    let mode = machine.sub_numa.unwrap();
    assert_eq!((mode.mode.as_str(), mode.nodes_per_package), ("", 4));
}

/// Check two nodes near the same CPUs: one gets the CPUs, the other has only memory, with its own figures.
#[test]
fn memory_only() {
    let machine = read("memory-only.xml");
    assert_eq!(node_cpus(&machine), [(0, vec![0, 1]), (1, vec![]), (2, vec![2, 3]), (3, vec![])]);
    let access = &machine.node(1).unwrap().access[0];
    assert_eq!((access.initiators.as_slice(), access.read_bandwidth_mib_s, access.read_latency_ns), (&[0][..], Some(34_800), Some(340)));
    assert_eq!(machine.node(3).unwrap().access[0].initiators, [2]);
    assert_eq!(machine.distances.unwrap().between(0, 3), Some(28));
}

/// Check CPU numbers that alternate, and a machine of one node without packages.
#[test]
fn other_numbers() {
    let machine = read("interleaved.xml");
    assert!(machine.cores.iter().all(|core| core.cpus.len() == 2 && core.cpus[1] - core.cpus[0] == 4), "{:?}", machine.cores);
    let one = read("one-node.xml");
    assert_eq!((one.packages.len(), node_cpus(&one)), (0, vec![(0, vec![0, 1, 2, 3])]));
}

/// Check that a file can be used as a target machine, with the file's name.
#[test]
fn a_file_is_a_target() {
    let TargetMachine::Imported(machine) = TargetMachine::parse(&file("memory-only.xml").display().to_string()).unwrap() else {
        panic!("imported")
    };
    assert_eq!((machine.name.as_str(), machine.cpu_nodes()), ("memory-only", vec![0, 2]));
    assert_eq!(machine.private_cache_bytes(), None);
}
