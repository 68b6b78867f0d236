//! The reader on recorded machines: one node, two nodes, holes, missing files, garbage.

use firsttouch_system::MachineInfo;
use std::fs;
use std::path::Path;

/// Writes a machine, given as (file, content), below a temporary root.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in files {
        write(root.path(), file, content.as_bytes());
    }
    let words: [usize; 6] = [33, 0x7fff_0000, 6, 4096, 0, 0]; // AT_SYSINFO_EHDR, AT_PAGESZ, AT_NULL
    let auxv: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    write(root.path(), "proc/self/auxv", &auxv);
    root
}

fn write(root: &Path, file: &str, content: &[u8]) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

const ONE_NODE: &[(&str, &str)] = &[
    ("sys/devices/system/node/online", "0\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index1/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index1/type", "Instruction\n"),
    ("sys/devices/system/cpu/cpu0/cache/index1/size", "32K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index2/level", "2\n"),
    ("sys/devices/system/cpu/cpu0/cache/index2/type", "Unified\n"),
    ("sys/devices/system/cpu/cpu0/cache/index2/size", "1024K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"),
    ("sys/devices/system/cpu/cpu0/cache/index3/type", "Unified\n"),
    ("sys/devices/system/cpu/cpu0/cache/index3/size", "32768K\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n"),
    ("proc/sys/kernel/hostname", "nine\n"),
    ("proc/sys/kernel/osrelease", "6.1.0-31-amd64\n"),
    ("proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("proc/sys/kernel/perf_event_mlock_kb", "516\n"),
    ("proc/sys/kernel/kptr_restrict", "0\n"),
    ("proc/self/status", "Name:\tcat\nCapEff:\t0000000000000000\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
    ("proc/meminfo", "MemTotal:       24634368 kB\nMemAvailable:   20000000 kB\n"),
    ("sys/fs/cgroup/memory.max", "max\n"),
];

/// Check every value of a machine with one node.
#[test]
fn one_node() {
    let root = machine(ONE_NODE);
    let info = MachineInfo::read(root.path()).unwrap();
    assert_eq!(info.machine.node_cpus, [(0, vec![0, 1])].into());
    assert_eq!((info.machine.page_bytes, info.machine.huge_page_bytes), (4096, 2 << 20));
    assert_eq!((info.machine.private_cache_bytes, info.machine.shared_cache_bytes), (1 << 20, 32 << 20));
    assert_eq!(info.machine.transparent_huge_pages, "madvise");
    assert_eq!((info.machine.hostname.as_str(), info.machine.kernel.as_str()), ("nine", "6.1.0-31-amd64"));
    assert_eq!(info.permissions.perf_event_paranoid, Some(2));
    assert_eq!(info.permissions.perf_event_mlock_kb, Some(516));
    assert_eq!(info.permissions.kptr_restrict, Some(0));
    assert_eq!(info.permissions.seccomp, Some(2));
    assert!(!info.permissions.may_ignore_paranoid());
    assert_eq!(info.available_memory_bytes, 20_000_000 * 1024);
    assert_eq!(info.doubts, Vec::<String>::new());
}

/// Check that two nodes have the correct CPUs, with SMT siblings interleaved as on real machines.
#[test]
fn two_nodes() {
    let root = machine(&[
        ("sys/devices/system/node/online", "0-1\n"),
        ("sys/devices/system/node/node0/cpulist", "0-3,8-11\n"),
        ("sys/devices/system/node/node1/cpulist", "4-7,12-15\n"),
        ("proc/self/status", "CapEff:\t0000004000000000\n"),
        ("sys/fs/cgroup/memory.max", "1073741824\n"),
        ("sys/fs/cgroup/memory.current", "73741824\n"),
        ("proc/meminfo", "MemAvailable:   20000000 kB\n"),
    ]);
    let info = MachineInfo::read(root.path()).unwrap();
    assert_eq!(info.machine.node_cpus[&0], [0, 1, 2, 3, 8, 9, 10, 11]);
    assert_eq!(info.machine.node_cpus[&1], [4, 5, 6, 7, 12, 13, 14, 15]);
    assert!(info.permissions.may_ignore_paranoid());
    assert_eq!(info.available_memory_bytes, 1_000_000_000);
}

/// Check holes: node numbers with gaps, a node without CPUs (memory only), CPU 0 offline.
#[test]
fn holes() {
    let root = machine(&[
        ("sys/devices/system/node/online", "0,2,5\n"),
        ("sys/devices/system/node/node0/cpulist", "1,3\n"),
        ("sys/devices/system/node/node2/cpulist", "5\n"),
        ("sys/devices/system/node/node5/cpulist", "\n"),
        ("sys/devices/system/cpu/cpu1/cache/index0/level", "2\n"),
        ("sys/devices/system/cpu/cpu1/cache/index0/size", "2M\n"),
    ]);
    let info = MachineInfo::read(root.path()).unwrap();
    assert_eq!(info.machine.node_cpus, [(0, vec![1, 3]), (2, vec![5]), (5, vec![])].into());
    assert_eq!((info.machine.private_cache_bytes, info.machine.shared_cache_bytes), (2 << 20, 2 << 20));
    assert_eq!(info.doubts, Vec::<String>::new());
}

/// Check missing files: a kernel without NUMA, a container without /sys, and nothing at all.
#[test]
fn missing_files() {
    let no_numa = machine(&[("sys/devices/system/cpu/online", "0-3\n")]);
    let info = MachineInfo::read(no_numa.path()).unwrap();
    assert_eq!(info.machine.node_cpus, [(0, vec![0, 1, 2, 3])].into());
    assert_eq!((info.machine.private_cache_bytes, info.machine.huge_page_bytes), (0, 0));
    assert_eq!(info.permissions.perf_event_paranoid, None);
    assert_eq!(info.doubts, ["/sys/devices/system/node names no CPUs; taken as one node with all 4 CPUs"]);

    let no_sys = machine(&[("proc/stat", "cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n")]);
    assert_eq!(MachineInfo::read(no_sys.path()).unwrap().machine.node_cpus, [(0, vec![0, 1])].into());

    let no_list = machine(&[
        ("sys/devices/system/node/node0/cpulist", "0\n"),
        ("sys/devices/system/node/node1/cpulist", "1\n"),
        ("sys/devices/system/node/power/control", "auto\n"),
    ]);
    assert_eq!(MachineInfo::read(no_list.path()).unwrap().machine.node_cpus, [(0, vec![0]), (1, vec![1])].into());

    let nothing = tempfile::tempdir().unwrap();
    let error = MachineInfo::read(nothing.path()).expect_err("no CPUs");
    assert!(error.to_string().starts_with("cannot find the machine's CPUs: "), "{error:#}");

    let no_auxv = tempfile::tempdir().unwrap();
    write(no_auxv.path(), "proc/stat", b"cpu0 1\n");
    let info = MachineInfo::read(no_auxv.path()).unwrap();
    assert_eq!(info.machine.page_bytes, 4096);
    assert!(info.doubts.iter().any(|doubt| doubt.contains("page size")), "{:?}", info.doubts);
}

/// Check that garbage is an error that names the file and what was found there, never a panic.
#[test]
fn garbage() {
    for (file, content, cause) in [
        ("sys/devices/system/node/online", "0-", "expected a number at character 3 of \"0-\""),
        ("sys/devices/system/node/node0/cpulist", "zero", "expected a number at character 1 of \"zero\""),
        ("sys/devices/system/cpu/cpu0/cache/index2/size", "many", "expected a size such as 512K, found \"many\""),
        ("sys/devices/system/cpu/cpu0/cache/index2/level", "L2", "expected a number, found \"L2\""),
        ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2 MiB", "expected a number, found \"2 MiB\""),
        ("proc/sys/kernel/perf_event_paranoid", "", "expected a number, found \"\""),
    ] {
        let root = machine(ONE_NODE);
        write(root.path(), file, content.as_bytes());
        let error = format!("{:#}", MachineInfo::read(root.path()).expect_err(file));
        assert_eq!(error, format!("cannot read {}: {cause}", root.path().join(file).display()));
    }
    let root = machine(ONE_NODE);
    write(root.path(), "sys/devices/system/node/online", &[0xff, 0xfe, 0x00]);
    let error = format!("{:#}", MachineInfo::read(root.path()).expect_err("not text"));
    assert!(error.ends_with("sys/devices/system/node/online: not text"), "{error}");

    for auxv in [&b""[..], b"short", &[0; 16], &[0xff; 64]] {
        let root = machine(ONE_NODE);
        write(root.path(), "proc/self/auxv", auxv);
        assert_eq!(MachineInfo::read(root.path()).unwrap().machine.page_bytes, 4096);
    }
}

/// Check that this machine can be read.
#[test]
fn this_machine() {
    let info = MachineInfo::read(Path::new("/")).unwrap();
    assert!(info.machine.node_cpus.values().any(|cpus| !cpus.is_empty()), "{info:?}");
    assert!(info.machine.page_bytes >= 4096, "{info:?}");
}
