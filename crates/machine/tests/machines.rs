//! Every machine of fixtures/machines: the JSON of `firsttouch topology`, field by field against what numactl, lscpu and
//! lstopo said on the same machine.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use firsttouch_machine::{hwloc, topology};
use firsttouch_oracles::{lscpu, lstopo, numactl};
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

/// The topology as the user's JSON has it, and what the tool said, for each machine where it was there.
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

/// Check that nothing recorded is doubted: what a kernel writes is understood.
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

/// Check the process's policy and limits against `numactl --show`, which ran in the same place.
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

/// Check that lstopo's XML of a machine, imported, is the machine as its own files tell it.
#[test]
fn as_lstopo() {
    each("lstopo.xml", |name, json, text| lstopo::agrees(name, json, &serde_json::to_value(hwloc::read(text).unwrap()).unwrap()));
}

fn fixture(name: &str) -> firsttouch_domain::topology::Topology {
    topology::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name)).unwrap()
}

/// Check what no tool tells: HMAT figures, limits by control group, pools of huge pages, names of sub-NUMA modes.
#[test]
fn what_only_firsttouch_tells() {
    let machine = fixture("constructed-memory-only");
    let access = &machine.node(2).unwrap().access;
    assert_eq!(access.iter().map(|access| (access.class, access.initiators.clone())).collect::<Vec<_>>(), [(0, vec![0]), (1, vec![0])]);
    assert_eq!((access[1].read_bandwidth_mib_s, access[1].write_latency_ns), (Some(38_000), Some(360)));

    let machine = fixture("constructed-snc2");
    let limits = machine.process.unwrap();
    assert_eq!((limits.allowed_cpus, limits.allowed_nodes), (Some(vec![0, 1, 8, 9]), Some(vec![0, 1])));
    let cpuset = limits.cpuset.unwrap();
    assert_eq!((cpuset.cpus, cpuset.nodes), (Some(vec![0, 1, 8, 9]), Some(vec![0, 1])));
    assert_eq!(
        machine.nodes[1].huge_pages.iter().map(|pool| (pool.page_bytes, pool.total)).collect::<Vec<_>>(),
        [(2 << 20, 512), (1 << 30, 2)]
    );

    for (name, mode) in [("constructed-snc2", "SNC2"), ("constructed-nps4", "NPS4"), ("constructed-one-node-two-packages", "NPS0")] {
        assert_eq!(fixture(name).sub_numa.unwrap().mode, mode, "{name}");
    }
    assert_eq!(fixture("constructed-memoryless").sub_numa, None);
}
