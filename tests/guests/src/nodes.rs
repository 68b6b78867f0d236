//! This guest's nodes, read independently of firsttouch.

use crate::programs::Waiting;
use crate::settings::Setting;
use firsttouch_oracles::parse_list;
use std::fs;
use std::time::Duration;

pub struct Node {
    pub id: u32,
    pub cpus: Vec<u32>,
}

/// All nodes, by number.
pub fn nodes() -> Vec<Node> {
    let file = |name: String| fs::read_to_string(format!("/sys/devices/system/node/{name}")).unwrap();
    let ids = parse_list(&file("online".to_owned()));
    ids.into_iter().map(|id| Node { id, cpus: parse_list(&file(format!("node{id}/cpulist"))) }).collect()
}

/// Two nodes with CPUs.
pub fn first_two_with_cpus() -> [Node; 2] {
    let mut with_cpus = nodes().into_iter().filter(|node| !node.cpus.is_empty());
    [with_cpus.next().unwrap(), with_cpus.next().unwrap()]
}

/// A node with less than 4 % of its memory free, until it is dropped. (It is filled further, because the kernel may find some more.)
pub struct FullNode {
    _fillers: Vec<Waiting>,
    _reserve: Setting,
}

impl FullNode {
    pub fn fill(node: u32) -> Self {
        // With huge pages, the kernel's reserve is larger than 4 %, so programs could never fill the node that far.
        let reserve = Setting::set("/proc/sys/vm/min_free_kbytes", "2048");
        // The kernel would drop cached files to satisfy later allocations, so drop them now. Some pages become free only later, so check
        // several times.
        Setting::write("/proc/sys/vm/drop_caches", "3");
        let (total, bind) = (mib_of(node, "MemTotal:"), format!("--membind={node}"));
        let (mut fillers, mut looks_full) = (Vec::new(), 0);
        while looks_full < 3 {
            let free = mib_of(node, "MemFree:");
            if free * 1000 < total * 35 {
                looks_full += 1;
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
            assert!(fillers.len() < 20, "node {node} does not fill");
            looks_full = 0;
            let more = (free - total * 25 / 1000).to_string();
            fillers.push(Waiting::start_under(&["numactl", &bind], "fill", &[&more, "huge", "wait"]));
        }
        Self { _fillers: fillers, _reserve: reserve }
    }
}

/// A line of a node's meminfo, MiB.
pub fn mib_of(node: u32, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/sys/devices/system/node/node{node}/meminfo")).unwrap();
    let line = text.lines().find(|line| line.contains(key)).unwrap().trim_end_matches(" kB");
    line.rsplit(' ').next().unwrap().parse::<u64>().unwrap() >> 10
}
