//! The collectors on recorded machines.

use super::*;
use crate::render::{Format, render};
use std::fs;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn options(root: &Path) -> Options {
    Options { root: root.to_owned(), cgroups: Cgroups::All, max_series: 1_000, version: "test" }
}

fn text(options: Options) -> String {
    render(&Collector::new(options, None).collect(Batch::default()), Format::Text)
}

#[track_caller]
fn assert_has(text: &str, sample: &str) {
    assert!(text.lines().any(|line| line == sample), "{sample} is missing:\n{text}");
}

/// Check figures of a recorded machine against its files: nodes, counters, control groups, and memory outside of a cpuset.
#[test]
fn recorded_groups() {
    let text = text(options(&fixture("metrics/guest-2-nodes-cgroups")));
    let a = "/kubepods.slice/kubepods-pod1.slice/cri-containerd-a.scope";
    for sample in [
        "firsttouch_node_cpus{node=\"1\"} 2",
        "firsttouch_node_memory_size_bytes{node=\"0\"} 480370688",
        "firsttouch_node_memory_used_bytes{node=\"0\",kind=\"shared\"} 25182208",
        "firsttouch_node_numa_hit_total{node=\"0\"} 17640",
        "firsttouch_node_numa_other_total{node=\"0\"} 422",
        "firsttouch_balancing_enabled 1",
        "firsttouch_pressure_waiting_seconds_total{resource=\"io\"} 0.303673",
        &format!("firsttouch_cgroup_memory_bytes{{cgroup=\"{a}\",node=\"1\",kind=\"anonymous\"}} 47071232"),
        &format!("firsttouch_cgroup_memory_bytes{{cgroup=\"{a}\",node=\"0\",kind=\"file\"}} 4096"),
        &format!("firsttouch_cgroup_memory_bytes{{cgroup=\"{a}\",node=\"0\",kind=\"shared\"}} 25165824"),
        &format!("firsttouch_cgroup_node_allowed{{cgroup=\"{a}\",node=\"0\"}} 0"),
        &format!("firsttouch_cgroup_node_allowed{{cgroup=\"{a}\",node=\"1\"}} 1"),
        // shared, file, slabs on node 0.
        &format!("firsttouch_cgroup_memory_outside_cpuset_bytes{{cgroup=\"{a}\"}} 25240704"),
        "firsttouch_cgroup_memory_outside_cpuset_bytes{cgroup=\"/kubepods.slice/kubepods-pod1.slice/cri-containerd-b.scope\"} 0",
        "firsttouch_scrape_collector_success{collector=\"cgroups\"} 1",
        "firsttouch_scrape_series_dropped{collector=\"cgroups\"} 0",
        "firsttouch_build_info{version=\"test\"} 1",
    ] {
        assert_has(&text, sample);
    }
}

/// Check the recorded machines of all shapes: each sample once, every collector with its success.
#[test]
fn recorded_machines() {
    let (mut machines, mut counted) = (0, 0);
    for machine in fs::read_dir(fixture("machines")).unwrap().flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        let text = text(options(&machine));
        let mut series: Vec<&str> =
            text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all, "{machine:?}: a series twice");
        assert_has(&text, "firsttouch_scrape_collector_success{collector=\"memory\"} 1");
        let counts = machine.join("sys/devices/system/node/node0/numastat").exists();
        assert_eq!(text.contains("firsttouch_node_numa_miss_total{node=\"0\"}"), counts, "{machine:?}");
        counted += usize::from(counts);
        machines += 1;
    }
    assert!(machines >= 14 && counted >= 10, "{machines} {counted}");
}

/// Check a system without any of the files: it has metrics about the exporter, and says what failed.
#[test]
fn nothing_to_read() {
    let root = tempfile::tempdir().unwrap();
    let exposition = Collector::new(options(root.path()), None).collect(Batch::default());
    let text = render(&exposition, Format::Text);
    for collector in ["memory", "counters", "pressure", "cgroups"] {
        assert_has(&text, &format!("firsttouch_scrape_collector_success{{collector=\"{collector}\"}} 0"));
    }
    assert_has(&text, "firsttouch_scrape_series 0");
    let doubts = exposition.doubts.join("\n");
    for why in ["names no nodes", "CONFIG_PSI", "no control groups of version 2", "vmstat"] {
        assert!(doubts.contains(why), "{doubts}");
    }
}

/// Check that nodes come and go between two scrapes, and that a node whose files vanish costs only itself.
#[test]
fn nodes_come_and_go() {
    let root = tempfile::tempdir().unwrap();
    let nodes = root.path().join("sys/devices/system/node");
    let add = |node: u32| {
        let folder = nodes.join(format!("node{node}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("meminfo"), format!("Node {node} MemTotal: 8 kB\nNode {node} MemFree: 3 kB\n")).unwrap();
        fs::write(folder.join("numastat"), "numa_hit 5\n").unwrap();
    };
    let online = |list: &str| fs::write(nodes.join("online"), list).unwrap();
    let collector = Collector::new(options(root.path()), None);
    let seen = || {
        let text = render(&collector.collect(Batch::default()), Format::Text);
        let lines = text.lines().filter_map(|line| line.strip_prefix("firsttouch_node_memory_free_bytes{node=\""));
        lines.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect::<Vec<_>>()
    };
    add(0);
    online("0\n");
    assert_eq!(seen(), ["0"]);
    add(2);
    online("0,2\n");
    assert_eq!(seen(), ["0", "2"]);
    fs::remove_dir_all(nodes.join("node0")).unwrap();
    assert_eq!(seen(), ["2"], "it is still listed");
    online("2\n");
    assert_eq!(seen(), ["2"]);
}

/// Check the limit: control groups are left out first, whole, and their series are counted.
#[test]
fn the_limit_is_kept() {
    let root = fixture("metrics/guest-2-nodes-cgroups");
    let all = Collector::new(options(&root), None).collect(Batch::default());
    let few = Collector::new(Options { max_series: 90, ..options(&root) }, None).collect(Batch::default());
    assert!(all.series() > 90 && few.series() <= 90);
    assert_eq!(few.series() + few.dropped()["cgroups"], all.series());
    assert_eq!((few.dropped()["memory"], few.dropped()["counters"]), (0, 0));
    let text = render(&few, Format::Text);
    assert_has(&text, &format!("firsttouch_scrape_series_dropped{{collector=\"cgroups\"}} {}", few.dropped()["cgroups"]));
    assert!(text.contains("cgroup=\"/\"") && !text.contains("cri-containerd-b"), "{text}");
    let none = Collector::new(Options { cgroups: Cgroups::None, ..options(&root) }, None).collect(Batch::default());
    assert!(!none.dropped().contains_key("cgroups") && !render(&none, Format::Text).contains("cgroup"));
}
