//! `slow-tier`: memory on node 3, which has no CPUs, either used all the time or touched once.

use firsttouch_e2e::tool::temporary_directory;
use firsttouch_guests::{Blocks, balancing_fast, figure, finding, findings, parts, sampled};
use serde_json::Value;

/// Three threads on three nodes.
fn profiled(launcher: &[&str], way: &str) -> Value {
    let folder = temporary_directory();
    Blocks { launcher, ..Blocks::on(&[0, 2, 3], way) }.profiled(&folder.path().join("slow.ftp"))
}

/// Check the finding about hot memory there, with evidence by the balancing's hinting faults or by samples, and its advice.
#[test]
fn hot_memory_on_the_node_without_cpus() {
    sampled(|| {
        let _on = balancing_fast();
        let report = profiled(&["numactl", "--balancing", "--membind=3"], "stay");
        assert_eq!(findings(&report), [("slow-tier", "parts")], "{report:#}");
        let found = finding(&report, "slow-tier");
        assert!(figure(found, "slow") > 0.99 && figure(found, "remote") > 0.99, "{found:#}");
        assert!(found["message"].as_str().unwrap().contains("(node 3)"), "{found:#}");
        assert!(found["fix"].as_str().unwrap().contains("--membind=0,1,2"), "{found:#}");
        // Samples of registers are as good, if there are enough.
        let evidence = &parts(&report)["evidence"];
        assert!(evidence == "hint" || evidence == "sample", "{report:#}");
        assert_eq!(parts(&report)["partition"], "block", "{report:#}");
    });
}

/// Check that there is no finding about memory there that is no longer used.
#[test]
fn cold_memory_on_the_node_without_cpus() {
    sampled(|| {
        let _on = balancing_fast();
        let report = profiled(&[], "cold:3");
        assert_eq!(findings(&report), [], "{report:#}");
        let archive = report["objects"].as_array().unwrap().iter().find(|object| object["name"] == "archive").unwrap();
        assert_eq!((&archive["policy"], archive["resident"]["nodes_last"][3].as_f64()), (&"bind:3".into(), Some(1.0)), "{archive:#}");
        assert!(report["remote_fraction"].as_f64() < Some(0.03), "{report:#}");
    });
}
