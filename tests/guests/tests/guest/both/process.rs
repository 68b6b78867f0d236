//! `ps` and `maps` of a program with arrays bound to each node, in pages of each kind, and a thread on each node.

use firsttouch_guests::{Node, Setting, Waiting, json, nodes};
use firsttouch_oracles::{list, numbers};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

type ByNode = BTreeMap<u32, u64>;

/// An array of `two_arrays`, as the program prints it from the kernel's answer.
struct Array {
    start: u64,
    end: u64,
    kind: String,
    policy: String,
    bytes: ByNode,
}

impl Array {
    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let bytes = words[4..].iter().map(|word| word.split_once('=').unwrap());
        Self {
            start: words[0].parse().unwrap(),
            end: words[1].parse().unwrap(),
            kind: words[2].to_owned(),
            policy: words[3].to_owned(),
            bytes: bytes.map(|(node, bytes)| (node.parse().unwrap(), bytes.parse().unwrap())).collect(),
        }
    }
}

fn by_node(value: &Value) -> ByNode {
    value.as_object().unwrap().iter().map(|(node, bytes)| (node.parse().unwrap(), bytes.as_u64().unwrap())).collect()
}

/// Reserves two pages of hugetlbfs on each node until the value is dropped.
pub fn huge_pages() -> Vec<Setting> {
    let pool = |node: &Node| format!("/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages", node.id);
    nodes().iter().map(|node| Setting::set(&pool(node), "2")).collect()
}

/// The arguments for `two_arrays`: each node with its first CPU.
pub fn places() -> Vec<String> {
    let cpu = |node: &Node| node.cpus.first().map_or("-".to_owned(), u32::to_string);
    nodes().iter().map(|node| format!("{}:{}", node.id, cpu(node))).collect()
}

fn start() -> Waiting {
    let places = places();
    Waiting::start("two_arrays", &places.iter().map(String::as_str).collect::<Vec<_>>())
}

fn status_bytes(pid: &str, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Compares the arrays in the output of `maps` with the answers of move_pages that the program printed.
pub fn assert_arrays(process: &Value, said: &str) {
    let arrays: Vec<Array> = said.lines().take_while(|line| *line != "ready").map(Array::parse).collect();
    assert_eq!(arrays.len(), 3 * nodes().len() + 1, "{said}");
    for Array { start, end, kind, policy, bytes } in arrays {
        let found =
            list(process, "mappings").iter().find(|mapping| mapping["start"] == start).unwrap_or_else(|| panic!("{start:x} {process:#}"));
        let size = end - start;
        assert_eq!((found["end"].as_u64(), by_node(&found["nodes"])), (Some(end), bytes), "{kind} {policy}: {found:#}");
        assert_eq!(found["resident_bytes"], size, "{kind} {policy}: {found:#}");
        let expected = match kind.as_str() {
            "base" => (4096, false, 0),
            "transparent" => (4096, false, size),
            _ => (2 << 20, true, 0),
        };
        let reported = (&found["page_bytes"], &found["hugetlb"], &found["transparent_huge_bytes"]);
        assert_eq!(
            (reported.0.as_u64().unwrap(), reported.1.as_bool().unwrap(), reported.2.as_u64().unwrap()),
            expected,
            "{kind} {policy}: {found:#}"
        );
        let reported_policy = found["policy"].as_str().unwrap();
        assert!(reported_policy == policy || reported_policy.starts_with(&format!("{policy}:")), "{policy}: {found:#}");
        if policy.starts_with("bind") {
            assert_eq!(by_node(&found["nodes"]), [(policy[5..].parse().unwrap(), size)].into(), "{found:#}");
        }
    }
}

/// Compare mappings with move_pages for each page size, and sums with the kernel's. numastat -p is not a reference, because it counts
/// hugetlbfs pages of other sizes incorrectly.
#[test]
fn maps_as_move_pages() {
    let _pages = huge_pages();
    let program = start();
    let maps = json(&["maps", &program.pid()]);
    let [process] = list(&maps, "processes").as_slice() else { panic!("{maps:#}") };
    let (rss, hugetlb) = (status_bytes(&program.pid(), "VmRSS:"), status_bytes(&program.pid(), "HugetlbPages:"));
    assert_eq!((process["name"].as_str(), process["doubts"].as_array().map(Vec::len)), (Some("two_arrays"), Some(0)), "{process:#}");
    assert_eq!(process["memory"]["hugetlb_bytes"], hugetlb);
    assert_eq!(hugetlb, nodes().len() as u64 * (4 << 20));
    let reported: u64 = by_node(&process["memory"]["nodes"]).values().sum();
    // The kernel sums the resident pages of each thread in batches (a few pages off); numa_maps leaves out special ones.
    assert!(reported.abs_diff(rss + hugetlb) <= 512 << 10, "{reported} in maps, {rss} + {hugetlb} in status");
    assert_arrays(process, &program.end());
}

/// Check names, CPUs and nodes of threads that are bound, and that memory by node is that of `maps`.
#[test]
fn ps_of_bound_threads() {
    let _pages = huge_pages();
    let program = start();
    let ps = json(&["ps", &program.pid()]);
    assert_eq!(json(&["ps", "two_arrays"])["processes"][0]["pid"], ps["processes"][0]["pid"]);
    let maps = json(&["maps", &program.pid()]);
    let [process] = list(&ps, "processes").as_slice() else { panic!("{ps:#}") };
    let with_cpus: Vec<Node> = nodes().into_iter().filter(|node| !node.cpus.is_empty()).collect();
    assert_eq!((list(process, "threads").len(), list(process, "doubts").len()), (1 + with_cpus.len(), 0), "{process:#}");
    for Node { id, cpus } in with_cpus {
        let name = format!("on-node-{id}");
        let thread = list(process, "threads").iter().find(|thread| thread["name"] == name).unwrap_or_else(|| panic!("{process:#}"));
        let reported = (thread["cpu"].as_u64(), thread["node"].as_u64(), thread["state"].as_str(), numbers(&thread["allowed_cpus"]));
        assert_eq!(reported, (Some(cpus[0].into()), Some(id.into()), Some("S"), vec![cpus[0]]), "{thread:#}");
    }
    let all: Vec<u32> = nodes().iter().map(|node| node.id).collect();
    assert!(list(process, "threads").iter().all(|thread| numbers(&thread["allowed_nodes"]) == all), "{process:#}");
    assert_eq!(by_node(&process["memory"]["nodes"]), by_node(&maps["processes"][0]["memory"]["nodes"]));
    assert!(by_node(&process["memory"]["nodes"]).iter().all(|(_, bytes)| *bytes >= 12 << 20), "{process:#}");
}
