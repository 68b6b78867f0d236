//! The doctor on recorded machines: the checks that need only a copy of /proc and /sys.

use firsttouch_doctor::{Diagnosis, examine};
use firsttouch_system::facts;
use std::fs;
use std::path::{Path, PathBuf};

fn machines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines")
}

fn examined(machine: &str) -> Diagnosis {
    examine(&facts::read(&machines().join(machine)).unwrap())
}

fn ids(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.findings.iter().map(|finding| finding.id).collect()
}

/// Check findings that depend only on the machine's shape: they name the correct node.
#[test]
fn shapes_are_judged() {
    assert_eq!(ids(&examined("firecracker-epyc-1-node")), Vec::<&str>::new());
    for (machine, id, seen) in [
        ("guest-memoryless", "node-without-memory", "MemTotal: 0 kB"),
        ("guest-hmat", "node-without-cpus", "(no CPUs)"),
        ("guest-4-nodes-snc2", "sub-numa", "SNC2: 4 nodes, 2 packages"),
        ("guest-cpuset", "cpuset", "Mems_allowed_list: 2"),
        ("constructed-nps4", "sub-numa", "NPS4: 8 nodes, 2 packages"),
        ("guest-1-node-2-packages", "sub-numa", "NPS0: 1 node, 2 packages"),
    ] {
        let diagnosis = examined(machine);
        let finding = diagnosis.findings.iter().find(|finding| finding.id == id);
        let finding = finding.unwrap_or_else(|| panic!("{machine}: {id} is not among {:?}", ids(&diagnosis)));
        assert!(finding.evidence.iter().any(|evidence| evidence.value == seen), "{machine}: {finding:#?}");
    }
}

/// Check that there are no findings about an environment that was not recorded, and that recordings cause no doubts.
#[test]
fn what_was_not_recorded_is_not_judged() {
    for entry in fs::read_dir(machines()).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        let diagnosis = examine(&facts::read(&entry.path()).unwrap());
        assert_eq!(diagnosis.doubts, Vec::<String>::new(), "{}", entry.path().display());
        for id in ["unpinned-threads", "more-threads-than-cpus", "smt-shared", "mempolicy-forbidden", "preloaded-allocator"] {
            assert!(!ids(&diagnosis).contains(&id), "{}: {id}", entry.path().display());
        }
    }
}

/// Check that settings in a tree are found in their files: a machine with all of them set.
#[test]
fn switches_are_found_in_their_files() {
    let tree = tempfile::tempdir().unwrap();
    let node = |id: u32, free: u32| {
        let meminfo = format!("Node {id} MemTotal: 1000 kB\nNode {id} MemFree: {free} kB\nNode {id} FilePages: 700 kB\n");
        [
            (format!("sys/devices/system/node/node{id}/cpulist"), id.to_string()),
            (format!("sys/devices/system/node/node{id}/meminfo"), meminfo),
        ]
    };
    let fixed = [
        ("sys/devices/system/cpu/online", "0-1"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "ondemand\n"),
        ("sys/devices/system/node/online", "0-1"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
        ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152"),
        ("proc/sys/kernel/numa_balancing", "1\n"),
        ("proc/sys/kernel/perf_event_paranoid", "4\n"),
        ("proc/sys/vm/zone_reclaim_mode", "3\n"),
        ("proc/meminfo", "SwapTotal: 100 kB\nSwapFree: 99 kB\n"),
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cpu.max", "100000 100000\n"),
        ("etc/ld.so.preload", "/usr/lib/libmimalloc.so.2\n"),
    ];
    let fixed = fixed.map(|(file, text)| (file.to_owned(), text.to_owned()));
    for (file, text) in fixed.into_iter().chain(node(0, 500)).chain(node(1, 10)) {
        fs::create_dir_all(tree.path().join(&file).parent().unwrap()).unwrap();
        fs::write(tree.path().join(&file), text).unwrap();
    }
    let diagnosis = examine(&facts::read(tree.path()).unwrap());
    let expected = [
        "perf-forbidden",
        "node-nearly-full",
        "numa-balancing",
        "swap-in-use",
        "cpu-quota",
        "huge-pages-always",
        "zone-reclaim",
        "preloaded-allocator",
        "frequency-governor",
    ];
    assert_eq!(ids(&diagnosis), expected, "{:#?}", diagnosis.findings);
}

/// Check that counters of bandwidth that an ordinary user may not read are found, with what would help, and that machines without them have no finding.
#[test]
fn counters_of_bandwidth() {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bandwidth");
    let diagnosis = examine(&facts::read(&machines.join("constructed-intel-2-nodes")).unwrap());
    let finding = diagnosis.findings.iter().find(|finding| finding.id == "bandwidth-counters").unwrap();
    assert!(finding.evidence[0].value.contains("uncore_imc_0") && finding.remedy.contains("kernel.perf_event_paranoid=0"), "{finding:?}");
    let saw = |machine: &Path| {
        let seen = examine(&facts::read(machine).unwrap()).seen;
        seen.into_iter().find(|one| one.id == "bandwidth-counters").unwrap().saw
    };
    assert!(saw(&machines.join("constructed-amd-2-nodes")).contains("can be read: mbm_total_bytes of resctrl"));
    assert!(saw(&self::machines().join("guest-2-nodes")).contains("the kernel shows no counters"));
}
