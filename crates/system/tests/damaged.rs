//! Damaged machines: every file of a recorded tree truncated, empty, binary or contradictory. The readers never panic, and
//! name the file.

use crate::tree::files;
use firsttouch_model::topology::Topology;
use firsttouch_system::{MachineInfo, facts, hwloc, topology};
use std::fs;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// A copy of a fixture that the tests can damage, without the output of other tools.
fn copy(machine: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in files(&fixtures().join("machines").join(machine)) {
        let relative = file.strip_prefix(fixtures().join("machines").join(machine)).unwrap();
        if !relative.starts_with("tools") {
            fs::create_dir_all(copy.path().join(relative).parent().unwrap()).unwrap();
            fs::copy(&file, copy.path().join(relative)).unwrap();
        }
    }
    copy
}

/// Checks properties of every result, regardless of the damage: lists are consistent.
fn check(topology: &Topology) {
    assert!(!topology.cpus.online.is_empty());
    for node in &topology.nodes {
        assert!(node.cpus.iter().all(|cpu| topology.cpus.online.contains(cpu)), "{node:?}");
    }
    let mut on_nodes: Vec<u32> = topology.nodes.iter().flat_map(|node| node.cpus.clone()).collect();
    on_nodes.sort_unstable();
    let all = on_nodes.len();
    on_nodes.dedup();
    assert_eq!(on_nodes.len(), all, "a CPU is on two nodes");
    let mut in_cores: Vec<u32> = topology.cores.iter().flat_map(|core| core.cpus.clone()).collect();
    in_cores.sort_unstable();
    assert_eq!(in_cores, topology.cpus.online, "each CPU is in one core");
    if let Some(distances) = &topology.distances {
        assert!(distances.matrix.len() == distances.nodes.len() && distances.matrix.iter().all(|row| row.len() == distances.nodes.len()));
    }
}

/// Contents that replace each file in turn.
const SEEDS: [&[u8]; 14] = [
    b"",
    b"\n",
    b"\0",
    &[0xff, 0xfe, 0x80, 0x00],
    b"-1",
    b"18446744073709551616",
    b"4294967295",
    b"0-8191",
    b"0-4294967295",
    b"x",
    "é\u{202e}".as_bytes(),
    b"0,0,0",
    b"MemTotal: kB\nNode 0 MemTotal: 99999999999999999999 kB\ncpu\ncpu0\ndomain0\nvendor_id:::",
    b"0::\n1:cpuset\n::::\n0::/../..\n0::/a/../../b",
];

/// Check that if a file of a machine is replaced, truncated or missing, only its own values are lost.
#[test]
fn damage_is_survived() {
    std::thread::scope(|scope| {
        let machines = ["guest-holes", "guest-hmat"].map(|machine| scope.spawn(move || damaged_files(machine)));
        machines.into_iter().for_each(|machine| machine.join().unwrap());
    });
}

fn damaged_files(machine: &str) {
    let copy = copy(machine);
    // All CPUs' files are read in the same way: test those of two CPUs, and the first index of caches.
    let stands = |file: &PathBuf| {
        let text = file.display().to_string();
        !text.contains("/cpu/cpu") || ["/cpu0/", "/cpu2/"].iter().any(|cpu| text.contains(cpu)) && !text.contains("/index1/")
    };
    for file in files(copy.path()).into_iter().filter(stands) {
        let whole = fs::read(&file).unwrap();
        let truncated: Vec<&[u8]> = [whole.len() / 2, whole.len().saturating_sub(2)].iter().map(|end| &whole[..*end]).collect();
        for seed in SEEDS.iter().copied().chain(truncated) {
            fs::write(&file, seed).unwrap();
            match topology::read(copy.path()) {
                Ok(topology) => check(&topology),
                Err(error) => panic!("{}: {error:#}", file.display()),
            }
            let _ = MachineInfo::read(copy.path());
        }
        fs::remove_file(&file).unwrap();
        check(&topology::read(copy.path()).unwrap());
        fs::write(&file, &whole).unwrap();
    }
    assert_eq!(topology::read(copy.path()).unwrap().doubts, Vec::<String>::new(), "the machine is whole again");
}

/// The files that the doctor reads in addition to the topology, with plausible contents for files that the fixtures lack.
const DOCTORS: [(&str, &str); 12] = [
    ("proc/sys/kernel/numa_balancing", "1"),
    ("proc/sys/vm/zone_reclaim_mode", "0"),
    ("proc/sys/kernel/perf_event_paranoid", "2"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
    ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
    ("proc/meminfo", "MemTotal: 100 kB\nSwapTotal: 8 kB\nSwapFree: 4 kB"),
    ("proc/self/cgroup", "2:cpu:/\n0::/a"),
    ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000"),
    ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
    ("sys/fs/cgroup/a/cpu.max", "250000 100000"),
    ("etc/ld.so.preload", "/usr/lib/libjemalloc.so.2\n"),
];

/// Check the facts of a whole machine, and that no contents of their files cause a failure.
#[test]
fn facts_survive_damage() {
    let copy = copy("guest-2-nodes-smt");
    let write = |file: &str, content: &[u8]| {
        fs::create_dir_all(copy.path().join(file).parent().unwrap()).unwrap();
        fs::write(copy.path().join(file), content).unwrap();
    };
    DOCTORS.iter().for_each(|(file, content)| write(file, content.as_bytes()));
    let whole = facts::read(copy.path()).unwrap();
    assert_eq!(whole.doubts, Vec::<String>::new());
    assert_eq!(
        (whole.kernel.numa_balancing, whole.kernel.zone_reclaim_mode, whole.kernel.perf_event_paranoid),
        (Some(1), Some(0), Some(2))
    );
    assert_eq!((whole.kernel.transparent_huge_pages.as_deref(), whole.kernel.huge_page_bytes), (Some("madvise"), Some(2 << 20)));
    assert_eq!(whole.swap.map(|swap| (swap.total_bytes, swap.free_bytes)), Some((8192, 4096)));
    assert_eq!(whole.cpu_quota.as_ref().map(|quota| quota.cpus), Some(1.5), "the tightest of both hierarchies");
    assert_eq!(whole.governors.get(&1).map(String::as_str), Some("powersave"));
    assert_eq!(whole.preloaded_everywhere, ["/usr/lib/libjemalloc.so.2"]);
    assert!(whole.environment.is_none() && whole.probes == Default::default(), "a recorded machine has no kernel to ask");
    for (file, content) in DOCTORS.iter().map(|(file, content)| (*file, content.as_bytes())) {
        for seed in SEEDS.iter().copied().chain([&content[..content.len() / 2]]) {
            write(file, seed);
            facts::read(copy.path()).unwrap_or_else(|error| panic!("{file}: {error:#}"));
        }
        fs::remove_file(copy.path().join(file)).unwrap();
        let without = facts::read(copy.path()).unwrap();
        assert_eq!(without.doubts, Vec::<String>::new(), "{file}: a missing file causes no doubt");
        write(file, content);
    }
    for (file, content) in
        [("proc/sys/vm/zone_reclaim_mode", "on"), ("sys/fs/cgroup/a/cpu.max", "lots"), ("proc/sys/kernel/numa_balancing", "")]
    {
        let before = fs::read(copy.path().join(file)).unwrap();
        write(file, content.as_bytes());
        let doubts = facts::read(copy.path()).unwrap().doubts;
        assert!(doubts.len() == 1 && doubts[0].contains(file), "{doubts:?}");
        write(file, &before);
    }
}

/// Check that damage and contradictions are named with their file.
#[test]
fn doubts_name_the_file() {
    let node = "sys/devices/system/node";
    let cpu = "sys/devices/system/cpu";
    for (file, content, doubt) in [
        (format!("{node}/online"), "x", "expected a list such as 0-3,8, found \"x\": expected a number"),
        (format!("{cpu}/online"), "0-65535", "expected a list such as 0-3,8, found \"0-65535\": number too large"),
        (format!("{node}/online"), "0-8191", "names nodes above 1023, which no kernel has; not used"),
        (format!("{node}/node0/cpulist"), "0-3,77", "names CPU 77, which is not online; left out"),
        (format!("{node}/node1/cpulist"), "3-7", "names CPU 3, as node 0 does; taken as on node 0"),
        (format!("{node}/node1/cpulist"), "4-6", "no node has CPU 7 (1 CPUs in all), though it is online"),
        (format!("{node}/node0/distance"), "10 32 31", "has 3 distances, but 2 nodes are online; the distances are not shown"),
        (format!("{node}/node0/distance"), "10 far", "expected distances such as 10 21, found \"10 far\""),
        (format!("{node}/node0/distance"), "11 32", "gives node 0 the distance 11 to itself instead of 10"),
        (format!("{node}/node0/distance"), "10 3000", "has the distance 3000; distances are 10 to 255"),
        (format!("{node}/node0/meminfo"), "nothing", "has no line such as Node 0 MemTotal: 1024 kB"),
        (format!("{node}/node0/meminfo"), "Node 0 MemTotal: 4 kB\nNode 0 MemFree: 8 kB", "has 8192 bytes free of 4096"),
        (format!("{cpu}/present"), "0-3", "lacks CPU 4, which is online"),
        (format!("{cpu}/cpu5/topology/core_cpus_list"), "7", "CPU 5 is not among its own siblings; taken as a core of its own"),
        (format!("{cpu}/cpu5/topology/core_cpus_list"), "5,7", "names CPU 7 as a sibling, which that CPU's own files contradict"),
        (format!("{cpu}/cpu5/cache/index2/size"), "many", "expected a size such as 512K, found \"many\""),
        (format!("{cpu}/cpu5/cache/index2/type"), "Trace", "expected Data, Instruction or Unified, found \"Trace\""),
        (format!("{cpu}/cpu5/cache/index2/shared_cpu_list"), "7", "CPU 5 does not share its own cache; taken as private"),
        (format!("{cpu}/cpu5/cache/index3/size"), "1K", "says 1024 bytes, another CPU of the same L3 says 16777216"),
        (format!("{cpu}/cpu5/cache/index3/shared_cpu_list"), "0,5", "is said to be on two L3 caches"),
        ("proc/self/status".to_owned(), "Cpus_allowed_list:\tall", "expected a list such as 0-3,8 after Cpus_allowed_list:, found \"all\""),
        ("proc/schedstat".to_owned(), "cpu0 0\ndomain0 MC zero 0", "expected a mask of CPUs in \"domain0 MC zero 0\""),
    ] {
        let copy = copy("guest-2-nodes-smt");
        fs::write(copy.path().join(&file), content).unwrap();
        let doubts = topology::read(copy.path()).unwrap().doubts;
        assert!(doubts.iter().any(|one| one.contains(doubt)), "{file}: {doubts:#?}");
        assert!(doubts.iter().all(|one| one.starts_with(&copy.path().display().to_string())), "{doubts:#?}");
    }
}

/// Check that only a machine without any CPU is an error, which names the files that were searched for CPUs.
#[test]
fn no_cpus_at_all() {
    let nothing = tempfile::tempdir().unwrap();
    let error = topology::read(nothing.path()).expect_err("no CPUs").to_string();
    assert!(error.starts_with("cannot find the machine's CPUs: neither sys/devices/system/cpu/online nor proc/stat names any"), "{error}");
    fs::create_dir_all(nothing.path().join("proc")).unwrap();
    fs::write(nothing.path().join("proc/stat"), "cpu  1\ncpu0 1\ncpu1 1\n").unwrap();
    let topology = topology::read(nothing.path()).unwrap();
    assert_eq!((topology.cpus.online.as_slice(), topology.nodes.len(), topology.nodes[0].cpus.len()), (&[0, 1][..], 1, 2));
}

/// Check scheduling domains of schedstat's versions, and names from debugfs if there are no spans.
#[test]
fn scheduling_domains() {
    let domains = |files: &[(&str, &str)]| {
        let copy = copy("guest-2-nodes");
        fs::remove_file(copy.path().join("proc/schedstat")).unwrap();
        fs::remove_dir_all(copy.path().join("sys/kernel/debug/sched/domains")).unwrap();
        for (file, content) in files {
            fs::create_dir_all(copy.path().join(file).parent().unwrap()).unwrap();
            fs::write(copy.path().join(file), content).unwrap();
        }
        let topology = topology::read(copy.path()).unwrap();
        assert_eq!(topology.doubts, Vec::<String>::new());
        topology.scheduling_domains.into_iter().map(|domain| (domain.level, domain.name, domain.spans)).collect::<Vec<_>>()
    };
    let named = "version 17\ntimestamp 1\ncpu0 0 0\ndomain0 MC 3 0 0\ndomain1 NUMA f 0\ncpu2 0\ndomain0 MC c 0\ndomain1 NUMA f 0\n";
    let expected = [(0, "MC".to_owned(), vec![vec![0, 1], vec![2, 3]]), (1, "NUMA".to_owned(), vec![vec![0, 1, 2, 3]])];
    assert_eq!(domains(&[("proc/schedstat", named)]), expected);
    let unnamed = named.replace(" MC", "").replace(" NUMA", "");
    let debug = "sys/kernel/debug/sched/domains";
    let names = [("cpu0/domain0", "MC"), ("cpu0/domain1", "NUMA"), ("cpu2/domain0", "MC"), ("cpu2/domain1", "NUMA")];
    let names: Vec<(String, &str)> = names.iter().map(|(folder, name)| (format!("{debug}/{folder}/name"), *name)).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|(file, name)| (file.as_str(), *name)).collect();
    files.push(("proc/schedstat", &unnamed));
    assert_eq!(domains(&files), expected);
    files.pop();
    assert_eq!(domains(&files), [(0, "MC".to_owned(), vec![]), (1, "NUMA".to_owned(), vec![])]);
    assert_eq!(domains(&[]), []);
}

/// Check that damaged hwloc XML, cut or changed anywhere, is an error or a consistent topology.
#[test]
fn damaged_xml() {
    for name in ["two-packages.xml", "memory-only.xml"] {
        let text = fs::read_to_string(fixtures().join("hwloc").join(name)).unwrap();
        let step = text.len() / 200 + 1;
        for end in (0..text.len()).step_by(step).filter(|end| text.is_char_boundary(*end)) {
            assert!(hwloc::read(&text[..end]).is_err(), "{name} cut at {end}");
        }
        for (from, to) in [
            ("os_index=\"0\"", "os_index=\"4294967295\""),
            ("os_index=\"1\"", "os_index=\"0\""),
            ("cpuset=\"0x", "cpuset=\"0xf...f,0x"),
            ("cpuset=\"0x", "cpuset=\"0x0,0x"),
            ("nbobjs=\"", "nbobjs=\"9"),
            ("<indexes", "<indexes length=\"0\">7 8</indexes><indexes"),
            ("u64values>", "u64>"),
            ("cache_size=\"", "cache_size=\"-"),
            ("depth=\"", "depth=\"99999999"),
            ("local_memory=\"", "local_memory=\"99999999999999999999999"),
            ("type=\"PU\"", "type=\"NUMANode\""),
            ("type=\"NUMANode\"", "type=\"PU\""),
        ] {
            if let Ok(topology) = hwloc::read(&text.replace(from, to)) {
                assert!(topology.nodes.iter().all(|node| node.cpus.iter().all(|cpu| topology.cpus.online.contains(cpu))));
            }
        }
    }
}

/// Check that a CPU that the XML lists in two cores, dies or packages is assigned to the first, with a doubt, and that a file with more
/// nodes than any kernel supports is an error, because reading it would take minutes.
#[test]
fn contradictory_xml() {
    let pu = |cpu: u32| format!("<object type='PU' os_index='{cpu}' cpuset='{:#x}'/>", 1 << cpu);
    let object = |kind: &str, index: u32, cpus: &str| format!("<object type='{kind}' os_index='{index}' cpuset='{cpus}'/>");
    let xml = |objects: &str| format!("<topology version='2.0'>{}{}{}{objects}</topology>", pu(0), pu(1), pu(2));
    let node = object("NUMANode", 0, "0x7");
    for kind in ["Core", "Die", "Package"] {
        let text = xml(&[node.clone(), object(kind, 0, "0x3"), object(kind, 1, "0x6"), object(kind, 2, "0x2")].concat());
        let topology = hwloc::read(&text).unwrap();
        let groups: Vec<Vec<u32>> = match kind {
            "Core" => topology.cores.into_iter().map(|one| one.cpus).collect(),
            "Die" => topology.dies.into_iter().map(|one| one.cpus).collect(),
            _ => topology.packages.into_iter().map(|one| one.cpus).collect(),
        };
        assert_eq!(groups, [vec![0, 1], vec![2]], "{kind}");
        assert_eq!(topology.doubts, [format!("CPU 1 is in two objects of type {kind}; taken as in the first")]);
    }
    let nodes: String = (0..1025).map(|id| object("NUMANode", id, "0x7")).collect();
    let error = format!("{:#}", hwloc::read(&xml(&nodes)).expect_err("too many nodes"));
    assert!(error.contains("it has more than 1024 nodes"), "{error}");
}

/// Check that the error for a file that is not an hwloc topology says why.
#[test]
fn other_files_are_refused() {
    let deep = format!("<topology version='2.0'>{}", "<object>".repeat(100_000));
    let pu = "<object type='PU' os_index='0' cpuset='0x1'/>";
    for (text, cause) in [
        ("", "it is not well-formed XML"),
        ("\0", "it is not well-formed XML"),
        ("{}", "it is not well-formed XML"),
        ("<svg/>", "it is not an hwloc topology: the first element is 'svg', expected 'topology'"),
        ("<topology/>", "it has no format version, so hwloc 1 wrote it; write it with lstopo 2 or later"),
        ("<topology version='9.1'/>", "it has hwloc's XML format 9; formats 2 and 3 are understood"),
        ("<topology version='2.0'/>", "it has no CPUs (objects of type PU)"),
        (&format!("<topology version='2.0'>{pu}</topology>"), "it has no nodes (objects of type NUMANode)"),
        (&format!("<topology version='2.0'>{pu}{pu}</topology>"), "CPU 0 appears twice at line 1"),
        ("<topology version='2.0'><object type='NUMANode' os_index='0'/></topology>", "a NUMANode has no cpuset at line 1"),
        (&deep, "its elements are nested more than 256 deep"),
    ] {
        let error = format!("{:#}", hwloc::read(text).expect_err(cause));
        assert!(error.contains(cause), "{error}");
    }
    let bomb = "<!DOCTYPE t [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'>\
                <!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;'><!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;'>]><topology version='2.0'>&e;&e;&e;</topology>";
    assert!(hwloc::read(bomb).is_err());
    let error = format!("{:#}", hwloc::read_file(Path::new("/nonexistent.xml")).expect_err("missing"));
    assert!(error.starts_with("cannot read /nonexistent.xml: "), "{error}");
    assert!(hwloc::read_file(Path::new("/")).is_err());
}
