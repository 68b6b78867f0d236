//! Compares the JSON of `firsttouch topology` for every machine of fixtures/machines, field by field, with the output of numactl, lscpu and
//! lstopo on the same machine.

use firsttouch_model::topology::Node;
use firsttouch_oracles::{lscpu, lstopo, numactl};
use firsttouch_system::{hwloc, topology};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn machines() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let mut machines: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    machines.sort();
    assert!(!machines.is_empty());
    machines
}

/// The topology as JSON, and the output of the tool, for each machine that has it.
fn each(tool: &str, mut check: impl FnMut(&str, &Value, &str)) {
    let mut seen = 0;
    for machine in machines() {
        let name = machine.file_name().unwrap().to_string_lossy().into_owned();
        let json = serde_json::to_value(topology::read(&machine).unwrap()).unwrap();
        if let Ok(text) = fs::read_to_string(machine.join("tools").join(tool)) {
            check(&name, &json, &text);
            seen += 1;
        }
    }
    assert!(seen > 0, "no machine has {tool}");
}

/// Check that real files cause no doubts.
#[test]
fn recordings_raise_no_doubts() {
    for machine in machines() {
        assert_eq!(topology::read(&machine).unwrap().doubts, Vec::<String>::new(), "{}", machine.display());
    }
}

/// Check nodes, CPUs, memory and distances against `numactl --hardware`.
#[test]
fn as_numactl_hardware() {
    each("numactl-hardware.txt", numactl::hardware_agrees);
}

/// Check the process's policy and limits against `numactl --show`, which ran in the same environment.
#[test]
fn as_numactl_show() {
    each("numactl-show.txt", numactl::show_agrees);
}

/// Check the summary of lscpu: CPUs, packages, cores, SMT, caches, nodes.
#[test]
fn as_lscpu() {
    each("lscpu.json", lscpu::summary_agrees);
}

/// Check each CPU's node, core and package against lscpu's table.
#[test]
fn as_lscpu_table() {
    each("lscpu-cpus.json", lscpu::table_agrees);
}

/// Check that lstopo's XML of a machine, imported, equals the machine read from its files.
#[test]
fn as_lstopo() {
    each("lstopo.xml", |name, json, text| lstopo::agrees(name, json, &serde_json::to_value(hwloc::read(text).unwrap()).unwrap()));
}

/// Check the rest that lstopo reports about memory: pools of huge pages, memory-side caches, the firmware's figures.
#[test]
fn memory_as_lstopo() {
    let list = |value: &Value, key: &str| value[key].as_array().unwrap().clone();
    each("lstopo.xml", |name, json, text| {
        let imported = serde_json::to_value(hwloc::read(text).unwrap()).unwrap();
        for (ours, theirs) in list(json, "nodes").iter().zip(&list(&imported, "nodes")) {
            let pools = |node: &Value| {
                list(node, "huge_pages").iter().map(|pool| (pool["page_bytes"].clone(), pool["total"].clone())).collect::<Vec<_>>()
            };
            assert_eq!(pools(theirs), pools(ours), "{name}: huge pages of node {}", ours["id"]);
            assert_eq!(theirs["memory_side_caches"], ours["memory_side_caches"], "{name}: node {}", ours["id"]);
            // Without the firmware's figures, lstopo's nearest CPUs are a guess from its tree.
            if let Some(from_cpus) = list(ours, "access").iter().find(|access| access["class"] == 1) {
                assert_eq!(list(theirs, "access").as_slice(), std::slice::from_ref(from_cpus), "{name}: access to node {}", ours["id"]);
            }
        }
    });
}

fn fixture(name: &str) -> firsttouch_model::topology::Topology {
    topology::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name)).unwrap()
}

/// Check properties that no other tool reports in the same form: HMAT figures, limits by control group, pools of huge pages, nodes without
/// memory, holes, names of sub-NUMA modes.
#[test]
fn what_only_firsttouch_tells() {
    let machine = fixture("guest-hmat");
    let slow = machine.node(2).unwrap();
    assert_eq!(
        slow.access.iter().map(|access| (access.class, access.initiators.clone())).collect::<Vec<_>>(),
        [(0, vec![0]), (1, vec![0])]
    );
    assert_eq!((slow.access[1].read_bandwidth_mib_s, slow.access[1].write_latency_ns), (Some(38_912), Some(340)));
    assert_eq!(slow.memory_side_caches.iter().map(|cache| (cache.level, cache.size_bytes)).collect::<Vec<_>>(), [(1, 64 << 20)]);
    assert!(slow.cpus.is_empty() && machine.node(3).unwrap().memory_side_caches.is_empty());

    let limits = fixture("guest-cpuset").process.unwrap();
    assert_eq!((limits.allowed_cpus, limits.allowed_nodes), (Some(vec![1, 4]), Some(vec![2])));
    let cpuset = limits.cpuset.unwrap();
    assert_eq!((cpuset.cpus, cpuset.nodes), (Some(vec![1, 4]), Some(vec![2])));

    let pools = |node: &Node| node.huge_pages.iter().map(|pool| (pool.page_bytes, pool.total)).collect::<Vec<_>>();
    let machine = fixture("guest-huge-pages");
    assert_eq!(machine.nodes.iter().map(pools).collect::<Vec<_>>(), [[(2 << 20, 24), (1 << 30, 0)], [(2 << 20, 40), (1 << 30, 0)]]);

    let machine = fixture("guest-memoryless");
    assert_eq!((machine.node(1).unwrap().memory.unwrap().total_bytes, machine.node(1).unwrap().cpus.as_slice()), (0, &[2, 3][..]));
    assert_eq!(machine.process.unwrap().allowed_nodes, Some(vec![0, 2]), "nodes without memory are not allowed for memory");

    let machine = fixture("guest-offline-cpus");
    assert_eq!((machine.cpus.online.as_slice(), machine.cpus.offline.as_slice()), (&[0, 2, 3][..], &[1, 4, 5, 6, 7][..]));
    assert_eq!(machine.cores.iter().map(|core| core.cpus.as_slice()).collect::<Vec<_>>(), [[0], [2], [3]]);
    assert!(machine.node(1).unwrap().cpus.is_empty());

    let machine = fixture("guest-holes");
    assert_eq!(machine.nodes.iter().map(|node| (node.id, node.cpus.as_slice())).collect::<Vec<_>>(), [(0, &[0, 2][..]), (2, &[])]);
    assert_eq!(machine.distances.unwrap().between(0, 2), Some(31));

    for (name, mode) in [("guest-4-nodes-snc2", "SNC2"), ("constructed-nps4", "NPS4"), ("guest-1-node-2-packages", "NPS0")] {
        assert_eq!(fixture(name).sub_numa.unwrap().mode, mode, "{name}");
    }
    assert_eq!(fixture("guest-memoryless").sub_numa, None);
}

/// Check that the outline of a machine, which `run` reads, agrees with the whole topology.
#[test]
fn the_outline_is_part_of_the_whole() {
    for machine in machines() {
        let (outline, whole) = (topology::read_outline(&machine).unwrap(), topology::read(&machine).unwrap());
        assert_eq!(outline.cpus, whole.cpus);
        let nodes = |nodes: &[Node]| nodes.iter().map(|node| (node.id, node.cpus.clone(), node.memory)).collect::<Vec<_>>();
        assert_eq!(nodes(&outline.nodes), nodes(&whole.nodes), "{}", machine.display());
        let [outline, whole] = [outline, whole].map(|topology| topology.process.unwrap());
        assert_eq!((outline.allowed_cpus, outline.allowed_nodes), (whole.allowed_cpus, whole.allowed_nodes), "{}", machine.display());
    }
}
