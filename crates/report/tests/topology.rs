//! The topology's text, SVG picture and XML, for recorded machines.

use firsttouch_model::topology::{Cache, CacheKind, Distances, Node, Topology};
use firsttouch_report::{Style, TopologyJson, hwloc_xml, picture, topology_text};
use firsttouch_system::{hwloc, topology};
use std::fs;
use std::path::{Path, PathBuf};

const PLAIN: Style = Style { width: 100, colour: false };

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder);
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("README.md")).collect()
}

fn machine(name: &str) -> Topology {
    topology::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name)).unwrap()
}

fn all() -> Vec<Topology> {
    let machines = fixtures("machines").into_iter().map(|path| topology::read(&path).unwrap());
    machines.chain(fixtures("hwloc").into_iter().map(|path| hwloc::read_file(&path).unwrap())).collect()
}

/// Check the whole text of a machine with holes in its numbers.
#[test]
fn the_text_of_a_machine() {
    let expected = "\
processor  QEMU TCG CPU version 2.5+ (AuthenticAMD), under a hypervisor: what it shows may differ
           from the hardware
machine    2 nodes, 1 package, 1 die, 2 cores, 4 CPUs (1 thread a core)
CPUs       online 0,2; offline 1,3
package 0  nodes 0, CPUs 0,2

Caches
cache     size  number      sum  line  shared by
L1d     64 KiB       2  128 KiB  64 B  1 CPU
L1i     64 KiB       2  128 KiB  64 B  1 CPU
L2     512 KiB       2    1 MiB  64 B  1 CPU
L3      16 MiB       1   16 MiB  64 B  CPUs 0,2

Nodes
node  package     memory       free  CPUs
   0        0  457.6 MiB  386.7 MiB  0,2
   2        -  501.5 MiB  494.8 MiB  none: memory only
No huge pages are reserved of 2 MiB and 1 GiB.

Distances (from the row's node to the column's memory; 10 = local)
node   0   2
   0  10  31
   2  31  10

This process
memory policy  default
allowed CPUs   0-3 (nodes 0)
allowed nodes  0,2
cpuset         /: CPUs 0,2, nodes 0,2

Scheduling domains, from the innermost
0  MC  0,2
";
    assert_eq!(topology_text(&machine("guest-holes"), PLAIN), expected);
}

/// Check that the text shows special properties: nodes with only memory, the firmware's figures, sub-NUMA modes, pools, limits, doubts.
#[test]
fn the_text_says_what_is_special() {
    for (name, lines) in [
        (
            "guest-hmat",
            &[
                "none: memory only, nearest to nodes 0\n",
                "   2      1      38,912       38,912      340       340  0\n",
                "Node 2 is behind a memory-side cache of 64 MiB.\n",
            ][..],
        ),
        ("guest-4-nodes-snc2", &["SNC2: sub-NUMA clustering", "SMT siblings  CPU n with n+1: 0-1 and so on\n"]),
        ("guest-huge-pages", &["24 of 24  0-1\n", "40 of 40  2-3\n"]),
        ("guest-cpuset", &["allowed CPUs   1,4 (nodes 0,2)\n", "allowed nodes  2\n", "cpuset         /: CPUs 1,4, nodes 2\n"]),
    ] {
        let text = topology_text(&machine(name), PLAIN);
        lines.iter().for_each(|line| assert!(text.contains(line), "{line:?}: {text}"));
    }
    let mut machine = machine("guest-memoryless");
    machine.doubts.push("sys/x\u{1b}[2J: is odd".into());
    let text = topology_text(&machine, PLAIN);
    assert!(text.contains("   1        1       none ") && text.contains("  -  sys/x\u{fffd}[2J: is odd\n"), "{text}");
}

/// Check that lines keep to the width if they can be wrapped.
#[test]
fn long_lists_are_folded() {
    let cpus: Vec<u32> = (0..200).map(|cpu| 2 * cpu).collect();
    let mut machine = Topology { nodes: vec![Node { id: 0, cpus: cpus.clone(), ..Node::default() }], ..Topology::default() };
    machine.cpus.online = cpus;
    let text = topology_text(&machine, Style { width: 60, colour: false });
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

/// Check that a machine written as XML and read again is equal, except for properties that hwloc's format cannot express.
#[test]
fn xml_goes_round() {
    for machine in all() {
        let back = hwloc::read(&hwloc_xml(&machine)).unwrap();
        assert_eq!(back.doubts, Vec::<String>::new());
        assert_eq!((&back.cpus, back.page_bytes), (&machine.cpus, machine.page_bytes));
        let sorted = |mut list: Vec<Vec<u32>>| {
            list.sort();
            list
        };
        assert_eq!(back.packages, machine.packages);
        let cores = |one: &Topology| sorted(one.cores.iter().map(|core| core.cpus.clone()).collect());
        assert_eq!(cores(&back), cores(&machine));
        let caches = |one: &Topology| {
            one.caches.iter().map(|cache| (cache.level, cache.kind, cache.size_bytes, cache.cpus.clone())).collect::<Vec<_>>()
        };
        assert_eq!(caches(&back), caches(&machine));
        for (ours, theirs) in machine.nodes.iter().zip(&back.nodes) {
            assert_eq!((ours.id, &ours.cpus), (theirs.id, &theirs.cpus));
            assert_eq!(ours.memory.unwrap().total_bytes, theirs.memory.unwrap().total_bytes);
            let figures = |node: &Node| node.access.iter().rfind(|access| access.class == 1).and_then(|access| access.read_bandwidth_mib_s);
            assert_eq!(figures(ours), figures(theirs), "node {}", ours.id);
        }
        if machine.nodes.len() > 1 {
            assert_eq!(back.distances, machine.distances);
        }
        let mode = |one: &Topology| one.sub_numa.as_ref().map(|mode| mode.nodes_per_package);
        assert_eq!(mode(&back), mode(&machine));
    }
}

/// Check that the XML is readable even if caches overlap each other, which a tree cannot represent.
#[test]
fn contradictions_leave_the_xml_readable() {
    let mut machine = machine("guest-4-nodes-snc2");
    let cache = Cache { level: 4, kind: CacheKind::Unified, size_bytes: 1, line_bytes: None, ways: None, cpus: vec![3, 4, 5] };
    machine.caches.push(cache);
    machine.nodes[0].cpus = vec![0, 1];
    machine.nodes[1].cpus = vec![2, 3, 4];
    machine.nodes[2].cpus = vec![5];
    let back = hwloc::read(&hwloc_xml(&machine)).unwrap();
    assert_eq!(back.cpus, machine.cpus);
    assert_eq!(back.nodes.len(), 4);
}

/// Check the picture: well-formed, with every node, CPU and distance, and nothing outside its frame.
#[test]
fn pictures_show_all() {
    for machine in all() {
        let svg = picture(&machine);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<&str> =
            document.descendants().filter(|element| element.has_tag_name("text")).filter_map(|text| text.text()).collect();
        for node in &machine.nodes {
            assert!(texts.contains(&format!("Node {}", node.id).as_str()), "{texts:?}");
        }
        for cpu in &machine.cpus.online {
            assert!(texts.contains(&cpu.to_string().as_str()), "CPU {cpu}");
        }
        if let Some(distances) = machine.distances.as_ref().filter(|distances| distances.nodes.len() > 1) {
            for distance in distances.matrix.iter().flatten() {
                assert!(texts.contains(&distance.to_string().as_str()), "{distance}");
            }
        }
        let number = |element: roxmltree::Node, name: &str| element.attribute(name).and_then(|text| text.parse::<f64>().ok());
        let (width, height) = (number(document.root_element(), "width").unwrap(), number(document.root_element(), "height").unwrap());
        for element in document.descendants().filter(|element| element.has_tag_name("rect") && element.attribute("x").is_some()) {
            let [x, y, w, h] = ["x", "y", "width", "height"].map(|name| number(element, name).unwrap());
            assert!(x >= 0.0 && y >= 0.0 && w >= 0.0 && h >= 0.0 && x + w <= width && y + h <= height, "{element:?}");
        }
    }
}

/// Check that names from a machine are escaped in the picture and the XML.
#[test]
fn names_are_escaped() {
    let mut machine = machine("guest-memoryless");
    machine.processor.model_name = "<script>\"&\u{1b}".into();
    assert!(roxmltree::Document::parse(&picture(&machine)).is_ok());
    assert_eq!(hwloc::read(&hwloc_xml(&machine)).unwrap().processor.model_name, "<script>\"&\u{fffd}");
}

/// Check that pictures of machines with many nodes, and of machines about which nothing is known, are drawn.
#[test]
fn pictures_of_extremes() {
    let count = 64;
    let nodes = (0..count).map(|id| Node { id, cpus: vec![id], ..Node::default() }).collect();
    let row = |from: u32| (0..count).map(|to| if from == to { 10 } else { 10 + (from ^ to) }).collect();
    let distances = Distances { nodes: (0..count).collect(), matrix: (0..count).map(row).collect() };
    let many = Topology { nodes, distances: Some(distances), ..Topology::default() };
    for machine in [many, Topology::default()] {
        assert!(roxmltree::Document::parse(&picture(&machine)).is_ok());
    }
}

/// Check the JSON keys that other programs rely on (docs/topology.md).
#[test]
fn json_has_its_keys() {
    let machine = machine("guest-hmat");
    let json = serde_json::to_value(TopologyJson::new(&machine)).unwrap();
    assert_eq!(json["schema"], "firsttouch.topology/1");
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "schema",
        "processor",
        "cpus",
        "packages",
        "dies",
        "cores",
        "caches",
        "nodes",
        "page_bytes",
        "distances",
        "sub_numa",
        "process",
        "scheduling_domains",
        "doubts",
    ];
    assert_eq!(keys, expected);
    assert_eq!(json["nodes"][2]["access"][1]["read_latency_ns"], 340);
    assert_eq!(json["distances"]["matrix"][0][3], 28);
    assert_eq!(json["caches"][0]["kind"], "data");
    assert_eq!(json["process"]["policy"]["source"], "numa_maps");
}
