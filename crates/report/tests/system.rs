//! The text and JSON of stat, ps, maps and balancing.

use firsttouch_model::system::{Counters, MappedObject, Measured, NodeCounters, ProcessMaps, TimedRun};
use firsttouch_report::{
    BalancingJson, MapsJson, MapsText, MeasuredJson, PsJson, Span, StatJson, Style, balancing_text, maps_text, measured_text, ps_text,
    stat_text,
};
use firsttouch_system::{balancing, counters, process};
use std::path::{Path, PathBuf};

const PLAIN: Style = Style { width: 100, colour: false };

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/processes/constructed-two-nodes")
}

fn maps() -> ProcessMaps {
    process::maps(&root(), 4711).unwrap()
}

fn is_narrow(text: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= 100) && text.ends_with('\n'), "{text}");
}

/// Check the whole text of counters.
#[test]
fn the_text_of_counters() {
    let text = stat_text(&counters::read(&root()), &Span::SinceBoot, PLAIN);
    let expected = "\
Counts since boot, of the whole machine.

By node
counter            node 0  node 1  meaning
numa_hit            1,000   1,001  pages allocated here, as the allocating thread wanted
numa_miss               0      50  pages allocated here because the node that was wanted had no room
numa_foreign           50       0  pages wanted here and allocated elsewhere: this node had no room
interleave_hit          7       7  pages allocated here in turn, by an interleave policy
local_node            900     900  pages allocated here by threads running here
other_node            100     100  pages allocated here by threads running on another node
pgpromote_success       0      11  pages moved up from a slow memory tier
pgdemote_kswapd         3       3  pages moved down to a slow tier in the background

Balancing and migration, all nodes
counter                 count  meaning
numa_hint_faults          400  accesses the balancing caught on pages it had marked
numa_hint_faults_local    300  of these, accesses from the node the page was on
numa_pages_migrated       120  pages the balancing moved to another node
numa_pte_updates        5,000  pages the balancing marked to catch their next access
numa_huge_pte_updates       5  huge pages it marked
pgmigrate_success         130  pages moved for any reason (balancing, move_pages, compaction)
pgpromote_success          11  pages moved up from a slow memory tier
pgdemote_kswapd             6  pages moved down to a slow tier in the background
Zero: pgmigrate_fail, thp_migration_success.
75 % of the accesses that the balancing caught were local.
";
    assert_eq!(text, expected);
}

/// Check that the counters of many nodes continue in further tables below.
#[test]
fn many_nodes_stay_narrow() {
    let node = |id| NodeCounters { id, counters: [("numa_hit".to_owned(), 123_456_789_012)].into() };
    let counters = Counters { nodes: (0..9).map(node).collect(), ..Counters::default() };
    let span = Span::Command { command: vec!["x".repeat(40)], wall_s: 1.0, exit_code: 3 };
    let text = stat_text(&counters, &span, PLAIN);
    is_narrow(&text);
    assert!((0..9).all(|id| text.contains(&format!("node {id}"))) && text.contains("exit status 3"), "{text}");
}

/// Check the whole text of a process's mappings.
#[test]
fn the_text_of_mappings() {
    let text = maps_text(&[maps()], MapsText { all: false, style: PLAIN });
    let expected = "\
solver (4711): 7 mappings, 4.44 MiB resident and 1.01 GiB in hugetlbfs, 8 KiB swapped out
memory: node 0 1.00 GiB (99 %), node 1 8.03 MiB (1 %)
     address   size  resident  node 0  node 1  pages              policy             mapping
7f0080000000  1 GiB     1 GiB   1 GiB       -  1 GiB hugetlb      prefer (many):0-1  …/hugepages1G/a
7f0040000000  8 MiB     6 MiB       -   6 MiB  2 MiB hugetlb      bind:1             …ge (deleted)
7f0000000000  8 MiB     4 MiB   2 MiB   2 MiB  4 KiB, 100 % huge  interleave:0-1     anonymous
4 more mappings with 452 KiB resident; --all shows them.
";
    assert_eq!(text.lines().count(), expected.lines().count(), "{text}");
    for (line, wanted) in text.lines().zip(expected.lines()).filter(|(line, _)| !line.contains('…')) {
        assert_eq!(line, wanted);
    }
    let all = maps_text(&[maps()], MapsText { all: true, style: PLAIN });
    assert!(all.contains("[vdso]") && !all.contains("--all"), "{all}");
}

/// Check mappings on machines with many nodes, names with terminal control sequences, and objects of a profile.
#[test]
fn the_text_of_odd_mappings() {
    let mut odd = maps();
    odd.memory.nodes = Some((0..8).map(|node| (node, 1 << 30)).collect());
    odd.mappings[2].nodes = Some((0..8).map(|node| (node, 1 << 19)).collect());
    odd.mappings[0].name = "/tmp/\u{1b}[2J".repeat(40);
    odd.objects = vec![
        MappedObject { name: "matrix".into(), address: 0x7f00_0000_1000, bytes: 1 << 20, pages_asked: 256, ..MappedObject::default() },
        MappedObject { name: "gone".into(), address: 1, bytes: 1, pages_by_node: [(1, 1)].into(), pages_asked: 1, id: 2 },
    ];
    let text = maps_text(&[odd], MapsText { all: true, style: PLAIN });
    assert!(text.lines().all(|line| line.chars().count() <= 108) && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains("node 7 12 %") && text.contains("not present") && text.contains("not mapped any more"), "{text}");
}

/// Check the text of threads.
#[test]
fn the_text_of_threads() {
    let text = ps_text(&[process::threads(&root(), 4711).unwrap()], PLAIN);
    is_narrow(&text);
    let expected = "\
 TID  name        state     CPU  node  CPU time  moved  prefers  hint faults  may run on
4711  solver      sleeping    1     0     7.8 s      0        -  -            0-3
4712  work (2) x  running     2     1     7.8 s     12        1  75 % on 1    2
";
    assert!(text.ends_with(expected), "{text}");
    let mut odd = process::threads(&root(), 4711).unwrap();
    odd.threads[1].tid = 4_194_303;
    odd.threads[1].name = "行".repeat(15);
    odd.threads[1].allowed_cpus = Some((0..200).map(|cpu| 2 * cpu).collect());
    is_narrow(&ps_text(&[odd], PLAIN));
}

/// Check the text of balancing, and of a measurement that shows a difference and one that does not.
#[test]
fn the_text_of_balancing() {
    let text = balancing_text(&balancing::read(&root()), PLAIN);
    is_narrow(&text);
    assert!(text.starts_with("NUMA balancing is on (kernel.numa_balancing = 1).\n") && text.contains("scan_period_max_ms"), "{text}");
    let run = |wall_s| TimedRun { wall_s, hint_faults: 1000, hint_faults_local: 900, pages_migrated: 20 };
    let measured = |on: &[f64], off: &[f64]| {
        let runs = |times: &[f64]| times.iter().map(|time| run(*time)).collect::<Vec<_>>();
        [Measured::new("on", runs(on)), Measured::new("off", runs(off))]
    };
    let command = ["./solver".to_owned()];
    let apart = measured_text(&command, 2, &measured(&[1.1, 1.2, 1.1, 1.1], &[1.0, 1.0, 1.0, 1.0]), PLAIN);
    is_narrow(&apart);
    assert!(apart.contains("1.100 [1.100, 1.200]  1,000 [1,000, 1,000]") && apart.contains("takes 10.0 % longer; the times of"), "{apart}");
    let few = measured_text(&command, 2, &measured(&[2.0; 3], &[1.0; 3]), PLAIN);
    assert!(few.contains("Too few runs for a verdict: 4 of each are needed"), "{few}");
    let alike = measured(&[1.0, 3.0, 1.0, 3.0], &[2.0, 2.5, 2.0, 2.5]);
    assert!(measured_text(&command, 1, &alike, PLAIN).contains("No difference shown: the times overlap"));
    let json = serde_json::to_value(MeasuredJson::new(&command, 2, &alike)).unwrap();
    assert_eq!((&json["separated"], &json["measured"][0]["wall_s"]["median"]), (&false.into(), &2.0.into()));
    assert!(few.contains("100.0 % longer"));
}

/// Check the JSON keys that other programs rely on (docs/system.md).
#[test]
fn json_has_its_keys() {
    let keys = |json: &serde_json::Value| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let counters = counters::read(&root());
    let json = serde_json::to_value(StatJson::new(&counters, &Span::SinceBoot)).unwrap();
    assert_eq!(keys(&json), "schema span wall_s command exit_code nodes system doubts meanings");
    assert_eq!((&json["schema"], &json["nodes"][1]["counters"]["numa_miss"]), (&"firsttouch.stat/1".into(), &50.into()));

    let processes = [process::threads(&root(), 4711).unwrap()];
    let json = serde_json::to_value(PsJson::new(&processes)).unwrap();
    assert_eq!(keys(&json["processes"][0]), "pid name memory threads doubts");
    let expected = "tid name state cpu node cpu_ms allowed_cpus allowed_nodes migrations pages_migrated preferred_node hint_faults";
    assert_eq!(keys(&json["processes"][0]["threads"][1]), expected);

    let processes = [maps()];
    let json = serde_json::to_value(MapsJson::new(&processes)).unwrap();
    assert_eq!(keys(&json["processes"][0]), "pid name memory mappings objects doubts");
    assert_eq!(keys(&json["processes"][0]["memory"]), "nodes rss_bytes hugetlb_bytes swap_bytes");
    let expected = "start end permissions name policy page_bytes hugetlb resident_bytes transparent_huge_bytes swap_bytes nodes";
    assert_eq!(keys(&json["processes"][0]["mappings"][3]), expected);
    assert_eq!(json["processes"][0]["mappings"][3]["nodes"]["1"], 6 << 20);

    let state = balancing::read(&root());
    let json = serde_json::to_value(BalancingJson::new(&state)).unwrap();
    assert_eq!(keys(&json), "schema value state nodes tunables doubts");
    assert_eq!(keys(&json["tunables"][0]), "name value meaning file");
}
