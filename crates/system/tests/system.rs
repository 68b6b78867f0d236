//! Counters, processes and balancing, read from a constructed tree with known sums, from damaged copies of it, and from this system.

use crate::tree::files;
use firsttouch_model::Error;
use firsttouch_model::system::Mapping;
use firsttouch_system::balancing::{self, Measurement, Timed};
use firsttouch_system::counters;
use firsttouch_system::process::{self, Subject};
use std::fs;
use std::path::{Path, PathBuf};

const PID: i32 = 4711;
const NODE0: u64 = 1_076_273_152;
const NODE1: u64 = 8_417_280;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/processes/constructed-two-nodes")
}

/// A copy of the fixture that the tests can damage.
fn copy() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in files(&fixture()) {
        let to = copy.path().join(file.strip_prefix(fixture()).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&file, to).unwrap();
    }
    copy
}

/// Check each node's and the system's counters, and that sums of the nodes' counters are omitted.
#[test]
fn counters_by_node() {
    let counters = counters::read(&fixture());
    assert_eq!(counters.doubts, Vec::<String>::new());
    let found: Vec<(u32, u64, u64)> =
        counters.nodes.iter().map(|node| (node.id, node.counters["numa_miss"], node.counters["pgpromote_success"])).collect();
    assert_eq!(found, [(0, 0, 0), (1, 50, 11)]);
    assert_eq!((counters.sum("numa_hit"), counters.system["numa_hint_faults"], counters.system["pgmigrate_success"]), (2001, 400, 130));
    assert!(!counters.system.contains_key("numa_hit") && !counters.system.contains_key("pgfault"));
    assert!(!counters.nodes[0].counters.contains_key("nr_free_pages"));
}

/// Check the doubts without nodes, without any file, and for a kernel that does not count.
#[test]
fn counters_that_are_missing() {
    let copy = copy();
    fs::write(copy.path().join("proc/sys/vm/numa_stat"), "0\n").unwrap();
    assert!(counters::read(copy.path()).doubts[0].contains("sysctl vm.numa_stat=1"));
    fs::remove_dir_all(copy.path().join("sys")).unwrap();
    let counters = counters::read(copy.path());
    assert_eq!((counters.nodes.len(), counters.system["numa_hit"]), (0, 2001));
    let nothing = counters::read(Path::new("/nonexistent"));
    assert!(nothing.nodes.is_empty() && nothing.system.is_empty() && nothing.doubts.len() == 2);
}

/// Check every mapping: base pages, transparent huge pages, pages of hugetlbfs of two sizes; and that the sums are those of the parts.
#[test]
fn mappings_with_huge_pages() {
    let maps = process::maps(&fixture(), PID).unwrap();
    assert_eq!((maps.name.as_str(), &maps.doubts), ("solver", &Vec::new()));
    assert_eq!(maps.memory.nodes, Some([(0, NODE0), (1, NODE1)].into()));
    let without_hugetlb: u64 = maps.mappings.iter().filter(|mapping| !mapping.hugetlb).map(|mapping| mapping.resident_bytes).sum();
    assert_eq!((maps.memory.rss_bytes, without_hugetlb), (Some(4_657_152), 4_657_152));
    let hugetlb: u64 = maps.mappings.iter().filter(|mapping| mapping.hugetlb).map(|mapping| mapping.resident_bytes).sum();
    assert_eq!((maps.memory.hugetlb_bytes, hugetlb, hugetlb + without_hugetlb), (Some(hugetlb), 1_080_033_280, NODE0 + NODE1));
    let found: Vec<(&str, &str, u64, u64, u64)> = maps
        .mappings
        .iter()
        .map(|mapping| {
            let Mapping { name, policy, page_bytes, transparent_huge_bytes, resident_bytes, .. } = mapping;
            (name.as_str(), policy.as_deref().unwrap(), page_bytes.unwrap(), *transparent_huge_bytes, *resident_bytes)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("/opt/bin/solver", "default", 4096, 0, 40_960),
            ("[heap]", "default", 4096, 0, 409_600),
            ("", "interleave:0-1", 4096, 4 << 20, 4 << 20),
            ("/anon_hugepage (deleted)", "bind:1", 2 << 20, 0, 6 << 20),
            ("/dev/hugepages1G/a", "prefer (many):0-1", 1 << 30, 0, 1 << 30),
            ("[stack]", "default", 4096, 0, 12_288),
            ("[vdso]", "default", 4096, 0, 0),
        ]
    );
    assert_eq!((maps.mappings[1].swap_bytes, maps.mappings[4].permissions.as_str()), (8192, "rw-s"));
}

/// Check older kernels: no kernelpagesize_kB (before 3.16) is taken from smaps, and no numa_maps leaves sums without nodes.
#[test]
fn mappings_of_other_kernels() {
    let copy = copy();
    let path = copy.path().join("proc/4711/numa_maps");
    let text = fs::read_to_string(&path).unwrap();
    let old: String = text.lines().map(|line| line.split(" kernelpagesize_kB").next().unwrap().to_owned() + "\n").collect();
    fs::write(&path, &old).unwrap();
    assert_eq!(process::maps(copy.path(), PID).unwrap(), process::maps(&fixture(), PID).unwrap());
    // Without smaps, the size of huge pages is unknown, so they are omitted with a doubt.
    let threads = process::threads(copy.path(), PID).unwrap();
    assert_eq!(threads.memory.nodes.unwrap()[&0], NODE0 - (1 << 30));
    assert_eq!(threads.doubts, ["the size of huge pages is unknown for 2 mappings; not counted by node"]);
    fs::remove_file(&path).unwrap();
    let maps = process::maps(copy.path(), PID).unwrap();
    assert_eq!((maps.memory.nodes, maps.mappings.len(), maps.doubts.len()), (None, 7, 1));
    assert_eq!(maps.mappings[4].resident_bytes, 1 << 30);
}

/// Check contradictions between the two files.
#[test]
fn contradicting_mappings() {
    for (file, from, to, doubt) in [
        ("numa_maps", "kernelpagesize_kB=2048", "kernelpagesize_kB=4", "different page sizes for 1 mapping;"),
        ("numa_maps", "7f0080000000", "7f0090000000", "2 mappings in only one of numa_maps and smaps"),
        ("numa_maps", "N0=1 kernel", "N0=9 kernel", "numa_maps adds up to"),
        ("numa_maps", "N0=100", "N0=100 N0=7", "1 of 7 lines damaged"),
        (
            "numa_maps",
            "N0=1 kernelpagesize_kB=1048576",
            "N0=18446744073709551615 kernelpagesize_kB=1048576",
            "a number is impossible, in 1 mapping of numa_maps",
        ),
        ("smaps", "Rss:                400 kB", "Rss:                400", "smaps: damaged in 1 line;"),
    ] {
        let copy = copy();
        let path = copy.path().join("proc/4711").join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let maps = process::maps(copy.path(), PID).unwrap();
        assert!(maps.doubts.iter().any(|one| one.contains(doubt)), "{from}: {:?}", maps.doubts);
    }
}

/// Check threads: names with special characters, CPU, node, migrations, and the counters of NUMA balancing.
#[test]
fn threads_of_a_process() {
    let process = process::threads(&fixture(), PID).unwrap();
    assert_eq!((process.doubts.len(), process.memory.nodes), (0, Some([(0, NODE0), (1, NODE1)].into())));
    let [main, worker] = process.threads.as_slice() else { panic!("two threads") };
    assert_eq!((main.tid, main.state, main.cpu, main.node, main.cpu_ms), (4711, 'S', 1, Some(0), 7800));
    assert_eq!((main.preferred_node, &main.hint_faults, main.allowed_cpus.as_deref()), (None, &None, Some(&[0, 1, 2, 3][..])));
    assert_eq!((worker.name.as_str(), worker.state, worker.cpu, worker.node), ("work (2) x", 'R', 2, Some(1)));
    assert_eq!((worker.migrations, worker.pages_migrated, worker.preferred_node), (Some(12), Some(300), Some(1)));
    assert_eq!((&worker.hint_faults, worker.allowed_cpus.as_deref()), (&Some([(0, 10), (1, 30)].into()), Some(&[2][..])));
}

/// Check that processes are found by id and by either name, and that finding none is an error.
#[test]
fn processes_are_found() {
    for subject in ["4711", "solver"] {
        assert_eq!(process::find(&fixture(), &Subject::parse(subject), 1).unwrap(), [PID]);
    }
    for (subject, message) in
        [("4712", "cannot find process 4712"), ("solve", "cannot find a process called 'solve'"), (" ", "a process without a name")]
    {
        assert!(process::find(&fixture(), &Subject::parse(subject), 1).unwrap_err().to_string().contains(message), "{subject}");
    }
    for subject in ["4712", "solver"] {
        let error = process::find(Path::new("/nonexistent"), &Subject::parse(subject), 1).unwrap_err().to_string();
        assert!(error.contains("/proc is not there"), "{error}");
    }
    assert!(process::find(&fixture(), &Subject::parse("solver"), PID).is_err(), "firsttouch itself never matches");
    assert!(process::maps(&fixture(), 9).unwrap_err().to_string().contains("cannot find process 9: it has ended, or never existed"));
}

/// Check state and tunables, before and since Linux 5.13, and that the doubt about hidden ones names the remedy.
#[test]
fn balancing_state() {
    let bare = balancing::read(Path::new("/nonexistent"));
    assert_eq!((bare.value, bare.state.as_str(), bare.nodes), (None, "unknown", 0));
    let balancing = balancing::read(&fixture());
    assert_eq!((balancing.value, balancing.state.as_str(), balancing.nodes, balancing.doubts.len()), (Some(1), "on", 2, 0));
    let tunables: Vec<(&str, u64)> = balancing.tunables.iter().map(|tunable| (tunable.name.as_str(), tunable.value)).collect();
    let expected = [
        ("promote_rate_limit_MBps", 65_536),
        ("scan_delay_ms", 1000),
        ("scan_period_min_ms", 1000),
        ("scan_period_max_ms", 60_000),
        ("scan_size_mb", 256),
        ("hot_threshold_ms", 1000),
    ];
    assert_eq!(tunables, expected);
    let copy = copy();
    let kernel = copy.path().join("proc/sys/kernel");
    fs::remove_dir_all(copy.path().join("sys/kernel")).unwrap();
    let why = || balancing::read(copy.path()).doubts[0].clone();
    assert!(why().contains("debugfs is not mounted: sudo mount -t debugfs none /sys/kernel/debug"), "{}", why());
    fs::create_dir_all(copy.path().join("proc/self")).unwrap();
    fs::write(copy.path().join("proc/self/mounts"), "none /sys/kernel/debug debugfs rw 0 0\n").unwrap();
    assert!(why().contains("debugfs is mounted, but this kernel has none there"), "{}", why());
    fs::write(kernel.join("numa_balancing_scan_size_mb"), "128\n").unwrap();
    for (value, state) in [("0", "off"), ("1", "on"), ("2", "tiering"), ("3", "on, tiering")] {
        fs::write(kernel.join("numa_balancing"), value).unwrap();
        let balancing = balancing::read(copy.path());
        assert_eq!((balancing.state.as_str(), balancing.doubts.len()), (state, 0));
        assert!(balancing.tunables.iter().any(|tunable| tunable.name == "scan_size_mb" && tunable.value == 128));
    }
    fs::write(kernel.join("numa_balancing"), "maybe").unwrap();
    let damaged = balancing::read(copy.path());
    assert!(damaged.value.is_none() && damaged.state == "unavailable" && damaged.doubts[0].contains("expected a number"));
}

fn state(root: &Path) -> String {
    fs::read_to_string(root.join("proc/sys/kernel/numa_balancing")).unwrap().trim().to_owned()
}

/// Raises the counters as if balancing had caused faults and moved pages.
fn count_more(root: &Path) {
    if state(root) == "0" {
        return;
    }
    let path = root.join("proc/vmstat");
    let text = fs::read_to_string(&path).unwrap();
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap();
    let (faults, moved) = (number("numa_hint_faults "), number("numa_pages_migrated "));
    let text = text.replace(&format!("numa_hint_faults {faults}"), &format!("numa_hint_faults {}", faults + 10));
    fs::write(&path, text.replace(&format!("numa_pages_migrated {moved}"), &format!("numa_pages_migrated {}", moved + 4))).unwrap();
}

/// Check a measurement: the order of states, the counts of each, and that the old state is restored, tiering included.
#[test]
fn measuring_restores_the_state() {
    let copy = copy();
    let root = copy.path();
    for (before, on) in [("0", "1"), ("1", "1"), ("2", "3")] {
        fs::write(root.join("proc/sys/kernel/numa_balancing"), before).unwrap();
        let mut states = Vec::new();
        let measured = balancing::measure(root, 3, || {
            states.push(state(root));
            count_more(root);
            Ok::<_, Error>(Timed { wall_s: states.len() as f64, stop: None })
        });
        let Measurement::Done(measured) = measured.unwrap() else { panic!("no run failed") };
        assert_eq!(states, [on, "0", "0", on, on, "0"]);
        assert_eq!(state(root), before);
        assert_eq!((measured[0].balancing.as_str(), measured[0].wall_s.median, measured[1].wall_s.median), ("on", 4.0, 3.0));
        assert_eq!((measured[0].hint_faults.min, measured[0].pages_migrated.max), (10.0, 4.0));
        assert_eq!((measured[1].hint_faults.max, measured[1].runs.len()), (0.0, 3));
    }
}

/// Check that the old state is restored if a run fails, is interrupted or cannot be started.
#[test]
fn an_early_end_restores_the_state() {
    let copy = copy();
    let root = copy.path();
    let mut runs = 0;
    let stopped = balancing::measure(root, 5, || {
        runs += 1;
        Ok::<_, Error>(Timed { wall_s: 1.0, stop: (runs == 2).then_some(130) })
    });
    assert!(matches!(stopped, Ok(Measurement::Stopped { exit_code: 130 })) && runs == 2);
    assert_eq!(state(root), "1");
    assert!(balancing::measure(root, 5, || Err(Error::not_found("no such program"))).is_err());
    assert_eq!(state(root), "1");
    fs::remove_file(root.join("proc/sys/kernel/numa_balancing")).unwrap();
    let none = balancing::measure::<Error>(root, 5, || panic!("nothing is to run")).unwrap_err().to_string();
    assert!(none.contains("this kernel has no NUMA balancing"), "{none}");
    let refused = balancing::switch(root, 1).unwrap_err().to_string();
    assert!(refused.contains("No such file") && !root.join("proc/sys/kernel/numa_balancing").exists(), "{refused}");
}

/// Contents that replace each file in turn.
const SEEDS: [&[u8]; 16] = [
    b"",
    b"\n",
    b"\0",
    &[0xff, 0xfe, 0x80, 0x00],
    b"-1",
    b"18446744073709551616",
    b"4294967295",
    b"0-4294967295",
    b"x",
    "é\u{202e}".as_bytes(),
    b"numa_hit\nnuma_hit 1 2\nnuma_hit 99999999999999999999\nnuma_hit 1\nnuma_hit 2\n",
    b"7f00 default N0=18446744073709551615 N1=18446744073709551615 kernelpagesize_kB=1\n7f00 default N0=1\n7f00 default N0=1",
    b"1000-2000 rw-p 0 0:0 0 x\n1000-9000 rw-p 0 0:0 0 y\nRss: 18446744073709551 kB\nRss: 18446744073709551 kB\nSwap: 1\nRss",
    b"1 ()",
    b"1 (a) S 1 1 1 0 -1 1 1 1 1 1 18446744073709551615 18446744073709551615 0 0 20 0 4 0 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3",
    b"VmRSS: 99999999999999999999 kB\nUid:\nTgid:\t-5\nCpus_allowed_list:\tx\nnuma_faults node=99999999999\nse.nr_migrations : -1",
];

/// Check that no reader fails on a file that is replaced, truncated or missing, and that sums stay consistent.
#[test]
fn damage_is_survived() {
    let copy = copy();
    let root = copy.path();
    let read = || {
        let counters = counters::read(root);
        let _ = counters.since(&counters::read(&fixture()));
        let _ = balancing::read(root);
        let _ = process::find(root, &Subject::parse("solver"), 1);
        let _ = process::find(root, &Subject::parse("4711"), 1);
        let _ = process::threads(root, PID);
        if let Ok(maps) = process::maps(root, PID) {
            let sum =
                maps.mappings.iter().filter_map(|mapping| mapping.nodes.as_ref()?.get(&0)).fold(0u64, |sum, b| sum.saturating_add(*b));
            assert_eq!(maps.memory.nodes.map_or(sum, |nodes| nodes.get(&0).copied().unwrap_or(0)), sum);
        }
    };
    for file in files(root) {
        let whole = fs::read(&file).unwrap();
        let truncated: Vec<&[u8]> =
            [whole.len() / 3, whole.len() / 2, whole.len().saturating_sub(2)].iter().map(|end| &whole[..*end]).collect();
        for seed in SEEDS.iter().copied().chain(truncated) {
            fs::write(&file, seed).unwrap();
            read();
        }
        fs::remove_file(&file).unwrap();
        read();
        fs::write(&file, &whole).unwrap();
    }
    assert_eq!(process::maps(root, PID).unwrap(), process::maps(&fixture(), PID).unwrap(), "the tree is whole again");
}

/// Check truncations of the two large files at any byte.
#[test]
fn truncations_are_survived() {
    let copy = copy();
    for name in ["numa_maps", "smaps"] {
        let path = copy.path().join("proc/4711").join(name);
        let whole = fs::read(&path).unwrap();
        for end in (0..whole.len()).step_by(7) {
            fs::write(&path, &whole[..end]).unwrap();
            process::maps(copy.path(), PID).unwrap();
        }
        fs::write(&path, whole).unwrap();
    }
}

/// Check this process, with threads and 64 MiB touched: the sums match the kernel's other files, within what changes meanwhile.
#[test]
fn this_process() {
    let pid = i32::try_from(std::process::id()).unwrap();
    let block = std::hint::black_box(vec![1u8; 64 << 20]);
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let workers: Vec<_> = (0..3)
        .map(|index| {
            let wait = wait.clone();
            let work = move || drop(wait.lock().map(|wait| wait.recv()));
            std::thread::Builder::new().name(format!("waiter{index}")).spawn(work).unwrap()
        })
        .collect();
    // The new thread sets its name itself.
    let waiters = || process::threads(Path::new("/"), pid).unwrap().threads.iter().filter(|one| one.name.starts_with("waiter")).count();
    let start = std::time::Instant::now();
    while waiters() < 3 && start.elapsed().as_secs() < 10 {
        std::thread::yield_now();
    }
    let threads = process::threads(Path::new("/"), pid).unwrap();
    let maps = process::maps(Path::new("/"), pid).unwrap();
    assert_eq!(threads.threads.iter().filter(|thread| thread.name.starts_with("waiter")).count(), 3);
    assert!(threads.threads.iter().any(|thread| thread.state == 'R'), "this thread is running");
    let address = block.as_ptr() as u64;
    let mapping = maps.mappings.iter().find(|mapping| mapping.start <= address && address < mapping.end).unwrap();
    assert!(mapping.resident_bytes >= 63 << 20 && mapping.end - mapping.start >= 64 << 20, "{mapping:?}");
    // Other tests run in this process at the same time, and VmRSS is off by some pages per CPU.
    let near = |sum: u64, rss: u64| assert!(sum.abs_diff(rss) < 16 << 20, "{sum} of {rss}");
    let rss = maps.memory.rss_bytes.unwrap() + maps.memory.hugetlb_bytes.unwrap_or(0);
    near(maps.mappings.iter().map(|mapping| mapping.resident_bytes).sum(), rss);
    for nodes in [&maps.memory.nodes, &threads.memory.nodes].into_iter().flatten() {
        near(nodes.values().sum(), rss);
    }
    drop(stop);
    drop(block);
    workers.into_iter().for_each(|worker| drop(worker.join()));
}

/// Check this system's counters: they only grow.
#[test]
fn this_system() {
    let before = counters::read(Path::new("/"));
    let grown = counters::read(Path::new("/")).since(&before);
    assert_eq!(grown.nodes.len(), before.nodes.len());
    assert!(grown.doubts.iter().all(|doubt| !doubt.contains("it was reset")), "{:?}", grown.doubts);
}
