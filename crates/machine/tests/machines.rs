//! Every machine of fixtures/machines: the JSON of `firsttouch topology`, field by field against what numactl, lscpu and
//! lstopo said on the same machine.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod tools;

use firsttouch_domain::topology::Node;
use firsttouch_machine::{hwloc, parse_list, topology};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tools::{Lscpu, Numactl, Show};

/// Free memory moves between the reading of a file and the answer of a tool: this part of the node, and this much.
const FREE_PART: f64 = 0.05;
const FREE_MIB: f64 = 256.0;

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

fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|number| u32::try_from(number.as_u64().unwrap()).unwrap()).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap()
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
    each("numactl-hardware.txt", |name, json, text| {
        let told = Numactl::parse(text);
        let nodes = list(json, "nodes");
        assert_eq!(nodes.iter().map(|node| node["id"].as_u64().unwrap() as u32).collect::<Vec<_>>(), told.nodes, "{name}");
        for (node, told) in nodes.iter().zip(&told.details) {
            let id = &node["id"];
            assert_eq!(numbers(&node["cpus"]), told.cpus, "{name}: CPUs of node {id}");
            let mib = |key: &str| (node["memory"][key].as_u64().unwrap() >> 20) as f64;
            assert_eq!(mib("total_bytes"), told.size_mib, "{name}: memory of node {id}");
            let most = FREE_MIB.max(told.size_mib * FREE_PART);
            assert!((mib("free_bytes") - told.free_mib).abs() <= most, "{name}: free memory of node {id}");
        }
        if let Some(told) = told.distances {
            let rows: Vec<Vec<u32>> = list(&json["distances"], "matrix").iter().map(numbers).collect();
            assert_eq!(rows, told, "{name}: distances");
        }
    });
}

/// Check the process's policy and limits against `numactl --show`, which ran in the same place.
#[test]
fn as_numactl_show() {
    each("numactl-show.txt", |name, json, text| {
        let told = Show::parse(text);
        let process = &json["process"];
        let words = [("prefer", "preferred"), ("prefer (many)", "preferred many")];
        let mode = process["policy"]["mode"].as_str().unwrap();
        let mode = words.iter().find(|(ours, _)| *ours == mode).map_or(mode, |(_, theirs)| theirs);
        assert_eq!(mode, told.policy, "{name}: policy");
        let online = numbers(&json["cpus"]["online"]);
        let cpus: Vec<u32> = numbers(&process["allowed_cpus"]).into_iter().filter(|cpu| online.contains(cpu)).collect();
        assert_eq!(cpus, told.cpus, "{name}: allowed CPUs");
        // numactl leaves out nodes without memory, the kernel's list keeps them and nodes that may come.
        let with_memory: Vec<u32> = list(json, "nodes")
            .iter()
            .filter(|node| node["memory"]["total_bytes"].as_u64() > Some(0))
            .map(|node| node["id"].as_u64().unwrap() as u32)
            .collect();
        let kept = |nodes: Vec<u32>| nodes.into_iter().filter(|node| with_memory.contains(node)).collect::<Vec<_>>();
        assert_eq!(kept(numbers(&process["allowed_nodes"])), kept(told.membind), "{name}: allowed nodes");
    });
}

/// Check the summary of lscpu: CPUs, packages, cores, SMT, caches, nodes.
#[test]
fn as_lscpu() {
    each("lscpu.json", |name, json, text| {
        let told = Lscpu::parse(text);
        let (online, offline) = (numbers(&json["cpus"]["online"]), numbers(&json["cpus"]["offline"]));
        assert_eq!(told.number("CPU(s)"), Some((online.len() + offline.len()) as u64), "{name}: CPU(s)");
        assert_eq!(told.cpus("On-line CPU(s) list"), Some(online), "{name}: online");
        assert_eq!(told.cpus("Off-line CPU(s) list").unwrap_or_default(), offline, "{name}: offline");
        for (field, key) in [("Vendor ID", "vendor"), ("Model name", "model_name")] {
            if let Some(text) = told.text(field) {
                assert_eq!(json["processor"][key], *text, "{name}: {field}");
            }
        }
        for (field, key) in [("CPU family", "family"), ("Model", "model")] {
            assert_eq!(json["processor"][key].as_u64(), told.number(field), "{name}: {field}");
        }
        let threads = list(json, "cores").iter().map(|core| list(core, "cpus").len() as u64).max();
        assert_eq!(threads, told.number("Thread(s) per core"), "{name}: threads");
        assert_eq!(Some(list(json, "packages").len() as u64), told.number("Socket(s)"), "{name}: sockets");
        assert_eq!(Some(list(json, "nodes").len() as u64), told.number("NUMA node(s)"), "{name}: nodes");
        for node in list(json, "nodes") {
            let field = format!("NUMA node{} CPU(s)", node["id"]);
            assert_eq!(told.cpus(&field).unwrap_or_default(), numbers(&node["cpus"]), "{name}: {field}");
        }
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for cache in list(json, "caches") {
            let letter = match cache["kind"].as_str().unwrap() {
                "data" => "d",
                "instruction" => "i",
                _ => "",
            };
            let sum = sums.entry(format!("L{}{letter} cache", cache["level"])).or_default();
            *sum = (sum.0 + cache["size_bytes"].as_u64().unwrap(), sum.1 + 1);
        }
        for (field, (bytes, instances)) in sums {
            let Some((told_bytes, told_instances)) = told.cache(&field) else { continue };
            // QEMU gives the L3 cache that several CPUs share a number for each of them; lscpu counts numbers, firsttouch sets of CPUs.
            let (bytes, instances) = if name.starts_with("guest-") && field == "L3 cache" && told_instances > instances {
                (bytes * told_instances / instances, told_instances)
            } else {
                (bytes, instances)
            };
            // lscpu rounds to one decimal: 1.125 MiB are 1.1 MiB.
            assert!((told_bytes - bytes as f64).abs() <= 0.05 * bytes as f64, "{name}: {field}: {bytes} bytes, lscpu: {told_bytes}");
            assert_eq!(instances, told_instances, "{name}: {field}");
        }
    });
}

/// Check each CPU's node, core and package against lscpu's table.
#[test]
fn as_lscpu_table() {
    each("lscpu-cpus.json", |name, json, text| {
        // lscpu 2.38 writes a bare dash, which is no JSON, for what it does not know of CPUs that are offline.
        let table: Value = serde_json::from_str(&text.replace(": -", ": null")).unwrap();
        // lscpu numbers cores and sockets itself: what must agree is who is together.
        let (mut cores, mut sockets) = (BTreeMap::<u64, Vec<u32>>::new(), BTreeMap::<u64, Vec<u32>>::new());
        for row in list(&table, "cpus") {
            let number = |key: &str| row[key].as_u64().or_else(|| row[key].as_str()?.parse().ok());
            let cpu = number("cpu").unwrap() as u32;
            let is_online = row["online"].as_bool().unwrap_or_else(|| row["online"].as_str() == Some("yes"));
            assert_eq!(numbers(&json["cpus"]["online"]).contains(&cpu), is_online, "{name}: CPU {cpu}");
            if !is_online {
                continue;
            }
            let node =
                list(json, "nodes").iter().find(|node| numbers(&node["cpus"]).contains(&cpu)).map(|node| node["id"].as_u64().unwrap());
            assert_eq!(node, number("node"), "{name}: node of CPU {cpu}");
            cores.entry(number("core").unwrap()).or_default().push(cpu);
            sockets.entry(number("socket").unwrap()).or_default().push(cpu);
        }
        let groups = |key: &str| list(json, key).iter().map(|one| numbers(&one["cpus"])).collect::<BTreeSet<_>>();
        assert_eq!(groups("cores"), cores.into_values().collect(), "{name}: cores");
        assert_eq!(groups("packages"), sockets.into_values().collect(), "{name}: packages");
    });
}

/// Check that lstopo's XML of a machine, imported, is the machine as its own files tell it.
#[test]
fn as_lstopo() {
    each("lstopo.xml", |name, json, text| {
        let told = serde_json::to_value(hwloc::read(text).unwrap()).unwrap();
        assert_eq!(told["cpus"], json["cpus"], "{name}");
        assert_eq!(told["page_bytes"], json["page_bytes"], "{name}");
        for key in ["vendor", "model_name", "family", "model"] {
            // Of a tree that is not the running system, lstopo does not know the architecture, and leaves these out.
            if told["processor"][key] != "" && !told["processor"][key].is_null() {
                assert_eq!(told["processor"][key], json["processor"][key], "{name}: {key}");
            }
        }
        for (ours, theirs) in list(json, "nodes").iter().zip(list(&told, "nodes")) {
            for key in ["id", "cpus"] {
                assert_eq!(theirs[key], ours[key], "{name}: node {}", ours["id"]);
            }
            // Memory of a running system may be plugged between the two.
            let mib = |node: &Value| node["memory"]["total_bytes"].as_u64().unwrap() >> 20;
            assert_eq!(mib(theirs), mib(ours), "{name}: memory of node {}", ours["id"]);
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
        assert_eq!(list(&told, "nodes").len(), list(json, "nodes").len(), "{name}");
        let groups = |json: &Value, key: &str| list(json, key).iter().map(|one| numbers(&one["cpus"])).collect::<BTreeSet<_>>();
        for key in ["packages", "cores"] {
            assert_eq!(groups(&told, key), groups(json, key), "{name}: {key}");
        }
        let caches = |json: &Value| {
            let one = |cache: &Value| format!("{} {} {} {}", cache["level"], cache["kind"], cache["size_bytes"], cache["cpus"]);
            list(json, "caches").iter().map(one).collect::<BTreeSet<_>>()
        };
        assert_eq!(caches(&told), caches(json), "{name}: caches");
        if !told["distances"].is_null() {
            assert_eq!(told["distances"], json["distances"], "{name}: distances");
        }
        assert_eq!(told["sub_numa"]["nodes_per_package"], json["sub_numa"]["nodes_per_package"], "{name}: sub-NUMA");
    });
}

/// Check the lists that the tools' formats are read with.
#[test]
fn lists_are_the_kernels() {
    assert_eq!(parse_list("0,2,4-5").unwrap(), [0, 2, 4, 5]);
}

fn fixture(name: &str) -> firsttouch_domain::topology::Topology {
    topology::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name)).unwrap()
}

/// Check what no tool tells, or none as firsttouch does: HMAT figures, limits by control group, pools of huge pages, nodes without
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
    assert_eq!(machine.process.unwrap().allowed_nodes, Some(vec![0, 2]), "nodes without memory are no place for it");

    let machine = fixture("guest-offline-cpus");
    assert_eq!((machine.cpus.online.as_slice(), machine.cpus.offline.as_slice()), (&[0, 2, 3][..], &[1, 4, 5, 6, 7][..]));
    assert_eq!(machine.cores.iter().map(|core| core.cpus.as_slice()).collect::<Vec<_>>(), [&[0][..], &[2, 3]]);
    assert!(machine.node(1).unwrap().cpus.is_empty());

    let machine = fixture("guest-holes");
    assert_eq!(machine.nodes.iter().map(|node| (node.id, node.cpus.as_slice())).collect::<Vec<_>>(), [(0, &[0, 2][..]), (2, &[])]);
    assert_eq!(machine.distances.unwrap().between(0, 2), Some(31));

    for (name, mode) in [("guest-4-nodes-snc2", "SNC2"), ("guest-8-nodes-nps4", "NPS4"), ("guest-1-node-2-packages", "NPS0")] {
        assert_eq!(fixture(name).sub_numa.unwrap().mode, mode, "{name}");
    }
    assert_eq!(fixture("guest-memoryless").sub_numa, None);
}
