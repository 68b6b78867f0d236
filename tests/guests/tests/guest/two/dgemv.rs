//! The experiment of the slides: DGEMV on two nodes, with the matrix initialised by one thread or by the threads that use it.
//!
//! An emulated guest has few watch windows per second, so the figures come from samples of registers.

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{Setting, firsttouch, json, sampled};
use firsttouch_oracles::list;
use serde_json::Value;
use std::path::Path;

pub const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// The middle one of the matrix's 16 huge pages is used from both nodes, so up to 3 % of the accesses would be remote, regardless of which
/// thread touches it first.
pub const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Profiles DGEMV with four threads, two per node, and returns the report for this machine.
fn dgemv(file: &Path, init: &str, iterations: &str) -> Value {
    dgemv_with(&[], file, init, iterations)
}

/// The same with these variables in the environment.
pub fn dgemv_with(variables: &[(&str, &str)], file: &Path, init: &str, iterations: &str) -> Value {
    let firsttouch = firsttouch();
    let size = ["--m", "2000", "--n", "2000", "--iterations", iterations, "--threads", "4"];
    let program = [&[text(firsttouch.binary()), "bench", "dgemv", "--init", init], &size[..]].concat();
    let mut command = firsttouch.profile(file, &["-q"], &program);
    command.envs([("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores")]).envs(variables.iter().copied());
    let outcome = run(&mut command);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = json(&["report", text(file)]);
    assert_eq!(report["machine"]["virtual"].as_bool(), Some(false), "{report:#}");
    report
}

fn remote(report: &Value) -> f64 {
    report["remote_fraction"].as_f64().unwrap_or_else(|| panic!("no remote fraction: {report:#}"))
}

/// A figure may differ from the truth by this much, if its interval does not contain the truth.
const MARGIN: f64 = 0.05;

/// Checks that the remote fraction is the true one, by its interval, which must say something. Emulated CPUs share those of the host, so a thread's
/// CPU time is not its own alone, and intervals are wide.
pub fn assert_remote(report: &Value, truth: f64) {
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer}: {report:#}"));
    let (remote, low, high) = (number("/remote_fraction"), number("/remote_interval/0"), number("/remote_interval/1"));
    println!("{remote} [{low}, {high}] by {} for {truth}", report["remote_evidence"]);
    assert!((low <= truth && truth <= high) || (remote - truth).abs() <= MARGIN, "{remote} [{low}, {high}], not {truth}");
    assert!(high - low <= 0.4, "{remote} [{low}, {high}]");
}

fn matrix(report: &Value) -> Value {
    list(report, "objects").iter().find(|object| object["name"] == "A").cloned().unwrap_or_else(|| panic!("no A: {report:#}"))
}

/// Check serial initialisation: all of the matrix is on node 0, half of the accesses are remote, the finding names the line that
/// initialises, and the report of the same profile for two virtual nodes agrees.
#[test]
fn serial_initialisation() {
    sampled(|| {
        let _settings = (Setting::set(BALANCING, "0"), Setting::set(HUGE_PAGES, "never"));
        let folder = temporary_directory();
        let file = folder.path().join("serial.ftp");
        let report = dgemv(&file, "serial", "40");
        let findings = list(&report, "findings");
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!((findings[0]["id"].as_str(), findings[0]["object_name"].as_str()), (Some("serial-first-touch"), Some("A")));
        let touched = &matrix(&report)["first_touch"]["at"][0];
        let line = touched["text"].as_str().unwrap_or_default();
        assert!(line.starts_with("A[i * n + j] = "), "{touched:#}");

        let profile = firsttouch_profile::open(&file).unwrap();
        let a = matrix(&report)["id"].as_i64();
        let nodes: Vec<i32> = profile.pages.iter().filter(|page| page.object == a && page.node >= 0).map(|page| page.node).collect();
        assert!(nodes.len() >= 100 && nodes.iter().all(|node| *node == 0), "{nodes:?}");

        let there = json(&["report", text(&file), "--machine", "virtual:2"]);
        assert!((remote(&there) - remote(&report)).abs() <= 0.03, "{} and {}", remote(&there), remote(&report));
        let sampled = list(&report, "evidence").iter().find(|evidence| evidence["source"] == "sample").expect("samples");
        // On a busy host, few samples may leave a wider interval than watchpoints do.
        println!("{} samples, judged by {}", sampled["samples"], report["remote_evidence"]);
        assert!(sampled["samples"].as_u64() > Some(100), "{sampled:#}");
        assert_remote(&report, 0.5);
    });
}

/// Check parallel initialisation: almost no access is remote, and there is no finding. (`both::profile::well_placed` checks that on four nodes.)
#[test]
#[ignore = "takes half a minute"]
fn parallel_initialisation() {
    sampled(|| {
        let _settings = (Setting::set(BALANCING, "0"), Setting::set(HUGE_PAGES, "never"));
        let folder = temporary_directory();
        let file = folder.path().join("parallel.ftp");
        let report = dgemv(&file, "parallel", "40");
        assert_eq!(list(&report, "findings").len(), 0, "{report:#}");
        assert_eq!(report["remote_evidence"], "sample", "{report:#}");
        let there = json(&["report", text(&file), "--machine", "virtual:2"]);
        assert!((remote(&there) - remote(&report)).abs() <= 0.03, "{} and {}", remote(&there), remote(&report));
        assert!(remote(&report) < 0.03, "{} of {:#}", remote(&report), report["objects"]);
    });
}

/// Check that with the kernel's balancing on, the pages that it moves to their users are counted and shown. (`two::findings::pages_that_move` checks
/// the same with a smaller program.)
#[test]
#[ignore = "takes a minute"]
fn balancing_moves_the_matrix() {
    sampled(|| {
        let _on = Setting::set(BALANCING, "1");
        let folder = temporary_directory();
        let file = folder.path().join("balanced.ftp");
        let report = dgemv(&file, "serial", "40");
        let hints = list(&report, "evidence").iter().find(|evidence| evidence["source"] == "hint").unwrap();
        assert!(hints["samples"].as_u64() > Some(0), "{hints:#}");
        let moved = firsttouch_profile::open(&file).unwrap().counters.into_iter().find(|c| c.name == "numa_pages_migrated").unwrap();
        assert!(moved.at_end > moved.at_start, "{moved:?}");
        let shown = firsttouch_guests::said(firsttouch().command(["report"]).arg(&file));
        assert!(shown.contains("moved by the balancing"), "{shown}");
        // Most of the matrix moved from node 0 to its users, half of which are on node 1.
        assert!(remote(&report) < 0.3, "{report:#}");
    });
}
