//! Samples of registers alone agree with the truth on two nodes: with that of DGEMV, and with the findings that need real nodes. Watchpoints are too
//! slow in an emulated guest to be a cross-check, so none are set.

use super::dgemv::{BALANCING, HUGE_PAGES, assert_remote, dgemv_with};
use firsttouch_e2e::tool::temporary_directory;
use firsttouch_guests::{Blocks, Setting, balancing_off, findings, parts, sampled};
use serde_json::Value;

const NO_WATCHPOINTS: [(&str, &str); 1] = [("FIRSTTOUCH_WATCHPOINTS", "never")];

/// Checks that samples give the remote fraction, and that it is the true one.
fn assert_sampled_remote(report: &Value, truth: f64) {
    assert_eq!(report["remote_evidence"], "sample", "{report:#}");
    assert_remote(report, truth);
}

/// Check DGEMV: half of the accesses are remote after serial initialisation, and none after parallel initialisation.
#[test]
#[ignore = "takes 25 s; two::dgemv checks that samples are the evidence beside watchpoints too"]
fn dgemv() {
    sampled(|| {
        let _settings = (Setting::set(BALANCING, "0"), Setting::set(HUGE_PAGES, "never"));
        let folder = temporary_directory();
        let serial = dgemv_with(&NO_WATCHPOINTS, &folder.path().join("serial.ftp"), "serial", "40");
        assert_eq!(findings(&serial), [("serial-first-touch", "A")], "{serial:#}");
        assert_sampled_remote(&serial, 0.5);
        let parallel = dgemv_with(&NO_WATCHPOINTS, &folder.path().join("parallel.ftp"), "parallel", "40");
        assert_eq!(findings(&parallel), [], "{parallel:#}");
        assert_sampled_remote(&parallel, 0.0);
    });
}

/// Check the findings that need real nodes: memory bound to a node, and threads that moved.
#[test]
#[ignore = "takes 25 s; two::findings has the same programs with watchpoints beside the samples"]
fn findings_on_two_nodes() {
    let bind = ["numactl", "--membind=0"];
    let stay = |cpus: &[u32], launcher| Blocks { launcher, seconds: 6, ..Blocks::on(cpus, "stay") };
    let cases = [
        (stay(&[0, 1, 2], &[]), None, 0.0),
        (stay(&[0, 1, 2], &bind), Some("policy-mismatch"), 1.0 / 3.0),
        (Blocks { seconds: 6, ..Blocks::on(&[0, 2], "leave") }, Some("unpinned-threads"), 1.0),
    ];
    for (blocks, finding, truth) in &cases {
        sampled(|| {
            let _off = balancing_off();
            let folder = temporary_directory();
            let report = blocks.profiled_with(&NO_WATCHPOINTS, &folder.path().join("blocks.ftp"));
            let expected: Vec<(&str, &str)> = finding.iter().map(|finding| (*finding, "parts")).collect();
            assert_eq!(findings(&report), expected, "{report:#}");
            assert_eq!(parts(&report)["judged"], true, "{report:#}");
            assert_sampled_remote(&report, *truth);
        });
    }
}
